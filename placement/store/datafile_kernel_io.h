/* datafile_kernel_io.h - what kernel I/O needs of data files (datafile_kernel_io.c).  The rules of datafile.h
 * hold here, too. */
#ifndef EDDY_PLACEMENT_STORE_DATAFILE_KERNEL_IO_H
#define EDDY_PLACEMENT_STORE_DATAFILE_KERNEL_IO_H

#include <sys/stat.h>

#include "placement/store/file.h"

int datafile_stat(struct file *f, struct stat *st); /* may be called with f->lock */
int datafile_resize(struct file *f, uint64_t size); /* makes it; exactly this long */
/* Writes buf at the file's end, wherever that is now.  *done: how many bytes were written, also after an
 * error: other writers may have appended since, so the bytes can not be taken back. */
int datafile_append(struct file *f, const void *buf, size_t len, size_t *done);
/* Finds the next bytes at or after off that have blocks, or will soon have some: [*data, *hole).  Both
 * UINT64_MAX: there are none.  If the file system does not tell, all that follows counts as such bytes. */
void datafile_extent(struct file *f, uint64_t off, uint64_t *data, uint64_t *hole);
/* Opens a read-only descriptor, which the caller closes. */
int datafile_open_again(struct file *f, int *fd);
/* The same of a descriptor that can write. */
int datafile_open_to_write(struct file *f, int *fd);
/* The same, but first makes the data file if there is none, and makes it exactly this long.  No other thread
 * may change its length meanwhile. */
int datafile_open_whole(struct file *f, uint64_t size, int *fd);
/* Waits until every buffered write that had begun has ended.  (A write moves the time stamps only when it
 * begins.) */
int datafile_barrier(struct file *f);
/* Makes the file at least this long, and never shorter.  Makes it if there is none. */
int datafile_grow(struct file *f, uint64_t size);
/* Is it sure that no process can store into the file any more (datafile_alone: nor read it), by a descriptor
 * or a mapping?  Also false while this process uses its own descriptor.  The proof is a lease, which the
 * kernel gives only in this case (protocol.md, F6). */
bool datafile_unwritten(struct file *f);
bool datafile_alone(struct file *f);
/* A copy of it that has no name yet: a descriptor, which the caller closes.  Its bytes are on the disk, its mtime is the data
 * file's.  -ENOSPC, -EOPNOTSUPP (the cache's file system has no files without a name), -EIO */
int datafile_copy(struct file *f, int *copy);
/* Puts this copy, or an empty data file (-1), in its place in one step: at no moment is there none.  Processes that have
 * the old one open or mapped keep it.  Calls that began before may still see the old one. */
int datafile_replace(struct file *f, int copy);

#endif
