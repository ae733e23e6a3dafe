/* pfs_names.c - operations on names: look up, make, link, remove, rename.
 *
 * Each operation is one function that gets the parent's descriptor (pfs_run).  Rights: making,
 * linking, removing and renaming run as the caller, so that the PFS decides about ownership, quota,
 * setgid and sticky directories as if the application had called it itself.  Looking up runs as the
 * daemon: the kernel has checked the caller's search permission (default_permissions).
 *
 * A mount point below the root is shown (statx of its name returns the root of what is mounted),
 * but not entered: opening it, or anything below it, gives -EXDEV.
 */
#include "placement/pfs/pfs_file.h"
#include "placement/pfs/pfs_int.h"
#include "placement/pfs/pfs_names.h"
#include "placement/store/store_version.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <limits.h>
#include <sys/stat.h>

/* The result of one call as an error; counts the call. */
static int done(int rc)
{
    int err = rc < 0 ? -errno : 0;
    count(pfs_name_ops, 1);
    return err;
}

static int op_statx(int fd, struct pfs_op *op)
{
    return pfs_statx_at(fd, op->name, op->stx);
}

int pfs_lookup(struct pfs_node *parent, const char *name, struct statx *stx)
{
    int err = pfs_name_check(parent, name, -ENOENT);
    if (err)
        return err;
    struct pfs_op op = {.name = name, .stx = stx};
    return pfs_run(parent, NULL, op_statx, &op);
}

static int op_readlink(int fd, struct pfs_op *op)
{
    char text[PATH_MAX + 1];
    ssize_t n = readlinkat(fd, "", text, PATH_MAX);
    int err = done((int)n);
    if (err == -ENOENT) /* "" of what is no symbolic link */
        return -EINVAL;
    if (err)
        return err;
    text[n] = 0;
    op->buf = xstrdup(text);
    return 0;
}

int pfs_readlink(struct pfs_node *n, char **out)
{
    struct pfs_op op = {0};
    int err = pfs_run(n, NULL, op_readlink, &op);
    *out = op.buf;
    return err;
}

/* ---- making ---- */

static int op_mkdir(int fd, struct pfs_op *op)
{
    int err = done(mkdirat(fd, op->name, op->mode));
    return err ? err : op_statx(fd, op);
}

static int op_mknod(int fd, struct pfs_op *op)
{
    int err = done(mknodat(fd, op->name, op->mode, op->dev));
    return err ? err : op_statx(fd, op);
}

static int op_symlink(int fd, struct pfs_op *op)
{
    int err = done(symlinkat(op->name2, fd, op->name));
    return err ? err : op_statx(fd, op);
}

static int make(struct pfs_node *parent, const struct cred *c, pfs_op_fn fn, struct pfs_op *op)
{
    int err = pfs_name_check(parent, op->name, -EPERM);
    return err ? err : pfs_run(parent, c, fn, op);
}

int pfs_mkdir(struct pfs_node *parent, const char *name, mode_t mode, const struct cred *c,
              struct statx *stx)
{
    struct pfs_op op = {.name = name, .mode = mode, .stx = stx};
    return make(parent, c, op_mkdir, &op);
}

int pfs_mknod(struct pfs_node *parent, const char *name, mode_t mode, dev_t dev,
              const struct cred *c, struct statx *stx)
{
    struct pfs_op op = {.name = name, .mode = mode, .dev = dev, .stx = stx};
    return make(parent, c, op_mknod, &op);
}

int pfs_symlink(const char *target, struct pfs_node *parent, const char *name, const struct cred *c,
                struct statx *stx)
{
    struct pfs_op op = {.name = name, .name2 = target, .stx = stx};
    return make(parent, c, op_symlink, &op);
}

/* The name was there already.  Another node made it just now, or the kernel's cache is old.  The kernel has
 * not checked the caller's permissions for this file, so it is opened as the caller. */
