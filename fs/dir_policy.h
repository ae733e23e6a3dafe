/* dir_policy.h - user.eddy.flush of directories (dir_policy.c). */
#ifndef EDDY_FS_DIR_POLICY_H
#define EDDY_FS_DIR_POLICY_H

#include "fs/inode.h"

/* The policy of i's directories for f, which is opened for writing.  Asks the PFS where nothing
 * fresh is known. Blocking. */
void dir_policy_apply(const struct inode *i, struct file *f);
bool dir_policy_is_name(const char *xattr);
/* May it have this value?  -EINVAL */
int dir_policy_check(const struct inode *i, const char *value, size_t len);
void dir_policy_changed(struct inode *i); /* set or removed here */

#endif
