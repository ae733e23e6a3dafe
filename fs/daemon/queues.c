/* queues.c - the socket by which programs tell what they will read (docs/wire.md, "Hints"; tools/lib/ is the other side).
 *
 * One thread with a poll loop; a connection is a queue's life.  Nothing blocks in it: what a client sends is read as it comes,
 * and a client that does not read its answers is dropped.  An answer to WAIT is sent when what it waits for has happened:
 * foresight wakes the loop for that.
 *
 * The socket's name is abstract and random: it is found through the mount (QUEUE_XATTR), and nobody else can have it.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fs/daemon/daemon.h"
#include "placement/foresight/foresight.h"
#include "transport/jobs.h"

#define OUT_MAX   65536u /* bytes of answers that a client has not read */
#define WAITS_MAX 1024u  /* of one client at once */
#define READ_SIZE 65536u
#define PAUSE_MS  100    /* after a connection could not be accepted */
#define FIXED     2 /* polled before the connections: the wake, the listener */

struct wait {
    int64_t seq;
    uint32_t request;
};

struct client {
    int fd;
    struct queue *queue; /* NULL: it has not said hello */
    struct queue_head head;
    uint8_t *body;   /* as it comes; head.body_len bytes are expected */
    size_t got;      /* bytes of head and body */
    uint8_t *out;    /* that the socket did not take yet */
    size_t out_len;
    struct wait *waits;
    unsigned nwaits;
    bool ended; /* to be closed when the loop comes round */
};

/* Only the loop's thread, but what is said otherwise. */
static struct {
    int listen_fd, wake_fd; /* wake_fd: an eventfd; written by any thread */
    struct client **clients;
    struct pollfd *polled;
    size_t n, cap;
    uint64_t pause_until_ms; /* boot_ms: no connection is accepted before */
    _Atomic unsigned waits; /* of all clients: news are of use */
    _Atomic bool ending;
    pthread_t thread;
    bool running;
} queues = {.listen_fd = -1, .wake_fd = -1};

static void wake(void)
{
    uint64_t one = 1;
    if (write(queues.wake_fd, &one, sizeof(one)) < 0)
        return; /* the counter is full: it is readable */
}

static void on_news(void)
{
    if (queues.waits)
        wake();
}

/* ---- answers ---- */

