/* names.h - where a path is in a mount: names.c.  Not locked. */
#ifndef EDDY_TOOLS_LIB_NAMES_H
#define EDDY_TOOLS_LIB_NAMES_H

#include <stddef.h>
#include <sys/types.h>

/* The directory that was looked up last, as many hints have the same one. All zeros: none. */
struct names {
    char *dir;   /* as the caller wrote it; the working directory was cwd_dev, cwd_ino then */
    char *below; /* its path below the root of the mount */
    dev_t cwd_dev;
    ino_t cwd_ino;
};
void names_free(struct names *n);

/* The name of the socket of the mount that the path is in, or that it would be in.  0; -ENODEV: it is in none; -errno. */
int names_mount(const char *path, char *socket, size_t size);
/* The path below the root of the mount with this socket.  0; -EXDEV: it is not in that mount; -EINVAL; -ENAMETOOLONG;
 * -errno. */
int names_below(struct names *n, const char *socket, const char *path, char *out, size_t size);

#endif
