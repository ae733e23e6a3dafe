/* datafile.h - the sparse file that holds a cached file's bytes: CACHE_DIR/data/XX/FID, offsets as
 * in the file itself.
 *
 * Opened when it is used; a bounded number of those that are not used right now stays open. Nothing
 * here takes f->lock, and the calls do disk I/O: without f->lock, but for datafile_close.  0 or
 * -errno.
 */
#ifndef EDDY_PLACEMENT_DATAFILE_H
#define EDDY_PLACEMENT_DATAFILE_H

#include <sys/stat.h>
#include <sys/uio.h>

#include "placement/store/file.h"

void datafile_start(int data_dirfd);

/* A descriptor that stays open until datafile_put.  make: creates the file.  -ENOENT: there is
 * none. */
int datafile_get(struct file *f, bool make, int *fd);
void datafile_put(struct file *f);
/* Closes it; nobody uses it any more.  For the last file_put. */
void datafile_close(struct file *f);

int datafile_pread(struct file *f, void *buf, size_t len,
                   uint64_t off); /* zeros beyond its end; -EIO: it should be there */
/* A view of [off, off + len), off at a page's start, in memory when this returns; NULL if it ends
 * before that, or there can be none.  munmap. */
void *datafile_map(struct file *f, size_t len, uint64_t off);
/* Without waiting, and from the page cache only.  May be called with f->lock.  False: it is not
 * open, or not all of the bytes are there now. */
bool datafile_pread_now(struct file *f, void *buf, size_t len, uint64_t off);
int datafile_pwritev(struct file *f, struct iovec *iov, int n,
                     uint64_t off); /* makes it; all or -errno; changes iov */
int datafile_punch(struct file *f, uint64_t off,
                   uint64_t len); /* zeros without blocks; never extends */
int datafile_truncate(struct file *f,
                      uint64_t size); /* shrinks to size; a shorter one stays as it is */
int datafile_sync(struct file *f);

/* ---- for what the kernel serves (store_pass.c) ---- */
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
/* Another, empty one takes its place, at once: there is no moment without one.  Who has the old one
 * open or mapped keeps it; calls that began before may still see the old one. */
int datafile_replace(struct file *f);
int datafile_remove(struct fid fid);
/* Out of the way: suspect/FID below the cache directory. */
int datafile_set_aside(struct fid fid, int suspect_dirfd);
/* Does the file system of dirfd punch holes? */
int datafile_probe(int dirfd);
/* Removes data files for which known() is false. */
void datafile_sweep(bool (*known)(struct fid fid));

#endif
