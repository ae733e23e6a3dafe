/* syncs.h - syncs of one open file by several threads, of which Linux tells only one that writing back
 * failed.
 *
 * The kernel keeps an error of writing back for each open file until a sync has told it, and that sync
 * may be another thread's, of other bytes.  The pages count as written afterwards.  So:
 *
 *   - a sync that succeeded waits for those that had begun before it ended, and fails if one of them,
 *     or any since it began, failed: that error may be of its own bytes
 *   - after a failure no sync is believed until all bytes were stored again and a sync of all of them
 *     succeeded: syncs_failed says so
 */
#ifndef EDDY_PLACEMENT_STORE_SYNCS_H
#define EDDY_PLACEMENT_STORE_SYNCS_H

#include "transport/lock.h"

struct sync_turn {
    struct sync_turn *next;
    uint64_t number, failures;
    bool ended;
};

struct syncs {
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t changed;
    struct sync_turn *first; /* by number */
    uint64_t number;         /* the last one's */
    uint64_t failures;
    int err; /* of the last failure, until it is made good; 0 */
};

void syncs_init(struct syncs *s);
void syncs_destroy(struct syncs *s);
/* Around the system call, of which err is the result: t lives until sync_end, which may wait for other
 * threads' and returns 0 or -errno. */
void sync_begin(struct syncs *s, struct sync_turn *t);
int sync_end(struct syncs *s, struct sync_turn *t, int err);
/* The same where all bytes were stored again between the two: if it succeeds, what failed before it
 * began is made good. */
int sync_end_of_all(struct syncs *s, struct sync_turn *t, int err);
/* -errno: what failed was not made good; 0. */
int syncs_failed(struct syncs *s);
uint64_t syncs_failures(struct syncs *s); /* how many there have been */

#endif
