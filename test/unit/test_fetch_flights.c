/* test_fetch_flights.c - one flight for each chunk: readers of its node and other nodes share it, whatever
 * becomes of it, and a reader waits no longer than its deadline. */
#include "fetch_env.h"

#include "placement/chunks/flight.h"
#include "transport/times.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>

/* ---- a PFS that stands still, or fails: this program's reads of it, in a node ---- */

static struct {
    struct file *f;         /* whose chunk ... */
    struct chunk_key key;   /* ... this is, in the version that the store has */
    _Atomic off_t off;      /* reads there are held, or fail */
    _Atomic int held, err;  /* are they? */
    _Atomic unsigned reads; /* that were held, or failed */
    sem_t begun, go;
} pfs;

ssize_t pread(int fd, void *buf, size_t len, off_t off)
{
    bool here = off == pfs.off && len == NODE_CHUNK;
    if (here && pfs.held) {
        pfs.reads++;
        sem_post(&pfs.begun);
        while (sem_wait(&pfs.go))
            ;
        sem_post(&pfs.go);
    }
    if (here && pfs.err) {
        pfs.reads++;
        errno = pfs.err;
        return -1;
    }
    return syscall(SYS_pread64, fd, buf, len, off);
}

/* a: handle, off: of the chunk.  b: reads of it are held until order_let_go; else they fail, len: with that. */
static void order_hold(struct order *o)
{
    struct file_info info;
    pfs.f = node_handles[o->a].h->f;
    store_info(pfs.f, &info);
    pfs.key = (struct chunk_key){
        .fid = pfs.f->fid, .index = o->off / NODE_CHUNK, .version = info.base};
    pfs.off = (off_t)o->off;
    sem_init(&pfs.begun, 0, 0);
    sem_init(&pfs.go, 0, 0);
    pfs.reads = 0;
    pfs.err = (int)o->len;
    pfs.held = (int)o->b;
}

static void order_let_go(struct order *o)
{
    (void)o;
    pfs.held = pfs.err = 0;
    sem_post(&pfs.go);
}

/* Until a read is held. */
static void order_until_held(struct order *o)
{
    (void)o;
    sem_wait(&pfs.begun);
}

static void hold_on(unsigned i, uint64_t off)
{
    struct order o = {.a = 7, .off = off, .b = true};
    node_run(i, order_hold, &o);
}

/* ---- who has what ---- */

/* Three nodes have the file open, as handle 7.  Returns the offset of a chunk that node *owner owns, *next is
 * next for, and *third is neither. */
static uint64_t open_on_all(const char *name, uint64_t seed, unsigned *owner, unsigned *next,
                            unsigned *third)
{
    pfs_make(name, 40 * NODE_CHUNK, seed);
    for (unsigned i = 0; i < N; i++)
        open_on(i, name, 7);
    *owner = owner_of(name, 0, 0, NULL);
    *next = owner_of(name, 0, 1, NULL);
    *third = N - *owner - *next;
    return 0;
}

static void close_on_all(void)
{
    for (unsigned i = 0; i < N; i++)
        close_on(i, 7);
}

static uint64_t pfs_bytes(void)
{
    return totals().counters.pfs_read_bytes;
}

/* ---- readers and FETCHes of one chunk ---- */

struct peer {
    struct flight_peer p;
    sem_t done;
    int err;
    bool right;
};

static void on_done(struct flight_peer *p, int err, struct chunk *c)
{
    struct peer *peer = container_of(p, struct peer, p);
    peer->err = err;
    peer->right = !err && c->len == NODE_CHUNK && XXH3_64bits(c->data, c->len) == c->hash;
    sem_post(&peer->done);
}

/* As serve.c does for another node. */
static void ask_as_peer(struct peer *peer, uint64_t looked)
{
    struct flight_served w = {.key = pfs.key,
                              .file = pfs.f,
                              .before = pfs.key.version,
                              .before_known = true,
                              .looked = looked};
    *peer = (struct peer){.p.done = on_done};
    sem_init(&peer->done, 0, 0);
    flight_serve(&w, chunk_new(ROOM_SERVE, NODE_CHUNK), &peer->p);
}

struct reading {
    pthread_t thread;
    struct fetch want;
    int err;
    size_t got;
    uint64_t took_ms;
};

