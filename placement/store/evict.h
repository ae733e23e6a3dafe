/* evict.h - a chunk leaves the cache (evict.c). */
#ifndef EDDY_PLACEMENT_STORE_EVICT_H
#define EDDY_PLACEMENT_STORE_EVICT_H

#include "transport/base.h"

/* Evicts the chunk if it may go.  True: there is more room now.  now: waits for no sync of the cache's disk.
 * Takes the file's lock. */
bool evict_chunk(struct fid fid, uint64_t index, bool now);
/* Evicts all chunks of the chunk's file, and removes its data file, if that may go.  True: it is gone. */
bool evict_file(struct fid fid, uint64_t index, bool now);

#endif
