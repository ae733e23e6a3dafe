/* shelves_here.h - what this node lets others read one-sided: chunks that are wanted again and again.
 *
 *     a chunk that it owns, served for the second time --> shelf, and entry in its directory
 *     a chunk that it read one-sided, of few places    --> shelf; news to the owner --> another place in the owner's entry
 *     the chunk leaves the store, or its version ends  --> no entry, no shelf
 *
 * So what is hot comes from several nodes, as by messages (places.h).  Which shelves are read, their readers tell in batches (places.h),
 * so that recency and lulls know of it.  Without memory (transport/onesided.h) all calls do nothing.
 */
#ifndef EDDY_PLACEMENT_CHUNKS_SHELVES_HERE_H
#define EDDY_PLACEMENT_CHUNKS_SHELVES_HERE_H

#include "placement/chunks/chunk.h"
#include "placement/chunks/shelves.h"
#include "transport/view.h"

void shelves_here_start(uint64_t self); /* after onesided_start, before peer_start */
void shelves_here_stop(void);           /* before onesided_stop; no call is under way */
/* Registered before: other nodes have read this node's shelves. */
void shelves_here_on_activity(void (*begin)(void), void (*end)(void));
/* Nodes that are not in the view (NULL: none) have nothing any more.  Network thread. */
void shelves_here_adopted(const struct view *v);

/* These: any thread, with locks down to RANK_POOL. */
/* The chunk was sent to another node.  c: its bytes, with their hash. */
void shelves_here_served(const struct chunk_key *key, const struct chunk *c);
/* This node read it one-sided: its owner's entry has so many places. */
void shelves_here_got(const struct chunk_key *key, const struct chunk *c, uint64_t owner, unsigned nplaces);
void shelves_here_left(struct fid fid, uint64_t index); /* it has left the store */

struct shelves_figures {
    uint64_t bytes; /* of memory; 0: there is none */
    unsigned shelves, in_use;
};
void shelves_here_figures(struct shelves_figures *out);

#endif
