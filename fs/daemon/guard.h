/* guard.h - is the PFS directory the one that is meant, and the cache where it should be?  Main thread only. */
#ifndef EDDY_FS_DAEMON_GUARD_H
#define EDDY_FS_DAEMON_GUARD_H

#include <stddef.h>

#include "transport/fid.h"

/* Before anything is made: settings.pfs_dir is resolved.  Refuses a PFS that is not mounted, as far as that can be told
 * (--require-mount, /etc/fstab), and a cache inside the PFS directory; warns of what costs speed alone.  0, or -EINVAL after a
 * message on standard error. */
int guard_directories(void);
/* The store is open, and the PFS directory is `pfs`.  -EXDEV: the cache has bytes that another directory's file system is to
 * get; err says which, and what to do. */
int guard_cache_of(struct fid pfs, char *err, size_t errlen);

#endif
