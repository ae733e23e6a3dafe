/* page_walk.c - calls that let the kernel drop pages, made by threads that can be left to themselves (page_walk.h). */
#include "fs/page_walk.h"

#include <pthread.h>
#include <stdlib.h>

#include "fs/inode.h"
#include "fs/notify.h"
#include "fs/page_cache.h"
#include "placement/store/store_open.h"
#include "transport/loop.h"

/* Each request that the kernel has may hold up one. */
#define THREADS 512

/* Who wants some walks. */
struct wanted {
    unsigned walks;         /* not over yet */
    bool untold;            /* a size that was not told */
    pthread_cond_t over;    /* a caller waits, or ... */
    struct page_use *ended; /* ... a request that has been answered */
    void (*fn)(struct page_use *u);
};

struct walk {
    struct walk *next;
    struct wanted *by; /* NULL: nobody waits for it any more */
    struct span pages;
    uint64_t size; /* > 0: raises the size, and drops nothing */
    char last;
};

/* Of one inode, while there are any; all under its lock. */
struct walks {
    struct walk *first, **end;
    struct walk *now; /* a thread makes it, and goes on with the next ones */
    bool thread;      /* there is such a thread, or walk_go will start it */
};

static struct pool *pool;

void walk_start(void)
{
    pool = pool_new("eddy-pages", THREADS);
}

void walk_stop(void)
{
    pool_free(pool);
    pool = NULL;
}

/* ---- the list; the inode is locked ---- */

static struct walk *walk_new(struct wanted *by, struct span pages)
{
    struct walk *w = xcalloc(1, sizeof(*w));
    w->by = by;
    w->pages = pages;
    by->walks++;
    return w;
}

static struct walk *new_byte(struct wanted *by, uint64_t size, char last)
{
    uint64_t page = (size - 1) / PAGE * PAGE;
    struct walk *w = walk_new(by, (struct span){page, page + PAGE});
    w->size = size;
    w->last = last;
    return w;
}

static struct walks *walks_of(struct inode *i)
{
    if (!i->walks) {
        i->walks = xcalloc(1, sizeof(*i->walks));
        i->walks->end = &i->walks->first;
    }
    return i->walks;
}

static void append(struct walks *all, struct walk *w)
{
    *all->end = w;
    all->end = &w->next;
}

static void put_first(struct walks *all, struct walk *w)
{
    w->next = all->first;
    if (!all->first)
        all->end = &w->next;
    all->first = w;
}

static struct walk *take_first(struct walks *all)
{
    struct walk *w = all->first;
    all->first = w->next;
    if (!all->first)
        all->end = &all->first;
    w->next = NULL;
    return w;
}

/* Nobody waits for it any more. */
static void settle(struct walk *w)
{
    struct wanted *by = w->by;
    w->by = NULL;
    if (--by->walks)
        return;
    if (!by->ended) {
        pthread_cond_signal(&by->over);
        return;
    }
    by->fn(by->ended);
    free(by);
}

/* The pages before and behind [off, end) of a walk that is not made: first of all. */
static void put_rest(struct walks *all, const struct walk *w, uint64_t off, uint64_t end)
{
    if (end < w->pages.end)
        put_first(all, walk_new(w->by, (struct span){end, w->pages.end}));
    if (w->pages.off < off)
        put_first(all, walk_new(w->by, (struct span){w->pages.off, off}));
}

/* True: the caller is to start the thread. */
static bool needs_thread(struct walks *all)
{
    bool needs = !all->thread && all->first;
    all->thread |= needs;
    return needs;
}

/* ---- requests that hold pages ---- */

static bool overlaps(const struct walk *w, const struct page_use *u)
{
    return u->kind != PAGE_READ_PAST && u->off < w->pages.end && u->end > w->pages.off;
}

bool walk_brings_end(const struct page_use *u, uint64_t size)
{
    return u->kind == PAGE_READ && u->off < size && (u->passing || (u->last_try && u->stale));
}

static void leave_out(struct page_use *u)
{
    u->left = true;
    u->stale |= u->kind == PAGE_WRITE;
}

/* A request that waits may hold its pages until it is answered. */
static struct page_use *holder_of(const struct inode *i, const struct walk *w)
{
    struct page_use *u = i->page_uses;
    while (u && (u->answering || u->ending || u->kind == PAGE_TRUNCATE || !overlaps(w, u)))
        u = u->next;
    return u;
}

/* Not one whose answer is being given: that waits for nothing. */
static struct page_use *truncation_of(const struct inode *i)
{
    struct page_use *u = i->page_uses;
    while (u && (u->kind != PAGE_TRUNCATE || u->answering || u->ending))
        u = u->next;
    return u;
}

/* True: a request that holds this byte's page, or brings an older end, raises the size when it has been answered; or there is
 * a truncation. */
static bool raise_later(struct inode *i, const struct walk *w)
{
    struct page_use *u = i->page_uses;
    if (truncation_of(i))
        return true;
    while (u && (u->ending || u->kind == PAGE_TRUNCATE || !(overlaps(w, u) || walk_brings_end(u, w->size))))
        u = u->next;
    if (u) {
        u->size = w->size;
        u->last = w->last;
    }
    return u;
}

