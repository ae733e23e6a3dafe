/* statfs.c - how full the file system is: the PFS's answer, or its last one while it hangs. */
#include "fs/ops.h"
#include "placement/pfs/pfs_names.h"

static struct {
    struct lock lock;
    struct statvfs last; /* for while the PFS hangs */
    bool known;
} fs_state = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}};

static void statfs_fn(struct request *r)
{
    struct statvfs now;
    int err = pfs_statfs(&now);
    if (err) {
        request_err(r, err);
        return;
    }
    lock_take(&fs_state.lock);
    fs_state.last = now;
    fs_state.known = true;
    lock_drop(&fs_state.lock);
    if (request_take(r))
        fuse_reply_statfs(r->req, &now);
    request_done(r);
}

static bool statfs_stalled(struct request *r)
{
    lock_take(&fs_state.lock);
    struct statvfs last = fs_state.last;
    bool known = fs_state.known;
    lock_drop(&fs_state.lock);
    if (known && request_take(r))
        fuse_reply_statfs(r->req, &last);
    return known;
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
    (void)ino;
    struct request *r = request_new(req, 0);
    if (!r)
        return;
    request_on_stall(r, statfs_stalled);
    request_start(r, pool_names, statfs_fn);
}

void statfs_ops(struct fuse_lowlevel_ops *ops)
{
    ops->statfs = op_statfs;
}
