/* foresight.c - what the mount and the queues' socket tell becomes changes of hints, and work for the prefetcher. */
#include "placement/foresight/foresight.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placement/claims/look.h"
#include "placement/foresight/bring.h"
#include "placement/foresight/budget.h"
#include "placement/foresight/find_dirs.h"
#include "placement/foresight/hint_files.h"
#include "placement/foresight/hints.h"
#include "placement/foresight/next.h"
#include "placement/foresight/outdated.h"
#include "placement/foresight/prefetch.h"
#include "placement/foresight/shares.h"
#include "placement/foresight/watch.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"

static char address[108];

void foresight_start(uint64_t limit)
{
    hints_init(limit);
    find_dirs_start();
    budget_start(prefetch_wake);
    prefetch_start();
    watch_start(prefetch_wake);
    bring_start();
}

void foresight_stop(void)
{
    watch_stop();
    find_dirs_end();
    lock_take(&hints_lock);
    shares_end_all();
    hints_end();
    lock_drop(&hints_lock);
}

void foresight_set_address(const char *name)
{
    snprintf(address, sizeof(address), "%s", name);
}

const char *foresight_address(void)
{
    return address;
}

/* ---- the mount ---- */

bool foresight_any(void)
{
    return atomic_load_explicit(&hints_now, memory_order_relaxed);
}

/* It has another content now, or will have. */
static void begins_to_be_written(struct hinted *h)
{
    for (struct target *t = h->targets; t; t = t->file_next) {
        hints_step(t, LIFE_WRITE);
        if (t->admitted)
            hints_again(t);
    }
}

static bool begins_to_be_read(struct hinted *h)
{
    bool any = false;
    for (struct target *t = h->targets; t; t = t->file_next) {
        if (t->queue->staged)
            continue;
        any = any || t->first != NO_ENTRY;
        if (t->first != NO_ENTRY)
            next_opened(t->queue, t->first);
        hints_opened(t);
    }
    h->readers += any;
    return any;
}

bool foresight_opened(struct pfs_node *n, struct fid fid, bool writes)
{
    bool tell = false;
    char *path = pfs_path(n);
    lock_take(&hints_lock);
    struct hinted *h = hints_by_path(path);
    if (h) {
        hints_set_fid(h, fid);
        if (writes)
            begins_to_be_written(h);
        tell = writes || begins_to_be_read(h);
    }
    bool due = tell && !writes && next_is_due();
    lock_drop(&hints_lock);
    free(path);
    if (tell)
        prefetch_wake();
    if (due)
        next_say();
    return tell;
}

static void was_read(struct hinted *h)
{
    if (!h->readers || --h->readers)
        return;
    for (struct target *t = h->targets; t; t = t->file_next) {
        struct queue *q = t->queue;
        if (t->first != NO_ENTRY && q->done[t->first] & ENTRY_OPENED)
            hints_done(q, t->first, false);
    }
}

/* What is admitted is looked at again, as it has bytes now. */
static void was_written(struct hinted *h, uint64_t limit)
{
    for (struct target *t = h->targets; t; t = t->file_next) {
        hints_step(t, LIFE_CLOSE);
        if (t->admitted)
            hints_again(t);
        else
            prefetch_keep(t, limit);
    }
}

/* Of what the kernel has written (passthrough) the store has had records only since then: so it is told once more. */
void foresight_flushed(struct fid fid)
{
    lock_take(&hints_lock);
    struct hinted *h = hints_by_fid(fid);
    if (h)
        h->flushed++;
    for (struct target *t = h ? h->targets : NULL; t; t = t->file_next) {
        hints_step(t, t->admitted ? LIFE_FLUSH_WANTED : LIFE_FLUSH);
        if (t->hinted)
            hints_tell(t, NEWS_HINTED);
    }
    lock_drop(&hints_lock);
    prefetch_wake(); /* there is room */
}

/* Asked of a file that was closed or got a name: its flush may have ended before the hint knew of it. */
static void tell_if_clean(struct fid fid)
{
    struct file *f = file_find(fid);
    struct file_info info = {.dirty = true};
    if (f)
        store_info(f, &info);
    if (!info.dirty)
        foresight_flushed(fid);
    if (f)
        file_put(f);
}

void foresight_closed(struct fid fid, bool writes)
{
    struct store_usage u;
    store_usage(&u);
    lock_take(&hints_lock);
    struct hinted *h = hints_by_fid(fid);
    if (h && writes)
        was_written(h, u.limit);
    else if (h)
        was_read(h);
    lock_drop(&hints_lock);
    if (h && writes)
        tell_if_clean(fid);
    if (h)
        prefetch_wake();
}

void foresight_named(const char *path, struct fid fid)
{
    struct store_usage u;
    store_usage(&u);
    lock_take(&hints_lock);
    struct hinted *h = hints_by_path(path);
    if (h) {
        hints_set_fid(h, fid);
        begins_to_be_written(h);
        was_written(h, u.limit);
    }
    lock_drop(&hints_lock);
    if (h)
        tell_if_clean(fid);
    if (h)
        prefetch_wake();
}

