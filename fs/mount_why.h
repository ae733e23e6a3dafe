/* mount_why.h - why nothing could be mounted. */
#ifndef EDDY_FS_MOUNT_WHY_H
#define EDDY_FS_MOUNT_WHY_H

#include <stddef.h>

/* After an attempt that failed: looks for the reason, and says into err what to do about it. */
void mount_why(char *err, size_t errlen);

#endif
