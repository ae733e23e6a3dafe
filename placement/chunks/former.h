/* former.h - who owned a chunk in the views before this one.
 *
 * When nodes come, chunks move to new owners, and nothing is copied: the former owner has them until
 * it needs the room.  So a new owner asks there first, once, before it reads the PFS (origin.c).
 *
 * One that owned chunks for a moment only, or has dropped them, is not asked for each chunk for as
 * many views as are kept: after 32 answers "not here" in a row it is passed over, but for one chunk
 * of 16, until it has one again or the view changes.
 */
#ifndef EDDY_PLACEMENT_CHUNKS_FORMER_H
#define EDDY_PLACEMENT_CHUNKS_FORMER_H

#include "transport/members.h"

/* What reads do with chunks whose owner left: its successor reads them from the PFS, once, and keeps
 * them (recache, the default); or whoever needs them reads the PFS each time (redirect). */
void former_start(bool redirect);
void former_stop(void);
/* A view was adopted (NULL: none).  Network thread. */
void former_adopted(const struct view *v);

/* The rest: any thread.  The last member but this node that owned the chunk before this node did,
 * answers, and is not known to have none; 0: there is none.  Who asks it calls former_answered. */
uint64_t former_owner(struct fid fid, uint64_t index);
/* It had the chunk, or said that it has not. */
void former_answered(uint64_t node, bool had);
/* Redirecting, and a node that owned it left: it is not kept here. */
bool former_is_redirected(struct fid fid, uint64_t index);

#endif
