/* owner.h - which chunks this node keeps as their owner. */
#ifndef EDDY_PLACEMENT_CHUNKS_OWNER_H
#define EDDY_PLACEMENT_CHUNKS_OWNER_H

#include "placement/pfs/pfs_fid.h"

/* It owns the chunk in this view, or all are suspected that own it before this node: what it reads
 * for them from the PFS it answers for from then on, and would read again were it evicted as a
 * replica is.  Without a view: false, the store looks again when there is one.  Any thread. */
bool owner_is_here(struct fid fid, uint64_t index);

#endif
