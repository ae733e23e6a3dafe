/* pfs.h - the PFS directory as a whole: opened before the mount; is it silent?
 *
 * In all of this room: access is by openat2 below a root descriptor opened before the mount (RESOLVE_BENEATH,
 * no links followed, submounts not crossed), so MOUNTPOINT = PFS_DIR works.  Every function blocks on the
 * PFS, unless it says otherwise: threads that may wait only (pools; FUSE workers by request_run; never the
 * network thread or libuv's pool).  0 or -errno.
 *
 * The room owns each file's FILE_PFS part, and all descriptors of the PFS.  Its locks: RANK_PFS_FILE,
 * RANK_PFS, and leaf locks.  All rooms above it call it: fs, fs/daemon, flush, placement, placement/chunks,
 * placement/claims.
 */
#ifndef EDDY_PLACEMENT_PFS_PFS_H
#define EDDY_PLACEMENT_PFS_PFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Opens the root.  hidden: the name in the root that is never visible (".eddyfs-UID").  limits:
 * descriptors to keep open. */
int pfs_open(const char *dir, const char *hidden, unsigned max_fds, char *err, size_t errlen);
void pfs_close(void);
int pfs_root_fd(void); /* for callers that open by path below it */

/* How long the PFS has been silent, ms: the age of the oldest waiting call, or the time since
 * the last call ended if that is shorter (one slow fsync beside quick lookups is no silence).  0:
 * no call waits.  Any thread. */
uint64_t pfs_waiting_ms(void);
/* Has it been silent for `ms` at `now` (boot_ms)?  Quick if a call ended lately.  Any thread. */
bool pfs_silent(uint64_t now, uint64_t ms);
/* To be called before and after every PFS call, in pfs_*.c. */
uint64_t pfs_call_begin(void);
void pfs_call_end(uint64_t ticket);

#endif
