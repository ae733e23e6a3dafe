/* locks_own.h - the locks that this node holds, as ADOPTED lists them.  Private to
 * placement/claims/locks.c and reports.c.
 *
 * The network thread changes it, and so do threads that give locks back; any thread reads it.  One lock
 * (RANK_LEAF) guards all of it.
 */
#ifndef EDDY_PLACEMENT_CLAIMS_LOCKS_OWN_H
#define EDDY_PLACEMENT_CLAIMS_LOCKS_OWN_H

#include "placement/claims/lock_table.h"
#include "transport/members.h"

void locks_own_start(void);
void locks_own_stop(void);
/* As lock_apply on the file's list. */
void locks_own_apply(struct fid fid, const struct held_lock *l);
/* Removes what l's holder holds in its range, and adds that to *was. */
void locks_own_take(struct fid fid, const struct held_lock *l, struct held_lock **was);
/* Does this holder have any lock on the file?  Or one of another type than `like`? */
bool locks_own_any(struct fid fid, const struct held_lock *like);
bool locks_own_other(struct fid fid, const struct held_lock *like);
/* What this holder holds in the range, and the rest of the range: added to the two lists. */
void locks_own_split(struct fid fid, const struct held_lock *range, struct held_lock **held,
                     struct held_lock **rest);
/* Appends this node's locks to a list made by lock_items_add (lock_table.h). */
void locks_fill(uint32_t *n, struct item_lock **list);

#endif
