/* next.h - which files the readers of queues open next (next.c). */
#ifndef EDDY_PLACEMENT_FORESIGHT_NEXT_H
#define EDDY_PLACEMENT_FORESIGHT_NEXT_H

#include <stdbool.h>
#include <stdint.h>

/* ---- for who looks at them before; any thread, without hints_lock ---- */

/* fn is called in the thread of an open when there are files that a queue's reader opens next, are all here, and were not given out
 * before; it is not to wait.  turn_ms: a look at a file counts for twice that time.  fn NULL: none any more. */
void next_on_due(void (*fn)(void), uint64_t turn_ms);
/* Gives out the paths of such files, `max` at most, each to be freed; returns how many. */
unsigned next_give(char **paths, unsigned max);

/* ---- for foresight.c ---- */

struct queue;
/* A reader has opened this entry of the queue.  With hints_lock. */
void next_opened(struct queue *q, uint32_t i);
/* There are such files.  With hints_lock. */
bool next_is_due(void);
void next_say(void); /* ... to who gives them out; without hints_lock */

#endif
