/* siblings.c - counting the daemons that share a disk. */
#include "placement/store/siblings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/base.h"

static struct {
    int dirfd, fd;
    char parent[256]; /* of the registry, if it is not in /run */
    dev_t dev;
    char name[24];
} self = {.dirfd = -1, .fd = -1};

/* Opens a directory that belongs to this user alone; makes it if its parent exists. */
static int open_own_dir(int at, const char *name)
{
    struct stat st;
    if (mkdirat(at, name, 0700) < 0 && errno != EEXIST)
        return -1;
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 022))) {
        close(fd);
        return -1;
    }
    return fd;
}

static int open_two(const char *parent, const char *one, const char *two)
{
    int at = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;
    int dir = at < 0 ? -1 : open_own_dir(at, one);
    if (dir >= 0)
        fd = open_own_dir(dir, two);
    if (dir >= 0)
        close(dir);
    if (at >= 0)
        close(at);
    return fd;
}

static int open_registry(void)
{
    char run[64], own[32];
    snprintf(run, sizeof(run), "/run/user/%u", (unsigned)geteuid());
    int fd = open_two(run, "eddyfs", "caches");
    const char *tmp = getenv("TMPDIR");
    snprintf(own, sizeof(own), "eddyfs-%u", (unsigned)geteuid());
    *self.parent = 0;
    if (fd >= 0)
        return fd;
    tmp = tmp && *tmp ? tmp : "/tmp";
    if (snprintf(self.parent, sizeof(self.parent), "%s/%s", tmp, own) >= (int)sizeof(self.parent))
        *self.parent = 0;
    return open_two(tmp, own, ".caches");
}

/* Waits for daemons that check whether the file's owner lives (read_other), but not for a living owner: that
 * would be a copy of this cache directory. */
static int lock_own(int fd)
{
    if (flock(fd, LOCK_SH | LOCK_NB) < 0)
        return -errno;
    while (flock(fd, LOCK_EX) < 0)
        if (errno != EINTR)
            return -errno;
    return 0;
}

static bool has_its_name(int fd)
{
    struct stat st, named;
    return !fstat(fd, &st) && !fstatat(self.dirfd, self.name, &named, AT_SYMLINK_NOFOLLOW) &&
           st.st_ino == named.st_ino;
}

/* A file that is not locked yet looks like a dead daemon's, and may be removed: then another one is
 * made. */
static int make_own(void)
{
    for (;;) {
        int fd = openat(self.dirfd, self.name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        int err = fd < 0 ? -errno : lock_own(fd);
        if (err && err != -ENOENT)
            log_debug("counting this user's daemons: %s", strerror(-err));
        if (err || has_its_name(fd))
            return err == -ENOENT ? err : fd;
        close(fd);
    }
}

/* The last daemon removes the directory; it may be made again meanwhile. */
static void remove_registry(void)
{
    int at = *self.parent ? open(self.parent, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (at >= 0 && !unlinkat(at, ".caches", AT_REMOVEDIR))
        (void)rmdir(self.parent);
    if (at >= 0)
        close(at);
}

void siblings_join(uint64_t node_id, dev_t dev)
{
    self.dev = dev;
    snprintf(self.name, sizeof(self.name), "%016" PRIx64, node_id);
    do {
        if (self.dirfd >= 0)
            close(self.dirfd);
        self.dirfd = open_registry();
        self.fd = self.dirfd < 0 ? -1 : make_own();
    } while (self.fd == -ENOENT); /* another daemon, the last one, has just removed it */
    if (self.dirfd < 0)
        log_debug("no directory to count this user's daemons in: the cache is sized as if alone");
}

void siblings_leave(void)
{
    if (self.fd >= 0) {
        unlinkat(self.dirfd, self.name, 0);
        close(self.fd);
    }
    if (self.dirfd >= 0)
        close(self.dirfd);
    self.fd = self.dirfd = -1;
    remove_registry();
}

/* A living daemon's device and use; false if it is dead (then its file is removed). */
static bool read_other(const char *name, uint64_t *dev, uint64_t *used)
{
    char text[64] = "";
    int fd = openat(self.dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool alive = flock(fd, LOCK_SH | LOCK_NB) < 0;
    if (!alive)
        unlinkat(self.dirfd, name, 0);
    bool ok = alive && pread(fd, text, sizeof(text) - 1, 0) > 0 &&
              sscanf(text, "%" SCNu64 " %" SCNu64, dev, used) == 2;
    close(fd);
    return ok;
}

static void tell(uint64_t used)
{
    char text[64];
    int n =
        snprintf(text, sizeof(text), "%-20" PRIu64 " %-20" PRIu64 "\n", (uint64_t)self.dev, used);
    if (pwrite(self.fd, text, (size_t)n, 0) != n)
        log_debug("counting this user's daemons: %s", strerror(errno));
}

unsigned siblings_count(uint64_t our_used, uint64_t *others_used)
{
    unsigned n = 1;
    *others_used = 0;
    int fd = self.fd < 0 ? -1 : openat(self.dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir)
        return n;
    tell(our_used);
    for (struct dirent *e; (e = readdir(dir));) {
        uint64_t dev, used;
        if (e->d_name[0] == '.' || !strcmp(e->d_name, self.name) ||
            !read_other(e->d_name, &dev, &used) || dev != (uint64_t)self.dev)
            continue;
        n++;
        *others_used += used;
    }
    closedir(dir);
    return n;
}
