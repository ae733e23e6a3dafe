/* unmount_helper.c - the setuid programs that unmount for a user. */
#include "fs/unmount_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "transport/base.h"

#define MTAB "/etc/mtab"

/* fusermount3 looks into /etc/mtab for whose mount it is.  umount(8) asks the kernel: it does where a bare container
 * has no such file.  -i: not by umount.fuse.eddyfs, which would come back here. */
static const char *const *command(bool lazily)
{
    static const char *const by_mtab[][5] = {{"fusermount3", "-u", "--"}, /* with -q it does not say that it is busy */
                                             {"fusermount3", "-u", "-z", "--"}};
    static const char *const by_kernel[][5] = {{"umount", "-i", "--"},
                                               {"umount", "-i", "-l", "--"}};
    return access(MTAB, F_OK) ? by_kernel[lazily] : by_mtab[lazily];
}

/* Its messages are parsed, so they must be in English. */
static int spawn(const char *const words[5], const char *path, pid_t *pid, int *output)
{
    char *args[7] = {NULL};
    char *env[] = {"LC_ALL=C", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                   NULL};
    int fds[2], n = 0;
    posix_spawn_file_actions_t actions;
    for (; n < 5 && words[n]; n++)
        args[n] = (char *)words[n];
    args[n] = (char *)path;
    if (pipe2(fds, O_CLOEXEC))
        return -errno;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[1], STDERR_FILENO);
    int err = -posix_spawnp(pid, args[0], &actions, NULL, args, env);
    posix_spawn_file_actions_destroy(&actions);
    close(fds[1]);
    if (err)
        close(fds[0]);
    else
        *output = fds[0];
    return err;
}

/* Reads all of fd; the first line of it stays in buf. */
static void read_line(int fd, char *buf, size_t size)
{
    char more[512];
    size_t len = 0;
    for (ssize_t n; (n = read(fd, more, sizeof(more))) > 0 || (n < 0 && errno == EINTR);) {
        size_t take = n < 0 ? 0 : MIN((size_t)n, size - 1 - len);
        memcpy(buf + len, more, take);
        len += take;
    }
    buf[len] = '\0';
    buf[strcspn(buf, "\n")] = '\0';
}

int unmount_by_helper(const char *path, bool lazily, char *said, size_t size)
{
    const char *const *words = command(lazily);
    pid_t pid;
    int output = -1, status = 0;
    int err = spawn(words, path, &pid, &output);
    if (err) {
        snprintf(said, size, "%s: %s: needed to unmount without root (Debian package %s)", words[0],
                 strerror(-err), words[0][0] == 'f' ? "fuse3" : "mount, where there is no " MTAB);
        return err;
    }
    read_line(output, said, size);
    close(output);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && !WEXITSTATUS(status))
        return 0;
    if (strstr(said, "busy"))
        return -EBUSY;
    if (!*said)
        snprintf(said, size, "%s failed", words[0]);
    return -EPERM;
}
