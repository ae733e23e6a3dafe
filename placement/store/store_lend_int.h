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
void store_lend_free(struct file *f); /* its object ends: no lock */

#endif
