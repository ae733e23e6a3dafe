/* signals.c - see signals.h. */
#include "fs/daemon/signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fs/daemon/supervise.h"
#include "transport/base.h"

static struct {
    sigset_t set;
    void (*leave_now)(int signal);
    int fd;
    _Atomic bool only_asks; /* the next one */
    bool asked;             /* one has */
    unsigned count;         /* those that did not come by the supervisor */
} signals = {.fd = -1};

static void ask(int signal)
{
    uint64_t one = 1;
    log_info("signal %d: flushing, then leaving; a second one leaves at once", signal);
    signals.only_asks = false;
    signals.asked = true;
    if (write(signals.fd, &one, sizeof(one)) != sizeof(one))
        die("eventfd: %s", strerror(errno));
}

/* When a whole job is ended, each of its processes gets a signal, and the supervisor passes its own on.
 * These two count as one signal. */
static bool is_second(const siginfo_t *info)
{
    struct supervise_signal s = {info->si_pid, info->si_value.sival_int};
    unsigned passed = info->si_code == SI_QUEUE ? supervise_passed(s) : 0;
    return (passed ? passed : ++signals.count) > 1;
}

static void *watch(void *arg)
{
    for (;;) {
        siginfo_t info;
        int signal = sigwaitinfo(&signals.set, &info);
        if (signal < 0)
            continue;
        bool second = is_second(&info);
        if (signals.only_asks)
            ask(signal);
        else if (second || !signals.asked)
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
    signal(SIGXFSZ, SIG_IGN); /* a size beyond `ulimit -f` is an error of that call */
    signal(SIGIO, SIG_IGN); /* a lease of ours must be given back (placement/store/datafile.c) */
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
