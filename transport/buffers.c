/* buffers.c - page-aligned buffers, bounded by --memory.
 *
 *     [ page: struct head ][ size bytes, aligned to 4096 ]
 *
 * Buffers whose size is a power of two (as that of chunks) go to a list when they are freed, so that a
 * stream of chunks does not map and fault in fresh memory for each.  Buffers in these lists count as
 * memory, too.  They are given back to the system when buffers of other sizes need the room.
 *
 * Buffers for data that this node asks of others (peer_buffer) leave an eighth of the memory to buffers with
 * which it answers others (peer_buffer_serving, peer_buffer_try).  Otherwise two nodes with many requests to
 * each other would wait for each other.  An answer's buffer becomes free without another buffer, because the
 * asker has the memory for the answer already.
 *
 *     | bodies  |             answers                  |
 *     |         |         |  answers and questions     |
 *     |   1/8   |   1/8   |            3/4             |  of --memory
 *
 * Only bodies of messages use the first eighth: a view's reports must not wait for reads and writes, since
 * some of these wait for the view.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/lock.h"
#include "transport/loop.h"
#include "transport/peer_in.h"

#define PAGE           4096
#define MAGIC          0x6675625964644525ull
#define DEFAULT_MEMORY (256u << 20)
#define CLASSES        25 /* up to 16 MiB = 2^24 */
#if defined(__SANITIZE_ADDRESS__)
#define KEEP 0 /* so that use after free is seen */
#else
#define KEEP 1
#endif

struct head {
    uint64_t magic;
    size_t total;      /* with the head's page */
    bool body;
    struct head *next; /* free list */
};

static struct {
    pthread_once_t once;
    struct lock lock;
    pthread_cond_t freed;
    uint64_t limit;      /* without that of bodies */
    uint64_t used, kept; /* used + kept <= limit, but for peer_buffer_always */
    uint64_t bodies_limit, bodies;
    struct head *free[CLASSES];
    _Atomic bool net_waits; /* the network thread wants to know of the next free */
} pool = {.once = PTHREAD_ONCE_INIT};

static void set_limits(uint64_t memory)
{
    pool.bodies_limit = memory / 8;
    pool.limit = memory - pool.bodies_limit;
}

static void pool_init(void)
{
    lock_init(&pool.lock, RANK_LEAF);
    lock_cond_init(&pool.freed);
    set_limits(DEFAULT_MEMORY);
}

/* The list of buffers of this total, or -1. */
static int class_of(size_t total)
{
    size_t size = total - PAGE;
    if (!KEEP || size < PAGE || size & (size - 1))
        return -1;
    int c = __builtin_ctzll(size);
    return c < CLASSES ? c : -1;
}

/* With the lock: gives kept buffers back to the system until `total` more fit.  */
static void make_room(size_t total)
{
    for (int c = CLASSES - 1; c >= 0; c--) {
        while (pool.free[c] && pool.used + pool.kept + total > pool.limit) {
            struct head *h = pool.free[c];
            pool.free[c] = h->next;
            pool.kept -= h->total;
            free(h);
        }
    }
}

/* With the lock.  Never NULL. */
static void *take(size_t total)
{
    int c = class_of(total);
    struct head *h = c >= 0 ? pool.free[c] : NULL;
    if (h) {
        pool.free[c] = h->next;
        pool.kept -= total;
    } else {
        make_room(total);
        h = aligned_alloc(PAGE, total);
        if (!h)
            die("out of memory for a buffer of %zu bytes", total);
    }
    pool.used += total;
    h->magic = MAGIC;
    h->total = total;
    h->body = false;
    return (char *)h + PAGE;
}

static size_t total_of(size_t size)
{
    return PAGE + (size + PAGE - 1) / PAGE * PAGE;
}

/* With the lock.  A single buffer is always granted: a bound below one chunk must not hang. */
static bool fits(size_t total, uint64_t limit)
{
    return !pool.used || pool.used + total <= limit;
}

