/* Names: look-ups, and the requests that make, move and remove names. */
#include "ops.h"

#include "counts.h"
#include "faults.h"
#include "nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GROUPS_MAX 256

void become_caller(fuse_req_t req)
{
    static _Thread_local bool own_umask;
    const struct fuse_ctx *caller = fuse_req_ctx(req);

    if (!own_umask) { /* the umask is the process's until it is unshared */
        unshare(CLONE_FS);
        own_umask = true;
    }
    umask(caller->umask);
    if (geteuid() != 0)
        return;
    if (caller->uid != 0) {
        gid_t groups[GROUPS_MAX];
        int count = fuse_req_getgroups(req, GROUPS_MAX, groups);

        if (count < 0)
            count = 0;
        if (count > GROUPS_MAX)
            count = GROUPS_MAX;
        /* glibc's setgroups would change all threads. */
        syscall(SYS_setgroups, (size_t)count, groups);
    }
    setfsgid(caller->gid);
    setfsuid(caller->uid);
}

void become_writer(fuse_req_t req)
{
    if (geteuid() == 0)
        setfsuid(fuse_req_ctx(req)->uid);
}

void become_self(void)
{
    int saved = errno;

    if (geteuid() == 0) {
        setfsuid(0);
        setfsgid(getegid());
        syscall(SYS_setgroups, (size_t)0, NULL);
    }
    errno = saved;
}

int find_entry(fuse_ino_t parent, const char *name, struct fuse_entry_param *entry)
{
    struct node *node;
    int err;

    memset(entry, 0, sizeof(*entry));
    err = node_lookup(node_get(parent), name, &node, &entry->attr);
    if (err)
        return -err;
    faults_shape(&entry->attr);
    entry->ino = node->id;
    entry->generation = node->generation;
    return 0;
}

/* Answers with the entry that was looked for or made, or with the error before that. */
static void reply_entry(fuse_req_t req, int err, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry;

    if (!err)
        err = find_entry(parent, name, &entry);
    if (err)
        fuse_reply_err(req, err);
    else if (fuse_reply_entry(req, &entry) ==
             -ENOENT) /* interrupted: the kernel took no reference */
        node_forget(entry.ino, 1);
}

static void fs_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    int err = -fault_check(OP_lookup, node_get(parent), name);

    reply_entry(req, err, parent, name);
}

static void fs_forget(fuse_req_t req, fuse_ino_t ino, uint64_t count)
{
    node_forget(ino, count);
    fuse_reply_none(req);
}

static void fs_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
    for (size_t i = 0; i < count; i++)
        node_forget(forgets[i].ino, forgets[i].nlookup);
    fuse_reply_none(req);
}

static void fs_readlink(fuse_req_t req, fuse_ino_t ino)
{
    struct node *node = node_get(ino);
    char target[PATH_MAX + 1];
    ssize_t length = 0;
    int err = -fault_check(OP_readlink, node, NULL);

    if (!err) {
        length = readlinkat(node->fd, "", target, sizeof(target) - 1);
        err = error_of(length);
    }
    if (err) {
        fuse_reply_err(req, err);
        return;
    }
    target[length] = '\0';
    fuse_reply_readlink(req, target);
}

static void fs_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device)
{
    struct node *dir = node_get(parent);
    int err = -fault_check(OP_mknod, dir, name);

    if (!err) {
        become_caller(req);
        err = error_of(mknodat(dir->fd, name, mode, device));
        become_self();
    }
    reply_entry(req, err, parent, name);
}

static void fs_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    struct node *dir = node_get(parent);
    int err = -fault_check(OP_mkdir, dir, name);

    if (!err) {
        become_caller(req);
        err = error_of(mkdirat(dir->fd, name, mode));
        become_self();
    }
    reply_entry(req, err, parent, name);
}

static void fs_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
    struct node *dir = node_get(parent);
    int err = -fault_check(OP_symlink, dir, name);

    if (!err) {
        become_caller(req);
        err = error_of(symlinkat(target, dir->fd, name));
        become_self();
    }
    reply_entry(req, err, parent, name);
}

static void fs_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
    struct node *dir = node_get(parent);
    char path[FD_PATH_SIZE];
    int err = -fault_check(OP_link, dir, name);

    if (!err)
        err = error_of(
            linkat(AT_FDCWD, node_fd_path(node_get(ino), path), dir->fd, name, AT_SYMLINK_FOLLOW));
    reply_entry(req, err, parent, name);
}

static void fs_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct node *dir = node_get(parent);
    int err = -fault_check(OP_unlink, dir, name);

    if (!err)
        err = error_of(unlinkat(dir->fd, name, 0));
    fuse_reply_err(req, err);
}

static void fs_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct node *dir = node_get(parent);
    int err = -fault_check(OP_rmdir, dir, name);

    if (!err)
        err = error_of(unlinkat(dir->fd, name, AT_REMOVEDIR));
    fuse_reply_err(req, err);
}

static void fs_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
                      const char *new_name, unsigned flags)
{
    struct node *from = node_get(parent), *to = node_get(new_parent);
    int err = -fault_check(OP_rename, from, name);

    if (!err)
        err = error_of(renameat2(from->fd, name, to->fd, new_name, flags));
    fuse_reply_err(req, err);
}

void names_add(struct fuse_lowlevel_ops *ops)
{
    ops->lookup = fs_lookup;
    ops->forget = fs_forget;
    ops->forget_multi = fs_forget_multi;
    ops->readlink = fs_readlink;
    ops->mknod = fs_mknod;
    ops->mkdir = fs_mkdir;
    ops->symlink = fs_symlink;
    ops->link = fs_link;
    ops->unlink = fs_unlink;
    ops->rmdir = fs_rmdir;
    ops->rename = fs_rename;
}
