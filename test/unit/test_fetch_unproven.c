/* test_fetch_unproven.c - bytes from the PFS are given before the look that proves of which version
 * they are, but only where no node of the session can be writing the file there. */
#include "fetch_env.h"

#include "placement/chunks/chunk.h"
#include "placement/chunks/flight.h"
#include "placement/chunks/proof.h"
#include "placement/claims/home.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"
#include "placement/store/store_read.h"
#include "transport/hash.h"

#include <semaphore.h>
#include <sys/syscall.h>

/* ---- a read in a node ---- */

struct reader {
    struct flight_call call;
    struct flight_reader r;
};

static struct {
    struct file *_Atomic f;
    struct chunk_key key;
    struct pfs_node *node; /* becomes another version as soon as the bytes are here; or NULL */
    struct reader first, second; /* the second one comes when the first one's bytes are out */
    _Atomic bool waits;          /* for the look that follows */
    sem_t looks;                 /* ... which begins */
} reading;

static void begin_read(struct reader *r)
{
    r->r = (struct flight_reader){
        .file = reading.f, .takes = true, .looked = flight_ended(reading.f->fid)};
    flight_call_init(&r->call);
    flight_join(&r->call, &reading.key, &r->r, chunk_new(ROOM_ASK, NODE_CHUNK));
}

/* Bytes are read, and the look that proves of which version they are is about to begin. */
static void before_the_look(void)
{
    if (reading.node)
        pfs_chmod(reading.node, 0640, NULL);
    begin_read(&reading.second);
    sem_post(&reading.looks);
}

static _Thread_local bool reads;

/* This program's: a look of the thread that has read bytes is the one that proves them. */
int statx(int dirfd, const char *restrict path, int flags, unsigned mask,
          struct statx *restrict stx)
{
    bool proves = reads && reading.f && proofs_now(reading.f).any &&
                  atomic_exchange(&reading.waits, false);
    reads = false;
    if (proves)
        before_the_look();
    return (int)syscall(SYS_statx, dirfd, path, flags, mask, stx);
}

ssize_t pread(int fd, void *buf, size_t len, off_t off)
{
    reads = true;
    return syscall(SYS_pread64, fd, buf, len, off);
}

/* Its end.  hash: of its bytes. */
static int end_read(struct reader *r, uint64_t *hash)
{
    struct flight_reader *p = flight_next(&r->call, 0);
    int err = p->err;
    if (!err)
        *hash = data_hash(p->chunk->data, p->chunk->len);
    flight_put(p);
    flight_call_destroy(&r->call);
    return err;
}

/* name, off: that chunk of the version that the store has, of a file that is open here.  b: the
 * PFS's file changes as soon as the bytes are out.  err: of the first reader, or of the proof.  out: were its
 * bytes early, their hash, did the second reader have them early, the second one's error. */
static void order_hasty(struct order *o)
{
    struct file_info info;
    uint64_t other;
    memset(&reading, 0, sizeof(reading));
    reading.f = node_file(o->name);
    store_info(reading.f, &info);
    reading.key = (struct chunk_key){
        .fid = reading.f->fid, .index = o->off / NODE_CHUNK, .version = info.base};
    if (o->b)
        reading.node = pfs_child(pfs_root(), o->name);
    sem_init(&reading.looks, 0, 0);
    reading.waits = true;
    begin_read(&reading.first);
    o->err = end_read(&reading.first, &o->out[1]);
    o->out[0] = reading.first.r.early;
    if (o->out[0]) {
        sem_wait(&reading.looks);
        o->err = end_read(&reading.second, &other);
        o->out[2] = reading.second.r.early;
        o->out[3] = (uint64_t)-o->err;
    }
    struct fetch stored = {.v = info.base, .off = o->off, .len = NODE_CHUNK};
    if (!o->err)
        o->err = fetch_range(reading.f, &stored, NULL);
    if (reading.node)
        pfs_unref(reading.node);
    file_put(reading.f);
    reading.f = NULL;
}

/* ---- who is sure ---- */

static struct home_moment then;

/* name: is it unclaimed, as this node knows?  out: now, since it was asked last. */
static void order_unclaimed(struct order *o)
{
    struct file *f = node_file(o->name);
    o->err = f ? 0 : -ENOENT;
    if (!f)
        return;
    o->out[1] = home_unclaimed_since(f->fid, &then);
    o->out[0] = home_unclaimed_here(f->fid, &then);
    file_put(f);
}

static struct order unclaimed(unsigned i, const char *name)
{
    struct order o = {0};
    snprintf(o.name, sizeof(o.name), "%s", name);
    node_run(i, order_unclaimed, &o);
    ck_assert_int_eq(o.err, 0);
    return o;
}

