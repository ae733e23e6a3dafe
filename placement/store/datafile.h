/* datafile.h - the sparse file that holds a cached file's bytes: CACHE_DIR/data/XX/FID, offsets as
 * in the file itself.
 *
 * Opened when it is used; a bounded number of them stays open.  Nothing here takes f->lock, and the calls
 * do disk I/O: without f->lock, but for datafile_use, datafile_put and datafile_close.  0 or -errno.
 */
#ifndef EDDY_PLACEMENT_STORE_DATAFILE_H
#define EDDY_PLACEMENT_STORE_DATAFILE_H

#include <sys/stat.h>
#include <sys/uio.h>

#include "placement/store/file.h"

void datafile_start(int data_dirfd);
/* A new object. */
void datafile_begin(struct file *f);

/* Was it made?  Any lock. */
bool datafile_is_made(const struct file *f);
/* Gives a descriptor that stays open until datafile_put.  make: creates the file.  -ENOENT: there is
 * no file. */
int datafile_get(struct file *f, bool make, int *fd);
/* The same for a file that was made before.  -ENODATA: it was never made, and all of it is a hole.  -EIO: it
 * should be there, and is not. */
int datafile_get_made(struct file *f, int *fd);
/* The same if the file is open already: does no I/O, and takes no lock.  False: it is not open. */
bool datafile_use(struct file *f, int *fd);
void datafile_put(struct file *f);
/* Closes it.  No call may use it any more.  For the last file_put. */
void datafile_close(struct file *f);

int datafile_pread(struct file *f, void *buf, size_t len,
                   uint64_t off); /* zeros beyond its end; -EIO: it should be there */
/* The same from a descriptor.  fd may also be the error of datafile_get_made: -ENODATA gives zeros, any other
 * error is returned. */
int datafile_read(int fd, void *buf, size_t len, uint64_t off);
/* Maps [off, off + len), for munmap; off is at a page's start.  The bytes are in memory when this returns.
 * NULL: the file ends before off + len, or it can not be mapped. */
void *datafile_map(int fd, size_t len, uint64_t off);
/* Reads from the page cache only, and does not wait.  May be called with f->lock.  False: the file is not
 * open, or not all of the bytes are in the page cache now. */
bool datafile_pread_now(struct file *f, void *buf, size_t len, uint64_t off);
int datafile_pwritev(struct file *f, struct iovec *iov, int n,
                     uint64_t off); /* makes it; all or -errno; changes iov */
int datafile_punch(struct file *f, uint64_t off,
                   uint64_t len); /* zeros without blocks; never extends */
int datafile_truncate(struct file *f,
                      uint64_t size); /* shrinks to size; a shorter one stays as it is */
/* Brings to the disk what was stored before, and the file's name.  The kernel tells an error only once: the
 * caller must remember it.  Only one thread at a time may sync a file. */
int datafile_sync(struct file *f);

/* Removes the data file of a file that has no page, with a RANGE_DROP on all of it.  False: a call uses it now,
 * or the disk failed (logged). */
bool datafile_discard(struct file *f);
int datafile_remove(struct fid fid);
/* Moves it out of the way, to suspect/FID below the cache directory. */
int datafile_set_aside(struct fid fid, int suspect_dirfd);
/* Does the file system of dirfd punch holes?  Also tries to make a file there, and to write into it. */
int datafile_probe(int dirfd);
/* The same, if there is no room for another file: by a punch behind the end of fd's file. */
int datafile_probe_full(int fd);
/* Removes data files for which known() is false. */
void datafile_sweep(bool (*known)(struct fid fid));

#endif
