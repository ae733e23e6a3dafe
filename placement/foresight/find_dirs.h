/* find_dirs.h - the directories that hinted files lie in, kept for a moment: the next file of one costs no look at the parts of its
 * path (find_dirs.c).  Private to placement/foresight/. */
#ifndef EDDY_PLACEMENT_FORESIGHT_FIND_DIRS_H
#define EDDY_PLACEMENT_FORESIGHT_FIND_DIRS_H

#include <stdbool.h>
#include <stddef.h>

#include "placement/pfs/pfs_node.h"

/* Once, before any other call. */
void find_dirs_start(void);
/* The directory by this path below the root, "" for that; *out is referenced, also if there is an error.  1: as it was kept, which
 * is not done if it is to be found anew.  0: it was looked up now.  -ENOENT, -ENOTDIR: there is none; or -errno.  Blocks on the PFS. */
int find_dir(const char *path, bool anew, struct pfs_node **out);
/* Nothing is kept any more.  May close descriptors of the PFS: pool threads, or when all of them have ended. */
void find_dirs_end(void);

#endif
