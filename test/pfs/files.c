/* Open files and their data. */
#include "ops.h"

#include "counts.h"
#include "faults.h"
#include "limits.h"
#include "nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

struct open_file {
    int fd;
    struct file_counts *counts; /* of the path by which it was opened; may be NULL */
    _Atomic int late_error;     /* of a write before; fsync or close reports it once */
};

static struct open_file *file_of(struct fuse_file_info *fi)
{
    return (struct open_file *)(uintptr_t)fi->fh;
}

int file_fd(struct fuse_file_info *fi)
{
    return file_of(fi)->fd;
}

/* The flags for the file below; unaligned buffers are used, so never O_DIRECT. */
static int flags_below(const struct fuse_file_info *fi)
{
    return (fi->flags & ~(O_DIRECT | O_CREAT | O_EXCL | O_NOFOLLOW)) | O_CLOEXEC;
}

/* Makes the handle of an open file, which takes `fd`. Returns 0 or an errno. */
static int make_handle(int fd, const struct node *node, struct fuse_file_info *fi)
{
    struct open_file *handle = calloc(1, sizeof(*handle));
    char path[PATH_MAX];

    if (!handle) {
        close(fd);
        return ENOMEM;
    }
    handle->fd = fd;
    if (node_path(node, path, sizeof(path)) == 0)
        handle->counts = counts_of(path);
    fi->fh = (uintptr_t)handle;
    fi->direct_io = 1;
    fi->parallel_direct_writes = 1;
    return 0;
}

static void free_handle(struct open_file *handle)
{
    close(handle->fd);
    free(handle);
}

static void fs_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct node *node = node_get(ino);
    char path[FD_PATH_SIZE];
    int err = -fault_check(OP_open, node, NULL);
    int fd;

    if (!err && (fi->flags & O_ACCMODE || fi->flags & O_TRUNC))
        err = -fault_check_writable(node);
    if (!err) {
        fd = open(node_fd_path(node, path), flags_below(fi));
        err = error_of(fd);
    }
    if (!err)
        err = make_handle(fd, node, fi);
    if (err)
        fuse_reply_err(req, err);
    else if (fuse_reply_open(req, fi) == -ENOENT)
        free_handle(file_of(fi));
}

static void fs_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                      struct fuse_file_info *fi)
{
    struct node *dir = node_get(parent);
    struct fuse_entry_param entry;
    int err = -fault_check(OP_create, dir, name);
    int fd = -1;

    if (!err) {
        become_caller(req);
        fd = openat(dir->fd, name, flags_below(fi) | O_CREAT | O_NOFOLLOW | (fi->flags & O_EXCL),
                    mode);
        err = error_of(fd);
        become_self();
    }
    if (!err) {
        err = find_entry(parent, name, &entry);
        if (err)
            close(fd);
    }
    if (!err) {
        err = make_handle(fd, node_get(entry.ino), fi);
        if (err)
            node_forget(entry.ino, 1);
    }
    if (err) {
        fuse_reply_err(req, err);
    } else if (fuse_reply_create(req, &entry, fi) == -ENOENT) {
        free_handle(file_of(fi));
        node_forget(entry.ino, 1);
    }
}

static void fs_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                    struct fuse_file_info *fi)
{
    struct open_file *handle = file_of(fi);
    int err = -fault_check(OP_read, node_get(ino), NULL);
    char *buffer = NULL;
    ssize_t done = 0;

    if (!err) {
        buffer = malloc(size);
        err = buffer ? 0 : ENOMEM;
    }
    if (!err) {
        done = pread(handle->fd, buffer, size, offset);
        err = error_of(done);
    }
    if (err) {
        fuse_reply_err(req, err);
    } else {
        limits_take((uint64_t)done);
        count_read(handle->counts, (uint64_t)done);
        fuse_reply_buf(req, buffer, (size_t)done);
    }
    free(buffer);
}

