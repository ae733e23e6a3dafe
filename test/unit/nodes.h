/* nodes.h - several real nodes for a test: processes on 127.0.0.1 over a directory as PFS, which do
 * what the test tells them.
 *
 * A node is the test program itself, executed with "--node" (UCX does not survive a fork).  The
 * test sends it an order: a function of this program and its arguments; the node runs it and sends
 * the order back with its results.  A node ends when its socket closes.  The test process itself is
 * no node.
 *
 * main() of such a test begins with: if (node_is(argc, argv)) return node_main(argc, argv);
 */
#ifndef EDDY_TEST_NODES_H
#define EDDY_TEST_NODES_H

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include "placement/chunks/fetch.h"
#include "placement/chunks/former.h"
#include "placement/chunks/keep.h"
#include "placement/chunks/owner.h"
#include "placement/chunks/places.h"
#include "placement/claims/claim.h"
#include "placement/claims/claim_give.h"
#include "placement/claims/claim_life.h"
#include "placement/claims/home.h"
#include "placement/claims/look.h"
#include "placement/data_believe.h"
#include "placement/local.h"
#include "placement/tell.h"
#include "placement/pfs/pfs.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"
#include "placement/pfs/pfs_write.h"
#include "placement/ring/ring.h"
#include "placement/borrow.h"
#include "placement/borrow_flush.h"
#include "placement/store/eviction.h"
#include "placement/store/store_copyout.h"
#include "placement/store/store_lend.h"
#include "placement/store/store_loan.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "transport/hello.h"
#include "transport/loop.h"
#include "transport/marks.h"
#include "transport/members.h"
#include "transport/peer.h"
#include "transport/session.h"
#include "transport/view.h"

#pragma GCC diagnostic ignored "-Wunused-function" /* each test takes what it needs */

#define NODES_MAX   4
#define NODE_FD     3
#define NODE_CHUNK  (64u << 10)
#define NODE_HIDDEN ".eddyfs-test"

struct order {
    ptrdiff_t fn; /* from node_main on: the program may be loaded elsewhere */
    char name[64];
    uint64_t off, len, a, b;
    int err;
    uint64_t out[6];
    struct counters counters; /* of the node, when it was done */
};

static char nodes_top[128];
static struct {
    pid_t pid;
    int fd;
} nodes[NODES_MAX];
static unsigned nnodes;
static pid_t nodes_owner; /* tests run in children of it */

/* ---- the node's side ---- */

static inline bool node_is(int argc, char **argv)
{
    return argc > 1 && !strcmp(argv[1], "--node");
}

static void node_try(const char *what, int err, const char *text)
{
    if (err) {
        fprintf(stderr, "node: %s: %s %s\n", what, strerror(-err), text);
        _exit(1);
    }
}

static uint64_t node_cache_size;

/* In place of the mount: no handle gives older bytes from now on. */
static unsigned node_break(struct fid fid)
{
    struct file *f = file_find(fid);
    if (f) {
        data_break(f);
        file_put(f);
    }
    return 0;
}

static void node_adopted(const struct view *v)
{
    former_adopted(v);
    places_adopted(v);
}

static unsigned node_told(struct fid fid, const struct told_change *c)
{
    (void)c;
    return node_break(fid);
}

static void node_start(const char *top, const char *name)
{
    char err[512] = "", pfs[256], cache[256], sessions[256];
    snprintf(pfs, sizeof(pfs), "%s/pfs", top);
    snprintf(cache, sizeof(cache), "%s/cache-%s", top, name);
    snprintf(sessions, sizeof(sessions), "%s/pfs/" NODE_HIDDEN, top);
    log_open(NULL, getenv("EDDY_TEST_LOG") ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR, name);
    struct session_config sc = {.dir = sessions, .name = "test", .chunk_size = NODE_CHUNK};
    struct store_config st = {.dir = cache, .size = node_cache_size, .chunk_size = NODE_CHUNK};
    node_try("pfs_open", pfs_open(pfs, NODE_HIDDEN, 100, err, sizeof(err)), err);
    node_try("session_open", session_open(&sc, err, sizeof(err)), err);
    node_try("store_open", store_open(&st, err, sizeof(err)), err);
    node_try("loop_start", loop_start(), "");
    node_try("pools_start", pools_start(), "");
    fetch_start();
    carry_start();
    home_start(1000);
    claim_start();
    claim_on_adopted(node_adopted);
    places_start();
    keep_start();
    look_on_break(node_break);
    told_on_change(node_told);
    eviction_on_owner(places_owned);
    struct peer_config pc = {.listen = "127.0.0.1",
                             .id = store_node_id(),
                             .incarnation = store_incarnation(),
                             .name = name,
                             .chunk_size = NODE_CHUNK};
    node_try("peer_start", peer_start(&pc, err, sizeof(err)), err);
    struct members_config mc = {.self = {.id = pc.id, .incarnation = pc.incarnation, .weight = 100},
                                .ops = claim_members_ops};
    snprintf(mc.self.name, sizeof(mc.self.name), "%s", name);
    snprintf(mc.self.addr, sizeof(mc.self.addr), "%s", peer_address());
    members_start(&mc);
    node_try("claim_recover", claim_recover(), "");
    node_try("members_join", members_join(1, 30, err, sizeof(err)), err);
}

