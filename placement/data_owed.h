/* data_owed.h - what a handle has changed at another node, and what was given up of it (data_owed.c). */
#ifndef EDDY_PLACEMENT_DATA_OWED_H
#define EDDY_PLACEMENT_DATA_OWED_H

#include "placement/data.h"

/* data_sync's -EIO of what was given up, as far as it is known here, or 0.  Nothing is synced, and it is said once.  Any thread. */
int data_given_up(struct data_handle *h);
/* A sync has covered what the handle has changed elsewhere (err 0), or not.  -EIO, once, if that was given up; else err. */
int data_owed_settle(struct data_handle *h, int err);
/* The handle's writer is about to be counted at `at`.  Blocking where what it had changed elsewhere may have been given up. */
void data_owed_moves(struct data_handle *h, const struct location *at);

#endif
