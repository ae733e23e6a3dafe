/* slowsync.c - a slow disk, for a process that loads this before the C library: fdatasync of a file below
 * data/ waits as long as the file that SLOW_SYNC names is there, and says so in SLOW_SYNC.waits. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_data(int fd)
{
    char link[40], path[4096];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = 0;
    return strstr(path, "/data/") != NULL;
}

static void say(const char *slow)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s.waits", slow);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
}

int fdatasync(int fd)
{
    const char *slow = getenv("SLOW_SYNC");
    while (slow && is_data(fd) && !access(slow, F_OK)) {
        say(slow);
        usleep(10000);
    }
    return (int)syscall(SYS_fdatasync, fd);
}