static int open_existing(int dirfd, struct pfs_op *op)
{
    int err = pfs_statx_at(dirfd, op->name, op->stx);
    if (err)
        return err;
    if (!S_ISREG(op->stx->stx_mode))
        return -ESTALE;
    int access = op->flags & O_ACCMODE;
    int fd = pfs_open_beneath(dirfd, op->name, O_RDWR, 0);
    if (fd == -EACCES && access != O_RDWR)
        fd = pfs_open_beneath(dirfd, op->name, access, 0);
    if (fd == -ELOOP)
        return -ESTALE;
    if (fd < 0)
        return fd;
    op->fd_out = fd;
    return 0;
}

static int op_create(int dirfd, struct pfs_op *op)
{
    int err = 0;
    for (int tries = 0; tries < 3; tries++) {
        int fd = pfs_open_beneath(dirfd, op->name, O_CREAT | O_EXCL | O_RDWR, op->mode);
        op->created = fd >= 0;
        op->fd_out = fd;
        err = fd < 0 ? fd : 0;
        if (err == -EEXIST && !(op->flags & O_EXCL))
            err = open_existing(dirfd, op);
        if (err != -ENOENT) /* there, then gone: again */
            break;
    }
    if (err)
        return err;
    err = pfs_statx_fd(op->fd_out, op->stx);
    if (err)
        close(op->fd_out);
    return err;
}

int pfs_create(struct pfs_node *parent, const char *name, int flags, mode_t mode,
               const struct cred *c, struct pfs_made *made)
{
    struct pfs_op op = {.name = name, .flags = flags, .mode = mode, .stx = &made->stx};
    int err = make(parent, c, op_create, &op);
    if (err)
        return err;
    posix_fadvise(op.fd_out, 0, 0, POSIX_FADV_RANDOM);
    made->fd = op.fd_out;
    made->created = op.created;
    return 0;
}

/* ---- linking, removing ---- */

/* By the descriptor whose fid was checked, not by the old name: AT_EMPTY_PATH would need
 * CAP_DAC_READ_SEARCH. */
static int op_link(int fd, struct pfs_op *op)
{
    char proc[PROC_FD];
    int err = done(linkat(AT_FDCWD, pfs_proc_fd(op->fd2, proc), fd, op->name, AT_SYMLINK_FOLLOW));
    return err ? err : op_statx(fd, op);
}

int pfs_link(struct pfs_node *n, struct pfs_node *parent, const char *name, const struct cred *c,
             struct statx *stx)
{
    struct pfs_reach h;
    int err = pfs_reach(n, &h);
    if (err)
        return err;
    struct pfs_op op = {.name = name, .fd2 = h.fd, .stx = stx};
    err = make(parent, c, op_link, &op);
    pfs_leave(&h);
    return err;
}

static int remove_last_name(int dirfd, const struct pfs_op *op)
{
    store_set_leaving(fid_of(op->stx), true);
    int err = done(unlinkat(dirfd, op->name, 0));
    if (err)
        store_set_leaving(fid_of(op->stx), false);
    return err;
}

/* A directory, a link or the root of another file system is not opened, and none of them is a
 * file's last name. */
static int op_unlink(int dirfd, struct pfs_op *op)
{
    int fd = pfs_is_local(dirfd) ? pfs_open_beneath(dirfd, op->name, O_PATH, 0) : -1;
    int err = fd < 0 ? op_statx(dirfd, op) : pfs_statx_fd(fd, op->stx);
    if (!err && S_ISDIR(op->stx->stx_mode))
        err = -EISDIR;
    if (!err && S_ISREG(op->stx->stx_mode) &&
        ((op->is && !fid_eq(*op->is, fid_of(op->stx))) || (op->stx->stx_nlink > 1 && !op->several)))
        err = -EMLINK;
    bool last = !err && S_ISREG(op->stx->stx_mode) && op->stx->stx_nlink == 1;
    if (!err)
        err = last ? remove_last_name(dirfd, op) : done(unlinkat(dirfd, op->name, 0));
    bool keep = fd >= 0 && !err && last;
    if (fd >= 0 && !keep)
        close(fd);
    op->fd_out = keep ? fd : -1;
    return err;
}