static void *run_reading(void *arg)
{
    struct reading *r = arg;
    uint64_t begun = boot_ms();
    r->err = fetch_range(pfs.f, &r->want, &r->got);
    r->took_ms = boot_ms() - begun;
    return NULL;
}

/* Of the chunk that order_hold named, in a thread. */
static void begin_reading(struct reading *r, uint64_t looked)
{
    *r = (struct reading){.want = {.v = pfs.key.version,
                                   .off = (uint64_t)pfs.off,
                                   .len = NODE_CHUNK,
                                   .buf = xmalloc(NODE_CHUNK),
                                   .looked = looked}};
    pthread_create(&r->thread, NULL, run_reading, r);
}

static uint64_t end_reading(struct reading *r)
{
    pthread_join(r->thread, NULL);
    uint64_t hash = r->err ? 0 : XXH3_64bits(r->want.buf, r->got);
    free(r->want.buf);
    return hash;
}

/* The chunk's read is held: a reader has begun it; another node asks.  out: do both have the bytes, how often
 * the PFS was read, the reader's hash. */
static void order_reader_then_peer(struct order *o)
{
    struct reading r;
    struct peer p;
    begin_reading(&r, fetch_looks(pfs.f));
    sem_wait(&pfs.begun);
    ask_as_peer(&p, fetch_looks(pfs.f));
    order_let_go(o);
    sem_wait(&p.done);
    o->out[2] = end_reading(&r);
    o->out[0] = !r.err && p.right;
    o->out[1] = pfs.reads;
}

/* The other way round: the reader has joined when flight_join returns. */
static void order_peer_then_reader(struct order *o)
{
    struct peer p;
    struct flight_call call;
    struct flight_reader r = {.file = pfs.f, .takes = true, .looked = fetch_looks(pfs.f)};
    flight_call_init(&call);
    ask_as_peer(&p, fetch_looks(pfs.f));
    sem_wait(&pfs.begun);
    o->err = flight_join(&call, &pfs.key, &r, NULL) ? 0 : -ENOENT;
    order_let_go(o);
    if (!o->err && flight_next(&call, 0) == &r) {
        o->out[2] = r.err ? 0 : XXH3_64bits(r.chunk->data, r.chunk->len);
        flight_put(&r);
    }
    sem_wait(&p.done);
    o->out[0] = p.right;
    o->out[1] = pfs.reads;
    flight_call_destroy(&call);
}

static void share_a_read(const char *name, void (*how)(struct order *o))
{
    unsigned owner, next, third;
    uint64_t off = open_on_all(name, 41, &owner, &next, &third), before = pfs_bytes();
    hold_on(owner, off);
    struct order o = {.off = off};
    node_run(owner, how, &o);
    ck_assert_int_eq(o.err, 0);
    ck_assert_uint_eq(o.out[0], 1);
    ck_assert_uint_eq(o.out[1], 1);
    ck_assert(o.out[2] == hash_pattern(NODE_CHUNK, 41, off));
    ck_assert_uint_eq(pfs_bytes() - before, NODE_CHUNK);
    until_stored(owner, 7, off, NODE_CHUNK);
    close_on_all();
}

START_TEST(a_reader_and_a_peer_of_one_chunk_read_the_pfs_once)
{
    share_a_read("reader first", order_reader_then_peer);
    share_a_read("peer first", order_peer_then_reader);
}
END_TEST

/* The chunk came into the store after a reader and a peer had looked there.  out: do both have it? */
static void order_look_too_early(struct order *o)
{
    struct fetch store = {.v = pfs.key.version, .off = (uint64_t)pfs.off, .len = NODE_CHUNK};
    struct peer p;
    struct reading r;
    uint64_t looked = fetch_looks(pfs.f);
    o->err = fetch_range(pfs.f, &store, NULL);
    ask_as_peer(&p, looked);
    sem_wait(&p.done);
    begin_reading(&r, looked);
    o->out[2] = end_reading(&r);
    o->out[0] = !r.err && p.right;
}