/* What the socket takes now; the rest stays. */
static void send_out(struct client *c)
{
    ssize_t n = c->out_len ? send(c->fd, c->out, c->out_len, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        c->ended = true;
    if (n <= 0)
        return;
    c->out_len -= (size_t)n;
    memmove(c->out, c->out + n, c->out_len);
}

static void answer(struct client *c, uint16_t type, uint32_t request, int status, const void *body,
                   size_t len)
{
    struct queue_head head = {.body_len = (uint32_t)(status ? 0 : len),
                              .type = type,
                              .reply = 1,
                              .request = request,
                              .status = status};
    if (c->out_len + sizeof(head) + head.body_len > OUT_MAX) {
        c->ended = true; /* it does not read */
        return;
    }
    memcpy(c->out + c->out_len, &head, sizeof(head));
    memcpy(c->out + c->out_len + sizeof(head), body, head.body_len);
    c->out_len += sizeof(head) + head.body_len;
    send_out(c);
}

/* ---- requests: each sets the answer's status, or -EPROTO to end the connection ---- */

static int hello(struct client *c)
{
    struct queue_hello h;
    if (c->queue || c->head.body_len != sizeof(h))
        return -EPROTO;
    memcpy(&h, c->body, sizeof(h));
    int status = h.version == QUEUE_VERSION ? 0 : -EPROTONOSUPPORT;
    if (!status && !(c->queue = foresight_queue_new()))
        status = -EAGAIN;
    answer(c, QUEUE_HELLO, c->head.request, status, "", 0);
    return 0;
}

static int add(struct client *c)
{
    int64_t first = 0;
    int status = foresight_add(c->queue, c->body, c->head.body_len, &first);
    if (status == -EPROTO)
        return status;
    answer(c, QUEUE_ADD, c->head.request, status, &first, sizeof(first));
    return 0;
}

static int start_or_stop(struct client *c)
{
    if (c->head.body_len)
        return -EPROTO;
    foresight_fetch(c->queue, c->head.type == QUEUE_START);
    answer(c, c->head.type, c->head.request, 0, "", 0);
    return 0;
}

static int wait_for(struct client *c, int64_t seq)
{
    if (seq == -1)
        seq = -1 - foresight_count(c->queue);
    int reached = foresight_is_reached(c->queue, seq);
    if (reached) {
        answer(c, QUEUE_WAIT, c->head.request, MIN(reached, 0), "", 0);
        return 0;
    }
    if (c->nwaits == WAITS_MAX)
        return -EPROTO;
    c->waits = xrealloc(c->waits, (c->nwaits + 1) * sizeof(*c->waits));
    c->waits[c->nwaits++] = (struct wait){seq, c->head.request};
    queues.waits++;
    wake(); /* what it waits for may have happened before it was counted */
    return 0;
}

/* CONSUMED, WAIT, CANCEL. */
static int of_entry(struct client *c)
{
    struct queue_seq s;
    if (c->head.body_len != sizeof(s))
        return -EPROTO;
    memcpy(&s, c->body, sizeof(s));
    if (s.seq < (c->head.type == QUEUE_WAIT ? -1 : 0))
        return -EPROTO;
    if (c->head.type == QUEUE_WAIT)
        return wait_for(c, s.seq);
    int status = 0;
    if (c->head.type == QUEUE_CONSUMED)
        status = foresight_consumed(c->queue, s.seq);
    else
        foresight_cancel(c->queue, s.seq);
    answer(c, c->head.type, c->head.request, status, "", 0);
    return 0;
}

/* The wait is answered, if it has not been. */
static int unwait(struct client *c)
{
    struct queue_unwait u;
    if (c->head.body_len != sizeof(u))
        return -EPROTO;
    memcpy(&u, c->body, sizeof(u));
    for (unsigned i = 0; i < c->nwaits; i++)
        if (c->waits[i].request == u.request) {
            c->waits[i] = c->waits[--c->nwaits];
            queues.waits--;
            answer(c, QUEUE_WAIT, u.request, -ETIMEDOUT, "", 0);
            break;
        }
    return 0;
}

static int stats(struct client *c)
{
    uint64_t all[8];
    if (c->head.body_len)
        return -EPROTO;
    foresight_stats(c->queue, all);
    answer(c, QUEUE_STATS, c->head.request, 0, all, sizeof(all));
    return 0;
}

static int (*const requests[QUEUE_TYPES])(struct client *c) = {
    [QUEUE_HELLO] = hello,       [QUEUE_ADD] = add,       [QUEUE_START] = start_or_stop,
    [QUEUE_STOP] = start_or_stop, [QUEUE_CONSUMED] = of_entry, [QUEUE_WAIT] = of_entry,
    [QUEUE_CANCEL] = of_entry,   [QUEUE_STATS] = stats,
    [QUEUE_UNWAIT] = unwait,
};

/* ---- what comes ---- */

static bool head_is_right(const struct client *c)
{
    const struct queue_head *h = &c->head;
    return h->body_len <= QUEUE_BODY_MAX && h->type < QUEUE_TYPES && requests[h->type] && !h->reply &&
           !h->status && (c->queue || h->type == QUEUE_HELLO);
}

/* A whole message is here. */
static void take_message(struct client *c)
{
    if (requests[c->head.type](c))
        c->ended = true;
    free(c->body);
    c->body = NULL;
    c->got = 0;
}

/* How many bytes it took of those that came. */
static size_t take_bytes(struct client *c, const uint8_t *at, size_t n)
{
    size_t head = sizeof(c->head), take;
    if (c->got < head) {
        take = MIN(n, head - c->got);
        memcpy((uint8_t *)&c->head + c->got, at, take);
        c->got += take;
        if (c->got < head)
            return take;
        c->ended = !head_is_right(c);
        if (!c->ended)
            c->body = xmalloc(c->head.body_len + 1);
    } else {
        take = MIN(n, head + c->head.body_len - c->got);
        memcpy(c->body + (c->got - head), at, take);
        c->got += take;
    }
    if (!c->ended && c->got == head + c->head.body_len)
        take_message(c);
    return take;
}

static void read_client(struct client *c)
{
    uint8_t buf[READ_SIZE];
    ssize_t n = recv(c->fd, buf, sizeof(buf), MSG_DONTWAIT);
    if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
        c->ended = true;
    for (size_t at = 0; n > 0 && at < (size_t)n && !c->ended;)
        at += take_bytes(c, buf + at, (size_t)n - at);
}

static void look_at_waits(struct client *c)
{
    for (unsigned i = 0; i < c->nwaits;) {
        struct wait w = c->waits[i];
        int reached = foresight_is_reached(c->queue, w.seq);
        if (!reached) {
            i++;
            continue;
        }
        c->waits[i] = c->waits[--c->nwaits];
        queues.waits--;
        answer(c, QUEUE_WAIT, w.request, MIN(reached, 0), "", 0);
    }
}

/* ---- connections ---- */

static bool is_ours(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) &&
           (peer.uid == geteuid() || peer.uid == 0);
}

static void add_client(int fd)
{
    if (queues.n == queues.cap) {
        queues.cap = queues.cap ? 2 * queues.cap : 16;
        queues.clients = xrealloc(queues.clients, queues.cap * sizeof(*queues.clients));
        queues.polled = xrealloc(queues.polled, (queues.cap + FIXED) * sizeof(*queues.polled));
    }
    struct client *c = xcalloc(1, sizeof(*c));
    c->fd = fd;
    c->out = xmalloc(OUT_MAX);
    queues.clients[queues.n++] = c;
}

