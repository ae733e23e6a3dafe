/* locks.h - this node's own locks, as the holder (docs/protocol.md, 5a): between claim.c and
 * locks.c. The functions for fs/ are in claim.h. */
#ifndef EDDY_PLACEMENT_LOCKS_H
#define EDDY_PLACEMENT_LOCKS_H

#include "transport/members.h"

void locks_start(void);
void locks_stop(void);
/* Appends this node's locks on files whose home in v is `to`; *list is malloc'd (realloc'd).
 * Network thread. */
void locks_fill(const struct view *v, uint64_t to, uint32_t *n, struct item_lock **list);

#endif
