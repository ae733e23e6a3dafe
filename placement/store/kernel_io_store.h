/* kernel_io_store.h - what the rest of the store asks of files that the kernel reads and writes (kernel_io*.c).
 * f->lock must be held when any of these is called, unless it says otherwise. */
#ifndef EDDY_PLACEMENT_STORE_KERNEL_IO_STORE_H
#define EDDY_PLACEMENT_STORE_KERNEL_IO_STORE_H

#include "placement/store/file.h"

/* ---- kernel_io_sample.c ---- */
/* Samples the data file; true: somebody stored since the last look, size and times are new. */
bool kernel_io_look(struct file *f);
/* The same, but for a file that only an open which this daemon sees can change. */
void kernel_io_peek(struct file *f);
/* Its data file goes, or only pages stand for its blocks from now on. */
void kernel_io_uncount(struct file *f);
void kernel_io_deleted(struct file *f); /* from now on nothing of it is dirty */
bool kernel_io_flushed(const struct file *f); /* as far as the last sample tells, the PFS has it */

/* ---- kernel_io_watch.c ---- */
/* Without f->lock.  It is deleted: not sampled any more, unless somebody can write it. */
void kernel_io_not_watched(struct file *f);

/* ---- kernel_io.c ---- */
bool kernel_io_holds(struct file *f); /* has anybody a descriptor or a mapping? */
int kernel_io_renew(struct file *f);  /* if so: an empty data file takes its place */

/* ---- kernel_io_mark.c ---- */
/* May its bytes not be handed on as a view?  Where the hash must be of the very
 * bytes that the PFS gets; and beside O_DIRECT writers, who can not take pages out of memory that a
 * PFS client holds for its own I/O: what they wrote would not be read. */
bool kernel_io_needs_copy(struct file *f);
/* A flush ended (store_flushed); clean: nothing changed as far as the records tell.  Returns
 * whether that holds; the file may still be stored into (has_kernel_io). */
bool kernel_io_settle(struct file *f, bool clean);
void kernel_io_drop(struct file *f); /* what a flush that failed has left */
/* A snapshot begins by cutting the PFS's file off there: what was copied beyond is not on it. */
void kernel_io_cut(struct file *f, uint64_t cut);

#endif
