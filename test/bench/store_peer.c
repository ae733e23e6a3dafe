/* store_peer.c - reading from a peer through both stores: requests of 64 KiB, 1 MiB and 4 MiB, 1, 4
 * and 8 in flight.
 *
 *   store_peer [--mib N] [--pairs N] [--dir DIR] [--only-ours] [--request KIB] [--flight N]
 *
 * Two nodes on 127.0.0.1, each a whole daemon without a mount.  The server has a file's chunks in
 * its store; the asker fetches them (fetch_range: FETCH, CHUNK, checksum, its own store, a copy for
 * the reader), one request per call, as many calls at a time as are in flight.  A request is one
 * chunk, and in a second row of 4 MiB four chunks of 1 MiB, the default size.  The server's weight
 * on the ring is so large that nearly all chunks are its own; the others are left out.  The clock
 * stops when the last byte is in the asker's store.  Between two measurements the asker drops what
 * it has.
 *
 * In turns with it, ucx_perftest's active messages of the same size and number in flight, as in
 * peer_bench (which is memory to memory).  The last column is the processor time of both nodes: on
 * two cores that is the bound.  Where it goes is in the second table: the same bytes by each step
 * alone.  Markdown on standard output; MiB/s.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "placement/carry.h"
#include "placement/chunks/fetch.h"
#include "placement/claims/claim_life.h"
#include "placement/claims/home.h"
#include "placement/pfs/pfs.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_fid.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"
#include "placement/ring/ring.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"
#include "transport/hash.h"
#include "transport/loop.h"
#include "transport/members.h"
#include "transport/peer.h"
#include "transport/session.h"

#include "beside_ucx.h"

#define FLIGHT_MAX 8
#define HIDDEN     ".eddyfs-bench"

static const char *dir = "/var/tmp";
static pid_t server_pid;
static char top[256];
static size_t chunk;   /* of this session */
static size_t request; /* so many chunks' bytes */
static unsigned mib = 256, pairs = 5;
static bool only_ours;
static struct row_filter rows;

/* ---- a node ---- */

static void must(const char *what, int err, const char *text)
{
    if (err)
        die("%s: %s %s", what, strerror(-err), text);
}

static void node_begin(const char *name, uint32_t weight, unsigned nodes)
{
    char err[512] = "", pfs[300], cache[300], sessions[340];
    snprintf(pfs, sizeof(pfs), "%s/pfs", top);
    snprintf(cache, sizeof(cache), "%s/cache-%s", top, name);
    snprintf(sessions, sizeof(sessions), "%s/" HIDDEN, pfs);
    log_open(NULL, LOG_LEVEL_ERROR, name);
    struct session_config sc = {.dir = sessions, .name = "bench", .chunk_size = (uint32_t)chunk};
    struct store_config st = {.dir = cache,
                              .size = ((uint64_t)mib << 20) * 2 + (64u << 20),
                              .chunk_size = (uint32_t)chunk};
    must("pfs_open", pfs_open(pfs, HIDDEN, 100, err, sizeof(err)), err);
    must("session_open", session_open(&sc, err, sizeof(err)), err);
    must("store_open", store_open(&st, err, sizeof(err)), err);
    claim_start();
    must("loop_start", loop_start(), "");
    home_start(1000);
    fetch_start();
    carry_start();
    must("pools_start", pools_start(), "");
    struct peer_config pc = {.listen = "127.0.0.1",
                             .id = store_node_id(),
                             .incarnation = store_incarnation(),
                             .name = name,
                             .chunk_size = (uint32_t)chunk};
    must("peer_start", peer_start(&pc, err, sizeof(err)), err);
    struct members_config mc = {
        .self = {.id = pc.id, .incarnation = pc.incarnation, .weight = weight},
        .ops = claim_members_ops};
    snprintf(mc.self.name, sizeof(mc.self.name), "%s", name);
    snprintf(mc.self.addr, sizeof(mc.self.addr), "%s", peer_address());
    members_start(&mc);
    must("members_join", members_join(nodes, 60, err, sizeof(err)), err);
}

static struct file *the_file(struct version *v)
{
    struct pfs_node *n = pfs_child(pfs_root(), "data");
    struct statx stx;
    struct file *f;
    must("stat", pfs_stat(n, &stx), "");
    must("file_get", file_get(fid_of(&stx), "data", &f), "");
    pfs_unref(n);
    *v = version_of(&stx);
    must("store_set_version", store_set_version(f, v, NULL), "");
    return f;
}

/* ---- the server: fills its store, says so, waits for the end ---- */

