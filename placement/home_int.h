/* home_int.h - what the parts of the home share and nobody else uses.  Each uses those above it:
 *
 * home_time.c     the timer, and what is tried again at the next tick
 * record.c        the records (record.h), with placement/collect.c for changes of view
 * home_hint.c     what the PFS has of a file
 * home_answer.c   may a request be answered now, and the answers
 * home_copy.c     COPY: next has the record before anybody is answered
 * home_claim.c, home_lock.c   the requests
 * home.c          views, start and end
 *
 * All of it runs in the network thread and its state has no lock.  A msg that is passed to a
 * function that answers it is that function's to free.
 */
#ifndef EDDY_PLACEMENT_HOME_INT_H
#define EDDY_PLACEMENT_HOME_INT_H

#include "placement/home.h"
#include "placement/record.h"

#define SWEEP_MS 10000 /* from one look for records that are needed no more to the next */

struct home_state {
    const struct view *view; /* adopted; NULL: not acting */
    const struct ring *ring;
    bool complete;
    uint64_t count;   /* last stamp given out in this view */
    bool *acked;      /* by member index: COPIED(view, 0) came, or nothing to copy */
    unsigned waiting; /* blocking locks in all records */
};
extern struct home_state home;

/* ---- home_time.c ---- */
/* on_tick is called after what home_later was given. */
void home_time_start(void (*on_tick)(void));
void home_time_stop(void); /* drops what home_later was given */
/* The next tick comes in ms at the latest.  A nearer one stays: a stream of requests must not put
 * it off for ever. */
void home_arm(uint64_t ms);

/* ---- home_hint.c ---- */
/* v NULL: the file was given back, and the version is not known. */
void hint_set(struct fid fid, const struct version *v);
/* The version moved without a change of the data. */
void hint_same(const struct body_same *s);
/* For AT.  known stays 0 only if nobody gave this file back in this view: then what the asker saw
 * of it still holds. */
void hint_get(struct fid fid, uint8_t *known, struct version *version, struct version *same_as);
void hints_drop(void);

/* ---- home_answer.c ---- */
/* WHERE: complete and under a lease (rule 8). */
bool home_may_tell(const struct msg *m, struct fid fid);
/* Grants: also settled, and next has this view's records (rule 9). */
bool home_may_grant(const struct msg *m, struct fid fid);
void home_refuse(struct msg *m, int err);
void home_ask_again(struct msg *m);
void home_ask_again_list(struct pending **list);
/* To the end of the list; count: the stamp that next must have before it is answered. */
void home_queue(struct pending **list, struct msg *m, uint64_t count);
void home_reply_grant(struct msg *m, enum at_where where, uint64_t node);
/* found: the lock in the way, NULL: none. */
void home_reply_locked(struct msg *m, const struct held_lock *found);
/* Next has the record up to this stamp: what waited for it is granted, if we still may. */
void home_answer_pending(struct record *r, uint64_t copied);

/* ---- home_copy.c ---- */
void home_copy_start(void);
/* The record changed: next gets it, and then what waits for it is answered. */
void home_changed(struct record *r);
/* Complete in v: each next gets all its records, stamp (v, 0). */
void home_copy_all(const struct view *v);

/* ---- home_claim.c, home_lock.c ---- */
void home_claim_start(void);
void home_lock_start(void);

#endif