START_TEST(what_came_since_somebody_looked_is_not_read_again)
{
    unsigned owner, next, third;
    uint64_t off = open_on_all("came", 49, &owner, &next, &third), before = pfs_bytes();
    hold_on(owner, off); /* only names the chunk */
    struct order o = {0};
    node_run(owner, order_let_go, &o);
    node_run(owner, order_look_too_early, &o);
    ck_assert_int_eq(o.err, 0);
    ck_assert_uint_eq(o.out[0], 1);
    ck_assert(o.out[2] == hash_pattern(NODE_CHUNK, 49, off));
    ck_assert_uint_eq(pfs_bytes() - before, NODE_CHUNK);
    close_on_all();
}
END_TEST

/* ---- a flight that fails, or whose version goes away ---- */

#define MANY 8

/* A read is held that fails with b, or finds a new version of the file of that name, when it goes on; readers
 * and peers wait for it.  out: how many had an error, how many had wrong bytes. */
static void order_many_of_one_chunk(struct order *o)
{
    struct reading r[MANY];
    struct peer p[MANY];
    uint64_t looked = fetch_looks(pfs.f);
    begin_reading(&r[0], looked);
    sem_wait(&pfs.begun);
    for (unsigned i = 1; i < MANY; i++)
        begin_reading(&r[i], looked);
    for (unsigned i = 0; i < MANY; i++)
        ask_as_peer(&p[i], looked);
    int err = (int)o->b;
    if (o->name[0]) {
        struct pfs_node *n = pfs_child(pfs_root(), o->name);
        pfs_chmod(n, 0640, NULL);
        pfs_unref(n);
    }
    pfs.held = 0;
    pfs.err = err;
    sem_post(&pfs.go);
    o->out[0] = o->out[1] = 0;
    for (unsigned i = 0; i < MANY; i++) {
        sem_wait(&p[i].done);
        end_reading(&r[i]);
        o->out[0] += (p[i].err != 0) + (r[i].err != 0);
        o->out[1] += (!p[i].err && !p[i].right) + (!r[i].err && r[i].got != NODE_CHUNK);
    }
    pfs.err = 0;
}

START_TEST(a_flight_that_fails_tells_all_that_wait_and_the_next_one_is_right)
{
    unsigned owner, next, third;
    uint64_t off = open_on_all("fails", 42, &owner, &next, &third);
    hold_on(owner, off);
    struct order o = {.b = EIO};
    node_run(owner, order_many_of_one_chunk, &o);
    ck_assert_uint_eq(o.out[0], 2 * MANY);
    struct order r = read_on(owner, 7, off, NODE_CHUNK);
    assert_bytes(&r, NODE_CHUNK, 42);
    close_on_all();
}
END_TEST

/* But the first reader may have the bytes before the look, if this node is the file's home. */
START_TEST(a_version_that_goes_away_is_told_to_all_that_wait)
{
    unsigned owner, next, third;
    uint64_t off = open_on_all("goes", 43, &owner, &next, &third);
    hold_on(owner, off);
    struct order o = {.name = "goes"};
    node_run(owner, order_many_of_one_chunk, &o);
    ck_assert_uint_ge(o.out[0], 2 * MANY - 1);
    ck_assert_uint_eq(o.out[1], 0);
    struct order r = read_on(owner, 7, off, NODE_CHUNK);
    assert_bytes(&r, NODE_CHUNK, 43);
    close_on_all();
}
END_TEST

static void *read_in_thread(void *arg)
{
    order_read(arg);
    return NULL;
}

/* a, len: handle, from its beginning.  out: have all read so much? */
static void order_read_by_many(struct order *o)
{
    pthread_t t[MANY];
    struct order part[MANY];
    for (unsigned i = 0; i < MANY; i++) {
        part[i] = *o;
        pthread_create(&t[i], NULL, read_in_thread, &part[i]);
    }
    o->out[0] = 1;
    for (unsigned i = 0; i < MANY; i++) {
        pthread_join(t[i], NULL);
        if (part[i].err || part[i].out[0] != o->len)
            o->out[0] = 0;
    }
}

/* The same file has other bytes. */
static void rewrite(const char *name, size_t len, uint64_t seed)
{
    char path[256];
    uint8_t *buf = xmalloc(len);
    fill_pattern(buf, len, seed, 0);
    snprintf(path, sizeof(path), "%s/pfs/%s", nodes_top, name);
    int fd = open(path, O_WRONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, buf, len), (ssize_t)len);
    close(fd);
    free(buf);
}

/* Others read all of it, and the owner too, while the owner's read of one chunk is held and the file becomes
 * another one. */
