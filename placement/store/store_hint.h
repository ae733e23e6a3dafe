/* store_hint.h - what is known of the next read of a file's bytes (store_hint.c; eviction.h has what it counts for). */
#ifndef EDDY_PLACEMENT_STORE_STORE_HINT_H
#define EDDY_PLACEMENT_STORE_STORE_HINT_H

#include "placement/store/eviction.h"
#include "placement/store/file.h"

/* The chunks of the file that have bytes in [off, off + len), len > 0, are read next at that time: those that are in the cache
 * now, dirty ones, too.  Chunks that come later are TIME_UNKNOWN.  Nothing is done for a file that the cache does not have.
 * Takes the file's lock. */
void store_hint(struct fid fid, uint64_t off, uint64_t len, enum eviction_time t);
/* The same of those chunks that other nodes own, unless this one keeps them. */
void store_hint_others(struct fid fid, uint64_t off, uint64_t len, enum eviction_time t);
/* Chunks of f that come into the cache are TIME_HINTED if they have bytes in [off, off + len): so none of them leaves before all
 * have come.  Of a file, the last call counts; len 0: none.  Takes the file's lock. */
void store_hint_coming(struct file *f, uint64_t off, uint64_t len);

#endif
