/* owner.h - which chunks this node stores as their owner. */
#ifndef EDDY_PLACEMENT_CHUNKS_OWNER_H
#define EDDY_PLACEMENT_CHUNKS_OWNER_H

#include "placement/pfs/pfs_fid.h"

/* Does this node own the chunk in this view, or are all nodes suspected that are before it in the chunk's
 * order?  In the latter case it reads the chunk from the PFS in their place and serves it from then on.  If
 * the chunk were evicted like a replica, it would be read again.  Without a view: false; the store looks
 * again when there is one.  Any thread. */
bool owner_is_here(struct fid fid, uint64_t index);

#endif
