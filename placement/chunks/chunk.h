/* chunk.h - a chunk's bytes in memory, shared by all calls that wait for them, and the memory that such
 * buffers may take.
 *
 * Any thread but the network thread may make one; any thread may drop one.
 */
#ifndef EDDY_PLACEMENT_CHUNKS_CHUNK_H
#define EDDY_PLACEMENT_CHUNKS_CHUNK_H

#include "transport/base.h"

/* Names a chunk: number `index` of the file in this version. */
struct chunk_key {
    struct fid fid;
    uint64_t index;
    struct version version;
};
bool chunk_key_eq(const struct chunk_key *a, const struct chunk_key *b);
uint64_t chunk_key_hash(const struct chunk_key *k);
/* How many bytes the chunk has: the chunk size, fewer at the end of the file, 0 beyond it. */
size_t chunk_key_len(const struct chunk_key *k);

/* What a buffer is for.  Each purpose has memory of its own; else two nodes with many requests to each other
 * would wait for each other.  A buffer of one room waits only for what ends by itself, or for buffers of the
 * rooms below it in this list.  Readers of this node and FETCHes share a flight's buffer of either room: they
 * copy or send it at once. */
enum chunk_room {
    ROOM_RANGE, /* a claimant's answer: may wait for a page that it fetches */
    ROOM_ASK,   /* an answer that this node waits for, or its own read of the PFS */
    ROOM_SERVE, /* an owner's answer: waits for the PFS, and until it is sent */
    ROOMS,
};
/* Sets the bytes that each room may take: a quarter of --memory.  Before the first chunk; default 64 MiB. */
void chunk_rooms(uint64_t memory);

struct chunk {
    _Atomic unsigned refs;
    enum chunk_room room;
    bool pooled; /* data is a peer_buffer, else malloc'd */
    size_t size;
    uint8_t *data;
    /* of the bytes, once they are here */
    size_t len;
    uint64_t hash;
    bool racy; /* read while the version was racy (transport/fid.h) */
};
/* Waits for room; the caller must hold no other chunk of this room.  NULL: end_ms (boot_ms; 0: never) came
 * first. */
struct chunk *chunk_wait(enum chunk_room room, size_t size, uint64_t end_ms);
/* Waits for room as long as it takes. */
struct chunk *chunk_new(enum chunk_room room, size_t size);
struct chunk *chunk_try(enum chunk_room room, size_t size); /* NULL: no room now */
struct chunk *chunk_ref(struct chunk *c);
void chunk_put(struct chunk *c); /* NULL is ignored */
/* For struct msg: free_data with the chunk as free_arg drops one reference. */
void chunk_free_data(void *arg, void *data);

#endif
