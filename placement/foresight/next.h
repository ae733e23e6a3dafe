/* next.h - which files the readers of queues open next (next.c).  Private to placement/foresight/; with hints_lock. */
#ifndef EDDY_PLACEMENT_FORESIGHT_NEXT_H
#define EDDY_PLACEMENT_FORESIGHT_NEXT_H

#include "placement/foresight/hints.h"

/* A reader has opened this entry of the queue. */
void next_opened(struct queue *q, uint32_t i);
/* There are such that foresight_next has not given out yet. */
bool next_is_due(void);
void next_say(void); /* ... to who gives them out; without hints_lock */

#endif
