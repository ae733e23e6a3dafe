/* far.h - what the store keeps for the entries of a queue, and which of these entries is the farthest.  Private to
 * placement/foresight/; with hints_lock, like hints.h.
 *
 * Something is kept for a target's first entry while it is admitted, and before that if it was written or read here.
 */
#ifndef EDDY_PLACEMENT_FORESIGHT_FAR_H
#define EDDY_PLACEMENT_FORESIGHT_FAR_H

#include "placement/foresight/hints.h"

/* For so many entries of a queue: bytes of memory. */
uint64_t far_memory(uint32_t entries);
void far_grow(struct queue *q, uint32_t entries); /* from q->cap on */
/* The target's first entry, life or size has changed, or whether it is admitted or hinted: what is kept for it is counted again. */
void far_note(struct target *t);
/* Bytes that are kept for all queues, and not admitted. */
uint64_t far_kept(void);
/* The last entry before `end` for which the store keeps something; NO_ENTRY: none that is not done. */
uint32_t far_before(struct queue *q, uint32_t end);

#endif
