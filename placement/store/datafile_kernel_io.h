/* datafile_kernel_io.h - what passthrough needs of data files (datafile_kernel_io.c); as datafile.h. */
#ifndef EDDY_PLACEMENT_STORE_DATAFILE_KERNEL_IO_H
#define EDDY_PLACEMENT_STORE_DATAFILE_KERNEL_IO_H

#include <sys/stat.h>

#include "placement/store/file.h"

int datafile_stat(struct file *f, struct stat *st); /* may be called with f->lock */
int datafile_resize(struct file *f, uint64_t size); /* makes it; exactly this long */
/* At its end, wherever that is now.  *done: how much of it, also when it fails: others may have
 * appended since, so it can not be taken back. */
int datafile_append(struct file *f, const void *buf, size_t len, size_t *done);
/* The next bytes at or after off that have blocks, or are on their way to some: [*data, *hole).  Both
 * UINT64_MAX: there are none.  Where it is not known all that follows counts as such. */
void datafile_extent(struct file *f, uint64_t off, uint64_t *data, uint64_t *hole);
/* A read-only descriptor of its own, the caller's to close. */
int datafile_open_again(struct file *f, int *fd);
/* The same, of a data file that is made, and exactly this long then.  Nobody else changes its length
 * meanwhile. */
int datafile_open_whole(struct file *f, uint64_t size, int *fd);
/* Until every buffered write that had begun has ended.  (It moves the time stamps only when it
 * begins.) */
int datafile_barrier(struct file *f);
/* At least this long; never shorter.  Makes it. */
int datafile_grow(struct file *f, uint64_t size);
/* May nobody store into it any more (or: look at it), by a descriptor or a mapping?  False too
 * while this process uses its own.  (protocol.md, F6: a lease that is only given when it is so.) */
bool datafile_unwritten(struct file *f);
bool datafile_alone(struct file *f);
/* An empty data file takes its place in one step: there is no moment without one.  Processes that have the
 * old one open or mapped keep it; calls that began before may still see the old one. */
int datafile_replace(struct file *f);

#endif
