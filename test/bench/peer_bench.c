/* peer_bench.c - reading from a peer, beside what UCX itself does: 64 KiB, 1 MiB and 4 MiB
 * requests, 1, 4 and 8 in flight.
 *
 *   peer_bench [--pairs N] [--mib N] [--only-ours] [--request KIB] [--flight N]
 *
 * Two processes on 127.0.0.1: the asker (this one) sends READs, the server answers with RANGEs,
 * memory to memory, through peer_request and peer_reply: `source` fills a reply and `sink` consumes
 * it; other modes put theirs there. Beside it, ucx_perftest -t ucp_am_bw with the same size and
 * number in flight, both with this program's UCX settings and with UCX's own.  That sends one way
 * and never waits for an answer; with one in flight ours is a round trip, so there -t ucp_am_lat
 * says what a round trip of these sizes takes (perftest_round_trip).  All take turns N times; the
 * table has the medians, and of the ratios the median over the turns, so that what else the machine
 * does hits all alike.  A Markdown table on standard output; MiB/s.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "transport/lock.h"
#include "transport/loop.h"
#include "transport/peer.h"
#include "transport/view.h"

#include "bench_node.h"
#include "beside_ucx.h"

#define SIZE_MAX_B (4u << 20)
#define FLIGHT_MAX 8
#define SILENCE_MS 30000

static char dir[] = "/tmp/eddy-peer-bench-XXXXXX"; /* of the session */

/* ---- modes: where the server's bytes come from, where the asker's go ---- */

struct mode {
    const char *name;
    /* Server, network thread: makes the reply's data, then peer_reply, and frees m; may finish
     * later. */
    void (*source)(struct msg *m);
    /* Asker, network thread: buf has the reply's data; must call asked_done(slot) when it may be
     * used again. */
    void (*sink)(unsigned slot, void *buf, size_t len);
};

static void asked_done(unsigned slot);

static uint8_t *memory; /* SIZE_MAX_B bytes */

static void memory_source(struct msg *m)
{
    struct msg *r = msg_new(MSG_RANGE);
    r->range.size = m->read.length;
    r->data = memory;
    r->head.data_len = MIN(m->read.length, SIZE_MAX_B);
    peer_reply(m, r);
    msg_free(m);
}

static void memory_sink(unsigned slot, void *buf, size_t len)
{
    (void)buf;
    (void)len;
    asked_done(slot);
}

static const struct mode modes[] = {
    {"memory", memory_source, memory_sink},
};
static const struct mode *mode = &modes[0];

/* ---- both processes ---- */

