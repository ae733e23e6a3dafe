/* readahead.h - how far the kernel reads ahead in our mount. */
#ifndef EDDY_FS_READAHEAD_H
#define EDDY_FS_READAHEAD_H

/* Raises the kernel's read-ahead for what is mounted there, where this process may: root, and /sys
 * is writable.  Else it stays as it is.  After the kernel's INIT was answered, which would set it
 * back; touches /proc and /sys only, never the mount. */
void readahead_raise(const char *mountpoint);

#endif
