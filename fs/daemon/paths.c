/* paths.c - see paths.h. */
#include "fs/daemon/paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/base.h"

bool path_is_below(const char *path, const char *dir)
{
    size_t len = strlen(dir);
    if (len == 1)
        return path[1] != '\0';
    return !strncmp(path, dir, len) && path[len] == '/';
}

char *path_resolve_parent(const char *path)
{
    char *copy = xstrdup(path), *end = copy + strlen(copy), *full, *dir;
    while (end > copy + 1 && end[-1] == '/')
        *--end = '\0';
    char *slash = strrchr(copy, '/');
    const char *base = slash + 1;
    if (!*base || !strcmp(base, ".") || !strcmp(base, "..")) {
        full = realpath(copy, NULL);
        free(copy);
        return full;
    }
    char *name = xstrdup(base);
    slash[slash == copy] = '\0';
    dir = realpath(copy, NULL);
    if (!dir || asprintf(&full, "%s/%s", strcmp(dir, "/") ? dir : "", name) < 0)
        full = NULL;
    free(dir);
    free(name);
    free(copy);
    return full;
}

char *path_resolve_existing(const char *path)
{
    char *part = xstrdup(path), *real, *slash;
    while (!(real = realpath(part, NULL)) && errno == ENOENT && (slash = strrchr(part, '/')))
        slash[slash == part] = '\0';
    free(part);
    return real;
}

bool path_make_plain(char *path)
{
    char *end = path, *rest = path, *word;
    if (*path == '/') {
        end++;
        rest++;
    }
    while ((word = strsep(&rest, "/"))) {
        size_t n = strlen(word);
        if (!strcmp(word, ".."))
            return false;
        if (!n || !strcmp(word, "."))
            continue;
        if (end > path && end[-1] != '/')
            *end++ = '/';
        memmove(end, word, n);
        end += n;
    }
    *end = 0;
    return true;
}
