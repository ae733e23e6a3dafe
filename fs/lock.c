/* lock.c - fcntl and flock: the file's home grants the locks, for the whole session.
 *
 * When a lock is granted, the application must see what other nodes wrote before.  So before it gets its
 * lock, the home is asked again where the latest bytes are, and the kernel's pages are dropped if they may
 * have other bytes.  This is not necessary while this node has the claim, and no other node's write came
 * since the last look; nor where the owner had a lock already, and changes it.  So a lock that cannot be made fresh is one that
 * its owner did not have, and it is given back.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "fs/handle.h"
#include "fs/known.h"
#include "fs/ops.h"
#include "fs/page_cache.h"
#include "placement/claims/claim.h"
#include "placement/claims/lock_ask.h"
#include "placement/data_believe.h"

/* Pages of inodes that are being dropped (inode's dropping, dropped). */
static struct {
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t ended;
} drops = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF},
           .ended = PTHREAD_COND_INITIALIZER};

struct asked {
    struct lock_ask ask;
    struct lock_ask *missing; /* parts on which its owner had no lock before; malloc'd */
    unsigned n_missing;       /* 0: it had one on all of it */
};

static struct lock_ask *ask_of(struct request *r)
{
    return &((struct asked *)r->extra)->ask;
}

/* ---- granted: fresh data ---- */

static bool is_fresh(struct handle *h)
{
    uint64_t carried = claim_carried(h->data->f);
    struct location at;
    if (!claim_here(h->inode->fid, &at))
        return false;
    lock_take(&h->inode->lock);
    bool fresh = h->inode->carried_seen == carried;
    lock_drop(&h->inode->lock);
    return fresh;
}

/* Begins a drop of the pages, which end_drop ends.  False: another thread has dropped the pages since the
 * file was as *now says; if it is not ready yet, this waits for it. */
static bool begin_drop(struct inode *i, bool changed, const struct data_tag *now)
{
    lock_take(&drops.lock);
    while (i->dropping)
        lock_wait(&drops.lock, &drops.ended, 0);
    bool drop = changed && !data_tag_eq(&i->dropped, now);
    i->dropping = drop;
    lock_drop(&drops.lock);
    return drop;
}

static void end_drop(struct inode *i, const struct data_tag *now)
{
    lock_take(&drops.lock);
    i->dropped = *now;
    i->dropping = false;
    pthread_cond_broadcast(&drops.ended);
    lock_drop(&drops.lock);
}

/* Done once, also for many processes whose locks are granted together.  If the kernel asks for attributes
 * while it is told to drop them, it ignores the answer, and then reads no further than the old length. */
static int drop_stale(struct handle *h)
{
    struct inode *i = h->inode;
    struct data_tag now;
    bool changed = false;
    uint64_t carried = claim_carried(h->data->f);
    int err = data_revalidate(h->data, &changed, &now);
    if (err)
        return err;
    data_follow(h->data);
    lock_take(&i->lock);
    changed |= i->carried_seen != carried;
    lock_drop(&i->lock);
    if (begin_drop(i, changed, &now)) {
        data_dropping(h->data);
        page_cache_drop(i, 0, 0);
        end_drop(i, &now);
    }
    lock_take(&i->lock);
    i->carried_seen = carried;
    lock_drop(&i->lock);
    return 0;
}

/* Inode's lock held. */
static void remember_locker(struct handle *h, uint64_t owner)
{
    for (unsigned n = 0; n < h->nlockers; n++)
        if (h->lockers[n] == owner)
            return;
    h->lockers = xrealloc(h->lockers, (h->nlockers + 1) * sizeof(*h->lockers));
    h->lockers[h->nlockers++] = owner;
}

/* For the last close, which ends what is left of it. */
static void remember(struct request *r)
{
    const struct lock_ask *a = ask_of(r);
    if (a->flock)
        return;
    lock_take(&r->inode->lock);
    remember_locker(handle_of(&r->fi), a->owner);
    lock_drop(&r->inode->lock);
}

/* It is given back before the answer: a process that asks again must not lose the lock that it is granted
 * then.  What its owner had before stays: a request that fails takes nothing away. */
static void give_back(struct request *r)
{
    struct asked *asked = r->extra;
    for (unsigned n = 0; n < asked->n_missing; n++) {
        asked->missing[n].type = F_UNLCK;
        lock_request(&asked->missing[n], false, NULL, NULL);
    }
}

static void end_asked(struct request *r)
{
    free(((struct asked *)r->extra)->missing);
    free(r->extra);
    r->extra = NULL;
}

