/* hello.c - the sockets around hello_proto.c: our own TCP port, outgoing connections, time limits,
 * bounds, the log.
 *
 *   accepted or connected --> PROVING --proven--> STANDING (in peer.c's hands, silent)
 *                               | 5 s, garbage, wrong secret, mismatch
 *                               v
 *                             closing
 *
 * Every program can reach this port.  So there are a fixed number of unproven connections, a time limit, no
 * allocation whose size a stranger can choose, and one log line a minute and address.  When one more
 * connection comes and there is no room:
 *
 *   one address has several     its oldest one is closed: a flood
 *   the oldest is PATIENCE_MS   the oldest one is closed: a real hello takes milliseconds
 *   neither                     the new one waits in the kernel: many nodes start at the same moment
 */
#include "transport/hello.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "transport/complaint.h"
#include "transport/hash.h"
#include "transport/loop.h"
#include "transport/loop_uv.h"
#include "transport/session.h"
#include "transport/view.h"

#define UNPROVEN_MAX  64
#define UNPROVEN_MS   5000
#define CROWD         8   /* unproven connections of one address, when there is no room */
#define PATIENCE_MS   500 /* with an unproven connection, when there is no room */
#define ROOM_AGAIN_MS 50
#define BACKLOG       4096 /* the kernel makes it net.core.somaxconn if that is less */
#define KEEPALIVE_S   30
#define LOG_AGAIN_MS  60000

enum conn_state { CONNECTING, PROVING, STANDING, CLOSING };

struct hello_conn {
    uv_tcp_t tcp;
    uv_connect_t connect;
    enum conn_state state;
    bool connector, known;
    void *arg;                /* connector: of hello_connect */
    uint64_t expected_id;     /* connector */
    uint64_t id, incarnation; /* STANDING */
    struct hello_proto *proto;
    uint64_t begun, deadline;
    char addr[NODE_ADDR_MAX];     /* the other side's; accepted: without the port */
    uint64_t addr_hash;           /* accepted */
    TAILQ_ENTRY(hello_conn) link; /* in proving (oldest first) or standing */
};
TAILQ_HEAD(conn_list, hello_conn);

/* Network thread only. */
static struct {
    struct hello_self self;
    const struct hello_ops *ops;
    uv_tcp_t listener;
    struct loop_timer *timer;
    struct conn_list proving, standing;
    unsigned accepted; /* unproven ones that came in */
    bool waits;        /* one more did, and is not accepted yet: then libuv takes no further one */
    unsigned handles;  /* that libuv still holds */
    bool running;
    void (*stopped)(void);
} hello;

/* ---- the log ---- */

static void complain(const struct hello_conn *conn, const char *why)
{
    char more[COMPLAINT_MORE];
    if (!complaint_due(conn->addr, more))
        return;
    if (conn->connector)
        log_warn("hello to %s failed%s: %s", conn->addr, more, why);
    else
        log_warn("connection from %s refused%s: %s", conn->addr, more, why);
}

/* ---- one connection ---- */

static void on_handle_closed(void)
{
    if (--hello.handles || hello.running)
        return;
    if (hello.stopped)
        hello.stopped();
}

static void on_conn_closed(uv_handle_t *h)
{
    free(h->data);
    on_handle_closed();
}

static void accept_waiting(void *unused);

static void leave_proving(struct hello_conn *c)
{
    TAILQ_REMOVE(&hello.proving, c, link);
    hello.accepted -= !c->connector;
    if (hello.waits && !c->connector)
        loop_post(accept_waiting, NULL); /* not in the middle of something */
}

/* The handle and c are gone in a later turn of the loop. */
static void conn_close(struct hello_conn *c)
{
    if (c->state == CLOSING)
        return;
    if (c->state == STANDING) {
        TAILQ_REMOVE(&hello.standing, c, link);
    } else {
        leave_proving(c);
    }
    hello_proto_free(c->proto);
    c->proto = NULL;
    c->state = CLOSING;
    uv_close((uv_handle_t *)&c->tcp, on_conn_closed);
}

