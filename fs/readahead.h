/* readahead.h - how far the kernel reads ahead in our mount. */
#ifndef EDDY_FS_READAHEAD_H
#define EDDY_FS_READAHEAD_H

/* Raises the kernel's read-ahead for the mount there, if this process may: it needs root, and /sys must be
 * writable.  Else the read-ahead stays as it is.  Call it after the kernel's INIT was answered, which would
 * set it back.  Touches only /proc and /sys, never the mount. */
void readahead_raise(const char *mountpoint);

#endif