START_TEST(readers_on_all_nodes_outlast_a_version_that_goes_away)
{
    const size_t size = 40 * NODE_CHUNK;
    unsigned owner, next, third;
    uint64_t off = open_on_all("middle", 44, &owner, &next, &third);
    hold_on(owner, off);
    struct order o[N], held = {0};
    for (unsigned i = 0; i < N; i++)
        o[i] = (struct order){.a = 7, .len = size};
    node_send(next, order_read_by_many, &o[next]);
    node_send(third, order_read_by_many, &o[third]);
    node_run(owner, order_until_held, &held);
    rewrite("middle", size, 45);
    node_run(owner, order_let_go, &held);
    node_send(owner, order_read_by_many, &o[owner]);
    for (unsigned i = 0; i < N; i++)
        node_wait(i, &o[i]);
    nodes_find_old("middle");
    for (unsigned i = 0; i < N; i++) {
        ck_assert_uint_eq(o[i].out[0], 1);
        close_on(i, 7);
        open_on(i, "middle", 7);
        struct order r = read_on(i, 7, 0, size);
        assert_bytes(&r, size, 45);
        close_on(i, 7);
    }
}
END_TEST

/* ---- silence ---- */

static struct {
    struct msg *m; /* the FETCH that was not answered */
    sem_t asked;
} silence;

static void say_nothing(struct msg *m)
{
    msg_free(m);
}

static void keep_silent_for_now(struct msg *m)
{
    silence.m = m;
    sem_post(&silence.asked);
}

static void set_handler(void *arg)
{
    peer_handle(MSG_FETCH, arg ? keep_silent_for_now : say_nothing);
}

static void order_be_silent(struct order *o)
{
    sem_init(&silence.asked, 0, 0);
    loop_call(set_handler, (void *)(uintptr_t)o->b);
}

static void order_until_asked(struct order *o)
{
    (void)o;
    sem_wait(&silence.asked);
}

/* b: seed of the bytes; a: the hash is wrong. */
static void order_answer_late(struct order *o)
{
    struct msg *m = silence.m, *r = msg_new(MSG_CHUNK);
    r->chunk.fid = m->fetch.fid;
    r->chunk.index = m->fetch.index;
    r->chunk.version = m->fetch.version;
    r->head.data_len = NODE_CHUNK;
    r->data = peer_buffer_try(NODE_CHUNK);
    fill_pattern(r->data, NODE_CHUNK, o->b, m->fetch.index * NODE_CHUNK);
    r->chunk.hash = XXH3_64bits(r->data, NODE_CHUNK) + o->a;
    r->free_data = peer_buffer_free_data;
    peer_reply(m, r);
    msg_free(m);
}

static void start_again(void *arg)
{
    (void)arg;
    fetch_start();
}

static void order_behave(struct order *o)
{
    (void)o;
    fetch_stop();
    loop_call(start_again, NULL);
}

static void silent_on(unsigned i, bool for_now)
{
    struct order o = {.b = for_now};
    node_run(i, order_be_silent, &o);
}

static void behave_on(unsigned i)
{
    struct order o = {0};
    node_run(i, order_behave, &o);
}

/* The chunk that order_hold named, for len ms.  out: ms that it took, reads of the PFS that were held. */
static void order_read_until(struct order *o)
{
    struct fetch want = {.v = pfs.key.version,
                         .off = (uint64_t)pfs.off,
                         .len = NODE_CHUNK,
                         .buf = xmalloc(NODE_CHUNK),
                         .looked = fetch_looks(pfs.f)};
    uint64_t begun = boot_ms();
    want.end_ms = begun + o->len;
    o->err = fetch_range(pfs.f, &want, NULL);
    o->out[0] = boot_ms() - begun;
    o->out[1] = pfs.reads;
    o->out[2] = o->err ? 0 : XXH3_64bits(want.buf, NODE_CHUNK);
    free(want.buf);
}

static struct order read_until(unsigned i, uint64_t ms)
{
    struct order o = {.len = ms};
    node_run(i, order_read_until, &o);
    return o;
}

/* It is over in one of the steps: the owner's silence, the next node's, the PFS's.  The next reader has a
 * deadline of its own. */
