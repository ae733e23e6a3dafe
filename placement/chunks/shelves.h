/* shelves.h - chunks in memory that other nodes read one-sided (transport/onesided.h), and the directory by which they find them.
 *
 *     | directory: buckets of SHELF_WAYS entries | shelves: head and one chunk each |
 *
 * A node's directory has entries for chunks that it owns: where the bytes are (its own shelves and those of other nodes), and their
 * hash.  A reader gets the bucket of the chunk's owner, then a shelf, and then checks the bytes.  The owner and the shelf's node may
 * change both at any time, and in which order a get reads bytes is not defined.  So:
 *
 *     entry    valid by a hash of its own: one that was changed during a get counts as none
 *     shelf     the chunk's hash from the entry decides; the token, which changes with each use of the shelf, is a quick no
 *
 * A shelf is written in this order: token 0, bytes, token.  An entry goes before its shelf is used again.
 * Source of the order: Arai, Ishikawa, Hori, cooperative caching by RDMA alone, 2.2.1.
 *
 * No messages, no threads of its own: shelves_there.c and shelves_here.c use it.
 */
#ifndef EDDY_PLACEMENT_CHUNKS_SHELVES_H
#define EDDY_PLACEMENT_CHUNKS_SHELVES_H

#include "placement/chunks/chunk.h"
#include "transport/view.h"

#define SHELF_WAYS   4 /* entries of a bucket */
#define SHELF_PLACES 6 /* of an entry */

struct shelf_place {
    uint64_t node, token;
    uint32_t shelf, unused;
};

/* As it is in memory; all numbers in the processor's order: nodes of a session have the same (transport/hello.h). */
struct shelf_entry {
    uint64_t check; /* of all that follows; 0: no entry */
    struct fid fid;
    uint64_t index, version; /* a hash of it */
    uint64_t hash;           /* of the chunk's bytes */
    uint32_t len, nplaces;
    struct shelf_place place[SHELF_PLACES];
    uint8_t unused[56];
};
struct shelf_head {
    uint64_t token; /* 0: its bytes are not to be used */
    uint8_t unused[56];
};

/* Where all that is; it follows from the length of the memory and the chunk size, which nodes of a session have in common. */
struct shelves_shape {
    uint64_t len;
    size_t chunk; /* bytes */
    uint32_t nbuckets, nshelves;
};
/* False: the memory is too short for one shelf. */
bool shelves_shape(uint64_t len, size_t chunk, struct shelves_shape *out);
uint64_t shelves_bucket_at(const struct shelves_shape *s, const struct chunk_key *key);
uint64_t shelves_shelf_at(const struct shelves_shape *s, uint32_t shelf); /* of its head */

/* ---- another node's: by a function that gets len bytes at off, 0 or -errno ---- */
typedef int (*shelves_get)(void *arg, uint64_t off, void *buf, size_t len);
/* The chunk's entry in the directory of its owner.  -ENOENT: none; or get's error. */
int shelves_find(const struct shelves_shape *s, const struct chunk_key *key, shelves_get get, void *arg, struct shelf_entry *out);
/* The chunk's bytes, e->len, from a shelf.  -ENOENT: another token; -EBADMSG: the bytes are not those of the entry: the shelf was
 * written meanwhile; -EINVAL: there is no such shelf; or get's error. */
int shelves_read(const struct shelves_shape *s, const struct shelf_entry *e, const struct shelf_place *p, shelves_get get, void *arg, void *buf);

/* ---- this node's: any thread, with locks down to RANK_POOL ---- */
struct shelves;
struct shelves *shelves_new(void *memory, uint64_t len, size_t chunk, uint64_t self); /* NULL: too short */
void shelves_free(struct shelves *s);
const struct shelves_shape *shelves_shape_of(const struct shelves *s);

/* The chunk's bytes are in a shelf from now on; *place says in which.  The one that was used least of late is used again: *had, and
 * its chunk in *gone.  False: the chunk is in a shelf already, or all shelves are being written. */
bool shelves_put(struct shelves *s, const struct chunk_key *key, const void *bytes, size_t len, struct shelf_place *place, bool *had,
               struct chunk_key *gone);
/* Its shelf was read. */
void shelves_used(struct shelves *s, const struct chunk_key *key);
/* Its bytes are in no shelf here any more.  False: they were in none. */
bool shelves_drop(struct shelves *s, struct fid fid, uint64_t index);

/* ---- this node's directory ---- */
/* The entry says that the chunk is there, too; a new one comes in the place of the oldest of its bucket.  False: its entry says that
 * it has other bytes, or has no room. */
bool shelves_enter(struct shelves *s, const struct chunk_key *key, uint64_t hash, size_t len, const struct shelf_place *place);
/* The same, said by another node: of a chunk without an entry it makes none, as nobody here knows what the bytes should be. */
bool shelves_join(struct shelves *s, const struct chunk_key *key, uint64_t hash, size_t len, const struct shelf_place *place);
/* That node does not have it any more. */
void shelves_leave(struct shelves *s, struct fid fid, uint64_t index, uint64_t node);
/* No entry says any more that a node has it that is not in the view (NULL: none is). */
void shelves_keep_members(struct shelves *s, const struct view *v);
void shelves_strike(struct shelves *s, struct fid fid, uint64_t index); /* no entry of it any more */
unsigned shelves_places(struct shelves *s, const struct chunk_key *key); /* that the entry has */
unsigned shelves_in_use(struct shelves *s);

#endif
