/* borrow_map.h - which node has which unit of a file, as far as this node knows (borrow_int.h).
 *
 * The functions take b->lock, unless they say that it is held.
 */
#ifndef EDDY_PLACEMENT_BORROW_MAP_H
#define EDDY_PLACEMENT_BORROW_MAP_H

#include "placement/borrow_loan.h"

/* Whose the byte at off is, and up to where the same holds (len bytes at most).  UNIT_MINE: it is used from now on, until
 * borrow_use_end.  Waits for a return that is under way. */
struct place {
    unsigned number;
    uint64_t node; /* UNIT_NODES */
    uint64_t len;
};
struct place borrow_place(struct borrow *b, uint64_t off, uint64_t len);
/* The same, and it is not known during a return. */
struct place borrow_place_now(struct borrow *b, uint64_t off, uint64_t len);
/* After a change of the loan: was it void then?  The change is to be made elsewhere. */
bool borrow_is_void(struct borrow *b);
/* The place at off is not what it was thought to be: nothing that is thought of that node counts any more. */
void borrow_unknown(struct borrow *b, const struct place *p, uint64_t off);
/* An answer to LEND may have been lost. */
void borrow_doubt(struct file *f);
/* Lock held.  Enters the parts that LENT names; mine: also those that it names as this node's. */
void borrow_note(struct borrow *b, const struct body_lent *lent, bool mine);
void borrow_own_nothing(struct borrow *b); /* Lock held.  No unit is this node's from now on; who has them is not known. */
/* The units of this node. */
struct unit_sum borrow_units(struct borrow *b);

#endif
