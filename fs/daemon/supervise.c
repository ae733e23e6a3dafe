/* supervise.c - the process that waits for the daemon, and starts it again when it dies by a signal
 * (an assertion in a library, a fault of ours, the kernel out of memory): the mount comes back, and
 * what was not flushed is recovered, as at any start on the same cache directory.
 *
 *     FIRST --ready, then dies--> [mount still there] --> pause --> AGAIN --ready, then dies--> ...
 *       |                               |                   |         '--fails to start--> pause
 *       '--dies or fails before: ends   '--gone-------------+-- asked to end, unmounted
 *                                                           v
 *     a daemon that ends in order: so does the supervisor  RECOVERY, once, without a mount
 *
 * The supervisor is forked off before there is any thread and before UCX is touched, and does
 * nothing but wait; each daemon is a fork of it.  The first restart is at once, the next ones wait
 * 1 s, 2 s, 4 s ... 60 s.  After a daemon that served for ten minutes this begins again.
 *
 * The supervisor has a flock on CACHE_DIR/supervisor, so that `eddy umount` and `eddy wait` do not
 * mistake the time between two daemons for the end.
 *
 * SIGTERM, SIGINT and SIGHUP are passed on, with their number.  When all processes of a job are ended at
 * once, the daemon gets the signal, too, and that must not count as a second signal (signals.c).
 */
#include "fs/daemon/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/daemon/daemon.h"
#include "fs/mount.h"
#include "fs/mountinfo.h"
#include "fs/settings.h"

#define PAUSE_FIRST_MS 1000
#define PAUSE_MAX_MS   60000
#define SERVED_WELL_MS 600000
#define LOOK_MS        500 /* at the mount, during a pause */

static struct {
    sigset_t set;
    enum log_level level;
    pid_t pid; /* the supervisor's own; 0: there is none */
    pid_t daemon;
    bool ready, ever_ready; /* this daemon; one of them */
    uint64_t ready_ms;      /* boot_ms */
    unsigned pauses;        /* since a daemon served well */
    unsigned asked;         /* signals that ask for the end */
    unsigned restarts;
    int lock_fd;
} s = {.lock_fd = -1};

unsigned supervise_restarts(void)
{
    return s.restarts;
}

/* ---- the daemon's side ---- */

void supervise_ready(void)
{
    if (s.pid && getppid() == s.pid)
        kill(s.pid, SIGUSR1);
}

unsigned supervise_passed(struct supervise_signal signal)
{
    return s.pid && signal.sender == s.pid ? (unsigned)signal.value : 0;
}

/* ---- the log ---- */

/* The daemon's, once it has made its directory. */
static void open_log(void)
{
    char *path = NULL;
    if (settings.foreground && !settings.log_file)
        return;
    if (!settings.log_file && asprintf(&path, "%s/eddyfs.log", settings.cache_dir) < 0)
        die("out of memory");
    log_open(settings.log_file ? settings.log_file : path, s.level, settings.node);
    free(path);
}

/* ---- a daemon runs ---- */

static void note_ready(void)
{
    char *path;
    s.ready = s.ever_ready = true;
    s.ready_ms = boot_ms();
    if (s.lock_fd >= 0)
        return;
    open_log();
    if (asprintf(&path, "%s/supervisor", settings.cache_dir) < 0)
        die("out of memory");
    s.lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (s.lock_fd < 0 || flock(s.lock_fd, LOCK_EX | LOCK_NB))
        log_warn("%s: %s: between two daemons, eddy may say that the mount has ended", path,
                 strerror(errno));
    free(path);
}

static void pass_on(int signal)
{
    union sigval number = {.sival_int = (int)++s.asked};
    if (sigqueue(s.daemon, signal, number) && errno != ESRCH)
        log_warn("signal %d cannot be passed on to the daemon: %s", signal, strerror(errno));
}

/* Until it has ended: its status, as of waitpid. */
static int wait_for_end(void)
{
    for (;;) {
        siginfo_t info;
        int status, signal = sigwaitinfo(&s.set, &info);
        if (signal == SIGUSR1 && info.si_pid == s.daemon)
            note_ready();
        else if (signal == SIGTERM || signal == SIGINT || signal == SIGHUP)
            pass_on(signal);
        else if (signal == SIGCHLD && waitpid(s.daemon, &status, WNOHANG) == s.daemon)
            return status;
    }
}

/* Forks a daemon, in a process group of its own: a terminal's signals reach it only through the supervisor.
 * True in the daemon. */
