/* look_break.c - BREAK: a home says that a file is about to change, and what this node believes of it ends.
 *
 *     BREAK (network thread) --> pool: answers under way end (look_break), fn --> BROKEN
 *
 * The home waits for BROKEN before it grants a claim, so it hears WORKING meanwhile.  A BREAK that comes again
 * takes the place of the one before, and is answered by the same call of fn.  One of a later grant that comes
 * while fn runs is done after it: what this node has found since fn began must end, too.
 *
 * Of all open files it ends without a BREAK, by several threads, when this node has not been told of changes or
 * may not be any more (look_end_all).
 */
#include "placement/claims/look.h"
#include "placement/claims/look_int.h"

#include "placement/ring/ring.h"
#include "transport/lock.h"
#include "transport/loop.h"
#include "transport/members.h"
#include "transport/peer.h"

#include <errno.h>
#include <stdlib.h>

#define THREADS    16
#define BREAKS_MAX 65536 /* under way; the home asks again */
#define BUCKETS    1024

struct breaking {
    struct breaking *next; /* in its bucket */
    struct fid fid;
    struct msg *m;     /* to be answered; NULL: none */
    struct msg *later; /* of another grant, for when this one has been answered; or NULL */
    bool begun;
};

static struct {
    struct lock lock;     /* RANK_POOL: WORKING is said under it */
    pthread_cond_t ended; /* one of them */
    struct breaking *table[BUCKETS];
    unsigned n;
} breaks = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_POOL},
            .ended = PTHREAD_COND_INITIALIZER};

/* An ending waits for BREAKs that have come, so it may take no thread from them. */
static struct pool *pool, *endings;
static const struct pool_kind pools[] = {{&endings, "eddy-endings", THREADS}, {&pool, "eddy-breaks", THREADS}};
static struct loop_timer *timer;

/* What fs registered, and how many calls of it are under way. */
static struct {
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t none;
    unsigned (*fn)(struct fid fid);
    unsigned calls;
} ends = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF},
          .none = PTHREAD_COND_INITIALIZER};

void look_on_break(unsigned (*fn)(struct fid fid))
{
    lock_take(&ends.lock);
    ends.fn = fn;
    while (!fn && ends.calls)
        lock_wait(&ends.lock, &ends.none, 0);
    lock_drop(&ends.lock);
}

/* Answers what is left. */
static unsigned end_beliefs(struct fid fid)
{
    look_break(fid);
    lock_take(&ends.lock);
    unsigned (*fn)(struct fid fid) = ends.fn;
    ends.calls += fn != NULL;
    lock_drop(&ends.lock);
    if (!fn)
        return 0;
    unsigned left = fn(fid);
    lock_take(&ends.lock);
    if (!--ends.calls)
        pthread_cond_broadcast(&ends.none);
    lock_drop(&ends.lock);
    return left;
}

static struct breaking **place_of(struct fid fid)
{
    struct breaking **b = &breaks.table[fid.lo & (BUCKETS - 1)];
    while (*b && !fid_eq((*b)->fid, fid))
        b = &(*b)->next;
    return b;
}

/* ---- in the pool ---- */

static void answer(struct msg *m, unsigned left)
{
    if (!m)
        return;
    struct msg *r = msg_new(MSG_BROKEN);
    r->broken.left = (uint8_t)left;
    r->broken.look_number = look_number();
    peer_reply(m, r);
    msg_free(m);
}

static void begin(struct breaking *b)
{
    lock_take(&breaks.lock);
    b->begun = true;
    lock_drop(&breaks.lock);
}

/* The message to be answered now.  *more: there is another one; else b is gone. */
static struct msg *end(struct breaking *b, bool *more)
{
    lock_take(&breaks.lock);
    struct msg *m = b->m;
    *more = b->later;
    b->m = b->later;
    b->later = NULL;
    b->begun = false;
    if (!*more) {
        *place_of(b->fid) = b->next;
        breaks.n--;
        free(b);
        pthread_cond_broadcast(&breaks.ended);
    }
    lock_drop(&breaks.lock);
    return m;
}

static void do_break(void *arg)
{
    struct breaking *b = arg;
    bool more = true;
    while (more) {
        begin(b);
        unsigned left = look_left_here(b->fid, end_beliefs(b->fid));
        answer(end(b, &more), left);
    }
}

/* ---- all open files ---- */

#define SLICES 8

