/* store_lend_int.h - what lent parts forbid, for the store's other files (store_lend.c).  f->lock must be held. */
#ifndef EDDY_PLACEMENT_STORE_STORE_LEND_INT_H
#define EDDY_PLACEMENT_STORE_STORE_LEND_INT_H

#include "placement/store/pages.h"
#include "placement/store/store_lend.h"

#define UNIT_PAGES (LOAN_UNIT / PAGE)

/* The first page in [first, last] that is lent; last + 1: there is none.  And: the first that is not. */
uint64_t lent_next(const struct file *f, uint64_t first, uint64_t last);
uint64_t lent_end(const struct file *f, uint64_t first, uint64_t last);
static inline bool lent_any(const struct file *f, uint64_t first, uint64_t last)
{
    return f->rec->lent && lent_next(f, first, last) <= last;
}
/* Is all of it lent to this node? */
bool lent_all(const struct file *f, uint64_t node, uint64_t first, uint64_t last);
/* A flush is about to look at what it has made of the PFS file.  And: may the version that it has found be entered?  No,
 * if that of a return was entered since, with which it is not clean. */
void lend_flush_looks(struct file *f);
bool lend_flush_looked(struct file *f);
void store_lend_free(struct file *f); /* its object ends: no lock */

#endif