/* The hello did not succeed. */
static void conn_fail(struct hello_conn *c, int err, const char *why)
{
    if (c->state == CLOSING)
        return;
    bool connector = c->connector;
    void *arg = c->arg;
    if (!connector)
        count(bad_hellos, 1);
    else if (why && err != -ETIMEDOUT && err != -ECONNRESET)
        count(bad_nodes, 1); /* not the node that was meant has answered */
    if (why)
        complain(c, why);
    conn_close(c);
    if (connector)
        hello.ops->failed(arg, err);
}

static void set_timer(void)
{
    struct hello_conn *first = TAILQ_FIRST(&hello.proving);
    if (!first && !hello.waits) {
        loop_timer_stop(hello.timer);
        return;
    }
    uint64_t now = boot_ms(), ms = ROOM_AGAIN_MS;
    if (!hello.waits)
        ms = first->deadline > now ? first->deadline - now : 1;
    loop_timer_set(hello.timer, ms, 0);
}

static void on_timer(void *arg)
{
    (void)arg;
    struct hello_conn *c;
    while ((c = TAILQ_FIRST(&hello.proving)) && c->deadline <= boot_ms())
        conn_fail(c, -ETIMEDOUT, c->state == CONNECTING ? NULL : c->connector ? "no answer for 5 s" : "no hello within 5 s");
    accept_waiting(NULL);
    set_timer();
}

static struct hello_conn *conn_new(bool connector)
{
    struct hello_conn *c = xcalloc(1, sizeof(*c));
    c->connector = connector;
    c->state = connector ? CONNECTING : PROVING;
    c->begun = boot_ms();
    c->deadline = c->begun + UNPROVEN_MS;
    c->tcp.data = c;
    uv_tcp_init(loop_uv(), &c->tcp);
    hello.handles++;
    hello.accepted += !connector;
    TAILQ_INSERT_TAIL(&hello.proving, c, link);
    if (TAILQ_FIRST(&hello.proving) == c)
        set_timer();
    return c;
}

/* A hello's frames are small and the socket's buffer is empty: they are sent at once, or the connection is
 * broken. */
static int conn_write(struct hello_conn *c, void *out, size_t len)
{
    int sent = 0;
    if (len) {
        uv_buf_t b = uv_buf_init(out, (unsigned)len);
        sent = uv_try_write((uv_stream_t *)&c->tcp, &b, 1);
    }
    free(out);
    return sent < 0 ? sent : (size_t)sent == len ? 0 : -ECONNRESET;
}

static void conn_stands(struct hello_conn *c)
{
    const struct hello_peer *p = hello_proto_peer(c->proto);
    c->id = p->id;
    c->incarnation = p->incarnation;
    c->state = STANDING;
    leave_proving(c);
    TAILQ_INSERT_TAIL(&hello.standing, c, link);
    struct hello_proto *proto = c->proto;
    c->proto = NULL;
    uv_tcp_keepalive(&c->tcp, 1, KEEPALIVE_S);
    hello.ops->ok(c, p, c->arg); /* may close c */
    hello_proto_free(proto);
}

/* Connector, once: the peer is proven; is it the one we wanted? */
static bool conn_known(struct hello_conn *c)
{
    const struct hello_peer *p = hello_proto_peer(c->proto);
    if (!c->connector || c->known || !p)
        return true;
    if (p->id != c->expected_id) {
        char why[160];
        snprintf(why, sizeof(why), "another node (%s) answers at this address", p->name);
        conn_fail(c, -ECONNREFUSED, why);
        return false;
    }
    c->known = true;
    hello.ops->known(p, c->arg);
    return c->state == PROVING;
}

static void conn_input(struct hello_conn *c, const void *buf, size_t len)
{
    if (c->state != PROVING)
        return; /* a newer minor version may send more on a proven connection: it is ignored */
    void *out;
    size_t out_len;
    int got = hello_proto_input(c->proto, buf, len, &out, &out_len);
    if (got >= 0 && !conn_known(c)) {
        free(out);
        return;
    }
    int err = conn_write(c, out, out_len);
    if (got < 0)
        conn_fail(c, got, hello_proto_reason(c->proto));
    else if (err)
        conn_fail(c, -ECONNRESET, NULL);
    else if (got)
        conn_stands(c);
}

