/* stream.c - read-ahead per handle.
 *
 * Sequential is: reads that move the furthest offset on, each within SLACK of it (the kernel's
 * read-ahead sends several requests at once, and they may come out of order).  After START bytes in
 * order the next chunk is fetched when a chunk is entered, then two, then four.  Any read elsewhere
 * begins anew, so random access never causes a fetch.
 *
 * Chunks that are in the store cost a look at their page bits, once per chunk.  A store without
 * room ends the read-ahead of this handle: what is fetched could not be kept.
 */
#include "placement/stream.h"

#include <errno.h>
#include <stdlib.h>

#include "placement/fetch.h"
#include "placement/store.h"
#include "transport/loop.h"

#define SLACK      (1u << 20)
#define START      (256u << 10)
#define WINDOW     4           /* chunks ahead, at most */
#define WINDOW_MAX (16u << 20) /* ... and bytes */
#define JOBS       16          /* fetches ahead, of all handles: pool_waiters is for applications */

struct stream {
    _Atomic unsigned refs; /* the handle's and one per job */
    struct file *f;
    struct lock lock; /* RANK_LEAF */
    uint64_t end;     /* the furthest offset read */
    uint64_t run;     /* bytes read in order until there */
    uint64_t asked;   /* chunks below are dealt with */
    unsigned window;
    bool closed; /* or no room in the store */
    _Atomic uint64_t ahead_peer, ahead_pfs; /* fetched by this handle and not read yet, bytes */
};

struct job {
    struct stream *s;
    uint64_t index;
};

static _Atomic unsigned jobs;

static void stream_put(struct stream *s)
{
    if (atomic_fetch_sub(&s->refs, 1) != 1)
        return;
    file_put(s->f);
    lock_destroy(&s->lock);
    free(s);
}

struct stream *stream_new(struct file *f)
{
    struct stream *s = xcalloc(1, sizeof(*s));
    s->refs = 1;
    s->f = file_ref(f);
    lock_init(&s->lock, RANK_LEAF);
    return s;
}

static void set_closed(struct stream *s)
{
    lock_take(&s->lock);
    s->closed = true;
    lock_drop(&s->lock);
}

void stream_close(struct stream *s)
{
    set_closed(s);
    stream_put(s);
}

/* ---- fetching ---- */

static void run_job(void *arg)
{
    struct job *j = arg;
    struct stream *s = j->s;
    lock_take(&s->lock);
    bool closed = s->closed;
    lock_drop(&s->lock);
    if (!closed) {
        struct file_info info;
        store_info(s->f, &info);
        uint64_t size = store_chunk_size();
        struct fetched from = {0};
        int err = 0;
        if (info.base_known)
            err = fetch_range(s->f, &info.base, j->index * size, size, NULL, NULL, &from);
        if (err == -ENOSPC)
            set_closed(s); /* other errors are the reader's to see when it comes there */
        atomic_fetch_add(&s->ahead_peer, from.peer);
        atomic_fetch_add(&s->ahead_pfs, from.pfs);
    }
    atomic_fetch_sub(&jobs, 1);
    stream_put(s);
    free(j);
}

static bool missing(struct file *f, const struct file_info *info, uint64_t index)
{
    uint64_t size = store_chunk_size(), end = MIN(info->size, info->base_end), miss_off, miss_len;
    return index * size < end &&
           store_missing(f, index * size, MIN(size, end - index * size), &miss_off, &miss_len);
}

/* Begins fetches of chunks [first, last].  Those that find no free job are left to the reader. */
static void fetch_ahead(struct stream *s, uint64_t first, uint64_t last)
{
    struct file_info info;
    store_info(s->f, &info);
    for (uint64_t i = first; info.base_known && i <= last; i++) {
        if (!missing(s->f, &info, i))
            continue;
        if (atomic_fetch_add(&jobs, 1) >= JOBS) {
            atomic_fetch_sub(&jobs, 1);
            return;
        }
        struct job *j = xcalloc(1, sizeof(*j));
        *j = (struct job){.s = s, .index = i};
        atomic_fetch_add(&s->refs, 1);
        pool_submit(pool_waiters, run_job, j);
    }
}

/* ---- watching ---- */

static void begin_anew(struct stream *s, uint64_t end)
{
    s->end = end;
    s->run = 0;
    s->asked = 0;
    s->window = 0;
}

/* With the lock: the chunks to fetch now, if any. */
static bool plan(struct stream *s, uint64_t off, size_t len, uint64_t *first, uint64_t *last)
{
    uint64_t size = store_chunk_size(), end = off + len;
    if (off > s->end + SLACK || end + SLACK < s->end) {
        begin_anew(s, end);
        return false;
    }
    if (end <= s->end)
        return false;
    bool enters = !s->end || (end - 1) / size != (s->end - 1) / size;
    s->run += end - s->end;
    s->end = end;
    if (s->run < START || s->closed)
        return false;
    if (enters || !s->window)
        s->window = MAX(1u, MIN(MIN(2 * s->window, WINDOW), WINDOW_MAX / (unsigned)size));
    uint64_t here = (end - 1) / size;
    *first = MAX(here + 1, s->asked);
    *last = here + s->window;
    if (*first > *last)
        return false;
    s->asked = *last + 1;
    return true;
}

void stream_saw(struct stream *s, uint64_t off, size_t len)
{
    uint64_t first, last;
    if (!len)
        return;
    lock_take(&s->lock);
    bool go = plan(s, off, len, &first, &last);
    lock_drop(&s->lock);
    if (go)
        fetch_ahead(s, first, last);
}

/* ---- counting ---- */

/* Takes up to n bytes of what was fetched ahead. */
static uint64_t take_ahead(_Atomic uint64_t *ahead, uint64_t n)
{
    uint64_t have = atomic_load_explicit(ahead, memory_order_relaxed);
    while (have && !atomic_compare_exchange_weak(ahead, &have, have - MIN(have, n)))
        ;
    return MIN(have, n);
}

void stream_count(struct stream *s, const struct fetched *from)
{
    uint64_t peer = take_ahead(&s->ahead_peer, from->local);
    uint64_t pfs = take_ahead(&s->ahead_pfs, from->local - peer);
    atomic_fetch_add(&s->ahead_peer, from->ahead_peer);
    atomic_fetch_add(&s->ahead_pfs, from->ahead_pfs);
    count(read_local_bytes, from->local - peer - pfs);
    count(read_peer_bytes, from->peer + peer);
    count(read_pfs_bytes, from->pfs + pfs);
}
