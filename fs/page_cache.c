/* page_cache.c - the requests that use the kernel's pages, and dropping pages beside them (page_cache.h). */
#include "fs/page_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "fs/inode.h"
#include "fs/notify.h"
#include "fs/page_walk.h"
#include "placement/store/store_open.h"
#include "transport/lock.h"

/* ---- requests that never wait ----
 *
 * Each worker has a number that is odd while it serves such a request.  A drop that has seen it odd waits until
 * it has another value.  A worker whose number becomes odd after that sees the change.
 *
 * A worker's number comes into the list with its first such request, and stays there to the daemon's end.  A worker that a
 * drop does not find in the list begins after the change. */

struct quick {
    _Alignas(64) _Atomic uint64_t turn;
    struct quick *next;
};
static struct {
    struct quick *_Atomic first;
    _Atomic unsigned waiting;
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t ended;
} quick = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF},
           .ended = PTHREAD_COND_INITIALIZER};
static _Thread_local struct quick *mine;

static struct quick *enter_list(void)
{
    struct quick *q = aligned_alloc(_Alignof(struct quick), sizeof(*q));
    if (!q)
        die("out of memory for a thread that serves requests of the kernel");
    *q = (struct quick){.next = quick.first};
    while (!atomic_compare_exchange_weak(&quick.first, &q->next, q))
        ;
    return q;
}

void page_quick_begin(void)
{
    if (!mine)
        mine = enter_list();
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
    for (const struct quick *q = quick.first; q; q = q->next)
        wait_for(q);
    quick.waiting--;
}

/* ---- requests that may wait ---- */

static struct {
    struct lock lock; /* RANK_LEAF, inside an inode's */
    pthread_cond_t ended;
    uint64_t ends; /* how many uses that drops waited for have ended */
} awaited = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF},
             .ended = PTHREAD_COND_INITIALIZER};

void page_use_begin(struct inode *i, struct page_use *u, uint64_t off, size_t len, enum page_use_kind kind)
{
    *u = (struct page_use){
        .off = off / PAGE * PAGE, .end = (off + len + PAGE - 1) / PAGE * PAGE, .kind = kind, .brings = UINT64_MAX};
    lock_take(&i->lock);
    u->next = i->page_uses;
    u->prev = &i->page_uses;
    if (u->next)
        u->next->prev = &u->next;
    i->page_uses = u;
    bool go = walk_meet(i, u);
    lock_drop(&i->lock);
    if (go)
        walk_go(i);
}

bool page_use_answer(struct inode *i, struct page_use *u, unsigned tries, bool passing)
{
    lock_take(&i->lock);
    bool again = u->stale && (u->kind == PAGE_READ || u->kind == PAGE_READ_PAST) && tries;
    if (again)
        u->stale = false;
    else
        u->answering = true;
    u->last_try = again && tries == 1;
    u->passing = passing;
    if (!again && u->kind == PAGE_READ && !passing)
        page_cache_ends(i, u->brings);
    lock_drop(&i->lock);
    return !again;
}

/* Has it left pages that are older than a change, or of which no change would be told?  A PAGE_READ has brought its pages by
 * itself. */
static bool leaves_old(const struct page_use *u)
{
    return u->kind != PAGE_READ_PAST && u->answering && (u->stale || u->passing || u->size || (u->left && u->kind != PAGE_READ));
}

/* Inode locked: out of its list. */
static void end_use(struct page_use *u)
{
    *u->prev = u->next;
    if (u->next)
        u->next->prev = u->prev;
    if (!u->awaited)
        return;
    lock_take(&awaited.lock);
    awaited.ends++;
    pthread_cond_broadcast(&awaited.ended);
    lock_drop(&awaited.lock);
}

static void end_late(struct page_use *u)
{
    end_use(u);
    free(u);
}

/* Inode locked.  A copy that takes its place: the request ends before its pages are dropped. */
static struct page_use *copy_use(struct page_use *u)
{
    struct page_use *copy = xmalloc(sizeof(*copy));
    *copy = *u;
    *copy->prev = copy;
    if (copy->next)
        copy->next->prev = &copy->next;
    return copy;
}

void page_use_end(struct inode *i, struct page_use *u)
{
    bool go = false;
    lock_take(&i->lock);
    u->ending = true;
    u->answering |= u->size > 0; /* drops wait for what is told now */
    if (leaves_old(u))
        go = walk_after(i, copy_use(u), end_late);
    else
        end_use(u);
    lock_drop(&i->lock);
    if (go)
        walk_go(i);
}

/* ---- dropping ---- */

/* Inode locked.  The pages of s are about to be dropped: requests that end there from now on say so again.  Until they are dropped,
 * what a page of s has said is told by *d: who raises the size meanwhile drops them, too (first_end). */