/* The file's home; it is open on all nodes with this handle, and a chunk of it is in their stores. */
static unsigned open_on_all(const char *name, uint64_t seed, unsigned *other)
{
    unsigned home = N;
    pfs_make(name, 80 * NODE_CHUNK, seed);
    for (unsigned i = 0; i < N; i++) {
        open_on(i, name, 7);
        struct order r = read_on(i, 7, 0, NODE_CHUNK);
        assert_bytes(&r, NODE_CHUNK, seed);
    }
    for (unsigned i = 0; i < N; i++) {
        if (!unclaimed(i, name).out[0])
            *other = i;
        else if (home == N)
            home = i;
        else
            ck_abort_msg("two nodes are sure that %s is unclaimed", name);
    }
    ck_assert_msg(home < N, "no node is sure that %s is unclaimed", name);
    return home;
}

static void close_on_all(void)
{
    for (unsigned i = 0; i < N; i++)
        close_on(i, 7);
}

/* A chunk that the owner owns and node i has not.  One of its own: no former owner is asked. */
static uint64_t absent_chunk_of(unsigned owner, unsigned i, const char *name)
{
    for (uint64_t off = 70 * NODE_CHUNK; off; off -= NODE_CHUNK) {
        struct order o = {.a = 7, .off = off, .len = NODE_CHUNK};
        if (owner_of(name, off, 0, NULL) != owner)
            continue;
        node_run(i, order_missing, &o);
        if (!o.out[0])
            return off;
    }
    ck_abort_msg("all of %s is here", name);
}

static uint64_t absent_chunk(unsigned i, const char *name)
{
    return absent_chunk_of(i, i, name);
}

static struct order hasty_read(unsigned i, const char *name, bool change)
{
    struct order o = {.off = absent_chunk(i, name), .b = change};
    snprintf(o.name, sizeof(o.name), "%s", name);
    node_run(i, order_hasty, &o);
    return o;
}

static void assert_chunk(const struct order *o, uint64_t seed)
{
    uint8_t *buf = xmalloc(NODE_CHUNK);
    fill_pattern(buf, NODE_CHUNK, seed, o->off);
    ck_assert_msg(o->out[1] == data_hash(buf, NODE_CHUNK), "wrong bytes");
    free(buf);
}

/* A reader that comes later waits for the proof: the bytes may be older than its call. */
START_TEST(the_home_gives_bytes_before_they_are_proved)
{
    unsigned other, home = open_on_all("given", 31, &other);
    struct order o = hasty_read(home, "given", false);
    assert_chunk(&o, 31);
    ck_assert_int_eq(o.err, 0);
    ck_assert(o.out[0] && !o.out[2]);
    ck_assert_uint_eq(o.out[3], 0);
    o = hasty_read(home, "given", true);
    assert_chunk(&o, 31);
    ck_assert_int_eq(o.err, -ESTALE);
    ck_assert(o.out[0] && !o.out[2]);
    ck_assert_uint_eq(o.out[3], ESTALE);
    struct order m = {.a = 7, .off = o.off, .len = NODE_CHUNK};
    node_run(home, order_missing, &m);
    ck_assert_uint_eq(m.out[0], 0);
    close_on_all();
}
END_TEST

/* After a proof that failed the next read begins with a look, before anything is given; and what is in
 * the store is not read any more. */
START_TEST(what_was_wrong_once_is_looked_at_first)
{
    unsigned other, home = open_on_all("wrong once", 32, &other);
    struct order o = hasty_read(home, "wrong once", true);
    ck_assert_int_eq(o.err, -ESTALE);
    o = hasty_read(home, "wrong once", false);
    ck_assert_int_eq(o.err, -ESTALE);
    ck_assert(!o.out[0]);
    struct order before = totals(), r = read_on(home, 7, 0, NODE_CHUNK);
    assert_bytes(&r, NODE_CHUNK, 32);
    struct order after = totals();
    ck_assert_uint_gt(after.counters.pfs_read_bytes, before.counters.pfs_read_bytes);
    close_on_all();
}
END_TEST

/* A peer may still have the bytes of the version that is in doubt. */
START_TEST(after_newer_bytes_a_peer_does_not_bring_older_ones)
{
    unsigned other, home = open_on_all("from a peer", 35, &other);
    uint64_t off = absent_chunk_of(other, home, "from a peer");
    struct order r = read_on(other, 7, off, NODE_CHUNK);
    assert_bytes(&r, NODE_CHUNK, 35);
    until_stored(other, 7, off, NODE_CHUNK);
    struct order o = hasty_read(home, "from a peer", true);
    ck_assert_int_eq(o.err, -ESTALE);
    ck_assert(o.out[0]);
    pfs_make("from a peer", 80 * NODE_CHUNK, 36);
    r = read_on(home, 7, off, NODE_CHUNK);
    assert_bytes(&r, NODE_CHUNK, 36);
    close_on_all();
}
END_TEST

