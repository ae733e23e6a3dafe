/* peer_nodes.h - what test_peer.c and test_peer_failures.c share: other nodes, and requests whose
 * end can be waited for.
 *
 * The test's process is node 1 (ME).  The others are the same program again, executed with "--node"
 * (never only forked: UCX does not survive that), on 127.0.0.1.  They answer by what the request's
 * fid says (enum what) and leave when their standard input ends.
 */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "transport/hello.h"
#include "transport/lock.h"
#include "transport/loop.h"
#include "transport/peer.h"
#include "transport/peer_int.h"

#include "suite.h"

#pragma GCC diagnostic ignored "-Wunused-function" /* each test uses some of them */

#define LONG_MS 60000 /* a condition that does not come */
#define MIB     (1u << 20)
#define CHUNK   MIB
#define FLIGHT  64
#define ME      1
#define OTHER   2
#define LISTEN  "127.0.0.1"

enum what {
    WHAT_BYTES,
    WHAT_SILENCE,
    WHAT_WORKING,
    WHAT_ERROR,
    WHAT_ASK_BACK,
    WHAT_BREAK_TOKEN,
    WHAT_SMALL_REPLY,
    WHAT_GARBAGE,    /* GARBAGE messages that are none, then the answer */
    WHAT_WRONG_KIND, /* the answer to another request */
    WHAT_MORE        /* more bytes than were asked for */
};
#define GARBAGE 8

static char dir[64]; /* of the session */

/* ---- bytes that can be checked ---- */

static uint64_t word(uint64_t seed, size_t i)
{
    return (seed * 0x9e3779b97f4a7c15ull) ^ (i * 0xc2b2ae3d27d4eb4full);
}

static void fill(void *buf, size_t n, uint64_t seed)
{
    uint8_t *p = buf;
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(word(seed, i / 8) >> (i % 8 * 8));
}

static bool is_filled(const void *buf, size_t n, uint64_t seed)
{
    const uint8_t *p = buf;
    for (size_t i = 0; i < n; i++)
        if (p[i] != (uint8_t)(word(seed, i / 8) >> (i % 8 * 8)))
            return false;
    return true;
}

static struct msg *make_read(enum what what, uint64_t seed, uint32_t length)
{
    struct msg *m = msg_new(MSG_READ);
    m->read.fid = (struct fid){.hi = what, .lo = 7};
    m->read.offset = seed;
    m->read.length = length;
    return m;
}

static struct msg *make_write(uint64_t seed, uint32_t length)
{
    struct msg *m = msg_new(MSG_WRITE);
    m->write.offset = seed;
    m->write.length = length;
    m->data = peer_buffer_always(length);
    m->head.data_len = length;
    m->free_data = peer_buffer_free_data;
    fill(m->data, length, seed);
    return m;
}

/* ---- what every node answers ---- */

static void reply_bytes(struct msg *m)
{
    struct msg *r = msg_new(MSG_RANGE);
    uint32_t n = m->read.length;
    r->range.size = n;
    if (n) {
        r->data = peer_buffer_always(n);
        r->head.data_len = n;
        r->free_data = peer_buffer_free_data;
        fill(r->data, n, m->read.offset);
    }
    peer_reply(m, r);
    msg_free(m);
}

struct work {
    struct msg *m;
    struct loop_timer *timer;
    unsigned left;
};

static void go_on_working(void *arg)
{
    struct work *w = arg;
    if (w->left--) {
        peer_working(w->m);
        return;
    }
    loop_timer_free(w->timer);
    w->m->read.length = 10;
    reply_bytes(w->m);
    free(w);
}

static void asked_back(void *arg, int err, struct msg *reply, bool *keep)
{
    struct msg *m = arg;
    (void)keep;
    if (!err && !is_filled(reply->data, m->read.length, m->read.offset))
        err = -EIO;
    if (err)
        peer_reply_error(m, err);
    else
        peer_reply(m, msg_new(MSG_RANGE));
    msg_free(m);
}

/* Bytes as they are, from the network thread, through the endpoint to node `to`. */
static void send_raw(uint64_t to, const void *frame, size_t len)
{
    struct send *s = xcalloc(1, sizeof(*s));
    *s = (struct send){.to = to, .frame = xmalloc(len), .frame_len = len};
    memcpy(s->frame, frame, len);
    ucx_send(peer_find(to)->ep, s);
}

