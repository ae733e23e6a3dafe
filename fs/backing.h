/* backing.h - files registered with the kernel for passthrough; any thread, while the mount lives (backing.c). */
#ifndef EDDY_FS_BACKING_H
#define EDDY_FS_BACKING_H

#include <stdbool.h>

/* sets settings.passthrough to whether it works here; before the first open */
void backing_try(bool kernel_has_it);
/* the kernel's id, > 0, for a file opened read-only; -errno */
int backing_open(int fd);
void backing_close(int id);

#endif
