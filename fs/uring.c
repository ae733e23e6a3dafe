/* uring.c - the rings, one for each queue of the kernel, and their threads (uring.h).
 *
 * An entry:
 *
 *     with the kernel --request--> with us --answer--> answered --submitted--> with the kernel
 *
 * Only the queue's own thread submits: what the kernel has to do for an entry it does in the thread that submitted it last, and
 * no other thread would be there for that.  So another thread that answers puts the entry into the queue's list and wakes its
 * thread.  An answer of the queue's own thread is submitted when the thread waits for the next request, by one system call,
 * or before if somebody must know that the kernel has it (uring_settle).
 *
 * When the kernel's connection ends it gives back all entries that it has, with an error.  A thread that ends gives up its ring,
 * and the kernel takes its entries away.
 */
#include "fs/uring.h"

#include <errno.h>
#include <liburing.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fs/ops.h"
#include "fs/settings.h"
#include "fs/uring_entry.h"
#include "transport/jobs.h"
#include "transport/lock.h"

/* liburing 2.3's header has not all of these */
#define SETUP_SQE128        (1u << 10)
#define SETUP_SINGLE_ISSUER (1u << 12)
#define SETUP_DEFER_TASKRUN (1u << 13)

#define PARAMETER   "/sys/module/fuse/parameters/enable_uring"
#define ENTRIES_ALL 1024 /* of all queues together, but ... */
#define ENTRIES_MIN 16   /* ... of each at least, and ... */
#define ENTRIES_MAX 64   /* ... at most */
#define HUGE_PAGE   ((size_t)2 << 20)
#define HUGE_PART   8    /* of --memory is for entries with huge pages */

struct queue {
    unsigned no;
    struct io_uring ring;
    pthread_t thread;
    bool begun; /* its thread was made */
    int err;    /* why it cannot go on, before it is told that it is to serve */
    int wake_fd;
    struct entry *entries;

    struct lock lock; /* RANK_LEAF */
    pthread_cond_t submitted;
    struct entry *answered, **answered_end; /* by other threads, in this order */
    uint64_t n_answered, n_submitted;       /* of those */
    bool ended;
};

static struct {
    struct queue *queues;
    unsigned n, n_entries;
    void (*serve)(struct fuse_buf *request, char *bytes);
    int fd; /* /dev/fuse */
    bool offered, on, gone;
    const char *why_not;
    char why_text[128];

    struct lock lock; /* RANK_LEAF */
    pthread_cond_t changed;
    unsigned ready, registered, ended; /* how many queues */
    enum { MAKE, SERVE, END } to_do;
} u = {.fd = -1, .lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}, .why_not = "it was not asked for (--uring)"};

static _Thread_local struct queue *own; /* this thread's, if it has one */

/* What other threads have answered last, each. */
static _Thread_local struct {
    struct queue *queue;
    uint64_t n;
} last;

/* ---- submitting; the queue's own thread ---- */

static struct io_uring_sqe *next_sqe(struct queue *q)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&q->ring);
    if (!sqe) {
        io_uring_submit(&q->ring);
        sqe = io_uring_get_sqe(&q->ring);
    }
    if (!sqe)
        die("a ring of FUSE is full");
    return sqe;
}

static void prepare(struct queue *q, struct entry *e, enum uring_command command)
{
    struct io_uring_sqe *sqe = next_sqe(q);
    struct uring_command_args args = {.queue = (uint16_t)q->no, .commit_id = e->commit_id};
    memset(sqe, 0, 2 * sizeof(*sqe)); /* 128 bytes */
    sqe->opcode = IORING_OP_URING_CMD;
    sqe->fd = u.fd;
    sqe->cmd_op = command;
    sqe->user_data = (uintptr_t)e;
    if (command == URING_REGISTER) {
        sqe->addr = (uintptr_t)e->parts;
        sqe->len = ARRAY_LEN(e->parts);
    }
    memcpy(sqe->cmd, &args, sizeof(args));
}

static void prepare_wake(struct queue *q)
{
    struct io_uring_sqe *sqe = next_sqe(q);
    memset(sqe, 0, 2 * sizeof(*sqe));
    io_uring_prep_poll_add(sqe, q->wake_fd, POLLIN);
    sqe->user_data = 0;
}

