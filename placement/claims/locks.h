/* locks.h - this node's own locks, as the holder (docs/protocol.md, "Locks"): start and end, for
 * claim_views.c.  The functions for fs/ are in claim.h. */
#ifndef EDDY_PLACEMENT_CLAIMS_LOCKS_H
#define EDDY_PLACEMENT_CLAIMS_LOCKS_H

void locks_start(void);
void locks_stop(void);

#endif
