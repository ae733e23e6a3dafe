/* kernel_io_watch.c - the list of files that the kernel's writers may change.  They are sampled from time to
 * time, until no process can store into them any more.
 */
#include "placement/store/kernel_io.h"
#include "placement/store/kernel_io_store.h"
#include "placement/store/state.h"
#include "placement/store/store_int.h"
#include "placement/store/kernel_io_int.h"

#include <stdlib.h>

static struct {
    struct lock lock; /* RANK_LEAF: the list, which holds a reference to each of its files */
    struct file *list;
    unsigned n;
    void (*wake)(void);
    void (*changed)(struct file *f);
} watch = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}};

void kernel_io_watch(struct file *f)
{
    file_ref(f);
    lock_take(&watch.lock);
    bool listed = f->kernel_io.prev;
    if (!listed) {
        f->kernel_io.next = watch.list;
        f->kernel_io.prev = &watch.list;
        if (f->kernel_io.next)
            f->kernel_io.next->kernel_io.prev = &f->kernel_io.next;
        watch.list = f;
        watch.n++;
    }
    void (*wake)(void) = watch.wake;
    lock_drop(&watch.lock);
    if (listed)
        file_put(f);
    else if (wake)
        wake();
}

void kernel_io_wake_sampler(void)
{
    lock_take(&watch.lock);
    void (*wake)(void) = watch.wake;
    lock_drop(&watch.lock);
    if (wake)
        wake();
}

static void take_off(struct file *f)
{
    lock_take(&watch.lock);
    bool listed = f->kernel_io.prev;
    if (listed) {
        *f->kernel_io.prev = f->kernel_io.next;
        if (f->kernel_io.next)
            f->kernel_io.next->kernel_io.prev = f->kernel_io.prev;
        f->kernel_io.prev = NULL;
        watch.n--;
    }
    lock_drop(&watch.lock);
    if (listed)
        file_put(f);
}

/* No process can store into it, or what is stored does not matter any more.  (A removed file is sampled as
 * long as it is open for writing, since it takes room.) */
static bool is_over(const struct file *f)
{
    return !has_kernel_io(f) || (core(f)->flags & CORE_DELETED && !f->kernel_io.writers);
}

bool kernel_io_unwatch(struct file *f)
{
    take_off(f);
    lock_take(&f->lock); /* it may have been opened meanwhile, and found on the list */
    bool over = is_over(f) || kernel_io_is_quiet(f);
    lock_drop(&f->lock);
    if (!over)
        kernel_io_watch(f);
    return over;
}

void kernel_io_not_watched(struct file *f)
{
    lock_take(&f->lock);
    bool over = is_over(f);
    lock_drop(&f->lock);
    if (over)
        (void)kernel_io_unwatch(f);
}

void store_on_kernel_io(void (*wake)(void), void (*changed)(struct file *f))
{
    lock_take(&watch.lock);
    watch.wake = wake;
    watch.changed = changed;
    lock_drop(&watch.lock);
}

void kernel_io_tell_changed(struct file *f)
{
    if (watch.changed)
        watch.changed(f);
}

/* Malloc'd. */
static struct fid *watched(unsigned *n)
{
    lock_take(&watch.lock);
    struct fid *fids = xcalloc(watch.n + 1, sizeof(*fids));
    *n = 0;
    for (struct file *f = watch.list; f; f = f->kernel_io.next)
        fids[(*n)++] = f->fid;
    lock_drop(&watch.lock);
    return fids;
}

enum look {
    LOOK_AGAIN,
    LOOK_CLOSED, /* kernel_io_is_quiet: thousands of small files wait so for the lull */
    LOOK_OVER
};

/* With f->lock. */
static enum look look_further(struct file *f, bool news)
{
    if (!news && !is_over(f))
        kernel_io_prove_closed(f);
    if (is_over(f))
        return LOOK_OVER;
    return kernel_io_is_quiet(f) ? LOOK_CLOSED : LOOK_AGAIN;
}

/* Samples one file; true: it must be sampled again. */
static bool sample_one(struct file *f, void (*changed)(struct file *f),
                       void (*concluded)(struct file *f))
{
    lock_take(&f->lock);
    kernel_io_look(f);
    bool news = f->change != f->kernel_io.sampled; /* other calls look too */
    f->kernel_io.sampled = f->change;
    if (kernel_io_flushed(f) && !f->kernel_io.writers)
        kernel_io_conclude_unflushed(f);
    enum look next = look_further(f, news);
    bool dirty = is_dirty(f) && !kernel_io_flushed(f);
    lock_drop(&f->lock);
    if (news && dirty && next != LOOK_OVER)
        changed(f);
    else if (dirty && next != LOOK_OVER)
        store_tell_dirty(f, true);
    if (next == LOOK_AGAIN)
        return true;
    if (next == LOOK_OVER)
        concluded(f);
    return !kernel_io_unwatch(f);
}

unsigned kernel_io_sample(void (*changed)(struct file *f), void (*concluded)(struct file *f))
{
    unsigned n, left = 0;
    struct fid *fids = watched(&n);
    for (unsigned i = 0; i < n; i++) {
        struct file *f = file_find(fids[i]);
        if (!f)
            continue;
        left += sample_one(f, changed, concluded);
        file_put(f);
    }
    free(fids);
    if (n)
        space_watch();
    return left;
}

void kernel_io_forget(void)
{
    unsigned n;
    struct fid *fids = watched(&n);
    for (unsigned i = 0; i < n; i++) {
        struct file *f = file_find(fids[i]);
        if (f) {
            take_off(f);
            file_put(f);
        }
    }
    free(fids);
}
