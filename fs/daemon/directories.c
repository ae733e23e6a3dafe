/* directories.c - before the daemon starts: checks PFS_DIR, MOUNTPOINT and the cache directory.  A dead mount
 * at MOUNTPOINT is cleared.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/daemon/daemon.h"
#include "fs/daemon/guard.h"
#include "fs/daemon/options.h"
#include "fs/daemon/paths.h"
#include "fs/mountinfo.h"
#include "fs/settings.h"

#define ANSWER_MS 5000
#define KILLED_MS 1000

#define refuse(...) say_refused("\n", __VA_ARGS__)

/* Has the daemon of this mount ended?  A process of its own asks by statfs, which the kernel never answers
 * from memory.  A daemon that is stopped does not answer, and lives.  If a daemon is being killed, the answer
 * comes when it is gone.  A stopped daemon may hold the question already: then not even SIGKILL ends the process that asks
 * before the daemon goes on, and it is left behind. */
bool daemon_is_gone(const char *mountpoint)
{
    struct statvfs sv;
    int status = 0, fds[2];
    if (pipe2(fds, O_CLOEXEC))
        return false;
    pid_t pid = fork();
    if (!pid) {
        for (int fd = 0; fd <= STDERR_FILENO; fd++)
            close(fd); /* who reads what this daemon says is not to wait for this process */
        _exit(statvfs(mountpoint, &sv) && (errno == ENOTCONN || errno == ECONNABORTED));
    }
    close(fds[1]);
    struct pollfd ended = {.fd = fds[0]};
    if (pid > 0) {
        bool answered = poll(&ended, 1, ANSWER_MS) > 0;
        if (!answered)
            kill(pid, SIGKILL);
        if (answered || poll(&ended, 1, KILLED_MS) > 0)
            waitpid(pid, &status, 0);
    }
    close(fds[0]);
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

/* Only the user whose mount it is can end it, or root. */
static int refuse_living(const char *mountpoint)
{
    struct mounted m;
    uid_t user = geteuid();
    if (mounted_eddyfs(mountpoint, &m)) {
        user = m.user;
        mounted_free(&m);
    }
    if (user == geteuid() || !geteuid())
        return refuse("an eddyfs is mounted at %s: end it with `eddy umount %s` first", mountpoint,
                      mountpoint);
    const struct passwd *pw = getpwuid(user);
    return pw ? refuse("user %s has an eddyfs mounted at %s: name another mount point", pw->pw_name,
                       mountpoint)
              : refuse("user %u has an eddyfs mounted at %s: name another mount point",
                       (unsigned)user, mountpoint);
}

/* Clears the mount of a killed daemon; does not disturb a living one. */
static int clear_dead_mount(const char *mountpoint)
{
    if (!mounted_eddyfs(mountpoint, NULL))
        return 0;
    if (!daemon_is_gone(mountpoint))
        return refuse_living(mountpoint);
    int err = unmount_lazily(mountpoint);
    if (err)
        return refuse("the dead mount at %s cannot be cleared (%s): try `umount %s`, as root if it "
                      "is not yours",
                      mountpoint, strerror(-err), mountpoint);
    fprintf(stderr, "eddyfs: cleared the dead mount at %s\n", mountpoint);
    return 0;
}

static bool mount_hides_needed(void)
{
    const char *m = settings.mountpoint;
    return !strcmp(settings.pfs_dir, m) || path_is_below(settings.session_dir, m);
}

int clear_way_for_mount(void)
{
    int err = mounted_eddyfs(settings.mountpoint, NULL) ? clear_dead_mount(settings.mountpoint) : 0;
    if (err)
        log_error("the mount of the daemon that died cannot be cleared: %s: is another eddyfs "
                  "mounted there?",
                  settings.mountpoint);
    return err;
}

int check_directories_again(bool will_mount)
{
    return will_mount && !mount_hides_needed() ? 0 : clear_way_for_mount();
}

static int check_mountpoint(void)
{
    struct stat st;
    char *full = path_resolve_parent(settings.mountpoint);
    if (!full)
        return refuse("mount point %s: %s%s", settings.mountpoint, strerror(errno),
                      errno == ENOENT ? ": make the directory first" : "");
    settings.mountpoint = full;
    int err = clear_dead_mount(full);
    if (err)
        return err;
    char *real = realpath(full, NULL);
    if (!real || stat(real, &st))
        return refuse("mount point %s: %s: make the directory first", full, strerror(errno));
    settings.mountpoint = real;
    if (strcmp(real, full) && (err = clear_dead_mount(real)))
        return err;
    free(full);
    return S_ISDIR(st.st_mode) ? 0 : refuse("mount point %s is not a directory", real);
}

static int check_pfs(void)
{
    struct stat st;
    char *real = realpath(settings.pfs_dir, NULL);
    if (!real || stat(real, &st))
        return refuse("PFS directory %s: %s", settings.pfs_dir, strerror(errno));
    settings.pfs_dir = real;
    if (!S_ISDIR(st.st_mode))
        return refuse("PFS directory %s is not a directory", real);
    if (access(real, R_OK | X_OK))
        return refuse("PFS directory %s: %s: the user that mounts must be able to read it", real,
                      strerror(errno));
    return 0;
}

int check_directories(void)
{
    int err = check_mountpoint();
    if (!err)
        err = check_pfs();
    if (err)
        return err;
    const char *p = settings.pfs_dir, *m = settings.mountpoint;
    if (path_is_below(m, p))
        return refuse("the mount point %s is below the PFS directory %s: it would show itself; "
                      "mount elsewhere, or at %s itself",
                      m, p, p);
    if (path_is_below(p, m))
        return refuse("the PFS directory %s is below the mount point %s: the mount would hide it",
                      p, m);
    if (path_is_below(settings.cache_dir, m) || !strcmp(settings.cache_dir, m))
        return refuse("the cache directory %s is below the mount point %s: give a node-local one "
                      "with --cache-dir",
                      settings.cache_dir, m);
    options_session_dir();
    return guard_directories();
}
