/* readahead.c - the mount's read_ahead_kb.
 *
 * The default of a FUSE mount is 128 KiB: a sequential reader of a chunk of 1 MiB makes eight requests, each
 * a round trip through /dev/fuse, where one is enough.  With 2 MiB the kernel asks for the next MiB before
 * the last one has come: the daemon need not wait for the reader, nor the reader for the daemon.
 */
#include "fs/readahead.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/mountinfo.h"
#include "transport/base.h"

#define READ_AHEAD_KB 2048

/* Only raises the value: a higher one that an administrator has set stays. */
static int raise_at(const char *path)
{
    char text[32] = "";
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int err = read(fd, text, sizeof(text) - 1) < 0 ? -errno : 0;
    if (!err && strtoul(text, NULL, 10) < READ_AHEAD_KB) {
        int n = snprintf(text, sizeof(text), "%u", READ_AHEAD_KB);
        if (pwrite(fd, text, (size_t)n, 0) != n)
            err = -errno;
    }
    close(fd);
    return err;
}

void readahead_raise(const char *mountpoint)
{
    struct mounted m;
    char path[64];
    int err = mounted_find(mountpoint, &m);
    if (!err) {
        snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u/read_ahead_kb", m.major, m.minor);
        mounted_free(&m);
        err = raise_at(path);
    }
    if (err)
        log_debug("the kernel's read-ahead stays as it is: %s", strerror(-err));
}
