/* eddy_sessions.c - see eddy_sessions.h. */
#include "tools/eddy_sessions.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/eddy.h"

#define PREFIX ".eddyfs-" /* the user's number follows */

/* Is it what the user in its name made, and can no other user change what is in it?  Complains. */
static bool is_of_user(int fd, const char *uid_text, const char *name)
{
    struct stat st;
    char *end;
    unsigned long uid = strtoul(uid_text, &end, 10);
    const char *why = NULL;
    if (fstat(fd, &st))
        why = strerror(errno);
    else if (end == uid_text || *end || st.st_uid != uid)
        why = "belongs to another user than its name says";
    else if (st.st_mode & (S_IWGRP | S_IWOTH))
        why = "others can write to it";
    if (why)
        complain("%s: %s: it is not known what is on the PFS of that user's files", name, why);
    return !why;
}

struct visit {
    const char *pfs_dir;
    int (*fn)(void *arg, const struct users_sessions *s);
    void *arg;
};

static int visit(const struct visit *v, int pfs_fd, const char *below)
{
    char *name, path[32];
    if (asprintf(&name, "%s/%s", v->pfs_dir, below) < 0)
        return -ENOMEM;
    int fd = openat(pfs_fd, below, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int err = fd < 0 ? -errno : 0;
    if (err)
        complain("%s: %s", name, strerror(-err));
    else if (!is_of_user(fd, below + strlen(PREFIX), name))
        err = -EPERM;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (!err)
        err = v->fn(v->arg, &(struct users_sessions){pfs_fd, below, path, name});
    if (fd >= 0)
        close(fd);
    free(name);
    return err;
}

int each_users_sessions(const char *pfs_dir, bool all, int (*fn)(void *arg, const struct users_sessions *s), void *arg, int *found)
{
    const struct visit v = {pfs_dir, fn, arg};
    char own[32];
    int result = 0;
    DIR *dir = opendir(pfs_dir);
    *found = 0;
    if (!dir) {
        int err = -errno;
        complain("%s: %s", pfs_dir, strerror(-err));
        return err;
    }
    snprintf(own, sizeof(own), PREFIX "%u", (unsigned)geteuid());
    for (struct dirent *d; (errno = 0, d = readdir(dir));) {
        if (strncmp(d->d_name, PREFIX, strlen(PREFIX)) || (!all && strcmp(d->d_name, own)))
            continue;
        int err = visit(&v, dirfd(dir), d->d_name);
        result = err ? err : result;
        ++*found;
    }
    if (errno) {
        result = -errno;
        complain("%s: %s", pfs_dir, strerror(-result));
    }
    closedir(dir);
    return result;
}
