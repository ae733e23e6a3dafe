/* kernel_io_store.h - what the rest of the store asks of files that the kernel reads and writes
 * (kernel_io*.c).  f->lock must be held when any of these is called, unless it says otherwise. */
#ifndef EDDY_PLACEMENT_STORE_KERNEL_IO_STORE_H
#define EDDY_PLACEMENT_STORE_KERNEL_IO_STORE_H

#include "placement/store/file.h"

/* ---- kernel_io_sample.c ---- */
/* Samples the data file.  True: it was written since the last look, and size and times are new. */
bool kernel_io_look(struct file *f);
/* The same, but does nothing for a file that can change only after an open, which this daemon would see. */
void kernel_io_peek(struct file *f);
/* Its data file is removed, or its pages account for all its blocks from now on. */
void kernel_io_uncount(struct file *f);
void kernel_io_deleted(struct file *f); /* from now on nothing of it is dirty */
bool kernel_io_flushed(const struct file *f); /* as far as the last sample tells, the PFS has it */

/* ---- kernel_io_watch.c ---- */
/* Without f->lock.  The file is deleted: it is not sampled any more, unless a process can still write it. */
void kernel_io_not_watched(struct file *f);

/* ---- kernel_io.c ---- */
bool kernel_io_in_use(struct file *f); /* has any process a descriptor or a mapping? */
int kernel_io_renew(struct file *f);  /* if so, puts an empty data file in its place */
/* Puts this copy, or an empty data file (-1), in the place of the one in use, which becomes this shadow (NULL: none; taken
 * also after an error). */
int kernel_io_leave(struct file *f, int copy, struct shadow *s);

/* ---- kernel_io_mark.c ---- */
/* Must its bytes be copied, and not handed on as a view?  So if the hash must be of exactly the bytes that
 * the PFS gets. */
bool kernel_io_needs_copy(struct file *f);
/* A flush ended (store_flushed).  clean: nothing changed as far as the records tell.  Returns whether that is
 * true; applications may still be able to store into the file (has_kernel_io). */
bool kernel_io_conclude(struct file *f, bool clean);
void kernel_io_drop(struct file *f); /* drops what a failed flush has left */
/* A snapshot begins with a truncation of the PFS file at `cut`: what was copied beyond is not on it. */
void kernel_io_cut(struct file *f, uint64_t cut);

#endif
