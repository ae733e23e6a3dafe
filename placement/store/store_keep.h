/* store_keep.h - which copy of a chunk is the one that the session keeps, as far as this node's cache goes (store_keep.c; eviction.h has
 * what it counts for).  Any thread; takes the file's lock. */
#ifndef EDDY_PLACEMENT_STORE_STORE_KEEP_H
#define EDDY_PLACEMENT_STORE_STORE_KEEP_H

#include "placement/store/eviction.h"
#include "placement/store/file.h"
#include "transport/fid.h"

/* The version of the file's clean chunks.  False: the file is not known, or has none. */
bool store_keep_version(struct fid fid, struct version *v);
/* The chunk is kept so from now on.  False: it is not here as a whole, clean, in this version; or, but with KEEP_NOT, nothing
 * else could leave in its place (eviction_may_keep). */
bool store_keep(struct fid fid, uint64_t index, const struct version *v, enum keep keep);
/* The chunk that has this offset does not leave the cache until store_unhold, or until a call that worked on it has ended.  False: it is
 * not here. */
bool store_hold(struct file *f, uint64_t off);
void store_unhold(struct file *f, uint64_t off);
/* How much of what may leave the cache may be kept for other owners at most, in percent.  Before the threads that keep. */
void store_keep_at_most(unsigned percent);

#endif
