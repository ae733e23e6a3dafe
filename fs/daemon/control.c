/* control.c - the socket CACHE_DIR/control, by which `eddy` asks the daemon (control.h has the
 * requests).
 *
 * One thread accepts.  Each connection has a thread of its own, at most CONNECTIONS of them, since a
 * flush takes long and status must be answered meanwhile.  control_stop joins all of them, also those
 * that wait for the PFS.
 *
 *     free -> busy (the thread runs) -> done (the thread has ended) -> free (joined by the acceptor
 *                                                                     or by control_stop)
 */
#include "fs/daemon/control.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/daemon/control_int.h"
#include "fs/daemon/daemon.h"
#include "placement/store/cachedir.h"
#include "placement/store/store_open.h"
#include "transport/lock.h"

#define CONNECTIONS    16
#define SLOW_REQUESTS  8
#define REQUEST_MS     5000 /* a request must be here within */
#define SEND_TIMEOUT_S 10   /* a tool that reads nothing for this long is given up */

struct connection {
    enum { FREE, BUSY, DONE } state; /* control.lock */
    int fd;                          /* closed by the thread that joins it */
    pthread_t thread;
    struct lines *in; /* the thread's own */
};

/* What has come of a request and was not taken yet: [0, len). */
struct lines {
    char buf[CONTROL_LINE_MAX];
    size_t len;
};

static struct {
    struct lock lock; /* RANK_LEAF: the connections' states */
    struct connection connections[CONNECTIONS];
    int listen_fd, wake_fd; /* wake_fd: an eventfd, readable from control_stop on */
    pthread_t acceptor;
    bool running;
    _Atomic bool ending;
} control = {.listen_fd = -1, .wake_fd = -1};

/* ---- JSON ---- */

json_t *control_error(const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    json_t *o = json_object();
    control_put_text(o, "error", text);
    return o;
}

void control_put(json_t *o, const char *key, uint64_t value)
{
    json_object_set_new(o, key, json_integer((json_int_t)MIN(value, (uint64_t)INT64_MAX)));
}

void control_put_text(json_t *o, const char *key, const char *text)
{
    char *printable = control_escape(text ? text : "");
    json_object_set_new(o, key, json_string(printable));
    free(printable);
}

void control_put_id(json_t *o, const char *key, uint64_t id)
{
    char text[17];
    snprintf(text, sizeof(text), "%016llx", (unsigned long long)id);
    json_object_set_new(o, key, json_string(text));
}

/* ---- one connection ---- */