static void set_le(uint8_t *frame, size_t at, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        frame[at + i] = (uint8_t)(v >> (8 * i));
}

/* One GRANT with our token: as it is, and with one thing wrong in each copy. */
static void send_garbage(uint64_t to)
{
    struct msg *m = msg_new(MSG_WHERE);
    struct fid fids[2] = {{.hi = 1, .lo = 2}, {.hi = 3, .lo = 4}};
    struct item_fid_item items[2] = {{fids[0]}, {fids[1]}};
    void *frame;
    size_t len;
    uint8_t bad[512];
    m->head.sender = OTHER;
    m->head.incarnation = 1;
    m->head.token = peer_find(to)->token_for_us;
    m->where.fids.n = 2;
    m->where.fids.v = items;
    if (msg_encode(m, &frame, &len) || len > sizeof(bad))
        die("no frame");
    msg_free(m);
    const size_t body_len = offsetof(struct msg_head, body_len),
                 data_len = offsetof(struct msg_head, data_len);
    for (unsigned i = 0; i < GARBAGE; i++) {
        size_t n = len;
        memcpy(bad, frame, len);
        switch (i) {
        case 0: /* noise */
            fill(bad, sizeof(bad), 7);
            n = sizeof(bad);
            break;
        case 1: /* a part of a head */
            n = MSG_HEAD_SIZE - 1;
            break;
        case 2:
            set_le(bad, body_len, UINT32_MAX, 4);
            break;
        case 3:
            set_le(bad, data_len, UINT64_MAX, 8);
            break;
        case 4: /* data that does not come */
            set_le(bad, data_len, MSG_DATA_MAX, 8);
            break;
        case 5: /* a list longer than the message */
            set_le(bad, MSG_HEAD_SIZE, UINT32_MAX, 4);
            break;
        case 6: /* a body that ends in the list */
            n = len - 8;
            set_le(bad, body_len, n - MSG_HEAD_SIZE, 4);
            break;
        case 7: /* another major version */
            set_le(bad, offsetof(struct msg_head, version), (MSG_MAJOR + 1) << 8, 2);
            break;
        }
        send_raw(to, bad, n);
    }
    free(frame);
}

static void handle_read(struct msg *m)
{
    switch ((enum what)m->read.fid.hi) {
    case WHAT_BYTES:
        reply_bytes(m);
        return;
    case WHAT_SILENCE:
        msg_free(m);
        return;
    case WHAT_ERROR:
        peer_reply_error(m, -ENOENT);
        msg_free(m);
        return;
    case WHAT_WORKING: {
        struct work *w = xcalloc(1, sizeof(*w));
        w->m = m;
        w->left = (unsigned)m->read.offset;
        w->timer = loop_timer_new(go_on_working, w);
        loop_timer_set(w->timer, 100, 100);
        return;
    }
    case WHAT_ASK_BACK:
        peer_request(m->head.sender, make_read(WHAT_BYTES, m->read.offset, m->read.length), LONG_MS,
                     NULL, 0, asked_back, m);
        return;
    case WHAT_BREAK_TOKEN:
        peer_find(m->head.sender)->token_for_us ^= 1;
        reply_bytes(m);
        return;
    case WHAT_SMALL_REPLY:
        m->read.length = 100;
        reply_bytes(m);
        return;
    case WHAT_GARBAGE:
        send_garbage(m->head.sender);
        reply_bytes(m);
        return;
    case WHAT_WRONG_KIND:
        peer_reply(m, msg_new(MSG_GRANT));
        msg_free(m);
        return;
    case WHAT_MORE:
        m->read.length += 1;
        reply_bytes(m);
        return;
    }
    peer_reply_error(m, -EINVAL);
    msg_free(m);
}

/* ---- a hello that only the other side sees succeed ---- */

static int connect_from(const char *from, const char *addr)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(from)};
    to.sin_port = htons((uint16_t)atoi(strrchr(addr, ':') + 1));
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s < 0 || bind(s, (struct sockaddr *)&own, sizeof(own)))
        die("bind to %s: %s", from, strerror(errno));
    if (connect(s, (struct sockaddr *)&to, sizeof(to)))
        die("connect to %s: %s", addr, strerror(errno));
    return s;
}

static int connect_to(const char *addr)
{
    return connect_from(LISTEN, addr);
}

