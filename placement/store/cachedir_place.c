/* cachedir_place.c - where the cache directory is, and whose.
 *
 * It has the only copy of acknowledged bytes, and other users may be able to write to the
 * directory above it (/tmp).  So the last component is not followed if it is a link.  The directory must
 * belong to this user and be closed to others.
 */
#include "placement/store/cachedir_int.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "transport/base.h"

int cachedir_fail(int code, char *err, size_t errlen, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err, errlen, fmt, ap);
    va_end(ap);
    return code;
}

bool cachedir_is_full(int err)
{
    return err == -ENOSPC || err == -EDQUOT;
}

const char *cachedir_hint(int err)
{
    return cachedir_is_full(err) ? " (make room or inodes on its disk: see df and df -i)" : "";
}

/* Makes the parents of path that are missing, with mode 0700: what is in them belongs to one user. */
static int make_parents(const char *path)
{
    char *copy = xstrdup(path);
    int err = 0;
    for (char *p = copy + 1; !err && (p = strchr(p, '/')); p++) {
        *p = 0;
        if (mkdir(copy, 0700) < 0 && errno != EEXIST)
            err = -errno;
        *p = '/';
    }
    free(copy);
    return err;
}

int cachedir_open_place(struct cachedir *d, bool make, char *err, size_t errlen)
{
    char *path = xstrdup(d->path); /* without slashes at its end: "link/" would follow the link */
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
        path[n - 1] = 0;
    int e = make ? make_parents(path) : 0;
    if (!e && make) {
        d->made = !mkdir(path, 0700);
        e = d->made || errno == EEXIST ? 0 : -errno;
    }
    if (!e) {
        d->fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        e = d->fd < 0 ? -errno : 0;
    }
    free(path);
    if (e == -ELOOP || e == -ENOTDIR)
        return cachedir_fail(
            e, err, errlen,
            "cache directory %s is a link or no directory: name another one with --cache-dir",
            d->path);
    return e ? cachedir_fail(e, err, errlen,
                    "can not open cache directory %s: %s%s: name another one with --cache-dir",
                    d->path, strerror(-e), cachedir_hint(e))
             : 0;
}

static int check_owner(struct cachedir *d, char *err, size_t errlen)
{
    struct stat st;
    if (fstat(d->fd, &st) < 0)
        return cachedir_fail(-errno, err, errlen, "cache directory %s: %s", d->path, strerror(errno));
    d->dev = st.st_dev;
    if (st.st_uid != geteuid())
        return cachedir_fail(
            -EPERM, err, errlen,
            "cache directory %s belongs to uid %u, not to you: name another one with --cache-dir",
            d->path, (unsigned)st.st_uid);
    if (st.st_mode & 022)
        return cachedir_fail(
            -EPERM, err, errlen,
            "cache directory %s can be written by others: chmod 700 it if you know what is in it, "
            "else name another one with --cache-dir",
            d->path);
    return 0;
}

int cachedir_close_to_others(struct cachedir *d, char *err, size_t errlen)
{
    struct stat st;
    bool is = !fstat(d->fd, &st) && (st.st_mode & 0777) == 0700;
    return is || !fchmod(d->fd, 0700) ? 0 : cachedir_fail(-errno, err, errlen, "cache directory %s: chmod 700: %s", d->path, strerror(errno));
}

/* The directory in which the path's last name is; not by a link. */
static int stat_parent(const char *path, struct stat *st)
{
    char *copy = xstrdup(path);
    for (size_t n = strlen(copy); n > 1 && copy[n - 1] == '/'; n--)
        copy[n - 1] = 0;
    char *slash = strrchr(copy, '/');
    if (slash)
        slash[slash == copy] = 0;
    int e = lstat(slash ? copy : ".", st) < 0 ? -errno : 0;
    free(copy);
    return e;
}

/* The default's parent is in a directory that all users can write to.  A user that owned the parent could
 * replace what is in it; one that made a link of that name could choose the place. */
static int check_parent(struct cachedir *d, char *err, size_t errlen)
{
    struct stat st, named;
    int fd = openat(d->fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int e = fd < 0 || fstat(fd, &st) < 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    if (!e)
        e = stat_parent(d->path, &named);
    if (!e && (named.st_ino != st.st_ino || named.st_dev != st.st_dev))
        return cachedir_fail(
            -ELOOP, err, errlen,
            "the directory of the default cache directory %s is a link: name another one with "
            "--cache-dir",
            d->path);
    if (!e && (st.st_uid != geteuid() && st.st_uid != 0))
        return cachedir_fail(
            -EPERM, err, errlen,
            "the directory of the default cache directory %s belongs to uid %u: name another one "
            "with --cache-dir",
            d->path, (unsigned)st.st_uid);
    return e ? cachedir_fail(e, err, errlen, "cache directory %s/..: %s", d->path, strerror(-e)) : 0;
}

static int check_disk(struct cachedir *d, bool is_default, char *err, size_t errlen)
{
    struct statfs fs;
    if (fstatfs(d->fd, &fs) < 0)
        return cachedir_fail(-errno, err, errlen, "cache directory %s: statfs: %s", d->path,
                    strerror(errno));
    d->stacked = fs.f_type == OVERLAYFS_SUPER_MAGIC || fs.f_type == ECRYPTFS_SUPER_MAGIC;
    d->memory = fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC;
    if (d->memory && is_default)
        return cachedir_fail(-EINVAL, err, errlen,
                    "the default cache directory %s is in memory (tmpfs): name one on a disk with "
                    "--cache-dir (or this one, if you want that)",
                    d->path);
    if (d->memory)
        log_warn("cache directory %s is in memory: its contents count as the job's memory and are "
                 "lost when the node stops",
                 d->path);
    return 0;
}

int cachedir_check_place(struct cachedir *d, bool is_default, char *err, size_t errlen)
{
    int e = check_owner(d, err, errlen);
    if (!e && is_default)
        e = check_parent(d, err, errlen);
    return e ? e : check_disk(d, is_default, err, errlen);
}
