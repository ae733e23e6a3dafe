/* pass.c - one pass of one file: begun, let go on or held before each piece, ended.
 *
 * A pass runs in a thread of a pool of writers.  Urgent passes (fsync to the PFS, `eddy flush`,
 * unmount, room for writers) do not ask for a lull and have a pool of their own: writers that wait
 * in the middle of a file for the next lull keep theirs.
 */
#include "flush/flush_int.h"

#include "placement/store.h"
#include "transport/loop.h"

#include <errno.h>
#include <stdlib.h>

void pass_progress(uint64_t bytes)
{
    count(flushed_bytes, bytes);
    lock_take(&flush.lock);
    flush.progress++;
    pthread_cond_broadcast(&flush.ended);
    lock_drop(&flush.lock);
}

/* Off the lists.  What was dirtied between the pass's own look and this moment did not come in by
 * queue_add (the file was still queued): look again. */
static void settle_clean(struct file *f)
{
    names_changed();
    struct file_info info;
    store_info(f, &info);
    if (info.dirty)
        queue_add(f);
    file_put(f);
}

struct job {
    struct file *f;
    bool urgent;
};

/* The lock is held.  f goes where it belongs now; true: it is clean, and the list's reference is
 * the caller's. */
static bool end_pass(struct file *f, int err, bool clean, bool *is_news)
{
    uint64_t now = boot_ms();
    bool again = f->flush_again;
    *is_news = false;
    f->flushing = f->flush_again = false;
    f->flush_ended = f->flush_begun;
    queue_remove(f);
    pthread_cond_broadcast(&flush.ended);
    if (err == -ECANCELED) {
        queue_prepend(&flush.ready, f);
        return false;
    }
    if (err) {
        *is_news = retry_failed(f, err, now);
        flush.next_retry_ms = MIN(flush.next_retry_ms, f->retry_at_ms);
        queue_append(&flush.failed, f);
        return false;
    }
    retry_succeeded(f);
    flush.progress++;
    if (clean) {
        f->flush_queued = false;
        return true;
    }
    if (again) { /* who came during this pass waits for a whole one: it keeps its place */
        queue_prepend(&flush.ready, f);
    } else {
        f->flush_seq = ++flush.seq;
        f->dirty_since_ms = now;
        queue_append(&flush.ready, f);
    }
    return false;
}

static void run_job(void *arg)
{
    struct job *j = arg;
    struct file *f = file_ref(j->f);
    bool clean, is_news;
    int err = copyout_file(f, j->urgent, &clean);
    lock_take(&flush.lock);
    bool done = end_pass(f, err, clean, &is_news);
    if (j->urgent)
        flush.urgent_jobs--;
    else
        flush.jobs--;
    lock_drop(&flush.lock);
    if (is_news)
        retry_log(f, err);
    if (done)
        settle_clean(f);
    file_put(f);
    free(j);
    bell_ring();
}

/* The lock is held; f is on a list and no pass of it runs. */
void pass_start(struct file *f, bool urgent)
{
    queue_remove(f);
    queue_append(&flush.running, f);
    f->flushing = true;
    f->flush_begun++;
    struct job *j = xmalloc(sizeof(*j));
    *j = (struct job){f, urgent};
    if (urgent)
        flush.urgent_jobs++;
    else
        flush.jobs++;
    pool_submit(urgent ? flush.urgent_pool : flush.lull_pool, run_job, j);
}

int pass_gate(struct file *f, bool urgent, bool *idle)
{
    for (;;) {
        uint64_t seen = bell_seen();
        lock_take(&flush.lock);
        bool stop = flush.stop;
        bool asked = urgent || f->flush_urgent || flush.urgent_all;
        lock_drop(&flush.lock);
        *idle = !asked;
        if (stop)
            return -ECANCELED;
        if (asked)
            return 0;
        uint64_t due = lull_due_ms();
        if (!due)
            return 0;
        bell_wait(seen, due == UINT64_MAX ? 0 : due);
    }
}
