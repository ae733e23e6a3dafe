/* user.c - from root to a user, with CAP_SYS_ADMIN or nothing. */
#include "fs/user.h"

#include <errno.h>
#include <grp.h>
#include <linux/securebits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

/* A setuid program, or uid 0 in this process, gives no capability any more; this cannot be
 * undone.  Nor does setuid remove any: only capset decides which stay. */
#define BITS                                                                                       \
    (SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_NOROOT |                      \
     SECBIT_NOROOT_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

/* Of the calling thread: `keep` is effective and permitted, nothing else is, and nothing is inheritable; keep < 0: nothing at
 * all. */
static int set_capabilities(cap_value_t keep)
{
    cap_t caps = cap_init();
    int err = caps ? 0 : -ENOMEM;
    if (!err && keep >= 0 &&
        (cap_set_flag(caps, CAP_PERMITTED, 1, &keep, CAP_SET) || cap_set_flag(caps, CAP_EFFECTIVE, 1, &keep, CAP_SET)))
        err = -errno;
    if (!err && cap_set_proc(caps))
        err = -errno;
    cap_free(caps);
    return err;
}

/* Must be called while CAP_SETPCAP is there.  Without the bounding set's bits, an exec of a file with
 * capabilities gives none. */
static int drop_bounds(cap_value_t keep)
{
    for (cap_value_t cap = 0; CAP_IS_SUPPORTED(cap); cap++)
        if (cap != keep && cap_drop_bound(cap))
            return -errno;
    return 0;
}

static int set_ids(uid_t uid, const struct passwd *pw)
{
    gid_t gid = pw ? pw->pw_gid : (gid_t)uid;
    if (pw ? initgroups(pw->pw_name, gid) : setgroups(0, NULL))
        return -errno;
    if (setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
        return -errno;
    return 0;
}

int become_user(uid_t uid, bool keep_admin)
{
    cap_value_t keep = keep_admin ? CAP_SYS_ADMIN : -1;
    errno = 0;
    const struct passwd *pw = getpwuid(uid);
    if (!pw && errno && errno != ENOENT && errno != ESRCH)
        return -errno;
    if (CAP_AMBIENT_SUPPORTED() && cap_reset_ambient())
        return -errno;
    int err = drop_bounds(keep);
    if (!err && cap_set_secbits(BITS))
        err = -errno;
    if (!err)
        err = set_ids(uid, pw);
    if (!err)
        err = set_capabilities(keep);
    if (err)
        return err;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return -errno;
    if (pw && (setenv("HOME", pw->pw_dir, 1) || setenv("USER", pw->pw_name, 1)))
        return -errno;
    return getuid() == uid && geteuid() == uid ? 0 : -EPERM;
}
