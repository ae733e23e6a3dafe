/* mount_why.c - why nothing could be mounted: libfuse and fusermount3 say it in their own words, or not at all. */
#include "fs/mount_why.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/settings.h"

#define DEVICE "/dev/fuse"
#define HELPER "fusermount3"
#define CONFIG "/etc/fuse.conf"

static bool device_is_missing(char *err, size_t errlen)
{
    int fd = open(DEVICE, O_RDWR | O_CLOEXEC);
    if (fd >= 0) {
        close(fd);
        return false;
    }
    if (errno == EACCES || errno == EPERM)
        snprintf(err, errlen, "this user may not open " DEVICE " (%s): ask root for `chmod 666 " DEVICE "`, in a container for the "
                 "device (--device " DEVICE ")", strerror(errno));
    else
        snprintf(err, errlen, "there is no usable " DEVICE " (%s): ask root for `modprobe fuse`, in a container for the device "
                 "(--device " DEVICE ")", strerror(errno));
    return true;
}

/* In the first directory of PATH that has it, else where Debian puts it; false: it is nowhere. */
static bool find_helper(struct stat *st, char *path, size_t len)
{
    const char *dirs = getenv("PATH");
    char *copy = xstrdup(dirs && *dirs ? dirs : "/usr/bin:/bin"), *rest = copy, *dir;
    bool found = false;
    while (!found && (dir = strsep(&rest, ":"))) {
        snprintf(path, len, "%s/" HELPER, dir);
        found = !stat(path, st);
    }
    free(copy);
    if (!found)
        snprintf(path, len, "/usr/bin/" HELPER);
    return found || !stat(path, st);
}

static bool helper_is_unfit(char *err, size_t errlen)
{
    struct stat st;
    char path[4096];
    if (!find_helper(&st, path, sizeof(path)))
        snprintf(err, errlen, "there is no " HELPER ", by which users who are not root mount: install the package fuse3");
    else if (!S_ISREG(st.st_mode) || st.st_uid || !(st.st_mode & S_ISUID))
        snprintf(err, errlen, "%s is not root's with the setuid bit, so that users who are not root cannot mount: install the "
                 "package fuse3 anew, or ask root for `chmod u+s %s`", path, path);
    else
        return false;
    return true;
}

static bool others_are_not_allowed(char *err, size_t errlen)
{
    char line[256];
    bool allowed = false;
    FILE *f = fopen(CONFIG, "re");
    while (f && !allowed && fgets(line, sizeof(line), f)) {
        const char *word = line + strspn(line, " \t");
        allowed = !strncmp(word, "user_allow_other", 16);
    }
    if (f)
        fclose(f);
    if (!allowed)
        snprintf(err, errlen, "-o allow_other: root must write user_allow_other into " CONFIG " first");
    return !allowed;
}

void mount_why(char *err, size_t errlen)
{
    if (device_is_missing(err, errlen))
        return;
    if (geteuid() && helper_is_unfit(err, errlen))
        return;
    if (geteuid() && settings.allow_other && others_are_not_allowed(err, errlen))
        return;
    snprintf(err, errlen, "%s cannot be mounted on (see above): does it belong to this user?", settings.mountpoint);
}
