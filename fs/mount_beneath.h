/* mount_beneath.h - see mount_beneath.c. */
#ifndef EDDY_FS_MOUNT_BENEATH_H
#define EDDY_FS_MOUNT_BENEATH_H

#include "fs/mountinfo.h"

/* Mounts what fuse_fd (of /dev/fuse) leads to in place of a mount whose daemon is dead; words: FUSE's own -o options, n of them.
 * 0; -errno, and the dead mount is still on top: the kernel or the rights do not suffice (-EINVAL, -EPERM, -ENOSYS), or its path
 * leads elsewhere now (-ESTALE).  After an error fuse_fd may have been used for a mount, and is good for no other one.  Main
 * thread. */
int mount_beneath(const struct mounted *dead, int fuse_fd, char *const words[], int n);

#endif
