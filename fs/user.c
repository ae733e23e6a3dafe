/* user.c - from root to a user, with CAP_SYS_ADMIN or nothing. */
#include "fs/user.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A setuid program, or uid 0 in this process, gives no capability any more; this cannot be
 * undone.  Nor does setuid remove any: only capset decides which stay. */
#define BITS                                                                                       \
    (SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_NOROOT |                      \
     SECBIT_NOROOT_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

/* effective, permitted, inheritable of this process; version 3: 64 bits */
static int set_capabilities(uint64_t wanted)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {
        {(uint32_t)wanted, (uint32_t)wanted, 0},
        {(uint32_t)(wanted >> 32), (uint32_t)(wanted >> 32), 0},
    };
    return syscall(SYS_capset, &head, data) ? -errno : 0;
}

/* Must be called while CAP_SETPCAP is there.  Without the bounding set's bits, an exec of a file with
 * capabilities gives none. */
static int drop_bounds(uint64_t keep)
{
    for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
        if (!(keep >> cap & 1) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0))
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
    uint64_t keep = keep_admin ? UINT64_C(1) << CAP_SYS_ADMIN : 0;
    errno = 0;
    const struct passwd *pw = getpwuid(uid);
    if (!pw && errno && errno != ENOENT && errno != ESRCH)
        return -errno;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) && errno != EINVAL)
        return -errno;
    int err = drop_bounds(keep);
    if (!err && prctl(PR_SET_SECUREBITS, BITS, 0, 0, 0))
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
