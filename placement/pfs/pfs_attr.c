/* pfs_attr.c - attributes and extended attributes of a node.
 *
 * The descriptors are O_PATH.  Calls with an AT_EMPTY_PATH form use it; the others go through
 * /proc/self/fd/N, a link that leads to the file itself and ends there, even if that is a
 * symbolic link.
 *
 * Rights: chmod, chown and utimens run as the daemon.  The kernel has checked the caller
 * (default_permissions), has removed the setgid bit from a mode that the caller may not give, and sends
 * exactly what must be set.  Extended attributes are set as the caller: the file system decides, with the
 * caller's groups, whether an ACL may be set and whether the setgid bit survives it.
 */
#include "placement/pfs/pfs.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_file.h"
#include "placement/pfs/pfs_int.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452 /* Linux 6.6, the same on all architectures */
#endif

static int done(long rc)
{
    int err = rc < 0 ? -errno : 0;
    count(pfs_name_ops, 1);
    return err;
}

/* The file of n, referenced, if it is open here; else NULL. */
static struct file *open_file(struct pfs_node *n)
{
    struct fid fid;
    struct file *f = pfs_fid_known(n, &fid) ? file_find_used(fid) : NULL;
    if (!f)
        return NULL;
    bool open = pfs_is_open(f);
    if (!open)
        file_put(f);
    return open ? f : NULL;
}

/* By name.  A file that is open here is reached by its descriptor if its name is gone, or if another node has
 * made the name lead elsewhere. */
static int run(struct pfs_node *n, const struct cred *c, pfs_op_fn fn, struct pfs_op *op)
{
    int fd, err = pfs_run(n, c, fn, op);
    struct file *f = err == -ESTALE ? open_file(n) : NULL;
    if (!f)
        return err;
    if (pfs_borrow_fd(f, false, &fd) == 0) {
        err = pfs_run_on(fd, c, fn, op);
        pfs_return_fd(f);
    }
    file_put(f);
    return err;
}

/* ---- stat ---- */

static int check_fid(const struct pfs_op *op, const struct statx *stx)
{
    return op->check_fid && !fid_eq(fid_of(stx), op->fid) ? -ESTALE : 0;
}

static int op_stat_self(int fd, struct pfs_op *op)
{
    int err = pfs_statx_fd(fd, op->stx);
    if (err)
        return err;
    /* A cached descriptor of a directory that was removed behind our back. */
    if (S_ISDIR(op->stx->stx_mode) && op->stx->stx_nlink == 0)
        return -ESTALE;
    return check_fid(op, op->stx);
}

static int op_stat_name(int fd, struct pfs_op *op)
{
    int err = pfs_statx_at(fd, op->name, op->stx);
    if (op->check_fid && (err == -ENOENT || err == -ENOTDIR))
        return -ESTALE;
    return err ? err : check_fid(op, op->stx);
}

/* By its own descriptor if one is cached; else by parent and name: that is one call, and it works on mount
 * points. */
int pfs_stat(struct pfs_node *n, struct statx *stx)
{
    struct pfs_op op = {.stx = stx};
    op.check_fid = pfs_fid_known(n, &op.fid);
    if (pfs_has_fd(n)) {
        int err = pfs_run(n, NULL, op_stat_self, &op);
        if (err != -ESTALE || n == pfs_root())
            return err;
    }
    char name[NAME_BYTES];
    struct pfs_node *parent = pfs_parent_of(n, name);
    if (!parent)
        return -ESTALE;
    op.name = name;
    int err = pfs_run(parent, NULL, op_stat_name, &op);
    pfs_unref(parent);
    return err;
}

int pfs_statfs(struct statvfs *out)
{
    uint64_t ticket = pfs_call_begin();
    int err = done(fstatvfs(pfs_root_fd(), out));
    pfs_call_end(ticket);
    return err;
}

static int op_access(int fd, struct pfs_op *op)
{
    /* AT_EACCESS: with the thread's own fsuid; without it faccessat would take the real uid. */
    int err = done(faccessat(fd, "", op->flags, AT_EMPTY_PATH | AT_EACCESS));
    if (err != -EINVAL && err != -ENOENT)
        return err;
    char proc[PROC_FD];
    return done(faccessat(AT_FDCWD, pfs_proc_fd(fd, proc), op->flags, AT_EACCESS));
}

int pfs_access(struct pfs_node *n, int mask, const struct cred *c)
{
    struct pfs_op op = {.flags = mask};
    return pfs_run(n, c, op_access, &op);
}

/* ---- mode, owner, times ---- */

static int change_mode(int fd, mode_t mode)
{
    static _Atomic bool old_kernel;
    if (!old_kernel) {
        int err = done(syscall(SYS_fchmodat2, fd, "", mode, AT_EMPTY_PATH));
        if (err != -ENOSYS)
            return err;
        old_kernel = true;
    }
    char proc[PROC_FD];
    return done(chmod(pfs_proc_fd(fd, proc), mode));
}

