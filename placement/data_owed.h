/* data_owed.h - what was given up of what a handle has changed at other nodes (data_owed.c). */
#ifndef EDDY_PLACEMENT_DATA_OWED_H
#define EDDY_PLACEMENT_DATA_OWED_H

#include "placement/data.h"

/* data_sync's -EIO of what was given up, as far as it is known here, or 0.  Nothing is synced, and it is said once.  Blocking if
 * data_given_up_asks. */
int data_given_up(struct data_handle *h);
bool data_given_up_asks(struct data_handle *h); /* Any thread. */
/* A sync has covered what the handle had changed elsewhere when owed_notes gave that (err 0), or not.  -EIO, once, if something was
 * given up; else err.  Blocking if data_given_up_asks. */
int data_owed_settle(struct data_handle *h, uint64_t notes, int err);
/* The handle's writer is about to be counted at `at`.  Blocking where what it had changed elsewhere may have been given up. */
void data_owed_moves(struct data_handle *h, const struct location *at);

#endif
