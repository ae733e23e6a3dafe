/* told.c - the watcher's side of CHANGED (tell.h): the file's claimant says what has changed.
 *
 *     network thread: CHANGED --> the file's queue --> told pool: ends the beliefs, one of a file at a time, in the
 *                                                      order in which they came --> CHANGED_OK
 *
 * The pool is its own: a job waits for the kernel, and that for requests of this mount, which other pools serve; or,
 * if the file has lost its last name, for the claimant to count this node, which waits for nobody there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "placement/claims/look.h"
#include "placement/store/shadow.h"
#include "placement/tell.h"
#include "transport/complaint.h"
#include "transport/hash.h"
#include "transport/lock.h"
#include "transport/loop.h"
#include "transport/members.h"
#include "transport/peer.h"

#define THREADS 32

struct told_msg {
    struct told_msg *next;
    struct msg *m;
};

/* A file of which changes are being told; in the list while its job runs. */
struct told_file {
    struct told_file *next;
    struct fid fid;
    struct told_msg *first, **last;
};

static struct {
    struct lock lock; /* RANK_LEAF: all but the pool */
    struct told_file *list;
    unsigned (*fn)(struct fid fid, const struct told_change *c);
    unsigned calls; /* of fn, under way */
    pthread_cond_t ended;
    struct pool *pool;
} all = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF},
         .ended = PTHREAD_COND_INITIALIZER};

void told_on_change(unsigned (*fn)(struct fid fid, const struct told_change *c))
{
    lock_take(&all.lock);
    all.fn = fn;
    while (!fn && all.calls)
        lock_wait(&all.lock, &all.ended, 0);
    lock_drop(&all.lock);
}

unsigned told_here(struct fid fid, const struct told_change *c)
{
    look_break(fid);
    lock_take(&all.lock);
    unsigned (*fn)(struct fid, const struct told_change *) = all.fn;
    all.calls += fn != NULL;
    lock_drop(&all.lock);
    if (!fn)
        return 0;
    unsigned left = fn(fid, c);
    lock_take(&all.lock);
    if (!--all.calls)
        pthread_cond_broadcast(&all.ended);
    lock_drop(&all.lock);
    return left;
}

void told_shadow(struct file *f, const struct told_change *c)
{
    switch (c->what) {
    case TOLD_BYTES:
        if (c->bytes)
            shadow_write(f, c->bytes, c->len, c->off);
        break;
    case TOLD_ZEROS:
        shadow_zero(f, c->off, c->len);
        break;
    default:
        shadow_resize(f, c->size);
    }
}

/* Descriptors that have been passthrough since before another node had the claim. */
static void follow(struct fid fid, const struct told_change *c)
{
    struct file *f = file_find(fid);
    if (!f)
        return;
    shadow_begin(f); /* it says what it cannot do */
    told_shadow(f, c);
    file_put(f);
}

/* The sender asks again. */
static bool damaged(const struct msg *m)
{
    if (!m->head.data_len || data_hash(m->data, m->head.data_len) == m->changed.hash)
        return false;
    count(bad_checksums, 1);
    complain_of_node(members_name(m->head.sender), "a change with a wrong checksum");
    return true;
}

static void end_beliefs(struct msg *m)
{
    if (damaged(m)) {
        peer_reply_error(m, -EBADMSG);
        msg_free(m);
        return;
    }
    const struct body_changed *b = &m->changed;
    struct told_change c = {.what = b->what,
                            .off = b->offset,
                            .len = b->length,
                            .size = b->size,
                            .bytes = m->head.data_len ? m->data : NULL,
                            .ends = b->ends && b->size,
                            .last = (char)b->last};
    struct msg *r = msg_new(MSG_CHANGED_OK);
    if (c.what != TOLD_DROP)
        follow(b->fid, &c);
    r->changed_ok.left = (uint8_t)look_left_here(b->fid, told_here(b->fid, &c));
    count(changes_heard, 1);
    peer_reply(m, r);
    msg_free(m);
}

/* The next one; NULL: the file's queue is empty, and the file is off the list. */
static struct msg *take(struct told_file *f)
{
    struct msg *m = NULL;
    lock_take(&all.lock);
    struct told_msg *t = f->first;
    if (t) {
        f->first = t->next;
        if (!f->first)
            f->last = &f->first;
        m = t->m;
    } else {
        struct told_file **p = &all.list;
        while (*p != f)
            p = &(*p)->next;
        *p = f->next;
    }
    lock_drop(&all.lock);
    free(t);
    return m;
}

static void work(void *arg)
{
    struct told_file *f = arg;
    struct msg *m;
    while ((m = take(f)))
        end_beliefs(m);
    free(f);
}

/* Lock held. */
static struct told_file *file_of(struct fid fid, bool *made)
{
    struct told_file *f = all.list;
    while (f && !fid_eq(f->fid, fid))
        f = f->next;
    *made = !f;
    if (f)
        return f;
    f = xcalloc(1, sizeof(*f));
    f->fid = fid;
    f->last = &f->first;
    f->next = all.list;
    all.list = f;
    return f;
}

static bool is_sound(const struct msg *m)
{
    const struct body_changed *b = &m->changed;
    return m->head.flags & MSG_F_WANTS && b->what >= TOLD_ATTR && b->what <= TOLD_DROP && b->size <= INT64_MAX &&
           b->offset <= INT64_MAX && b->length <= INT64_MAX - b->offset &&
           (!m->head.data_len || (b->what == TOLD_BYTES && m->head.data_len == b->length));
}

/* Network thread. */
static void on_changed(struct msg *m)
{
    if (!is_sound(m)) {
        peer_refuse(m);
        return;
    }
    bool made;
    struct told_msg *t = xcalloc(1, sizeof(*t));
    t->m = m;
    lock_take(&all.lock);
    struct told_file *f = file_of(m->changed.fid, &made);
    *f->last = t;
    f->last = &t->next;
    lock_drop(&all.lock);
    if (made)
        pool_submit(all.pool, work, f);
}

void told_start(void)
{
    all.pool = pool_new("told", THREADS);
    peer_handle(MSG_CHANGED, on_changed);
}

void told_stop(void)
{
    pool_free(all.pool);
    all.pool = NULL;
}
