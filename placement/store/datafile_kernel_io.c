/* datafile_kernel_io.c - data files with kernel I/O: made as long as the file, looked at while applications
 * store into them, replaced.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "placement/store/datafile.h"
#include "placement/store/datafile_int.h"
#include "placement/store/datafile_kernel_io.h"
#include "placement/store/state.h"

/* The name of a new data file until it is in place.  There is one at a time, so a dead daemon leaves one at
 * most. */
#define MADE_ANEW "made-anew"
static struct lock making = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF};

/* ---- its length, its bytes ---- */

/* Uses the descriptor if one is open, with the lock that keeps it open.  Looking up the two names would cost
 * three times as much, and each sample of a file with kernel I/O begins here. */
int datafile_stat(struct file *f, struct stat *st)
{
    lock_take(&datafiles.lock);
    bool open = f->data_fd >= 0;
    int err = open && fstat(f->data_fd, st) < 0 ? -errno : 0;
    lock_drop(&datafiles.lock);
    if (open)
        return err;
    char name[DATAFILE_NAME_BYTES];
    datafile_name(f->fid, name);
    return fstatat(datafiles.dirfd, name, st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

int datafile_resize(struct file *f, uint64_t size)
{
    struct stat st;
    int fd, err = datafile_get(f, true, &fd);
    if (err)
        return err;
    if (fstat(fd, &st) < 0 || ((uint64_t)st.st_size != size && ftruncate(fd, (off_t)size) < 0))
        err = -errno;
    datafile_put_stored(f);
    return err;
}

int datafile_grow(struct file *f, uint64_t size)
{
    int fd, err = size ? datafile_get(f, true, &fd) : -EINVAL;
    if (err)
        return err;
    /* atomic beside appends, which ftruncate is not */
    if (fallocate(fd, 0, (off_t)size - 1, 1) < 0)
        err = -errno;
    datafile_put_stored(f);
    return err;
}

/* A writer holds the inode's lock while it writes.  ext4, btrfs and overlayfs take that lock for SEEK_DATA,
 * xfs takes it for a read. */
int datafile_barrier(struct file *f)
{
    char byte;
    int fd, err = datafile_get(f, false, &fd);
    if (err)
        return err == -ENOENT ? 0 : err;
    if (pread(fd, &byte, 1, 0) < 0 || (lseek(fd, 0, SEEK_DATA) < 0 && errno != ENXIO))
        err = -errno;
    datafile_put(f);
    return err;
}

void datafile_extent(struct file *f, uint64_t off, uint64_t *data, uint64_t *hole)
{
    int fd;
    *data = off;
    *hole = UINT64_MAX;
    if (datafile_get(f, false, &fd))
        return;
    off_t at = lseek(fd, (off_t)off, SEEK_DATA);
    off_t end = at < 0 ? -1 : lseek(fd, at, SEEK_HOLE);
    if (at < 0 && errno == ENXIO) {
        *data = UINT64_MAX;
    } else if (end > at) {
        *data = (uint64_t)at;
        *hole = (uint64_t)end;
    }
    datafile_put(f);
}

int datafile_append(struct file *f, const void *buf, size_t len, size_t *done)
{
    int fd, err = datafile_get(f, true, &fd);
    *done = 0;
    if (err)
        return err;
    while (*done < len && !err) {
        struct iovec iov = {(char *)(uintptr_t)buf + *done, len - *done};
        ssize_t n = pwritev2(fd, &iov, 1, 0, RWF_APPEND);
        if (n > 0)
            *done += (size_t)n;
        else if (!n)
            err = -ENOSPC;
        else if (errno != EINTR)
            err = -errno;
    }
    datafile_put_stored(f);
    return err;
}

static int open_with(struct file *f, int flags, int *fd)
{
    char name[DATAFILE_NAME_BYTES];
    datafile_name(f->fid, name);
    *fd = openat(datafiles.dirfd, name, flags | O_CLOEXEC | O_NOFOLLOW);
    return *fd < 0 ? -errno : 0;
}

int datafile_open_again(struct file *f, int *fd)
{
    return open_with(f, O_RDONLY, fd);
}

int datafile_open_to_write(struct file *f, int *fd)
{
    return open_with(f, O_RDWR, fd);
}

/* If the file has the right length, as nearly always, this opens one descriptor, and not the store's own as
 * well. */
int datafile_open_whole(struct file *f, uint64_t size, int *fd)
{
    struct stat st;
    if (!datafile_open_again(f, fd)) {
        if (!fstat(*fd, &st) && (uint64_t)st.st_size == size)
            return 0;
        close(*fd);
    }
    int err = datafile_resize(f, size);
    return err ? err : datafile_open_again(f, fd);
}

/* ---- other writers ---- */

/* The daemon's own descriptor, which can write, would count.  So it is closed, unless a call uses it now. */
static bool close_if_idle(struct file *f)
{
    lock_take(&datafiles.lock);
    int fd = datafile_take_away(f);
    lock_drop(&datafiles.lock);
    if (fd >= 0)
        close(fd);
    return fd != -EBUSY;
}

static bool lease_is_given(struct file *f, int kind)
{
    int fd, err = close_if_idle(f) ? datafile_open_again(f, &fd) : -EBUSY;
    if (err)
        return err == -ENOENT;
    bool given = !fcntl(fd, F_SETLEASE, kind);
    if (given)
        fcntl(fd, F_SETLEASE, F_UNLCK);
    close(fd);
    return given;
}

bool datafile_unwritten(struct file *f)
{
    return lease_is_given(f, F_RDLCK);
}

bool datafile_alone(struct file *f)
{
    return lease_is_given(f, F_WRLCK);
}

/* ---- another one in its place ---- */

static int copy_extent(int from, int to, uint64_t at, uint64_t end)
{
    for (off_t in = (off_t)at, out = (off_t)at; (uint64_t)in < end;) {
        ssize_t n = copy_file_range(from, &in, to, &out, (size_t)(end - (uint64_t)in), 0);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (!n)
            return -EIO;
    }
    return 0;
}

static int copy_bytes(struct file *f, int from, int to, uint64_t size)
{
    int err = ftruncate(to, (off_t)size) < 0 ? -errno : 0;
    for (uint64_t at = 0, data, hole; !err && at < size; at = hole) {
        datafile_extent(f, at, &data, &hole);
        if (data >= size)
            break;
        hole = MIN(hole, size);
        err = copy_extent(from, to, data, hole);
    }
    return err;
}

int datafile_copy(struct file *f, int *copy)
{
    struct stat st;
    int from, err = datafile_open_again(f, &from);
    *copy = -1;
    if (err)
        return err;
    int to = openat(datafiles.dirfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    err = to < 0 || fstat(from, &st) < 0 ? -errno : copy_bytes(f, from, to, (uint64_t)st.st_size);
    struct timespec ts[2] = {{.tv_nsec = UTIME_OMIT}, err ? (struct timespec){.tv_nsec = UTIME_OMIT} : st.st_mtim};
    if (!err && (futimens(to, ts) < 0 || fsync(to) < 0))
        err = -errno;
    close(from);
    if (err && to >= 0)
        close(to);
    *copy = err ? -1 : to;
    return err;
}

/* With the lock `making`.  The file's descriptor, or -1 and errno. */
static int name_anew(int copy)
{
    char path[sizeof("/proc/self/fd/") + 10];
    if (copy < 0)
        return openat(datafiles.dirfd, MADE_ANEW, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", copy);
    if (unlinkat(datafiles.dirfd, MADE_ANEW, 0) < 0 && errno != ENOENT)
        return -1;
    if (linkat(AT_FDCWD, path, datafiles.dirfd, MADE_ANEW, AT_SYMLINK_FOLLOW) < 0)
        return -1;
    return fcntl(copy, F_DUPFD_CLOEXEC, 0);
}

/* Puts a new file in the old one's place in one step: an open of the name meanwhile finds the one or the
 * other.  Returns the new file's descriptor, or -errno. */
static int make_anew(const char *name, int copy)
{
    lock_take(&making);
    int fd = name_anew(copy), err = fd < 0 ? -errno : 0;
    if (!err && renameat(datafiles.dirfd, MADE_ANEW, datafiles.dirfd, name) < 0)
        err = -errno;
    lock_drop(&making);
    if (err && fd >= 0)
        close(fd);
    return err ? err : fd;
}

/* With the lock.  No call may go on with the old file, which has no name any more.  If the descriptor's
 * number can not be given to the new file, it is returned, and the caller closes it.  The next use then opens
 * the new file by its name. */
static int take_its_place(struct file *f, int fresh)
{
    if (f->data_fd < 0 || dup3(fresh, f->data_fd, O_CLOEXEC) >= 0)
        return -1;
    int why = errno, old = datafile_take_away(f);
    if (old == -EBUSY)
        die("the cache's disk: a data file that is in use can not be replaced: %s", strerror(why));
    return old;
}

int datafile_replace(struct file *f, int copy)
{
    char name[DATAFILE_NAME_BYTES];
    datafile_name(f->fid, name);
    int fresh = make_anew(name, copy);
    if (fresh < 0)
        return fresh;
    datafile_naming(f);
    lock_take(&datafiles.lock);
    f->rec->data_synced = 0;
    f->data_replaced++;
    int old = take_its_place(f, fresh);
    lock_drop(&datafiles.lock);
    if (old >= 0)
        close(old);
    close(fresh);
    return 0;
}
