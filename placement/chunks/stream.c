/* stream.c - fetches chunks before a handle's readers need them.
 *
 * pattern.c says which chunks the reads will want.  These go on a short list of the handle.  Jobs of
 * pool_waiters fetch them, nearest first; each job fetches a range of chunks, and asks all their owners at
 * once (fetch.c).  If no job is free, the list waits.  Chunks that do not fit on the list are left to the
 * reader.
 *
 * For a chunk that is in the store, only its page bits are looked at.  If the store has no room, the
 * read-ahead of this handle ends, since fetched chunks could not be kept.
 *
 * The bytes ahead of all reads of a handle are limited to WINDOW_BYTES and a part of the cache (a chunk must
 * still be there when its reader comes).  All handles that have read lately part what hints leave of the cache
 * (GUESSED_PART; foresight/prefetch_room.c has the rest).  Those in memory are limited by the room of fetch.c's
 * buffers.
 *
 * What is guessed is read soon, so it comes before a flush in a lull, as a hint does that is read soon
 * (stream_on_fetch; foresight/budget.c).
 *
 * A job waits for a range for T_open at most: nodes or a PFS that hang must not stop the read-ahead of other
 * handles.
 */
#include "placement/chunks/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "placement/chunks/pattern.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "transport/loop.h"
#include "transport/times.h"

#define WINDOW       16u         /* chunks ahead, at most */
#define WINDOW_BYTES (16u << 20) /* bytes ahead, at most */
#define CACHE_PART   16          /* bytes ahead, at most: the cache's limit divided by this */
#define GUESSED_PART 8           /* of all handles together */
#define LATELY_MS    1000
#define TURNS_KNOWN  10
#define WHOLE_BYTES  (4u << 20)  /* a file of so many bytes and chunks at most is fetched at open */
#define WHOLE_CHUNKS 4
#define WANTS        32
#define JOBS         16 /* of all handles: pool_waiters is for applications */

struct stream {
    _Atomic unsigned refs; /* the handle's and one per job */
    struct file *f;
    struct fetched_ahead ahead; /* bytes that this handle has fetched and not read yet */

    struct lock lock; /* RANK_LEAF: the members below */
    struct pattern pattern;
    struct pattern_ahead wants[WANTS]; /* to be fetched, next one first */
    unsigned nwants;
    bool closed; /* closed, or the store had no room */
    _Atomic uint64_t turn; /* of its last read; without the lock */
};

static _Atomic unsigned jobs;
static void (*on_begin)(void), (*on_end)(void);

/* Handles that have read, in turns of LATELY_MS. */
static struct {
    _Atomic uint64_t turn;
    _Atomic unsigned now, before; /* in this turn, and in the last one before in which there were any */
} readers;

void stream_on_fetch(void (*begin)(void), void (*end)(void))
{
    on_begin = begin;
    on_end = end;
}

static void next_turn(uint64_t turn)
{
    uint64_t was = readers.turn;
    if (was >= turn || !atomic_compare_exchange_strong(&readers.turn, &was, turn))
        return;
    unsigned n = atomic_exchange(&readers.now, 0);
    readers.before = turn - was <= TURNS_KNOWN ? n : 0; /* a turn in which nobody read tells nothing */
}

static unsigned readers_lately(void)
{
    return MAX(MAX(readers.now, readers.before), 1u);
}

/* The handle reads now. */
static void reads_lately(struct stream *s)
{
    uint64_t turn = boot_ms() / LATELY_MS;
    if (atomic_exchange_explicit(&s->turn, turn, memory_order_relaxed) == turn)
        return;
    next_turn(turn);
    readers.now++;
}

/* Bytes that one of so many handles may have ahead. */
static uint64_t share(unsigned handles)
{
    struct store_usage u;
    store_usage(&u);
    uint64_t most = MIN(WINDOW_BYTES, u.limit / CACHE_PART);
    return MIN(most, u.limit / GUESSED_PART / handles);
}

static unsigned window(unsigned handles)
{
    return (unsigned)MAX(MIN(share(handles) / store_chunk_size(), WINDOW), 1u);
}

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
    pattern_init(&s->pattern, store_chunk_size(), window(readers_lately()));
    lock_init(&s->lock, RANK_LEAF);
    return s;
}

static void set_closed(struct stream *s)
{
    lock_take(&s->lock);
    s->closed = true;
    s->nwants = 0;
    lock_drop(&s->lock);
}

void stream_close(struct stream *s)
{
    set_closed(s);
    stream_put(s);
}

/* ---- fetching ---- */

