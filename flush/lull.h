/* lull.h - activity and pauses; the bell that wakes what sleeps in this room (lull.c). */
#ifndef EDDY_FLUSH_LULL_H
#define EDDY_FLUSH_LULL_H

#include <stdint.h>

/* Either sets the interval and begins to look: what was before counts as no pause. */
void lull_set_wait(uint64_t wait_ms);
void lull_learn(uint64_t first_ms); /* from the gaps; first_ms until enough is known */
uint64_t lull_wait_ms(void);        /* as it is now */
void lull_past(uint64_t ago_ms);    /* how long ago I/O ended that this daemon did not serve */
/* 0: there is a lull now.  Else the ms after which to ask again: while I/O is in progress 10 to 100, as the interval may get
 * shorter. */
uint64_t lull_due_ms(void);
/* The bell: a thread that waits for something here notes bell_seen() before it looks, and then waits for
 * a later ring.  RANK_LEAF: any thread that holds no leaf lock may ring. */
uint64_t bell_seen(void);
void bell_ring(void);
void bell_wait(uint64_t seen, uint64_t timeout_ms); /* 0: no time-out */

#endif
