/* pins.h - opens at other nodes, counted at the claimant.
 *
 * While another node has a file open for writing, its writes come here.  Without a count the claim would be
 * given back after each flush and asked for again.  An open for reading keeps the claim only of a file
 * without a name, whose bytes are nowhere else.  While a pin is there, the file is open here on the PFS
 * (pfs_is_open).
 */
#ifndef EDDY_PLACEMENT_CLAIMS_PINS_H
#define EDDY_PLACEMENT_CLAIMS_PINS_H

#include "placement/claims/pin_list.h"

struct pool;
struct view;

void pins_start(struct pool *p); /* in which pins of nodes that left are dropped */
/* Drops all and takes no more: this node leaves.  Their nodes are told if it drops bytes that the PFS never
 * gets.  Pool threads. */
void pins_refuse(void);
void pins_stop(void);            /* the same, for good; while the loop runs */
void pins_adopted(const struct view *v); /* network thread; NULL: fenced */
/* Pool threads.  -ENOENT: the claim is not this node's. */
int pin_add(const struct pin_id *id, bool writer, struct file *f);
void pin_drop(const struct pin_id *id, struct file *f);

#endif
