/* scale_peers.c - what a connection to another node costs: one daemon's peer layer with many peers.
 *
 *   scale_peers [--peers N]...       (default: 64, 256, 1024)
 *
 * Two processes on 127.0.0.1.  One is the node that is measured.  The other poses as N nodes: it says
 * N hellos, and the node then sends a message to each of them, so that UCX connects each endpoint.
 * All N endpoints lead to the other process's one UCX worker, which does not matter for what they
 * cost on this side.  Then the other process asks 20,000 PINGs, which is what a keeper answers to
 * 20,000 members in a second.  A Markdown row for each N; memory is what the process has more than
 * without peers, divided by N.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "transport/hello.h"
#include "transport/lock.h"
#include "transport/loop.h"
#include "transport/peer_int.h"
#include "transport/session.h"
#include "transport/ucx_peer.h"
#include "transport/view.h"

#include "bench_node.h"

#define FIRST     1000 /* id of the first of the posed nodes */
#define NODE      2
#define POSER     1
#define PINGS     20000
#define AT_ONCE   64
#define SILENCE   30000
#define PEERS_MAX 8000

static char dir[64] = "/tmp/eddy-scale-peers-XXXXXX"; /* of the session */

static void handle_ping(struct msg *m)
{
    peer_reply(m, msg_new(MSG_PONG));
    msg_free(m);
}

static void node_begin(uint64_t id, const char *name)
{
    struct rlimit r;
    log_open(NULL, LOG_LEVEL_ERROR, name);
    if (!getrlimit(RLIMIT_NOFILE, &r)) {
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r);
    }
    bench_node_begin(dir, id, name, MSG_PING, handle_ping);
}

/* ---- the node that is measured ---- */

struct cost {
    unsigned long rss_kib, fds;
    double cpu_ms;
};

static unsigned long count_fds(void)
{
    unsigned long n = 0;
    DIR *d = opendir("/proc/self/fd");
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n - 1;
}

static struct cost cost_now(void)
{
    struct cost c = {.fds = count_fds()};
    char line[256];
    struct rusage u;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof(line), f))
        sscanf(line, "VmRSS: %lu", &c.rss_kib);
    if (f)
        fclose(f);
    getrusage(RUSAGE_SELF, &u);
    c.cpu_ms = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
               (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
    return c;
}

/* Commands: 's': the cost; 'm' and a number: a message to each of so many posed nodes. */
static int server_main(const char *session_dir)
{
    char line[64];
    snprintf(dir, sizeof(dir), "%s", session_dir);
    node_begin(NODE, "node");
    printf("%s\n", peer_address());
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        if (line[0] == 'm')
            for (int i = 0; i < atoi(line + 1); i++)
                peer_send((uint64_t)(FIRST + i), msg_new(MSG_NOTE));
        struct cost c = cost_now();
        printf("%lu %lu %f\n", c.rss_kib, c.fds, c.cpu_ms);
        fflush(stdout);
    }
    bench_node_end();
    return 0;
}

struct server {
    pid_t pid;
    FILE *to, *from;
    struct member member;
};

static struct server server_start(void)
{
    struct server s = {.member = {.id = NODE, .incarnation = 1, .name = "node", .weight = 1}};
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || (s.pid = fork()) < 0)
        die("no process: %s", strerror(errno));
    if (!s.pid) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        execl("/proc/self/exe", "scale_peers", "--node", dir, NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    s.to = fdopen(in[1], "w");
    s.from = fdopen(out[0], "r");
    if (!fgets(s.member.addr, sizeof(s.member.addr), s.from))
        die("the node did not start");
    s.member.addr[strcspn(s.member.addr, "\n")] = 0;
    return s;
}

static struct cost server_says(struct server *s, const char *command)
{
    struct cost c;
    fprintf(s->to, "%s\n", command);
    fflush(s->to);
    if (fscanf(s->from, "%lu %lu %lf", &c.rss_kib, &c.fds, &c.cpu_ms) != 3)
        die("the node is gone");
    return c;
}

static void server_stop(struct server *s)
{
    fclose(s->to);
    waitpid(s->pid, NULL, 0);
    fclose(s->from);
}

/* ---- who poses as many nodes ---- */

static int connect_to(const char *addr)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    to.sin_port = htons((uint16_t)atoi(strrchr(addr, ':') + 1));
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s < 0 || connect(s, (struct sockaddr *)&to, sizeof(to)))
        die("connect to %s: %s", addr, strerror(errno));
    return s;
}

/* Sends what is to be sent, takes one frame and gives it to h; what it answers is in *out. */
static int exchange(int s, struct hello_proto *h, void **out, size_t *len)
{
    uint8_t in[4 + HELLO_FRAME_MAX];
    if (send(s, *out, *len, MSG_NOSIGNAL) != (ssize_t)*len || recv(s, in, 4, MSG_WAITALL) != 4)
        die("hello: %s", strerror(errno));
    free(*out);
    size_t n = in[0] | (size_t)in[1] << 8;
    if (recv(s, in + 4, n, MSG_WAITALL) != (ssize_t)n)
        die("hello: half a frame");
    return hello_proto_input(h, in, n + 4, out, len);
}