/* Writes as much of it as the faults allow. Returns the bytes that count as written, or -errno. */
static ssize_t write_below(fuse_req_t req, struct node *node, struct open_file *handle,
                           const char *data, size_t size, off_t offset)
{
    struct fault_write write;
    ssize_t done = faults_write_begins(&write, node, handle->fd, size, offset);

    if (done < 0)
        return done;
    if (write.late_error) {
        handle->late_error = write.late_error;
        done = (ssize_t)size;
    } else {
        become_writer(req);
        done = pwrite(handle->fd, data, write.size, offset);
        done = done < 0 ? -errno : done;
        become_self();
    }
    faults_write_ended(&write);
    return done;
}

static void fs_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t offset,
                     struct fuse_file_info *fi)
{
    struct open_file *handle = file_of(fi);
    struct node *node = node_get(ino);
    ssize_t done = fault_check(OP_write, node, NULL);

    if (!done) {
        limits_take(size);
        done = write_below(req, node, handle, data, size, offset);
    }
    if (done < 0) {
        fuse_reply_err(req, (int)-done);
        return;
    }
    count_write(handle->counts, (uint64_t)done);
    fuse_reply_write(req, (size_t)done);
}

static void fs_copy_file_range(fuse_req_t req, fuse_ino_t ino_in, off_t from,
                               struct fuse_file_info *fi_in, fuse_ino_t ino_out, off_t to,
                               struct fuse_file_info *fi_out, size_t size, int flags)
{
    int err = -fault_check(OP_copy_file_range, node_get(ino_out), NULL);
    ssize_t done = 0;

    (void)ino_in;
    if (!err) {
        done = copy_file_range(file_of(fi_in)->fd, &from, file_of(fi_out)->fd, &to, size,
                               (unsigned)flags);
        err = error_of(done);
    }
    if (err) {
        fuse_reply_err(req, err);
        return;
    }
    count_copy((uint64_t)done);
    fuse_reply_write(req, (size_t)done);
}

static void fs_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
                         struct fuse_file_info *fi)
{
    int err = -fault_check(OP_fallocate, node_get(ino), NULL);

    if (!err)
        err = error_of(fallocate(file_fd(fi), mode, offset, length));
    fuse_reply_err(req, err);
}

static void fs_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence,
                     struct fuse_file_info *fi)
{
    int err = -fault_check(OP_lseek, node_get(ino), NULL);
    off_t found = 0;

    if (!err) {
        found = lseek(file_fd(fi), offset, whence);
        err = error_of(found);
    }
    if (err)
        fuse_reply_err(req, err);
    else
        fuse_reply_lseek(req, found);
}

static int take_late_error(struct fuse_file_info *fi)
{
    return atomic_exchange(&file_of(fi)->late_error, 0);
}

static void fs_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    int err = -fault_check(OP_flush, node_get(ino), NULL);

    /* A close of the file below, for the errors that come only then (quota, say). */
    if (!err)
        err = take_late_error(fi);
    if (!err)
        err = error_of(close(dup(file_fd(fi))));
    fuse_reply_err(req, err);
}

static void fs_fsync(fuse_req_t req, fuse_ino_t ino, int data_only, struct fuse_file_info *fi)
{
    int err = -fault_check(OP_fsync, node_get(ino), NULL);

    if (!err)
        err = take_late_error(fi);
    if (!err)
        err = sync_fd(file_fd(fi), data_only);
    fuse_reply_err(req, err);
}

static void fs_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    int err = -fault_check(OP_release, node_get(ino), NULL);

    free_handle(file_of(fi));
    fuse_reply_err(req, err);
}

void files_add(struct fuse_lowlevel_ops *ops)
{
    ops->open = fs_open;
    ops->create = fs_create;
    ops->read = fs_read;
    ops->write = fs_write;
    ops->copy_file_range = fs_copy_file_range;
    ops->fallocate = fs_fallocate;
    ops->lseek = fs_lseek;
    ops->flush = fs_flush;
    ops->fsync = fs_fsync;
    ops->release = fs_release;
}
