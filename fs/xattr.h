/* xattr.h - extended attributes, for looks at many files (xattr.c). */
#ifndef EDDY_FS_XATTR_H
#define EDDY_FS_XATTR_H

#include "fs/inode.h"
#include "placement/pfs/pfs_dir.h"

/* What applications have asked for, less than the attribute time-out ago, of files in dir: a bit for each kind. */
unsigned xattr_wanted(struct inode *dir);
/* Those of them that the file by this name, seen as *stx just before, does not have. Blocking.  i: its inode, which may
 * know it already; or NULL. */
unsigned xattr_look(struct pfs_dir *d, const char *name, const struct statx *stx, unsigned wanted,
                    struct inode *i);
/* i was seen as *stx, and then without these. */
void xattr_absent(struct inode *i, const struct statx *stx, unsigned absent);

#endif
