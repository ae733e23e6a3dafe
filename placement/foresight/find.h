/* find.h - a hinted file is looked up and opened, as a reader would (find.c).  Private to placement/foresight/. */
#ifndef EDDY_PLACEMENT_FORESIGHT_FIND_H
#define EDDY_PLACEMENT_FORESIGHT_FIND_H

#include "placement/data.h"

struct found {
    struct file *f; /* referenced, and open */
    struct data_handle *data;
    struct location at; /* where its latest bytes are */
};
/* path: below the root.  0, and found_end is to be called; -ENOENT: no regular file has the name; or -errno.  Blocks on the PFS
 * and on other nodes: jobs of pool_waiters only. */
int find_hinted(const char *path, struct found *out);
void found_end(struct found *w);

#endif