static void on_alloc(uv_handle_t *h, size_t want, uv_buf_t *buf)
{
    static char shared[HELLO_FRAME_MAX + 4]; /* used up before the next read */
    (void)h;
    (void)want;
    *buf = uv_buf_init(shared, sizeof(shared));
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    struct hello_conn *c = s->data;
    if (n > 0) {
        conn_input(c, buf->base, (size_t)n);
    } else if (n < 0 && c->state == STANDING) {
        uint64_t id = c->id, incarnation = c->incarnation;
        hello.ops->closed(c, id, incarnation);
        conn_close(c);
    } else if (n < 0) {
        conn_fail(c, -ECONNRESET,
                  c->connector ? "it closed the connection" : "closed before it proved itself");
    }
}

static int conn_start(struct hello_conn *c)
{
    c->proto = hello_proto_new(c->connector, &hello.self, session_secret(), session_name());
    if (!c->proto)
        return -EINVAL;
    uv_tcp_nodelay(&c->tcp, 1);
    return uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
}

/* ---- in ---- */

static unsigned crowd_of(uint64_t addr_hash)
{
    const struct hello_conn *c;
    unsigned n = 0;
    TAILQ_FOREACH(c, &hello.proving, link)
    n += !c->connector && c->addr_hash == addr_hash;
    return n;
}

/* The oldest connection of the address that has most. */
static struct hello_conn *crowded(unsigned *crowd)
{
    struct hello_conn *c, *most = NULL;
    *crowd = 0;
    TAILQ_FOREACH(c, &hello.proving, link)
    {
        unsigned n = c->connector ? 0 : crowd_of(c->addr_hash);
        if (n > *crowd) {
            *crowd = n;
            most = c;
        }
    }
    return most;
}

static bool make_room(void)
{
    unsigned crowd;
    if (hello.accepted < UNPROVEN_MAX)
        return true;
    struct hello_conn *c = crowded(&crowd);
    if (crowd < CROWD && boot_ms() - c->begun < PATIENCE_MS)
        return false;
    conn_fail(c, -ETIMEDOUT, "too many connections that do not prove themselves");
    return true;
}

static void accept_one(void)
{
    struct hello_conn *c = conn_new(false);
    snprintf(c->addr, sizeof(c->addr), "?");
    int err = uv_accept((uv_stream_t *)&hello.listener, (uv_stream_t *)&c->tcp);
    struct sockaddr_storage from;
    int len = sizeof(from);
    if (!err && !uv_tcp_getpeername(&c->tcp, (struct sockaddr *)&from, &len))
        hello_print_addr(&from, false, c->addr, sizeof(c->addr));
    c->addr_hash = data_hash(c->addr, strlen(c->addr));
    if (!err)
        err = conn_start(c);
    if (err)
        conn_fail(c, err, uv_strerror(err));
}

static void accept_waiting(void *unused)
{
    (void)unused;
    if (!hello.running || !hello.waits || !make_room())
        return;
    hello.waits = false;
    accept_one();
}

static void on_connection(uv_stream_t *listener, int status)
{
    (void)listener;
    if (status) {
        static _Atomic uint64_t last;
        if (log_every(&last, LOG_AGAIN_MS))
            log_warn("cannot accept connections: %s: other nodes may not reach this one",
                     uv_strerror(status));
    } else if (make_room()) {
        accept_one();
    } else {
        hello.waits = true;
        set_timer();
    }
}

static int listen_error(char *err, size_t errlen, const char *addr, int e)
{
    const char *what = e == -EADDRNOTAVAIL ? "no interface of this host has this address"
                       : e == -EADDRINUSE
                           ? "the port is in use: leave the port out, or give another"
                           : uv_strerror(e);
    snprintf(err, errlen, "cannot listen on %s: %s (--listen)", addr, what);
    return e;
}

