/* ask.c - asking for a flush and waiting for it: of one file, of all, of those that failed. */
#include "flush/flush.h"
#include "flush/lull.h"
#include "flush/queue.h"
#include "flush/retry.h"
#include "flush/run.h"
#include "placement/claims/claim_forget.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"

#include <errno.h>
#include <stdlib.h>

#define PROGRESS_MS 200

/* ---- one file ---- */

/* Lock held: waits until a run that began after `wanted` - 1 has ended, and begins it if no other thread
 * does. */
static int wait_for_run(struct flush_item *it, uint64_t wanted)
{
    while (it->queued) {
        if (it->ended >= wanted)
            return claim_is_forgotten(it->f) ? -EIO : it->error; /* void: not into its file */
        if (flush.stop)
            return -ECANCELED;
        if (it->running)
            lock_wait(&flush.lock, &flush.ended, 0);
        else
            run_start(it, RUN_ASKED);
    }
    return 0; /* clean: after the run that was going on when we came, nothing was dirty */
}

int flush_file(struct file *f)
{
    struct file_info info;
    store_info(f, &info);
    if (!info.dirty)
        return 0;
    queue_add(f); /* the store's call for it may still be on its way */
    struct flush_item *it = item_of(f);
    lock_take(&flush.lock);
    /* A run that begins from now on takes everything that is dirty now. */
    uint64_t wanted = it->begun + 1;
    it->urgent++;
    if (it->running) {
        it->again = true;
        lock_drop(&flush.lock);
        bell_ring(); /* if it waits for a lull: go on */
        lock_take(&flush.lock);
    }
    int err = flush.stop ? -ECANCELED : wait_for_run(it, wanted);
    it->urgent--;
    lock_drop(&flush.lock);
    return err;
}

/* ---- all ---- */

struct left {
    uint64_t files, failed;
};

/* What is left to do: files on a list that were dirty when the order was at `upto` and flush.failures at
 * `failures`, unless they have failed since.  A failed file may be tried again and again; a caller that
 * waited for it, too, would wait for ever. */
static void count_list(struct left *left, const struct item_list *l, uint64_t upto,
                       uint64_t failures)
{
    for (const struct flush_item *it = l->first; it; it = it->next) {
        bool failed = it->error && it->failed_no > failures;
        left->failed += it->seq <= upto && failed;
        left->files += it->seq <= upto && !failed;
    }
}

/* Lock held. */
static struct left count_left(uint64_t upto, uint64_t failures)
{
    struct left l = {0, 0};
    count_list(&l, &flush.running, upto, failures);
    for (unsigned p = 0; p < FLUSH_POLICIES; p++)
        count_list(&l, &flush.ready[p], upto, failures);
    for (const struct flush_item *it = flush.failed.first; it; it = it->next)
        l.failed += it->seq <= upto;
    return l;
}

static bool report(bool (*progress)(void *arg, const struct flush_progress *p), void *arg,
                   uint64_t flushed_before, struct left left)
{
    uint64_t done = counted(flushed_bytes) - flushed_before;
    uint64_t dirty, room;
    store_dirty(&dirty, &room);
    struct flush_progress p = {done, done + dirty, left.files + left.failed};
    return !progress || progress(arg, &p);
}

/* Lock held: somebody waits for all files from now on.  If a file is dirty after a run that is going on,
 * another whole run must follow. */
static uint64_t begin_all(void)
{
    flush.urgent_all++;
    retry_due(true, boot_ms());
    for (struct flush_item *it = flush.running.first; it; it = it->next)
        it->again = true;
    return flush.seq;
}

/* Lock held: waits until something may have changed for a caller that waits for several files.  Counting
 * looks at every file, so it is not done for each run that ends. */
static void wait_for_news(void)
{
    uint64_t until = boot_ms() + PROGRESS_MS;
    while (queue_nready() + flush.running.n && !flush.stop) {
        uint64_t now = boot_ms();
        if (now >= until)
            break;
        lock_wait(&flush.lock, &flush.ended, until - now);
    }
}

