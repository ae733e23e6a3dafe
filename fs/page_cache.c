/* page_cache.c - the requests that use the kernel's pages, and dropping pages beside them (page_cache.h). */
#include "fs/page_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "fs/inode.h"
#include "fs/notify.h"
#include "placement/store/store_open.h"
#include "transport/lock.h"

#define WORKERS_MAX 64

/* ---- requests that never wait ----
 *
 * Each worker has a number that is odd while it serves such a request.  A drop that has seen it odd waits until
 * it has another value.  A worker whose number becomes odd after that sees the change. */

static struct {
    struct quick {
        _Alignas(64) _Atomic uint64_t turn;
    } of[WORKERS_MAX];
    _Atomic unsigned n, waiting;
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t ended;
} quick = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF},
           .ended = PTHREAD_COND_INITIALIZER};
static _Thread_local struct quick *mine;

void page_quick_begin(void)
{
    if (!mine) {
        unsigned n = atomic_fetch_add(&quick.n, 1);
        if (n >= WORKERS_MAX)
            die("more threads than WORKERS_MAX serve requests of the kernel");
        mine = &quick.of[n];
    }
    atomic_fetch_add(&mine->turn, 1);
}

void page_quick_end(void)
{
    atomic_fetch_add(&mine->turn, 1);
    if (!quick.waiting)
        return;
    lock_take(&quick.lock);
    pthread_cond_broadcast(&quick.ended);
    lock_drop(&quick.lock);
}

static void wait_for(const struct quick *q)
{
    uint64_t turn = q->turn;
    if (!(turn & 1))
        return;
    lock_take(&quick.lock);
    while (q->turn == turn)
        lock_wait(&quick.lock, &quick.ended, 0);
    lock_drop(&quick.lock);
}

/* Those that have begun are answered. */
static void wait_for_quick(void)
{
    quick.waiting++;
    for (unsigned n = 0; n < MIN(quick.n, WORKERS_MAX); n++)
        wait_for(&quick.of[n]);
    quick.waiting--;
}

/* ---- requests that may wait ---- */

static struct {
    struct lock lock; /* RANK_LEAF, inside an inode's */
    pthread_cond_t ended;
    uint64_t ends; /* how many uses that drops waited for have ended */
} awaited = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF},
             .ended = PTHREAD_COND_INITIALIZER};

void page_use_begin(struct inode *i, struct page_use *u, uint64_t off, size_t len, bool write)
{
    *u = (struct page_use){.off = off / PAGE * PAGE,
                           .end = (off + len + PAGE - 1) / PAGE * PAGE,
                           .write = write};
    lock_take(&i->lock);
    u->next = i->page_uses;
    u->prev = &i->page_uses;
    if (u->next)
        u->next->prev = &u->next;
    i->page_uses = u;
    lock_drop(&i->lock);
}

bool page_use_answer(struct inode *i, struct page_use *u, bool last, bool passing)
{
    lock_take(&i->lock);
    bool again = u->stale && !u->write && !last;
    if (again)
        u->stale = false;
    else
        u->answering = true;
    u->passing = passing;
    lock_drop(&i->lock);
    return !again;
}

static void raise_size(struct inode *i, uint64_t size, char last)
{
    notify_byte_now(i->nodeid, size - 1, last);
    i->told_size = size;
}

/* Inode locked. */
static bool take_out(struct page_use *u)
{
    *u->prev = u->next;
    if (u->next)
        u->next->prev = u->prev;
    return u->awaited;
}

void page_use_end(struct inode *i, struct page_use *u)
{
    lock_take(&i->lock);
    u->ending = true;
    u->answering |= u->size > 0; /* drops wait for what is told now */
    bool drop = u->answering && (u->stale || u->passing || u->size);
    bool waited = !drop && take_out(u);
    lock_drop(&i->lock);
    if (drop) {
        notify_pages_now(i->nodeid, (int64_t)u->off, (int64_t)(u->end - u->off));
        if (u->size) {
            raise_size(i, u->size, u->last);
            notify_pages_now(i->nodeid, (int64_t)u->off, (int64_t)(u->end - u->off));
        }
        lock_take(&i->lock);
        waited = take_out(u);
        lock_drop(&i->lock);
    }
    if (!waited)
        return;
    lock_take(&awaited.lock);
    awaited.ends++;
    pthread_cond_broadcast(&awaited.ended);
    lock_drop(&awaited.lock);
}

/* ---- dropping ---- */

struct span {
    uint64_t off, end;
};

