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

/* A descriptor that stays open until datafile_put.  make: creates the file.  -ENOENT: there is
 * none. */
int datafile_get(struct file *f, bool make, int *fd);
/* The same of one that was made before: -ENODATA: it never was, all of it is a hole; -EIO: it should be
 * there. */
int datafile_get_made(struct file *f, int *fd);
/* The same if it is open: no I/O, and no lock.  False: it is not. */
bool datafile_use(struct file *f, int *fd);
void datafile_put(struct file *f);
/* Closes it; nobody uses it any more.  For the last file_put. */
void datafile_close(struct file *f);

int datafile_pread(struct file *f, void *buf, size_t len,
                   uint64_t off); /* zeros beyond its end; -EIO: it should be there */
/* The same of a descriptor; or of what datafile_get_made said: zeros for -ENODATA, else that error. */
int datafile_read(int fd, void *buf, size_t len, uint64_t off);
/* A view of [off, off + len), off at a page's start, in memory when this returns; NULL if the file ends
 * before that, or there can be none.  munmap. */
void *datafile_map(int fd, size_t len, uint64_t off);
/* Without waiting, and from the page cache only.  May be called with f->lock.  False: it is not
 * open, or not all of the bytes are there now. */
bool datafile_pread_now(struct file *f, void *buf, size_t len, uint64_t off);
int datafile_pwritev(struct file *f, struct iovec *iov, int n,
                     uint64_t off); /* makes it; all or -errno; changes iov */
int datafile_punch(struct file *f, uint64_t off,
                   uint64_t len); /* zeros without blocks; never extends */
int datafile_truncate(struct file *f,
                      uint64_t size); /* shrinks to size; a shorter one stays as it is */
/* What was stored before is on the disk, and its name.  An error is told once, by the kernel: it is the
 * caller's to remember.  One at a time per file. */
int datafile_sync(struct file *f);

int datafile_remove(struct fid fid);
/* Out of the way: suspect/FID below the cache directory. */
int datafile_set_aside(struct fid fid, int suspect_dirfd);
/* Does the file system of dirfd punch holes? */
int datafile_probe(int dirfd);
/* Removes data files for which known() is false. */
void datafile_sweep(bool (*known)(struct fid fid));

#endif
