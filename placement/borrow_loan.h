/* borrow_loan.h - what this node has borrowed of one file, and the list of these files: for the files of borrow_int.h, which
 * says what must hold.
 *
 * The functions block, and take b->lock, unless they say that it is held.  int: 0 or -errno.
 */
#ifndef EDDY_PLACEMENT_BORROW_LOAN_H
#define EDDY_PLACEMENT_BORROW_LOAN_H

#include "placement/borrow.h"
#include "placement/store/file.h"
#include "placement/store/unit_map.h"
#include "transport/lock.h"

/* Numbers in the map; 0: not known. */
enum { UNIT_MINE = 1, UNIT_CLAIMANTS, UNIT_NODES /* this and above: another borrower's */ };

/* What this node has borrowed of a file (FILE_LOAN). */
struct borrow {
    struct file_part part;
    struct lock lock; /* RANK_LEAF: all that follows */
    pthread_cond_t changed;
    struct file *_Atomic loan; /* the store's file; NULL: nothing is borrowed */
    struct file *f;    /* referenced while there is one */
    struct borrow *next, **prev; /* in the list of those that have one; its lock */
    _Atomic uint64_t lender, lender_inc; /* the daemon that knows of the loan; 0: not known which */
    _Atomic uint64_t sure_in; /* the view in which it was heard last that it does */
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
    bool flushing;   /* returning, and it waits for the flusher */
    bool is_void;    /* the claim has ended: nothing is this node's, and what is written into the loan from now on does not count */
    bool beside;     /* ... and its data is in a file beside the file: there is nothing to return */
    _Atomic bool always, never; /* borrow_set_policy */
    bool unsure; /* the claimant may have lent more than is in the map: it is asked about what it says is here */
    bool gone;   /* the claimant has said that the file has no name any more */
    unsigned voided; /* how often bytes that the PFS does not have were given up with a loan */
    _Atomic uint64_t marks_ms; /* boot_ms: the lender's marks were read */
    uint64_t carried;  /* bytes that went to the claimant */
    uint64_t not_before_ms; /* boot_ms: nothing is lent before */
    unsigned refused; /* so often in a row, because of what a kernel keeps */
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

/* ---- borrow_overtaken.c ---- */

/* Lock held.  Does this answer not count any more? */
bool borrow_is_overtaken(const struct borrow *b, uint64_t lender, const struct body_lent *lent);
/* Lock held.  Earlier answers to LEND do not count any more. */
void borrow_set_overtaken(struct borrow *b, const struct overtaken *o);
/* The same without the lock. */
void borrow_overtake(struct file *f, const struct overtaken *o);

/* ---- borrow_list.c ---- */

void borrow_list_add(struct borrow *b);
void borrow_list_remove(struct borrow *b);
/* The file at this place of the list, referenced; NULL: there are not so many. */
struct file *borrow_list_at(size_t place);

/* ---- borrow_loan.c ---- */

/* The file with this fid, referenced, under the path of the other one. */
int borrow_file(struct file *same, struct fid fid, struct file **out);
/* The store's file for parts of f, referenced, with its PFS file open.  NULL: the store has none. */
struct file *borrow_loan_make(struct file *f);
/* Its end; takes the reference.  What is in it is dropped. */
void borrow_loan_unmake(struct file *loan);
/* Of the member; 0: it is none.  Any thread, no lock. */
uint64_t borrow_incarnation(uint64_t node);
/* The loan, referenced, if it is one of this claim; else NULL. */
struct file *borrow_loan(struct file *f, uint64_t lender, struct loan_id id);
struct file *borrow_loan_now(struct file *f); /* of whatever claim */
/* As LOAN_IS. */
void borrow_is(struct file *loan, uint64_t *size, int64_t *mtime_ns);
/* LOAN_TIMES has come: the mtime of what was written before it does not count any more.  -EAGAIN: a RETURN is on its way,
 * which may name it. */
int borrow_timed(struct borrow *b, struct file *loan);
/* Lock held, and dropped meanwhile: the loan is not used any more, and no call begins to use it. */
void borrow_forget_begin(struct borrow *b);
/* Then: the claimant knows that nothing is borrowed, from this epoch on (NULL: the claim is void, or nothing was).  The
 * next loan is the same file of the store, so none begins before this one has ended. */
void borrow_forget(struct borrow *b, const struct overtaken *o);
/* Or: the loan stays.  unanswered: calls do not use it until a RETURN was answered. */
void borrow_stay(struct borrow *b, bool unanswered);
/* Is what is this node's known to be so, without asking (borrow_flush.c)?  Any thread. */
bool borrow_is_known(const struct borrow *b);
bool borrow_marks_are_known(const struct borrow *b);

#endif
