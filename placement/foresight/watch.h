/* watch.h - what is hinted and not here is looked at again, later (watch.c).  Private to placement/foresight/. */
#ifndef EDDY_PLACEMENT_FORESIGHT_WATCH_H
#define EDDY_PLACEMENT_FORESIGHT_WATCH_H

#include "placement/foresight/hints.h"

/* While the loop runs.  wake: calls the prefetcher, which has something to look at again; in the network thread. */
void watch_start(void (*wake)(void));
void watch_stop(void);
/* Nothing of the target could be brought now; with hints_lock.  It is looked at again, each time that this is called later than
 * the time before, until its `looks` are set to 0.  watch_go is to be called then. */
void watch_for(struct target *t);
void watch_on(void); /* the same, of all that is not here; with hints_lock */
void watch_go(void); /* without it, or a lock of RANK_NET */

#endif