static int server_main(void)
{
    struct version v;
    char c;
    node_begin("server", 10000, 1);
    struct file *f = the_file(&v);
    must("fill", fetch_range(f, &(struct fetch){.v = v, .len = v.size}, NULL), "");
    if (write(1, "r", 1) != 1)
        return 1;
    while (read(0, &c, 1) > 0)
        ;
    _exit(0);
}

/* ---- the asker ---- */

static struct {
    struct file *f;
    struct version v;
    uint64_t *off; /* of requests whose chunks the server owns */
    size_t n;
    _Atomic size_t next;
    uint8_t *buf[FLIGHT_MAX]; /* the readers' */
} work;

static void *reader(void *buf)
{
    for (size_t i; (i = atomic_fetch_add(&work.next, 1)) < work.n;) {
        size_t got;
        struct fetch want = {.v = work.v,
                             .off = work.off[i],
                             .len = request,
                             .buf = buf,
                             .looked = fetch_looks(work.f)};
        int err = fetch_range(work.f, &want, &got);
        if (err || got != request)
            die("fetch: %s", strerror(-err));
    }
    return NULL;
}

static void drop_all(void)
{
    struct version other = work.v;
    other.mtime_ns++;
    must("drop", store_set_version(work.f, &other, NULL), "");
    must("drop", store_set_version(work.f, &work.v, NULL), "");
}

static double rate(uint64_t begun_ns, size_t bytes)
{
    return (double)bytes / (1 << 20) / ((double)(boot_ns() - begun_ns) / 1e9);
}

/* The readers have their bytes; the last ones are still on their way into the store. */
static void wait_until_stored(void)
{
    for (size_t i = 0; i < work.n; i++) {
        struct fetch want = {.v = work.v, .off = work.off[i], .len = request};
        must("store", fetch_range(work.f, &want, NULL), "");
    }
}

/* Of both nodes, ns. */
static uint64_t cpu_ns(void)
{
    struct timespec here, there;
    clockid_t server;
    if (clock_getcpuclockid(server_pid, &server) || clock_gettime(server, &there) ||
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &here))
        die("no CPU time: %s", strerror(errno));
    return (uint64_t)(here.tv_sec + there.tv_sec) * 1000000000 +
           (uint64_t)(here.tv_nsec + there.tv_nsec);
}

/* MiB/s; *cpu: microseconds of processor time for each MiB. */
static double fetch_all(unsigned flight, double *cpu)
{
    pthread_t t[FLIGHT_MAX];
    drop_all();
    work.next = 0;
    uint64_t begun = boot_ns(), cpu_begun = cpu_ns();
    for (unsigned i = 0; i < flight; i++)
        pthread_create(&t[i], NULL, reader, work.buf[i]);
    for (unsigned i = 0; i < flight; i++)
        pthread_join(t[i], NULL);
    wait_until_stored();
    *cpu = (double)(cpu_ns() - cpu_begun) / 1e3 / ((double)(work.n * request) / (1 << 20));
    return rate(begun, work.n * request);
}

/* ---- each step alone ---- */

enum step { GET, HASH, FILL, COPY, STEPS };

static double step_alone(enum step s)
{
    uint8_t *buf = xmalloc(chunk), *to = xmalloc(chunk);
    uint64_t hash = 0, ns = 0;
    size_t len;
    if (s == FILL)
        drop_all();
    memset(to, 1, chunk);
    for (size_t i = 0; i < work.n; i++) {
        uint64_t index = work.off[i] / chunk;
        if (s != GET)
            must("read", pfs_read(work.f, buf, chunk, work.off[i], &len), "");
        if (s == FILL)
            hash = data_hash(buf, chunk);
        struct clean_chunk clean = {
            .index = index, .version = work.v, .buf = buf, .len = chunk, .hash = hash};
        uint64_t begun = boot_ns();
        if (s == GET)
            must("get", store_get_chunk(work.f, index, &work.v, buf, &len, &hash), "");
        else if (s == HASH)
            hash += data_hash(buf, chunk);
        else if (s == FILL)
            must("fill", store_fill(work.f, &clean), "");
        else
            memcpy(to, buf, chunk);
        ns += boot_ns() - begun;
    }
    free(buf);
    free(to);
    return (double)(work.n * request) / (1 << 20) / ((double)ns / 1e9);
}

/* ---- tables ---- */

