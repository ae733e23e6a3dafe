/* status.c - the flusher's report on itself, and on each file that is not on the PFS. */
#include "flush/flush_int.h"
#include "flush/flush_status.h"
#include "flush/lull.h"
#include "flush/queue.h"
#include "placement/claims/claim_forget.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"

#include <errno.h>
#include <stdlib.h>

static const char *state_name(enum mark_level level)
{
    if (flush.urgent_all)
        return "flushing now";
    if (level == MARK_HIGH)
        return "above the high mark: flushing";
    if (flush.busy || flush.urgent_jobs || flush.syncing)
        return level == MARK_DRAIN ? "flushing down to the low mark" : "flushing";
    if (flush.waiting_jobs || flush.ending)
        return "paused: I/O is in progress";
    if (flush.ready[FLUSH_IDLE].n)
        return "waiting for a lull";
    if (flush.ready[FLUSH_END].n)
        return "waiting for the end";
    if (queue_nready())
        return "flushing";
    return flush.failed.n ? "waiting to try again" : "clean";
}

/* Lock held.  ms, 0: nothing is dirty. */
static uint64_t oldest_ms(void)
{
    uint64_t now = boot_ms(), oldest = now;
    const struct flush_item *first[] = {
        flush.running.first,  flush.failed.first,   flush.ready[0].first,
        flush.ready[1].first, flush.ready[2].first, flush.ready[3].first};
    for (size_t i = 0; i < ARRAY_LEN(first); i++)
        if (first[i])
            oldest = MIN(oldest, first[i]->dirty_since_ms);
    return now - oldest;
}

void flush_status(struct flush_status *out)
{
    uint64_t dirty, room;
    store_dirty(&dirty, &room);
    lock_take(&flush.lock);
    enum mark_level level = room_level();
    *out = (struct flush_status){
        .policy = flush_policy_name(flush.config.policy),
        .state = state_name(level),
        .flushed_bytes = counted(flushed_bytes),
        .pending_bytes = dirty,
        .pending_files = queue_nready() + flush.running.n + flush.failed.n,
        .failed_files = flush.failed.n,
        .high_bytes = marks_bytes(room, flush.config.dirty_high),
        .low_bytes = marks_bytes(room, flush.config.dirty_low),
        .full_bytes = marks_bytes(room, MARK_FULL),
        .draining = level != MARK_NONE,
        .oldest_ms = oldest_ms(),
        .age_ms = flush.config.dirty_age_ms,
        .wait_ms = lull_wait_ms(),
        .wait_auto = flush.config.wait_auto,
    };
    lock_drop(&flush.lock);
}

static int tell_unflushed(struct file *f, unflushed_fn *cb, void *arg)
{
    struct file_info info;
    store_info(f, &info);
    if (!info.dirty)
        return 0;
    const struct flush_item *it = item_of(f);
    lock_take(&flush.lock);
    uint64_t now = boot_ms();
    struct unflushed_file u = {
        .bytes = info.dirty_bytes,
        .since_s = (now - MIN(now, it->dirty_since_ms)) / 1000,
        .tries = it->tries,
        .error = claim_is_forgotten(f) ? -EBUSY : it->error, /* void: kept until it is closed */
    };
    lock_drop(&flush.lock);
    char *path = file_path(f);
    u.path = path;
    int rc = cb(arg, &u);
    free(path);
    return rc;
}

struct telling {
    unflushed_fn *cb;
    void *arg;
};

static int tell_suspect(void *arg, struct fid fid, const char *path, uint64_t bytes, enum unflushed_why why)
{
    struct telling *t = arg;
    (void)fid;
    (void)why;
    return t->cb(t->arg, &(struct unflushed_file){.path = path, .bytes = bytes, .suspect = true});
}

int flush_each_unflushed(unflushed_fn *cb, void *arg)
{
    size_t n;
    int rc = 0;
    struct file **files = queue_files(&n);
    for (size_t i = 0; i < n; i++) {
        struct file *f = files[i];
        rc = rc ? rc : tell_unflushed(f, cb, arg);
        file_put(f);
    }
    free(files);
    return rc ? rc : store_each_suspect(tell_suspect, &(struct telling){cb, arg});
}
