/* fetch.c - the reader's side of clean chunks: a range of bytes as flights of chunks (flight.h).
 *
 *   up to 8 chunks:  one flight each, begun or joined
 *          |
 *          v
 *   wait for the next one whose bytes are here, copy them --all--> the next 8
 *
 * A call waits for all its flights at once, in flight_next, until its deadline.  It waits for a buffer only
 * while it has no flight.
 */
#include "placement/chunks/fetch.h"

#include <errno.h>
#include <string.h>

#include "placement/chunks/filler.h"
#include "placement/chunks/flight.h"
#include "placement/chunks/owner.h"
#include "placement/chunks/serve.h"
#include "placement/chunks/working.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"

#define WINDOW FLIGHT_READERS

struct range {
    struct file *f;
    const struct fetch *want;
    uint64_t end; /* of the wanted bytes that exist */
    struct fetched *from;
    struct flight_call call;
};

/* The part of the range that is in chunk i: [begin, end). */
static void part_of(const struct range *r, uint64_t i, uint64_t *begin, uint64_t *end)
{
    uint64_t size = store_chunk_size();
    *begin = MAX(i * size, r->want->off);
    *end = MIN((i + 1) * size, r->end);
}

/* ---- one chunk is here ---- */

/* Bytes that another call fetched count as local, so that each byte that came counts once: the handle for
 * which they came has the credit for them. */
static void count_source(const struct flight_reader *p, struct fetched *from, uint64_t n)
{
    if (p->led && p->source == FROM_PEER)
        from->peer += n;
    else if (p->led && p->source == FROM_PFS)
        from->pfs += n;
    else
        from->local += n;
    from->early += p->early ? n : 0;
}

static void hand_over(const struct range *r, const struct flight_reader *p, uint64_t i)
{
    uint64_t begin, end;
    part_of(r, i, &begin, &end);
    memcpy((uint8_t *)r->want->buf + (begin - r->want->off),
           p->chunk->data + (begin - i * store_chunk_size()), end - begin);
    count_source(p, r->from, end - begin);
}

struct part {
    struct flight_reader reader;
    uint64_t index;
};

/* Takes what a reader got that need not wait any more. */
static int take(const struct range *r, struct flight_reader *p)
{
    int err = p->err;
    if (!r->want->buf)
        err = err == -EBUSY ? -ESTALE : err;
    else if (!err)
        hand_over(r, p, container_of(p, struct part, reader)->index);
    flight_put(p);
    return err;
}

/* ---- the flights of one window ---- */

static struct part part_for(const struct range *r, const struct chunk_key *key, uint64_t looked)
{
    uint64_t begin, end;
    part_of(r, key->index, &begin, &end);
    bool takes = r->want->buf;
    return (struct part){.index = key->index,
                         .reader = {.file = r->f,
                                    .idle = r->want->idle,
                                    .takes = takes,
                                    .ahead = r->from->ahead,
                                    .rest = chunk_key_len(key) - (takes ? end - begin : 0),
                                    .looked = looked}};
}

/* Is it to be brought into the store? */
static bool is_to_come(const struct range *r, const struct chunk_key *key)
{
    uint64_t off, len;
    if (r->want->owned && !owner_is_here(key->fid, key->index))
        return false;
    return store_missing(r->f, key->index * store_chunk_size(), chunk_key_len(key), &off, &len);
}

/* Joins the flight of this chunk or begins one.  -EAGAIN: there is no buffer for a new flight, and the call
 * does not wait for one as it has other flights; -ETIMEDOUT: no buffer became free in time. */
static int begin_part(struct range *r, const struct chunk_key *key, struct part *p)
{
    size_t size = store_chunk_size();
    if (flight_join(&r->call, key, &p->reader, chunk_try(ROOM_ASK, size)))
        return 0;
    if (r->call.n)
        return -EAGAIN;
    struct chunk *c = chunk_wait(ROOM_ASK, size, r->want->end_ms);
    return c && flight_join(&r->call, key, &p->reader, c) ? 0 : -ETIMEDOUT;
}

/* Begins or joins flights from chunk key->index on, as many as the window and the buffers allow; moves the
 * index on. */
static int begin_window(struct range *r, struct chunk_key *key, struct part *parts)
{
    while (key->index * store_chunk_size() < r->end && r->call.n < WINDOW) {
        uint64_t looked = r->want->buf ? r->want->looked : flight_ended(r->f->fid);
        if (r->want->buf || is_to_come(r, key)) {
            struct part *p = &parts[r->call.n];
            *p = part_for(r, key, looked);
            int err = begin_part(r, key, p);
            if (err)
                return err == -EAGAIN ? 0 : err;
        }
        key->index++;
    }
    return 0;
}

static int fetch_window(struct range *r, struct chunk_key *key)
{
    struct part parts[WINDOW];
    int err = begin_window(r, key, parts);
    while (!err && r->call.n) {
        struct flight_reader *p = flight_next(&r->call, r->want->end_ms);
        err = p ? take(r, p) : -ETIMEDOUT;
    }
    flight_leave(&r->call);
    return err;
}

/* ---- readers come first ---- */

static struct {
    pthread_once_t once;
    struct lock lock;       /* RANK_LEAF */
    pthread_cond_t none;    /* no reader waits */
    _Atomic unsigned waiting; /* readers; goes to 0 with the lock */
} readers = {.once = PTHREAD_ONCE_INIT};

static void readers_init(void)
{
    lock_init(&readers.lock, RANK_LEAF);
    lock_cond_init(&readers.none);
}

static void reader_begins(void)
{
    pthread_once(&readers.once, readers_init);
    readers.waiting++;
}

static void reader_ends(void)
{
    lock_take(&readers.lock);
    if (!--readers.waiting)
        pthread_cond_broadcast(&readers.none);
    lock_drop(&readers.lock);
}

void fetch_yield(void)
{
    pthread_once(&readers.once, readers_init);
    lock_take(&readers.lock);
    while (readers.waiting)
        lock_wait(&readers.lock, &readers.none, 0);
    lock_drop(&readers.lock);
}

/* ---- a range ---- */

uint64_t fetch_looks(struct file *f)
{
    return flight_ended(f->fid);
}

int fetch_range(struct file *f, const struct fetch *want, size_t *got)
{
    struct fetched unused = {0};
    struct range r = {.f = f,
                      .want = want,
                      .end = MIN(want->off + want->len, want->v.size),
                      .from = want->from ? want->from : &unused};
    if (got)
        *got = 0;
    if (want->off >= r.end)
        return 0;
    struct chunk_key key = {
        .fid = f->fid, .index = want->off / store_chunk_size(), .version = want->v};
    int err = 0;
    if (want->buf)
        reader_begins();
    flight_call_init(&r.call);
    while (!err && key.index * store_chunk_size() < r.end)
        err = fetch_window(&r, &key);
    flight_call_destroy(&r.call);
    if (want->buf)
        reader_ends();
    if (!err && got)
        *got = r.end - want->off;
    return err;
}

void fetch_start(void)
{
    filler_start();
    serve_start();
}

void fetch_stop(void)
{
    serve_stop();
    working_stop();
    filler_stop();
}
