/* workers.c - the threads that read /dev/fuse.
 *
 * They are our own, not libfuse's loop: its threads end only when the kernel says that the mount is gone,
 * which it does not say after a lazy unmount with open files.  At the end a signal interrupts the threads
 * that wait in a read of the device.
 *
 *     reading --request--> busy --answered--> reading, or parked if READERS others read
 *        ^                   '-- was the last that read: wakes one that is parked
 *        '---------------------------------------------------'
 *
 * A worker's memory has room for a request, and then for the bytes of its answer if it is a read.  The bytes
 * that are read or written begin at a huge page, where there are huge pages.  With 1 MiB in small pages,
 * which the kernel looks up one by one for a copy, each copy costs a third more.
 *
 *        huge page boundary -----v
 *     ... | header, arguments    | bytes that are written, or read ...
 *
 * Several workers read at the same time: the kernel gives requests in turn to the threads that wait, and a
 * thread that has just answered is not back in the queue when the next request comes.  With three readers an
 * open and close costs a tenth more than with eight (docs/benchmarks.md).
 */
#include "fs/workers.h"

#include <errno.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "fs/operation.h"
#include "fs/ops.h"
#include "fs/uring.h"
#include "transport/lock.h"

#define WORKERS     (REQUEST_READERS_BUSY + READERS)
#define READERS     8
#define WAKE_SIGNAL SIGUSR1

#define HUGE_PAGE   ((size_t)2 << 20)
#define MAPPED      (2 * HUGE_PAGE) /* somewhere in it is a whole one, and a page before that */
#define WRITE_BEGIN (sizeof(struct fuse_in_header) + sizeof(struct fuse_write_in))
/* libfuse promises the kernel a page for header and arguments, beside the bytes */
#define REQUEST_MAX (FUSE_IO_MAX + 4096)

struct worker {
    pthread_t thread;
    _Atomic pid_t reading; /* its number, while it reads the device or is about to; else 0 */
};

static _Thread_local char *data; /* of this thread: where a huge page begins, if it can */

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

/* ---- which workers read ---- */

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

/* No wake-up is lost: a worker that stops reading sees in unpark_one the workers that parked before, and a
 * worker that parks sees whether all others have stopped. */
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

/* The kernel allocates the memory when it is touched: a worker that moves no bytes uses only a page of
 * it. */
static char *map_memory(void)
{
    char *m = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED)
        die("no memory for a thread that reads /dev/fuse: %s", strerror(errno));
    data = m + HUGE_PAGE - (uintptr_t)m % HUGE_PAGE;
    madvise(data, HUGE_PAGE, MADV_HUGEPAGE); /* without such pages it works as well */
    return m;
}

void *workers_data(void)
{
    return data;
}

void workers_serve(struct fuse_buf *request, char *bytes)
{
    data = bytes;
    operation_begin(((const struct fuse_in_header *)request->mem)->opcode);
    fuse_session_process_buf(w.session, request);
    operation_served();
}

/* The next request; false: the mount is gone, or is to end. */
static bool receive(struct worker *me, pid_t tid, struct fuse_buf *buf)
{
    ssize_t n;
    int err;
    do {
        me->reading = tid;
        n = w.ending ? 0 : read(fuse_session_fd(w.session), buf->mem, REQUEST_MAX);
        err = n < 0 ? errno : 0;
        me->reading = 0;
        /* ENOENT: a request that was interrupted before it was read */
    } while (err == EINTR || err == EAGAIN || err == ENOENT);
    if (err && err != ENODEV)
        log_error("/dev/fuse: %s: the mount ends", strerror(err));
    buf->size = n > 0 ? (size_t)n : 0;
    return n > 0 && !fuse_session_exited(w.session);
}

static void *work(void *arg)
{
    pid_t tid = gettid();
    char *memory = map_memory();
    struct fuse_buf buf = {.mem = data - WRITE_BEGIN};
    request_reader();
    for (read_again(); receive(arg, tid, &buf); read_again()) {
        read_no_more();
        uring_look_at_init(buf.mem, buf.size);
        workers_serve(&buf, data);
        w.on_answer();
    }
    read_no_more();
    w.on_gone();
    munmap(memory, MAPPED);
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
