/* cachedir.c - opening the cache directory: it must be empty, or have eddyfs's format file, and one daemon at a time has the
 * lock.  Where it is, and whose: cachedir_place.c.
 */
#include "placement/store/cachedir_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/base.h"

#define TEXT_MAX 256

void cachedir_boot_id(char out[40])
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, 36);
    if (fd >= 0)
        close(fd);
    snprintf(out + MAX(n, 0), (size_t)(40 - MAX(n, 0)), "%s", n > 0 ? "" : "unknown");
}

/* ---- small text files ---- */

static int read_text(int dirfd, const char *name, char buf[TEXT_MAX])
{
    int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    ssize_t n = read(fd, buf, TEXT_MAX - 1);
    int err = n < 0 ? -errno : 0;
    close(fd);
    buf[MAX(n, 0)] = 0;
    return err;
}

static int put_text(int fd, const char *text)
{
    size_t len = strlen(text);
    ssize_t n = pwrite(fd, text, len, 0);
    int err = n < 0 ? -errno : (size_t)n < len ? -ENOSPC : 0;
    if (!err && (ftruncate(fd, (off_t)len) < 0 || fsync(fd) < 0))
        err = -errno;
    return err;
}

/* The disk has no room, or no inode, for another file.  The text is shorter than a sector, which a disk
 * writes as a whole. */
