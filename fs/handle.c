/* handle.c - the handles that are open, and their end.  RELEASEs are lost when a mount ends, so all handles are in a
 * list, and file_close_all closes those that are left.
 */
#include <stdlib.h>

#include "fs/handle_int.h"
#include "fs/ops.h"
#include "fs/shared.h"
#include "placement/claims/claim_forget.h"
#include "placement/claims/lock_ask.h"
#include "placement/foresight/foresight.h"

static struct {
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t changed;
    struct handle *list;
    unsigned closing; /* taken from the list, not closed yet */
} handles;

void file_start(void)
{
    lock_init(&handles.lock, RANK_LEAF);
    lock_cond_init(&handles.changed);
}

void handle_add(struct handle *h)
{
    lock_take(&handles.lock);
    h->next = handles.list;
    h->prev = &handles.list;
    if (h->next)
        h->next->prev = &h->next;
    handles.list = h;
    lock_drop(&handles.lock);
}

/* ---- closing ---- */

/* Takes it out of the list, into the count of those being closed.  False: another thread closes it. */
static bool take_handle(struct handle *h)
{
    lock_take(&handles.lock);
    bool ours = h->prev != NULL;
    if (ours) {
        *h->prev = h->next;
        if (h->next)
            h->next->prev = h->prev;
        h->prev = NULL;
        handles.closing++;
    }
    lock_drop(&handles.lock);
    return ours;
}

/* fcntl locks of open files, which the kernel leaves to the last close.  What uses the handle may go on for longer (fs/stores.h). */
static void drop_lockers(struct handle *h)
{
    lock_take(&h->inode->lock);
    uint64_t *owners = h->lockers;
    unsigned all = h->nlockers;
    h->lockers = NULL;
    h->nlockers = 0;
    lock_drop(&h->inode->lock);
    for (unsigned n = 0; n < all; n++)
        lock_drop_owner(h->inode->fid, false, owners[n], NULL, NULL);
    free(owners);
}

static void close_taken(struct handle *h)
{
    struct file *f = file_ref(h->data->f);
    if (h->mode != IO_NONE) {
        shared_learn(h);
        handle_leave_mode(h);
    }
    drop_lockers(h);
    data_close(h->data);
    data_release(f);
    claim_closed(f);
    if (h->hinted)
        foresight_closed(f->fid, open_writes(h->flags));
    file_put(f);
    inode_put(h->inode);
    free(h);
    lock_take(&handles.lock);
    handles.closing--;
    pthread_cond_broadcast(&handles.changed);
    lock_drop(&handles.lock);
}

static void close_job(void *arg)
{
    close_taken(arg);
}

/* Any thread may drop the last reference, so another thread may do the closing, which may wait for nodes and
 * for the PFS. */
void handle_put(struct handle *h)
{
    if (h && !--h->refs)
        request_run(pool_waiters, close_job, h);
}

void file_close_handle(struct handle *h)
{
    if (take_handle(h) && !--h->refs)
        close_taken(h);
}

static void let_go(struct request *r)
{
    handle_put(r->handle);
    handle_put(r->handle2);
}

void handle_use(struct request *r, const struct fuse_file_info *fi,
                const struct fuse_file_info *fi2)
{
    r->fi = *fi;
    r->handle = handle_of(fi);
    r->handle->refs++;
    if (fi2) {
        r->handle2 = handle_of(fi2);
        r->handle2->refs++;
    }
    r->let_go = let_go;
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct handle *h = handle_of(fi);
    (void)ino;
    if (fi->flock_release)
        lock_drop_owner(h->inode->fid, true, fi->lock_owner, NULL, NULL);
    drop_lockers(h);
    bool ours = take_handle(h);
    fuse_reply_err(req, 0);
    if (ours)
        handle_put(h);
}

void file_close_all(void)
{
    lock_take(&handles.lock);
    while (handles.list || handles.closing) {
        struct handle *h = handles.list;
        if (!h) {
            lock_wait(&handles.lock, &handles.changed, 0);
            continue;
        }
        lock_drop(&handles.lock);
        file_close_handle(h);
        lock_take(&handles.lock);
    }
    lock_drop(&handles.lock);
}

void handle_ops(struct fuse_lowlevel_ops *ops)
{
    ops->release = op_release;
}
