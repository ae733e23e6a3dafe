/* former.h - who owned a chunk in the views before this one.
 *
 * When nodes come, chunks move to new owners, and nothing is copied: the former owner has them until
 * it needs the room.  So a new owner asks there first, once, before it reads the PFS (origin.c).
 */
#ifndef EDDY_PLACEMENT_FORMER_H
#define EDDY_PLACEMENT_FORMER_H

#include "transport/members.h"

/* What reads do with chunks whose owner left: its successor reads them from the PFS, once, and keeps
 * them (recache, the default); or whoever needs them reads the PFS each time (redirect). */
void former_start(bool redirect);
void former_stop(void);
/* A view was adopted (NULL: none).  Network thread. */
void former_adopted(const struct view *v);

/* The rest: any thread.  The last member but this node that owned the chunk before this node did, and
 * answers; 0: there is none. */
uint64_t former_owner(struct fid fid, uint64_t index);
/* Redirecting, and a node that owned it left: it is not kept here. */
bool former_is_redirected(struct fid fid, uint64_t index);

#endif
