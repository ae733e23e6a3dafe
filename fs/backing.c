/* backing.c - registering store files with the kernel, which then serves an open's reads and writes
 * from them (FUSE passthrough, Linux 6.9).
 *
 * It needs CAP_SYS_ADMIN, a kernel that offers it, and a suitable file system for the cache directory.  This
 * must not be stacked higher than the kernel allows, must grant leases (placement/store/kernel_io.c needs
 * them to know that no process stores any more), and must not be FUSE.  All of it is tried once, before the
 * mount is reported as ready.  Where it does not work, everything goes through the daemon and the page cache.
 */
#include "fs/backing.h"
#include "fs/mount.h"
#include "fs/settings.h"
#include "placement/pfs/pfs_size.h"
#include "placement/store/kernel_io.h"
#include "placement/store/store_open.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <unistd.h>

/* From linux/fuse.h, because that of some build machines is older than 6.9. */
struct backing_map {
    int32_t fd;
    uint32_t flags;
    uint64_t padding;
};
#define BACKING_OPEN  _IOW(229, 1, struct backing_map)
#define BACKING_CLOSE _IOW(229, 2, uint32_t)

int backing_open(int fd)
{
    struct backing_map map = {.fd = fd};
    int id = ioctl(fuse_session_fd(mount_session()), BACKING_OPEN, &map);
    return id < 0 ? -errno : id;
}

void backing_close(int id)
{
    uint32_t arg = (uint32_t)id;
    int fd = fuse_session_fd(mount_session());
    if (fd >= 0 && ioctl(fd, BACKING_CLOSE, &arg) < 0 && errno != ENOTCONN) /* fd < 0: unmounted */
        log_warn("a store file stays registered with the kernel: %s", strerror(errno));
}

/* ---- is it possible here? ---- */

static const char *why_not(int err)
{
    switch (err) {
    case -EPERM:
        return "it needs CAP_SYS_ADMIN: `setcap cap_sys_admin+ep` on the eddyfs program, or let "
               "root "
               "mount (a job's prolog)";
    case -ENOTTY:
    case -EOPNOTSUPP:
        return "this kernel's FUSE has none (Linux 6.9 and newer have)";
    case -ELOOP:
    case -EINVAL:
        return "the cache directory's file system is stacked on another one: name one on a plain "
               "disk "
               "with --cache-dir";
    case -EXDEV:
        return "the cache directory is on tmpfs, which does not tell what is stored through "
               "mappings: name "
               "one on a disk with --cache-dir";
    case -ETIME:
        return "the cache directory's file system keeps whole seconds of a file's times, which do not "
               "tell what is stored within one: name one on another with --cache-dir";
    case -EFBIG:
        return "the cache's disk takes larger files than the PFS: what a program wrote there beyond the "
               "PFS's largest size could never be flushed";
    case -EAGAIN:
    case -ENOLCK:
        return "the cache directory's file system gives no leases: name one on a plain disk with "
               "--cache-dir";
    default:
        return strerror(-err);
    }
}

/* There only the first store through a mapping moves the time stamps (docs/protocol.md, F6). */
static bool is_tmpfs(int fd)
{
    struct statfs fs;
    return !fstatfs(fd, &fs) && fs.f_type == TMPFS_MAGIC;
}

static int try_lease(int fd)
{
    if (is_tmpfs(fd))
        return -EXDEV;
    if (fcntl(fd, F_SETLEASE, F_RDLCK) < 0)
        return errno == EINVAL ? -ENOLCK : -errno;
    fcntl(fd, F_SETLEASE, F_UNLCK);
    return 0;
}

/* For example ext4 with inodes of 128 bytes: samples of a file (kernel_io_sample.c) would all be the same.
 * */
static int try_times(int fd)
{
    struct timespec odd = {.tv_sec = 1, .tv_nsec = 987654321}, ts[2] = {odd, odd};
    struct stat st;
    if (futimens(fd, ts) || fstat(fd, &st))
        return -errno;
    return odd.tv_nsec - st.st_mtim.tv_nsec > STORE_GRAIN_NS ? -ETIME : 0;
}

/* The kernel asks only the cache's disk whether a file may get so large.  This matters where the PFS's limit is
 * so low that ordinary writes come near it; beyond PFS_SIZE_COMMON only the flush tells (docs/flush.md). */
static int try_size(int fd)
{
    uint64_t refused = pfs_size_refused();
    if (refused > PFS_SIZE_COMMON)
        return 0;
    bool larger = !ftruncate(fd, (off_t)refused);
    return larger && !ftruncate(fd, 0) ? -EFBIG : 0;
}

static int try_file(const char *name)
{
    int made =
        openat(store_dirfd(), name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (made < 0)
        return -errno;
    int err = try_times(made);
    if (!err)
        err = try_size(made);
    close(made);
    int fd = openat(store_dirfd(), name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (!err)
        err = fd < 0 ? -errno : try_lease(fd);
    if (!err) {
        int id = backing_open(fd);
        if (id < 0)
            err = id;
        else
            backing_close(id);
    }
    if (fd >= 0)
        close(fd);
    unlinkat(store_dirfd(), name, 0);
    return err;
}

void backing_try(bool kernel_has_it)
{
    if (!settings.passthrough) {
        settings.passthrough_why = "switched off (--no-passthrough)";
        return;
    }
    int err;
    do
        err = kernel_has_it ? try_file("probe-passthrough") : -EOPNOTSUPP;
    while ((err == -ENOSPC || err == -EDQUOT) && store_free_inode());
    settings.passthrough = !err;
    settings.passthrough_why = err ? why_not(err) : "";
    if (err)
        log_info("no passthrough: %s; files are read and written through the daemon",
                 settings.passthrough_why);
}
