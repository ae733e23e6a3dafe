/* prefetch.c - walks the queues' next entries in turn, as far ahead as there is room, and brings what is not here.
 *
 * Up to HANDS jobs of pool_waiters, which run while there is something to do:
 *
 *     what the store is to hear  -->  a queue's next target  -->  look it up  -->  fetch what is missing, piece by piece
 *
 * Each piece waits until no reader waits for a fetch.  The fetches are the readers' own (chunks/fetch.h): a read that meets a
 * chunk on its way waits for that.  They are no activity, so there may be a lull meanwhile.
 */
#include "placement/foresight/prefetch_int.h"

#include <string.h>

#include "placement/foresight/budget.h"
#include "placement/foresight/far.h"
#include "placement/foresight/find_dirs.h"
#include "placement/foresight/hint_files.h"
#include "placement/foresight/shares.h"
#include "placement/foresight/watch.h"
#include "placement/store/store_open.h"
#include "transport/loop.h"

#define HANDS        2

/* With hints_lock. */
static struct {
    unsigned hands;
    struct queue *last; /* the queue whose turn it was; only compared */
    void (*on_news)(void);
} prefetch;

void prefetch_on_news(void (*fn)(void))
{
    lock_take(&hints_lock);
    prefetch.on_news = fn;
    lock_drop(&hints_lock);
}

/* ---- the next target ---- */

/* A look for the next target of a queue. */
struct look {
    struct queue *q;
    const struct room *r;
    uint32_t near_end; /* 0: not found yet */
};

/* Nothing is kept for its hint any more.  If it was admitted, it has its turn again. */
static void give_up(struct target *t)
{
    struct queue *q = t->queue;
    if (t->admitted) {
        count(hints_given_up, 1);
        q->next = MIN(q->next, t->first);
    }
    hints_step(t, LIFE_GIVE_UP);
    hints_unadmit(t);
    hints_tell(t, NEWS_UNKNOWN);
}

/* Bytes of an admitted target that may be given up; or of one that is kept and not admitted.  What is not on the PFS could not
 * leave. */
static uint64_t bytes_ahead(const struct target *t)
{
    return t->admitted && !t->busy && t->life == LIFE_AHEAD ? t->counted : 0;
}

static uint64_t bytes_kept(const struct target *t)
{
    return t->busy ? 0 : t->kept;
}

/* Gives up what the queue has from entry `begin` on, from the farthest on, while bytes are lacking; if not
 * `really`, nothing, and the answer is the same: are there so many? */
static bool give_up_far(struct queue *q, uint32_t begin, uint64_t bytes, uint64_t (*of)(const struct target *t), bool really)
{
    for (uint32_t i = NO_ENTRY; bytes;) {
        i = far_before(q, i);
        if (i == NO_ENTRY || i < begin)
            return false;
        struct target *t = q->target[q->entry[i]];
        uint64_t n = of(t);
        bytes -= MIN(bytes, n);
        if (n && really)
            give_up(t);
    }
    return true;
}

static bool is_near(struct look *l, uint32_t entry)
{
    if (!room_may_be_near(l->q, entry, l->r))
        return false;
    if (!l->near_end)
        l->near_end = room_near_end(l->q, l->r);
    return entry < l->near_end;
}

/* Room of what is admitted: it is there, or made for a near entry. */
static bool takes_of_ahead(struct look *l, const struct target *t, uint32_t entry)
{
    if (room_fits(t, l->r))
        return true;
    uint64_t bytes = room_near_lacks(t, l->r);
    return bytes != UINT64_MAX && is_near(l, entry) && give_up_far(l->q, l->near_end, bytes, bytes_ahead, false) &&
           give_up_far(l->q, l->near_end, bytes, bytes_ahead, true);
}

/* Room of what is kept for entries behind this one. */
static bool takes_of_kept(struct look *l, const struct target *t, uint32_t entry)
{
    uint64_t bytes = room_kept_lacks(t, l->r);
    if (!bytes)
        return true;
    if (room_takes_of_kept(t, entry, l->r) && give_up_far(l->q, entry + 1, bytes, bytes_kept, false))
        return give_up_far(l->q, entry + 1, bytes, bytes_kept, true);
    if (!is_near(l, entry))
        return false;
    give_up_far(l->q, entry + 1, bytes, bytes_kept, true); /* or less: the cache's last eighth has room for it */
    return true;
}

