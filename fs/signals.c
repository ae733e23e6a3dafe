/* signals.c - see signals.h. */
#include "fs/signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "transport/base.h"

static struct {
    sigset_t set;
    void (*leave_now)(int signal);
    int fd;
    _Atomic bool only_asks;
} signals = {.fd = -1};

static void ask(int signal)
{
    uint64_t one = 1;
    log_info("signal %d: flushing, then leaving; a second one leaves at once", signal);
    signals.only_asks = false;
    if (write(signals.fd, &one, sizeof(one)) != sizeof(one))
        die("eventfd: %s", strerror(errno));
}

static void *watch(void *arg)
{
    for (;;) {
        int signal = sigwaitinfo(&signals.set, NULL);
        if (signal < 0)
            continue;
        if (signals.only_asks)
            ask(signal);
        else
            signals.leave_now(signal);
    }
    return arg;
}

void signals_start(void (*leave_now)(int signal))
{
    pthread_t thread;
    sigemptyset(&signals.set);
    sigaddset(&signals.set, SIGTERM);
    sigaddset(&signals.set, SIGINT);
    sigaddset(&signals.set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals.set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGIO, SIG_IGN); /* a lease of ours is asked back (placement/datafile.c) */
    signals.leave_now = leave_now;
    signals.fd = eventfd(0, EFD_CLOEXEC);
    int err = signals.fd < 0 ? errno : pthread_create(&thread, NULL, watch, NULL);
    if (err)
        die("a thread for signals: %s", strerror(err));
    pthread_detach(thread);
}

void signals_ask(void)
{
    signals.only_asks = true;
}

int signals_fd(void)
{
    return signals.fd;
}
