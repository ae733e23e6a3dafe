/* dir_policy.h - user.eddy.flush and user.eddy.shared of directories (dir_policy.c). */
#ifndef EDDY_FS_DIR_POLICY_H
#define EDDY_FS_DIR_POLICY_H

#include "fs/inode.h"

/* Values of user.eddy.shared (fs/shared.h). */
enum { SHARED_AUTO, SHARED_ALWAYS, SHARED_NEVER };

/* The number of the policy that holds for i, from its directories; -1: none of them has one.  Asks the PFS where
 * nothing fresh is known.  Blocking. */
int dir_policy_of(const struct inode *i, enum policy_kind k);
/* The flush policy of i's directories for f, which is opened for writing.  Asks the PFS where nothing
 * fresh is known. Blocking. */
void dir_policy_apply(const struct inode *i, struct file *f);
bool dir_policy_is_name(const char *xattr);
/* May it have this value?  -EINVAL */
int dir_policy_check(const struct inode *i, const char *xattr, const char *value, size_t len);
void dir_policy_changed(struct inode *i); /* set or removed here */

#endif
