/* former.h - which nodes owned a chunk in the views before this one.
 *
 * When nodes join, chunks get new owners, but no chunk is copied: the former owner has it until it needs the
 * room.  So a new owner asks the former one once before it reads the PFS (origin.c).
 *
 * A former owner may have owned the chunks for a moment only, or may have dropped them.  After 32 answers
 * "not here" in a row it is asked for one chunk in 16 only, until it has one again or the view changes.
 */
#ifndef EDDY_PLACEMENT_CHUNKS_FORMER_H
#define EDDY_PLACEMENT_CHUNKS_FORMER_H

#include "transport/members.h"
#include "transport/view.h"

/* Sets what reads do with chunks whose owner left.  false (recache, the default): the new owner reads them
 * from the PFS once and stores them.  true (redirect): each node that needs them reads the PFS each time. */
void former_start(bool redirect);
void former_stop(void);
/* A view was adopted (NULL: none).  Network thread. */
void former_adopted(const struct view *v);

/* ---- any thread ---- */

/* The last node that owned the chunk before this node did, if it is a member, is not suspected, and is worth
 * asking; else an earlier such owner; 0: there is none.  A caller that asks the node calls
 * former_answered. */
uint64_t former_owner(struct fid fid, uint64_t index);
/* had: the node had the chunk; else it said that it does not have it. */
void former_answered(uint64_t node, bool had);
/* True: with redirect, and a node that owned the chunk has left: then the chunk is not stored here. */
bool former_is_redirected(struct fid fid, uint64_t index);

#endif