static int send_all(int fd, const char *text, size_t len)
{
    while (len) {
        ssize_t n = send(fd, text, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        text += n;
        len -= (size_t)n;
    }
    return 0;
}

int control_say(struct connection *c, json_t *line)
{
    char *text = json_dumps(line, JSON_COMPACT);
    json_decref(line);
    if (!text)
        return -EINVAL;
    size_t len = strlen(text);
    text[len] = '\n'; /* in place of the NUL */
    int err = send_all(c->fd, text, len + 1);
    free(text);
    return err;
}

bool control_unwanted(struct connection *c)
{
    struct pollfd p = {.fd = c->fd, .events = POLLRDHUP};
    return control.ending ||
           (poll(&p, 1, 0) == 1 && p.revents & (POLLHUP | POLLERR | POLLRDHUP | POLLNVAL));
}

/* The next line, without its newline, into line (CONTROL_LINE_MAX).  False: it is not here yet. */
static bool take_line(struct lines *in, char *line, size_t *len)
{
    char *newline = memchr(in->buf, '\n', in->len);
    if (!newline)
        return false;
    *len = (size_t)(newline - in->buf);
    memcpy(line, in->buf, *len);
    line[*len] = '\0';
    in->len -= *len + 1;
    memmove(in->buf, newline + 1, in->len);
    return true;
}

/* -EMSGSIZE, -ETIMEDOUT, -ECONNRESET. */
static int read_line(struct connection *c, char *line, size_t *len)
{
    uint64_t end = boot_ms() + REQUEST_MS;
    struct lines *in = c->in;
    while (!take_line(in, line, len)) {
        uint64_t now = boot_ms();
        struct pollfd p = {.fd = c->fd, .events = POLLIN};
        if (in->len == sizeof(in->buf))
            return -EMSGSIZE;
        if (now >= end || poll(&p, 1, (int)(end - now)) <= 0)
            return -ETIMEDOUT;
        ssize_t n = recv(c->fd, in->buf + in->len, sizeof(in->buf) - in->len, 0);
        if (n <= 0)
            return n < 0 ? -errno : -ECONNRESET;
        in->len += (size_t)n;
    }
    return 0;
}

json_t *control_next(struct connection *c)
{
    char line[CONTROL_LINE_MAX];
    size_t len;
    return read_line(c, line, &len) ? NULL : json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
}

/* `slow` requests wait for the PFS or for other nodes.  They never take all places, so that status is
 * answered while they hang. */
static const struct request_kind {
    const char *name;
    json_t *(*fn)(struct connection *c, const json_t *request);
    bool slow;
} kinds[] = {
    {"status", control_status, false}, {"unflushed", control_unflushed, false},
    {"abort", control_abort, false},   {"flush", control_flush, true},
    {"umount", control_umount, true},  {"where", control_where, true},
    {"check", control_check, true},    {"forget", control_forget, true},
    {"flush_paths", control_flush_paths, true},
    {"stage", control_stage, true},    {"stage_check", control_stage_check, true},
    {"unstage", control_unstage, true},
    {"stage_status", control_stages, false}, {"stage_cancel", control_stages, false},
    {"stats", control_stats, false}, {"metrics", control_metrics, false},
};

static json_t *do_request(const struct request_kind *kind, struct connection *c,
                          const json_t *request)
{
    static _Atomic unsigned slow;
    if (!kind->slow)
        return kind->fn(c, request);
    json_t *end = slow++ < SLOW_REQUESTS
                      ? kind->fn(c, request)
                      : control_error("too many requests wait already: try again");
    slow--;
    return end;
}

static json_t *answer(struct connection *c, const char *line, size_t len)
{
    json_t *request = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
    const char *what = json_string_value(json_object_get(request, "do"));
    json_t *end = NULL;
    for (size_t i = 0; what && i < ARRAY_LEN(kinds) && !end; i++)
        if (!strcmp(what, kinds[i].name))
            end = do_request(&kinds[i], c, request);
    if (!end)
        end =
            what ? control_error("unknown request: %s", what) : control_error("this is no request");
    json_decref(request);
    return end;
}

static void serve_connection(struct connection *c)
{
    char line[CONTROL_LINE_MAX];
    struct lines in = {.len = 0};
    size_t len;
    c->in = &in;
    int err = read_line(c, line, &len);
    if (err == -ECONNRESET)
        return;
    json_t *end = err ? control_error("no request came: %s", strerror(-err)) : answer(c, line, len);
    json_object_set_new(end, "end", json_true());
    err = control_say(c, end);
    if (err && err != -EPIPE && err != -ECONNRESET)
        log_debug("an answer to eddy could not be sent: %s", strerror(-err));
}

static void *connection_main(void *arg)
{
    struct connection *c = arg;
    serve_connection(c);
    shutdown(c->fd, SHUT_RDWR);
    lock_take(&control.lock);
    c->state = DONE;
    lock_drop(&control.lock);
    return NULL;
}

/* ---- accepting ---- */

/* Joins a thread that has ended or is about to; the slot is free then. */
static void reap(struct connection *c)
{
    pthread_join(c->thread, NULL);
    close(c->fd);
    c->state = FREE;
}

/* Closes what has ended, too. */
static struct connection *free_slot(void)
{
    struct connection *slot = NULL;
    for (int i = 0; i < CONNECTIONS; i++) {
        struct connection *c = &control.connections[i];
        lock_take(&control.lock);
        bool done = c->state == DONE, free = c->state == FREE;
        lock_drop(&control.lock);
        if (done)
            reap(c);
        if (!slot && (done || free))
            slot = c;
    }
    return slot;
}

static bool may_ask(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
        return false;
    return peer.uid == geteuid() || peer.uid == 0;
}

static void refuse(int fd, const char *why)
{
    struct connection c = {.fd = fd};
    json_t *line = control_error("%s", why);
    json_object_set_new(line, "end", json_true());
    control_say(&c, line);
    close(fd);
}

static void take_connection(int fd)
{
    struct timeval timeout = {.tv_sec = SEND_TIMEOUT_S};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    if (!may_ask(fd)) {
        refuse(fd, "this is another user's eddyfs");
        return;
    }
    struct connection *c = free_slot();
    if (!c) {
        refuse(fd, "too many requests at once: try again");
        return;
    }
    c->fd = fd;
    c->state = BUSY; /* no thread runs for it, so no other thread looks at it */
    int err = pthread_create(&c->thread, NULL, connection_main, c);
    if (err) {
        c->state = FREE;
        refuse(fd, strerror(err));
    }
}

static void *acceptor_main(void *arg)
{
    static _Atomic uint64_t last;
    struct pollfd p[2] = {{.fd = control.listen_fd, .events = POLLIN},
                          {.fd = control.wake_fd, .events = POLLIN}};
    while (!control.ending) {
        if (poll(p, 2, -1) <= 0 || !(p[0].revents & POLLIN))
            continue;
        int fd = accept4(control.listen_fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) {
            take_connection(fd);
            continue;
        }
        if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR && log_every(&last, 60000))
            log_warn("the control socket accepts no connection: %m: eddy gets no answer");
        poll(p + 1, 1, 100); /* out of descriptors: the connection stays in the queue */
    }
    return arg;
}

