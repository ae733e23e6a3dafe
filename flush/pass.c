/* pass.c - one run of one file: it begins, goes on or waits before each piece, and ends.
 *
 * A run has a thread of a pool of writers.  Urgent runs (fsync to the PFS, `eddy flush`,
 * unmount, room for writers) do not need a lull.  They have a pool of their own, because runs that wait
 * in the middle of a file for the next lull occupy their threads.
 */

#include "flush/copyout.h"
#include "flush/flush_events.h"
#include "flush/flush_int.h"
#include "flush/lull.h"
#include "flush/pass.h"
#include "flush/queue.h"
#include "flush/retry.h"
#include "placement/claims/claim_forget.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "transport/loop.h"

#include <errno.h>
#include <stdlib.h>

void pass_progress(uint64_t bytes, bool idle)
{
    count(flushed_bytes, bytes);
    if (idle)
        count(flushed_lull_bytes, bytes);
    lock_take(&flush.lock);
    flush.progress++;
    pthread_cond_broadcast(&flush.ended);
    lock_drop(&flush.lock);
}

/* ---- the callback after a flush ---- */

void flush_on_copied(flush_copied_fn fn)
{
    lock_take(&flush.lock);
    flush.on_copied = fn;
    while (!fn && flush.telling)
        lock_wait(&flush.lock, &flush.ended, 0);
    lock_drop(&flush.lock);
}

void pass_copied(struct file *f, const struct statx *stx, uint64_t looked_ms)
{
    lock_take(&flush.lock);
    flush_copied_fn fn = flush.on_copied;
    flush.telling += fn != NULL;
    lock_drop(&flush.lock);
    if (!fn)
        return;
    fn(f, stx, looked_ms);
    lock_take(&flush.lock);
    flush.telling--;
    pthread_cond_broadcast(&flush.ended);
    lock_drop(&flush.lock);
}

/* ---- a run ends ---- */

/* Takes it off the lists.  The sampler looks once more, because nothing reports what the kernel's writers
 * change. */
static void settle_clean(struct file *f)
{
    flush_list_changed();
    struct file_info info;
    store_info(f, &info);
    if (info.dirty)
        queue_add(f);
    file_put(f);
}

struct job {
    struct pass_gate gate;
};

/* The lock is held.  The item goes where it belongs now; true: it is clean, and the list's reference is
 * the caller's. */
static bool end_pass(struct flush_item *it, int err, bool clean, bool *is_news)
{
    bool again = it->again, waits = retry_is_wait(it, err);
    *is_news = false;
    it->runs = it->again = false;
    it->ended = it->begun;
    queue_remove(it);
    pthread_cond_broadcast(&flush.ended);
    if (err == -ECANCELED || (waits && again)) {
        queue_insert(queue_ready(it), it);
        return false;
    }
    if (err) {
        if (waits)
            retry_waited(it, boot_ms());
        else
            *is_news = retry_failed(it, err, boot_ms());
        flush.next_retry_ms = MIN(flush.next_retry_ms, it->retry_at_ms);
        queue_append(&flush.failed, it);
        return false;
    }
    retry_succeeded(it);
    flush.progress++;
    if (clean && !it->dirtied) {
        it->queued = false;
        return true;
    }
    it->dirty_since_ms = it->began_ms; /* what was dirty then is on the PFS */
    if (!again) /* a caller came during this run, and waits for a whole one: f keeps its place */
        it->seq = ++flush.seq;
    queue_insert(queue_ready(it), it);
    return false;
}

/* The lock is held. */
static void leave_slot(struct pass_gate *g)
{
    *(g->ending ? &flush.syncing : &flush.busy) -= g->slot;
    g->slot = false;
}

/* The lock is held: counts it among the runs that write no more. */
static void leave_writers(struct pass_gate *g)
{
    leave_slot(g);
    if (g->mode == PASS_WAITS)
        flush.waiting_jobs--;
    else
        flush.urgent_jobs--;
}

/* As many runs may be ending as may write: more would only wait for the PFS, with their bytes
 * in its servers' memory. */
void pass_ends(struct pass_gate *g)
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

/* The lock is held. */
static void leave_all(struct pass_gate *g)
{
    if (g->ending) {
        leave_slot(g);
        flush.ending--;
    } else {
        leave_writers(g);
    }
}

static void run_job(void *arg)
{
    struct job *j = arg;
    struct file *f = file_ref(j->gate.f);
    bool clean, is_news;
    int err = copyout_file(&j->gate, &clean);
    lock_take(&flush.lock);
    bool done = end_pass(item_of(f), err, clean, &is_news);
    leave_all(&j->gate);
    lock_drop(&flush.lock);
    if (is_news)
        retry_log(f, err);
    if (done)
        settle_clean(f);
    file_put(f);
    free(j);
    bell_ring();
}

void pass_start(struct flush_item *it, enum pass_mode mode)
{
    queue_remove(it);
    queue_append(&flush.running, it);
    it->runs = true;
    it->dirtied = false;
    it->begun++;
    it->began_ms = boot_ms();
    struct job *j = xmalloc(sizeof(*j));
    *j = (struct job){{.f = it->f, .mode = mode}};
    if (mode == PASS_WAITS)
        flush.waiting_jobs++;
    else
        flush.urgent_jobs++;
    pool_submit(mode == PASS_WAITS ? flush.waiting_pool : flush.urgent_pool, run_job, j);
}

/* ---- may it go on? ---- */

static enum flush_policy policy_of(const struct flush_item *it)
{
    return (enum flush_policy)(queue_ready(it) - flush.ready);
}

enum flush_why pass_decide(const struct flush_item *it, uint64_t now, uint64_t *wait_ms)
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

/* Lock held.  At most --flush-writers write at a time, beside those that somebody waits for and
 * those that end. */
static bool take_slot(struct pass_gate *g)
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
static uint64_t look(struct pass_gate *g, struct turn *t, uint64_t len)
{
    uint64_t wait;
    enum flush_why why = g->mode == PASS_ASKED ? WHY_ASKED : pass_decide(item_of(g->f), boot_ms(), &wait);
    g->idle = why == WHY_LULL;
    if (why == WHY_NOT && g->mode == PASS_YIELDS)
        why = WHY_DRAIN; /* to the end of the batch, no faster than necessary */
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

int pass_gate(struct pass_gate *g, uint64_t len)
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
            return claim_may_flush(g->f);
        if (left) { /* another run may write; this ring is not for us */
            bell_ring();
            seen++;
        }
        bell_wait(seen, wait == NEVER ? 0 : wait);
    }
}

int pass_goes_on(struct pass_gate *g)
{
    uint64_t wait;
    if (g->mode != PASS_YIELDS)
        return 0;
    lock_take(&flush.lock);
    bool goes_on = pass_decide(item_of(g->f), boot_ms(), &wait) != WHY_NOT;
    lock_drop(&flush.lock);
    return goes_on ? 0 : -ECANCELED;
}
