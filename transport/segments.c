/* segments.c - see segments.h. */
#include "transport/segments.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "ucx_shm_" /* of UCX's files */
#define PARENT_MAX 64

static void parent_of(char path[PARENT_MAX])
{
    snprintf(path, PARENT_MAX, "/dev/shm/eddyfs-rdma-%u", (unsigned)getuid());
}

/* A directory of this user, to which no other has access; -errno. */
static int open_own(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ELOOP || errno == ENOTDIR ? -EPERM : -errno;
    if (!fstat(fd, &st) && st.st_uid == getuid() && !(st.st_mode & 077))
        return fd;
    close(fd);
    return -EPERM;
}

static int make(const char *path)
{
    return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

/* Is it still the directory of this name?  Who cleans may have removed it before the lock was taken. */
static int is_named(int fd, const char *path)
{
    struct stat a, b;
    return !fstat(fd, &a) && !lstat(path, &b) && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

static void empty(int dirfd)
{
    int copy = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    for (struct dirent *e; d && (e = readdir(d));)
        if (!strncmp(e->d_name, PREFIX, strlen(PREFIX)))
            unlinkat(dirfd, e->d_name, 0);
    if (d)
        closedir(d);
    else if (copy >= 0)
        close(copy);
}

/* The descriptor has the lock; -EBUSY, -EAGAIN: the directory was removed meanwhile; -errno. */
static int lock_own(const char *path)
{
    int err = make(path), fd = err ? err : open_own(path);
    if (fd < 0)
        return fd == -ENOENT ? -EAGAIN : fd;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        err = errno == EWOULDBLOCK ? -EBUSY : -errno;
    else if (!is_named(fd, path))
        err = -EAGAIN;
    if (!err)
        return fd;
    close(fd);
    return err;
}

int segments_begin(uint64_t node_id, char *path)
{
    char parent[PARENT_MAX];
    parent_of(parent);
    snprintf(path, SEGMENTS_PATH_MAX, "%s/%016llx", parent, (unsigned long long)node_id);
    int fd;
    do {
        int err = make(parent), up = err ? err : open_own(parent);
        if (up < 0 && up != -ENOENT)
            return up;
        if (up >= 0)
            close(up);
        fd = lock_own(path);
    } while (fd == -EAGAIN || fd == -ENOENT);
    if (fd >= 0)
        empty(fd);
    return fd;
}

void segments_end(int fd, const char *path)
{
    char parent[PARENT_MAX];
    empty(fd);
    rmdir(path);
    close(fd);
    parent_of(parent);
    rmdir(parent); /* if it was the last one */
}

/* 1: nobody had its lock. */
static unsigned clean_one(int parent, const char *name)
{
    unsigned cleaned = 0;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return 0;
    if (!flock(fd, LOCK_EX | LOCK_NB)) {
        empty(fd);
        cleaned = !unlinkat(parent, name, AT_REMOVEDIR);
    }
    close(fd);
    return cleaned;
}

unsigned segments_clean(void)
{
    char parent[PARENT_MAX];
    unsigned n = 0;
    parent_of(parent);
    int up = open_own(parent);
    DIR *d = up < 0 ? NULL : fdopendir(up);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.')
            n += clean_one(dirfd(d), e->d_name);
    if (d)
        closedir(d);
    else if (up >= 0)
        close(up);
    rmdir(parent);
    return n;
}
