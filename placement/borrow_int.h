/* borrow_int.h - what the files of borrow.h share: borrow.c (what is borrowed, and its end), borrow_io.c (reading and
 * writing, LEND), borrow_flush.c (may it be flushed?), borrow_serve.c (LOAN).  Each uses those before it.
 */
#ifndef EDDY_PLACEMENT_BORROW_INT_H
#define EDDY_PLACEMENT_BORROW_INT_H

#include "placement/borrow.h"
#include "placement/loan.h"
#include "placement/store/unit_map.h"
#include "transport/lock.h"

/* Numbers in the map; 0: not known. */
enum { UNIT_MINE = 1, UNIT_CLAIMANTS, UNIT_NODES /* this and above: another borrower's */ };

/* What this node has borrowed of a file (FILE_LOAN). */
struct borrow {
    struct file_part part;
    struct lock lock; /* RANK_LEAF: all that follows */
    pthread_cond_t changed;
    struct file *loan; /* the store's file; NULL: nothing is borrowed */
    struct file *f;    /* referenced while there is one */
    struct borrow *next, **prev; /* in the list of those that have one; its lock */
    uint64_t lender, lender_inc; /* the daemon that knows of the loan; 0: not known which */
    struct loan_id id;
    uint64_t began; /* the epoch of the LENT by which it began */
    uint64_t base_end;
    struct unit_map map;
    uint64_t *node; /* by number, from UNIT_NODES on */
    unsigned nodes;
    struct overtaken {
        uint64_t lender;
        struct loan_id id;
        uint64_t epoch;
    } overtaken; /* answers to LEND of this lender do not count if they are of an earlier claim or epoch */
    unsigned using; /* calls that use the loan */
    unsigned handles;
    bool making, returning;
    bool sent;       /* returning, and RETURN is on its way */
    bool unanswered; /* returning, and a RETURN had no answer: nothing is this node's until it is known what came of it */
    _Atomic bool always, never; /* borrow_set_policy */
    bool unsure; /* the claimant may have lent more than is in the map: it is asked about what it says is here */
    bool gone;   /* the claimant has said that the file has no name any more */
    uint64_t marks_ms; /* boot_ms: the lender's marks were read */
    bool never_timed;              /* no TIMES came: all of the loan's mtime counts */
    uint64_t change_at_times;      /* `change` of the loan at the last TIMES */
    uint64_t carried;              /* bytes that went to the claimant */
    uint64_t not_before_ms;        /* boot_ms: nothing is lent before */
};
extern const struct file_part_ops borrow_ops;
static inline struct borrow *borrow_of(struct file *f)
{
    return (struct borrow *)file_part(f, FILE_LOAN, &borrow_ops);
}
/* NULL: nothing is known. */
static inline struct borrow *borrow_if(const struct file *f)
{
    return (struct borrow *)file_part_if(f, FILE_LOAN);
}

/* ---- borrow.c ---- */

void borrow_begin(void); /* for borrow_start */

/* Whose the byte at off is, and up to where the same holds (len bytes at most).  UNIT_MINE: it is used from now on, until
 * borrow_use_end.  Waits for a return that is under way. */
struct place {
    unsigned number;
    uint64_t node; /* UNIT_NODES */
    uint64_t len;
};
struct place borrow_place(struct borrow *b, uint64_t off, uint64_t len);
/* The place at off is not what it was thought to be: nothing that is thought of that node counts any more. */
void borrow_unknown(struct borrow *b, const struct place *p, uint64_t off);
/* An answer to LEND may have been lost. */
void borrow_doubt(struct file *f);
/* An answer to LEND. */
void borrow_lent(struct file *f, uint64_t lender, const struct body_lent *lent, const struct body_lend *asked);
/* RECALL: brings all to the PFS, and returns it, so that nothing is borrowed any more, and the claimant knows.  -EAGAIN: it
 * has not answered. */
int borrow_end(struct file *f, const struct overtaken *o);
/* Earlier answers to LEND do not count any more. */
void borrow_overtake(struct file *f, const struct overtaken *o);
/* The loan, referenced, if it is one of this claim; else NULL. */
struct file *borrow_loan(struct file *f, uint64_t lender, struct loan_id id);
/* HELD: the claim may have another number now.  What is in *is and in parts (LEND_MAX): from unit `from` on.  -EAGAIN: a RETURN
 * is on its way. */
int borrow_held(struct file *f, uint64_t lender, const struct body_loan *asked, struct body_loan_is *is,
                 struct item_lent *parts);
/* The loan is void: nothing is borrowed any more. */
void borrow_drop(struct file *f);
/* Of the member; 0: it is none. */
uint64_t borrow_incarnation(uint64_t node);
/* As LOAN_IS. */
void borrow_is(struct borrow *b, struct file *loan, uint64_t *size, int64_t *mtime_ns);
void borrow_timed(struct borrow *b, struct file *loan);

/* ---- borrow_io.c ---- */
/* Which nodes have these bytes, and some that follow, as the claimant says?  doubt: the node that it named for the first says
 * "not mine".  *mine (may be NULL): it names this node for the first. */
int borrow_learn(struct file *f, uint64_t claimant, uint64_t off, uint64_t len, bool doubt, bool *mine);

#endif