/* ---- a whole file in the store, of which something is read once more ---- */

static struct unproven outstanding;

/* a: handle.  b: 0: a proof begins; else it ends, len: with this error. */
static void order_proof(struct order *o)
{
    struct file *f = node_handles[o->a].h->f;
    struct file_info info;
    store_info(f, &info);
    if (o->b)
        proof_end(f, &outstanding, &info.base, -(int)o->len);
    else
        proof_begin(f, &outstanding);
}

/* a: handle.  May it be opened in passthrough? */
static void order_pass(struct order *o)
{
    int fd;
    unsigned life;
    o->err = data_kernel_io_open(node_handles[o->a].h, &fd, &life);
    if (!o->err)
        data_kernel_io_close(node_handles[o->a].h, life);
}

static void begin_proof(unsigned i)
{
    struct order o = {.a = 7};
    node_run(i, order_proof, &o);
}

static void fail_proof(unsigned i, unsigned err)
{
    struct order o = {.a = 7, .b = 1, .len = err};
    node_run(i, order_proof, &o);
}

static int passes(unsigned i)
{
    struct order o = {.a = 7};
    node_run(i, order_pass, &o);
    return o.err;
}

START_TEST(no_open_passes_while_there_is_doubt_and_a_look_that_finds_the_same_ends_it)
{
    pfs_make("whole", NODE_CHUNK, 37);
    open_on(0, "whole", 7);
    struct order r = read_on(0, 7, 0, NODE_CHUNK);
    assert_bytes(&r, NODE_CHUNK, 37);
    until_stored(0, 7, 0, NODE_CHUNK);
    ck_assert_int_eq(passes(0), 0);
    begin_proof(0);
    ck_assert_int_eq(passes(0), -ENODATA);
    fail_proof(0, EIO);
    ck_assert_int_eq(passes(0), -ENODATA);
    struct order before = totals();
    r = read_on(0, 7, 0, NODE_CHUNK);
    assert_bytes(&r, NODE_CHUNK, 37);
    struct order after = totals();
    ck_assert_uint_eq(after.counters.pfs_read_bytes, before.counters.pfs_read_bytes);
    ck_assert_int_eq(passes(0), 0);
    close_on(0, 7);
}
END_TEST

START_TEST(another_node_gives_bytes_when_they_are_proved)
{
    unsigned other = N;
    open_on_all("proved", 33, &other);
    struct order o = hasty_read(other, "proved", false);
    assert_chunk(&o, 33);
    ck_assert_int_eq(o.err, 0);
    ck_assert(!o.out[0]);
    close_on_all();
}
END_TEST

START_TEST(a_claim_is_seen_while_it_is_there_and_after)
{
    unsigned other = N, home = open_on_all("claimed", 34, &other);
    struct order o = unclaimed(home, "claimed");
    ck_assert(o.out[0] && o.out[1]);
    struct order w = {.a = 8, .b = O_RDWR, .name = "claimed"};
    node_run(other, order_open, &w);
    ck_assert_int_eq(w.err, 0);
    w = (struct order){.a = 8, .off = 100, .len = 200, .b = 34};
    node_run(other, order_write, &w);
    o = unclaimed(home, "claimed");
    ck_assert(!o.out[0] && !o.out[1]);
    close_on(other, 8);
    struct order fl = {.name = "claimed"};
    node_run(other, order_flush, &fl);
    ck_assert_int_eq(fl.err, 0);
    /* `then` is still what it was before the claim */
    do
        o = unclaimed(home, "claimed");
    while (!o.out[0] && !o.out[1]);
    ck_assert(o.out[0] && !o.out[1]);
    o = unclaimed(home, "claimed");
    ck_assert(o.out[0] && o.out[1]);
    close_on_all();
}
END_TEST

int main(int argc, char **argv)
{
    if (node_is(argc, argv))
        return node_main(argc, argv);
    TCase *t = three_nodes();
    tcase_add_test(t, the_home_gives_bytes_before_they_are_proved);
    tcase_add_test(t, what_was_wrong_once_is_looked_at_first);
    tcase_add_test(t, after_newer_bytes_a_peer_does_not_bring_older_ones);
    tcase_add_test(t, no_open_passes_while_there_is_doubt_and_a_look_that_finds_the_same_ends_it);
    tcase_add_test(t, another_node_gives_bytes_when_they_are_proved);
    tcase_add_test(t, a_claim_is_seen_while_it_is_there_and_after);
    return run_case("fetch_unproven", t);
}
