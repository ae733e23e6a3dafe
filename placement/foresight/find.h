/* find.h - a hinted file is looked up and opened, as a reader would (find.c).  Private to placement/foresight/. */
#ifndef EDDY_PLACEMENT_FORESIGHT_FIND_H
#define EDDY_PLACEMENT_FORESIGHT_FIND_H

#include "placement/data.h"

struct found {
    struct pfs_node *node; /* referenced; NULL: there is none */
    struct fid fid;
    bool guessed; /* nobody has looked whether the name leads to it: found_open says -ESTALE if not */
    struct data_known known; /* looked_ms 0: nobody has looked at it, or it is not enough */
    struct file *f; /* referenced, and open; NULL: not opened yet */
    struct data_handle *data;
    struct location at; /* where its latest bytes are */
};
/* All of these block on the PFS or on other nodes: jobs of pool_waiters only.  After any of them, found_end is to be called. */

/* path: below the root.  guess: the file that had the name when somebody looked, or NULL.  -ENOENT: no regular file has the name;
 * or -errno. */
int find_hinted(const char *path, const struct fid *guess, struct found *out);
/* Does another node have its latest bytes, or is a node away that has?  Asks no more than the home and that node. */
bool found_is_elsewhere(const struct found *w);
/* -errno. */
int found_open(const char *path, struct found *w);
void found_end(struct found *w);

#endif
