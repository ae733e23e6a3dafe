/* outdated.h - what is here of a hinted file is not what will be read, or is here no more (outdated.c).  With hints_lock.  Private to
 * placement/foresight/. */
#ifndef EDDY_PLACEMENT_FORESIGHT_OUTDATED_H
#define EDDY_PLACEMENT_FORESIGHT_OUTDATED_H

#include "placement/foresight/hints.h"

/* It has other bytes elsewhere, or will have: what is here leaves first.  True: look_closed is to be called, before the change goes
 * on. */
bool outdated_file(struct hinted *h);
/* [off, end) of the file has left the store. */
void outdated_range(struct fid fid, uint64_t off, uint64_t end);

#endif
