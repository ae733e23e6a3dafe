/* lend_int.h - what the files of lend.h share.  Each uses those before it:
 *
 *     lend_ask.c     asks borrowers (LOAN), until they answer
 *     lend_held.c    what is lent, when a daemon that knew it has ended (HELD)
 *     lend_size.c    size and mtime (SIZE)
 *     lend_return.c  parts come back (RETURN)
 *     lend_recall.c  parts are taken back (RECALL)
 *     lend_change.c  changes by a node that asks, and by an application of this node
 *     lend_read.c    reads by both
 *     lend_parts.c   parts are lent (LEND)
 *     lend.c         start, end, `eddy status`
 *
 * The store has which node has which unit (store_lend.h).  It lends under the file's lock, so that a unit belongs to one
 * node at any time.  Whatever needs the whole file stops lending first (store_lend_stop), then recalls.  Each stop begins
 * an epoch: an answer to LEND that a RECALL has overtaken is of an earlier one, and the borrower drops it.
 *
 * A borrower that does not answer is asked again until T_open; then the call that needs it fails with EIO, and has
 * changed nothing.
 *
 * All functions that take a file block: pool threads only.  int: 0 or -errno.
 */
#ifndef EDDY_PLACEMENT_LEND_INT_H
#define EDDY_PLACEMENT_LEND_INT_H

#include "placement/lend.h"
#include "placement/store/store_lend.h"
#include "transport/message.h"
#include "transport/times.h"

/* ---- lend_ask.c ---- */

/* One question to one borrower, and its answer. */
struct asking;
struct lend_asked {
    struct asking *of;
    uint64_t node;
    int err;                 /* -EAGAIN: not answered yet, so it is asked (again) */
    bool out;                /* it has not answered, and nothing is to be expected of it (lend_is_out) */
    uint64_t from;           /* HELD */
    uint64_t inc;            /* of the daemon that has answered */
    struct body_loan_is is;  /* is.parts.v is NULL: see parts */
    struct item_lent *parts; /* malloc'd; NULL: no answer */
};
/* How long borrowers are asked (boot_ms), in which epoch; *away: which has not answered. */
struct lend_until {
    uint64_t end_ms, epoch, *away;
};

#define LEND_AGAIN_MS 20 /* what *wait_ms is at first */
/* Before something is asked again: sleeps *wait_ms, and doubles it, up to 500. */
void lend_pause(uint64_t *wait_ms);
/* Until each of the n has answered.  -EIO: one has not. */
int lend_ask_until(struct file *f, enum loan_op op, struct lend_asked *list, unsigned n,
                   const struct lend_until *u);
/* The same with every borrower; *list is to be given to lend_asked_free, whatever is returned. */
int lend_ask_all(struct file *f, enum loan_op op, struct lend_asked **list, unsigned *n,
                 const struct lend_until *u);
void lend_asked_free(struct lend_asked *list, unsigned n);
/* The node is in no view, neither as a member nor as absent: it left in order, so that all it had is on the PFS, or was
 * forgotten.  Nothing is to be expected of it.  Any thread. */
bool lend_is_out(uint64_t node);
/* Logs that the node does not answer: once in 10 s. */
void lend_say_away(struct file *f, uint64_t node);

/* ---- lend_held.c ---- */

/* 0: what is lent is known. */
int lend_know(struct file *f, const struct lend_until *u);
int lend_know_soon(struct file *f); /* until T_open */
/* Does what is lent to the node belong to another incarnation of it than this one? */
bool lend_is_renewed(struct file *f, uint64_t node, uint64_t inc);
/* The node was heard in this incarnation.  0: what is lent to it is known. */
int lend_renew(struct file *f, uint64_t node, uint64_t inc, const struct lend_until *u);
/* Both, until T_open each. */
int lend_know_node(struct file *f, struct lend_node node);
/* Is it being asked now what somebody holds?  Any thread. */
bool lend_is_learning(void);
/* The version of the file on the PFS.  If it has no name and no descriptor any more: what it was, since nothing of it is
 * flushed. */
int lend_look_at_pfs(struct file *f, struct version *v);

/* ---- lend_size.c ---- */

/* As lend_pull; *size: the file's size in bytes, at some time while this runs; on an error what is known here. */
int lend_pull_until(struct file *f, const struct lend_until *u, uint64_t *size);
/* Takes back what those had that are out, and do not answer: else nobody would say of it that it is not there. */
int lend_take_of_gone(struct file *f);

/* ---- lend_return.c ---- */

/* The node says that it has nothing.  What it had it has returned before; or it never got the answer to its LEND.  began: only what it
 * has borrowed in this epoch or before (LENT_ANY: all): the answer may be older than what it has now. */
int lend_take_rest(struct file *f, uint64_t node, uint64_t began);
/* RETURN; network thread, takes over m. */
void lend_on_return(struct msg *m);

/* ---- lend_recall.c ---- */

/* 0: nothing is lent, until store_lend_go. */
int lend_recall(struct file *f);
/* The node says "not mine" of what is lent to it: an answer to its LEND was lost, or its cache.  It takes nothing of it
 * any more for its own. */
int lend_recall_from(struct file *f, uint64_t node);

/* ---- lend_parts.c ---- */

/* This node leaves, so that nothing more is lent; or it does not.  Any thread. */
void lend_set_leaving(bool is);
/* LEND; network thread, takes over m. */
void lend_on_lend(struct msg *m);

#endif
