/* lend.h - the claimant's side of loans (docs/protocol.md, "Loans"): parts of a file that other nodes write at their own
 * speed, into their own stores.
 *
 *     a borrower's LEND --> nobody's kernel keeps the file? --> units that nobody has written: LENT
 *     stat, the file's end, its last byte --> SIZE to each borrower
 *     truncation, punch, append, the end of this node --> RECALL to each borrower: all they have goes to the PFS, and back
 *     fsync --> SYNC, or FLUSH, to each borrower
 *     a borrower's RETURN: what it had is on the PFS
 *
 * All functions block: pool threads only.  0 or -errno.
 */
#ifndef EDDY_PLACEMENT_LEND_H
#define EDDY_PLACEMENT_LEND_H

#include "placement/carry.h"
#include "placement/loan.h"
#include "placement/local.h"
#include "placement/store/file.h"

/* In LENT: why no more was lent. */
enum lend_why {
    LEND_ALL,    /* all that nobody had was lent */
    LEND_KERNEL, /* a kernel keeps pages of the file, writes it by itself, or appends: not while it is open there */
    LEND_BUSY,   /* parts are being recalled: soon */
    LEND_NOT,    /* not this file */
    LEND_GONE,   /* it has no name any more */
};

/* In LEND. */
enum lend_ask {
    LEND_WANT,
    LEND_ASK,   /* nothing is to be lent: which nodes have it? */
    LEND_DOUBT, /* ... and the node that was named for the first unit says "not mine" */
};

/* In LOAN. */
enum loan_op {
    LOAN_SIZE = 1, /* size and mtime of the borrower's own writes */
    LOAN_TIMES,    /* the application sets the mtime: that of earlier writes does not count any more */
    LOAN_SYNC,     /* to the borrower's disk */
    LOAN_FLUSH,    /* to the PFS */
    LOAN_RECALL,   /* ... and returned */
    LOAN_HELD,     /* after a start of the claimant: what has the node borrowed?  The loan is of this number from now on */
    LOAN_OPS = LOAN_HELD,
};

void lend_start(void); /* before peer_start */
/* This node is about to leave: it lends no more, and recalls what it has lent.  -EIO: not all came back (logged). */
int lend_leave(void);
/* All files that this node lends parts of are to be whole: it takes back what it has lent, so that the next flush of each
 * writes size and times, too.  What an absent node has, or a borrower cannot flush, stays lent: that node tells of it.  After
 * T_OPEN nothing more is asked for. */
void lend_finish(void);
void lend_stop(void); /* after peer_stop */

/* Each borrower of each file. */
void lend_each(loan_status_fn *fn, void *arg);

/* Brings size and mtime of the file's borrowers in.  -EIO: *away does not answer. */
int lend_pull(struct file *f, uint64_t *away);
/* As local_change, of a file of which parts may be lent; a write of such a part: -EREMOTE, and nothing is done.  For a
 * node that asks for the change. */
int lend_change(struct file *f, struct change *c);
/* The same for an application of this node: what is lent is carried to the borrower. */
int lend_change_all(struct file *f, struct change *c);
/* A descriptor that appends is being opened, here or at another node, and counts already for those that lend (LEND_KERNEL): what
 * was lent before is taken back.  If not all comes back (logged) the open goes on: each append asks for it again, and fails
 * if it must. */
void lend_append_begins(struct file *f);
/* Before this node, the claimant, sets the file's mtime: what borrowers have written so far does not count for it any
 * more.  -EIO: one does not answer, and the mtime cannot be set. */
int lend_times_begin(struct file *f);
/* As local_read, for a node that asks; ends before a part that is lent: *lent_to is the node then, else 0. */
int lend_read(struct file *f, struct local_read *r, uint64_t *lent_to);
/* The same for an application of this node: what is lent is read from the borrower. */
int lend_read_all(struct file *f, struct local_read *r);

#endif
