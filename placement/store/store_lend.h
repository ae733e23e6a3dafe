/* store_lend.h - parts of a claimed file that other nodes, its borrowers, change (docs/protocol.md, "Loans"): which
 * they are, and what that forbids here.
 *
 * A unit (LOAN_UNIT bytes) is this node's own if any of its pages is here, else lent to one borrower, or untouched:
 * the PFS has it, or it is zeros.  Only an untouched unit is lent.  Then no page of it comes here (fills leave it
 * out), no reader is given bytes of it, and a change of it fails with -EREMOTE and has done nothing.
 *
 * A file is *shared* from store_share_begin on, until nothing is lent and store_share_end was called: no kernel I/O
 * of it begins, and nobody but the borrowers knows its size and its mtime.  What is here of both is the least of
 * what they can be (store_lent_is).  While anything is lent, flushes do not make the PFS file shorter.
 *
 * `lent` in the record outlives the daemon, the map does not: claims of a dead daemon that have it ask for it.
 */
#ifndef EDDY_PLACEMENT_STORE_STORE_LEND_H
#define EDDY_PLACEMENT_STORE_STORE_LEND_H

#include "placement/store/file.h"
#include "placement/store/unit_map.h"

/* ---- any thread, no lock ---- */

static inline bool store_is_shared(const struct file *f)
{
    return atomic_load_explicit(&f->shared, memory_order_acquire);
}
/* Is anything lent now?  A daemon before this one may have lent: also true until store_lent_known. */
bool store_is_lent(struct file *f);

/* ---- beginning and end ---- */

/* 0: the file is shared now.  -EBUSY: kernel I/O uses it; -EAGAIN: it has used it since the last flush; -EIDRM: it has no name.  Once for each store_share_end. */
int store_share_begin(struct file *f);
void store_share_end(struct file *f);

/* ---- lending ---- */

/* A node's daemon. */
struct lend_node {
    uint64_t id, inc;
};
/* Lends those units of [first, last] that are untouched.  It waits for calls that work on them.  -EAGAIN: nothing is
 * lent now (store_lend_stop); -EBUSY: a truncation is not on the PFS yet, so the file must be flushed first; -ENOSPC: too
 * much is lent.  On an error a part may have been lent. */
int store_lend(struct file *f, struct lend_node node, uint64_t first, uint64_t last);
/* After a start, until store_lent_known: the node has [first, last].  -ENOSPC: too much is lent. */
int store_lent_found(struct file *f, struct lend_node node, uint64_t first, uint64_t last);
/* The claim is void, and with it all that was lent under it: nothing is lent any more. */
void store_lend_void(struct file *f);
/* What was found so far does not count: all are asked again.  Nothing if it is known. */
void store_lent_lost(struct file *f);
/* Which node has this unit?  0: none, it is this node's.  *until: the same holds up to this unit, at most up to
 * `last`. */
uint64_t store_lent_to(struct file *f, uint64_t unit, uint64_t last, uint64_t *until);
/* Nothing is lent from now on, until as many store_lend_go.  For a change that cannot be made while parts are lent.  Returns
 * the new epoch: what was lent before was lent in an earlier one. */
uint64_t store_lend_stop(struct file *f);
void store_lend_go(struct file *f);

/* ---- borrowers ---- */

/* Returns how many nodes have borrowed; the first `max` of them are in out. */
unsigned store_borrowers(struct file *f, uint64_t *out, unsigned max);
/* Which units the node has. */
struct unit_sum store_lent_units(struct file *f, uint64_t node);
/* The present epoch.  A new one begins before parts are taken back, when they are, and before the application sets the
 * times. */
uint64_t store_lend_epoch(struct file *f);
uint64_t store_lend_next_epoch(struct file *f);
/* While nothing may be lent: the last epoch before that.  What LENT names is of this one, so that a borrower that has handled
 * the recall takes nothing of it for its own, though not all may have come back yet.  Else the present epoch. */
uint64_t store_lent_epoch(struct file *f);
/* The incarnation of the node's daemon that has borrowed; 0: none has. */
uint64_t store_borrower_inc(struct file *f, uint64_t node);
/* A borrower, which was asked in this epoch, says how far its own writes have gone, and when it made the last (INT64_MIN:
 * none that counts).  False, and nothing is done: it is of an earlier epoch.  What it wrote may have been cut off since, or
 * another mtime set. */
bool store_lent_is(struct file *f, uint64_t epoch, uint64_t size, int64_t mtime_ns);
/* Versions of the PFS file come in by returns and by this node's flushes, beside each other.  A look is not entered if
 * another one, which may be newer, was entered since it began: how many were until now. */
uint64_t store_pfs_looks(struct file *f);
/* What a borrower has when it gives all back. */
struct lent_back {
    uint64_t epoch;   /* when it was heard: what the node has borrowed in a later one it keeps */
    uint64_t looks;   /* before the look at the PFS */
    struct version v; /* which it has found: with all that the node has written */
    uint64_t size;    /* as store_lent_is */
    int64_t mtime_ns;
    /* of RETURN: the epoch in which the loan began, and the incarnation; it is not that of what the node has now if either is
     * an earlier one.  LENT_ANY, 0: of what the node has now in any case */
    uint64_t began, inc;
};
#define LENT_ANY UINT64_MAX
/* The node's units are untouched now.  The file is dirty: size and times are to be published.  False: look again, and
 * call it again.  *epoch: the new one, in which that is so.  Nothing is done for a node that has nothing, or other things. */
bool store_lent_returned(struct file *f, uint64_t node, const struct lent_back *b, uint64_t *epoch);
/* The node's daemon is not the one to which parts were lent: it has these, and no others.  b->inc: of this daemon.  False, and nothing is done: another epoch than this one has begun, or another look was entered:
 * it must be asked again.  -ENOSPC: too much is lent, so that it is not known any more what is. */
struct lend_units {
    uint64_t first, last;
};
bool store_lent_held(struct file *f, uint64_t node, uint64_t epoch, const struct lend_units *parts, size_t n,
                     const struct lent_back *b, int *err);
/* Is it known what a daemon before this one has lent?  Until then every unit counts as lent, to no known node. */
bool store_lent_is_known(struct file *f);
/* It is now: all nodes that may have borrowed were asked, and what is lent was found.  The PFS has version v after that. */
void store_lent_known(struct file *f, const struct version *v);

#endif
