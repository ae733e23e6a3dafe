/* run.c - one run of one file: it begins, goes on or waits before each piece, and ends.
 *
 * A run has a thread of a pool of writers.  Urgent runs (fsync to the PFS, `eddy flush`,
 * unmount, room for writers) do not need a lull.  They have a pool of their own, because runs that wait
 * in the middle of a file for the next lull occupy their threads.
 */
#include "flush/copyout.h"
#include "flush/flush_events.h"
#include "flush/flush_int.h"
#include "flush/lull.h"
#include "flush/queue.h"
#include "flush/retry.h"
#include "flush/run.h"
#include "placement/borrow.h"
#include "placement/borrow_flush.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "transport/loop.h"

#include <errno.h>
#include <stdlib.h>

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
    else if (fid_is_loan(f->fid))
        borrow_flushed(f);
    file_put(f);
}

struct job {
    struct gate gate;
};

/* The lock is held.  The item goes where it belongs now; true: it is clean, and the list's reference is
 * the caller's. */
static bool end_run(struct flush_item *it, int err, bool clean, bool *is_news)
{
    bool again = it->again, waits = retry_is_wait(it, err);
    *is_news = false;
    it->running = it->again = false;
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

static void run_job(void *arg)
{
    struct job *j = arg;
    struct file *f = file_ref(j->gate.f);
    bool clean, is_news;
    int err = copyout_file(&j->gate, &clean);
    lock_take(&flush.lock);
    bool done = end_run(item_of(f), err, clean, &is_news);
    gate_leave(&j->gate);
    lock_drop(&flush.lock);
    if (is_news)
        retry_log(f, err);
    if (done)
        settle_clean(f);
    file_put(f);
    free(j);
    bell_ring();
}

void run_start(struct flush_item *it, enum run_mode mode)
{
    queue_remove(it);
    queue_append(&flush.running, it);
    it->running = true;
    it->dirtied = false;
    it->begun++;
    it->began_ms = boot_ms();
    struct job *j = xmalloc(sizeof(*j));
    *j = (struct job){{.f = it->f, .mode = mode}};
    if (mode == RUN_WAITS)
        flush.waiting_jobs++;
    else
        flush.urgent_jobs++;
    pool_submit(mode == RUN_WAITS ? flush.waiting_pool : flush.urgent_pool, run_job, j);
}
