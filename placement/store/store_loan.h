/* store_loan.h - the borrower's side of a loan (store_lend.h): a file of its own (FID_LOAN) in the store, for what this node
 * writes of a file that another node has claimed.  Any thread, without locks.
 */
#ifndef EDDY_PLACEMENT_STORE_STORE_LOAN_H
#define EDDY_PLACEMENT_STORE_STORE_LOAN_H

#include "placement/store/file.h"

/* Makes f the store's file for a loan of the claim of `lender`; the PFS's bytes count up to base_end, from which on all
 * is zeros.  Again for a loan that has one: base_end may grow, the claim may have another number.  fresh: nothing is
 * borrowed yet, so no page counts that it may have from before.  -errno: the cache's disk failed. */
int store_loan_begin(struct file *f, uint64_t lender, uint64_t claim_inc, uint64_t claim_number, uint64_t base_end,
                     bool fresh);
/* 0: it is no loan. */
uint64_t store_loan_of(struct file *f, uint64_t *claim_inc, uint64_t *claim_number);
/* The first unit from *unit on that has a dirty page.  False: there is none. */
bool store_loan_dirty(struct file *f, uint64_t *unit);
/* The same for a page that is here. */
bool store_loan_valid(struct file *f, uint64_t *unit);
/* Puts a page's bytes of the PFS there, if it has none; len: up to base_end.  mtime_ns: the base's, before they were read.
 * It is no time: each flush makes it another one (store_copyout.h).  -ESTALE: there was a flush meanwhile, so they may
 * be old. */
int store_loan_fill(struct file *f, int64_t mtime_ns, uint64_t page_off, const void *buf, size_t len);

#endif