/* Only in builds with the leak sanitizer. */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));
const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:libucs\nleak:libuct\nleak:libucp\n"; /* UCX keeps some until the end */
}

static int node_main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    node_try("peer_reexec", peer_reexec("127.0.0.1", argv), "");
    node_cache_size = strtoull(argv[4], NULL, 10);
    node_start(argv[2], argv[3]);
    struct order o = {.out = {members_self()}};
    while (write(NODE_FD, &o, sizeof(o)) == sizeof(o) &&
           recv(NODE_FD, &o, sizeof(o), MSG_WAITALL) == sizeof(o)) {
        void (*fn)(struct order *) = (void (*)(struct order *))((char *)node_main + o.fn);
        o.err = 0;
        fn(&o);
#define X(name, help) o.counters.name = counted(name);
        COUNTERS(X)
#undef X
    }
    /* As a crash: ends are tested elsewhere.  What leaked is known without one. */
    _exit(__lsan_do_recoverable_leak_check ? __lsan_do_recoverable_leak_check() : 0);
}

/* ---- the test's side ---- */

static void node_send(unsigned i, void (*fn)(struct order *o), struct order *o)
{
    o->fn = (char *)fn - (char *)node_main;
    ck_assert_int_eq(write(nodes[i].fd, o, sizeof(*o)), sizeof(*o));
}

static void node_wait(unsigned i, struct order *o)
{
    ck_assert_msg(recv(nodes[i].fd, o, sizeof(*o), MSG_WAITALL) == sizeof(*o), "node %u died", i);
}

static void node_run(unsigned i, void (*fn)(struct order *o), struct order *o)
{
    node_send(i, fn, o);
    node_wait(i, o);
}

/* Begins node i; nodes_ready waits for it. */
static void node_spawn(unsigned i, uint64_t cache_size)
{
    int fds[2];
    char name[16], size[32];
    snprintf(name, sizeof(name), "n%u", i);
    snprintf(size, sizeof(size), "%llu", (unsigned long long)cache_size);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
        abort();
    nodes[i].pid = fork();
    if (!nodes[i].pid) {
        if (dup2(fds[1], NODE_FD) < 0)
            _exit(1);
        for (int fd = NODE_FD + 1; fd < 64; fd++)
            close(fd);
        execl("/proc/self/exe", "node", "--node", nodes_top, name, size, (char *)NULL);
        _exit(1);
    }
    close(fds[1]);
    nodes[i].fd = fds[0];
    fcntl(fds[0], F_SETFD, FD_CLOEXEC);
}

static void order_members(struct order *o)
{
    const struct view *v = members_view();
    o->out[0] = v ? v->nmembers : 0;
    o->out[1] = members_settled();
    o->out[2] = members_self();
}

/* Runs fn on node i until it says 1 in out[0]. */
static void node_until(unsigned i, void (*fn)(struct order *o), const struct order *what,
                       const char *text)
{
    uint64_t end = boot_ms() + 45000;
    struct order o;
    do {
        o = *what;
        node_run(i, fn, &o);
        if (o.out[0] == 1)
            return;
        usleep(20000);
    } while (boot_ms() < end);
    ck_abort_msg("it did not come: %s", text);
}

