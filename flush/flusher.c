/* flusher.c - the flusher: a thread that begins runs when they may begin; its start and its end.
 *
 * It sleeps without a time-out when there is nothing to do, else until something may begin.
 */
#include "flush/flush.h"
#include "flush/flush_int.h"
#include "flush/lull.h"
#include "flush/names.h"
#include "flush/queue.h"
#include "flush/retry.h"
#include "flush/run.h"
#include "placement/store/kernel_io.h"
#include "placement/store/store_open.h"
#include "transport/loop.h"

/* Lock held.  A run that waits for a lull occupies its thread; others use the urgent pool's threads. */
static bool has_thread(enum run_mode m)
{
    if (m == RUN_WAITS)
        return flush.waiting_jobs < flush.config.writers && flush.busy < flush.config.writers;
    if (m == RUN_YIELDS && flush.busy >= flush.config.writers)
        return false;
    return flush.urgent_jobs < flush.config.writers;
}

/* Lock held.  The oldest of the first files of each policy that may be written now, and for which
 * there is a thread; NULL: *wait_ms until there may be one. */
static struct flush_item *next_file(enum run_mode *mode, uint64_t *wait_ms)
{
    struct flush_item *best = NULL;
    uint64_t now = boot_ms(), wait;
    *wait_ms = NEVER;
    for (unsigned p = 0; p < FLUSH_POLICIES; p++) {
        struct flush_item *it = flush.ready[p].first;
        if (!it)
            continue;
        enum flush_why why = gate_decide(it, now, &wait);
        enum run_mode m = why == WHY_ASKED  ? RUN_ASKED
                           : why == WHY_LULL ? RUN_WAITS
                                             : RUN_YIELDS;
        if (why == WHY_NOT) {
            *wait_ms = MIN(*wait_ms, wait);
        } else if (has_thread(m) && (!best || it->seq < best->seq)) {
            best = order_first(&flush.ready[p], why);
            *mode = m;
        }
    }
    return best;
}

/* Lock held: begins what may begin now.  Returns ms until there may be more to do, NEVER: only
 * after a ring. */
static uint64_t work(void)
{
    uint64_t now = boot_ms(), wait;
    enum run_mode mode;
    struct flush_item *it;
    retry_due(false, now);
    while ((it = next_file(&mode, &wait)))
        run_start(it, mode);
    uint64_t retry = retry_next_ms();
    return MIN(wait, retry == NEVER ? NEVER : retry - MIN(now, retry));
}

static void *flusher(void *arg)
{
    (void)arg;
    for (;;) {
        uint64_t seen = bell_seen();
        lock_take(&flush.lock);
        bool stop = flush.stop;
        uint64_t wait = stop ? 0 : work();
        lock_drop(&flush.lock);
        if (stop)
            return NULL;
        uint64_t list = names_due_ms(boot_ms());
        if (!list) {
            names_write_soon();
            continue;
        }
        wait = MIN(wait, list);
        bell_wait(seen, wait == NEVER ? 0 : MAX(wait, (uint64_t)1));
    }
}

static void set_up(const struct flush_config *c)
{
    if (!flush.started) {
        lock_init(&flush.lock, RANK_POLICY);
        lock_cond_init(&flush.ended);
        for (unsigned p = 0; p < FLUSH_POLICIES; p++)
            queue_init(&flush.ready[p]);
        queue_init(&flush.running);
        queue_init(&flush.failed);
        flush.started = true;
    }
    flush.config = *c;
    flush.config.writers = MAX(c->writers, 1u);
    flush.config.dirty_high = c->dirty_high ? c->dirty_high : 60;
    flush.config.dirty_low = c->dirty_low ? c->dirty_low : MIN(40u, flush.config.dirty_high - 1);
    flush.marks = (struct marks){.high = flush.config.dirty_high, .low = flush.config.dirty_low};
    flush.limit = flush.drain = (struct limit){0};
    flush.next_retry_ms = NEVER;
    flush.stop = false;
    flush.urgent_all = flush.waiting_jobs = flush.urgent_jobs = flush.busy = 0;
    flush.ending = flush.syncing = 0;
}

int flush_start(const struct flush_config *c)
{
    set_up(c);
    int threads = 2 * (int)flush.config.writers; /* a run that ends still occupies its thread */
    flush.waiting_pool = pool_new("eddy-flush", threads);
    flush.urgent_pool = pool_new("eddy-flush-now", threads);
    if (c->wait_auto)
        lull_learn(c->wait_ms);
    else
        lull_set_wait(c->wait_ms);
    names_start();
    store_dirty_high(flush.config.dirty_high);
    int err = -pthread_create(&flush.flusher, NULL, flusher, NULL);
    return err ? err : sample_start();
}

static void drop_list(struct item_list *l)
{
    struct flush_item *it;
    lock_take(&flush.lock);
    while ((it = l->first)) {
        queue_remove(it);
        it->queued = false;
        lock_drop(&flush.lock);
        file_put(it->f);
        lock_take(&flush.lock);
    }
    lock_drop(&flush.lock);
}

static void drop_lists(void)
{
    for (unsigned p = 0; p < FLUSH_POLICIES; p++)
        drop_list(&flush.ready[p]);
    drop_list(&flush.failed);
}

/* Runs end after their current piece.  Dirty files stay dirty, and are named in the session
 * directory. */
void flush_stop(void)
{
    sample_stop();
    lock_take(&flush.lock);
    flush.stop = true;
    pthread_cond_broadcast(&flush.ended);
    lock_drop(&flush.lock);
    bell_ring();
    pthread_join(flush.flusher, NULL);
    pool_free(flush.waiting_pool);
    pool_free(flush.urgent_pool);
    kernel_io_forget();
    names_write_now();
    drop_lists();
}