static void free_client(struct client *c)
{
    if (c->queue)
        foresight_queue_end(c->queue);
    queues.waits -= c->nwaits;
    close(c->fd);
    free(c->body);
    free(c->out);
    free(c->waits);
    free(c);
}

/* Out of descriptors or memory the connection stays in the queue, and poll would return at once. */
static void accept_client(void)
{
    static _Atomic uint64_t last;
    int fd = accept4(queues.listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) {
        if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR && log_every(&last, 60000))
            log_warn("the socket for hints accepts no connection: %m: hints are not heard");
        queues.pause_until_ms = boot_ms() + PAUSE_MS;
        return;
    }
    if (is_ours(fd)) {
        add_client(fd);
        return;
    }
    struct queue_head no = {.type = QUEUE_HELLO, .reply = 1, .status = -EACCES};
    if (send(fd, &no, sizeof(no), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        log_debug("another user's program was not told that it may not give hints: %m");
    close(fd);
}

static void drop_ended(void)
{
    size_t kept = 0;
    for (size_t i = 0; i < queues.n; i++)
        if (queues.clients[i]->ended)
            free_client(queues.clients[i]);
        else
            queues.clients[kept++] = queues.clients[i];
    queues.n = kept;
}

/* ---- the loop ---- */

static void poll_all(void)
{
    queues.polled[0] = (struct pollfd){.fd = queues.wake_fd, .events = POLLIN};
    uint64_t now = boot_ms();
    int pause = now < queues.pause_until_ms ? (int)(queues.pause_until_ms - now) : -1;
    queues.polled[1] = (struct pollfd){.fd = pause < 0 ? queues.listen_fd : -1, .events = POLLIN};
    for (size_t i = 0; i < queues.n; i++) {
        const struct client *c = queues.clients[i];
        short events = c->out_len ? POLLIN | POLLOUT : POLLIN;
        queues.polled[FIXED + i] = (struct pollfd){.fd = c->fd, .events = events};
    }
    while (poll(queues.polled, queues.n + FIXED, pause) < 0 && errno == EINTR)
        ;
}

static void serve_client(struct client *c, short came)
{
    if (came & POLLOUT)
        send_out(c);
    if (came & (POLLIN | POLLHUP | POLLERR))
        read_client(c);
}

static void *loop_main(void *arg)
{
    uint64_t times;
    while (!queues.ending) {
        poll_all();
        bool news = queues.polled[0].revents;
        size_t polled = queues.n;
        if (news && read(queues.wake_fd, &times, sizeof(times)) < 0)
            continue;
        for (size_t i = 0; i < polled; i++)
            serve_client(queues.clients[i], queues.polled[FIXED + i].revents);
        for (size_t i = 0; news && i < polled; i++)
            look_at_waits(queues.clients[i]);
        if (queues.polled[1].revents)
            accept_client();
        drop_ended();
    }
    return arg;
}

/* ---- start and stop ---- */

static int listen_at(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(name);
    memcpy(address.sun_path + 1, name, len);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
    if (bind(fd, (struct sockaddr *)&address, size) || listen(fd, 128)) {
        int err = -errno;
        close(fd);
        return err;
    }
    return fd;
}

int queues_start(char *err_text, size_t errlen)
{
    char name[64];
    snprintf(name, sizeof(name), "eddyfs-%016llx%016llx", (unsigned long long)random_u64(),
             (unsigned long long)random_u64());
    queues.ending = false;
    queues.polled = xcalloc(FIXED, sizeof(*queues.polled));
    queues.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    queues.listen_fd = queues.wake_fd < 0 ? -errno : listen_at(name);
    int err = MIN(queues.listen_fd, 0);
    if (!err)
        err = thread_start(&queues.thread, loop_main, NULL, "queues");
    queues.running = !err;
    if (!err) {
        foresight_on_news(on_news);
        foresight_set_address(name);
        return 0;
    }
    snprintf(err_text, errlen, "the socket for hints cannot be made: %s", strerror(-err));
    queues_stop();
    return err;
}

void queues_stop(void)
{
    foresight_set_address("");
    foresight_on_news(NULL);
    if (queues.running) {
        queues.ending = true;
        wake();
        pthread_join(queues.thread, NULL);
    }
    queues.running = false;
    for (size_t i = 0; i < queues.n; i++)
        free_client(queues.clients[i]);
    free(queues.clients);
    free(queues.polled);
    queues.clients = NULL;
    queues.polled = NULL;
    queues.n = queues.cap = 0;
    if (queues.listen_fd >= 0)
        close(queues.listen_fd);
    if (queues.wake_fd >= 0)
        close(queues.wake_fd);
    queues.listen_fd = queues.wake_fd = -1;
}
