/* prefetch_int.h - the parts of the prefetcher: prefetch.c has the room, and whose turn it is; it calls prefetch_target.c
 * (one target), and that prefetch_tell.c (what others hear). */
#ifndef EDDY_PLACEMENT_FORESIGHT_PREFETCH_INT_H
#define EDDY_PLACEMENT_FORESIGHT_PREFETCH_INT_H

#include "placement/foresight/prefetch.h"

/* Brings the target, up to `largest` bytes of it, or finds out why not.  A thread of a pool, without hints_lock; the target is
 * marked busy. */
void prefetch_target(struct target *t, uint64_t largest);
/* Tells the store and the claims what they are to hear; returns when all that was to be told until now is told.  Without
 * hints_lock. */
void prefetch_tell_store(void);
/* The store took no more: nothing is fetched until something leaves.  With hints_lock. */
extern bool prefetch_full;

#endif
