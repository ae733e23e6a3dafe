/* store_peer.c - reading from a peer through both stores: 64 KiB, 1 MiB and 4 MiB chunks, 1, 4 and
 * 8 in flight.
 *
 *   store_peer [--mib N] [--pairs N] [--dir DIR]
 *
 * Two nodes on 127.0.0.1, each a whole daemon without a mount.  The server has a file's chunks in
 * its store; the asker fetches them (fetch_range: FETCH, CHUNK, checksum, its own store, a copy for
 * the reader), one chunk per call, as many calls at a time as are in flight.  The server's weight
 * on the ring is so large that nearly all chunks are its own; the others are left out.  Between two
 * measurements the asker drops what it has.
 *
 * In turns with it, ucx_perftest's active messages of the same size and number in flight, as in
 * peer_bench (which is memory to memory).  Where the time goes is in the second table: the same
 * bytes by each step alone.  Markdown on standard output; MiB/s.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include "placement/carry.h"
#include "placement/claim.h"
#include "placement/fetch.h"
#include "placement/fid.h"
#include "placement/home.h"
#include "placement/pfs_data.h"
#include "placement/ring.h"
#include "placement/store.h"
#include "transport/loop.h"
#include "transport/members.h"
#include "transport/peer.h"

#include "beside_ucx.h"

#define FLIGHT_MAX 8
#define HIDDEN     ".eddyfs-bench"

static char top[256];
static size_t chunk; /* of this session */
static unsigned mib = 256, pairs = 5;

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
    home_start();
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
    must("members_start", members_start(&mc), "");
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
    must("fill", fetch_range(f, &v, 0, v.size, NULL, NULL, NULL), "");
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
    uint64_t *index; /* chunks that the server owns */
    size_t n;
    _Atomic size_t next;
} work;

static void *reader(void *arg)
{
    uint8_t *buf = xmalloc(chunk);
    (void)arg;
    for (size_t i; (i = atomic_fetch_add(&work.next, 1)) < work.n;) {
        size_t got;
        int err = fetch_range(work.f, &work.v, work.index[i] * chunk, chunk, buf, &got, NULL);
        if (err || got != chunk)
            die("fetch: %s", strerror(-err));
    }
    free(buf);
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

static double fetch_all(unsigned flight)
{
    pthread_t t[FLIGHT_MAX];
    drop_all();
    work.next = 0;
    uint64_t begun = boot_ns();
    for (unsigned i = 0; i < flight; i++)
        pthread_create(&t[i], NULL, reader, NULL);
    for (unsigned i = 0; i < flight; i++)
        pthread_join(t[i], NULL);
    return rate(begun, work.n * chunk);
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
        if (s != GET)
            must("read", pfs_read(work.f, buf, chunk, work.index[i] * chunk, &len), "");
        if (s == FILL)
            hash = XXH3_64bits(buf, chunk);
        uint64_t begun = boot_ns();
        if (s == GET)
            must("get", store_get_chunk(work.f, work.index[i], &work.v, buf, &len, &hash), "");
        else if (s == HASH)
            hash += XXH3_64bits(buf, chunk);
        else if (s == FILL)
            must("fill", store_fill(work.f, work.index[i], &work.v, buf, chunk, hash, false, false),
                 "");
        else
            memcpy(to, buf, chunk);
        ns += boot_ns() - begun;
    }
    free(buf);
    free(to);
    return (double)(work.n * chunk) / (1 << 20) / ((double)ns / 1e9);
}

/* ---- tables ---- */

static void row(unsigned flight)
{
    double v[PAIRS_MAX], same[PAIRS_MAX], own[PAIRS_MAX];
    unsigned count = (unsigned)work.n;
    char **env = ucx_defaults();
    for (unsigned i = 0; i < pairs; i++) {
        v[i] = fetch_all(flight);
        same[i] = perftest_once(chunk, flight, count, environ);
        own[i] = perftest_once(chunk, flight, count, env);
    }
    free(env);
    printf("| stores | %zu KiB | %u | %.0f | %.0f | %.2f | %.0f | %.2f |\n", chunk >> 10, flight,
           median(v, pairs), median(same, pairs), ratio(v, same, pairs), median(own, pairs),
           ratio(v, own, pairs));
    fflush(stdout);
}

static void choose_chunks(void)
{
    const struct ring *r = ring_of(members_view());
    size_t all = work.v.size / chunk;
    work.index = xcalloc(all, sizeof(*work.index));
    for (size_t i = 0; i < all; i++)
        if (ring_owner(r, work.f->fid, i, 0) != members_self())
            work.index[work.n++] = i;
}

