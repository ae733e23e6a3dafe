/* daemonise.c - the process: it goes into the background, and the parent returns when the mount answers; its
 * limits, and the protection of its memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/daemon/daemon.h"
#include "fs/settings.h"
#include "fs/uring.h"
#include "transport/members.h"
#include "transport/view.h"

#define FILES_ENOUGH 4096u
#define SPACE_LEAST  ((rlim_t)2 << 30) /* bytes: a small daemon maps 0.6 GiB at its start, and 1.2 with some load */

static int ready_fd = -1; /* to the parent that waits */

static volatile sig_atomic_t child;

static void pass_on(int sig)
{
    (void)sig;
    kill((pid_t)child, SIGTERM);
}

/* A signal to the waiting parent means that the mount is not wanted.  The child has a session of its own, so
 * Ctrl-C does not reach it. */
static void pass_on_signals(pid_t pid)
{
    struct sigaction on = {.sa_handler = pass_on, .sa_flags = SA_RESTART}, hup;
    child = pid;
    sigaction(SIGINT, &on, NULL);
    sigaction(SIGTERM, &on, NULL);
    if (!sigaction(SIGHUP, NULL, &hup) && hup.sa_handler != SIG_IGN) /* nohup */
        sigaction(SIGHUP, &on, NULL);
}

/* The parent returns only when the mount answers: 0, or with the child's code (the child has said
 * why on our standard error). */
static int wait_for_child(pid_t pid, int fd)
{
    char text[1024];
    int status;
    pass_on_signals(pid);
    ssize_t n = read(fd, text, sizeof(text));
    if (n > 0) {
        fwrite(text, 1, (size_t)n, stdout);
        return EXIT_OK;
    }
    if (waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status))
        return WEXITSTATUS(status);
    fprintf(stderr, "eddyfs: the daemon ended before the mount answered\n");
    return EXIT_FAILED;
}

void daemonise(void)
{
    int fds[2];
    if (settings.foreground)
        return;
    if (pipe2(fds, O_CLOEXEC)) {
        perror("eddyfs: pipe");
        exit(EXIT_FAILED);
    }
    pid_t pid = fork();
    if (pid < 0) {
        perror("eddyfs: fork");
        exit(EXIT_FAILED);
    }
    if (pid) {
        close(fds[1]);
        int code = wait_for_child(pid, fds[0]);
        fflush(stdout);
        _exit(code);
    }
    close(fds[0]);
    ready_fd = fds[1];
    setsid();
}

static void let_go_of_terminal(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return;
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    close(null);
}

void daemonise_supervisor(void)
{
    if (chdir("/"))
        log_warn("cannot change to /: %s", strerror(errno));
    if (ready_fd < 0)
        return;
    close(ready_fd);
    ready_fd = -1;
    let_go_of_terminal();
}

void say_ready(void)
{
    char text[3 * PATH_MAX];
    const struct view *v = members_view();
    unsigned nodes = v ? v->nmembers : 0;
    int n = snprintf(text, sizeof(text),
                     "eddyfs: %s is mounted at %s (node %s, %u node%s, passthrough %s%s)\n",
                     settings.pfs_dir, settings.mountpoint, settings.node, nodes,
                     nodes == 1 ? "" : "s", settings.passthrough ? "on" : "off",
                     uring_why_not() ? "" : ", over io_uring");
    log_info("%.*s", n - 9, text + 8);
    if (ready_fd < 0) {
        fwrite(text, 1, (size_t)n, stdout);
        fflush(stdout);
        return;
    }
    ssize_t written = write(ready_fd, text, (size_t)n);
    if (written != n)
        log_warn("the process that started the daemon did not wait for it");
    close(ready_fd);
    ready_fd = -1;
    let_go_of_terminal();
}

/* Raises a limit as far as this user may.  Returns what it is then. */
static rlim_t raise_limit(int which)
{
    struct rlimit r;
    if (getrlimit(which, &r))
        return RLIM_INFINITY;
    struct rlimit most = {r.rlim_max, r.rlim_max};
    return setrlimit(which, &most) ? r.rlim_cur : most.rlim_cur;
}

/* With too little address space threads cannot start, which ends a daemon in the middle of a job. */
static int check_limits(void)
{
    char is[32];
    rlim_t files = raise_limit(RLIMIT_NOFILE), space = raise_limit(RLIMIT_AS);
    if (files < FILES_ENOUGH)
        log_warn("only %llu files may be open at once (ulimit -n): each file that programs hold open takes one, and each node: "
                 "have the limit raised to %u or more",
                 (unsigned long long)files, FILES_ENOUGH);
    if (space >= SPACE_LEAST)
        return 0;
    log_error("the address space is limited to %s (ulimit -v): eddyfs needs 2 GiB or more of it, of which it uses only a part: give "
              "`ulimit -v unlimited` before it is started",
              size_format(space, is, sizeof(is)));
    return -ENOMEM;
}

int set_up_process(void)
{
    umask(0);
    if (chdir("/"))
        log_warn("cannot change to /: %s", strerror(errno));
#ifndef __SANITIZE_ADDRESS__   /* its leak check must be able to look at us */
    prctl(PR_SET_DUMPABLE, 0); /* the session's secret is in memory */
#endif
    return check_limits();
}
