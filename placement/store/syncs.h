/* syncs.h - syncs of one open file by several threads.  If writing back fails, Linux tells only one of them.
 *
 * For each open file, the kernel keeps an error of writing back until a sync has told it.  That sync may be
 * one of another thread, of other bytes.  Afterwards the pages count as written.  So:
 *
 *   - a sync that succeeded waits for all syncs that had begun before it ended.  It fails if one of them
 *     failed, or any that has ended since it began: that error may be of its own bytes
 *   - after a failure no sync is believed until all bytes were stored again and a sync of all of them
 *     succeeded (syncs_failed)
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
/* Called before and after the system call; err is its result.  t must live until sync_end, which may wait for
 * syncs of other threads, and returns 0 or -errno. */
void sync_begin(struct syncs *s, struct sync_turn *t);
int sync_end(struct syncs *s, struct sync_turn *t, int err);
/* As sync_end, if all bytes were stored again since sync_begin: if the sync succeeded, what failed before it
 * began is made good. */
int sync_end_of_all(struct syncs *s, struct sync_turn *t, int err);
/* -errno: a failure was not made good yet; 0: there is none. */
int syncs_failed(struct syncs *s);
uint64_t syncs_failures(struct syncs *s); /* how many there have been */

#endif
