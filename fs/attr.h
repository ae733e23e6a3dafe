/* attr.h - a file's attributes as applications see them, made of what the PFS and its home say (attr.c). */
#ifndef EDDY_FS_ATTR_H
#define EDDY_FS_ATTR_H

#include "fs/inode.h"
#include "placement/claims/claim.h"

/* stat of the application from the PFS's statx and where the latest bytes are: size, mtime, ctime,
 * blocks of a claimed file are the claimant's word. */
void attr_merge(struct stat *st, const struct statx *stx, const struct location *loc);
/* Do its latest bytes lie on a node, so that size and times are that node's word? */
bool attr_is_word(const struct location *loc);
/* Size, times and blocks of a file whose latest bytes are on a node; the PFS has this ctime, which counts
 * if the node has not seen it.  Blocks are never 0 if there is a size: tar -S and others take such a file
 * for a file of zeros, and read nothing. */
void attr_merge_word(struct stat *st, const struct location *loc, int64_t pfs_ctime_ns);
/* As attr_merge, as it is told of inode i, and remembers that (told_times.c). */
void attr_tell(struct inode *i, struct stat *st, const struct statx *stx,
               const struct location *loc);

#endif