int pfs_unlink(struct pfs_node *parent, const char *name, const struct fid *is, bool several,
               const struct cred *c, struct statx *removed, int *held)
{
    int err = pfs_name_check(parent, name, -ENOENT);
    struct pfs_op op = {.name = name, .is = is, .several = several, .stx = removed, .fd_out = -1};
    if (!err)
        err = pfs_run(parent, c, op_unlink, &op);
    *held = op.fd_out;
    return err;
}

void pfs_unlink_done(int held)
{
    pfs_close_fd(held);
}

static int op_hold(int dirfd, struct pfs_op *op)
{
    int fd = pfs_open_beneath(dirfd, op->name, O_PATH, 0);
    int err = fd < 0 ? fd : pfs_statx_fd(fd, op->stx);
    if (!err && !S_ISREG(op->stx->stx_mode))
        err = -EINVAL;
    if (err && fd >= 0)
        close(fd);
    op->fd_out = err ? -1 : fd;
    return err;
}

int pfs_hold_name(struct pfs_node *parent, const char *name, struct statx *stx)
{
    struct pfs_op op = {.name = name, .stx = stx, .fd_out = -1};
    int err = pfs_name_check(parent, name, -ENOENT);
    if (!err)
        err = pfs_run(parent, NULL, op_hold, &op);
    return err ? err : op.fd_out;
}

int pfs_held_names(int held)
{
    struct statx stx;
    int err = pfs_statx_fd(held, &stx);
    return err ? err : (int)MIN(stx.stx_nlink, (uint32_t)INT_MAX);
}

static int op_rmdir(int fd, struct pfs_op *op)
{
    return done(unlinkat(fd, op->name, AT_REMOVEDIR));
}

int pfs_rmdir(struct pfs_node *parent, const char *name, const struct cred *c)
{
    int err = pfs_name_check(parent, name, -ENOENT);
    if (err)
        return err;
    struct pfs_op op = {.name = name};
    return pfs_run(parent, c, op_rmdir, &op);
}

/* ---- renaming ---- */

/* RENAME_NOREPLACE where the PFS does not have it (MooseFS: EINVAL).  For a file: link is exclusive, then the
 * old name is removed (a crash between the two leaves both names).  For what cannot be linked (directories,
 * file systems without hard links): look, then rename; a file or an empty directory that is made in between
 * is replaced. */
static int noreplace_by_hand(int fd, struct pfs_op *op)
{
    struct statx stx;
    int err = pfs_statx_at(fd, op->name, &stx);
    if (err)
        return err;
    if (!S_ISDIR(stx.stx_mode)) {
        err = done(linkat(fd, op->name, op->fd2, op->name2, 0));
        if (!err)
            return done(unlinkat(fd, op->name, 0));
        if (err != -EPERM && err != -EOPNOTSUPP && err != -EMLINK && err != -ENOSYS)
            return err;
    }
    err = pfs_statx_at(op->fd2, op->name2, &stx);
    if (err != -ENOENT)
        return err ? err : -EEXIST;
    return done(renameat(fd, op->name, op->fd2, op->name2));
}

static int op_rename(int fd, struct pfs_op *op)
{
    int err = done(renameat2(fd, op->name, op->fd2, op->name2, (unsigned)op->flags));
    if (err == -EINVAL && op->flags == RENAME_NOREPLACE)
        err = noreplace_by_hand(fd, op);
    return err;
}

int pfs_rename(struct pfs_node *parent, const char *name, struct pfs_node *newparent,
               const char *newname, unsigned flags, const struct cred *c)
{
    if (flags != 0 && flags != RENAME_NOREPLACE && flags != RENAME_EXCHANGE)
        return -EINVAL;
    int err = pfs_name_check(parent, name, -ENOENT);
    if (!err)
        err = pfs_name_check(newparent, newname, flags == RENAME_EXCHANGE ? -ENOENT : -EPERM);
    if (err)
        return err;
    struct pfs_reach to;
    err = pfs_reach(newparent, &to);
    if (err)
        return err;
    struct pfs_op op = {.name = name, .name2 = newname, .fd2 = to.fd, .flags = (int)flags};
    err = pfs_run(parent, c, op_rename, &op);
    pfs_leave(&to);
    return err;
}