static int open_port(const struct sockaddr_storage *want, char *addr_out)
{
    struct sockaddr_storage got;
    int len = sizeof(got);
    hello.listener.data = NULL;
    int e = uv_tcp_init(loop_uv(), &hello.listener);
    if (e)
        return e;
    hello.handles++;
    hello.running = true;
    e = uv_tcp_bind(&hello.listener, (const struct sockaddr *)want, 0);
    if (!e)
        e = uv_listen((uv_stream_t *)&hello.listener, BACKLOG, on_connection);
    if (!e)
        e = uv_tcp_getsockname(&hello.listener, (struct sockaddr *)&got, &len);
    if (!e)
        hello_print_addr(&got, true, addr_out, NODE_ADDR_MAX);
    return e;
}

int hello_listen(const char *listen, const struct hello_self *self, const struct hello_ops *ops,
                 char *addr_out, char *err, size_t errlen)
{
    struct sockaddr_storage want;
    char text[NODE_ADDR_MAX];
    int e = hello_listen_addr(listen, &want);
    if (e) {
        snprintf(
            err, errlen,
            "--listen %s is no address: give ADDR, ADDR:PORT or [ADDR]:PORT with a numeric address",
            listen);
        return e;
    }
    if (hello_addr_is_wildcard(&want)) {
        snprintf(
            err, errlen,
            "--listen %s: other nodes need an address that they can reach: give one of this host",
            listen);
        return -EINVAL;
    }
    hello_print_addr(&want, ((struct sockaddr_in *)&want)->sin_port != 0, text,
                     sizeof(text)); /* sin6_port is at the same place */
    memset(&hello, 0, sizeof(hello));
    TAILQ_INIT(&hello.proving);
    TAILQ_INIT(&hello.standing);
    hello.self = *self;
    hello.ops = ops;
    hello.timer = loop_timer_new(on_timer, NULL);
    e = open_port(&want, addr_out);
    if (!e)
        return 0;
    hello_stop(NULL);
    return listen_error(err, errlen, text, e);
}

/* ---- out ---- */

static void on_connected(uv_connect_t *r, int status)
{
    struct hello_conn *c = r->data;
    if (c->state != CONNECTING)
        return; /* closed meanwhile */
    if (status) {
        conn_fail(c, status, NULL);
        return;
    }
    c->state = PROVING;
    int err = conn_start(c);
    void *out = NULL;
    size_t len = 0;
    if (!err)
        err = hello_proto_begin(c->proto, &out, &len);
    if (!err)
        err = conn_write(c, out, len);
    if (err)
        conn_fail(c, err, NULL);
}

static void fail_soon(void *arg)
{
    hello.ops->failed(arg, -ECONNREFUSED);
}

void hello_connect(const char *addr, uint64_t expected_id, void *arg)
{
    struct sockaddr_storage to;
    if (!hello.running || hello_parse_addr(addr, &to)) {
        loop_post(fail_soon, arg);
        return;
    }
    struct hello_conn *c = conn_new(true);
    c->arg = arg;
    c->expected_id = expected_id;
    c->connect.data = c;
    snprintf(c->addr, sizeof(c->addr), "%s", addr);
    int err = uv_tcp_connect(&c->connect, &c->tcp, (struct sockaddr *)&to, on_connected);
    if (err) { /* a shortage of descriptors */
        log_warn("no socket to connect to %s: %s", addr, uv_strerror(err));
        conn_close(c);
        loop_post(fail_soon, arg);
    }
}

void hello_close(struct hello_conn *c)
{
    conn_close(c);
}

/* ---- the end ---- */

static void on_listener_closed(uv_handle_t *h)
{
    (void)h;
    on_handle_closed();
}

void hello_stop(void (*done)(void))
{
    struct hello_conn *c;
    if (!hello.running) {
        loop_timer_free(hello.timer);
        hello.timer = NULL;
        if (done)
            done();
        return;
    }
    hello.running = false;
    hello.stopped = done;
    while ((c = TAILQ_FIRST(&hello.proving)))
        conn_close(c);
    while ((c = TAILQ_FIRST(&hello.standing)))
        conn_close(c);
    loop_timer_free(hello.timer);
    hello.timer = NULL;
    uv_close((uv_handle_t *)&hello.listener, on_listener_closed);
}