static int asker_main(bool steps)
{
    static const unsigned flights[] = {1, 4, 8};
    node_begin("asker", 1, 2);
    work.f = the_file(&work.v);
    choose_chunks();
    if (steps) {
        fetch_all(1);
        double get = step_alone(GET), hash = step_alone(HASH), copy = step_alone(COPY),
               fill = step_alone(FILL);
        printf("| %zu KiB | %.0f | %.0f | %.0f | %.0f |\n", chunk >> 10, get, hash, fill, copy);
    } else {
        fetch_all(4); /* warm */
        for (size_t i = 0; i < ARRAY_LEN(flights); i++)
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

static pid_t start(const char *role, const char *size, const int pipes[4])
{
    char m[16], p[16];
    snprintf(m, sizeof(m), "%u", mib);
    snprintf(p, sizeof(p), "%u", pairs);
    pid_t pid = fork();
    if (!pid) {
        if (pipes) {
            dup2(pipes[0], 0);
            dup2(pipes[3], 1);
            for (int i = 0; i < 4; i++)
                close(pipes[i]);
        }
        execl("/proc/self/exe", "store_peer", role, top, size, m, p, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static void remove_below(const char *what)
{
    char cmd[400];
    snprintf(cmd, sizeof(cmd), "rm -rf -- '%s'%s", top, what);
    if (system(cmd))
        log_warn("not removed: %s", top);
}

static int measure(const char *role, const char *size)
{
    int pipes[4], status;
    char c;
    if (pipe(pipes) || pipe(pipes + 2))
        die("pipe: %s", strerror(errno));
    pid_t server = start("--server", size, pipes);
    close(pipes[0]);
    close(pipes[3]);
    bool up = read(pipes[2], &c, 1) == 1;
    fcntl(pipes[1], F_SETFD, FD_CLOEXEC);
    pid_t asker = up ? start(role, size, NULL) : 0;
    if (up)
        waitpid(asker, &status, 0);
    close(pipes[1]);
    close(pipes[2]);
    waitpid(server, NULL, 0);
    remove_below("/cache-*");
    remove_below("/pfs/" HIDDEN);
    return up && !status ? 0 : 1;
}

static int run(void)
{
    static const char *const sizes[] = {"65536", "1048576", "4194304"};
    int bad = 0;
    make_data();
    printf("| mode | request | in flight | eddyfs MiB/s | ucx_perftest, same settings | ratio | "
           "ucx_perftest, UCX's settings | ratio |\n|---|--:|--:|--:|--:|--:|--:|--:|\n");
    fflush(stdout);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        bad |= measure("--asker", sizes[i]);
    printf("\nEach step alone, MiB/s:\n\n| chunk | server: read from the store | checksum | asker: "
           "write to the store | copy |\n"
           "|--:|--:|--:|--:|--:|\n");
    fflush(stdout);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        bad |= measure("--steps", sizes[i]);
    remove_below("");
    return bad;
}

int main(int argc, char **argv)
{
    const char *dir = "/var/tmp";
    signal(SIGPIPE, SIG_IGN);
    if (argc == 6 && !strncmp(argv[1], "--", 2) && strcmp(argv[1], "--mib")) {
        snprintf(top, sizeof(top), "%s", argv[2]);
        chunk = strtoul(argv[3], NULL, 10);
        mib = (unsigned)atoi(argv[4]);
        pairs = (unsigned)atoi(argv[5]);
        must("exec", peer_reexec("127.0.0.1", argv), "");
        return !strcmp(argv[1], "--server") ? server_main()
                                            : asker_main(!strcmp(argv[1], "--steps"));
    }
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--pairs") && i + 1 < argc)
            pairs = (unsigned)atoi(argv[++i]);
        else if (!strcmp(argv[i], "--mib") && i + 1 < argc)
            mib = (unsigned)atoi(argv[++i]);
        else if (!strcmp(argv[i], "--dir") && i + 1 < argc)
            dir = argv[++i];
        else
            pairs = 0;
    }
    if (!pairs || pairs > PAIRS_MAX || mib < 16) {
        fprintf(stderr, "usage: store_peer [--mib N] [--pairs 1..%u] [--dir DIR]\n", PAIRS_MAX);
        return 2;
    }
    snprintf(top, sizeof(top), "%s/eddy-store-peer-XXXXXX", dir);
    if (!mkdtemp(top))
        die("%s: %s", top, strerror(errno));
    return run();
}
