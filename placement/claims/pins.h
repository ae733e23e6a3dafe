/* pins.h - writers at other nodes, counted at the claimant.
 *
 * While another node has a file open for writing, its writes come here.  Without a count the claim
 * would be given back after each flush and asked for again.  A pin is identified by (node, incarnation,
 * number of its open), so both messages may come twice.
 */
#ifndef EDDY_PLACEMENT_CLAIMS_PINS_H
#define EDDY_PLACEMENT_CLAIMS_PINS_H

#include "placement/store/file.h"

struct pool;

void pins_start(struct pool *p); /* in which pins of nodes that left are dropped */
void pins_refuse(void);          /* drops all and takes no more: this node leaves.  Pool threads */
void pins_stop(void);            /* the same, for good; while the loop runs */
/* Pool threads.  -ENOENT: the claim is not this node's. */
int pin_add(uint64_t node, uint64_t incarnation, uint64_t number, struct file *f);
int pin_drop(uint64_t node, uint64_t incarnation, uint64_t number, struct file *f); /* always 0 */

#endif
