/* eddy_talk.c - asking a daemon on its control socket (fs/daemon/control.h). */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/eddy.h"
#include "tools/eddy_mounts.h"
#include "tools/eddy_talk.h"
#include "transport/printable.h"

#define CONNECT_S      10
#define LINE_MAX_BYTES (256u << 20)

struct talk {
    int fd;
    pid_t pid;
    char *buf; /* received and not yet taken: [taken, len) */
    size_t taken, len, size;
};

/* Is it the mount's owner who listens?  A link in place of the socket may lead to another user's daemon. */
static int check_peer(int fd, uid_t owner, pid_t *pid)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
        return -errno;
    *pid = peer.pid;
    return peer.uid == owner ? 0 : -EPERM;
}

/* Waiting for a daemon that is stopped ends after CONNECT_S. */
static int connect_to(int dirfd)
{
    struct sockaddr_un address;
    struct timeval timeout = {.tv_sec = CONNECT_S};
    socklen_t len = control_address(dirfd, &address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    if (!connect(fd, (struct sockaddr *)&address, len))
        return fd;
    int err = errno == EAGAIN ? -ETIMEDOUT : errno == ENOENT ? -ECONNREFUSED : -errno;
    close(fd);
    return err;
}

/* Drops the request. */
static int send_line(int fd, json_t *request)
{
    char *text = json_dumps(request, JSON_COMPACT);
    json_decref(request);
    if (!text)
        return -EINVAL;
    size_t len = strlen(text);
    text[len] = '\n'; /* in place of the NUL */
    ssize_t n = len < CONTROL_LINE_MAX ? send(fd, text, len + 1, MSG_NOSIGNAL) : -1;
    int err = n == (ssize_t)len + 1     ? 0
              : len >= CONTROL_LINE_MAX ? -ENAMETOOLONG
              : n < 0                   ? -errno
                                        : -EIO;
    free(text);
    return err;
}

static int send_request(int fd, const char *what, json_t *args)
{
    json_t *request = args ? args : json_object();
    json_object_set_new(request, "do", json_string(what));
    return send_line(fd, request);
}

int talk_begin(const struct mount_entry *e, const char *what, json_t *args, struct talk **out)
{
    int dirfd = open_cache_dir(e);
    int fd = dirfd < 0 ? dirfd : connect_to(dirfd);
    if (dirfd >= 0)
        close(dirfd);
    if (fd < 0) {
        json_decref(args);
        return fd == -ENOENT ? -ECONNREFUSED : fd;
    }
    pid_t pid = 0;
    int err = check_peer(fd, e->owner, &pid);
    if (err)
        json_decref(args);
    else
        err = send_request(fd, what, args);
    if (err) {
        close(fd);
        return err;
    }
    *out = xcalloc(1, sizeof(**out));
    (*out)->fd = fd;
    (*out)->pid = pid;
    return 0;
}

int talk_more(struct talk *t, json_t *args)
{
    return send_line(t->fd, args);
}

pid_t talk_pid(const struct talk *t)
{
    return t->pid;
}

static int receive(struct talk *t, uint64_t deadline)
{
    uint64_t now = boot_ms();
    int timeout = deadline == NO_DEADLINE ? -1
                  : now >= deadline       ? 0
                                          : (int)MIN(deadline - now, 86400000u);
    struct pollfd p = {.fd = t->fd, .events = POLLIN};
    int ready = poll(&p, 1, timeout);
    if (ready <= 0)
        return ready && errno != EINTR ? -errno : ready ? 0 : -ETIMEDOUT;
    if (t->len == t->size) {
        if (t->size >= LINE_MAX_BYTES)
            return -EPROTO;
        t->size = MAX(2 * t->size, 65536);
        t->buf = xrealloc(t->buf, t->size);
    }
    ssize_t n = recv(t->fd, t->buf + t->len, t->size - t->len, 0);
    if (n <= 0)
        return n < 0 && errno == EINTR ? 0 : n < 0 ? -errno : -ECONNRESET;
    t->len += (size_t)n;
    return 0;
}

/* Takes a line off the buffer: returns its length without the newline; it is at t->buf + *at.  -EAGAIN: there
 * is no complete line. */
static ssize_t take_line(struct talk *t, size_t *at)
{
    char *newline = t->len > t->taken ? memchr(t->buf + t->taken, '\n', t->len - t->taken) : NULL;
    if (!newline) {
        if (t->taken)
            memmove(t->buf, t->buf + t->taken, t->len - t->taken);
        t->len -= t->taken;
        t->taken = 0;
        return -EAGAIN;
    }
    *at = t->taken;
    t->taken = (size_t)(newline - t->buf) + 1;
    return newline - (t->buf + *at);
}

/* ---- what is in a line ---- */

static json_t *printable_object(json_t *o)
{
    json_t *out = json_object(), *value;
    const char *key;
    json_object_foreach(o, key, value)
    {
        char *copy = control_printable(key);
        json_object_set_new(out, copy, json_printable(value));
        free(copy);
    }
    return out;
}

static json_t *printable_array(json_t *o)
{
    json_t *out = json_array(), *value;
    size_t i;
    json_array_foreach(o, i, value)
    {
        json_array_append_new(out, json_printable(value));
    }
    return out;
}

/* A copy whose texts can be shown: those of our own daemon can be anyway.  A user's daemon may be another
 * program, and root asks it. */
json_t *json_printable(json_t *o)
{
    if (json_is_object(o))
        return printable_object(o);
    if (json_is_array(o))
        return printable_array(o);
    if (!json_is_string(o) || printable_is(json_string_value(o)))
        return json_incref(o);
    char *copy = control_printable(json_string_value(o));
    json_t *text = json_string(copy);
    free(copy);
    return text;
}

static json_t *parse_line(const char *text, size_t len)
{
    json_t *said = json_loadb(text, len, 0, NULL);
    json_t *line = json_is_object(said) ? json_printable(said) : NULL;
    json_decref(said);
    return line;
}

int talk_next(struct talk *t, uint64_t deadline, json_t **line, bool *last)
{
    size_t at;
    ssize_t len;
    if (boot_ms() >= deadline) /* however fast the lines come */
        return -ETIMEDOUT;
    while ((len = take_line(t, &at)) == -EAGAIN) {
        int err = receive(t, deadline);
        if (err)
            return err;
    }
    *line = parse_line(t->buf + at, (size_t)len);
    if (!*line) {
        return -EPROTO;
    }
    *last = json_is_true(json_object_get(*line, "end"));
    return 0;
}

void talk_end(struct talk *t)
{
    close(t->fd);
    free(t->buf);
    free(t);
}

int talk_once(const struct mount_entry *e, const char *what, json_t *args, uint64_t timeout_ms,
              json_t **answer)
{
    struct talk *t;
    bool last = false;
    *answer = NULL;
    int err = talk_begin(e, what, args, &t);
    if (err)
        return err;
    err = talk_next(t, boot_ms() + timeout_ms, answer, &last);
    talk_end(t);
    if (err)
        *answer = NULL;
    else if (!last)
        err = -EPROTO;
    else if (json_object_get(*answer, "error"))
        err = -EREMOTEIO;
    return err;
}

const char *talk_error(const json_t *answer, int err)
{
    const char *text = json_string_value(json_object_get(answer, "error"));
    return text                ? text
           : err == -ETIMEDOUT ? "the daemon does not answer"
           : err == -ECONNREFUSED ? "no daemon runs: \"eddy wait\" tells what is not on the PFS"
           : err == -EPERM     ? "its cache directory or control socket is another user's"
                               : strerror(-err);
}

uint64_t json_u64(const json_t *o, const char *key)
{
    json_int_t n = json_integer_value(json_object_get(o, key));
    return n < 0 ? 0 : (uint64_t)n;
}

const char *json_text(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));
    return text ? text : "";
}