static void give_back(struct queue *q, struct entry *e)
{
    prepare(q, e, URING_COMMIT_AND_FETCH);
}

/* Those that other threads have answered. */
static void give_back_others(struct queue *q)
{
    uint64_t n;
    if (read(q->wake_fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
        die("eventfd: %s", strerror(errno));
    lock_take(&q->lock);
    struct entry *e = q->answered;
    q->answered = NULL;
    q->answered_end = &q->answered;
    n = q->n_answered;
    lock_drop(&q->lock);
    while (e) {
        struct entry *behind = e->behind;
        give_back(q, e);
        e = behind;
    }
    io_uring_submit(&q->ring);
    lock_take(&q->lock);
    q->n_submitted = n;
    pthread_cond_broadcast(&q->submitted);
    lock_drop(&q->lock);
    prepare_wake(q);
}

/* ---- serving ---- */

static void serve(struct queue *q, struct entry *e)
{
    struct fuse_buf buf = {0};
    buf.mem = entry_request(e, &buf.size);
    if (!buf.mem)
        die("the kernel's request over io_uring cannot be read: queue %u, %u bytes of payload", q->no,
            e->head->entry.payload_size);
    entry_enter(e, ((const struct fuse_in_header *)buf.mem)->unique);
    u.serve(&buf, e->payload);
    if (io_uring_sq_ready(&q->ring) && io_uring_cq_ready(&q->ring) > 1)
        io_uring_submit(&q->ring); /* its process is not to wait for the others' requests */
}

/* An entry that comes with an error stays away: the connection has ended, or is about to. */
static void take_completion(struct queue *q, uint64_t user_data, int result)
{
    if (!user_data)
        give_back_others(q);
    else if (!result)
        serve(q, (struct entry *)(uintptr_t)user_data);
    else if (result != -ENOTCONN && result != -ECANCELED && result != -ENOENT)
        log_error("FUSE over io_uring: queue %u: %s", q->no, strerror(-result));
}

static bool is_to_end(void)
{
    return __atomic_load_n(&u.to_do, __ATOMIC_ACQUIRE) == END;
}

static void serve_all(struct queue *q)
{
    struct io_uring_cqe *cqe;
    while (!is_to_end()) {
        int err = io_uring_submit_and_wait(&q->ring, 1);
        if (err < 0 && err != -EINTR && err != -EAGAIN && err != -EBUSY)
            die("io_uring of queue %u: %s", q->no, strerror(-err));
        while (!is_to_end() && !io_uring_peek_cqe(&q->ring, &cqe)) {
            uint64_t data = cqe->user_data;
            int result = cqe->res;
            /* before the request is served: this must see only others */
            io_uring_cqe_seen(&q->ring, cqe);
            take_completion(q, data, result);
        }
    }
}

/* ---- a queue's thread ---- */

/* Where a core may not be used, or is off, it runs anywhere. */
static void bind_to_core(unsigned no)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(no, &cpus);
    if (no < CPU_SETSIZE && sched_setaffinity(0, sizeof(cpus), &cpus))
        log_debug("the thread of FUSE queue %u is not bound to its core: %s", no, strerror(errno));
}

static int make_ring(struct queue *q)
{
    struct io_uring_params p = {.flags = SETUP_SQE128 | SETUP_SINGLE_ISSUER | SETUP_DEFER_TASKRUN};
    int err = io_uring_queue_init_params(u.n_entries + 8, &q->ring, &p);
    if (err)
        return err;
    io_uring_register_ring_fd(&q->ring); /* without it works as well */
    return 0;
}

/* Tells that this queue is so far, and waits until it is told what to do. */
static int arrive(unsigned *counter, int while_to_do)
{
    lock_take(&u.lock);
    ++*counter;
    pthread_cond_broadcast(&u.changed);
    while ((int)u.to_do == while_to_do)
        lock_wait(&u.lock, &u.changed, 0);
    int to_do = u.to_do;
    lock_drop(&u.lock);
    return to_do;
}

static void register_entries(struct queue *q)
{
    prepare_wake(q);
    for (unsigned i = 0; i < u.n_entries; i++)
        prepare(q, &q->entries[i], URING_REGISTER);
    int n = io_uring_submit(&q->ring);
    struct io_uring_cqe *cqe;
    q->err = n < 0 ? n : 0;
    /* one that is refused is back at once, and a request is no error */
    if (!q->err && !io_uring_peek_cqe(&q->ring, &cqe) && cqe->res < 0)
        q->err = cqe->res;
}

static void *run_queue(void *arg)
{
    struct queue *q = arg;
    own = q;
    bind_to_core(q->no);
    q->err = make_ring(q);
    bool made = !q->err;
    if (arrive(&u.ready, MAKE) == SERVE && made) {
        register_entries(q);
        arrive(&u.registered, -1);
        if (!q->err)
            serve_all(q);
    }
    if (made)
        io_uring_queue_exit(&q->ring);
    lock_take(&q->lock);
    q->ended = true;
    pthread_cond_broadcast(&q->submitted);
    lock_drop(&q->lock);
    arrive(&u.ended, -1);
    return NULL;
}

/* ---- start ---- */

/* How many processors the kernel may ever have, "0-3,8": it has so many queues. */
static unsigned possible_processors(void)
{
    char text[256] = "";
    unsigned n = 0, from, to;
    FILE *f = fopen("/sys/devices/system/cpu/possible", "re");
    if (f) {
        if (!fgets(text, sizeof(text), f))
            text[0] = '\0';
        fclose(f);
    }
    for (char *rest = text, *word; (word = strsep(&rest, ","));) {
        int got = sscanf(word, "%u-%u", &from, &to);
        n += got == 2 ? to - from + 1 : got == 1;
    }
    return n;
}

static bool parameter_is_on(void)
{
    FILE *f = fopen(PARAMETER, "re");
    if (!f) {
        u.why_not = "this kernel's FUSE has none (Linux 6.14 and newer have)";
        return false;
    }
    bool on = fgetc(f) == 'Y';
    fclose(f);
    if (!on)
        u.why_not = "the kernel's FUSE has it off: root writes Y to " PARAMETER;
    return on;
}

static bool make_queue(struct queue *q, unsigned no)
{
    q->no = no;
    q->answered_end = &q->answered;
    lock_init(&q->lock, RANK_LEAF);
    lock_cond_init(&q->submitted);
    q->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    q->entries = entries_new(q, u.n_entries, (unsigned)MIN(settings.memory / HUGE_PART / HUGE_PAGE / u.n, u.n_entries));
    q->begun = q->wake_fd >= 0 && q->entries && !thread_start(&q->thread, run_queue, q, "eddy-uring");
    return q->begun;
}

static void wait_for_all(const unsigned *counter)
{
    lock_take(&u.lock);
    while (*counter < u.n)
        lock_wait(&u.lock, &u.changed, 0);
    lock_drop(&u.lock);
}

static void tell(int to_do)
{
    lock_take(&u.lock);
    if (u.to_do != END)
        __atomic_store_n(&u.to_do, to_do, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&u.changed);
    lock_drop(&u.lock);
}

static int first_error(void)
{
    for (unsigned i = 0; i < u.n; i++)
        if (u.queues[i].err)
            return u.queues[i].err;
    return 0;
}

/* 0, or why not all are there. */
static int make_queues(unsigned n)
{
    u.n = n;
    u.n_entries = MIN(MAX(ENTRIES_ALL / n, ENTRIES_MIN), ENTRIES_MAX);
    u.queues = xcalloc(n, sizeof(*u.queues));
    for (unsigned i = 0; i < n; i++) {
        if (!make_queue(&u.queues[i], i)) {
            u.n = i + 1;
            lock_take(&u.lock);
            u.ready += !u.queues[i].begun;
            lock_drop(&u.lock);
            wait_for_all(&u.ready);
            return -ENOMEM;
        }
    }
    wait_for_all(&u.ready);
    return first_error();
}

static void off(const char *why)
{
    u.on = false;
    u.why_not = why;
    log_warn("--uring: %s: requests come by /dev/fuse", why);
}

bool uring_is_built(void)
{
    return true;
}

void uring_make(void)
{
    if (!settings.uring)
        return;
    lock_cond_init(&u.changed);
    unsigned n = possible_processors();
    if (!parameter_is_on()) {
        off(u.why_not);
        return;
    }
    int err = n ? make_queues(n) : -ENOENT;
    u.on = !err;
    if (!err)
        return;
    snprintf(u.why_text, sizeof(u.why_text), "no rings can be made: %s%s", strerror(-err),
             err == -EPERM ? " (sysctl kernel.io_uring_disabled, or a container's seccomp)" : "");
    uring_end();
    off(u.why_text);
}

void uring_look_at_init(const void *request, size_t n)
{
    struct fuse_init_in in = {0};
    const struct fuse_in_header *header = request;
    if (header->opcode != FUSE_INIT || n < sizeof(*header))
        return;
    memcpy(&in, (const char *)request + sizeof(*header), MIN(sizeof(in), n - sizeof(*header)));
    u.offered = (in.flags & FUSE_INIT_EXT) && (in.flags2 & URING_INIT_FLAG2);
}

void uring_answer_init(struct fuse_init_out *out)
{
    if (!u.on || !u.offered)
        return;
    out->flags |= FUSE_INIT_EXT;
    out->flags2 |= URING_INIT_FLAG2;
}

int uring_begin(struct fuse_session *session, void (*serve_it)(struct fuse_buf *request, char *bytes))
{
    if (u.on && !u.offered) {
        uring_end();
        off("this kernel's FUSE does not offer it");
    }
    if (!u.on)
        return 0;
    u.serve = serve_it;
    u.fd = fuse_session_fd(session);
    tell(SERVE);
    wait_for_all(&u.registered);
    int err = first_error();
    if (!err)
        u.why_not = NULL;
    return err;
}

const char *uring_why_not(void)
{
    return u.why_not;
}

/* ---- answers ---- */

/* In another thread than the queue's. */
static bool hand_over(struct queue *q, struct entry *e)
{
    uint64_t one = 1;
    lock_take(&q->lock);
    bool taken = !q->ended, first = !q->answered;
    if (taken) {
        e->behind = NULL;
        *q->answered_end = e;
        q->answered_end = &e->behind;
        last.queue = q;
        last.n = ++q->n_answered;
    }
    lock_drop(&q->lock);
    if (taken && first && write(q->wake_fd, &one, sizeof(one)) != sizeof(one))
        die("eventfd: %s", strerror(errno));
    return taken;
}

bool uring_answer(const struct iovec *iov, int n, ssize_t *sent)
{
    const struct fuse_out_header *out = iov[0].iov_base;
    struct entry *e = u.on && out->unique ? entry_take(out->unique) : NULL;
    if (!e)
        return false;
    *sent = out->len;
    entry_put_answer(e, iov, n);
    if (e->queue == own) {
        give_back(own, e);
    } else if (!hand_over(e->queue, e)) {
        errno = ENOENT; /* as for a request that is gone */
        *sent = -1;
    }
    return true;
}

void uring_settle(void)
{
    if (own) {
        if (io_uring_sq_ready(&own->ring))
            io_uring_submit(&own->ring);
        return;
    }
    struct queue *q = last.queue;
    if (!q)
        return;
    last.queue = NULL;
    lock_take(&q->lock);
    while (q->n_submitted < last.n && !q->ended)
        lock_wait(&q->lock, &q->submitted, 0);
    lock_drop(&q->lock);
}

/* ---- the end ---- */

void uring_end(void)
{
    uint64_t one = 1;
    if (!u.queues || u.gone)
        return;
    u.gone = true;
    tell(END);
    for (unsigned i = 0; i < u.n; i++)
        if (u.queues[i].begun && write(u.queues[i].wake_fd, &one, sizeof(one)) != sizeof(one))
            log_error("eventfd: %s", strerror(errno));
    for (unsigned i = 0; i < u.n; i++)
        if (u.queues[i].begun)
            pthread_join(u.queues[i].thread, NULL);
}

void uring_free(void)
{
    uring_end();
    for (unsigned i = 0; i < u.n; i++) {
        struct queue *q = &u.queues[i];
        if (q->entries)
            entries_free(q->entries, u.n_entries);
        if (q->wake_fd >= 0)
            close(q->wake_fd);
        pthread_cond_destroy(&q->submitted);
        lock_destroy(&q->lock);
    }
    free(u.queues);
    u.queues = NULL;
    u.n = 0;
}