/* Until every node's view has n members, and is settled: writers need not wait then. */
static void nodes_ready(unsigned n)
{
    struct order o = {0};
    for (unsigned i = 0; i < n; i++)
        node_wait(i, &o);
    for (unsigned i = 0; i < n; i++) {
        uint64_t end = boot_ms() + 60000;
        do {
            node_run(i, order_members, &o);
            usleep(20000);
        } while ((o.out[0] != n || !o.out[1]) && boot_ms() < end);
        ck_assert_msg(o.out[0] == n && o.out[1], "the nodes do not come together");
    }
    nnodes = n;
}

static int nodes_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void node_kill(unsigned i)
{
    if (nodes[i].pid > 0) {
        kill(nodes[i].pid, SIGKILL);
        waitpid(nodes[i].pid, NULL, 0);
        close(nodes[i].fd);
        nodes[i].pid = 0;
    }
}

/* Also at exit, when the test could not begin. */
static void nodes_end(void)
{
    bool bad = false;
    if (getpid() != nodes_owner)
        return;
    nodes_owner = 0;
    for (unsigned i = 0; i < NODES_MAX; i++) {
        int status = 0;
        if (nodes[i].pid <= 0)
            continue;
        kill(nodes[i].pid, SIGCONT); /* a test that failed may have left it stopped; not when it ends: LeakSanitizer stops it then */
        close(nodes[i].fd);
        waitpid(nodes[i].pid, &status, 0);
        nodes[i].pid = 0;
        bad = bad || (WIFEXITED(status) && WEXITSTATUS(status));
    }
    nftw(nodes_top, nodes_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (bad)
        abort(); /* a node ended with an error, or leaked: it said so */
}

static void nodes_begin(unsigned n, uint64_t cache_size)
{
    char path[160];
    /* Not /tmp: it may be a tmpfs. */
    const char *tmp = getenv("TMPDIR");
    snprintf(nodes_top, sizeof(nodes_top), "%s/eddy-test-XXXXXX", tmp ? tmp : "/var/tmp");
    if (!mkdtemp(nodes_top))
        abort();
    if (!nodes_owner)
        atexit(nodes_end);
    nodes_owner = getpid();
    snprintf(path, sizeof(path), "%s/pfs", nodes_top);
    mkdir(path, 0700);
    for (unsigned i = 0; i < n; i++)
        node_spawn(i, cache_size);
    nodes_ready(n);
}

/* A case of tests that share the nodes which `begin` starts. */
static inline TCase *nodes_case(const char *name, SFun begin)
{
    TCase *t = tcase_create(name);
    tcase_add_unchecked_fixture(t, begin, nodes_end);
    tcase_set_timeout(t, 60);
    return t;
}

/* ---- bytes that can be checked ---- */

static void fill_pattern(uint8_t *buf, size_t len, uint64_t seed, uint64_t off)
{
    for (size_t i = 0; i < len; i++) {
        uint64_t w = (off + i) / 8;
        buf[i] = (uint8_t)(((w + seed) * 0x9e3779b97f4a7c15ull) >> ((off + i) % 8 * 8));
    }
}

static uint64_t hash_pattern(size_t len, uint64_t seed, uint64_t off)
{
    uint8_t *buf = xmalloc(len + 1);
    fill_pattern(buf, len, seed, off);
    uint64_t h = XXH3_64bits(buf, len);
    free(buf);
    return h;
}

/* a, b: a file's mtime and ctime.  out: is what this node reads of it now not racy? */
static void order_is_old(struct order *o)
{
    struct version v = {.mtime_ns = (int64_t)o->a, .ctime_ns = (int64_t)o->b};
    o->out[0] = !version_racy(&v, real_ns() + session_clock_offset_ns());
}

/* Until it is so on all nodes. */
static void nodes_find_old(const char *name)
{
    char path[256];
    struct stat st;
    struct order o = {0};
    snprintf(path, sizeof(path), "%s/pfs/%s", nodes_top, name);
    ck_assert_int_eq(stat(path, &st), 0);
    o.a = (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
    o.b = (uint64_t)st.st_ctim.tv_sec * 1000000000 + (uint64_t)st.st_ctim.tv_nsec;
    for (unsigned i = 0; i < nnodes; i++)
        if (nodes[i].pid > 0)
            node_until(i, order_is_old, &o, "the file is older than a time stamp's grain");
}

/* A file on the PFS, as somebody outside the session would make it.  Old when this returns. */
static void pfs_make(const char *name, size_t len, uint64_t seed)
{
    char path[256];
    uint8_t *buf = xmalloc(len + 1);
    fill_pattern(buf, len, seed, 0);
    snprintf(path, sizeof(path), "%s/pfs/%s", nodes_top, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, buf, len), (ssize_t)len);
    close(fd);
    free(buf);
    nodes_find_old(name);
}

static uint64_t pfs_hash(const char *name, size_t *len)
{
    char path[256];
    struct stat st;
    snprintf(path, sizeof(path), "%s/pfs/%s", nodes_top, name);
    int fd = open(path, O_RDONLY);
    ck_assert_int_ge(fd, 0);
    fstat(fd, &st);
    uint8_t *buf = xmalloc((size_t)st.st_size + 1);
    ck_assert_int_eq(read(fd, buf, (size_t)st.st_size), st.st_size);
    *len = (size_t)st.st_size;
    uint64_t h = XXH3_64bits(buf, *len);
    free(buf);
    close(fd);
    return h;
}

/* ---- orders: what a node does ---- */

#define HANDLES 16
static struct {
    struct data_handle *h;
} node_handles[HANDLES];

/* name, a: handle's number, b: O_* flags (O_CREAT makes it). */
static void order_open(struct order *o)
{
    struct pfs_node *n = pfs_child(pfs_root(), o->name);
    struct pfs_made made = {.fd = -1};
    struct file *f = NULL;
    bool write = (o->b & O_ACCMODE) != O_RDONLY;
    enum data_use use = !write ? DATA_READS : o->b & O_APPEND ? DATA_APPENDS : DATA_WRITES;
    uint64_t looked_ms = boot_ms();
    if (o->b & O_CREAT)
        o->err = pfs_create(pfs_root(), o->name, (int)o->b, 0600, NULL, &made);
    else
        o->err = pfs_stat(n, &made.stx);
    if (!o->err)
        o->err = file_get(fid_of(&made.stx), o->name, &f);
    if (!o->err && made.fd >= 0)
        pfs_adopt_fd(f, made.fd, true);
    else if (!o->err)
        o->err = pfs_open_file(f, n, write, NULL, &made.stx);
    if (!o->err) {
        o->err = data_open(f, use, o->b & O_TRUNC, &made.stx, looked_ms, made.stx.stx_nlink > 0,
                           &node_handles[o->a].h);
        if (o->err)
            pfs_release(f);
    }
    if (f)
        file_put(f);
    pfs_unref(n);
}

static void order_close(struct order *o)
{
    struct data_handle *h = node_handles[o->a].h;
    struct file *f = file_ref(h->f);
    data_close(h);
    pfs_release(f);
    file_put(f);
    node_handles[o->a].h = NULL;
}

/* As the mount reads: from the store if all is there, else waiting.  out: bytes got, their hash, ms
 * it took. */
static void order_read(struct order *o)
{
    struct data_handle *h = node_handles[o->a].h;
    uint8_t *buf = xmalloc(o->len + 1);
    uint64_t begun = boot_ms();
    struct store_hit hit;
    size_t got = 0;
    if (data_read_begin(h, o->off, o->len, true, &hit) > 0) {
        got = hit.len;
        o->err = store_read_copy(&hit, buf);
        store_read_end(&hit);
    } else {
        o->err = data_read(h, buf, o->len, o->off, &got);
    }
    o->out[0] = got;
    o->out[1] = XXH3_64bits(buf, got);
    o->out[2] = boot_ms() - begun;
    o->out[3] = got ? buf[0] : 0;
    o->out[4] = got ? buf[got - 1] : 0;
    free(buf);
}

/* off, len, b: seed of the pattern (or, O_APPEND in out[0] != 0, appended).  out: where it went. */
static void order_write(struct order *o)
{
    struct data_handle *h = node_handles[o->a].h;
    enum carry_op op = o->out[0] ? CARRY_APPEND : CARRY_WRITE;
    uint8_t *buf = xmalloc(o->len + 1);
    uint64_t off = o->off;
    fill_pattern(buf, o->len, o->b, o->off);
    o->err = data_write_now(h, op, buf, o->len, o->off, &off);
    if (o->err == -EAGAIN)
        o->err = data_write(h, op, buf, o->len, o->off, &off);
    o->out[0] = off;
    free(buf);
}

static void order_truncate(struct order *o)
{
    o->err = data_truncate(node_handles[o->a].h, o->len);
}

static void order_sync(struct order *o)
{
    o->err = data_sync(node_handles[o->a].h, false);
}

/* out: where, node, size, counter. */
static void order_attr(struct order *o)
{
    struct location at;
    data_attr(node_handles[o->a].h, &at);
    o->out[0] = at.where;
    o->out[1] = at.node;
    o->out[2] = at.size;
    o->out[3] = at.counter;
}

static void order_revalidate(struct order *o)
{
    bool changed;
    struct data_tag now;
    o->err = data_revalidate(node_handles[o->a].h, &changed, &now);
    o->out[0] = changed;
}

/* What flush/ does, by hand and at once: copies what is dirty to the PFS.  a: handle, or name. */
static int flush_by_hand(struct file *f)
{
    static uint8_t buf[4 << 20];
    struct file_info info;
    struct snapshot *s;
    struct statx stx;
    store_info(f, &info);
    uint64_t change = info.change;
    if (!info.dirty)
        return 0;
    bool loan = fid_is_loan(f->fid), alone = !loan && !info.lent;
    if (!loan)
        store_flush_begins(f);
    int err = pfs_write_begin(f, &stx);
    uint64_t from = 0;
    bool last = false;
    while (!err && !last && (err = store_snapshot(f, from, sizeof(buf), &s)) == 0) {
        if (s->cut != NO_CUT)
            err = pfs_truncate(f, s->cut);
        for (size_t i = 0; i < s->nextents && !err; i++) {
            err = s->extents[i].len > sizeof(buf)
                      ? -EFBIG
                      : store_pread(f, buf, s->extents[i].len, s->extents[i].off);
            if (!err)
                err = pfs_write(f, buf, s->extents[i].len, s->extents[i].off);
            from = s->extents[i].off + s->extents[i].len;
        }
        if (!err && alone)
            err = pfs_truncate(f, s->size);
        last = s->last || !s->nextents;
        store_snapshot_done(s, !err);
    }
    if (loan) {
        pfs_write_abort(f);
        store_loan_flushed(f, change, NULL);
        return err == -ENODATA ? 0 : err;
    }
    if (!err || err == -ENODATA)
        err = pfs_write_end(f, info.mtime_ns, &stx);
    if (!err) {
        struct version v = version_of(&stx);
        store_flushed(f, &v, change, NULL);
    }
    return err;
}

/* ... as what makes room. */
static int flush_for_room(struct file *f, uint64_t *seen)
{
    (void)seen;
    return flush_by_hand(f);
}

static struct file *node_file(const char *name)
{
    struct pfs_node *n = pfs_child(pfs_root(), name);
    struct statx stx;
    int err = pfs_stat(n, &stx);
    pfs_unref(n);
    return err ? NULL : file_find(fid_of(&stx));
}

/* What this node has borrowed of it. */
static int flush_loan(struct file *f)
{
    struct file *loan = file_find_used(fid_of_loan(f->fid));
    int err = loan ? flush_by_hand(loan) : 0;
    if (loan && !err)
        borrow_flushed(loan);
    if (loan)
        file_put(loan);
    return err;
}

/* name: to the PFS, and the claim back if nobody writes. */
static void order_flush(struct order *o)
{
    struct file *f = node_file(o->name);
    if (!f) {
        o->err = -ENOENT;
        return;
    }
    o->err = flush_by_hand(f);
    if (!o->err)
        o->err = flush_loan(f);
    claim_give_back(f);
    file_put(f);
}

/* name: out: is nothing of it lent? */
static void order_all_is_back(struct order *o)
{
    struct file *f = node_file(o->name);
    o->out[0] = !f || !store_is_lent(f);
    if (f)
        file_put(f);
}

/* out: claims of this node. */
static void order_claims(struct order *o)
{
    o->out[0] = claim_held();
}

/* name, off: out: nodes of the chunk's turns 0 and 1, home. */
static void order_owner(struct order *o)
{
    struct pfs_node *n = pfs_child(pfs_root(), o->name);
    struct statx stx;
    o->err = pfs_stat(n, &stx);
    pfs_unref(n);
    if (o->err)
        return;
    const struct ring *r = ring_of(members_view());
    o->out[0] = ring_owner(r, fid_of(&stx), o->off / NODE_CHUNK, 0);
    o->out[1] = ring_owner(r, fid_of(&stx), o->off / NODE_CHUNK, 1);
    o->out[2] = ring_home(r, fid_of(&stx), 0);
}

#endif