static bool fork_daemon(const sigset_t *before)
{
    fflush(NULL);
    s.ready = false;
    s.daemon = fork();
    if (s.daemon < 0)
        return false;
    if (s.daemon) {
        mount_user_drop();
        return false;
    }
    setpgid(0, 0);
    if (s.lock_fd >= 0)
        close(s.lock_fd); /* shared with the supervisor, which keeps it */
    mount_user_take();
    sigprocmask(SIG_SETMASK, before, NULL);
    return true;
}

/* ---- and after it ---- */

static bool is_mounted(void)
{
    return mounted_eddyfs(settings.mountpoint, NULL);
}

/* Somebody has started eddyfs there by hand, or recovers it: the cache directory is in use. */
static bool cache_is_taken(void)
{
    char *path;
    if (asprintf(&path, "%s/lock", settings.cache_dir) < 0)
        die("out of memory");
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool taken = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    free(path);
    return taken;
}

static bool is_over(enum start how, int status)
{
    bool died = WIFSIGNALED(status);
    if (!s.ever_ready || how == START_RECOVERY)
        return true;
    if (!died && (s.ready || s.asked || WEXITSTATUS(status) != EXIT_FAILED))
        return true;
    if (!cache_is_taken())
        return false;
    log_error("%s is in use by another eddyfs: the daemon that died is not started again",
              settings.cache_dir);
    return true;
}

static void end(int status)
{
    if (WIFSIGNALED(status) && s.ever_ready)
        log_error("the daemon died by signal %d (%s): what is not on the PFS is kept in %s",
                  WTERMSIG(status), strsignal(WTERMSIG(status)), settings.cache_dir);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : s.ever_ready ? EXIT_NOT_ON_PFS : EXIT_FAILED);
}

static uint64_t next_pause(void)
{
    if (s.ready && boot_ms() - s.ready_ms > SERVED_WELL_MS)
        s.pauses = 0;
    unsigned n = s.pauses++;
    return n ? MIN((uint64_t)PAUSE_FIRST_MS << MIN(n - 1, 10u), (uint64_t)PAUSE_MAX_MS) : 0;
}

/* False: nothing is to be mounted any more; this ends the pause. */
static bool pause_for(uint64_t ms)
{
    uint64_t end = boot_ms() + ms, now;
    bool mounted = is_mounted();
    while (!s.asked && (now = boot_ms()) < end) {
        struct timespec look = {.tv_nsec = (long)MIN(end - now, (uint64_t)LOOK_MS) * 1000000};
        int signal = sigtimedwait(&s.set, NULL, &look);
        s.asked += signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
        if (mounted && !is_mounted())
            return false;
    }
    return !s.asked;
}

static void say_again(int status, enum start how, uint64_t ms)
{
    char why[64];
    if (WIFSIGNALED(status))
        snprintf(why, sizeof(why), "the daemon died by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(why, sizeof(why), "the daemon could not be started again");
    if (how == START_RECOVERY)
        log_error("%s, and nobody wants the mount any more: what it left is flushed", why);
    else
        log_error("%s: it is started again in %.0f s", why, (double)ms / 1000);
}

/* What the next daemon must do.  The dead mount of a daemon that served is still there, unless somebody
 * removed it; a daemon that failed may have cleared it itself. */
static enum start choose_next(int status)
{
    enum start how = s.asked || (s.ready && !is_mounted()) ? START_RECOVERY : START_AGAIN;
    uint64_t ms = how == START_AGAIN ? next_pause() : 0;
    say_again(status, how, ms);
    if (how == START_AGAIN && !pause_for(ms))
        how = START_RECOVERY;
    return how;
}

enum start supervise(enum log_level level)
{
    sigset_t before;
    s.level = level;
    s.pid = getpid();
    sigemptyset(&s.set);
    for (size_t i = 0; i < 5; i++)
        sigaddset(&s.set, (int[]){SIGTERM, SIGINT, SIGHUP, SIGCHLD, SIGUSR1}[i]);
    sigprocmask(SIG_BLOCK, &s.set, &before);
    for (enum start how = START_FIRST;;) {
        if (fork_daemon(&before))
            return how;
        if (s.daemon < 0) {
            log_error("the daemon cannot be started: fork: %s", strerror(errno));
            _exit(EXIT_FAILED);
        }
        if (how == START_FIRST)
            daemonise_supervisor();
        int status = wait_for_end();
        if (is_over(how, status))
            end(status);
        how = choose_next(status);
        s.restarts++;
    }
}
