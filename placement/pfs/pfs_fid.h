/* pfs_fid.h - a file's identity and version (transport/fid.h), from what the PFS says of it.  Any thread. */
#ifndef EDDY_PLACEMENT_PFS_PFS_FID_H
#define EDDY_PLACEMENT_PFS_PFS_FID_H

#include "transport/base.h"

#include <sys/stat.h>

/* The fields that every statx on the PFS asks for. */
#define PFS_STATX_MASK (STATX_BASIC_STATS | STATX_BTIME)

/* XXH3-128 of st_ino and birth time (0 where statx has none), little-endian: the same on every
 * node.  Never st_dev. */
struct fid fid_of(const struct statx *stx);
struct version version_of(const struct statx *stx);
/* The fid of the file of an O_PATH descriptor: for session_probe.  -errno. */
int fid_of_fd(int fd, struct fid *out);

#endif
