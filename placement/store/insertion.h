/* insertion.h - how long a chunk that has just come into the cache may stay: the policy of eviction.c.
 *
 * Two policies.  By use: what was not used for longest leaves first (LRU).  Early: a new chunk is the
 * next to leave, but for one of 32, so that what is there stays (bimodal insertion: Qureshi et al.,
 * "Adaptive insertion policies for high performance caching", ISCA 2007).  Where more is read in
 * turn than the cache holds, by use nothing is there any more when its turn comes: epochs in random order
 * over twice the cache hit 14 %, a loop over one and a half of it nothing; early 43 and 58 %.  Where
 * an application goes on to other files, early keeps the old ones.
 *
 * So both are tried on a small sample: the uses of one chunk in N go to two trials, each of which
 * keeps the names that a cache of one N-th of the size would have (Waldspurger et al., "Cache modeling
 * and optimization using miniature simulations", USENIX ATC 2017), and the policy that hit more of
 * late counts.
 *
 * Nothing here is locked, and nothing points anywhere: the lock is the caller's.
 */
#ifndef EDDY_PLACEMENT_STORE_INSERTION_H
#define EDDY_PLACEMENT_STORE_INSERTION_H

#include <stdbool.h>
#include <stdint.h>

#define TRIAL_MAX 256 /* chunks */

/* Chunks that are new stand apart: one that is read ahead is not to leave before it was used, and uses
 * that follow its coming at once do not count as uses again (2Q: Johnson and Shasha, VLDB 1994).  The
 * others, those that leave first at the beginning, by their hashes. */
struct trial {
    bool early;
    uint32_t came; /* that were new */
    uint32_t nfresh, n;
    uint64_t fresh[TRIAL_MAX], key[TRIAL_MAX];
};

struct insertion {
    uint32_t cached; /* chunks, when the trials began; 0: none is under way */
    uint32_t one_in; /* a chunk of so many is in the sample */
    struct trial by_use, early;
    int32_t lead; /* of early: hits, late ones count more */
    bool is_early;
    uint32_t came;
};

void insertion_start(struct insertion *in);
/* The cache is full with so many chunks: what follows decides what leaves.  Cheap: at each eviction. */
void insertion_full(struct insertion *in, uint32_t cached);
/* A chunk came, or was used.  key: a hash of its name, the same each time. */
void insertion_use(struct insertion *in, uint64_t key);
/* How many of so many chunks count as new. */
uint32_t insertion_fresh(uint32_t cached);
/* One that was new is not any more: is it the next one to leave?  Else it is the last one. */
bool insertion_is_first(struct insertion *in);

#endif