static void read_late(const char *name, uint64_t ms, bool comes_to_the_pfs)
{
    unsigned owner, next, third;
    uint64_t off = open_on_all(name, 46, &owner, &next, &third), before = pfs_bytes();
    silent_on(owner, false);
    silent_on(next, false);
    hold_on(third, off);
    struct order o = read_until(third, ms);
    ck_assert_int_eq(o.err, -ETIMEDOUT);
    ck_assert_uint_ge(o.out[0], ms);
    ck_assert_uint_lt(o.out[0], ms + 2500);
    ck_assert_uint_eq(o.out[1], comes_to_the_pfs);
    o = read_until(third, 100);
    ck_assert_int_eq(o.err, -ETIMEDOUT);
    ck_assert_uint_eq(o.out[1], comes_to_the_pfs);
    struct order go = {0};
    node_run(third, order_let_go, &go);
    o = read_on(third, 7, off, NODE_CHUNK);
    assert_bytes(&o, NODE_CHUNK, 46);
    ck_assert_uint_eq(pfs_bytes() - before, NODE_CHUNK);
    behave_on(owner);
    behave_on(next);
    close_on_all();
}

START_TEST(a_deadline_holds_over_all_steps)
{
    read_late("late at the owner", 500, false);
    read_late("late at the next", 4000, false);
    read_late("late at the PFS", 9000, true);
}
END_TEST

/* All readers have given up when an answer comes: what is right is kept, what is wrong is not, and the next
 * reader goes on. */
static void answer_nobody(const char *name, bool wrong)
{
    unsigned owner, next, third;
    uint64_t off = open_on_all(name, 47, &owner, &next, &third), before = pfs_bytes();
    silent_on(owner, true);
    hold_on(third, off); /* only names the chunk */
    struct order o = {0};
    node_run(third, order_let_go, &o);
    o = read_until(third, 100);
    ck_assert_int_eq(o.err, -ETIMEDOUT);
    node_run(owner, order_until_asked, &o);
    o = (struct order){.a = wrong, .b = 47};
    node_run(owner, order_answer_late, &o);
    if (!wrong)
        until_stored(third, 7, off, NODE_CHUNK);
    behave_on(owner);
    o = read_on(third, 7, off, NODE_CHUNK);
    assert_bytes(&o, NODE_CHUNK, 47);
    ck_assert_uint_eq(pfs_bytes() - before, wrong ? NODE_CHUNK : 0);
    close_on_all();
}

START_TEST(an_answer_for_which_nobody_waits_is_checked_and_kept)
{
    answer_nobody("nobody", false);
    answer_nobody("nobody wrong", true);
}
END_TEST

/* ---- a FETCH beside a question ---- */

static struct reading beside;

static void order_begin_reading(struct order *o)
{
    (void)o;
    begin_reading(&beside, fetch_looks(pfs.f));
}

/* out: has the peer the bytes, and the reader; the reader's hash, ms that it waited. */
static void order_ask_beside(struct order *o)
{
    struct peer p;
    ask_as_peer(&p, fetch_looks(pfs.f));
    sem_wait(&p.done);
    o->out[0] = p.right;
    o->out[2] = end_reading(&beside);
    o->out[1] = !beside.err;
    o->out[3] = beside.took_ms;
}

/* Nodes do not wait for each other: what the PFS brings for a peer is the reader's too. */
START_TEST(a_peer_does_not_wait_for_what_a_reader_asks_another_node)
{
    unsigned owner, next, third;
    uint64_t off = open_on_all("beside", 48, &owner, &next, &third), before = pfs_bytes();
    silent_on(owner, true);
    hold_on(third, off); /* only names the chunk */
    struct order o = {0};
    node_run(third, order_let_go, &o);
    node_run(third, order_begin_reading, &o);
    node_run(owner, order_until_asked, &o);
    node_run(third, order_ask_beside, &o);
    ck_assert(o.out[0] && o.out[1]);
    ck_assert(o.out[2] == hash_pattern(NODE_CHUNK, 48, off));
    ck_assert_uint_lt(o.out[3], 2500); /* less than the owner may be silent */
    o = (struct order){.b = 48};
    node_run(owner, order_answer_late, &o);
    behave_on(owner);
    ck_assert_uint_eq(pfs_bytes() - before, NODE_CHUNK);
    close_on_all();
}
END_TEST

