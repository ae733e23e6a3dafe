/* ended.h - did a claimant that is no member any more leave in order?  Then it has flushed what had a name,
 * and has told each node that had a file without one open before it dropped what the PFS never got
 * (claim_give.h).
 */
#ifndef EDDY_PLACEMENT_CLAIMS_ENDED_H
#define EDDY_PLACEMENT_CLAIMS_ENDED_H

#include "transport/view.h"

/* This node has adopted v after `before` (NULL: none).  Network thread. */
void ended_adopted(const struct view *before, const struct view *v);
/* This node was outside of the session: how those ended that are not in the next view is not known.  Any
 * thread. */
void ended_outside(void);
/* This incarnation of the node was a member.  False: it is one, it or a later one has died, or it is not known.  A later one that is
 * a member tells what it drops, as any.  Any thread. */
bool ended_in_order(uint64_t node, uint64_t incarnation);

/* How often this node has seen that a member was missing, or has missed a view itself: what an operator has forgotten was
 * missing before.  Any thread. */
uint64_t ended_departures(void);

#endif
