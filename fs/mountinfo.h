/* mountinfo.h - what is mounted here, from /proc/self/mountinfo.  No mount is touched, so
 * dead and hanging ones do no harm.
 *
 * Any thread; no locks.
 */
#ifndef EDDY_FS_MOUNTINFO_H
#define EDDY_FS_MOUNTINFO_H

#include <stdbool.h>
#include <sys/types.h>

struct mounted {
    unsigned id;           /* as in /proc/PID/fdinfo */
    unsigned major, minor; /* of st_dev of what is in it */
    char *path, *type;     /* "fuse.eddyfs" */
    uid_t user;            /* the user that mounted it, if it is FUSE; else 0 */
};

#define EDDYFS_TYPE "fuse.eddyfs"

/* In the order in which they were mounted.  Stops when cb returns something other than 0, and
 * returns that; -errno. */
int mounted_each(int (*cb)(void *arg, const struct mounted *m), void *arg);
/* The mount on top at this absolute path.  -ENOENT: nothing is mounted there. */
int mounted_find(const char *path, struct mounted *out);
/* Is an eddyfs (alive or dead) on top there? */
bool mounted_eddyfs(
    const char *path,
    struct mounted *out); /* out may be NULL; else free it with mounted_free after true */
void mounted_free(struct mounted *m);

/* Does /proc/PID/fdinfo/FD, the file of that name, say that the descriptor leads into this mount? */
bool mount_id_is(const char *fdinfo, unsigned id);

/* Unmounts just this mount: another user may have put something else at its path since m was read.  flags:
 * those of umount2(2).  -ESTALE: the path does not lead to it; -EBUSY; -errno. */
int unmount_just(const struct mounted *m, int flags);
/* Removes the mount's name, even if it is in use, and waits for no daemon.  Does nothing if no eddyfs is
 * mounted there, and leaves another user's to the helper (unmount_helper.h), which refuses it.  Any thread.  0 or -errno. */
int unmount_lazily(const char *mountpoint);

#endif
