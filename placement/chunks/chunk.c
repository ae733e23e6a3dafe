/* chunk.c - reference-counted chunk buffers and their rooms.
 *
 * The memory comes from transport/'s bounded buffers (transport/buffers.c), which keep their pages mapped.
 * When these are full, for example of messages that came in, a room still gives out malloc'd memory up to its
 * own limit.  For a carried write holds such a message while it waits for a page to be fetched; without this
 * the write would wait for itself.
 */
#include "placement/chunks/chunk.h"

#include <stdlib.h>

#include "placement/store/store_open.h"
#include "transport/lock.h"
#include "transport/peer.h"

#define ROOM_DEFAULT (64u << 20)

static struct {
    pthread_once_t once;
    struct lock lock;
    pthread_cond_t freed;
    uint64_t limit, used[ROOMS];
} rooms = {.once = PTHREAD_ONCE_INIT};

static void rooms_init(void)
{
    lock_init(&rooms.lock, RANK_LEAF);
    lock_cond_init(&rooms.freed);
    rooms.limit = ROOM_DEFAULT;
}

void chunk_rooms(uint64_t memory)
{
    pthread_once(&rooms.once, rooms_init);
    lock_take(&rooms.lock);
    rooms.limit = memory / 4;
    lock_drop(&rooms.lock);
}

bool chunk_key_eq(const struct chunk_key *a, const struct chunk_key *b)
{
    return a->index == b->index && fid_eq(a->fid, b->fid) && version_eq(&a->version, &b->version);
}

uint64_t chunk_key_hash(const struct chunk_key *k)
{
    uint64_t h = k->fid.lo ^ (k->index * 0x9e3779b97f4a7c15u);
    return h ^ h >> 32;
}

size_t chunk_key_len(const struct chunk_key *k)
{
    uint64_t size = store_chunk_size();
    if (k->index >= (k->version.size + size - 1) / size)
        return 0;
    return MIN(size, k->version.size - k->index * size);
}

/* With the lock.  One buffer is always granted: a limit below one chunk must not hang. */
static bool fits(enum chunk_room room, size_t size)
{
    return !rooms.used[room] || rooms.used[room] + size <= rooms.limit;
}

static struct chunk *make(enum chunk_room room, size_t size)
{
    struct chunk *c = xcalloc(1, sizeof(*c));
    c->refs = 1;
    c->room = room;
    c->size = size;
    c->data = peer_buffer_try(size);
    c->pooled = c->data;
    if (!c->data)
        c->data = xmalloc(size);
    return c;
}

struct chunk *chunk_wait(enum chunk_room room, size_t size, uint64_t end_ms)
{
    pthread_once(&rooms.once, rooms_init);
    lock_assert_none();
    lock_take(&rooms.lock);
    bool ok;
    while (!(ok = fits(room, size))) {
        uint64_t now = end_ms ? boot_ms() : 0;
        if (end_ms && now >= end_ms)
            break;
        lock_wait(&rooms.lock, &rooms.freed, end_ms - now);
    }
    rooms.used[room] += ok ? size : 0;
    lock_drop(&rooms.lock);
    return ok ? make(room, size) : NULL;
}

struct chunk *chunk_new(enum chunk_room room, size_t size)
{
    return chunk_wait(room, size, 0);
}

struct chunk *chunk_try(enum chunk_room room, size_t size)
{
    pthread_once(&rooms.once, rooms_init);
    lock_take(&rooms.lock);
    bool ok = fits(room, size);
    if (ok)
        rooms.used[room] += size;
    lock_drop(&rooms.lock);
    return ok ? make(room, size) : NULL;
}

struct chunk *chunk_ref(struct chunk *c)
{
    atomic_fetch_add(&c->refs, 1);
    return c;
}

void chunk_put(struct chunk *c)
{
    if (!c || atomic_fetch_sub(&c->refs, 1) != 1)
        return;
    if (c->pooled)
        peer_buffer_free(c->data);
    else
        free(c->data);
    lock_take(&rooms.lock);
    rooms.used[c->room] -= c->size;
    pthread_cond_broadcast(&rooms.freed);
    lock_drop(&rooms.lock);
    free(c);
}

void chunk_free_data(void *arg, void *data)
{
    (void)data;
    chunk_put(arg);
}