static void row(unsigned flight)
{
    double v[PAIRS_MAX], cpu[PAIRS_MAX], same[PAIRS_MAX], own[PAIRS_MAX], trip[PAIRS_MAX];
    unsigned count = (unsigned)work.n;
    char **env = ucx_defaults();
    for (unsigned i = 0; i < pairs; i++) {
        v[i] = fetch_all(flight, &cpu[i]);
        same[i] = only_ours ? 0 : perftest_once("ucp_am_bw", request, flight, count, environ);
        own[i] = only_ours ? 0 : perftest_once("ucp_am_bw", request, flight, count, env);
        trip[i] = only_ours || flight > 1 ? 0 : perftest_round_trip(request, count, environ);
    }
    free(env);
    printf("| stores | %zu KiB%s | %u | %.0f | %.0f | %.2f | %.0f | %.2f |", request >> 10,
           request > chunk ? " in chunks of 1 MiB" : "", flight, median(v, pairs),
           median(same, pairs), ratio(v, same, pairs), median(own, pairs), ratio(v, own, pairs));
    if (flight > 1)
        printf(" | | %.0f |\n", median(cpu, pairs));
    else
        printf(" %.0f | %.2f | %.0f |\n", median(trip, pairs), ratio(v, trip, pairs),
               median(cpu, pairs));
    fflush(stdout);
}

static bool all_are_the_servers(const struct ring *r, uint64_t off)
{
    for (uint64_t i = off / chunk; i < (off + request) / chunk; i++)
        if (ring_owner(r, work.f->fid, i, 0) == members_self())
            return false;
    return true;
}

static void choose_requests(void)
{
    const struct ring *r = ring_of(members_view());
    work.off = xcalloc(work.v.size / request, sizeof(*work.off));
    for (uint64_t off = 0; off < work.v.size; off += request)
        if (all_are_the_servers(r, off))
            work.off[work.n++] = off;
}

static void warm(unsigned flight)
{
    double cpu;
    for (unsigned i = 0; i < FLIGHT_MAX; i++) {
        work.buf[i] = xmalloc(request);
        memset(work.buf[i], 1, request);
    }
    fetch_all(flight, &cpu);
}

static int asker_main(bool steps)
{
    static const unsigned flights[] = {1, 4, 8};
    node_begin("asker", 1, 2);
    work.f = the_file(&work.v);
    choose_requests();
    warm(steps ? 1 : FLIGHT_MAX);
    if (steps) {
        double get = step_alone(GET), hash = step_alone(HASH), copy = step_alone(COPY),
               fill = step_alone(FILL);
        printf("| %zu KiB | %.0f | %.0f | %.0f | %.0f |\n", chunk >> 10, get, hash, fill, copy);
    } else {
        for (size_t i = 0; i < ARRAY_LEN(flights); i++)
            if (row_wanted(rows, request, flights[i]))
                row(flights[i]);
    }
    fflush(stdout);
    _exit(0);
}

/* ---- the run ---- */

static void make_data(void)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/pfs", top);
    if (mkdir(path, 0700))
        die("%s: %s", path, strerror(errno));
    snprintf(path, sizeof(path), "%s/pfs/data", top);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    uint64_t *buf = xmalloc(1 << 20);
    for (unsigned i = 0; i < mib; i++) {
        for (unsigned k = 0; k < (1u << 20) / 8; k++)
            buf[k] = (i * 131072ull + k) * 0x9e3779b97f4a7c15ull;
        if (fd < 0 || write(fd, buf, 1 << 20) != 1 << 20)
            die("%s: %s", path, strerror(errno));
    }
    free(buf);
    close(fd);
    usleep(50000); /* older than a time stamp's grain: not racy */
}

static int nargs; /* as given to this program */
static char **args;

struct sizes {
    const char *request, *chunk;
};

static pid_t start(const char *role, const struct sizes *z, const int pipes[4])
{
    char **v = xcalloc((size_t)nargs + 11, sizeof(*v)), server[16];
    snprintf(server, sizeof(server), "%d", server_pid);
    memcpy(v, args, (size_t)nargs * sizeof(*v));
    const char *const more[] = {"--top",  top,        "--role", role,      "--chunk",
                                z->chunk, "--server", server,   "--bytes", z->request};
    memcpy(v + nargs, more, sizeof(more));
    pid_t pid = fork();
    if (!pid) {
        if (pipes) {
            dup2(pipes[0], 0);
            dup2(pipes[3], 1);
            for (int i = 0; i < 4; i++)
                close(pipes[i]);
        }
        execv("/proc/self/exe", v);
        _exit(127);
    }
    free(v);
    return pid;
}

