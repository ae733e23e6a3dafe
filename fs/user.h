/* user.h - becoming another user.  Before any thread is made. */
#ifndef EDDY_FS_USER_H
#define EDDY_FS_USER_H

#include <stdbool.h>
#include <sys/types.h>

/* This process, which is root, becomes that user for good.  It gets the user, group and groups of the
 * password database (without an entry: a group of the same number and no others), HOME and USER.  It has no
 * privileges left, and cannot gain any by exec.  keep_admin: CAP_SYS_ADMIN stays, which the kernel requires
 * for passthrough.  0 or -errno; after an error the process must end. */
int become_user(uid_t uid, bool keep_admin);

#endif
