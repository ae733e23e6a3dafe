/* getattr.h - what is known of a file's attributes without a look at the PFS (getattr.c). */
#ifndef EDDY_FS_GETATTR_H
#define EDDY_FS_GETATTR_H

#include "fs/belief.h"
#include "fs/inode.h"

/* What a look less than the attribute time-out ago saw, if no node has changed the file since, and for how
 * many seconds it may still be told; it is remembered as told.  here: false if the PFS or another node must
 * be asked.  The other asks the home (blocking): -EAGAIN: the PFS must be looked at; -errno. */
bool attr_known_here(struct inode *i, struct stat *st, double *left, struct belief *b);
int attr_known(struct inode *i, struct stat *st, double *left, struct belief *b);

#endif
