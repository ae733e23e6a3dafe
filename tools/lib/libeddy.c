/* libeddy.c - the queues of eddy.h: a connection each, on which several threads may wait for answers.
 *
 *     q->lock        sent in one piece: the path table, the request's number, the message
 *     one reader     of the threads that wait for answers, one reads; what is another's it puts into that one's slot
 *
 * A path is sent once: `paths` numbers them, and `targets` the ranges that were named.  A forked child has no queue: its
 * descriptors are closed, and each call returns -ECHILD.
 */
#include "tools/lib/eddy.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "placement/foresight/queue_wire.h"
#include "tools/lib/names.h"
#include "tools/lib/table.h"

#define AT_ONCE   4096u           /* hints in a message */
#define BYTES_MAX (QUEUE_BODY_MAX / 2) /* of paths in a message */

/* A thread that waits for an answer; on its stack. */
struct call {
    struct call *next;
    uint32_t request;
    bool done;
    int status;
    uint8_t body[256];
    size_t len; /* of the body that came, or as much of it as fits */
};

struct eddy_queue {
    eddy_queue *next, **prev; /* all_lock */
    pid_t pid;
    int fd;
    char socket[sizeof(((struct sockaddr_un *)0)->sun_path)];
    pthread_mutex_t appending; /* one thread appends: numbers of hints follow each other, also while it waits; before `lock` */
    pthread_mutex_t lock; /* all that follows, and sending */
    pthread_cond_t changed;
    bool reading;         /* a thread reads answers, without the lock */
    int broken;           /* -errno of all calls from now on */
    uint32_t request;
    struct call *calls;
    struct names names;   /* of directories that were looked up */
    struct table paths, targets;
};

/* ---- all queues of the process: for fork ---- */

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static eddy_queue *all;

static void before_fork(void)
{
    pthread_mutex_lock(&all_lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&all_lock);
}

/* Only the descriptors: the connection is the parent's, and ends with it. */
static void in_child(void)
{
    for (eddy_queue *q = all; q; q = q->next) {
        close(q->fd);
        q->fd = -1;
    }
    all = NULL;
    pthread_mutex_unlock(&all_lock);
}

static void init(void)
{
    pthread_atfork(before_fork, after_fork, in_child);
}

static void enter_list(eddy_queue *q)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init);
    pthread_mutex_lock(&all_lock);
    q->next = all;
    q->prev = &all;
    if (all)
        all->prev = &q->next;
    all = q;
    pthread_mutex_unlock(&all_lock);
}

static void leave_list(eddy_queue *q)
{
    pthread_mutex_lock(&all_lock);
    *q->prev = q->next;
    if (q->next)
        q->next->prev = q->prev;
    pthread_mutex_unlock(&all_lock);
}

/* 0, or why no call can be made. */
static int check(const eddy_queue *q)
{
    if (!q)
        return -EINVAL;
    return q->pid == getpid() ? 0 : -ECHILD;
}

