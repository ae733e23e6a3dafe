/* eddy_mounts.h - mounts and their daemons, from outside (eddy_mounts.c, eddy_busy.c, eddy_lock.c). */
#ifndef EDDY_TOOLS_EDDY_MOUNTS_H
#define EDDY_TOOLS_EDDY_MOUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/daemon/control.h"
#include "fs/mountinfo.h"

/* ---- eddy_mounts.c ---- */
/* The mount at this path, mounted now or before; complains.  0 or -errno. */
int find_mount(const char *path, struct mount_entry *out);
/* The mount in which the file is, or in whose PFS directory it is (the longest path counts), and the file's
 * path below that in *below (malloc'd).  -ENOENT: in no mount of this user; -errno. */
int find_mount_of_file(const char *path, struct mount_entry *out, char **below);
/* Is an eddyfs at this path that was not made there, but is a bind mount of one that was?  Then *copy (to be
 * freed) is the one at the path, and original's (to be freed) the entry of that. */
bool find_copied(const char *path, struct mounted *copy, struct mount_entry *original);
/* Just this mount.  0; -EBUSY; -ESTALE: its path does not lead to it any more; -errno, complained of (but
 * EBUSY and ESTALE). */
int unmount(const struct mounted *m, bool lazily);
/* Is it still there, at whatever path? */
bool is_still_mounted(const struct mounted *m);
/* Ends the mount's connection to its daemon: processes that wait for it get ENOTCONN.  -errno. */
int abort_connection(const struct mounted *m);
/* Root becomes the mount's owner for good: what that user wrote is not parsed by root.  0 or -errno. */
int become_owner(const struct mount_entry *e);
/* A descriptor of the cache directory; checks that it belongs to the mount's owner.  -errno. */
int open_cache_dir(const struct mount_entry *e);

/* ---- eddy_busy.c ---- */
/* Prints each process that uses the mount and can be seen; returns how many. */
unsigned complain_of_users(const struct mounted *m);

/* ---- eddy_lock.c ---- */
/* Does a daemon have this cache directory's lock, or will one be started again?  -ENOENT: there is
 * no such directory, or no lock in it. */
int daemon_runs(const struct mount_entry *e, bool *runs);
/* No daemon serves the mount now: what is mounted there does not work. */
bool daemon_is_dead(const struct mount_entry *e);
/* Waits until no daemon has the lock.  tick (may be NULL) is called about once a second; false ends the wait.
 * 0, -ETIMEDOUT, -ECANCELED (by tick), -errno. */
int wait_for_daemon(const struct mount_entry *e, uint64_t deadline, bool (*tick)(void *arg),
                    void *arg);

#endif
