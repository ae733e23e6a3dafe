/* mount_path.c - the absolute path of a mount point that may be dead or hang.
 *
 * Only its directory is resolved.  For the mount point itself only readlink() is called: the kernel
 * answers it from the root inode that it has, without asking the daemon.
 */
#include "fs/daemon/control.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/base.h"

#define LINKS_MAX 40 /* as the kernel */

static char *joined(const char *dir, const char *name)
{
    char *path;
    if (asprintf(&path, "%s%s%s", dir, dir[0] == '/' && !dir[1] ? "" : "/", name) < 0)
        die("out of memory for a path");
    return path;
}

/* Without double and closing slashes and without ".", in place. */
static void tidy(char *path)
{
    char *to = path, *rest = path;
    for (char *word; (word = strsep(&rest, "/"));) {
        if (!*word || !strcmp(word, "."))
            continue;
        size_t len = strlen(word);
        *to++ = '/';
        memmove(to, word, len);
        to += len;
    }
    if (to == path)
        *to++ = '/';
    *to = '\0';
}

static char *absolute(const char *path)
{
    if (path[0] == '/')
        return xstrdup(path);
    char *here = getcwd(NULL, 0);
    if (!here)
        return NULL;
    char *whole = joined(here, path);
    free(here);
    return whole;
}

/* dir/name with dir resolved; a dir of "" is the root. */
static char *resolve_directory(char *path)
{
    char *name = strrchr(path, '/');
    *name++ = '\0';
    char *dir = realpath(*path ? path : "/", NULL);
    char *whole = dir ? joined(dir, name) : NULL;
    free(dir);
    return whole;
}

/* The target of the link at path, seen from path's directory; NULL with errno (EINVAL: no link). */
static char *follow(const char *path)
{
    char target[PATH_MAX];
    ssize_t n = readlink(path, target, sizeof(target) - 1);
    if (n < 0)
        return NULL;
    target[n] = '\0';
    if (target[0] == '/')
        return xstrdup(target);
    char *dir = xstrdup(path);
    strrchr(dir, '/')[0] = '\0';
    char *next = joined(dir, target);
    free(dir);
    return next;
}

char *mount_path_as_written(const char *path)
{
    if (!*path) {
        errno = ENOENT;
        return NULL;
    }
    char *whole = absolute(path);
    if (whole)
        tidy(whole);
    return whole;
}

char *mount_path(const char *path)
{
    char *now = mount_path_as_written(path);
    if (!now)
        return NULL;
    for (int links = 0; links < LINKS_MAX; links++) {
        tidy(now);
        size_t len = strlen(now);
        bool up = len >= 3 && !strcmp(now + len - 3, "/..");
        char *real = up || len == 1 ? realpath(now, NULL) : resolve_directory(now);
        free(now);
        if (!real)
            return NULL;
        now = follow(real);
        if (!now)
            return real;
        free(real);
    }
    free(now);
    errno = ELOOP;
    return NULL;
}
