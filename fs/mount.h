/* mount.h - the FUSE session: mounted, waited for, ended (mount.c); mounted by root for a user
 * (mount_user.c). */
#ifndef EDDY_FS_MOUNT_H
#define EDDY_FS_MOUNT_H

#include "fs/request.h"

/* The mount of a daemon before this one may still be there.  dead: is it dead?  clear: removes it (0 or -errno). */
struct mount_before {
    bool (*dead)(const char *mountpoint);
    int (*clear)(void);
};
/* Mounts, starts the threads that read /dev/fuse, returns when the kernel has answered.  answers: all
 * operations but init.  before: NULL: nothing is there; else it is replaced at the last moment, where the kernel can in one
 * step (mount_beneath.h). */
int mount_start(const struct fuse_lowlevel_ops *answers, const struct mount_before *before, char *err, size_t errlen);
bool mount_kernel_passes(void); /* after mount_start: the kernel's FUSE has passthrough */
/* Until the mount is gone, or leave_fd can be read. */
void mount_wait(int leave_fd);
/* unmounts if it is still mounted, even if programs use it; ends the threads: no request comes any more */
void mount_stop(void);
void mount_free(void); /* when nothing will be answered or notified any more */
/* ends the connection to the kernel: calls that wait for an answer get ENOTCONN, and mount_wait ends. Any
 * thread */
void mount_abort(void);
bool mount_is_up(void); /* any thread: the kernel has not said that it is gone */
struct fuse_session *mount_session(void);
void mount_option(const char *opt); /* one of FUSE's own -o options; before mount_start */

/* ---- mount_user.c: --user ---- */
/* Opens /dev/fuse as root, and becomes settings.user for good, with CAP_SYS_ADMIN alone.  Before
 * any thread.  0, or -errno after a message on standard error. */
int mount_user_begin(void);
/* With a supervisor begin opens several: each daemon has one of its own, since the kernel knows that
 * a daemon is dead when nobody else has its descriptor.  take: in a daemon; drop: in the supervisor,
 * when a daemon has taken one. */
void mount_user_take(void);
void mount_user_drop(void);
int mount_user_fuse(void); /* the descriptor of /dev/fuse that begin, or take, opened */
void mount_user_renew(void); /* it may have been used for a mount that failed: opens another one, if the user may */
/* Mounts what begin opened (words: FUSE's own -o options, n of them) at settings.mountpoint.  The
 * descriptor of /dev/fuse, libfuse's from now on; -errno. */
int mount_user(char *const words[], int n, char *err, size_t errlen);

#endif
