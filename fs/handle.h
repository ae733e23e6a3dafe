/* handle.h - open files of the mount (handle_int.h lists the files). */
#ifndef EDDY_FS_HANDLE_H
#define EDDY_FS_HANDLE_H

#include "flush/flush.h"
#include "fs/inode.h"
#include "fs/request.h"

struct handle {          /* fi->fh */
    struct inode *inode; /* referenced */
    struct data_handle *data;
    int flags;                    /* of open */
    struct flush_seen error_seen; /* flush_error_once */
    /* IO_NONE, IO_PROMISED: the kernel does not know of it.  IO_STALE: no mode can be given (io_mode.c) */
    enum io_mode {
        IO_NONE,
        IO_PROMISED,
        IO_CACHED,
        IO_DIRECT,
        IO_PASSTHROUGH,
        IO_BESIDE,
        IO_STALE
    } mode;
    unsigned life;      /* passthrough, beside: of which data file (kernel_io_open) */
    unsigned turn;      /* cached: of the inode's kept_pages ... */
    _Atomic bool asked; /* ... to which a read by this open was told */
    /* the kernel's until RELEASE, and each request's: an interrupted one may outlive RELEASE */
    _Atomic unsigned refs;
    struct handle *next, **prev; /* handle.c's list */
    /* Owners of fcntl locks that were asked for through it (inode's lock).  An OFD lock's owner is
     * the open file: the kernel sends no unlock at its close, and no FLUSH in its name. */
    uint64_t *lockers;
    unsigned nlockers;
    bool stores;      /* its mappings store into a shadow (fs/stores.h) */
    bool by_name;     /* its inode had a name that is known here when it was opened */
    bool hinted;      /* foresight_closed is to be called */
    bool guessed;     /* it was opened without kernel I/O, in case that other nodes write, too (shared.c) ... */
    _Atomic uint64_t wrote; /* bytes, so far */
    uint64_t others; /* so many writes of other nodes had come here when it was opened (claim_others) */
};
/* Does the kernel send each read and write, and keep no pages of them? */
static inline bool handle_is_direct(const struct handle *h)
{
    return h->mode == IO_DIRECT || h->mode == IO_BESIDE;
}
static inline bool handle_has_kernel_io(const struct handle *h)
{
    return h->mode == IO_PASSTHROUGH || h->mode == IO_BESIDE;
}
static inline struct handle *handle_of(const struct fuse_file_info *fi)
{
    return (struct handle *)(uintptr_t)fi->fh;
}
/* Opens data of inode i (pfs_open_file done or fd adopted) and fills fi (mode, keep_cache): the
 * second half of open and create. */
int file_open_handle(struct request *r, struct inode *i, const struct statx *stx, struct file *f,
                     bool created, struct handle **out);
void file_close_handle(struct handle *h); /* blocking */
/* The handles of the request's arguments (fi2 may be NULL) stay until it is freed: the kernel sends
 * RELEASE when an interrupted request was answered, though its job still runs. */
void handle_use(struct request *r, const struct fuse_file_info *fi,
               const struct fuse_file_info *fi2);
int file_sync(struct handle *h); /* fsync, as its mode says.  Blocking. */
void file_start(void);
void file_close_all(void); /* at the end: RELEASEs may have been lost. Blocking. */
/* Opens the file for reading; the kernel does not know of the handle.  any_kind: an open of i by this task,
 * of any kind, finds a mode until the handle is closed; -ESTALE: not by this node id, and it is retired.
 * Blocking. */
int file_open_in_advance(struct request *r, struct inode *i, bool any_kind, struct handle **out);
/* An open handle for writing of this inode, or a temporary one (setattr size on a path):
 * blocking. */
int file_open_for_truncate(struct request *r, struct inode *i, struct handle **out);

#endif
