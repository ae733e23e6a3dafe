/* look_int.h - what only the parts of look.h share:
 *
 * look.c         tickets, and the files that are open here
 * look_leave.c   LEAVE: the homes are told which files are closed
 * look_break.c   BREAK: what this node believes of a file ends
 */
#ifndef EDDY_PLACEMENT_CLAIMS_LOOK_INT_H
#define EDDY_PLACEMENT_CLAIMS_LOOK_INT_H

#include "placement/claims/look.h"

/* ---- look_leave.c ---- */
/* The file is not open here any more.  number: of the last WHERE that was sent before.  Any thread; no lock is
 * held. */
void look_left(struct fid fid, uint64_t number);
void look_leave_start(void); /* network thread, as the next */
void look_leave_stop(void);

#endif
