/* insertion.h - how long a chunk that has just come into the cache may stay: the policy of eviction.c.
 *
 * There are two policies.  *By use*: the chunk that was not used for longest leaves first (LRU).  *Early*: a
 * new chunk is the next to leave, except for one of 32, so that older chunks stay (bimodal insertion: Qureshi
 * et al., "Adaptive insertion policies for high performance caching", ISCA 2007).  If more is read in turn
 * than the cache holds, *by use* has evicted each chunk before its turn comes: epochs in random order over
 * twice the cache hit 14 %, and a loop over one and a half of it hits nothing; *early* hits 43 and 58 %.  If
 * an application goes on to other files, *early* keeps the old ones.
 *
 * So both are tried on a small sample: the uses of one chunk in N go to two trials.  Each trial
 * has the names that a cache of one N-th of the size would have (Waldspurger et al., "Cache modeling
 * and optimization using miniature simulations", USENIX ATC 2017).  The policy that hit more lately counts.
 *
 * Nothing here is locked, and there are no pointers to outside: the caller has the lock.
 */
#ifndef EDDY_PLACEMENT_STORE_INSERTION_H
#define EDDY_PLACEMENT_STORE_INSERTION_H

#include <stdbool.h>
#include <stdint.h>

#define TRIAL_MAX 256 /* chunks */

/* New chunks are in a list of their own: a chunk that is read ahead must not leave before it was used, and
 * uses directly after its arrival do not count as further uses (2Q: Johnson and Shasha, VLDB 1994).  The
 * other chunks are listed by their hashes, those that leave first at the beginning. */
struct trial {
    bool early;
    uint32_t came; /* that were new */
    uint32_t nfresh, n;
    uint64_t fresh[TRIAL_MAX], key[TRIAL_MAX];
};

struct insertion {
    uint32_t cached; /* chunks, when the trials began; 0: there are no trials now */
    uint32_t one_in; /* one chunk in this many is in the sample */
    struct trial by_use, early;
    int32_t lead; /* of early: hits; recent ones count more */
    bool is_early;
    uint32_t came;
};

void insertion_start(struct insertion *in);
/* The cache is full with this many chunks, and the policy now decides which leave.  Cheap: called at each
 * eviction. */
void insertion_full(struct insertion *in, uint32_t cached);
/* A chunk came, or was used.  key: a hash of its name, the same each time. */
void insertion_use(struct insertion *in, uint64_t key);
/* How many of this number of chunks count as new. */
uint32_t insertion_fresh(uint32_t cached);
/* A chunk is not new any more: is it the next one to leave?  Else it is the last one. */
bool insertion_is_first(struct insertion *in);

#endif
