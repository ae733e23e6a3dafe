/* pfs_new.c - writing a new file that replaces no other one. */
#include "placement/pfs/pfs_new.h"

#include "placement/pfs/pfs.h"
#include "placement/pfs/pfs_file.h"
#include "placement/pfs/pfs_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NUMBERS 10000 /* of one name */

/* "NAME" + suffix + end.  NAME is cut if the whole would be too long for a directory. */
static void join(char out[NAME_BYTES], const char *name, const char *suffix, const char *end)
{
    size_t tail = strlen(suffix) + strlen(end), room = NAME_BYTES - 1;
    int keep = (int)MIN(strlen(name), tail < room ? room - tail : 0);
    snprintf(out, NAME_BYTES, "%.*s%s%s", keep, name, suffix, end);
}

static int make_dir_at(int at, const char *name)
{
    uint64_t ticket = pfs_call_begin();
    int err = mkdirat(at, name, 0700) < 0 && errno != EEXIST ? -errno : 0;
    pfs_call_end(ticket);
    return err;
}

/* Opens each directory of dir in turn, and makes missing ones.  A descriptor or -errno. */
static int open_dirs(int rootfd, const char *dir, bool make)
{
    int at = pfs_open_beneath(rootfd, "", O_RDONLY | O_DIRECTORY, 0);
    while (at >= 0 && *dir) {
        char name[NAME_BYTES];
        size_t len = strcspn(dir, "/");
        if (len >= sizeof(name)) {
            close(at);
            return -ENAMETOOLONG;
        }
        memcpy(name, dir, len);
        name[len] = '\0';
        dir += len + (dir[len] == '/');
        int err = make ? make_dir_at(at, name) : 0;
        int next = err ? err : pfs_open_beneath(at, name, O_RDONLY | O_DIRECTORY, 0);
        close(at);
        at = next;
    }
    return at;
}

int pfs_new_begin(struct pfs_new *n, int rootfd, const char *path, const char *node, struct fid fid,
                  bool make_dirs)
{
    if (!pfs_path_ok(path))
        return -EINVAL;
    const char *slash = strrchr(path, '/');
    *n = (struct pfs_new){.dirfd = -1, .fd = -1};
    n->dir = slash ? strndup(path, (size_t)(slash - path)) : xstrdup("");
    if (!n->dir)
        die("out of memory");
    snprintf(n->name, sizeof(n->name), "%s", slash ? slash + 1 : path);
    char end[FID_TEXT + 300], text[FID_TEXT];
    snprintf(end, sizeof(end), "%s-%s", node, fid_text(fid, text));
    join(n->part, n->name, ".eddy-part-", end);
    int fd = open_dirs(rootfd, n->dir, make_dirs);
    if (fd >= 0) {
        n->dirfd = fd;
        unlinkat(fd, n->part, 0); /* of a start that was interrupted */
        fd = pfs_open_beneath(n->dirfd, n->part, O_WRONLY | O_CREAT | O_EXCL, 0600);
    }
    n->fd = fd;
    if (fd >= 0)
        return 0;
    pfs_new_abort(n);
    return fd;
}

int pfs_new_write(struct pfs_new *n, const void *buf, size_t len, uint64_t off)
{
    return pfs_write_fd(n->fd, buf, len, off);
}

/* Sets the owner before the mode, because a chown removes setuid.  The file must not get setuid from `like`
 * at all. */
static int dress(int fd, const struct pfs_new_attr *attr)
{
    const struct statx *like = attr->like;
    struct timespec ts[2] = {{.tv_nsec = UTIME_OMIT}, time_of_ns(attr->mtime_ns)};
    if (ftruncate(fd, (off_t)attr->size))
        return -errno;
    if (like && fchown(fd, like->stx_uid, like->stx_gid) && errno != EPERM)
        return -errno;
    if (like && fchmod(fd, like->stx_mode & 0777))
        return -errno;
    return futimens(fd, ts) || fsync(fd) ? -errno : 0;
}

static bool is_free(int dirfd, const char *name)
{
    struct statx stx;
    return pfs_statx_at(dirfd, name, &stx) == -ENOENT;
}

/* If the PFS has no RENAME_NOREPLACE: only this node makes names with this suffix, so
 * none is made between the look and the rename. */
static int give_name(struct pfs_new *n, const char *suffix, bool always, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "%s", n->name);
    for (unsigned i = 1; always || !is_free(n->dirfd, name); i++, always = false) {
        char number[16] = "";
        if (i == NUMBERS)
            return -EEXIST;
        if (i > 1)
            snprintf(number, sizeof(number), ".%u", i);
        join(name, n->name, suffix, number);
    }
    if (renameat2(n->dirfd, n->part, n->dirfd, name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS) /* a PFS that cannot promise it */
        return -errno;
    return renameat(n->dirfd, n->part, n->dirfd, name) ? -errno : 0;
}

int pfs_new_end(struct pfs_new *n, const struct pfs_new_attr *attr, const char *suffix, bool always,
                char **made)
{
    char name[NAME_BYTES];
    uint64_t ticket = pfs_call_begin();
    int err = dress(n->fd, attr);
    if (close(n->fd) && !err && errno != EINTR)
        err = -errno; /* EDQUOT may come only now */
    n->fd = -1;
    if (!err)
        err = give_name(n, suffix, always, name);
    if (!err && fsync(n->dirfd) && errno != EINVAL)
        err = -errno;
    pfs_call_end(ticket);
    if (!err && asprintf(made, "%s%s%s", n->dir, *n->dir ? "/" : "", name) < 0)
        die("out of memory");
    pfs_new_abort(n);
    return err;
}

void pfs_new_abort(struct pfs_new *n)
{
    if (n->fd >= 0)
        close(n->fd);
    if (n->dirfd >= 0) {
        unlinkat(n->dirfd, n->part, 0);
        close(n->dirfd);
    }
    free(n->dir);
    *n = (struct pfs_new){.dirfd = -1, .fd = -1};
}