static bool next_want(struct stream *s, struct pattern_ahead *want)
{
    lock_take(&s->lock);
    bool any = s->nwants > 0;
    if (any) {
        *want = s->wants[0];
        memmove(&s->wants[0], &s->wants[1], --s->nwants * sizeof(s->wants[0]));
    }
    lock_drop(&s->lock);
    return any;
}

/* How many of the file's bytes are on the PFS, and may have to be fetched; 0: its version is not known. */
static uint64_t fetchable(struct file *f, struct version *v)
{
    struct file_info info;
    store_info(f, &info);
    *v = info.base;
    return info.base_known ? MIN(info.size, info.base_end) : 0;
}

static void run_job(void *arg)
{
    struct stream *s = arg;
    struct pattern_ahead want;
    uint64_t size = store_chunk_size();
    if (on_begin)
        on_begin();
    while (next_want(s, &want)) {
        struct fetched from = {.ahead = &s->ahead};
        struct fetch f = {
            .off = want.first * size, .end_ms = boot_ms() + T_OPEN, .from = &from};
        uint64_t end = MIN(fetchable(s->f, &f.v), (want.last + 1) * size);
        f.len = f.off < end ? end - f.off : 0;
        if (fetch_range(s->f, &f, NULL) == -ENOSPC)
            set_closed(s); /* the reader sees other errors when it comes there */
    }
    if (on_end)
        on_end();
    atomic_fetch_sub(&jobs, 1);
    stream_put(s);
}

static bool missing(struct file *f, const struct pattern_ahead *range)
{
    uint64_t size = store_chunk_size(), off = range->first * size, at, n;
    return store_missing(f, off, (range->last - range->first + 1) * size, &at, &n);
}

/* Begins one job for each range on the list, up to JOBS.  A job ends when the list is empty. */
static void begin_jobs(struct stream *s)
{
    lock_take(&s->lock);
    unsigned n = s->nwants;
    lock_drop(&s->lock);
    for (; n; n--) {
        if (atomic_fetch_add(&jobs, 1) >= JOBS) {
            atomic_fetch_sub(&jobs, 1);
            return;
        }
        atomic_fetch_add(&s->refs, 1);
        pool_submit(pool_waiters, run_job, s);
    }
}

static void fetch_ahead(struct stream *s, const struct pattern_ahead *ranges, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (!missing(s->f, &ranges[i]))
            continue;
        lock_take(&s->lock);
        if (!s->closed && s->nwants < WANTS)
            s->wants[s->nwants++] = ranges[i];
        lock_drop(&s->lock);
    }
    begin_jobs(s);
}

/* ---- watching ---- */

void stream_opened(struct stream *s)
{
    struct version v;
    uint64_t size = fetchable(s->f, &v), chunk = store_chunk_size();
    if (!size || size > WHOLE_BYTES || size > WHOLE_CHUNKS * chunk)
        return;
    reads_lately(s);
    if (size > MAX(share(readers_lately()), chunk))
        return;
    struct pattern_ahead whole = {0, (size - 1) / chunk};
    fetch_ahead(s, &whole, 1);
}

void stream_saw(struct stream *s, uint64_t off, size_t len)
{
    struct pattern_ahead ranges[PATTERN_AHEAD];
    struct version v;
    unsigned n = 0;
    reads_lately(s);
    lock_take(&s->lock);
    struct pattern_stream *p = s->closed ? NULL : pattern_saw(&s->pattern, off, len);
    bool waiting = s->nwants > 0;
    lock_drop(&s->lock);
    if (p) {
        uint64_t size = fetchable(s->f, &v);
        unsigned wide = window(readers_lately());
        lock_take(&s->lock);
        s->pattern.window = wide;
        n = pattern_want(&s->pattern, p, size,
                         ranges); /* reads that other threads noted since then do no harm */
        lock_drop(&s->lock);
    }
    if (n || waiting)
        fetch_ahead(s, ranges, n);
}

/* ---- counting ---- */

struct fetched_ahead *stream_ahead(struct stream *s)
{
    return &s->ahead;
}

/* Takes up to n bytes from the credit. */
static uint64_t take_ahead(_Atomic uint64_t *ahead, uint64_t n)
{
    uint64_t have = atomic_load_explicit(ahead, memory_order_relaxed);
    while (have && !atomic_compare_exchange_weak(ahead, &have, have - MIN(have, n)))
        ;
    return MIN(have, n);
}

void stream_count(struct stream *s, const struct fetched *from)
{
    uint64_t peer = s ? take_ahead(&s->ahead.peer, from->local) : 0;
    uint64_t pfs = s ? take_ahead(&s->ahead.pfs, from->local - peer) : 0;
    count(read_local_bytes, from->local - peer - pfs);
    count(read_peer_bytes, from->peer + peer);
    count(read_pfs_bytes, from->pfs + pfs);
}
