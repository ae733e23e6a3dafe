/* handle_sync.c - flush (a descriptor was closed) and fsync: what they bring to the disk or the PFS, and the errors of
 * earlier flushes that they report.
 */
#include "fs/attr_last.h"
#include "fs/handle_int.h"
#include "fs/notify.h"
#include "fs/ops.h"
#include "fs/settings.h"
#include "fs/stores.h"
#include "placement/claims/lock_ask.h"
#include "placement/data_owed.h"

/* close reports a failed flush only to descriptors that wrote; fsync reports it to all. */
static int error_at_close(struct handle *h)
{
    if (!open_writes(h->flags))
        return 0;
    int lost = data_given_up(h->data), failed = flush_error_once(h->data->f, &h->error_seen);
    return lost ? lost : failed;
}

/* Flushes to the PFS and waits for that.  The error is returned here, so it is not reported once more. */
static int sync_to_pfs(struct handle *h)
{
    int err = data_sync(h->data, true), before = flush_error_once(h->data->f, &h->error_seen);
    return err ? err : before;
}

static bool waits_at_close(struct handle *h)
{
    return open_writes(h->flags) && flush_policy_of(h->data->f) == FLUSH_CLOSE;
}

static void end_flush(void *arg)
{
    struct request *r = arg;
    int stored = stores_take(r->handle->data->f);
    int err = waits_at_close(r->handle) ? sync_to_pfs(r->handle) : error_at_close(r->handle);
    request_err(r, err ? err : stored);
}

static void end_flush_job(struct request *r)
{
    end_flush(r);
}

/* In the network thread, which must not take the locks that this needs. */
static void unlocked(void *arg, int err, const struct lock_ask *found)
{
    (void)err;
    (void)found;
    pool_submit(pool_writers, end_flush, arg);
}

/* The kernel has served the stores of this descriptor: size and times are what the data file has now.
 * (Where they come as writes, the kernel drops its attributes itself.) */
static void tell_stores(struct handle *h)
{
    struct location at;
    if (h->mode != IO_PASSTHROUGH || !open_writes(h->flags))
        return;
    data_attr(h->data, &at);
    lock_take(&h->inode->lock);
    bool same = attr_is(h->inode, &at);
    lock_drop(&h->inode->lock);
    if (!same)
        notify_attr_now(h->inode->nodeid);
}

/* close() of a descriptor: its process's fcntl locks are released, and a flush that failed since is reported
 * once.  With the policy `close` it waits for the flush. */
static void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct handle *h = handle_of(fi);
    tell_stores(h);
    lock_take(&h->inode->lock);
    for (unsigned n = 0; n < h->nlockers; n++)
        if (h->lockers[n] == fi->lock_owner)
            h->lockers[n--] = h->lockers[--h->nlockers];
    lock_drop(&h->inode->lock);
    bool locks = lock_owner_has_any(h->inode->fid, fi->lock_owner);
    if (!locks && !waits_at_close(h) && !h->stores && !data_given_up_asks(h->data)) {
        fuse_reply_err(req, -error_at_close(h));
        return;
    }
    struct request *r = request_new(req, ino);
    if (!r)
        return;
    handle_use(r, fi, NULL);
    if (locks)
        lock_drop_owner(h->inode->fid, false, fi->lock_owner, unlocked, r);
    else
        request_start(r, pool_writers, end_flush_job);
}

int file_sync(struct handle *h)
{
    if (settings.fsync_pfs)
        return sync_to_pfs(h);
    int err = data_sync(h->data, false);
    return err ? err : flush_error_once(h->data->f, &h->error_seen);
}

static void fsync_fn(struct request *r)
{
    struct handle *h = handle_of(&r->fi);
    int stored = stores_take(h->data->f), err = file_sync(h);
    request_err(r, err ? err : stored);
}

static void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
    struct request *r = request_new(req, ino);
    (void)datasync;
    if (!r)
        return;
    handle_use(r, fi, NULL);
    request_start(r, settings.fsync_pfs ? pool_writers : pool_waiters, fsync_fn);
}

void handle_sync_ops(struct fuse_lowlevel_ops *ops)
{
    ops->flush = op_flush;
    ops->fsync = op_fsync;
}
