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
/* The mount that a file is in, or in the PFS directory of which it is (the longest counts), and its
 * path below that in *below (malloc'd).  -ENOENT: none of this user's; -errno. */
int find_mount_of_file(const char *path, struct mount_entry *out, char **below);
/* 0; -EBUSY; -errno, complained of (but EBUSY). */
int unmount(const char *path, bool lazily);
/* Ends the mount's connection to its daemon: whoever waits for it gets ENOTCONN.  -errno. */
int abort_connection(const struct mounted *m);
/* Descriptor of the cache directory, checked to be its owner's.  -errno. */
int open_cache_dir(const struct mount_entry *e);

/* ---- eddy_busy.c ---- */
/* Complains of each process that uses the mount, as far as they can be seen; returns how many. */
unsigned complain_of_users(const struct mounted *m);

/* ---- eddy_lock.c ---- */
/* Does a daemon have this cache directory's lock, or is one to be started again?  -ENOENT: there is
 * no such directory, or no lock in it. */
int daemon_runs(const struct mount_entry *e, bool *runs);
/* None serves the mount now: what is mounted there does not work. */
bool daemon_is_dead(const struct mount_entry *e);
/* Waits until none has; tick (may be NULL) is called about once a second, and ends the wait by false.
 * 0, -ETIMEDOUT, -ECANCELED (by tick), -errno. */
int wait_for_daemon(const struct mount_entry *e, uint64_t deadline, bool (*tick)(void *arg),
                    void *arg);

#endif