static void answer(struct request *r, int err)
{
    end_asked(r);
    request_err(r, err);
}

static void make_fresh(void *arg)
{
    struct request *r = arg;
    struct handle *h = handle_of(&r->fi);
    int err = 0;
    remember(r); /* again: another thread may have closed the descriptor while this one waited */
    if (((struct asked *)r->extra)->n_missing && !is_fresh(h)) {
        known_want_descriptor(h->inode);
        err = drop_stale(h);
    }
    if (err)
        give_back(r);
    answer(r, err);
}

static void done_job(void *arg)
{
    request_done(arg);
}

/* In the network thread: answers are given here; work that takes locks of inodes and files is done in the
 * pool. */
static void locked(void *arg, int err, const struct lock_ask *found)
{
    struct request *r = arg;
    (void)found;
    if (!err && ask_of(r)->type != F_UNLCK) {
        request_may_not_end(r); /* it is its owner's already; now the PFS may be waited for */
        pool_submit(pool_locks, make_fresh, r);
        return;
    }
    end_asked(r);
    if (request_take(r))
        fuse_reply_err(r->req, -err);
    pool_submit(pool_waiters, done_job, r);
}

/* ---- the operations ---- */

static struct request *new_lock_request(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
                                        bool flock)
{
    struct request *r = request_new(req, ino);
    if (!r)
        return NULL;
    handle_use(r, fi, NULL);
    struct asked *asked = xcalloc(1, sizeof(*asked));
    struct lock_ask *a = &asked->ask;
    a->fid = r->inode->fid;
    a->flock = flock;
    a->owner = fi->lock_owner;
    a->end = UINT64_MAX;
    a->pid = (uint32_t)r->pid;
    r->extra = asked;
    return r;
}

static void cancel(struct request *r)
{
    lock_cancel(r->lock_id);
}

static void ask(struct request *r, bool wait)
{
    struct lock_ask a = *ask_of(r);
    if (a.type != F_UNLCK) {
        remember(r);
        struct asked *asked = r->extra;
        asked->n_missing = lock_missing(&a, &asked->missing);
    }
    r->lock_id = lock_new_id();
    request_wait(r, cancel);
    lock_request_as(r->lock_id, &a, wait, locked, r);
}

/* The kernel gives l_start and l_len; 0 is "to the end, whatever it grows to". */
static void range_of(struct lock_ask *a, const struct flock *lock)
{
    a->type = lock->l_type;
    a->start = (uint64_t)lock->l_start;
    a->end = lock->l_len ? (uint64_t)lock->l_start + (uint64_t)lock->l_len - 1 : UINT64_MAX;
    if (lock->l_pid)
        a->pid = (uint32_t)lock->l_pid;
}

static void op_setlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock,
                     int sleep)
{
    struct request *r = new_lock_request(req, ino, fi, false);
    if (!r)
        return;
    range_of(ask_of(r), lock);
    ask(r, sleep);
}

static void op_flock(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, int op)
{
    struct request *r = new_lock_request(req, ino, fi, true);
    if (!r)
        return;
    int what = op & ~LOCK_NB;
    ask_of(r)->type = what == LOCK_EX ? F_WRLCK : what == LOCK_SH ? F_RDLCK : F_UNLCK;
    ask(r, !(op & LOCK_NB));
}

static void tested(void *arg, int err, const struct lock_ask *found)
{
    struct request *r = arg;
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    if (!err && found->type != F_UNLCK) {
        lock.l_type = found->type;
        lock.l_start = (off_t)found->start;
        lock.l_len = found->end == UINT64_MAX ? 0 : (off_t)(found->end - found->start + 1);
        lock.l_pid = (pid_t)found->pid;
    }
    end_asked(r);
    if (request_take(r))
        err ? fuse_reply_err(r->req, -err) : fuse_reply_lock(r->req, &lock);
    pool_submit(pool_waiters, done_job, r);
}

static void op_getlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock)
{
    struct request *r = new_lock_request(req, ino, fi, false);
    if (!r)
        return;
    range_of(ask_of(r), lock);
    struct lock_ask a = *ask_of(r);
    r->lock_id = lock_new_id();
    request_wait(r, cancel);
    lock_test(r->lock_id, &a, tested, r);
}

void lock_ops(struct fuse_lowlevel_ops *ops)
{
    ops->getlk = op_getlk;
    ops->setlk = op_setlk;
    ops->flock = op_flock;
}