/* There is room for the target, which is this entry's, or is made. */
static bool takes(struct look *l, const struct target *t, uint32_t entry)
{
    return takes_of_ahead(l, t, entry) && (room_takes_of_others(t, entry, l->r) || is_near(l, entry)) &&
           takes_of_kept(l, t, entry);
}

#define PASSED_MAX 64u /* with the lock */

/* Those that have no room yet stay on the list. */
static struct target *next_again(struct look *l)
{
    struct queue *q = l->q;
    unsigned passed = 0;
    for (struct target **at = &q->again, *t; (t = *at) && passed < PASSED_MAX;) {
        bool wanted = t->first != NO_ENTRY && !t->busy;
        if (wanted && !t->admitted && !takes(l, t, t->first)) {
            at = &t->again;
            passed++;
            continue;
        }
        *at = t->again;
        t->listed = false;
        t->redo = t->busy;
        if (wanted)
            return t;
    }
    return NULL;
}

/* Later entries of an admitted target have their turn when its first one is consumed (hints_done). */
static struct target *next_entry(struct look *l)
{
    struct queue *q = l->q;
    for (; q->next < q->n; q->next++) {
        struct target *t = q->target[q->entry[q->next]];
        if (q->done[q->next] & ENTRY_DONE || t->admitted || t->busy || t->reached)
            continue;
        if (!takes(l, t, q->next) && !(q->staged && room_stays_as_it_is(l->r)))
            return NULL;
        q->next++;
        return t;
    }
    return NULL;
}

/* The reader's next one, or one that somebody waits for, has its turn wherever it is on the list. */
static struct target *awaited(struct look *l, uint32_t entry)
{
    const struct queue *q = l->q;
    if (q->staged || entry >= MIN(q->next, q->n) || q->done[entry] & ENTRY_DONE)
        return NULL;
    struct target *t = q->target[q->entry[entry]];
    return !t->admitted && !t->busy && takes(l, t, t->first) ? t : NULL;
}

static struct target *next_of(struct queue *q, const struct room *r)
{
    if (!q->started)
        return NULL;
    q->next = MAX(q->next, q->head);
    struct look l = {.q = q, .r = r};
    struct target *t = awaited(&l, q->head);
    if (!t && q->asked)
        t = awaited(&l, q->asked - 1);
    if (!t)
        t = next_again(&l);
    return t ? t : next_entry(&l);
}

static struct target *next_in_turn(const struct room *r)
{
    struct queue *begin = hints_queues;
    for (struct queue *q = hints_queues; q; q = q->next_queue)
        if (q == prefetch.last && q->next_queue)
            begin = q->next_queue;
    struct target *t = NULL;
    for (struct queue *q = begin; q && !t; q = q->next_queue)
        t = next_of(q, r);
    for (struct queue *q = hints_queues; q && q != begin && !t; q = q->next_queue)
        t = next_of(q, r);
    if (t)
        prefetch.last = t->queue;
    return t;
}

/* ---- the farthest ---- */

/* The farthest target that the queue keeps something for; NULL: there is none.  What is not on the PFS could not leave: to give
 * that up would help nobody. */
static struct target *farthest_of(struct queue *q, bool ahead)
{
    for (uint32_t i = ahead || q->kept || q->staged ? NO_ENTRY : 0; (i = far_before(q, i)) != NO_ENTRY;) {
        struct target *t = q->target[q->entry[i]];
        if (t->life != LIFE_WRITTEN && t->life != LIFE_WRITING && (ahead || !t->admitted))
            return t;
    }
    return NULL;
}

/* Of all queues, or those that keep something for later; with hints_lock. */
static struct target *farthest_of_all(bool ahead, bool kept)
{
    struct target *best = NULL;
    uint64_t distance = 0;
    for (struct queue *q = hints_queues; q; q = q->next_queue) {
        struct target *t = q->kept || !kept ? farthest_of(q, ahead) : NULL;
        uint64_t d = t ? hints_distance(q, t->first) : 0;
        if (t && (!best || d > distance)) {
            best = t;
            distance = d;
        }
    }
    return best;
}

