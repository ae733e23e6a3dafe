/* borrow_flush.h - does a loan hold still, so that it may be used and flushed; and its end when it does not.
 *
 * All functions block, but for those that say otherwise: pool threads only.
 */
#ifndef EDDY_PLACEMENT_BORROW_FLUSH_H
#define EDDY_PLACEMENT_BORROW_FLUSH_H

#include "placement/store/file.h"

/* Before what is borrowed is used: where a view or a start of the claimant may have ended the loan, the claimant is asked, or, while it
 * is away, the marks of `eddy forget` are read.  0: it is this node's, or void from now on; -EAGAIN: it is not known now.
 * Blocking, at most once in a view. */
int borrow_may_use(struct file *f);
bool borrow_may_use_asks(struct file *f); /* It would block now.  Any thread. */
/* How often bytes that were not on the PFS were given up with a loan of the file: a descriptor from before is told (EIO). */
unsigned borrow_voided(struct file *f);

/* The flusher, before it writes a piece of a loan: 0; -ENOENT: the claim that it was lent under is void, so that nothing of it may go
 * into the file any more; -EAGAIN: it is not known now.  Blocking. */
int borrow_may_flush(struct file *loan);
/* ... if it finds no such file: does the claimant say that it has no name any more?  Blocking. */
bool borrow_is_removed(struct file *loan);
/* The flusher, before it puts a void loan beside the file: what is written into it from now on does not count, and goes to the
 * file's claimant.  Calls that use it are not waited for, as they may wait for room, which the flusher makes. */
void borrow_void_begin(struct file *loan);
/* ... and when that is done: nothing is borrowed any more.  A return that waits for the flusher meanwhile ends it. */
void borrow_void_end(struct file *loan);
/* The flusher: the store's file of a loan has become clean.  Any thread that holds no lock. */
void borrow_flushed(struct file *loan);

#endif