static void remove_below(const char *what)
{
    char cmd[400];
    snprintf(cmd, sizeof(cmd), "rm -rf -- '%s'%s", top, what);
    if (system(cmd))
        log_warn("not removed: %s", top);
}

static int measure(const char *role, const struct sizes *z)
{
    int pipes[4], status;
    char c;
    if (pipe(pipes) || pipe(pipes + 2))
        die("pipe: %s", strerror(errno));
    server_pid = start("server", z, pipes);
    close(pipes[0]);
    close(pipes[3]);
    bool up = read(pipes[2], &c, 1) == 1;
    fcntl(pipes[1], F_SETFD, FD_CLOEXEC);
    pid_t asker = up ? start(role, z, NULL) : 0;
    if (up)
        waitpid(asker, &status, 0);
    close(pipes[1]);
    close(pipes[2]);
    waitpid(server_pid, NULL, 0);
    remove_below("/cache-*");
    remove_below("/pfs/" HIDDEN);
    return up && !status ? 0 : 1;
}

static int run(void)
{
    static const struct sizes sizes[] = {
        {"65536", "65536"}, {"1048576", "1048576"}, {"4194304", "4194304"}, {"4194304", "1048576"}};
    int bad = 0;
    make_data();
    printf("| mode | request | in flight | eddyfs MiB/s | ucx_perftest, same settings | ratio | "
           "ucx_perftest, UCX's settings | ratio | ucx_perftest, round trip | ratio | eddyfs CPU "
           "us/MiB |\n"
           "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
    fflush(stdout);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        if (row_wanted(rows, strtoul(sizes[i].request, NULL, 10), rows.flight))
            bad |= measure("asker", &sizes[i]);
    printf("\nEach step alone, MiB/s:\n\n| chunk | server: read from the store | checksum | asker: "
           "write to the store | copy |\n"
           "|--:|--:|--:|--:|--:|\n");
    fflush(stdout);
    for (size_t i = 0; i < ARRAY_LEN(sizes) - 1; i++)
        if (row_wanted(rows, strtoul(sizes[i].request, NULL, 10), rows.flight))
            bad |= measure("steps", &sizes[i]);
    remove_below("");
    return bad;
}

static void usage(void)
{
    fprintf(stderr,
            "usage: store_peer [--mib N] [--pairs 1..%u] [--dir DIR] [--only-ours] "
            "[--request KIB] [--flight N]\n",
            PAIRS_MAX);
    exit(2);
}

/* --role, --top, --chunk, --bytes and --server are for the nodes, which are this program again. */
static const char *parse(int argc, char **argv)
{
    static const struct option options[] = {
        {"mib", 1, NULL, 'm'},     {"pairs", 1, NULL, 'p'},     {"dir", 1, NULL, 'd'},
        {"flight", 1, NULL, 'f'},  {"only-ours", 0, NULL, 'o'}, {"role", 1, NULL, 'r'},
        {"request", 1, NULL, 'q'}, {"chunk", 1, NULL, 'c'},     {"top", 1, NULL, 't'},
        {"server", 1, NULL, 's'},  {"bytes", 1, NULL, 'b'},     {0}};
    const char *role = NULL;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'm':
            mib = (unsigned)atoi(optarg);
            break;
        case 'p':
            pairs = (unsigned)atoi(optarg);
            break;
        case 'd':
            dir = optarg;
            break;
        case 's':
            server_pid = atoi(optarg);
            break;
        case 't':
            snprintf(top, sizeof(top), "%s", optarg);
            break;
        case 'f':
            rows.flight = (unsigned)atoi(optarg);
            break;
        case 'o':
            only_ours = true;
            break;
        case 'r':
            role = optarg;
            break;
        case 'q':
            rows.kib = (unsigned)atoi(optarg);
            break;
        case 'b':
            request = strtoul(optarg, NULL, 10);
            break;
        case 'c':
            chunk = strtoul(optarg, NULL, 10);
            break;
        default:
            usage();
        }
    }
    if (optind != argc || !pairs || pairs > PAIRS_MAX || mib < 16)
        usage();
    return role;
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    const char *role = parse(argc, argv);
    if (role) {
        must("exec", peer_reexec("127.0.0.1", argv), "");
        return !strcmp(role, "server") ? server_main() : asker_main(!strcmp(role, "steps"));
    }
    nargs = argc;
    args = argv;
    snprintf(top, sizeof(top), "%s/eddy-store-peer-XXXXXX", dir);
    if (!mkdtemp(top))
        die("%s: %s", top, strerror(errno));
    return run();
}
