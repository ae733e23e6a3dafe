/* claim_give.h - a claim is given back, and what becomes then of bytes that the PFS never gets. */
#ifndef EDDY_PLACEMENT_CLAIMS_CLAIM_GIVE_H
#define EDDY_PLACEMENT_CLAIMS_CLAIM_GIVE_H

#include "placement/claims/claim.h"

/* Gives the claim back if the file is clean and has no writer (after a flush): version = what the
 * PFS has. */
void claim_give_back(struct file *f);
/* Its last name is gone: nothing of it is flushed any more.  A claim without writers is given back, and
 * the descriptor is closed; while nodes that have it open are being told, both stay. */
void claim_unlinked(struct file *f);
/* The last close of a file without a name, or an open of it that failed at the same time: claim_unlinked.  Blocking. */
void claim_drop_unlinked(struct file *f);
/* fn is called before this node drops bytes of a file without a name that the PFS never gets, if other nodes may
 * have the file open: it tells them, and calls claim_drop_told when those that do are counted here.  Until then the
 * claim stays.  fn is called in any thread, with no lock held, and must not wait.  fn NULL: no more calls, and all have
 * ended when this returns. */
void claim_on_drop(void (*fn)(struct file *f));
void claim_drop_told(struct file *f);
/* Has the home's answer been that the last claimant dropped such bytes? */
bool claim_dropped(const struct location *at);

#endif
