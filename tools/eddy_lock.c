/* eddy_lock.c - waiting for the end of a daemon: it holds a flock on CACHE_DIR/lock as long as it
 * runs. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/time.h>
#include <unistd.h>

#include "tools/eddy.h"

#define TICK_MS 250

static int open_lock(const struct mount_entry *e)
{
    int dirfd = open_cache_dir(e);
    if (dirfd < 0)
        return dirfd;
    int fd = openat(dirfd, "lock", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int err = fd < 0 ? -errno : fd;
    close(dirfd);
    return err;
}

int daemon_runs(const struct mount_entry *e, bool *runs)
{
    int fd = open_lock(e);
    if (fd < 0)
        return fd;
    int err = flock(fd, LOCK_SH | LOCK_NB) ? -errno : 0;
    close(fd);
    *runs = err == -EWOULDBLOCK;
    return *runs ? 0 : err;
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

int wait_for_daemon(const struct mount_entry *e, uint64_t deadline, void (*tick)(void *arg),
                    void *arg)
{
    uint64_t next_tick = boot_ms() + 1000;
    int fd = open_lock(e), err;
    if (fd < 0)
        return fd;
    set_ticks(TICK_MS);
    while ((err = flock(fd, LOCK_SH) ? -errno : 0) == -EINTR) {
        uint64_t now = boot_ms();
        if (now >= deadline) {
            err = -ETIMEDOUT;
            break;
        }
        if (tick && now >= next_tick) {
            set_ticks(0); /* what tick does is not to be interrupted */
            tick(arg);
            set_ticks(TICK_MS);
            next_tick = now + 1000;
        }
    }
    set_ticks(0);
    close(fd);
    return err;
}
