/* names.c - asks the mount where a directory is in it.
 *
 * The mount may be at another place than for its daemon, or only a part of it may be seen: so the daemon tells the path, by
 * an extended attribute (QUEUE_XATTR).  Only directories are asked for, and each once in a row: a hint looks up no file.
 * Where the directory does not exist yet, one above it is asked for, and the rest stays as it was written.
 */
#include "tools/lib/names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>

#include "placement/foresight/queue_wire.h"

#define SOCKET_MAX sizeof(((struct sockaddr_un *)0)->sun_path)
#define ANSWER_MAX (SOCKET_MAX + 1 + QUEUE_PATH_MAX)

void names_free(struct names *n)
{
    free(n->dir);
    free(n->below);
    *n = (struct names){0};
}

/* answer: ANSWER_MAX + 1 bytes; becomes two texts. */
static int ask_mount(const char *path, char *answer, char **below)
{
    ssize_t n = getxattr(path, QUEUE_XATTR, answer, ANSWER_MAX);
    if (n < 0)
        return errno == ENODATA || errno == ENOTSUP || errno == ERANGE ? -ENODEV : -errno;
    answer[n] = '\0';
    char *end = strchr(answer, '\n');
    if (!end || (size_t)(end - answer) >= SOCKET_MAX - 1)
        return -ENODEV;
    *end = '\0';
    *below = end + 1;
    return 0;
}

static char *dir_of(const char *path, size_t len)
{
    return len ? strndup(path, len) : strdup(".");
}

/* The length of path without its last part, and without slashes at its end, but for the root. */
static size_t cut_last(const char *path, size_t len)
{
    while (len && path[len - 1] == '/')
        len--;
    while (len && path[len - 1] != '/')
        len--;
    while (len > 1 && path[len - 1] == '/')
        len--;
    return len;
}

/* Asks for `dir`, or for the nearest one above that exists.  *rest: what is below it, in dir. */
static int ask_for_directory(const char *dir, char *answer, char **below, const char **rest)
{
    size_t len = strlen(dir);
    int err;
    for (bool more = true; more;) {
        char *part = dir_of(dir, len);
        err = part ? ask_mount(part, answer, below) : -ENOMEM;
        free(part);
        more = err == -ENOENT && len && strncmp(dir, "/", len);
        *rest = dir + len + strspn(dir + len, "/");
        len = more ? cut_last(dir, len) : len;
    }
    return err;
}

int names_mount(const char *path, char *socket, size_t size)
{
    char answer[ANSWER_MAX + 1], *below;
    const char *rest;
    int err = ask_for_directory(*path ? path : ".", answer, &below, &rest);
    if (err)
        return err;
    if (strlen(answer) >= size)
        return -ENODEV;
    strcpy(socket, answer);
    return 0;
}

/* Appends the parts of `rest`.  -EINVAL: one is "..". */
static int append_parts(char *out, size_t size, size_t *len, const char *rest)
{
    while (*rest) {
        size_t n = strcspn(rest, "/");
        if (n == 2 && !strncmp(rest, "..", 2))
            return -EINVAL;
        if (n && !(n == 1 && *rest == '.')) {
            if (*len + 1 + n >= size)
                return -ENAMETOOLONG;
            if (*len)
                out[(*len)++] = '/';
            memcpy(out + *len, rest, n);
            *len += n;
        }
        rest += n;
        rest += strspn(rest, "/");
    }
    out[*len] = '\0';
    return 0;
}

static int look_up(struct names *n, const char *socket, const char *dir, const struct stat *cwd)
{
    char answer[ANSWER_MAX + 1], below[QUEUE_PATH_MAX + 1], *there;
    const char *rest;
    size_t len = 0;
    int err = ask_for_directory(dir, answer, &there, &rest);
    if (err == -ENODEV || (!err && strcmp(answer, socket)))
        return -EXDEV;
    if (!err)
        err = append_parts(below, sizeof(below), &len, there);
    if (!err)
        err = append_parts(below, sizeof(below), &len, rest);
    if (err)
        return err;
    names_free(n);
    *n = (struct names){.dir = strdup(dir),
                        .below = strdup(below),
                        .cwd_dev = cwd->st_dev,
                        .cwd_ino = cwd->st_ino};
    if (n->dir && n->below)
        return 0;
    names_free(n);
    return -ENOMEM;
}

int names_below(struct names *n, const char *socket, const char *path, char *out, size_t size)
{
    const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
    size_t len = 0;
    struct stat cwd = {0};
    if (!*last || !strcmp(last, ".") || !strcmp(last, ".."))
        return -EINVAL;
    if (*path != '/' && stat(".", &cwd))
        return -errno;
    char *dir = dir_of(path, cut_last(path, strlen(path)));
    if (!dir)
        return -ENOMEM;
    int err = 0;
    if (!n->dir || strcmp(n->dir, dir) || n->cwd_dev != cwd.st_dev || n->cwd_ino != cwd.st_ino)
        err = look_up(n, socket, dir, &cwd);
    free(dir);
    if (!err)
        err = append_parts(out, size, &len, n->below);
    return err ? err : append_parts(out, size, &len, last);
}
