/* owner.h - which chunks this node stores as their owner. */
#ifndef EDDY_PLACEMENT_CHUNKS_OWNER_H
#define EDDY_PLACEMENT_CHUNKS_OWNER_H

#include "placement/pfs/pfs_fid.h"

/* True: this node owns the chunk in this view, or all nodes that are before it in the chunk's order are
 * suspected.  In the latter case it reads the chunk from the PFS in their place and serves it from then on;
 * if it evicted the chunk like a replica, it would have to read it again.  Without a view: false; the store
 * looks again when there is a view.  Any thread. */
bool owner_is_here(struct fid fid, uint64_t index);

#endif
