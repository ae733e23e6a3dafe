/* gate.c - what a run passes before each piece that it writes: it goes on, waits for its turn, or ends.
 *
 * flush.busy counts runs that nobody asked for and that write now, flush.syncing those of them that have written all
 * and wait for the PFS; waiting_jobs and urgent_jobs the threads of the two pools.
 */
#include "flush/gate.h"

#include <errno.h>

#include "flush/flush_int.h"
#include "flush/lull.h"
#include "placement/borrow.h"
#include "placement/borrow_flush.h"
#include "placement/claims/claim_forget.h"
#include "placement/foresight/budget.h"
#include "placement/store/store_open.h"

/* ---- may it be written now? ---- */

static enum flush_policy policy_of(const struct flush_item *it)
{
    return (enum flush_policy)(queue_ready(it) - flush.ready);
}

enum flush_why gate_decide(const struct flush_item *it, uint64_t now, uint64_t *wait_ms)
{
    uint64_t age = flush.config.dirty_age_ms;
    struct situation s = {
        .policy = policy_of(it),
        .asked = it->urgent || flush.urgent_all,
        .retry_ms = it->retry_at_ms > now ? it->retry_at_ms - now : 0,
        .level = room_level(),
        .lull_ms = lull_due_ms(),
        .dirty_ms = now - MIN(now, it->dirty_since_ms),
        .most_dirty_ms = age ? age : NEVER,
    };
    return flush_decide(&s, wait_ms);
}

/* Lock held. */
static void leave_slot(struct gate *g)
{
    *(g->ending ? &flush.syncing : &flush.busy) -= g->slot;
    g->slot = false;
}

/* Lock held.  At most --flush-writers write at a time, beside those that somebody waits for and
 * those that end. */
static bool take_slot(struct gate *g)
{
    if (g->slot)
        return true;
    unsigned *taken = g->ending ? &flush.syncing : &flush.busy;
    if (!g->ending && *taken >= flush.config.writers)
        return false;
    ++*taken;
    return g->slot = true;
}

/* Lock held: takes the run's turn for len bytes; returns its time, boot_ns. */
static uint64_t take_turn(enum flush_why why, uint64_t len)
{
    uint64_t now = boot_ns(), turn = now;
    if (flush.config.limit)
        turn = limit_turn(&flush.limit, (double)flush.config.limit, len, now, NEVER - now);
    if (why == WHY_DRAIN) {
        uint64_t dirty, room;
        store_dirty(&dirty, &room);
        double rate = marks_drain_rate(&flush.marks, dirty, room);
        turn = MAX(turn, limit_turn(&flush.drain, rate, len, now, NEVER - now));
    }
    return turn;
}

struct turn {
    bool taken;
    uint64_t at_ns;
};

/* Lock held.  0: the piece may be written; else ms to wait; NEVER: until a ring. */
static uint64_t look(struct gate *g, struct turn *t, uint64_t len)
{
    uint64_t wait;
    enum flush_why why = g->mode == RUN_ASKED ? WHY_ASKED : gate_decide(item_of(g->f), boot_ms(), &wait);
    g->idle = why == WHY_LULL;
    if (why == WHY_NOT && g->mode == RUN_YIELDS)
        why = WHY_DRAIN; /* to the end of the batch, no faster than necessary */
    if (why == WHY_LULL && budget_is_soon()) { /* until a ring: budget_on_calm */
        why = WHY_NOT;
        wait = NEVER;
    }
    if (why == WHY_NOT) {
        leave_slot(g);
        return wait;
    }
    if ((why != WHY_ASKED || g->ending) && !take_slot(g))
        return NEVER;
    if (!t->taken)
        *t = (struct turn){true, take_turn(why, len)};
    uint64_t now = boot_ns();
    return t->at_ns > now ? (t->at_ns - now + 999999) / 1000000 : 0;
}

/* ---- slots and threads ---- */

/* The lock is held: counts it among the runs that write no more. */
static void leave_writers(struct gate *g)
{
    leave_slot(g);
    if (g->mode == RUN_WAITS)
        flush.waiting_jobs--;
    else
        flush.urgent_jobs--;
}

/* As many runs may be ending as may write: more would only wait for the PFS, with their bytes
 * in its servers' memory. */
void gate_ends(struct gate *g)
{
    lock_take(&flush.lock);
    if (flush.ending < flush.config.writers) {
        leave_writers(g);
        g->ending = g->slot = true;
        flush.ending++;
        flush.syncing++;
    }
    lock_drop(&flush.lock);
    if (g->ending)
        bell_ring();
}

void gate_leave(struct gate *g)
{
    if (g->ending) {
        leave_slot(g);
        flush.ending--;
    } else {
        leave_writers(g);
    }
}

/* ---- the gate ---- */

int gate_wait(struct gate *g, uint64_t len)
{
    struct turn turn = {false, 0};
    for (;;) {
        uint64_t seen = bell_seen();
        lock_take(&flush.lock);
        bool stop = flush.stop, had = g->slot;
        uint64_t wait = stop ? 0 : look(g, &turn, len);
        bool left = had && !g->slot;
        lock_drop(&flush.lock);
        if (stop)
            return -ECANCELED;
        if (!wait)
            return fid_is_loan(g->f->fid) ? borrow_may_flush(g->f) : claim_may_flush(g->f);
        if (left) { /* another run may write; this ring is not for us */
            bell_ring();
            seen++;
        }
        bell_wait(seen, wait == NEVER ? 0 : wait);
    }
}

int gate_goes_on(struct gate *g)
{
    uint64_t wait;
    if (g->mode != RUN_YIELDS)
        return 0;
    lock_take(&flush.lock);
    bool goes_on = gate_decide(item_of(g->f), boot_ms(), &wait) != WHY_NOT;
    lock_drop(&flush.lock);
    return goes_on ? 0 : -ECANCELED;
}
