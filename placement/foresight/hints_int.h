/* hints_int.h - what hints.c and hint_files.c share.  With hints_lock. */
#ifndef EDDY_PLACEMENT_FORESIGHT_HINTS_INT_H
#define EDDY_PLACEMENT_FORESIGHT_HINTS_INT_H

#include "placement/foresight/hints.h"

#include "transport/base.h"

struct hinted *hint_file_get(const char *path, size_t len); /* counted: put drops it */
void hint_file_put(struct hinted *h);
void hint_file_left(struct hinted *h, int time); /* what is here of it is not kept for its hints any more */
void hint_file_unadmitted(struct hinted *h); /* one target less; of none, it is not looked at */
void hint_files_end(void);

#endif