struct ending {
    struct item_fid_item *v;
    uint32_t n;
    _Atomic uint32_t at; /* the next file */
    unsigned slices;     /* that run; breaks.lock */
    bool waited;         /* a thread waits for it, and frees it */
};

/* One file, as if a BREAK had come that nobody waits for. */
static void end_one(struct fid fid)
{
    struct breaking *b = xcalloc(1, sizeof(*b));
    b->fid = fid;
    lock_take(&breaks.lock);
    while (*place_of(fid))
        lock_wait(&breaks.lock, &breaks.ended, 0);
    *place_of(fid) = b;
    breaks.n++;
    lock_drop(&breaks.lock);
    do_break(b);
}

static void ending_free(struct ending *e)
{
    free(e->v);
    free(e);
}

static void end_some(void *arg)
{
    struct ending *e = arg;
    uint32_t i;
    while ((i = e->at++) < e->n)
        end_one(e->v[i].fid);
    lock_take(&breaks.lock);
    bool last = !--e->slices;
    bool waited = e->waited;
    pthread_cond_broadcast(&breaks.ended);
    lock_drop(&breaks.lock);
    if (last && !waited)
        ending_free(e);
}

void look_end_all(bool wait)
{
    struct ending *e = xcalloc(1, sizeof(*e));
    look_list(false, &e->n, &e->v);
    e->slices = MIN(e->n, SLICES);
    bool stays = e->waited = wait || !e->n;
    for (unsigned i = 0, n = e->slices; i < n; i++)
        pool_submit(endings, end_some, e);
    if (!stays) /* it may be gone */
        return;
    lock_take(&breaks.lock);
    while (e->slices)
        lock_wait(&breaks.lock, &breaks.ended, 0);
    lock_drop(&breaks.lock);
    ending_free(e);
}

/* ---- in the network thread ---- */

static void refuse(struct msg *m)
{
    if (!m)
        return;
    peer_reply_error(m, -E_ASK_AGAIN);
    msg_free(m);
}

static bool is_same_grant(const struct msg *a, const struct msg *b)
{
    return a->head.view == b->head.view && a->brk.grant == b->brk.grant;
}

/* With the lock: a BREAK of this file is under way.  Answers the message that is not needed any more. */
static struct msg *take_place(struct breaking *b, struct msg *m)
{
    bool joins = !b->begun || (b->m && is_same_grant(b->m, m));
    struct msg **place = joins ? &b->m : &b->later, *old = *place;
    *place = m;
    return old;
}

static void take_break(struct msg *m)
{
    struct msg *old = NULL;
    struct breaking *made = NULL;
    lock_take(&breaks.lock);
    struct breaking **b = place_of(m->brk.fid);
    if (*b) {
        old = take_place(*b, m);
    } else if (breaks.n == BREAKS_MAX) {
        old = m;
    } else {
        *b = made = xcalloc(1, sizeof(*made));
        made->fid = m->brk.fid;
        made->m = m;
        breaks.n++;
    }
    lock_drop(&breaks.lock);
    refuse(old);
    if (made)
        pool_submit(pool, do_break, made);
}

/* Only of the home that this node knows, in the view that it has adopted. */
static void handle_break(struct msg *m)
{
    const struct view *v = members_view();
    if (!v || m->head.view != v->number || !view_has(v, m->head.sender, m->head.incarnation) ||
        view_home(v, m->brk.fid) != m->head.sender) {
        refuse(m);
        return;
    }
    count(breaks_received, 1);
    take_break(m);
}

static void tick(void *arg)
{
    (void)arg;
    lock_take(&breaks.lock);
    for (unsigned i = 0; i < BUCKETS && breaks.n; i++) {
        for (const struct breaking *b = breaks.table[i]; b; b = b->next) {
            if (b->m)
                peer_working(b->m);
            if (b->later)
                peer_working(b->later);
        }
    }
    lock_drop(&breaks.lock);
}

/* ---- start, end ---- */

static void start_here(void *arg)
{
    (void)arg;
    look_leave_start();
    timer = loop_timer_new(tick, NULL);
    loop_timer_set(timer, T_PING, T_PING);
}

static void stop_here(void *arg)
{
    (void)arg;
    look_leave_stop();
    loop_timer_free(timer);
    timer = NULL;
}

void look_told_start(void)
{
    pools_new(pools, ARRAY_LEN(pools));
    loop_call(start_here, NULL);
    peer_handle(MSG_BREAK, handle_break);
}

void look_told_stop(void)
{
    loop_call(stop_here, NULL);
    pools_free(pools, ARRAY_LEN(pools));
}
