/* workers.c - the threads that read /dev/fuse.
 *
 * They are our own, not libfuse's loop: its threads end only when the kernel says that the mount is
 * gone, which a lazy unmount with files still open does not.  At the end a signal interrupts who
 * waits in a read of the device.
 *
 *     reading --request--> busy --answered--> reading, or parked if READERS others read
 *        ^                   '-- was the last that read: wakes one that is parked
 *        '---------------------------------------------------'
 *
 * Only few read: the kernel gives requests to those that wait in turn, and a thread whose stack and
 * structures are still in the processor's cache is the faster one (a stat costs a third more with
 * twelve).
 */
#include "fs/workers.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fs/fs.h"
#include "transport/lock.h"

#define WORKERS     (REQUEST_READERS_BUSY + 6)
#define READERS     4
#define WAKE_SIGNAL SIGUSR1

struct worker {
    pthread_t thread;
    _Atomic pid_t reading; /* its number, while it reads the device or is about to; else 0 */
};

static struct {
    struct fuse_session *session;
    void (*on_answer)(void), (*on_gone)(void);
    struct worker list[WORKERS];
    unsigned n;
    _Atomic bool ending;
    _Atomic int readers;

    struct lock lock;        /* RANK_LEAF */
    pthread_cond_t unparked; /* or the end */
    unsigned parked, wanted; /* wanted: of the parked, to read again */
} w = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}};

/* ---- who reads ---- */

static void unpark_one(void)
{
    lock_take(&w.lock);
    if (w.wanted < w.parked) {
        w.wanted++;
        pthread_cond_signal(&w.unparked);
    }
    lock_drop(&w.lock);
}

static void read_no_more(void)
{
    if (atomic_fetch_sub(&w.readers, 1) == 1)
        unpark_one();
}

/* One that stops reading while nobody parks sees in unpark_one who parked before; one that parks
 * sees that all others have stopped. */
static void park(void)
{
    lock_take(&w.lock);
    if (atomic_fetch_sub(&w.readers, 1) > 1 && !w.ending) {
        w.parked++;
        while (!w.wanted && !w.ending)
            lock_wait(&w.lock, &w.unparked, 0);
        w.parked--;
        if (w.wanted)
            w.wanted--;
    }
    atomic_fetch_add(&w.readers, 1);
    lock_drop(&w.lock);
}

static void read_again(void)
{
    if (atomic_fetch_add(&w.readers, 1) >= READERS)
        park();
}

/* ---- a worker ---- */

/* The next request; false: the mount is gone, or is to end. */
static bool receive(struct worker *me, pid_t tid, struct fuse_buf *buf)
{
    int n;
    do {
        me->reading = tid;
        n = w.ending ? -ENODEV : fuse_session_receive_buf(w.session, buf);
        me->reading = 0;
    } while (n == -EINTR || n == -EAGAIN);
    if (n < 0 && n != -ENODEV)
        log_error("/dev/fuse: %s: the mount ends", strerror(-n));
    return n > 0;
}

static void *work(void *arg)
{
    struct fuse_buf buf = {0};
    pid_t tid = gettid();
    request_reader();
    for (read_again(); receive(arg, tid, &buf); read_again()) {
        read_no_more();
        fuse_session_process_buf(w.session, &buf);
        w.on_answer();
    }
    read_no_more();
    w.on_gone();
    free(buf.mem);
    io_worker_end();
    return NULL;
}

static void woken(int sig)
{
    (void)sig;
}

int workers_start(struct fuse_session *session, void (*on_answer)(void), void (*on_gone)(void))
{
    struct sigaction wake = {.sa_handler = woken}; /* no SA_RESTART: the read ends with EINTR */
    if (sigaction(WAKE_SIGNAL, &wake, NULL))
        return -errno;
    w.session = session;
    w.on_answer = on_answer;
    w.on_gone = on_gone;
    lock_cond_init(&w.unparked);
    while (w.n < WORKERS) {
        int err = pthread_create(&w.list[w.n].thread, NULL, work, &w.list[w.n]);
        if (err)
            return -err;
        w.n++;
    }
    return 0;
}

/* A signal that comes just before the read does not interrupt it, so it is sent again until the
 * worker is seen outside. */
void workers_end_reading(void)
{
    lock_take(&w.lock);
    w.ending = true;
    pthread_cond_broadcast(&w.unparked);
    lock_drop(&w.lock);
    for (unsigned n = 0; n < WORKERS; n++) {
        for (pid_t tid; (tid = w.list[n].reading);) {
            tgkill(getpid(), tid, WAKE_SIGNAL);
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        }
    }
}

void workers_join(void)
{
    workers_end_reading();
    while (w.n)
        pthread_join(w.list[--w.n].thread, NULL);
}
