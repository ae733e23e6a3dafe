/* data_pin.h - opens of this node that are counted at a claimant elsewhere (claims/pins.h). */
#ifndef EDDY_PLACEMENT_DATA_PIN_H
#define EDDY_PLACEMENT_DATA_PIN_H

#include "placement/carry.h"
#include "placement/data.h"

/* Counts this open there, under its own number; said: what the claimant says of the file, may be NULL.  0; -ENOENT: the
 * claimant has given the claim back; -EAGAIN: no answer.  It may be counted there or not, then: data_pins_moved ends it. */
int data_pin_handle(struct data_handle *h, uint64_t node, struct carry_result *said);
/* The handle was counted at `before` and is counted at `now` (0: nowhere, or at this node): it is counted nowhere else from
 * then on.  May wait for another node. */
void data_pins_moved(struct data_handle *h, uint64_t before, uint64_t now);
/* The same for a file that is open here, under a number of the caller's.  -errno, as above. */
int data_pin(struct file *f, uint64_t node, uint64_t number);
/* If the claimant does not hear it, it is told later, until it is neither a member nor absent. */
void data_unpin(struct file *f, uint64_t node, uint64_t number);
/* What was not heard is not said any more.  Not in the network thread; before pool_waiters ends. */
void data_pins_stop(void);

#endif