static void read_frame(int s, uint8_t *buf, size_t *len)
{
    if (recv(s, buf, 4, MSG_WAITALL) != 4)
        die("no frame");
    size_t n = buf[0] | (size_t)buf[1] << 8;
    if (recv(s, buf + 4, n, MSG_WAITALL) != (ssize_t)n)
        die("no whole frame");
    *len = 4 + n;
}

/* What a hello's connector sent. */
struct hello_sent {
    uint8_t b[2][4 + HELLO_FRAME_MAX]; /* HELLO1, HELLO3 */
    size_t n[2];
};

static void send_frame(int s, void *out, size_t len, unsigned i, struct hello_sent *sent)
{
    (void)!send(s, out, len, MSG_NOSIGNAL);
    if (sent) {
        memcpy(sent->b[i], out, len);
        sent->n[i] = len;
    }
    free(out);
}

/* As this node, to the node at addr: up to HELLO4, whose sender then has an endpoint; we make none.
 * The connection. */
static int begin_hello(const char *addr, uint64_t id, uint64_t incarnation, struct hello_sent *sent)
{
    uint8_t in[4 + HELLO_FRAME_MAX];
    void *out;
    size_t n, out_len;
    char settings[HELLO_SETTINGS_MAX + 1];
    peer_settings(settings, sizeof(settings));
    struct hello_self self = {.id = id,
                              .incarnation = incarnation,
                              .name = "half",
                              .chunk_size = CHUNK,
                              .settings = settings};
    self.worker_addr = ucx_address(&self.worker_addr_len);
    struct hello_proto *h = hello_proto_new(true, &self, session_secret(), session_name());
    int s = connect_to(addr);
    hello_proto_begin(h, &out, &out_len);
    send_frame(s, out, out_len, 0, sent);
    read_frame(s, in, &n);
    if (hello_proto_input(h, in, n, &out, &out_len))
        die("half hello: %s", hello_proto_reason(h));
    send_frame(s, out, out_len, 1, sent);
    read_frame(s, in, &n); /* HELLO4 was sent: they have an endpoint */
    hello_proto_free(h);
    return s;
}

static void half_hello(const char *addr, uint64_t id, uint64_t incarnation)
{
    close(begin_hello(addr, id, incarnation, NULL));
}

static char half_hello_to[NODE_ADDR_MAX];

static void half_hello_now(uint64_t id, uint64_t incarnation, int err)
{
    (void)id;
    (void)incarnation;
    (void)err;
    peer_on_down(NULL);
    half_hello(half_hello_to, OTHER, 1);
}

/* "When our connection ends, say half a hello to this address." */
static void handle_fetch(struct msg *m)
{
    snprintf(half_hello_to, sizeof(half_hello_to), "%s", m->fetch.path);
    peer_on_down(half_hello_now);
    peer_reply(m, msg_new(MSG_CHUNK));
    msg_free(m);
}

/* ---- what every node answers, continued ---- */

static void check_write(void *arg)
{
    struct msg *m = arg;
    if (m->write.offset == 999)
        usleep(20000); /* a slow disk */
    struct msg *r = msg_new(MSG_WRITTEN);
    r->written.size = m->head.data_len;
    if (m->head.data_len != m->write.length ||
        !is_filled(m->data, m->head.data_len, m->write.offset))
        r->head.status = -EIO;
    peer_reply(m, r);
    msg_free(m);
}

static void handle_write(struct msg *m)
{
    loop_work(check_write, NULL, m);
}

static void handle_adopted(struct msg *m)
{
    struct msg *r = msg_new(MSG_ADOPTED_OK);
    for (uint32_t i = 0; i < m->adopted.claims.n; i++)
        if (m->adopted.claims.v[i].number == i)
            r->adopted_ok.view++;
    peer_reply(m, r);
    msg_free(m);
}

static void node_begin(uint64_t id, uint64_t incarnation, uint64_t memory, uint32_t chunk)
{
    char err[512] = "";
    char name[32];
    struct session_config s = {.dir = dir, .name = "test", .chunk_size = CHUNK};
    snprintf(name, sizeof(name), "n%u.%u", (unsigned)id, (unsigned)incarnation);
    log_open(NULL, getenv("EDDY_TEST_DEBUG") ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN, name);
    if (session_open(&s, err, sizeof(err)))
        die("session: %s", err);
    if (loop_start())
        die("loop");
    peer_handle(MSG_READ, handle_read);
    peer_handle(MSG_WRITE, handle_write);
    peer_handle(MSG_ADOPTED, handle_adopted);
    peer_handle(MSG_FETCH, handle_fetch);
    struct peer_config c = {.listen = LISTEN,
                            .id = id,
                            .incarnation = incarnation,
                            .name = name,
                            .chunk_size = chunk,
                            .memory = memory};
    if (peer_start(&c, err, sizeof(err)))
        die("peer_start: %s", err);
}

