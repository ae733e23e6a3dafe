/* shelves_there.h - reads chunks from other nodes' shelves (shelves.h), one-sided. */
#ifndef EDDY_PLACEMENT_CHUNKS_SHELVES_THERE_H
#define EDDY_PLACEMENT_CHUNKS_SHELVES_THERE_H

#include "placement/chunks/chunk.h"

/* The chunk, by its owner's directory, from whichever node that names.  0: c has its bytes, checked; *nplaces: of its entry.  Else c has nothing, and
 * the owner is to be asked by message: -ENOTCONN: one of the two has no such memory, or none is tried now; -ENOENT; -EBADMSG: what
 * was found was not the chunk.  An owner at which nothing was found again and again is left out for a while.  Blocks no longer than
 * onesided_get; any thread but the network thread. */
int shelves_there_read(uint64_t owner, const struct chunk_key *key, struct chunk *c, unsigned *nplaces);

#endif