static void begin_drop(struct inode *i, struct span s, struct page_drop *d)
{
    uint64_t first = i->first_end;
    while (first >= s.off && first < s.end && !atomic_compare_exchange_weak(&i->first_end, &first, s.end))
        ;
    *d = (struct page_drop){.next = i->page_drops, .end = first >= s.off && first < s.end ? first : UINT64_MAX};
    i->page_drops = d;
}

static void end_drop(struct inode *i, struct page_drop *d)
{
    lock_take(&i->lock);
    struct page_drop **at = &i->page_drops;
    while (*at != d)
        at = &(*at)->next;
    *at = d->next;
    lock_drop(&i->lock);
}

static bool is_in(const struct page_use *u, struct span s)
{
    return u->off < s.end && u->end > s.off;
}

/* Those under way may have bytes that are older than the change. */
static void mark(struct inode *i, struct span s, struct page_drop *d)
{
    lock_take(&i->lock);
    begin_drop(i, s, d);
    for (struct page_use *u = i->page_uses; u; u = u->next) {
        if (!is_in(u, s))
            continue;
        u->stale = true;
        u->awaited |= u->answering;
    }
    lock_drop(&i->lock);
}

static bool one_is_awaited(struct inode *i, struct span s)
{
    bool is = false;
    lock_take(&i->lock);
    for (struct page_use *u = i->page_uses; u && !is; u = u->next)
        is = u->awaited && is_in(u, s);
    lock_drop(&i->lock);
    return is;
}

/* The answers that are awaited have been given, and their pages are dropped. */
static void wait_for_answers(struct inode *i, struct span s)
{
    for (;;) {
        lock_take(&awaited.lock);
        uint64_t ends = awaited.ends;
        lock_drop(&awaited.lock);
        if (!one_is_awaited(i, s))
            return;
        lock_take(&awaited.lock);
        while (awaited.ends == ends)
            lock_wait(&awaited.lock, &awaited.ended, 0);
        lock_drop(&awaited.lock);
    }
}

void page_cache_drop(struct inode *i, uint64_t off, uint64_t len)
{
    struct span s = {off / PAGE * PAGE, len ? (off + len + PAGE - 1) / PAGE * PAGE : UINT64_MAX};
    struct page_drop d;
    lock_assert_none();
    mark(i, s, &d);
    wait_for_quick();
    wait_for_answers(i, s);
    walk_pages(i, s);
    end_drop(i, &d);
    page_cache_drop_attr(i); /* requests may hold all of the pages */
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

/* ---- ends ---- */

void page_cache_ends(struct inode *i, uint64_t end)
{
    uint64_t first = i->first_end;
    while (end < first && !atomic_compare_exchange_weak(&i->first_end, &first, end))
        ;
}

/* The least end of all pages that the kernel has, or is about to get. */
static uint64_t first_end(struct inode *i)
{
    lock_take(&i->lock);
    uint64_t first = i->first_end;
    for (const struct page_drop *d = i->page_drops; d; d = d->next)
        first = MIN(first, d->end);
    lock_drop(&i->lock);
    return first;
}

/* Else what is left of pages goes when somebody opens the file who reads them (fs/kept.c). */
static bool are_pages_read(struct inode *i)
{
    lock_take(&i->lock);
    bool are = i->mode.cached || i->opening;
    lock_drop(&i->lock);
    return are;
}

/* Before a larger size is told.  Only where it must be: the kernel takes no attributes that it asked for before pages were
 * dropped, and nothing else makes its size less. */
static void drop_ends(struct inode *i, uint64_t size)
{
    uint64_t first = first_end(i);
    if (first < size && are_pages_read(i))
        page_cache_drop(i, first, size - first);
}

/* READs that are still to be answered look again, and find this size or a larger one.  The others' pages are dropped: those of
 * drop_ends, or after the answer. */
static void wait_for_ends(struct inode *i, uint64_t size)
{
    lock_take(&i->lock);
    for (struct page_use *u = i->page_uses; u; u = u->next) {
        u->stale |= u->kind == PAGE_READ && u->off < size && !u->answering;
        u->awaited |= walk_brings_end(u, size);
    }
    lock_drop(&i->lock);
    wait_for_answers(i, (struct span){0, size});
}

void page_cache_grow(struct inode *i, uint64_t size, char last)
{
    wait_for_ends(i, size);
    drop_ends(i, size);
    if ((size - 1) % PAGE == 0) /* of a last byte that is its page's first one the kernel makes a page */
        page_cache_ends(i, size);
    walk_byte(i, size, last);
}

void page_cache_grow_beside(struct inode *i, uint64_t size, char last)
{
    drop_ends(i, size);
    if (walk_byte(i, size, last))
        page_cache_drop(i, size - 1, 1);
}