static void node_begin(uint64_t id, const char *name)
{
    log_open(NULL, LOG_LEVEL_WARN, name);
    memory = mmap(NULL, SIZE_MAX_B, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
        die("mmap: %s", strerror(errno));
    memset(memory, 0x5a, SIZE_MAX_B);
    bench_node_begin(dir, id, name, MSG_READ, mode->source);
}

static int server_main(const char *session_dir)
{
    char c;
    strcpy(dir, session_dir);
    node_begin(2, "server");
    printf("%s\n", peer_address());
    fflush(stdout);
    while (read(0, &c, 1) > 0)
        ;
    bench_node_end();
    return 0;
}

/* ---- asking ---- */

static struct {
    struct lock lock;
    pthread_cond_t cond;
    bool done;
    /* network thread */
    size_t size;
    unsigned left, pending;
    void *buf[FLIGHT_MAX];
} run;

static void ask(unsigned slot);

static void on_reply(void *arg, int err, struct msg *reply, bool *keep)
{
    (void)keep;
    if (err || reply->head.data_len != run.size)
        die("a read failed: %s", strerror(-err));
    mode->sink((unsigned)(uintptr_t)arg, reply->data, reply->head.data_len);
}

static void ask(unsigned slot)
{
    struct msg *m = msg_new(MSG_READ);
    m->read.length = (uint32_t)run.size;
    run.left--;
    run.pending++;
    peer_request(2, m, SILENCE_MS, run.buf[slot], run.size, on_reply, (void *)(uintptr_t)slot);
}

static void asked_done(unsigned slot)
{
    run.pending--;
    if (run.left) {
        ask(slot);
        return;
    }
    if (run.pending)
        return;
    lock_take(&run.lock);
    run.done = true;
    pthread_cond_signal(&run.cond);
    lock_drop(&run.lock);
}

static void ask_first(void *arg)
{
    unsigned flight = *(unsigned *)arg;
    for (unsigned i = 0; i < flight && run.left; i++)
        ask(i);
}

/* MiB/s */
static double ours(size_t size, unsigned flight, unsigned count)
{
    run.size = size;
    run.left = count;
    run.done = false;
    uint64_t t = boot_ns();
    loop_call(ask_first, &flight);
    lock_take(&run.lock);
    while (!run.done)
        lock_wait(&run.lock, &run.cond, 0);
    lock_drop(&run.lock);
    return (double)size * count / (1 << 20) / ((double)(boot_ns() - t) / 1e9);
}

/* ---- the table ---- */

static void measure(size_t size, unsigned flight, unsigned pairs, unsigned mib, bool only_ours)
{
    double e[PAIRS_MAX], same[PAIRS_MAX], own[PAIRS_MAX], trip[PAIRS_MAX];
    unsigned count = (unsigned)(((uint64_t)mib << 20) / size);
    char **env = ucx_defaults();
    ours(size, flight, count / 10 + 1); /* warm */
    for (unsigned i = 0; i < pairs; i++) {
        e[i] = ours(size, flight, count);
        same[i] = only_ours ? 0 : perftest_once("ucp_am_bw", size, flight, count, environ);
        own[i] = only_ours ? 0 : perftest_once("ucp_am_bw", size, flight, count, env);
        trip[i] = only_ours || flight > 1 ? 0 : perftest_round_trip(size, count, environ);
    }
    free(env);
    printf("| %s | %zu KiB | %u | %.0f | %.0f | %.2f | %.0f | %.2f |", mode->name, size >> 10,
           flight, median(e, pairs), median(same, pairs), ratio(e, same, pairs), median(own, pairs),
           ratio(e, own, pairs));
    if (flight > 1)
        printf(" | |\n");
    else
        printf(" %.0f | %.2f |\n", median(trip, pairs), ratio(e, trip, pairs));
    fflush(stdout);
}

static void table(unsigned pairs, unsigned mib, bool only_ours, struct row_filter rows)
{
    static const size_t sizes[] = {64u << 10, 1u << 20, 4u << 20};
    static const unsigned flights[] = {1, 4, 8};
    printf("| mode | request | in flight | eddyfs MiB/s | ucx_perftest, same settings | ratio | "
           "ucx_perftest, UCX's settings | ratio | ucx_perftest, round trip | ratio |\n"
           "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        for (size_t j = 0; j < ARRAY_LEN(flights); j++)
            if (row_wanted(rows, sizes[i], flights[j]))
                measure(sizes[i], flights[j], pairs, mib, only_ours);
}

static int asker_main(unsigned pairs, unsigned mib, bool only_ours, struct row_filter rows)
{
    if (!mkdtemp(dir))
        die("mkdtemp: %s", strerror(errno));
    node_begin(1, "asker");
    char *argv[] = {"/proc/self/exe", "--server", dir, NULL};
    struct child server = child_start(argv, environ);
    struct member m = {.id = 2, .incarnation = 1, .name = "server"};
    if (!fgets(m.addr, sizeof(m.addr), server.out))
        die("the server did not start");
    m.addr[strcspn(m.addr, "\n")] = 0;
    peer_know(&m);
    lock_init(&run.lock, RANK_LEAF);
    lock_cond_init(&run.cond);
    for (unsigned i = 0; i < FLIGHT_MAX; i++)
        run.buf[i] = peer_buffer(SIZE_MAX_B);
    table(pairs, mib, only_ours, rows);
    for (unsigned i = 0; i < FLIGHT_MAX; i++)
        peer_buffer_free(run.buf[i]);
    bench_node_end();
    child_end(&server);
    char cmd[128];
    snprintf(cmd, sizeof(cmd), "rm -rf -- '%s'", dir);
    return system(cmd) ? 1 : 0;
}

int main(int argc, char **argv)
{
    unsigned pairs = 5, mib = 1024;
    bool only_ours = false;
    struct row_filter rows = {0};
    if (argc == 3 && !strcmp(argv[1], "--server"))
        return server_main(argv[2]);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--pairs") && i + 1 < argc)
            pairs = (unsigned)atoi(argv[++i]);
        else if (!strcmp(argv[i], "--mib") && i + 1 < argc)
            mib = (unsigned)atoi(argv[++i]);
        else if (!strcmp(argv[i], "--request") && i + 1 < argc)
            rows.kib = (unsigned)atoi(argv[++i]);
        else if (!strcmp(argv[i], "--flight") && i + 1 < argc)
            rows.flight = (unsigned)atoi(argv[++i]);
        else if (!strcmp(argv[i], "--only-ours"))
            only_ours = true;
        else
            pairs = 0;
    }
    if (!pairs || pairs > PAIRS_MAX || !mib) {
        fprintf(stderr,
                "usage: peer_bench [--pairs 1..%u] [--mib N] [--only-ours] [--request KIB] "
                "[--flight N]\n",
                PAIRS_MAX);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    int err = peer_reexec("127.0.0.1", argv);
    if (err)
        die("exec: %s", strerror(-err));
    return asker_main(pairs, mib, only_ours, rows);
}