/* A drop that is under way. */
struct drop {
    struct inode *i;
    struct span all;
    struct span *held; /* pages of requests that are not answered yet; malloc'd */
    unsigned n;
};

/* A WRITE that is being answered has put its bytes among older ones, and drops its pages itself. */
static void mark(struct drop *d)
{
    unsigned n = 0;
    lock_take(&d->i->lock);
    for (struct page_use *u = d->i->page_uses; u; u = u->next)
        n++;
    d->held = xcalloc(n + 1, sizeof(*d->held));
    for (struct page_use *u = d->i->page_uses; u; u = u->next) {
        if (u->off >= d->all.end || u->end <= d->all.off)
            continue;
        u->stale = true;
        if (u->answering)
            u->awaited = true;
        else
            d->held[d->n++] = (struct span){u->off, u->end};
    }
    lock_drop(&d->i->lock);
}

static bool one_is_awaited(struct drop *d)
{
    bool is = false;
    lock_take(&d->i->lock);
    for (struct page_use *u = d->i->page_uses; u && !is; u = u->next)
        is = u->awaited && u->off < d->all.end && u->end > d->all.off;
    lock_drop(&d->i->lock);
    return is;
}

/* The answers that were being given have been given, and their pages are dropped. */
static void wait_for_answers(struct drop *d)
{
    for (;;) {
        lock_take(&awaited.lock);
        uint64_t ends = awaited.ends;
        lock_drop(&awaited.lock);
        if (!one_is_awaited(d))
            return;
        lock_take(&awaited.lock);
        while (awaited.ends == ends)
            lock_wait(&awaited.lock, &awaited.ended, 0);
        lock_drop(&awaited.lock);
    }
}

static int by_offset(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    return x->off < y->off ? -1 : x->off > y->off;
}

static void drop_span(struct inode *i, uint64_t off, uint64_t end)
{
    if (off < end)
        notify_pages_now(i->nodeid, (int64_t)off, end > INT64_MAX ? 0 : (int64_t)(end - off));
}

/* All pages but those that are held. */
static void drop_gaps(struct drop *d)
{
    uint64_t at = d->all.off;
    qsort(d->held, d->n, sizeof(*d->held), by_offset);
    for (unsigned k = 0; k < d->n; k++) {
        drop_span(d->i, at, MIN(d->held[k].off, d->all.end));
        at = MAX(at, d->held[k].end);
    }
    drop_span(d->i, at, d->all.end);
}

void page_cache_drop(struct inode *i, uint64_t off, uint64_t len)
{
    struct drop d = {.i = i,
                     .all = {off / PAGE * PAGE, len ? (off + len + PAGE - 1) / PAGE * PAGE : UINT64_MAX}};
    lock_assert_none();
    mark(&d);
    wait_for_quick();
    wait_for_answers(&d);
    drop_gaps(&d);
    page_cache_drop_attr(i); /* the pages may all have been held */
    free(d.held);
}

/* An answer that names a new inode has been given, and the kernel has not made the inode yet: it would come with
 * attributes that are void.  The kernel says no word when it has, but forgets the node id if it gives up.  An answer that
 * is still to be given is not waited for: it may wait for this, and is void then. */
void page_cache_drop_attr(struct inode *i)
{
    const struct timespec moment = {.tv_nsec = 200000};
    while (notify_attr_now(i->nodeid) == -ENOENT && inode_is_given(i))
        nanosleep(&moment, NULL);
}

/* A page with the old end has zeros after it, which would be read as bytes of the file.  Not where the kernel's size may have
 * to become less: only the answer with the attributes does that, and the kernel would drop it. */
static void drop_end(struct inode *i, uint64_t size)
{
    uint64_t told = i->told_size;
    if (told < size && !i->may_be_larger)
        page_cache_drop(i, told, size - told);
}

void page_cache_grow(struct inode *i, uint64_t size, char last)
{
    drop_end(i, size);
    raise_size(i, size, last);
}

/* True: a request that holds this byte's page raises the size when it has been answered. */
static bool grow_later(struct inode *i, uint64_t size, char last)
{
    lock_take(&i->lock);
    struct page_use *u = i->page_uses;
    while (u && (u->ending || size <= u->off || size > u->end))
        u = u->next;
    if (u) {
        u->size = size;
        u->last = last;
    }
    lock_drop(&i->lock);
    return u;
}

void page_cache_grow_beside(struct inode *i, uint64_t size, char last)
{
    if (grow_later(i, size, last))
        return;
    raise_size(i, size, last);
    page_cache_drop(i, size - 1, 1);
}