static int op_chmod(int fd, struct pfs_op *op)
{
    struct mode_entry *e = op->check_fid ? pfs_mode_take(op->fid) : NULL;
    int err = change_mode(fd, op->mode & 07777);
    if (e) {
        if (!err)
            pfs_mode_changed(e, fd, true);
        pfs_mode_drop(e);
    }
    return err;
}

int pfs_chmod(struct pfs_node *n, mode_t mode, const struct cred *c)
{
    (void)c;
    struct pfs_op op = {.mode = mode};
    op.check_fid = pfs_fid_known(n, &op.fid);
    return run(n, NULL, op_chmod, &op);
}

static int op_chown(int fd, struct pfs_op *op)
{
    struct mode_entry *e = op->check_fid ? pfs_mode_take(op->fid) : NULL;
    int err = done(fchownat(fd, "", op->uid, op->gid, AT_EMPTY_PATH));
    if (e) {
        if (!err)
            pfs_mode_changed(e, fd, false);
        pfs_mode_drop(e);
    }
    return err;
}

int pfs_chown(struct pfs_node *n, uid_t uid, gid_t gid, const struct cred *c)
{
    (void)c;
    struct pfs_op op = {.uid = uid, .gid = gid};
    op.check_fid = pfs_fid_known(n, &op.fid);
    return run(n, NULL, op_chown, &op);
}

static int op_utimens(int fd, struct pfs_op *op)
{
    return done(utimensat(fd, "", op->ts, AT_EMPTY_PATH));
}

int pfs_utimens(struct pfs_node *n, const struct timespec ts[2], const struct cred *c)
{
    (void)c;
    struct pfs_op op = {.ts = ts};
    return run(n, NULL, op_utimens, &op);
}

/* ---- extended attributes ---- */

static int sized(ssize_t n, struct pfs_op *op)
{
    int err = done(n);
    op->out = err ? 0 : (size_t)n;
    return err;
}

static int op_getxattr(int fd, struct pfs_op *op)
{
    char proc[PROC_FD];
    return sized(getxattr(pfs_proc_fd(fd, proc), op->name, op->buf, op->len), op);
}

int pfs_getxattr(struct pfs_node *n, const char *name, void *buf, size_t len, size_t *out)
{
    struct pfs_op op = {.name = name, .buf = buf, .len = len};
    int err = run(n, NULL, op_getxattr, &op);
    *out = op.out;
    return err;
}

static int op_listxattr(int fd, struct pfs_op *op)
{
    char proc[PROC_FD];
    return sized(listxattr(pfs_proc_fd(fd, proc), op->buf, op->len), op);
}

int pfs_listxattr(struct pfs_node *n, char *buf, size_t len, size_t *out)
{
    struct pfs_op op = {.buf = buf, .len = len};
    int err = run(n, NULL, op_listxattr, &op);
    *out = op.out;
    return err;
}

static bool is_acl(const char *name)
{
    return strcmp(name, "system.posix_acl_access") == 0;
}

/* An access ACL also sets the mode, so it takes turns with the flush's own changes of the mode. */
static int change_xattr(int fd, struct pfs_op *op,
                        int (*change)(const char *path, struct pfs_op *op))
{
    char proc[PROC_FD];
    pfs_proc_fd(fd, proc);
    if (!op->check_fid || !is_acl(op->name))
        return change(proc, op);
    struct mode_entry *e = pfs_mode_take(op->fid);
    int err = change(proc, op);
    if (!err)
        pfs_mode_changed(e, fd, true);
    pfs_mode_drop(e);
    return err;
}

static int set_one(const char *path, struct pfs_op *op)
{
    return done(setxattr(path, op->name, op->value, op->len, op->flags));
}

static int remove_one(const char *path, struct pfs_op *op)
{
    return done(removexattr(path, op->name));
}

static int op_setxattr(int fd, struct pfs_op *op)
{
    return change_xattr(fd, op, set_one);
}

static int op_removexattr(int fd, struct pfs_op *op)
{
    return change_xattr(fd, op, remove_one);
}

int pfs_setxattr(struct pfs_node *n, const char *name, const void *value, size_t len, int flags,
                 const struct cred *c)
{
    struct pfs_op op = {.name = name, .value = value, .len = len, .flags = flags};
    op.check_fid = pfs_fid_known(n, &op.fid);
    return run(n, c, op_setxattr, &op);
}

int pfs_removexattr(struct pfs_node *n, const char *name, const struct cred *c)
{
    struct pfs_op op = {.name = name};
    op.check_fid = pfs_fid_known(n, &op.fid);
    return run(n, c, op_removexattr, &op);
}
