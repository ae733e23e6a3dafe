/* unmount_helper.h - unmounting without root: by fusermount3, or by umount(8) where there is no /etc/mtab. */
#ifndef EDDY_FS_UNMOUNT_HELPER_H
#define EDDY_FS_UNMOUNT_HELPER_H

#include <stdbool.h>
#include <stddef.h>

/* Unmounts the calling user's FUSE mount at this absolute path; lazily: also if it is in use.  Waits for the program
 * that does it, not for the mount's daemon.  0; -EBUSY; else -errno (-EPERM: the program refused), and said has
 * the reason, a line.  Any thread; no locks. */
int unmount_by_helper(const char *path, bool lazily, char *said, size_t size);

#endif