void foresight_removed(const char *path, struct fid fid)
{
    lock_take(&hints_lock);
    struct hinted *h = hints_by_path(path);
    bool had = h && fid_eq(h->fid, fid);
    for (struct target *t = had ? h->targets : NULL; t; t = t->file_next) {
        hints_step(t, LIFE_REMOVE);
        t->looks = 0;
        if (t->admitted)
            watch_for(t);
    }
    if (had)
        hints_set_fid(h, (struct fid){0});
    lock_drop(&hints_lock);
    if (had)
        prefetch_wake();
}

/* It is not looked at again at once: the change has only begun. */
void foresight_changed(struct fid fid)
{
    bool looked_at = false;
    lock_take(&hints_lock);
    struct hinted *h = hints_by_fid(fid);
    if (h)
        looked_at = outdated_file(h);
    for (struct target *t = h ? h->targets : NULL; t; t = t->file_next) {
        t->looks = 0;
        if (t->admitted)
            watch_for(t);
    }
    lock_drop(&hints_lock);
    if (looked_at)
        look_closed(fid);
    if (h)
        prefetch_wake();
}

void foresight_left(struct fid fid, uint64_t index)
{
    uint64_t chunk = store_chunk_size();
    if (!foresight_any())
        return;
    lock_take(&hints_lock);
    outdated_range(fid, index * chunk, (index + 1) * chunk);
    lock_drop(&hints_lock);
}

bool foresight_keeps(struct fid fid, uint64_t index)
{
    uint64_t chunk = store_chunk_size();
    if (!foresight_any())
        return false;
    lock_take(&hints_lock);
    bool keeps = hints_keep(fid, index * chunk, (index + 1) * chunk);
    lock_drop(&hints_lock);
    return keeps;
}

bool foresight_give_up(bool ahead)
{
    return (foresight_any() || shares_any()) && prefetch_give_up(ahead);
}

/* ---- queues ---- */

struct queue *foresight_queue_new(void)
{
    lock_take(&hints_lock);
    struct queue *q = hints_queue_new();
    lock_drop(&hints_lock);
    return q;
}

void foresight_queue_end(struct queue *q)
{
    lock_take(&hints_lock);
    hints_queue_end(q);
    lock_drop(&hints_lock);
    prefetch_wake();
}

int foresight_add(struct queue *q, const void *body, size_t len, int64_t *first)
{
    struct parsed_add a;
    lock_take(&hints_lock);
    int err = queue_parse_add(body, len, q->npaths, q->ntargets, &a);
    if (!err)
        err = hints_add(q, &a, first);
    lock_drop(&hints_lock);
    if (!err)
        prefetch_wake();
    return err;
}

void foresight_fetch(struct queue *q, bool on)
{
    lock_take(&hints_lock);
    q->started = on;
    if (on)
        watch_on(); /* what was not here when it was stopped */
    lock_drop(&hints_lock);
    prefetch_wake();
}

int foresight_consumed(struct queue *q, int64_t seq)
{
    lock_take(&hints_lock);
    bool known = seq >= 0 && seq < q->n;
    if (known)
        hints_done(q, (uint32_t)seq, false);
    lock_drop(&hints_lock);
    if (known)
        prefetch_wake();
    return known ? 0 : -ENOENT;
}

int64_t foresight_count(struct queue *q)
{
    lock_take(&hints_lock);
    int64_t n = q->n;
    lock_drop(&hints_lock);
    return n;
}

int foresight_is_reached(struct queue *q, int64_t seq)
{
    int reached = -ENOENT;
    lock_take(&hints_lock);
    if (seq < 0) {
        reached = q->head >= MIN(-1 - seq, (int64_t)q->n);
    } else if (seq < q->n) {
        const struct target *t = q->target[q->entry[seq]];
        reached = q->done[seq] & ENTRY_DONE || t->life == LIFE_AHEAD || t->life == LIFE_WRITTEN ||
                  t->life == LIFE_FLUSHED;
    }
    bool asked = !reached && seq >= q->asked;
    if (asked)
        q->asked = (uint32_t)seq + 1;
    lock_drop(&hints_lock);
    if (asked)
        prefetch_wake();
    return reached;
}

void foresight_cancel(struct queue *q, int64_t from)
{
    lock_take(&hints_lock);
    for (uint32_t i = (uint32_t)MIN(MAX(from, (int64_t)q->head), (int64_t)q->n); i < q->n; i++)
        hints_done(q, i, true);
    lock_drop(&hints_lock);
    prefetch_wake();
}

void foresight_stats(struct queue *q, uint64_t out[8])
{
    lock_take(&hints_lock);
    uint64_t all[8] = {q->n,       q->cancelled, q->consumed, q->nadmitted,
                       q->nahead,  q->nabsent,   q->ahead,    q->fetched_bytes};
    lock_drop(&hints_lock);
    memcpy(out, all, sizeof(all));
}

void foresight_on_news(void (*fn)(void))
{
    prefetch_on_news(fn);
}

void foresight_status(struct foresight_status *out, bool count_ready)
{
    struct hints_sums s;
    uint64_t ready = 0;
    lock_take(&hints_lock);
    hints_sum(&s);
    for (const struct queue *q = hints_queues; q && count_ready; q = q->next_queue)
        ready += hints_ready(q);
    lock_drop(&hints_lock);
    *out = (struct foresight_status){s.queues, s.hints,       s.admitted, s.ahead,
                                     s.absent, s.ahead_bytes, s.memory,   s.memory_max,
                                     s.staged, s.pinned,     ready};
}
