/* Attributes, extended ones too, and the numbers of the whole file system. */
#include "ops.h"

#include "counts.h"
#include "faults.h"
#include "nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

static void reply_attr(fuse_req_t req, int err, struct node *node)
{
    struct stat attr;

    if (!err)
        err = error_of(fstat(node->fd, &attr));
    if (err) {
        fuse_reply_err(req, err);
        return;
    }
    faults_shape(&attr);
    fuse_reply_attr(req, &attr, 0);
}

static void fs_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct node *node = node_get(ino);

    (void)fi;
    reply_attr(req, -fault_check(OP_getattr, node, NULL), node);
}

static struct timespec new_time(int to_set, int set, int now, struct timespec time)
{
    if (to_set & now)
        return (struct timespec){.tv_nsec = UTIME_NOW};
    if (to_set & set) {
        time.tv_sec += faults_behind();
        return time;
    }
    return (struct timespec){.tv_nsec = UTIME_OMIT};
}

static int set_size(struct node *node, off_t size, struct fuse_file_info *fi)
{
    char path[FD_PATH_SIZE];

    if (fi)
        return error_of(ftruncate(file_fd(fi), size));
    return error_of(truncate(node_fd_path(node, path), size));
}

static int set_attr(struct node *node, const struct stat *attr, int to_set,
                    struct fuse_file_info *fi)
{
    char path[FD_PATH_SIZE];
    int err = 0;

    if (to_set & FUSE_SET_ATTR_MODE)
        err = error_of(chmod(node_fd_path(node, path), attr->st_mode));
    if (!err && to_set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) {
        uid_t uid = to_set & FUSE_SET_ATTR_UID ? attr->st_uid : (uid_t)-1;
        gid_t gid = to_set & FUSE_SET_ATTR_GID ? attr->st_gid : (gid_t)-1;

        err = error_of(fchownat(node->fd, "", uid, gid, AT_EMPTY_PATH));
    }
    if (!err && to_set & FUSE_SET_ATTR_SIZE)
        err = set_size(node, attr->st_size, fi);
    if (!err && to_set & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME)) {
        struct timespec times[2] = {
            new_time(to_set, FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW, attr->st_atim),
            new_time(to_set, FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW, attr->st_mtim),
        };

        err = error_of(utimensat(node->fd, "", times, AT_EMPTY_PATH));
    }
    return err;
}

static void fs_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
                       struct fuse_file_info *fi)
{
    struct node *node = node_get(ino);
    int err = -fault_check(OP_setattr, node, NULL);

    if (!err)
        err = set_attr(node, attr, to_set, fi);
    reply_attr(req, err, node);
}

static void fs_statfs(fuse_req_t req, fuse_ino_t ino)
{
    struct node *node = node_get(ino ? ino : FUSE_ROOT_ID);
    struct statvfs numbers;
    int err = -fault_check(OP_statfs, node, NULL);

    if (!err)
        err = error_of(fstatvfs(node->fd, &numbers));
    if (err)
        fuse_reply_err(req, err);
    else
        fuse_reply_statfs(req, &numbers);
}

static void fs_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
                        size_t size, int flags)
{
    struct node *node = node_get(ino);
    char path[FD_PATH_SIZE];
    int err = -fault_check(OP_setxattr, node, NULL);

    if (!err)
        err = error_of(setxattr(node_fd_path(node, path), name, value, size, flags));
    fuse_reply_err(req, err);
}

/* Answers a request for attributes: their size where `size` is 0, else the buffer. */
static void reply_xattr(fuse_req_t req, int err, const char *buffer, ssize_t length, size_t size)
{
    if (err)
        fuse_reply_err(req, err);
    else if (size == 0)
        fuse_reply_xattr(req, (size_t)length);
    else
        fuse_reply_buf(req, buffer, (size_t)length);
}

static void fs_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
    struct node *node = node_get(ino);
    char path[FD_PATH_SIZE], value[XATTR_SIZE_MAX];
    ssize_t length = 0;
    int err = -fault_check(OP_getxattr, node, NULL);

    if (size > sizeof(value))
        size = sizeof(value);
    if (!err) {
        length = getxattr(node_fd_path(node, path), name, value, size);
        err = error_of(length);
    }
    reply_xattr(req, err, value, length, size);
}

static void fs_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
    struct node *node = node_get(ino);
    char path[FD_PATH_SIZE], names[XATTR_LIST_MAX];
    ssize_t length = 0;
    int err = -fault_check(OP_listxattr, node, NULL);

    if (size > sizeof(names))
        size = sizeof(names);
    if (!err) {
        length = listxattr(node_fd_path(node, path), names, size);
        err = error_of(length);
    }
    reply_xattr(req, err, names, length, size);
}

static void fs_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
    struct node *node = node_get(ino);
    char path[FD_PATH_SIZE];
    int err = -fault_check(OP_removexattr, node, NULL);

    if (!err)
        err = error_of(removexattr(node_fd_path(node, path), name));
    fuse_reply_err(req, err);
}

void attrs_add(struct fuse_lowlevel_ops *ops)
{
    ops->getattr = fs_getattr;
    ops->setattr = fs_setattr;
    ops->statfs = fs_statfs;
    ops->setxattr = fs_setxattr;
    ops->getxattr = fs_getxattr;
    ops->listxattr = fs_listxattr;
    ops->removexattr = fs_removexattr;
}