/* ---- the thread ---- */

static void drop(uint64_t nodeid, struct span s)
{
    notify_pages_now(nodeid, (int64_t)s.off, s.end == UINT64_MAX ? 0 : (int64_t)(s.end - s.off));
}

static void make(uint64_t nodeid, const struct walk *w)
{
    if (w->size)
        notify_byte_now(nodeid, w->size - 1, w->last);
    else
        drop(nodeid, w->pages);
}

/* Inode locked.  False: it is over, or others have taken its place. */
static bool is_to_be_made(struct inode *i, struct walk *w)
{
    struct page_use *u = truncation_of(i);
    if (w->size) {
        bool later = raise_later(i, w);
        w->by->untold |= later;
        if (later)
            settle(w);
        return !later;
    }
    if (u) { /* its end drops all pages */
        u->stale = true;
        bool waited = !w->by->ended;
        settle(w);
        return waited;
    }
    if (!(u = holder_of(i, w)))
        return true;
    leave_out(u);
    put_rest(i->walks, w, u->off, u->end);
    settle(w);
    return false;
}

/* Inode locked: the next one that is to be made, or NULL. */
static struct walk *next_of(struct inode *i)
{
    while (i->walks->first) {
        struct walk *w = take_first(i->walks);
        if (is_to_be_made(i, w))
            return w;
        free(w);
    }
    return NULL;
}

/* Inode locked.  The thread was left to itself, or has nothing more to do. */
static void stop(struct inode *i)
{
    i->walks->thread = false;
    if (i->walks->first || i->walks->now)
        return;
    free(i->walks);
    i->walks = NULL;
}

/* Inode locked; not while the walk is made.  False: the thread was left to itself. */
static bool make_next(struct inode *i, struct walk *w)
{
    i->walks->now = w;
    bool alone = !w->by; /* from the beginning */
    if (alone) {
        i->walks->now = NULL;
        stop(i);
    }
    bool more = i->walks && needs_thread(i->walks);
    lock_drop(&i->lock);
    if (more)
        walk_go(i);
    make(i->nodeid, w);
    lock_take(&i->lock);
    if (!w->by)
        return false;
    i->walks->now = NULL;
    if (w->size)
        i->told_size = w->size;
    settle(w);
    return true;
}

static void work(void *arg)
{
    struct inode *i = arg;
    struct walk *w;
    bool on = true;
    lock_take(&i->lock);
    while (on && (w = next_of(i))) {
        on = make_next(i, w);
        bool late = !on && w->size; /* its page may have a newer last byte than this one */
        if (late) {
            lock_drop(&i->lock);
            drop(i->nodeid, w->pages);
            lock_take(&i->lock);
        }
        free(w);
    }
    if (on)
        stop(i);
    lock_drop(&i->lock);
    inode_put(i);
}

void walk_go(struct inode *i)
{
    pool_submit(pool, work, inode_ref(i));
}

/* ---- a request comes, and is answered ---- */

bool walk_meet(struct inode *i, struct page_use *u)
{
    struct walks *all = i->walks;
    struct walk *w = all ? all->now : NULL;
    if (!w || !overlaps(w, u))
        return false;
    if (u->kind == PAGE_TRUNCATE) {
        u->stale = true;
        w->by->untold |= w->size > 0;
    } else if (w->size) {
        u->size = w->size;
        u->last = w->last;
        w->by->untold = true;
    } else {
        put_rest(all, w, u->off, u->end);
        leave_out(u);
    }
    all->now = NULL;
    settle(w);
    stop(i);
    return i->walks && needs_thread(i->walks);
}

bool walk_after(struct inode *i, struct page_use *u, void (*over)(struct page_use *u))
{
    struct wanted *by = xcalloc(1, sizeof(*by));
    struct walks *all = walks_of(i);
    struct span s = {u->off, u->end};
    by->ended = u;
    by->fn = over;
    append(all, walk_new(by, s));
    if (u->size) {
        append(all, new_byte(by, u->size, u->last));
        append(all, walk_new(by, s));
    }
    return needs_thread(all);
}

/* ---- callers that wait ---- */

/* Inode locked; dropped when it returns. */
static void go_and_wait(struct inode *i, struct wanted *by)
{
    bool go = needs_thread(i->walks);
    lock_drop(&i->lock);
    if (go)
        walk_go(i);
    lock_take(&i->lock);
    while (by->walks)
        lock_wait(&i->lock, &by->over, 0);
    lock_drop(&i->lock);
    pthread_cond_destroy(&by->over);
}

void walk_pages(struct inode *i, struct span s)
{
    struct wanted by = {0};
    lock_assert_none();
    lock_cond_init(&by.over);
    lock_take(&i->lock);
    append(walks_of(i), walk_new(&by, s));
    go_and_wait(i, &by);
}

bool walk_byte(struct inode *i, uint64_t size, char last)
{
    struct wanted by = {0};
    lock_assert_none();
    lock_cond_init(&by.over);
    lock_take(&i->lock);
    append(walks_of(i), new_byte(&by, size, last));
    go_and_wait(i, &by);
    return !by.untold;
}
