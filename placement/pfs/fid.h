/* fid.h - a file's identity and version, from what the PFS says of it.  Any thread. */
#ifndef EDDY_PLACEMENT_FID_H
#define EDDY_PLACEMENT_FID_H

#include "transport/base.h"
#include <sys/stat.h>

/* What every statx on the PFS asks for. */
#define PFS_STATX_MASK (STATX_BASIC_STATS | STATX_BTIME)

/* XXH3-128 of st_ino and birth time (0 where statx has none), little-endian: the same on every
 * node.  Never st_dev. */
struct fid fid_of(const struct statx *stx);
struct version version_of(const struct statx *stx);
/* fid of what an O_PATH descriptor refers to: for session_probe.  -errno. */
int fid_of_fd(int fd, struct fid *out);

/* Racy (as git says): ctime is not older than the PFS's time-stamp granularity at the moment
 * `read_at` (PFS clock, ns) when data of this version was read; a later change may have the same
 * time stamps.  Granularity: 10 ms, or 1 s when both mtime and ctime have no nanoseconds. */
bool version_racy(const struct version *v, int64_t read_at);

/* Is base's data that of v?  The home says that all versions of the file from same_as to v have the
 * same data: one name or attribute operation of ours followed the other, with nothing between.  Of
 * base's ctime that leaves no doubt where the PFS's clock does not go back; where it may (clients'
 * clocks), a write in between has moved mtime. */
bool version_is_same(const struct version *base, const struct version *v,
                     const struct version *same_as);

#define FID_TEXT 33
char *fid_text(struct fid f, char buf[FID_TEXT]); /* 32 hex digits */
int fid_parse(const char *text, struct fid *out); /* -EINVAL */

#endif
