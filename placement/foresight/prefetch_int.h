/* prefetch_int.h - the parts of the prefetcher: prefetch.c has whose turn it is; it calls prefetch_target.c (one target), and that
 * prefetch_tell.c (what others hear); both call prefetch_room.c (how much). */
#ifndef EDDY_PLACEMENT_FORESIGHT_PREFETCH_INT_H
#define EDDY_PLACEMENT_FORESIGHT_PREFETCH_INT_H

#include "placement/foresight/prefetch.h"

/* ---- prefetch_room.c ---- */

struct room {
    uint64_t all, share; /* bytes that hints may take now; of one queue */
    uint64_t most;       /* that may be ahead or kept for later */
    uint64_t spare;      /* that no node misses: free, or of replicas; if this is the only node, all */
    uint64_t largest;    /* of one hint: of what is larger, the begin is kept */
    bool writers;        /* something is dirty */
};
/* Without hints_lock; then room_share with it. */
struct room room_now(void);
/* With hints_lock, as all below. */
void room_share(struct room *r);
bool room_fits(const struct target *t, const struct room *r);
/* False, quickly: the entry is not near. */
bool room_may_be_near(const struct queue *q, uint32_t entry, const struct room *r);
/* Behind the near entries of the queue. */
uint32_t room_near_end(const struct queue *q, const struct room *r);
/* How many bytes have to be given up so that the target fits, if it is near; UINT64_MAX: nothing is given up for it
 * (its budget, or nothing is known to be there). */
uint64_t room_near_lacks(const struct target *t, const struct room *r);
/* How many bytes have to be given up of what the queue keeps for later, so that the target fits. */
uint64_t room_kept_lacks(const struct target *t, const struct room *r);
/* The target, which is this entry's, may drive out what is kept for later; what other nodes may want. */
bool room_takes_of_kept(const struct target *t, uint32_t entry, const struct room *r);
bool room_takes_of_others(const struct target *t, uint32_t entry, const struct room *r);
/* More is kept and ahead than there may be. */
bool room_is_exceeded(const struct room *r);
/* A hint was given up, since a writer needed the room: no more is taken until something is consumed. */
void room_given_up(void);
/* Nothing is dirty, and nothing is admitted: there will be no more room than now. */
bool room_stays_as_it_is(const struct room *r);

/* ---- the others ---- */

/* Brings the target, up to `largest` bytes of it, or finds out why not.  A thread of a pool, without hints_lock; the target is
 * marked busy. */
void prefetch_target(struct target *t, uint64_t largest);
/* Tells the store and the claims what they are to hear; returns when all that was to be told until now is told.  Without
 * hints_lock. */
void prefetch_tell_store(void);
/* The store took no more: nothing is fetched until something leaves.  With hints_lock. */
extern bool prefetch_full;

#endif
