/* prefetch.h - the prefetcher: brings what is hinted, ahead of its readers (prefetch.c).  Private to placement/foresight/.
 */
#ifndef EDDY_PLACEMENT_FORESIGHT_PREFETCH_H
#define EDDY_PLACEMENT_FORESIGHT_PREFETCH_H

#include "placement/foresight/hints.h"

void prefetch_start(void);
/* Something has happened because of which there may be work, or room.  Any thread, without hints_lock.  Never blocks. */
void prefetch_wake(void);
/* Bytes that a stage may bring now, so that all of it stays: the room of hints, less what is here for hints and other stages.
 * Without hints_lock. */
uint64_t prefetch_room(void);
/* A writer or reader needs room: gives up the hint that is farthest away, of those that the store keeps chunks for; ahead:
 * also one that was admitted.  True: its chunks may leave now.  For eviction_on_farthest. */
bool prefetch_give_up(bool ahead);
/* Chunks of what the target names are kept, if it is read within one size of the cache, and as nothing is in the
 * way.  Without hints_lock; the prefetcher tells the store. */
void prefetch_keep(struct target *t, uint64_t limit);
/* Called when a target is ahead, consumed or cancelled; with hints_lock; leaf locks only. */
void prefetch_on_news(void (*fn)(void));

#endif
