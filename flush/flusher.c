/* flusher.c - the flusher: a thread that begins passes when they may begin, its start and its end.
 *
 * It sleeps without a time-out when there is nothing to do, and else until the lull may begin.
 */
#include "flush/flush_int.h"

#include "placement/carry.h"
#include "placement/data.h"
#include "placement/store.h"
#include "transport/loop.h"

#include <errno.h>
#include <string.h>

int flush_policy_parse(const char *name, enum flush_policy *out)
{
    if (strcmp(name, "idle") != 0)
        return -EINVAL;
    *out = FLUSH_IDLE;
    return 0;
}

/* Lock held: begins what may begin now.  Returns ms until there may be more to do, UINT64_MAX: only
 * after a ring. */
static uint64_t work(void)
{
    uint64_t now = boot_ms();
    if (flush.urgent_all) {
        while (flush.ready.first && flush.urgent_jobs < flush.writers)
            pass_start(flush.ready.first, true);
        return UINT64_MAX;
    }
    retry_due(false, now);
    uint64_t retry = flush.next_retry_ms == UINT64_MAX
                         ? UINT64_MAX
                         : flush.next_retry_ms - MIN(now, flush.next_retry_ms);
    while (flush.ready.first && flush.jobs < flush.writers) {
        uint64_t due = lull_due_ms();
        if (due)
            return MIN(due, retry);
        pass_start(flush.ready.first, false);
    }
    return retry;
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
        bell_wait(seen, wait == UINT64_MAX ? 0 : MAX(wait, (uint64_t)1));
    }
}

int flush_start(const struct flush_config *c)
{
    if (!flush.started) {
        lock_init(&flush.lock, RANK_POLICY);
        lock_cond_init(&flush.ended);
        queue_init(&flush.ready);
        queue_init(&flush.running);
        queue_init(&flush.failed);
        flush.started = true;
    }
    flush.next_retry_ms = UINT64_MAX;
    flush.writers = c->writers ? c->writers : 1;
    flush.stop = false;
    flush.urgent_all = flush.jobs = flush.urgent_jobs = 0;
    flush.lull_pool = pool_new("eddy-flush", (int)flush.writers);
    flush.urgent_pool = pool_new("eddy-flush-now", (int)flush.writers);
    lull_set_wait(c->wait_ms);
    names_start();
    int err = -pthread_create(&flush.flusher, NULL, flusher, NULL);
    if (!err)
        err = sample_start();
    if (err)
        return err;
    store_on_dirty(queue_add);
    data_on_need(flush_make_room);
    carry_on_need(flush_make_room, flush_file);
    carry_on_activity(lull_begin, lull_end);
    return 0;
}

static void drop_lists(void)
{
    struct file_list *lists[] = {&flush.ready, &flush.failed};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        lock_take(&flush.lock);
        struct file *f;
        while ((f = lists[i]->first)) {
            queue_remove(f);
            f->flush_queued = false;
            lock_drop(&flush.lock);
            file_put(f);
            lock_take(&flush.lock);
        }
        lock_drop(&flush.lock);
    }
}

/* Passes end after the piece that they are at; what is dirty stays so, named in the session
 * directory. */
void flush_stop(void)
{
    store_on_dirty(NULL);
    sample_stop();
    lock_take(&flush.lock);
    flush.stop = true;
    pthread_cond_broadcast(&flush.ended);
    lock_drop(&flush.lock);
    bell_ring();
    pthread_join(flush.flusher, NULL);
    pool_free(flush.lull_pool);
    pool_free(flush.urgent_pool);
    store_pass_forget();
    names_write_now();
    drop_lists();
}
