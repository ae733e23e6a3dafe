/* eddy_lock.c - waiting for the end of a daemon.  A daemon has a flock on CACHE_DIR/lock as long as it
 * runs.  The process that starts it again when it dies (fs/daemon/supervise.c) has one on
 * CACHE_DIR/supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/time.h>
#include <unistd.h>

#include "tools/eddy_mounts.h"
#include "transport/base.h"

#define TICK_MS 250

/* Descriptor of the file of that name in the cache directory; -errno. */
static int open_lock(const struct mount_entry *e, const char *name)
{
    int dirfd = open_cache_dir(e);
    if (dirfd < 0)
        return dirfd;
    int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int err = fd < 0 ? -errno : fd;
    close(dirfd);
    return err;
}

static int is_held(const struct mount_entry *e, const char *name, bool *held)
{
    int fd = open_lock(e, name);
    if (fd < 0)
        return fd;
    int err = flock(fd, LOCK_SH | LOCK_NB) ? -errno : 0;
    close(fd);
    *held = err == -EWOULDBLOCK;
    return *held ? 0 : err;
}

int daemon_runs(const struct mount_entry *e, bool *runs)
{
    int err = is_held(e, "supervisor", runs);
    if (err && err != -ENOENT)
        return err;
    return !err && *runs ? 0 : is_held(e, "lock", runs);
}

bool daemon_is_dead(const struct mount_entry *e)
{
    bool held;
    return !is_held(e, "lock", &held) && !held;
}

static void on_alarm(int signal)
{
    (void)signal;
}

/* A signal every TICK_MS, which ends a system call that waits. */
static void set_ticks(long ms)
{
    struct sigaction action = {.sa_handler = on_alarm};
    struct itimerval timer = {.it_interval.tv_usec = ms * 1000, .it_value.tv_usec = ms * 1000};
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

static int wait_for_lock(int fd, uint64_t deadline, bool (*tick)(void *arg), void *arg)
{
    uint64_t next_tick = boot_ms() + 1000;
    int err;
    set_ticks(TICK_MS);
    while ((err = flock(fd, LOCK_SH) ? -errno : 0) == -EINTR) {
        uint64_t now = boot_ms();
        if (now >= deadline) {
            err = -ETIMEDOUT;
            break;
        }
        if (tick && now >= next_tick) {
            set_ticks(0); /* tick must not be interrupted */
            if (!tick(arg))
                return -ECANCELED;
            set_ticks(TICK_MS);
            next_tick = now + 1000;
        }
    }
    set_ticks(0);
    return err;
}

/* The supervisor, if there is one, outlives its daemons; a daemon may have outlived it. */
int wait_for_daemon(const struct mount_entry *e, uint64_t deadline, bool (*tick)(void *arg),
                    void *arg)
{
    int supervisor = open_lock(e, "supervisor"), err = 0;
    if (supervisor >= 0) {
        err = wait_for_lock(supervisor, deadline, tick, arg);
        close(supervisor);
    }
    if (err)
        return err;
    int fd = open_lock(e, "lock");
    if (fd < 0)
        return fd;
    err = wait_for_lock(fd, deadline, tick, arg);
    close(fd);
    return err;
}
