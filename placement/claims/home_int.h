/* home_int.h - what only the parts of the home share.  Each part uses those above it:
 *
 * home_time.c     the timer, and calls that are made at the next tick
 * record.c        the records (record.h), with placement/claims/collect.c for changes of view
 * home_hint.c     what the PFS has of a file
 * home_answer.c   may a request be answered now, and the answers
 * lookers.c       which nodes look at files (lookers.h)
 * home_break.c    BREAK: they are told before a claim is granted; LEAVE
 * home_goes.c     the same before a name of a file goes
 * home_copy.c     COPY: next gets the record before a request is answered
 * home_claim.c, home_lock.c, home_forget.c   the requests
 * home.c          views, start and end
 *
 * home_here.c     this node's own requests, where the answer needs no other node
 *
 * All but the last run in the network thread.  Each entry point takes home_lock: the
 * handlers, the callbacks of views and COPY, the tick.  A function that answers a msg also frees it.
 */
#ifndef EDDY_PLACEMENT_CLAIMS_HOME_INT_H
#define EDDY_PLACEMENT_CLAIMS_HOME_INT_H

#include "placement/claims/home.h"
#include "placement/claims/lookers.h"
#include "placement/claims/record.h"
#include "transport/lock.h"

#define SWEEP_MS       10000 /* ms from one sweep for records that are not needed any more to the next */
#define SWEEP_STEP_MS  100   /* ... and between its parts */
#define COPIED_ALL     UINT32_MAX
#define LOOKERS_SWEEP_MS 2000 /* the same for entries of lookers */
#define HOME_FORGET_MS 60000 /* how long an empty record stays, for messages that are late */

struct home_state {
    const struct view *view; /* adopted; NULL: not acting */
    uint32_t self;           /* this node's index in it */
    const struct ring *ring;
    bool complete;
    uint64_t complete_ms; /* boot_ms, since when */
    uint64_t count;         /* last stamp given out in this view */
    bool *acked;            /* by member index: COPIED(view, 0) came, or nothing to copy */
    uint32_t *copied;       /* by member index: pieces of its COPY(view, 0) taken, or COPIED_ALL */
    unsigned waiting;       /* blocking locks in all records */
    uint64_t *lock_numbers; /* by member index: the highest of its LOCKs that were taken */
};
extern struct home_state home;
extern struct lock home_lock; /* RANK_HOME: all of the home's state but the timer's */

/* Registers fn for requests of this type: called with the lock. */
void home_handle(enum msg_type type, void (*fn)(struct msg *m));

/* ---- home_time.c ---- */
/* on_tick is called after the calls that home_later was given. */
void home_time_start(void (*on_tick)(void));
void home_time_stop(void); /* drops the calls that home_later was given */
/* The next tick comes in ms at the latest.  An earlier one stays: a stream of requests must not delay
 * it for ever.  Any thread. */
void home_arm(uint64_t ms);

/* ---- home_copy.c ---- */
void home_copy_start(void);
/* The record changed: next gets it, and then the requests that wait for it are answered. */
void home_changed(struct record *r);
/* The home is complete in v: each next gets all its records, stamp (v, 0). */
void home_copy_all(const struct view *v);

/* ---- home_break.c ---- */
/* The record is at next: breaks the file at all that look at it, but at the sender of the WANT, and then grants the
 * claim.  Answers m, now or later. */
void home_break(struct record *r, struct msg *m);
/* The claim is not granted: the request is asked again. */
void home_break_drop(struct record *r);
/* Tells those that wait for BREAKs that this node is at work; false: none does. */
bool home_breaks_working(void);
void home_break_start(void);

/* A node that asks where a file is. */
struct asker {
    uint32_t node; /* index in the view; LOOKER_ANY: not a member */
    enum look look;
    uint64_t number; /* of the WHERE */
};

/* ---- home_goes.c ---- */
/* The asker is about to remove a name of the file.  True: no other node has it open, or none need be told as a node has
 * its claim.  False: home_goes must be called. */
bool home_goes_here(struct fid fid, const struct asker *who);
/* A WHERE with LOOK_GOES: those that have the files open are told first.  Answers m, now or later. */
void home_goes(struct msg *m, const struct asker *who);
bool home_goes_working(void); /* as home_breaks_working */
/* A new view, or the end: all are asked again. */
void home_goes_drop(void);

/* ---- home_claim.c, home_lock.c ---- */
/* Answers a WHERE. */
void home_reply_where(struct msg *m, const struct asker *who);
/* What a node looks at of whose descriptors these LOOKER_... bits are left. */
static inline enum look home_look_of(unsigned left)
{
    return left & ~LOOKER_OPEN ? LOOK_OPEN : LOOK_QUIET;
}
/* It is entered as a looker, where it may keep what it finds. */
void home_where_is(struct fid fid, const struct asker *who, struct item_at *at);
/* An absent node that may have the file's latest bytes; 0: all is known. */
uint64_t home_blind_claim(const struct record *r, struct fid fid);
/* Is the claim this one, asked for again? */
bool home_is_claim(const struct record *r, uint64_t node, uint64_t inc, uint64_t number);
/* FREE has covered this request: it comes too late. */
bool home_is_freed(const struct record *r, uint64_t node, uint64_t inc, uint64_t number);
void home_take_free(uint64_t node, const struct body_free *f);
void home_claim_start(void);
void home_lock_start(void);

/* ---- home_forget.c ---- */
void home_forget_start(void);
/* A new view, or the end. */
void home_forgets_drop(void);

#endif