/* ---- messages ---- */

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int send_all(int fd, const void *data, size_t len)
{
    for (const uint8_t *at = data; len;) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -ENOTCONN;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

/* All of it, however long it takes: the daemon sends a message in one piece. */
static int recv_all(int fd, void *data, size_t len)
{
    for (uint8_t *at = data; len;) {
        ssize_t n = recv(fd, at, len, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -ENOTCONN;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

/* The next answer, within timeout_ms (< 0: none).  -ETIMEDOUT, -ENOTCONN. */
static int read_answer(int fd, int timeout_ms, struct call *out)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct queue_head head;
    int n = poll(&p, 1, timeout_ms);
    if (n <= 0)
        return !n || errno == EINTR ? -ETIMEDOUT : -ENOTCONN;
    int err = recv_all(fd, &head, sizeof(head));
    if (err || head.reply != 1 || head.body_len > sizeof(out->body))
        return -ENOTCONN;
    *out = (struct call){.request = head.request, .status = head.status, .len = head.body_len};
    return recv_all(fd, out->body, out->len);
}

/* With the lock: gives an answer to the thread that waits for it. */
static void deliver(eddy_queue *q, const struct call *answer)
{
    for (struct call *c = q->calls; c; c = c->next)
        if (c->request == answer->request && !c->done) {
            c->done = true;
            c->status = answer->status;
            c->len = answer->len;
            memcpy(c->body, answer->body, sizeof(c->body));
        }
}

static void drop_call(eddy_queue *q, struct call *call)
{
    struct call **at = &q->calls;
    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
}

/* ms that are left; -1: no end. */
static int left_ms(uint64_t end)
{
    uint64_t now = now_ms();
    if (end == UINT64_MAX)
        return -1;
    return end <= now ? 0 : end - now > INT32_MAX ? INT32_MAX : (int)(end - now);
}

static void wait_for_reader(eddy_queue *q, uint64_t end)
{
    struct timespec t = {.tv_sec = (time_t)(end / 1000), .tv_nsec = (long)(end % 1000) * 1000000};
    if (end == UINT64_MAX)
        pthread_cond_wait(&q->changed, &q->lock);
    else
        pthread_cond_timedwait(&q->changed, &q->lock, &t);
}

/* With the lock: this thread reads one answer. */
static void read_one(eddy_queue *q, uint64_t end)
{
    struct call answer;
    int fd = q->fd, timeout = left_ms(end);
    q->reading = true;
    pthread_mutex_unlock(&q->lock);
    int err = read_answer(fd, timeout, &answer);
    pthread_mutex_lock(&q->lock);
    q->reading = false;
    if (!err)
        deliver(q, &answer);
    else if (err != -ETIMEDOUT)
        q->broken = err;
    pthread_cond_broadcast(&q->changed);
}

/* With the lock.  call->request was sent.  Its status; -ETIMEDOUT: no answer came yet; -ENOTCONN. */
static int await(eddy_queue *q, struct call *call, uint64_t end)
{
    call->next = q->calls;
    q->calls = call;
    while (!call->done && !q->broken && left_ms(end)) {
        if (q->reading)
            wait_for_reader(q, end);
        else
            read_one(q, end);
    }
    drop_call(q, call);
    if (call->done)
        return call->status;
    return q->broken ? q->broken : -ETIMEDOUT;
}

/* With the lock. */
static int send_request(eddy_queue *q, uint16_t type, const void *body, size_t len, struct call *call)
{
    struct queue_head head = {.body_len = (uint32_t)len, .type = type, .request = ++q->request};
    *call = (struct call){.request = head.request};
    if (q->broken)
        return q->broken;
    int err = send_all(q->fd, &head, sizeof(head));
    if (!err)
        err = send_all(q->fd, body, len);
    if (err)
        q->broken = err;
    return err;
}

/* A request and its answer; end: of the wait, as now_ms. */
static int ask_until(eddy_queue *q, uint16_t type, const void *body, size_t len, uint64_t end,
                     struct call *call)
{
    int err = check(q);
    if (err)
        return err;
    pthread_mutex_lock(&q->lock);
    err = send_request(q, type, body, len, call);
    if (!err)
        err = await(q, call, end);
    pthread_mutex_unlock(&q->lock);
    return err;
}

static int ask(eddy_queue *q, uint16_t type, const void *body, size_t len)
{
    struct call call;
    return ask_until(q, type, body, len, UINT64_MAX, &call);
}

/* ---- open and close ---- */

static int connect_to(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(name);
    memcpy(address.sun_path + 1, name, len);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (!connect(fd, (struct sockaddr *)&address,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)))
        return fd;
    int err = errno == ECONNREFUSED ? -ENODEV : -errno; /* a daemon of another network namespace */
    close(fd);
    return err;
}

static int say_hello(eddy_queue *q, unsigned flags)
{
    struct queue_hello hello = {.version = QUEUE_VERSION, .flags = flags};
    struct queue_head head = {.body_len = sizeof(hello), .type = QUEUE_HELLO};
    struct call answer;
    int err = send_all(q->fd, &head, sizeof(head));
    if (!err)
        err = send_all(q->fd, &hello, sizeof(hello));
    /* one that is refused is told so, and may be cut off before it has said anything */
    int heard = read_answer(q->fd, -1, &answer);
    return heard ? (err ? err : heard) : answer.status;
}

static void free_queue(eddy_queue *q)
{
    names_free(&q->names);
    table_free(&q->paths);
    table_free(&q->targets);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    pthread_mutex_destroy(&q->appending);
    free(q);
}

static eddy_queue *new_queue(void)
{
    pthread_condattr_t attr;
    eddy_queue *q = calloc(1, sizeof(*q));
    if (!q)
        return NULL;
    pthread_mutex_init(&q->appending, NULL);
    pthread_mutex_init(&q->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&q->changed, &attr);
    pthread_condattr_destroy(&attr);
    q->pid = getpid();
    return q;
}

int eddy_queue_open(const char *path_in_mount, unsigned flags, eddy_queue **out)
{
    if (!path_in_mount || !out || flags & ~EDDY_QUEUE_ANY_READER)
        return -EINVAL;
    *out = NULL;
    eddy_queue *q = new_queue();
    if (!q)
        return -ENOMEM;
    int err = names_mount(path_in_mount, q->socket, sizeof(q->socket));
    if (!err) {
        q->fd = connect_to(q->socket);
        err = q->fd < 0 ? q->fd : say_hello(q, flags);
        if (err && q->fd >= 0)
            close(q->fd);
    }
    if (err) {
        free_queue(q);
        return err;
    }
    enter_list(q);
    *out = q;
    return 0;
}

void eddy_queue_close(eddy_queue *q)
{
    if (check(q)) /* NULL, or a forked child's: its memory is the parent's past */
        return;
    leave_list(q);
    shutdown(q->fd, SHUT_RDWR); /* a child that was forked while it was opened has the descriptor, too */
    close(q->fd);
    free_queue(q);
}

/* ---- appending ---- */

struct message {
    uint8_t *paths, *targets; /* as they are sent */
    uint32_t *entries;
    struct queue_add n;
    size_t path_bytes;
    uint32_t known_paths, known_targets; /* in the tables before it */
};

static int put_path(eddy_queue *q, struct message *m, const char *path, uint32_t *number)
{
    size_t n = strlen(path);
    uint16_t len = (uint16_t)n;
    bool is_new;
    int err = table_number(&q->paths, path, n, number, &is_new);
    if (err || !is_new)
        return err;
    memcpy(m->paths + m->path_bytes, &len, sizeof(len));
    memcpy(m->paths + m->path_bytes + sizeof(len), path, n);
    m->path_bytes += sizeof(len) + n;
    m->n.paths++;
    return 0;
}

static int put_hint(eddy_queue *q, struct message *m, const struct eddy_hint *h)
{
    char path[QUEUE_PATH_MAX + 1];
    struct queue_target t = {.off = h->off, .len = h->len};
    uint32_t path_number, number;
    bool is_new;
    if (!h->path || h->off > INT64_MAX || h->len > (uint64_t)INT64_MAX - h->off)
        return -EINVAL;
    int err = names_below(&q->names, q->socket, h->path, path, sizeof(path));
    if (!err)
        err = put_path(q, m, path, &path_number);
    if (err)
        return err;
    t.path = path_number;
    err = table_number(&q->targets, &t, sizeof(t), &number, &is_new);
    if (err)
        return err;
    if (is_new)
        memcpy(m->targets + m->n.targets++ * sizeof(t), &t, sizeof(t));
    m->entries[m->n.entries++] = number;
    return 0;
}

/* What was not sent, or not taken, is not known. */
static void take_back(eddy_queue *q, const struct message *m)
{
    table_cut(&q->paths, m->known_paths);
    table_cut(&q->targets, m->known_targets);
}

static int64_t send_message(eddy_queue *q, const struct message *m)
{
    size_t targets = m->n.targets * sizeof(struct queue_target), entries = m->n.entries * sizeof(uint32_t);
    size_t len = sizeof(m->n) + m->path_bytes + targets + entries;
    uint8_t *body = malloc(len);
    struct call call;
    int64_t first = 0;
    if (!body)
        return -ENOMEM;
    memcpy(body, &m->n, sizeof(m->n));
    memcpy(body + sizeof(m->n), m->paths, m->path_bytes);
    memcpy(body + sizeof(m->n) + m->path_bytes, m->targets, targets);
    memcpy(body + len - entries, m->entries, entries);
    int err = send_request(q, QUEUE_ADD, body, len, &call);
    if (!err)
        err = await(q, &call, UINT64_MAX);
    free(body);
    if (!err)
        memcpy(&first, call.body, sizeof(first));
    return err ? err : first;
}

static bool message_init(struct message *m)
{
    m->paths = malloc(BYTES_MAX + sizeof(uint16_t) + QUEUE_PATH_MAX);
    m->targets = malloc(AT_ONCE * sizeof(struct queue_target));
    m->entries = malloc(AT_ONCE * sizeof(*m->entries));
    return m->paths && m->targets && m->entries;
}

static void message_free(struct message *m)
{
    free(m->paths);
    free(m->targets);
    free(m->entries);
}

/* As many of the n hints as one message takes; *taken: how many. */
static int64_t append_some(eddy_queue *q, struct message *m, const struct eddy_hint *hints, size_t n,
                           size_t *taken)
{
    int err = 0;
    size_t i = 0;
    m->n = (struct queue_add){0};
    m->path_bytes = 0;
    m->known_paths = q->paths.n;
    m->known_targets = q->targets.n;
    for (; !err && i < n && i < AT_ONCE && m->path_bytes < BYTES_MAX; i++)
        err = put_hint(q, m, &hints[i]);
    *taken = i;
    int64_t first = err ? err : send_message(q, m);
    if (first < 0)
        take_back(q, m);
    return first;
}

static void cancel_from(eddy_queue *q, int64_t from)
{
    struct queue_seq body = {.seq = from};
    struct call call;
    if (!send_request(q, QUEUE_CANCEL, &body, sizeof(body), &call))
        await(q, &call, UINT64_MAX);
}

/* All or none: what was taken before an error is cancelled. */
static int64_t append_all(eddy_queue *q, const struct eddy_hint *hints, size_t n)
{
    struct message m;
    int64_t first = -1, err = message_init(&m) ? 0 : -ENOMEM;
    for (size_t i = 0, taken; err >= 0 && i < n; i += taken) {
        err = append_some(q, &m, hints + i, n - i, &taken);
        if (first < 0 && err >= 0)
            first = err;
    }
    message_free(&m);
    if (err < 0 && first >= 0)
        cancel_from(q, first);
    return err < 0 ? err : first;
}

int64_t eddy_queue_append_many(eddy_queue *q, const struct eddy_hint *hints, size_t n)
{
    int err = check(q);
    if (err)
        return err;
    if (!hints || !n)
        return -EINVAL;
    pthread_mutex_lock(&q->appending);
    pthread_mutex_lock(&q->lock);
    int64_t first = append_all(q, hints, n);
    pthread_mutex_unlock(&q->lock);
    pthread_mutex_unlock(&q->appending);
    return first;
}

int64_t eddy_queue_append(eddy_queue *q, const char *path, uint64_t off, uint64_t len)
{
    struct eddy_hint h = {path, off, len};
    return eddy_queue_append_many(q, &h, 1);
}

/* ---- the rest ---- */

int eddy_queue_start(eddy_queue *q)
{
    return ask(q, QUEUE_START, "", 0);
}

int eddy_queue_stop(eddy_queue *q)
{
    return ask(q, QUEUE_STOP, "", 0);
}

static int ask_of(eddy_queue *q, uint16_t type, int64_t seq)
{
    struct queue_seq body = {.seq = seq};
    return ask(q, type, &body, sizeof(body));
}

int eddy_queue_consumed(eddy_queue *q, int64_t seq)
{
    return seq < 0 ? -ENOENT : ask_of(q, QUEUE_CONSUMED, seq);
}

int eddy_queue_cancel(eddy_queue *q, int64_t from_seq)
{
    return from_seq < 0 ? -EINVAL : ask_of(q, QUEUE_CANCEL, from_seq);
}

int eddy_queue_wait(eddy_queue *q, int64_t seq, int timeout_ms)
{
    struct queue_seq body = {.seq = seq};
    struct call call, unwait;
    uint64_t end = timeout_ms < 0 ? UINT64_MAX : now_ms() + (uint64_t)timeout_ms;
    int err = check(q);
    if (err || seq < EDDY_QUEUE_ALL_CONSUMED)
        return err ? err : -ENOENT;
    pthread_mutex_lock(&q->lock);
    err = send_request(q, QUEUE_WAIT, &body, sizeof(body), &call);
    if (!err)
        err = await(q, &call, end);
    if (err == -ETIMEDOUT && !call.done) { /* then the daemon answers in any case */
        struct queue_unwait u = {.request = call.request};
        err = send_request(q, QUEUE_UNWAIT, &u, sizeof(u), &unwait);
        if (!err)
            err = await(q, &call, UINT64_MAX);
    }
    pthread_mutex_unlock(&q->lock);
    return err;
}

int eddy_queue_stats(eddy_queue *q, struct eddy_queue_stats *out, size_t size)
{
    struct call call;
    if (!out)
        return -EINVAL;
    int err = ask_until(q, QUEUE_STATS, "", 0, UINT64_MAX, &call);
    if (err)
        return err;
    size_t known = call.len < sizeof(*out) ? call.len : sizeof(*out);
    memset(out, 0, size);
    memcpy(out, call.body, known < size ? known : size);
    return 0;
}