static void *take_waiting(size_t size, bool serving)
{
    pthread_once(&pool.once, pool_init);
    if (loop_is_here())
        die("peer_buffer in the network thread");
    size_t total = total_of(size);
    lock_take(&pool.lock);
    while (!fits(total, serving ? pool.limit : pool.limit / 7 * 6))
        lock_wait(&pool.lock, &pool.freed, 0);
    void *buf = take(total);
    lock_drop(&pool.lock);
    return buf;
}

void *peer_buffer(size_t size)
{
    return take_waiting(size, false);
}

void *peer_buffer_serving(size_t size)
{
    return take_waiting(size, true);
}

void *peer_buffer_try(size_t size)
{
    pthread_once(&pool.once, pool_init);
    size_t total = total_of(size);
    lock_take(&pool.lock);
    void *buf = fits(total, pool.limit) ? take(total) : NULL;
    lock_drop(&pool.lock);
    return buf;
}

void *peer_buffer_always(size_t size)
{
    pthread_once(&pool.once, pool_init);
    lock_take(&pool.lock);
    void *buf = take(total_of(size));
    lock_drop(&pool.lock);
    return buf;
}

static void *try_or_tell(void *(*try)(size_t size), size_t size)
{
    void *buf = try(size);
    if (buf)
        return buf;
    atomic_store(&pool.net_waits, true);
    return try(size); /* what was freed before the store was not told */
}

void *peer_buffer_try_or_tell(size_t size)
{
    return try_or_tell(peer_buffer_try, size);
}

/* These are not kept for the next one: bodies of this size are few. */
static void *body_try(size_t size)
{
    pthread_once(&pool.once, pool_init);
    size_t total = total_of(size);
    lock_take(&pool.lock);
    bool fits = !pool.bodies || pool.bodies + total <= pool.bodies_limit;
    pool.bodies += fits ? total : 0;
    lock_drop(&pool.lock);
    struct head *h = fits ? aligned_alloc(PAGE, total) : NULL;
    if (!h && fits)
        die("out of memory for a message of %zu bytes", size);
    if (!h)
        return NULL;
    *h = (struct head){.magic = MAGIC, .total = total, .body = true};
    return (char *)h + PAGE;
}

void *peer_body_try_or_tell(size_t size)
{
    return try_or_tell(body_try, size);
}

void peer_buffer_free(void *buf)
{
    if (!buf)
        return;
    struct head *h = (struct head *)(void *)((char *)buf - PAGE);
    if (h->magic != MAGIC)
        die("peer_buffer_free of what is no buffer");
    h->magic = 0;
    int c = h->body ? -1 : class_of(h->total);
    lock_take(&pool.lock);
    *(h->body ? &pool.bodies : &pool.used) -= h->total;
    if (c >= 0 && pool.used + pool.kept + h->total <= pool.limit) {
        pool.kept += h->total;
        h->next = pool.free[c];
        pool.free[c] = h;
        h = NULL;
    }
    pthread_cond_broadcast(&pool.freed);
    lock_drop(&pool.lock);
    free(h);
    if (atomic_load(&pool.net_waits) && atomic_exchange(&pool.net_waits, false))
        loop_post(peer_buffers_freed, NULL);
}

void peer_buffer_free_data(void *arg, void *data)
{
    (void)arg;
    peer_buffer_free(data);
}

void buffers_start(uint64_t memory)
{
    pthread_once(&pool.once, pool_init);
    lock_take(&pool.lock);
    set_limits(memory ? memory : DEFAULT_MEMORY);
    lock_drop(&pool.lock);
}

void buffers_stop(void)
{
    lock_take(&pool.lock);
    for (int c = 0; c < CLASSES; c++) {
        while (pool.free[c]) {
            struct head *h = pool.free[c];
            pool.free[c] = h->next;
            pool.kept -= h->total;
            free(h);
        }
    }
    lock_drop(&pool.lock);
    atomic_store(&pool.net_waits, false);
}
