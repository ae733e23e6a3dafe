/* links.h - files with several names (links.c). */
#ifndef EDDY_FS_LINKS_H
#define EDDY_FS_LINKS_H

#include "fs/inode.h"

/* The path of a name of this file other than `going`, as the PFS has it now, malloc'd; NULL: none is known
 * here.  Names that are not there any more leave the inode.  i may be NULL.  Blocking. */
char *links_other_path(struct inode *i, const struct pfs_node *going);
/* Looks at all known names of the file (regular; *now: a look at it, NULL: it was not where a name led).  False: one of them does not lead to it
 * any more, and has left the inode.  looked: the file was found by a look at one of them just now.  Blocking.
 */
bool links_are_right(struct inode *i, const struct statx *now, bool looked);
/* The name `going` of file fid, which has others, is about to be removed or replaced.  When this returns, the
 * claimant has a way to the file that does not need this name, or the PFS has all that was written.
 * Blocking. */
void links_before_removal(struct fid fid, struct pfs_node *going);
/* Had the file of this name several names when it was looked at last?  Any thread, no PFS call. */
bool links_are_known(struct inode *dir, const char *name, struct fid *fid);
/* Makes the kernel look all known names of i up again.  Any thread; it does not wait for that. */
void links_forget(struct inode *i);

#endif