int flush_all(bool (*progress)(void *arg, const struct flush_progress *p), void *arg)
{
    uint64_t before = counted(flushed_bytes);
    flush_sample();
    lock_take(&flush.lock);
    uint64_t failures = flush.failures, upto = begin_all();
    lock_drop(&flush.lock);
    bell_ring();
    struct left left;
    int err = 0;
    lock_take(&flush.lock);
    for (;;) {
        left = count_left(upto, failures);
        bool stop = flush.stop;
        lock_drop(&flush.lock);
        bool go_on = report(progress, arg, before, left);
        lock_take(&flush.lock);
        if (!left.files)
            break;
        if (!go_on || stop) {
            err = -ECANCELED;
            break;
        }
        wait_for_news();
    }
    flush.urgent_all--;
    lock_drop(&flush.lock);
    bell_ring(); /* back to lulls */
    return err ? err : left.failed ? -EIO : 0;
}

/* ---- what failed ---- */

struct tried {
    struct flush_item **it; /* their files are referenced */
    uint64_t *run;  /* which one of each */
    size_t n;
};

/* Lock held. */
static void try_one(struct tried *t, struct flush_item *it)
{
    it->retry_at_ms = 0;
    it->urgent++;
    if (!it->running)
        run_start(it, RUN_ASKED);
    file_ref(it->f);
    t->it[t->n] = it;
    t->run[t->n++] = it->begun;
}

/* Lock held: the files on a list whose last run failed, if they wait or are being tried again. */
static void try_again(struct tried *t, const struct item_list *l)
{
    for (struct flush_item *it = l->first, *next; it; it = next) {
        next = it->next;
        if (it->error)
            try_one(t, it);
    }
}

/* Lock held. */
static void try_failed(struct tried *t)
{
    size_t most = flush.failed.n + flush.running.n + queue_nready();
    t->it = xcalloc(most + 1, sizeof(struct flush_item *));
    t->run = xcalloc(most + 1, sizeof(*t->run));
    try_again(t, &flush.running);
    for (unsigned p = 0; p < FLUSH_POLICIES; p++)
        try_again(t, &flush.ready[p]);
    while (flush.failed.first)
        try_one(t, flush.failed.first);
}

/* Lock held. */
static struct left count_tried(const struct tried *t)
{
    struct left l = {0, 0};
    for (size_t i = 0; i < t->n; i++) {
        const struct flush_item *it = t->it[i];
        bool ended = !it->queued || it->ended >= t->run[i];
        l.files += !ended;
        l.failed += ended && it->queued && (it->error || claim_is_forgotten(it->f));
    }
    return l;
}

static void end_tried(struct tried *t)
{
    lock_take(&flush.lock);
    for (size_t i = 0; i < t->n; i++)
        t->it[i]->urgent--;
    lock_drop(&flush.lock);
    for (size_t i = 0; i < t->n; i++)
        file_put(t->it[i]->f);
    free(t->it);
    free(t->run);
}

int flush_retry(bool (*progress)(void *arg, const struct flush_progress *p), void *arg)
{
    uint64_t before = counted(flushed_bytes);
    struct tried t = {.n = 0};
    struct left left;
    bool go_on;
    lock_take(&flush.lock);
    try_failed(&t);
    lock_drop(&flush.lock);
    bell_ring(); /* runs that wait for a lull go on */
    lock_take(&flush.lock);
    do {
        left = count_tried(&t);
        bool stop = flush.stop;
        lock_drop(&flush.lock);
        go_on = report(progress, arg, before, left) && !stop;
        lock_take(&flush.lock);
        if (left.files && go_on)
            wait_for_news();
    } while (left.files && go_on);
    lock_drop(&flush.lock);
    end_tried(&t);
    return left.files ? -ECANCELED : left.failed ? -EIO : 0;
}