static int overwrite_text(int dirfd, const char *name, const char *text)
{
    int fd = openat(dirfd, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT ? -ENOSPC : -errno; /* there was none */
    int err = put_text(fd, text);
    close(fd);
    return err;
}

/* Replaces the file as a whole; it is on disk when this returns. */
static int write_text(int dirfd, const char *name, const char *text)
{
    char tmp[32];
    snprintf(tmp, sizeof(tmp), "%s.new", name);
    if (unlinkat(dirfd, tmp, 0) < 0 && errno != ENOENT)
        return -errno;
    int fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    int err = fd < 0 ? -errno : put_text(fd, text);
    if (fd >= 0)
        close(fd);
    if (!err && renameat(dirfd, tmp, dirfd, name) < 0)
        err = -errno;
    if (err)
        unlinkat(dirfd, tmp, 0);
    else if (fsync(dirfd) < 0)
        err = -errno;
    return cachedir_is_full(err) ? overwrite_text(dirfd, name, text) : err;
}

/* ---- lock ---- */

static long lock_holder(int fd)
{
    char buf[24] = "";
    ssize_t n = pread(fd, buf, sizeof(buf) - 1, 0);
    return n > 0 ? strtol(buf, NULL, 10) : 0;
}

static bool lock_has_its_name(const struct cachedir *d)
{
    struct stat st, named;
    return !fstat(d->lock_fd, &st) && !fstatat(d->fd, "lock", &named, AT_SYMLINK_NOFOLLOW) && st.st_ino == named.st_ino &&
           st.st_dev == named.st_dev;
}

/* -ESTALE: another daemon has just removed the file, and perhaps the directory, at its end. */
static int open_lock(struct cachedir *d, char *err, size_t errlen)
{
    d->lock_fd = openat(d->fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (d->lock_fd < 0 && errno == ENOENT)
        return -ESTALE;
    if (d->lock_fd < 0)
        return cachedir_fail(-errno, err, errlen,
                    "cache directory %s can not be written: %s%s: name another one with --cache-dir",
                    d->path, strerror(errno), cachedir_hint(-errno));
    if (flock(d->lock_fd, LOCK_EX | LOCK_NB) < 0) {
        int e = -errno;
        if (e != -EWOULDBLOCK)
            return cachedir_fail(e, err, errlen, "cache directory %s: flock: %s", d->path, strerror(-e));
        return cachedir_fail(
            -EBUSY, err, errlen,
            "cache directory %s is in use by another eddyfs (pid %ld): name another one with "
            "--cache-dir, or wait for that one to end (eddy wait)",
            d->path, lock_holder(d->lock_fd));
    }
    return lock_has_its_name(d) ? 0 : -ESTALE;
}

static int take_lock(struct cachedir *d, char *err, size_t errlen)
{
    char pid[24];
    int e = open_lock(d, err, errlen), n = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
    if (e)
        return e;
    if (ftruncate(d->lock_fd, 0) < 0 || pwrite(d->lock_fd, pid, (size_t)n, 0) != n)
        return cachedir_fail(
            -ENOSPC, err, errlen,
            "cache directory %s can not be written%s: name another one with --cache-dir", d->path,
            cachedir_hint(-ENOSPC));
    return 0;
}

/* ---- format ---- */

/* Has it only what an interrupted start may have left, and the log? */
static int is_empty(int dirfd)
{
    int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir)
        return -errno;
    static const char *const harmless[] = {".",          "..",      "lock",      "format.new",
                                           "eddyfs.log", "control", "lost+found"};
    int empty = 1;
    for (struct dirent *e; empty && (e = readdir(dir));) {
        empty = 0;
        for (size_t i = 0; i < ARRAY_LEN(harmless); i++)
            empty |= !strcmp(e->d_name, harmless[i]);
    }
    closedir(dir);
    return empty;
}

static int write_format(struct cachedir *d, uint32_t chunk_size)
{
    char text[TEXT_MAX];
    snprintf(text, sizeof(text), "eddyfs-cache %u\nchunk %u\n", CACHE_FORMAT, (unsigned)chunk_size);
    int err = write_text(d->fd, "format", text);
    if (!err)
        d->chunk_size = chunk_size;
    return err;
}

static bool chunk_size_ok(unsigned n)
{
    return n >= 64u << 10 && n <= 16u << 20 && !(n & (n - 1));
}

static int check_format(struct cachedir *d, char *err, size_t errlen)
{
    char text[TEXT_MAX];
    unsigned version, chunk;
    int e = read_text(d->fd, "format", text);
    if (e == -ENOENT) {
        int empty = is_empty(d->fd);
        if (empty < 0)
            return cachedir_fail(empty, err, errlen, "cache directory %s: %s", d->path, strerror(-empty));
        return empty
                   ? 0
                   : cachedir_fail(
                         -EEXIST, err, errlen,
                         "%s is not an eddyfs cache directory and not empty: name another one with "
                         "--cache-dir",
                         d->path);
    }
    if (e)
        return cachedir_fail(e, err, errlen, "cache directory %s: format: %s", d->path, strerror(-e));
    if (sscanf(text, "eddyfs-cache %u", &version) != 1)
        return cachedir_fail(-EINVAL, err, errlen,
                    "%s/format is not eddyfs's: name another directory with --cache-dir", d->path);
    if (version != CACHE_FORMAT)
        return cachedir_fail(
            -EINVAL, err, errlen,
            "cache directory %s has format %u, that of %s eddyfs (this one knows %u): flush it with the eddyfs that made it "
            "(`eddy recover`) and remove it, or name another one with --cache-dir",
            d->path, version, version > CACHE_FORMAT ? "a newer" : "an older", CACHE_FORMAT);
    if (sscanf(text, "eddyfs-cache %*u\nchunk %u\n", &chunk) != 1 || !chunk_size_ok(chunk))
        return cachedir_fail(-EINVAL, err, errlen,
                    "%s/format is damaged: name another directory with --cache-dir", d->path);
    d->chunk_size = chunk;
    return 0;
}

static int open_below(struct cachedir *d, const char *name, bool make, int *fd)
{
    if (make && mkdirat(d->fd, name, 0700) < 0 && errno != EEXIST)
        return -errno;
    *fd = openat(d->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *fd < 0 ? -errno : 0;
}

/* Sets a flag of chattr(1).  A file system that has no such flag works as well. */
static void set_flag(int fd, int flag)
{
    int flags;
    if (!ioctl(fd, FS_IOC_GETFLAGS, &flags) && !(flags & flag)) {
        flags |= flag;
        ioctl(fd, FS_IOC_SETFLAGS, &flags);
    }
}

/* ext4 puts a new file into the block group of its directory, and a new directory near its parent, except
 * below a directory with TOPDIR.  With TOPDIR the data files of a cache are spread over the disk, and are not
 * all in one group (beside the PFS's own files, if that is the same disk).  This matters because, without a
 * journal, ext4 skips each inode of a group that was freed in the last minutes, one by one, whenever it makes
 * a file there.
 *
 * The access time of a data file is never used, and checking whether to note it is a
 * twentieth of a read of 4 KiB.  ext4, xfs and f2fs pass NOATIME on to what is made below. */
static void set_data_flags(int fd)
{
    set_flag(fd, FS_TOPDIR_FL);
    set_flag(fd, FS_NOATIME_FL);
}

/* ---- opening ---- */

static void init(struct cachedir *d, const char *path)
{
    memset(d, 0, sizeof(*d));
    d->path = xstrdup(path);
    d->fd = d->lock_fd = d->slabs_fd = d->data_fd = -1;
    cachedir_boot_id(d->boot_id);
}

static int make_contents(struct cachedir *d, uint32_t chunk_size, char *err, size_t errlen)
{
    d->is_new = !d->chunk_size;
    int e = d->is_new ? write_format(d, chunk_size) : 0;
    if (!e)
        e = open_below(d, "slabs", true, &d->slabs_fd);
    if (!e)
        e = open_below(d, "data", true, &d->data_fd);
    if (!e)
        set_data_flags(d->data_fd);
    return e ? cachedir_fail(e, err, errlen,
                    "cache directory %s can not be written: %s%s: name another one with --cache-dir",
                    d->path, strerror(-e), cachedir_hint(e))
             : 0;
}

static int open_once(struct cachedir *d, const char *path, bool is_default, uint32_t chunk_size, char *err, size_t errlen)
{
    init(d, path);
    d->is_default = is_default;
    int e = cachedir_open_place(d, true, err, errlen);
    if (!e)
        e = cachedir_check_place(d, is_default, err, errlen);
    if (!e)
        e = check_format(d, err, errlen); /* before anything is written, or its mode set: it may be no cache */
    if (!e)
        e = cachedir_close_to_others(d, err, errlen);
    if (!e)
        e = take_lock(d, err, errlen);
    if (!e)
        e = check_format(d, err, errlen); /* the holder of the lock may just have made it */
    if (!e)
        e = make_contents(d, chunk_size, err, errlen);
    if (e)
        cachedir_close(d);
    return e;
}

int cachedir_open(struct cachedir *d, const char *path, bool is_default, uint32_t chunk_size,
                  char *err, size_t errlen)
{
    int e = -ESTALE;
    for (int tries = 0; e == -ESTALE && tries < 8; tries++)
        e = open_once(d, path, is_default, chunk_size, err, errlen);
    return e == -ESTALE ? cachedir_fail(e, err, errlen, "cache directory %s goes again and again: name another one with --cache-dir", path) : e;
}

int cachedir_open_readonly(struct cachedir *d, const char *path)
{
    char text[256];
    init(d, path);
    int e = cachedir_open_place(d, false, text, sizeof(text));
    if (!e) {
        d->lock_fd = openat(d->fd, "lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (d->lock_fd < 0 && errno != ENOENT)
            e = -errno;
        else if (d->lock_fd >= 0 && flock(d->lock_fd, LOCK_SH | LOCK_NB) < 0)
            e = -errno;
    }
    if (!e)
        e = check_format(d, text, sizeof(text));
    if (!e && !d->chunk_size)
        e = -ENOENT;
    if (!e)
        e = open_below(d, "slabs", false, &d->slabs_fd);
    if (e)
        cachedir_close(d);
    return e;
}

void cachedir_close(struct cachedir *d)
{
    int *fds[] = {&d->slabs_fd, &d->data_fd, &d->lock_fd,
                  &d->fd}; /* the lock goes when all else is closed */
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        if (*fds[i] >= 0)
            close(*fds[i]);
        *fds[i] = -1;
    }
    free(d->path);
    d->path = NULL;
}

/* ---- emptying ---- */

/* Removes the files in a directory and in those below it, two levels; returns the first error. */
static int remove_below(int dirfd, unsigned depth)
{
    int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir)
        return -errno;
    for (struct dirent *e; (e = readdir(dir));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        if (!unlinkat(fd, e->d_name, 0))
            continue;
        int e1 = -errno,
            sub =
                depth ? openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
        if (sub >= 0) {
            e1 = remove_below(sub, depth - 1);
            close(sub);
        }
        err = err ? err : e1;
    }
    closedir(dir);
    return err;
}

/* The directories of data/, too. */
static int remove_tree(int dirfd)
{
    int err = remove_below(dirfd, 1);
    for (unsigned i = 0; i < 256 && !err; i++) {
        char name[4];
        snprintf(name, sizeof(name), "%02x", i);
        if (unlinkat(dirfd, name, AT_REMOVEDIR) && errno != ENOENT)
            err = -errno;
    }
    return err;
}

/* The default's: other mounts may have their caches in it. */
static void remove_parent(const char *path)
{
    char *parent = xstrdup(path), *slash = strrchr(parent, '/');
    if (slash && slash > parent) {
        *slash = 0;
        (void)rmdir(parent);
    }
    free(parent);
}

int cachedir_empty(struct cachedir *d, uint32_t chunk_size)
{
    int err = remove_below(d->slabs_fd, 0); /* first: without records the data files mean nothing */
    if (!err)
        err = remove_below(d->data_fd, 1);
    return err ? err : write_format(d, chunk_size);
}

/* A file of another name stays, and with it the directory. */
void cachedir_remove(struct cachedir *d)
{
    static const char *const files[] = {"mount", "node", "format", "format.new", "node.new", "ballast", "supervisor", "eddyfs.log"};
    int err = remove_below(d->slabs_fd, 0); /* first: without records the data files mean nothing */
    if (!err)
        err = remove_tree(d->data_fd);
    for (size_t i = 0; i < ARRAY_LEN(files) && !err; i++)
        if (unlinkat(d->fd, files[i], 0) && errno != ENOENT)
            err = -errno;
    if (!err && (unlinkat(d->fd, "slabs", AT_REMOVEDIR) || unlinkat(d->fd, "data", AT_REMOVEDIR) || unlinkat(d->fd, "lock", 0)))
        err = -errno;
    if (err)
        log_info("cache directory %s: is not removed: %s", d->path, strerror(-err));
    else if (d->made || d->is_default)
        (void)rmdir(d->path); /* there may be other files */
    if (!err && d->is_default)
        remove_parent(d->path);
    cachedir_close(d);
}

/* ---- identity ---- */

#define PLACE_MAX 80

/* Which file the lock is: a copy of the directory has another one.  "?": the file system cannot tell. */
static void place_of_lock(const struct cachedir *d, char out[PLACE_MAX])
{
    struct statx stx;
    unsigned mask = STATX_INO | STATX_BTIME;
    if (statx(d->lock_fd, "", AT_EMPTY_PATH, mask, &stx) || (stx.stx_mask & mask) != mask)
        snprintf(out, PLACE_MAX, "?");
    else
        snprintf(out, PLACE_MAX, "%llu %lld.%09u", (unsigned long long)stx.stx_ino,
                 (long long)stx.stx_btime.tv_sec, (unsigned)stx.stx_btime.tv_nsec);
}

/* A number of starts in the upper half, so that each is larger than the one before; random bits in the lower
 * half, so that it is another one in a copy of the directory that is started as well. */
static uint64_t next_incarnation(uint64_t former)
{
    return ((former >> 32) + 1) << 32 | (random_u64() & UINT32_MAX);
}

static bool parse_identity(const char *text, uint64_t *id, uint64_t *incarnation, char *place)
{
    unsigned long long i, n;
    if (sscanf(text, "id %llx\nincarnation %llu\nlock %79[^\n]", &i, &n, place) < 2)
        return false;
    *id = i;
    *incarnation = n;
    return i && n >> 32 < UINT32_MAX;
}

int cachedir_begin_incarnation(struct cachedir *d, char *err, size_t errlen)
{
    char text[TEXT_MAX], was[PLACE_MAX] = "", is[PLACE_MAX];
    uint64_t id = 0, former = 0;
    int e = read_text(d->fd, "node", text);
    if (e && e != -ENOENT)
        return cachedir_fail(e, err, errlen, "cache directory %s: node: %s", d->path, strerror(-e));
    if (!e && !parse_identity(text, &id, &former, was))
        return cachedir_fail(
            -EINVAL, err, errlen,
            "%s/node is damaged: name another directory with --cache-dir (what is not on the PFS "
            "yet stays in this one)",
            d->path);
    while (!id)
        id = random_u64();
    place_of_lock(d, is);
    d->node_id = id;
    d->incarnation = next_incarnation(former);
    d->former = !strcmp(was, is) && strcmp(is, "?") ? former : 0;
    snprintf(text, sizeof(text), "id %016llx\nincarnation %llu\nlock %s\n", (unsigned long long)id,
             (unsigned long long)d->incarnation, is);
    e = write_text(d->fd, "node", text);
    return e ? cachedir_fail(e, err, errlen, "cache directory %s can not be written: %s%s", d->path,
                    strerror(-e), cachedir_hint(e))
             : 0;
}