/* ---- start and stop ---- */

static int listen_at(int dirfd)
{
    struct sockaddr_un address;
    socklen_t len = control_address(dirfd, &address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    unlinkat(dirfd, CONTROL_NAME, 0); /* of a daemon that died: the directory's lock is ours */
    /* The mode of the name that bind makes is the socket's. */
    if (fchmod(fd, 0600) || bind(fd, (struct sockaddr *)&address, len) || listen(fd, CONNECTIONS)) {
        int err = -errno;
        close(fd);
        return err;
    }
    return fd;
}

int control_start(char *err_text, size_t errlen)
{
    lock_init(&control.lock, RANK_LEAF);
    control.ending = false;
    control.wake_fd = eventfd(0, EFD_CLOEXEC);
    do
        control.listen_fd = control.wake_fd < 0 ? -errno : listen_at(store_dirfd());
    while ((control.listen_fd == -ENOSPC || control.listen_fd == -EDQUOT) && store_free_inode());
    int err = control.listen_fd < 0 ? control.listen_fd : 0;
    if (!err)
        err = -pthread_create(&control.acceptor, NULL, acceptor_main, NULL);
    control.running = !err;
    if (!err)
        return 0;
    snprintf(err_text, errlen, "%s/" CONTROL_NAME ": the control socket cannot be made: %s%s",
             store_dir(), strerror(-err), cachedir_hint(err));
    control_stop();
    return err;
}

static void end_connections(void)
{
    for (int i = 0; i < CONNECTIONS; i++) {
        struct connection *c = &control.connections[i];
        lock_take(&control.lock);
        bool used = c->state != FREE;
        lock_drop(&control.lock);
        if (!used)
            continue;
        shutdown(c->fd, SHUT_RD); /* a request that has not come yet; answers still go out */
        reap(c);
    }
}

void control_stop(void)
{
    control.ending = true;
    if (control.running) {
        uint64_t one = 1;
        if (write(control.wake_fd, &one, sizeof(one)) < 0)
            log_warn("the control socket's thread cannot be woken: %m");
        pthread_join(control.acceptor, NULL);
        unlinkat(store_dirfd(), CONTROL_NAME, 0);
        end_connections();
    }
    control.running = false;
    if (control.listen_fd >= 0)
        close(control.listen_fd);
    if (control.wake_fd >= 0)
        close(control.wake_fd);
    control.listen_fd = control.wake_fd = -1;
}
