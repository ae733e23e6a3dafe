/* borrow_int.h - what the files of borrow.h share.  Each uses those before it:
 *
 *     borrow_map.c        which node has which unit
 *     borrow_overtaken.c  answers to LEND that do not count any more
 *     borrow_list.c       the files of which something is borrowed
 *     borrow_loan.c       one loan: made, used, ended
 *     borrow_lent.c       it begins, or has more (LENT)
 *     borrow_held.c       the claimant was started again (HELD)
 *     borrow_give.c       its bytes go to the claimant, as they cannot go to the PFS
 *     borrow_return.c     it goes back (RETURN)
 *     borrow_recover.c    a daemon before this one had it
 *     borrow_ask.c        more is asked for, or who has what (LEND)
 *     borrow_flush.c      may it be used, and flushed?
 *     borrow_io.c         reading and writing
 *     borrow_serve.c      what the claimant asks (LOAN)
 *     borrow.c            all that is borrowed: how much, its end
 *
 *     nothing --LENT--> borrowed --all descriptors closed, and clean--> RETURN --RETURNED--> nothing
 *                          '-----RECALL: to the PFS-----------------------'
 *
 * A return waits for calls that use the loan, and calls that come meanwhile wait for it.  If the claimant does not answer,
 * it may have taken all back, and lent it to others.  So nothing is this node's own any more, and RETURN is sent again
 * until there is an answer; what is asked of the claimant meanwhile fails, or waits, as for any file of that node.
 *
 * The map says who has which unit.  Its own units count; those of other nodes are hints, which the other node corrects by
 * "not mine".  An answer to LEND counts only if no return has begun since the claimant gave it: each return begins an
 * epoch at the claimant, which the answer names.
 *
 * borrow_map.h declares the first, borrow_loan.h the next three.  All functions block, and take b->lock.  int: 0 or -errno.
 */
#ifndef EDDY_PLACEMENT_BORROW_INT_H
#define EDDY_PLACEMENT_BORROW_INT_H

#include "placement/borrow.h"
#include "placement/borrow_loan.h"
#include "placement/borrow_map.h"

/* ---- borrow_lent.c ---- */

/* An answer to LEND. */
void borrow_lent(struct file *f, uint64_t lender, const struct body_lent *lent, const struct body_lend *asked);

/* ---- borrow_held.c ---- */

/* HELD: the claim may have another number now.  What is in *is and in parts (LEND_MAX): from unit `from` on.  -EAGAIN: a RETURN
 * is on its way. */
int borrow_held(struct file *f, uint64_t lender, const struct body_loan *asked, struct body_loan_is *is,
                struct item_lent *parts);

/* ---- borrow_give.c ---- */

/* While the loan is being returned: gives what cannot be flushed any more to the claimant, if there is such. */
int borrow_give(struct file *f, uint64_t lender, struct file *loan);

/* ---- borrow_return.c ---- */

void borrow_begin(void); /* for borrow_start */
/* RECALL: brings all to the PFS, and returns it, so that nothing is borrowed any more, and the claimant knows.  -EAGAIN: it
 * has not answered. */
int borrow_end(struct file *f, const struct overtaken *o);
/* The void loan was put beside the file: nothing is borrowed any more, or will be when the return that waits for the flusher
 * ends.  For the flusher. */
void borrow_drop(struct file *f);
/* Returns what is borrowed, unless a descriptor of this node writes it; wanted: also then.  -EBUSY: not all of it is on the
 * PFS; then the flusher comes again. */
int borrow_give_back(struct file *f, bool wanted);

/* If no descriptor of this node writes the file: what is borrowed goes back soon. */
void borrow_return_unused(struct file *f);

/* ---- borrow_loan.c ---- */
/* The lender has said just now, in this view, that it knows of the loan.  And: has it, in this view? */
void borrow_note_sure(struct borrow *b);
bool borrow_is_sure(const struct borrow *b);

/* ---- borrow_ask.c ---- */

/* A write of these bytes, which nobody has: is it worth a message to borrow them?  Does not block. */
bool borrow_is_worth_it(struct borrow *b, uint64_t len);
/* Asks for them, and for the places where the handle will write next. */
int borrow_more(struct file *f, uint64_t claimant, uint64_t off, uint64_t len, const struct borrow_pattern *p);
/* Which nodes have these bytes, and some that follow, as the claimant says?  doubt: the node that it named for the first says
 * "not mine". */
int borrow_learn(struct file *f, uint64_t claimant, uint64_t off, uint64_t len, bool doubt);
/* Before a use or a flush of the loan: whether these units (n runs in order, within LEND_MAX units) are this node's, and whether the
 * file has a name (b->gone).  A return may wait for the caller: so the answer is not entered, as that waits for the return. */
int borrow_hear(struct file *f, uint64_t claimant, const struct item_lent *units, size_t n, bool *mine);

#endif