static int say_hello(const char *addr, uint64_t id)
{
    char settings[HELLO_SETTINGS_MAX + 1], name[32];
    void *out;
    size_t len;
    peer_settings(settings, sizeof(settings));
    snprintf(name, sizeof(name), "posed%lu", (unsigned long)id);
    struct hello_self self = {
        .id = id, .incarnation = 1, .name = name, .chunk_size = BENCH_CHUNK, .settings = settings};
    self.worker_addr = ucx_address(&self.worker_addr_len);
    struct hello_proto *h = hello_proto_new(true, &self, session_secret(), session_name());
    int s = connect_to(addr);
    hello_proto_begin(h, &out, &len);
    if (exchange(s, h, &out, &len) || exchange(s, h, &out, &len) != 1)
        die("hello: %s", hello_proto_reason(h));
    free(out);
    hello_proto_free(h);
    return s;
}

/* What the node has when it does not change any more: UCX connects in its own time. */
static struct cost settled(struct server *s)
{
    struct cost c = server_says(s, "s"), before;
    do {
        before = c;
        usleep(500000);
        c = server_says(s, "s");
    } while (c.rss_kib != before.rss_kib || c.fds != before.fds);
    return c;
}

static struct lock lock;
static pthread_cond_t cond;
static unsigned asked, answered, failed;

static void ask_one(void);

static void on_pong(void *arg, int err, struct msg *reply, bool *keep)
{
    (void)arg;
    (void)reply;
    (void)keep;
    failed += err != 0;
    if (++answered == PINGS) {
        lock_take(&lock);
        pthread_cond_signal(&cond);
        lock_drop(&lock);
    } else if (asked < PINGS) {
        ask_one();
    }
}

static void ask_one(void)
{
    asked++;
    peer_request(NODE, msg_new(MSG_PING), SILENCE, NULL, 0, on_pong, NULL);
}

static void ask_first(void *unused)
{
    (void)unused;
    asked = answered = failed = 0;
    for (unsigned i = 0; i < AT_ONCE; i++)
        ask_one();
}

static void ping_all(void)
{
    loop_call(ask_first, NULL);
    lock_take(&lock);
    while (*(volatile unsigned *)&answered < PINGS)
        lock_wait(&lock, &cond, 100);
    lock_drop(&lock);
    if (failed)
        die("%u PINGs failed", failed);
}

static void measure(unsigned peers)
{
    int *conns = xcalloc(peers, sizeof(*conns));
    char command[32];
    struct server s = server_start();
    struct cost none = settled(&s);
    uint64_t t = boot_ns();
    for (unsigned i = 0; i < peers; i++)
        conns[i] = say_hello(s.member.addr, FIRST + i);
    t = boot_ns() - t;
    struct cost proven = settled(&s);
    snprintf(command, sizeof(command), "m%u", peers);
    server_says(&s, command);
    struct cost all = settled(&s);
    peer_know(&s.member);
    struct cost before = server_says(&s, "s");
    uint64_t pings = boot_ns();
    ping_all();
    pings = boot_ns() - pings;
    struct cost after = server_says(&s, "s");
    printf("| %u | %.0f | %.0f | %.1f | %.1f | %.1f | %.1f | %.1f |\n", peers,
           (double)t / 1e3 / peers, (proven.cpu_ms - none.cpu_ms) * 1e3 / peers,
           ((double)proven.rss_kib - (double)none.rss_kib) / peers,
           ((double)all.rss_kib - (double)none.rss_kib) / peers,
           ((double)all.fds - (double)none.fds) / peers,
           (after.cpu_ms - before.cpu_ms) * 1e3 / PINGS, (double)pings / 1e3 / PINGS);
    fflush(stdout);
    peer_forget(NODE);
    for (unsigned i = 0; i < peers; i++)
        close(conns[i]);
    server_stop(&s);
    free(conns);
}

static int options(int argc, char **argv, unsigned *sizes)
{
    static const struct option longs[] = {{"peers", required_argument, NULL, 'p'}, {0}};
    int n = 0;
    for (int o; (o = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        int v = o == 'p' ? atoi(optarg) : 0;
        if (v <= 0 || v > PEERS_MAX || n == 16) {
            fprintf(stderr, "usage: scale_peers [--peers N]...   (1 to %d)\n", PEERS_MAX);
            exit(2);
        }
        sizes[n++] = (unsigned)v;
    }
    return n;
}

int main(int argc, char **argv)
{
    unsigned sizes[16] = {64, 256, 1024};
    if (argc == 3 && !strcmp(argv[1], "--node"))
        return server_main(argv[2]);
    int n = options(argc, argv, sizes);
    if (peer_reexec("127.0.0.1", argv))
        return 1;
    lock_init(&lock, RANK_LEAF);
    lock_cond_init(&cond);
    if (!mkdtemp(dir))
        die("%s: %s", dir, strerror(errno));
    node_begin(POSER, "poser");
    printf(
        "| peers | hello, µs | of it processor time of the node, µs | memory per proven peer, KiB "
        "| ... with an endpoint in use | descriptors | PING, processor time of the node, µs "
        "| PING, µs, 64 at once |\n|--:|--:|--:|--:|--:|--:|--:|--:|\n");
    for (int i = 0; i < (n ? n : 3); i++)
        measure(sizes[i]);
    bench_node_end();
    char command[128];
    snprintf(command, sizeof(command), "rm -rf -- '%s'", dir);
    return system(command) != 0;
}