static void node_end(void)
{
    peer_stop();
    loop_stop();
    session_close();
}

/* ---- other nodes ---- */

static int node_main(char **argv)
{
    snprintf(dir, sizeof(dir), "%s", argv[2]);
    node_begin(strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10),
               strtoull(argv[5], NULL, 10), (uint32_t)strtoul(argv[6], NULL, 10));
    printf("%s\n", peer_address());
    fflush(stdout);
    char c;
    while (read(0, &c, 1) > 0)
        ;
    node_end();
    return 0;
}

struct node {
    pid_t pid;
    int in; /* closing it ends the node */
    struct member member;
};

static struct node node_spawn(const char *session_dir, uint64_t id, uint64_t incarnation,
                              uint64_t memory, uint32_t chunk)
{
    struct node n = {.member = {.id = id, .incarnation = incarnation, .weight = 100}};
    int in[2], out[2];
    char text[4][32];
    snprintf(text[0], 32, "%llu", (unsigned long long)id);
    snprintf(text[1], 32, "%llu", (unsigned long long)incarnation);
    snprintf(text[2], 32, "%llu", (unsigned long long)memory);
    snprintf(text[3], 32, "%u", chunk);
    ck_assert(!pipe2(in, O_CLOEXEC) && !pipe2(out, O_CLOEXEC));
    n.pid = fork();
    ck_assert(n.pid >= 0);
    if (!n.pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* also a stopped one must not stay behind */
        dup2(in[0], 0);
        dup2(out[1], 1);
        execl("/proc/self/exe", "node", "--node", session_dir, text[0], text[1], text[2], text[3],
              NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    n.in = in[1];
    snprintf(n.member.name, sizeof(n.member.name), "n%u.%u", (unsigned)id, (unsigned)incarnation);
    FILE *f = fdopen(out[0], "r");
    ck_assert_msg(fgets(n.member.addr, sizeof(n.member.addr), f) != NULL, "the node did not start");
    n.member.addr[strcspn(n.member.addr, "\n")] = 0;
    fclose(f);
    return n;
}

static struct node node_start(uint64_t id, uint64_t incarnation)
{
    struct node n = node_spawn(dir, id, incarnation, 0, CHUNK);
    peer_know(&n.member);
    return n;
}

/* SIGSTOP, and until all its threads have stopped.  SIGCONT lets it go on. */
static inline void node_pause(const struct node *n)
{
    int status;
    kill(n->pid, SIGSTOP);
    ck_assert_int_eq(waitpid(n->pid, &status, WUNTRACED), n->pid);
    ck_assert_msg(WIFSTOPPED(status), "node ended with status %x", status);
}

static void node_kill(struct node *n)
{
    kill(n->pid, SIGKILL);
    ck_assert_int_eq(waitpid(n->pid, NULL, 0), n->pid);
    close(n->in);
}

static void node_finish(struct node *n)
{
    int status;
    close(n->in);
    ck_assert_int_eq(waitpid(n->pid, &status, 0), n->pid);
    ck_assert_msg(status == 0, "node ended with status %x", status);
}

/* ---- requests whose end can be waited for ---- */

struct gate {
    struct lock lock;
    pthread_cond_t cond;
    int ended, ok, last_err;
};

struct ask {
    struct gate *gate;
    void *buf;
    size_t len;
    uint64_t seed;
    int err;
    int calls; /* must be 1 */
    bool bytes_right;
    uint64_t size;
};

static void gate_init(struct gate *g)
{
    memset(g, 0, sizeof(*g));
    lock_init(&g->lock, RANK_LEAF);
    lock_cond_init(&g->cond);
}

static void gate_wait(struct gate *g, int ended)
{
    lock_take(&g->lock);
    while (g->ended < ended)
        ck_assert_msg(!lock_wait(&g->lock, &g->cond, LONG_MS), "%d of %d ended", g->ended, ended);
    lock_drop(&g->lock);
}

static void answered(void *arg, int err, struct msg *reply, bool *keep)
{
    struct ask *a = arg;
    (void)keep;
    a->err = err;
    if (!err && reply->head.type == MSG_RANGE)
        a->bytes_right = reply->head.data_len == a->len &&
                         (!a->len || is_filled(reply->data, a->len, a->seed)) &&
                         (!a->buf || !a->len || reply->data == a->buf);
    if (!err && reply->head.type == MSG_WRITTEN)
        a->bytes_right = reply->written.size == a->len;
    if (!err && reply->head.type == MSG_ADOPTED_OK)
        a->size = reply->adopted_ok.view;
    lock_take(&a->gate->lock);
    a->calls++;
    a->gate->ended++;
    a->gate->ok += !err && a->bytes_right;
    a->gate->last_err = err;
    pthread_cond_broadcast(&a->gate->cond);
    lock_drop(&a->gate->lock);
}

static void ask_read(struct ask *a, struct gate *g, uint64_t to, enum what what, uint64_t seed,
                     size_t len, bool own, uint32_t silence)
{
    *a = (struct ask){
        .gate = g, .len = len, .seed = seed, .buf = own ? malloc(len ? len : 1) : NULL};
    peer_request(to, make_read(what, seed, (uint32_t)len), silence, a->buf, a->buf ? len : 0,
                 answered, a);
}

static void ask_write(struct ask *a, struct gate *g, uint64_t to, uint64_t seed, size_t len,
                      uint32_t silence)
{
    *a = (struct ask){.gate = g, .len = len, .seed = seed};
    peer_request(to, make_write(seed, (uint32_t)len), silence, NULL, 0, answered, a);
}

static void ask_free(struct ask *a)
{
    ck_assert_int_eq(a->calls, 1);
    free(a->buf);
}

/* One request that must be answered with the right bytes. */
static void must_read(uint64_t to, size_t len, bool own)
{
    struct gate g;
    struct ask a;
    gate_init(&g);
    ask_read(&a, &g, to, WHAT_BYTES, len + 3, len, own, LONG_MS);
    gate_wait(&g, 1);
    ck_assert_int_eq(a.err, 0);
    ck_assert(a.bytes_right);
    ask_free(&a);
}

static void must_write(uint64_t to, size_t len)
{
    struct gate g;
    struct ask a;
    gate_init(&g);
    ask_write(&a, &g, to, len + 5, len, LONG_MS);
    gate_wait(&g, 1);
    ck_assert_int_eq(a.err, 0);
    ck_assert(a.bytes_right);
    ask_free(&a);
}

static int read_err(uint64_t to, enum what what, uint64_t seed, size_t len, uint32_t silence)
{
    struct gate g;
    struct ask a;
    gate_init(&g);
    ask_read(&a, &g, to, what, seed, len, true, silence);
    gate_wait(&g, 1);
    int err = a.err;
    ck_assert(err || a.bytes_right);
    ask_free(&a);
    return err;
}

/* A connection that was refused may be tried again only after a while: tries until it stands. */
static void wait_for(uint64_t to)
{
    int err = -1;
    for (uint64_t end = boot_ms() + LONG_MS; err && boot_ms() < end;) {
        err = read_err(to, WHAT_BYTES, 1, 1, 5000);
        if (err)
            usleep(20000);
    }
    ck_assert_int_eq(err, 0);
}

static void begin(void)
{
    strcpy(dir, "/tmp/eddy-test-peer-XXXXXX");
    ck_assert(mkdtemp(dir) != NULL);
    node_begin(ME, 1, 0, CHUNK);
}

static void remove_dir(const char *d)
{
    char cmd[128];
    snprintf(cmd, sizeof(cmd), "rm -rf -- '%s'", d);
    ck_assert_int_eq(system(cmd), 0);
}

static void end(void)
{
    node_end();
    remove_dir(dir);
}

/* ---- running them ---- */

/* A case of its own for each, so that CK_RUN_CASE=name runs it alone. */
static void add(Suite *s, const char *name, const TTest *test)
{
    TCase *t = tcase_create(name);
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, test);
    suite_add_tcase(s, t);
}
#define ADD(test) add(s, #test, test)

static int tests_main(int argc, char **argv, Suite *(*suite)(void))
{
    if (argc == 7 && !strcmp(argv[1], "--node"))
        return node_main(argv);
    signal(SIGPIPE, SIG_IGN);
    if (peer_reexec(LISTEN, argv))
        return 1;
    return run_suite(suite());
}