#define TRIM_AT_ONCE 64u

static unsigned trim_some(const struct room *r)
{
    unsigned n = 0;
    lock_take(&hints_lock);
    for (struct target *t; n < TRIM_AT_ONCE && room_is_exceeded(r) && (t = farthest_of_all(false, true)); n++)
        give_up(t);
    lock_drop(&hints_lock);
    return n;
}

/* An eighth of the cache stays for what is not hinted. */
static void trim(const struct room *r)
{
    while (trim_some(r) == TRIM_AT_ONCE)
        prefetch_tell_store();
}

/* ---- the hands ---- */

static void say_news(void)
{
    if (prefetch.on_news)
        prefetch.on_news();
}

static void hand(void *arg);

/* False: there is nothing to do now; the hand is not counted any more.  Else another one looks whether there is more. */
static bool do_next(void)
{
    struct room r = room_now();
    trim(&r);
    prefetch_tell_store();
    lock_take(&hints_lock);
    room_share(&r);
    struct target *t = prefetch_full ? NULL : next_in_turn(&r);
    bool soon = t && budget_begins(t);
    if (t) {
        t->busy = true;
        t->queue->busy++;
    } else {
        prefetch.hands--;
    }
    bool more = t && prefetch.hands < HANDS;
    prefetch.hands += more;
    lock_drop(&hints_lock);
    if (!t && !hints_now)
        find_dirs_end();
    if (!t)
        return false;
    if (more)
        pool_submit(pool_waiters, hand, NULL);
    prefetch_target(t, r.largest);
    lock_take(&hints_lock);
    t->busy = false;
    if (t->reached)
        prefetch_full = false; /* another one may have waited for its room */
    if (t->redo && !t->queue->ended)
        hints_again(t);
    t->redo = false;
    struct queue *q = t->queue;
    if (t->first != NO_ENTRY && !t->admitted && !t->reached)
        q->next = MIN(q->next, t->first); /* given up meanwhile: the other hand may have passed it */
    void (*answer)(struct bringing *b) = q->answer;
    struct bringing *brought = q->nreached == q->ntargets ? q->bringing : NULL;
    if (brought)
        q->bringing = NULL;
    hints_queue_left(q);
    say_news();
    lock_drop(&hints_lock);
    watch_go();
    budget_ends(soon);
    if (brought)
        answer(brought);
    return true;
}

static void hand(void *arg)
{
    (void)arg;
    while (do_next())
        ;
}

void prefetch_wake(void)
{
    lock_take(&hints_lock);
    prefetch_full = false;
    bool more = prefetch.hands < HANDS;
    prefetch.hands += more;
    say_news();
    lock_drop(&hints_lock);
    watch_go();
    if (more)
        pool_submit(pool_waiters, hand, NULL);
}

/* ---- what is kept, and given up ---- */

void prefetch_keep(struct target *t, uint64_t limit)
{
    struct queue *q = t->queue;
    if (t->first == NO_ENTRY || hints_before(q, t->first) > limit)
        return;
    hints_tell(t, NEWS_HINTED);
}

/* What was read already, and is read again later than all else, leaves before what a stage has brought. */
static struct target *farthest_read(bool ahead)
{
    (void)ahead; /* it is not admitted */
    struct target *t = farthest_of_all(false, true);
    return t && t->life == LIFE_CONSUMED ? t : NULL;
}

static struct target *farthest(bool ahead)
{
    return farthest_of_all(ahead, false);
}

static bool give_up_one(struct target *(*choose)(bool ahead), bool ahead)
{
    lock_take(&hints_lock);
    struct target *t = choose(ahead);
    if (t) {
        bool admitted = t->admitted;
        give_up(t);
        if (admitted)
            room_given_up();
    }
    lock_drop(&hints_lock);
    prefetch_tell_store();
    return t;
}

bool prefetch_give_up(bool ahead)
{
    return give_up_one(farthest_read, ahead) || shares_give_up() || give_up_one(farthest, ahead);
}
