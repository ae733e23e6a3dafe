/* former.h - which nodes owned a chunk in the views before this one.
 *
 * When nodes join, chunks get new owners, and nothing is copied: the former owner has them until
 * it needs the room.  So a new owner asks the former one first, once, before it reads the PFS (origin.c).
 *
 * A former owner may have owned the chunks for a moment only, or may have dropped them.  After 32 answers
 * "not here" in a row it is asked only for one chunk in 16, until it has one again or the view changes.
 */
#ifndef EDDY_PLACEMENT_CHUNKS_FORMER_H
#define EDDY_PLACEMENT_CHUNKS_FORMER_H

#include "transport/members.h"
#include "transport/view.h"

/* What reads do with chunks whose owner left: its successor reads them from the PFS, once, and stores
 * them (recache, the default); or each node that needs them reads the PFS each time (redirect). */
void former_start(bool redirect);
void former_stop(void);
/* A view was adopted (NULL: none).  Network thread. */
void former_adopted(const struct view *v);

/* The rest: any thread.  The last member, other than this node, that owned the chunk before this node did,
 * that answers, and that is not known to have none; 0: there is none.  A caller that asks it calls
 * former_answered. */
uint64_t former_owner(struct fid fid, uint64_t index);
/* The node had the chunk, or said that it does not have it. */
void former_answered(uint64_t node, bool had);
/* Redirecting, and a node that owned it left: then it is not stored here. */
bool former_is_redirected(struct fid fid, uint64_t index);

#endif
