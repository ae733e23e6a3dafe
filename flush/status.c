/* status.c - what the flusher says of itself, and of each file that is not on the PFS. */
#include "flush/flush_int.h"

#include "placement/store.h"

#include <stdlib.h>

uint64_t flush_dirty_bytes(void)
{
    struct store_usage u;
    store_usage(&u);
    return u.dirty;
}

static const char *state_name(void)
{
    if (flush.urgent_all || flush.urgent_jobs)
        return "flushing now";
    if (flush.jobs)
        return lull_now() ? "flushing" : "paused: I/O is in progress";
    if (flush.ready.n)
        return "waiting for a lull";
    return flush.failed.n ? "waiting to try again" : "clean";
}

void flush_status(struct flush_status *out)
{
    lock_take(&flush.lock);
    *out = (struct flush_status){
        .policy = "idle",
        .state = state_name(),
        .flushed_bytes = counted(flushed_bytes),
        .pending_files = flush.ready.n + flush.running.n + flush.failed.n,
        .failed_files = flush.failed.n,
    };
    lock_drop(&flush.lock);
    out->pending_bytes = flush_dirty_bytes();
}

typedef int (*unflushed_fn)(void *arg, const char *path, uint64_t bytes, uint64_t since_s,
                            unsigned tries, int error, bool suspect);

static int tell_unflushed(struct file *f, unflushed_fn cb, void *arg)
{
    struct file_info info;
    store_info(f, &info);
    if (!info.dirty)
        return 0;
    lock_take(&flush.lock);
    uint64_t now = boot_ms(), since_s = (now - MIN(now, f->dirty_since_ms)) / 1000;
    unsigned tries = f->flush_tries;
    int error = f->flush_error;
    lock_drop(&flush.lock);
    char *path = file_path(f);
    int rc = cb(arg, path, info.dirty_bytes, since_s, tries, error, false);
    free(path);
    return rc;
}

struct telling {
    unflushed_fn cb;
    void *arg;
};

static int tell_suspect(void *arg, struct fid fid, const char *path, uint64_t bytes, bool suspect)
{
    struct telling *t = arg;
    (void)fid;
    return t->cb(t->arg, path, bytes, 0, 0, 0, suspect);
}

int flush_each_unflushed(int (*cb)(void *arg, const char *path, uint64_t bytes, uint64_t since_s,
                                   unsigned tries, int error, bool suspect),
                         void *arg)
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
