/* Directories that are read. */
#include "ops.h"

#include "counts.h"
#include "faults.h"
#include "nodes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct open_dir {
    DIR *dir;
    off_t offset;         /* of the entry that comes next */
    struct dirent *entry; /* read, but there was no room for it; or NULL */
};

static struct open_dir *dir_of(struct fuse_file_info *fi)
{
    return (struct open_dir *)(uintptr_t)fi->fh;
}

static int make_dir_handle(struct node *node, struct fuse_file_info *fi)
{
    struct open_dir *handle = calloc(1, sizeof(*handle));
    int fd = openat(node->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int err = error_of(fd);

    if (!err && !handle)
        err = ENOMEM;
    if (!err) {
        handle->dir = fdopendir(fd);
        err = handle->dir ? 0 : errno;
    }
    if (err) {
        if (fd >= 0)
            close(fd);
        free(handle);
        return err;
    }
    fi->fh = (uintptr_t)handle;
    return 0;
}

static void free_dir(struct open_dir *handle)
{
    closedir(handle->dir);
    free(handle);
}

static void fs_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct node *node = node_get(ino);
    int err = -fault_check(OP_opendir, node, NULL);

    if (!err)
        err = make_dir_handle(node, fi);
    if (err)
        fuse_reply_err(req, err);
    else if (fuse_reply_open(req, fi) == -ENOENT)
        free_dir(dir_of(fi));
}

static bool is_dot(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/*
 * Adds the handle's present entry to the answer, looked up if `plus`. Returns its size
 * there; more than `room`, and nothing was added, if it does not fit; or -errno.
 */
static ssize_t add_entry(fuse_req_t req, fuse_ino_t ino, struct dirent *dirent, char *buffer,
                         size_t room, bool plus)
{
    struct fuse_entry_param entry = {
        .attr = {.st_ino = dirent->d_ino, .st_mode = (mode_t)dirent->d_type << 12},
    };
    size_t size;
    int err;

    if (!plus)
        return (ssize_t)fuse_add_direntry(req, buffer, room, dirent->d_name, &entry.attr,
                                          dirent->d_off);
    if (!is_dot(dirent->d_name)) {
        err = find_entry(ino, dirent->d_name, &entry);
        if (err == ENOENT) /* removed meanwhile: the plain entry is harmless */
            entry.attr = (struct stat){.st_ino = dirent->d_ino};
        else if (err)
            return -err;
    }
    size = fuse_add_direntry_plus(req, buffer, room, dirent->d_name, &entry, dirent->d_off);
    if (size > room && entry.ino)
        node_forget(entry.ino, 1);
    return (ssize_t)size;
}

/* Fills the buffer from `offset` on. Returns how much is in it or -errno. */
static ssize_t fill_entries(fuse_req_t req, fuse_ino_t ino, struct open_dir *handle, char *buffer,
                            size_t size, off_t offset, bool plus)
{
    size_t used = 0;

    if (offset != handle->offset) {
        seekdir(handle->dir, offset);
        handle->offset = offset;
        handle->entry = NULL;
    }
    for (;;) {
        ssize_t more;

        if (!handle->entry) {
            errno = 0;
            handle->entry = readdir(handle->dir);
            if (!handle->entry)
                return errno && !used ? -errno : (ssize_t)used;
        }
        more = add_entry(req, ino, handle->entry, buffer + used, size - used, plus);
        if (more < 0)
            return used ? (ssize_t)used : more;
        if ((size_t)more > size - used)
            return (ssize_t)used;
        used += (size_t)more;
        handle->offset = handle->entry->d_off;
        handle->entry = NULL;
    }
}

static void read_entries(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                         struct fuse_file_info *fi, bool plus)
{
    int err = -fault_check(OP_readdir, node_get(ino), NULL);
    char *buffer = err ? NULL : malloc(size);
    ssize_t used = 0;

    if (!err && !buffer)
        err = ENOMEM;
    if (!err) {
        used = fill_entries(req, ino, dir_of(fi), buffer, size, offset, plus);
        err = used < 0 ? (int)-used : 0;
    }
    if (err)
        fuse_reply_err(req, err);
    else
        fuse_reply_buf(req, buffer, (size_t)used);
    free(buffer);
}

static void fs_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                       struct fuse_file_info *fi)
{
    read_entries(req, ino, size, offset, fi, false);
}

static void fs_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                           struct fuse_file_info *fi)
{
    read_entries(req, ino, size, offset, fi, true);
}

static void fs_fsyncdir(fuse_req_t req, fuse_ino_t ino, int data_only, struct fuse_file_info *fi)
{
    int err = -fault_check(OP_fsyncdir, node_get(ino), NULL);

    if (!err)
        err = sync_fd(dirfd(dir_of(fi)->dir), data_only);
    fuse_reply_err(req, err);
}

static void fs_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    int err = -fault_check(OP_releasedir, node_get(ino), NULL);

    free_dir(dir_of(fi));
    fuse_reply_err(req, err);
}

void dirs_add(struct fuse_lowlevel_ops *ops)
{
    ops->opendir = fs_opendir;
    ops->readdir = fs_readdir;
    ops->readdirplus = fs_readdirplus;
    ops->fsyncdir = fs_fsyncdir;
    ops->releasedir = fs_releasedir;
}
