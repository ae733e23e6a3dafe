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

/* Does the store keep something for this entry, as the next one of its target? */
static bool is_kept(const struct queue *q, uint32_t i)
{
    const struct target *t = q->target[q->entry[i]];
    return t->first == i && t->hinted;
}

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

/* Gives up what the queue keeps behind its near entries, from the farthest on, while bytes are lacking; if not
 * `really`, nothing, and the answer is the same: are there so many?  What is not on the PFS could not leave. */
static bool give_up_far(struct queue *q, uint32_t near_end, uint64_t bytes, bool really)
{
    for (uint32_t i = q->far; bytes && i > near_end; i--) {
        struct target *t = q->target[q->entry[i - 1]];
        if (!is_kept(q, i - 1) || !t->admitted || t->busy || t->life != LIFE_AHEAD)
            continue;
        bytes -= MIN(bytes, t->counted);
        if (really)
            give_up(t);
    }
    return !bytes;
}

/* There is room for the target, which is this entry's, or is made. */
static bool takes(struct target *t, uint32_t entry, const struct room *r)
{
    if (room_fits(t, r))
        return true;
    uint64_t bytes = room_near_lacks(t, r);
    uint32_t near_end = bytes == UINT64_MAX ? 0 : room_near_end(t->queue, r);
    return entry < near_end && give_up_far(t->queue, near_end, bytes, false) && give_up_far(t->queue, near_end, bytes, true);
}

static struct target *next_again(struct queue *q, const struct room *r)
{
    struct target *t;
    while ((t = q->again)) {
        bool wanted = t->first != NO_ENTRY && !t->busy;
        if (wanted && !t->admitted && !takes(t, t->first, r))
            return NULL;
        q->again = t->again;
        t->listed = false;
        t->redo = t->busy;
        if (wanted)
            return t;
    }
    return NULL;
}

/* Later entries of an admitted target have their turn when its first one is consumed (hints_done). */
static struct target *next_entry(struct queue *q, const struct room *r)
{
    for (; q->next < q->n; q->next++) {
        struct target *t = q->target[q->entry[q->next]];
        if (q->done[q->next] & ENTRY_DONE || t->admitted || t->busy || t->reached)
            continue;
        if (!takes(t, q->next, r) && !(q->staged && room_stays_as_it_is(r)))
            return NULL;
        q->next++;
        return t;
    }
    return NULL;
}

static struct target *next_of(struct queue *q, const struct room *r)
{
    if (!q->started)
        return NULL;
    q->next = MAX(q->next, q->head);
    struct target *t = next_again(q, r);
    return t ? t : next_entry(q, r);
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
    prefetch_tell_store();
    struct room r = room_now();
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
    q->far = MAX(q->far, t->first + 1);
    hints_tell(t, NEWS_HINTED);
}

/* The farthest target that the queue keeps something for; NULL: there is none.  What is not on the PFS could not leave: to give
 * that up would help nobody. */
static struct target *farthest_of(struct queue *q, bool ahead)
{
    while (q->far > q->head && !is_kept(q, q->far - 1))
        q->far--;
    for (uint32_t i = q->far; i > q->head; i--) {
        struct target *t = q->target[q->entry[i - 1]];
        if (!is_kept(q, i - 1) || t->life == LIFE_WRITTEN || t->life == LIFE_WRITING)
            continue;
        return t->admitted && !ahead ? NULL : t;
    }
    return NULL;
}

/* Of all queues; with hints_lock. */
static struct target *farthest_of_all(bool ahead)
{
    struct target *best = NULL;
    uint64_t distance = 0;
    for (struct queue *q = hints_queues; q; q = q->next_queue) {
        struct target *t = farthest_of(q, ahead);
        uint64_t d = t ? hints_distance(q, t->first) : 0;
        if (t && (!best || d > distance)) {
            best = t;
            distance = d;
        }
    }
    return best;
}

bool prefetch_give_up(bool ahead)
{
    if (shares_give_up())
        return true;
    lock_take(&hints_lock);
    struct target *t = farthest_of_all(ahead);
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
