/* members_int.h - what the files members*.c share.  Private to them.
 *
 *   members.c        the state, reading views/, start, join, stop
 *   members_ping.c   which nodes answer
 *   members_adopt.c  adopting a view
 *   members_make.c   making the next one
 *   members_leave.c  leaving
 *   members_twin.c   another daemon in this node's place
 */
#ifndef EDDY_TRANSPORT_MEMBERS_INT_H
#define EDDY_TRANSPORT_MEMBERS_INT_H

#include "transport/lock.h"
#include "transport/members.h"

enum { FAREWELL = 1, TAKE_ME_OUT = 2 }; /* ADOPTED.leaving */
#define HEARD_ALL UINT32_MAX

#define LEAVE_COLLECT    100        /* ms: how long leaves are collected */
#define ASK_TO_JOIN      UINT64_MAX /* PING.adopted of a node that reaches all members and wants in */
#define JOIN_BACKOFF_MAX 60000
#define NODE_BUCKETS     4096

/* What this node knows of another one. */
struct node {
    struct node *next;
    struct node *next_in_bucket; /* of by_id */
    uint64_t id, incarnation;
    uint64_t answered_ms; /* its last PONG or other sign of life */
    uint64_t silent_ms;   /* probing, suspected: silent since then */
    bool probing, suspected, pinging;
    bool refused; /* its host refuses connections: no need to wait for T_DEAD */
    unsigned tries;
    bool wants_in; /* has told this node, the keeper, that it wants to join */
    bool parting;  /* has sent its farewell for the next view: it is no keeper any more */
    bool leaves;   /* parting, and has asked this node for the view without it */
    bool owes;     /* has not answered this node's farewell */
};

/* Network thread only. */
struct members_state {
    struct members_config cfg;
    struct node *nodes;
    struct node *by_id[NODE_BUCKETS]; /* the same nodes: every message and tick looks nodes up */
    const struct view *view;          /* adopted, as members_now.adopted */
    uint64_t last;                    /* last view adopted in this incarnation */
    /* the one before `view`: ADOPTED(view) says this, also when it is sent again */
    uint64_t last_before;
    bool prev_settled;       /* was view-1 settled here when view was adopted? */
    uint64_t first_seen_ms;  /* of the newest view */
    uint64_t newest_read_t0; /* begin of the read that last showed the newest view */
    uint32_t *heard;         /* pieces of ADOPTED(view) by member index, or HEARD_ALL */
    uint32_t unheard;        /* members of which not all pieces came */
    bool any_settled;
    bool reading, read_again, making;  /* jobs in pool_session */
    uint64_t last_tick_ms, contact_ms; /* contact: the last sign of life of any node */
    uint64_t last_read_ms;
    /* ms since the newest view's file was touched; read while this node is outside */
    uint64_t view_age_ms;
    bool view_age_known;
    uint64_t joins_since_ms, leaves_since_ms, dead_since_ms;
    uint64_t join_at_ms, join_backoff_ms, member_since_ms;
    bool joining, leaving;
    _Atomic bool left; /* any thread reads it */
    uint64_t told;     /* the node that was asked for the view without this one; 0: none yet */
    uint64_t ended;    /* the incarnation of this node's that was found to have ended; 0: none */
    char join_problem[256];
};
extern struct members_state members_st;

/* Read by any thread. */
struct members_shared {
    const struct view *_Atomic adopted;
    const struct view *_Atomic last_read; /* the newest one */
    /* ms that this node ran without a view, and before that without an answer of any other member */
    _Atomic uint64_t alone_ms;
    _Atomic uint64_t lease_until_ms, settled_at_ms, newest;
    _Atomic bool leaving;
    _Atomic bool over; /* the session ended before this node joined it */
    /* before this node joined, a view showed a daemon in its place that was not asked yet */
    _Atomic bool unsure;
    struct lock lock; /* RANK_LEAF: `changed`, the list of nodes and their `suspected` */
    pthread_cond_t changed;
};
extern struct members_shared members_now;

/* members.c */
const struct view *members_newest_view(void);
void members_want_read(void); /* looks at views/ soon */
void members_tick(void *arg);
void members_tick_in(uint64_t ms);
void members_wake(void);
void members_session_is_over(void);

/* members_adopt.c */
/* Adopts v; if v does not have this node, it is fenced. */
void members_adopt(const struct view *v, uint64_t t0);
void members_handle_adopted(struct msg *m);
void members_resend_all(void);
/* Sends the farewell to all members of w, the view that is to be made without this node. */
void members_say_farewell(const struct view *w);
void members_adopt_stop(void);

/* members_make.c */
void members_propose(uint64_t t);
void members_outside_tick(uint64_t t);
void members_make_without_leavers(void); /* also without this node, which leaves */

/* members_leave.c */
void members_leave_step(void);

/* members_twin.c */
/* Has v another daemon in this node's place?  Then this node's part is over; before it has joined,
 * members_join asks that one first. */
bool members_is_replaced(const struct view *v);

#endif