/* ---- read-ahead of a PFS that hangs ---- */

#define JOBS 16 /* stream.c's */

static struct data_handle *stuck[JOBS];

/* name, a: opens it as number a of those whose reads hang: it is fetched whole. */
static void order_open_stuck(struct order *o)
{
    struct order open = *o;
    open.a = 0;
    order_open(&open);
    o->err = open.err;
    stuck[o->a] = node_handles[0].h;
    node_handles[0].h = NULL;
}

static void order_close_stuck(struct order *o)
{
    order_let_go(o);
    times.open = TIMES_DEFAULT.open;
    for (unsigned i = 0; i < JOBS; i++) {
        node_handles[0].h = stuck[i];
        order_close(&(struct order){.a = 0});
    }
}

/* The first chunk of each file is held; an open waits for that many ms: a. */
static void order_hold_all(struct order *o)
{
    times.open = (uint32_t)o->a;
    sem_init(&pfs.begun, 0, 0);
    sem_init(&pfs.go, 0, 0);
    pfs.off = 0;
    pfs.reads = 0;
    pfs.held = true;
}

static void order_held_reads(struct order *o)
{
    o->out[0] = pfs.reads == JOBS;
}

/* Makes files until there is one of which chunk 0 (and 1, if there is one) are this node's, or are not. */
static void make_file(char name[64], const char *stem, unsigned *n, size_t len, unsigned node,
                      bool owned)
{
    bool found;
    do {
        snprintf(name, 64, "%s%u", stem, ++*n);
        pfs_make(name, len, 50);
        found = (owner_of(name, 0, 0, NULL) == node) == owned;
        if (len > NODE_CHUNK)
            found = found && (owner_of(name, NODE_CHUNK, 0, NULL) == node) == owned;
    } while (!found);
}

/* Reads a byte of handle 9, after which what waits for a job is tried again.  out: is the rest here? */
static void order_read_until_ahead(struct order *o)
{
    struct order r = {.a = 9, .len = 1};
    order_read(&r);
    o->off = 0;
    o->len = 2 * NODE_CHUNK;
    o->a = 9;
    order_missing(o);
}

/* Jobs that wait for it give up in the end, and those of other files can begin. */
START_TEST(a_pfs_that_hangs_does_not_stop_read_ahead_from_other_nodes)
{
    const unsigned node = 0;
    unsigned n = 0;
    struct order o = {.a = 1500}, other = {.a = 9, .b = O_RDONLY};
    make_file(other.name, "other", &n, 2 * NODE_CHUNK, node, false);
    node_run(node, order_hold_all, &o);
    for (unsigned i = 0; i < JOBS; i++) {
        o = (struct order){.a = i, .b = O_RDONLY};
        make_file(o.name, "stuck", &n, NODE_CHUNK, node, true);
        node_run(node, order_open_stuck, &o);
        ck_assert_int_eq(o.err, 0);
    }
    node_until(node, order_held_reads, &(struct order){0}, "all jobs are held");
    node_run(node, order_open, &other);
    ck_assert_int_eq(other.err, 0);
    node_until(node, order_read_until_ahead, &(struct order){0}, "the other file is read ahead");
    node_run(node, order_close_stuck, &o);
    close_on(node, 9);
}
END_TEST

int main(int argc, char **argv)
{
    if (node_is(argc, argv))
        return node_main(argc, argv);
    TCase *t = three_nodes();
    tcase_add_test(t, a_reader_and_a_peer_of_one_chunk_read_the_pfs_once);
    tcase_add_test(t, what_came_since_somebody_looked_is_not_read_again);
    tcase_add_test(t, a_flight_that_fails_tells_all_that_wait_and_the_next_one_is_right);
    tcase_add_test(t, a_version_that_goes_away_is_told_to_all_that_wait);
    tcase_add_test(t, readers_on_all_nodes_outlast_a_version_that_goes_away);
    tcase_add_test(t, a_deadline_holds_over_all_steps);
    tcase_add_test(t, an_answer_for_which_nobody_waits_is_checked_and_kept);
    tcase_add_test(t, a_peer_does_not_wait_for_what_a_reader_asks_another_node);
    tcase_add_test(t, a_pfs_that_hangs_does_not_stop_read_ahead_from_other_nodes);
    return run_case("fetch_flights", t);
}
