/* test_fetch.c - clean chunks between three nodes: once from the PFS, right bytes from owners that
 * are honest, wrong, silent or dead. */
#include "nodes.h"
#include "suite.h"

#include "placement/chunk.h"
#include "placement/former.h"
#include "placement/origin.h"
#include "placement/range.h"
#include "placement/served.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/statvfs.h>

#define N 3

static struct order totals(void)
{
    struct order sum = {0};
    for (unsigned i = 0; i < nnodes; i++) {
        struct order o = {0};
        node_run(i, order_members, &o);
        sum.counters.pfs_read_bytes += o.counters.pfs_read_bytes;
        sum.counters.read_local_bytes += o.counters.read_local_bytes;
        sum.counters.read_peer_bytes += o.counters.read_peer_bytes;
        sum.counters.read_pfs_bytes += o.counters.read_pfs_bytes;
    }
    return sum;
}

static uint64_t asked(const struct order *o)
{
    return o->counters.read_local_bytes + o->counters.read_peer_bytes + o->counters.read_pfs_bytes;
}

static void open_on(unsigned i, const char *name, uint64_t handle)
{
    struct order o = {.a = handle, .b = O_RDONLY};
    snprintf(o.name, sizeof(o.name), "%s", name);
    node_run(i, order_open, &o);
    ck_assert_msg(!o.err, "open of %s on node %u: %s", name, i, strerror(-o.err));
}

static void close_on(unsigned i, uint64_t handle)
{
    struct order o = {.a = handle};
    node_run(i, order_close, &o);
}

static struct order read_on(unsigned i, uint64_t handle, uint64_t off, uint64_t len)
{
    struct order o = {.a = handle, .off = off, .len = len};
    node_run(i, order_read, &o);
    return o;
}

static void assert_bytes(const struct order *o, size_t len, uint64_t seed)
{
    ck_assert_msg(!o->err, "read: %s", strerror(-o->err));
    ck_assert_uint_eq(o->out[0], len);
    ck_assert_msg(o->out[1] == hash_pattern(len, seed, o->off), "wrong bytes");
}

/* The node (number) that has turn `turn` for the chunk at off, and a node that has not turn 0. */
static unsigned owner_of(const char *name, uint64_t off, unsigned turn, unsigned *other)
{
    struct order o = {.off = off};
    unsigned owner = N;
    snprintf(o.name, sizeof(o.name), "%s", name);
    node_run(0, order_owner, &o);
    ck_assert_int_eq(o.err, 0);
    for (unsigned i = 0; i < nnodes; i++) {
        struct order m = {0};
        node_run(i, order_members, &m);
        if (m.out[2] == o.out[turn])
            owner = i;
        else if (m.out[2] != o.out[0] && other)
            *other = i;
    }
    ck_assert_uint_lt(owner, N);
    return owner;
}

START_TEST(three_nodes_at_once_read_each_byte_from_the_pfs_once)
{
    const size_t size = 20 * NODE_CHUNK + 100;
    struct order o[N];
    pfs_make("once", size, 1);
    struct order before = totals();
    for (unsigned i = 0; i < N; i++)
        open_on(i, "once", 0);
    for (unsigned i = 0; i < N; i++) {
        o[i] = (struct order){.len = size + 1000};
        node_send(i, order_read, &o[i]);
    }
    for (unsigned i = 0; i < N; i++) {
        node_wait(i, &o[i]);
        assert_bytes(&o[i], size, 1);
        close_on(i, 0);
    }
    struct order after = totals();
    ck_assert_uint_eq(after.counters.pfs_read_bytes - before.counters.pfs_read_bytes, size);
    ck_assert_uint_eq(asked(&after) - asked(&before), N * size);
    ck_assert_uint_gt(after.counters.read_peer_bytes, before.counters.read_peer_bytes);
}
END_TEST

START_TEST(every_size_is_right_on_every_node)
{
    static const size_t sizes[] = {
        0, 1, 4095, 4096, 4097, NODE_CHUNK - 1, NODE_CHUNK, NODE_CHUNK + 1, 3 * NODE_CHUNK + 5000};
    for (unsigned k = 0; k < ARRAY_LEN(sizes); k++) {
        char name[16];
        snprintf(name, sizeof(name), "size%zu", sizes[k]);
        pfs_make(name, sizes[k], k);
        for (unsigned i = 0; i < N; i++) {
            open_on(i, name, 1);
            struct order part = read_on(i, 1, sizes[k] / 2, 10);
            assert_bytes(&part, MIN(10, sizes[k] - sizes[k] / 2), k);
            struct order whole = read_on(i, 1, 0, sizes[k] + 5000);
            assert_bytes(&whole, sizes[k], k);
            struct order beyond = read_on(i, 1, sizes[k] + 1, 100);
            assert_bytes(&beyond, 0, k);
            close_on(i, 1);
        }
    }
}
END_TEST

static void *read_in_thread(void *arg)
{
    order_read(arg);
    return NULL;
}

static void order_read_by_many(struct order *o)
{
    pthread_t t[16];
    struct order part[16];
    for (unsigned i = 0; i < 16; i++) {
        part[i] = *o;
        pthread_create(&t[i], NULL, read_in_thread, &part[i]);
    }
    o->out[0] = 1;
    for (unsigned i = 0; i < 16; i++) {
        pthread_join(t[i], NULL);
        if (part[i].err || part[i].out[0] != o->len || part[i].out[1] != o->b)
            o->out[0] = 0;
    }
}

START_TEST(readers_of_one_node_share_a_fetch)
{
    const size_t size = 12 * NODE_CHUNK;
    pfs_make("shared", size, 3);
    struct order before = totals();
    open_on(1, "shared", 0);
    struct order o = {.len = size, .b = hash_pattern(size, 3, 0)};
    node_run(1, order_read_by_many, &o);
    ck_assert_uint_eq(o.out[0], 1);
    close_on(1, 0);
    struct order after = totals();
    ck_assert_uint_eq(after.counters.pfs_read_bytes - before.counters.pfs_read_bytes, size);
    ck_assert_uint_eq(asked(&after) - asked(&before), 16 * size);
}
END_TEST

static void order_memory(struct order *o)
{
    chunk_rooms(o->a);
}

START_TEST(little_memory_is_enough_for_many_readers_on_all_nodes)
{
    const size_t size = 60 * NODE_CHUNK;
    struct order o[N];
    pfs_make("tight", size, 16);
    for (unsigned i = 0; i < N; i++) {
        o[i] = (struct order){.a = 4 * NODE_CHUNK};
        node_run(i, order_memory, &o[i]); /* one chunk in each room */
        open_on(i, "tight", 0);
    }
    for (unsigned i = 0; i < N; i++) {
        o[i] = (struct order){.len = size, .b = hash_pattern(size, 16, 0)};
        node_send(i, order_read_by_many, &o[i]);
    }
    for (unsigned i = 0; i < N; i++) {
        node_wait(i, &o[i]);
        ck_assert_uint_eq(o[i].out[0], 1);
        close_on(i, 0);
        o[i] = (struct order){.a = 256u << 20};
        node_run(i, order_memory, &o[i]);
    }
}
END_TEST

/* ---- what is in the stores ---- */

static void order_missing(struct order *o)
{
    uint64_t at, n;
    o->out[0] = !store_missing(node_handles[o->a].h->f, o->off, o->len, &at, &n);
}

/* Until nothing of [off, off + len) is fetched any more: the next test counts only its own. */
static void until_stored(unsigned i, uint64_t handle, uint64_t off, uint64_t len)
{
    struct order o = {.a = handle, .off = off, .len = len};
    node_until(i, order_missing, &o, "what was asked for is in the store");
}

/* The same for the chunks that this node owns. */
static void order_own_missing(struct order *o)
{
    struct file *f = node_handles[o->a].h->f;
    const struct ring *r = ring_of(members_view());
    uint64_t at, n;
    o->out[0] = 1;
    for (uint64_t i = 0; i < o->len / NODE_CHUNK; i++)
        if (ring_owner(r, f->fid, i, 0) == members_self() &&
            store_missing(f, i * NODE_CHUNK, NODE_CHUNK, &at, &n))
            o->out[0] = 0;
}

/* ---- owners that are no good ---- */

static void lie(struct msg *m)
{
    struct msg *r = msg_new(MSG_CHUNK);
    r->chunk.fid = m->fetch.fid;
    r->chunk.index = m->fetch.index;
    r->chunk.version = m->fetch.version;
    r->head.data_len =
        MIN((uint64_t)NODE_CHUNK, m->fetch.version.size - m->fetch.index * NODE_CHUNK);
    r->data = peer_buffer_try(NODE_CHUNK);
    memset(r->data, 'x', NODE_CHUNK);
    r->chunk.hash = 12345;
    r->free_data = peer_buffer_free_data;
    peer_reply(m, r);
    msg_free(m);
}

/* Right checksum, but another chunk than was asked for. */
static void answer_another(struct msg *m)
{
    struct msg *r = msg_new(MSG_CHUNK);
    r->chunk.fid = m->fetch.fid;
    r->chunk.index = m->fetch.index + 1;
    r->chunk.version = m->fetch.version;
    r->head.data_len = NODE_CHUNK;
    r->data = peer_buffer_try(NODE_CHUNK);
    memset(r->data, 'x', NODE_CHUNK);
    r->chunk.hash = XXH3_64bits(r->data, NODE_CHUNK);
    r->free_data = peer_buffer_free_data;
    peer_reply(m, r);
    msg_free(m);
}

static void say_nothing(struct msg *m)
{
    msg_free(m);
}

static void say_stale(struct msg *m)
{
    peer_reply_error(m, -ESTALE);
    msg_free(m);
}

static void set_handler(void *arg)
{
    static const peer_handler all[] = {lie, answer_another, say_nothing, say_stale};
    peer_handle(MSG_FETCH, all[(uintptr_t)arg]);
}

static void order_misbehave(struct order *o)
{
    loop_call(set_handler, (void *)(uintptr_t)o->a);
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

/* One chunk whose owner misbehaves is read right by another node. */
static struct order read_from_bad_owner(const char *name, uint64_t how, uint64_t seed)
{
    unsigned reader = 0;
    pfs_make(name, 2 * NODE_CHUNK, seed);
    unsigned owner = owner_of(name, 0, 0, &reader);
    struct order o = {.a = how};
    node_run(owner, order_misbehave, &o);
    open_on(reader, name, 2);
    struct order r = read_on(reader, 2, 0, NODE_CHUNK);
    assert_bytes(&r, NODE_CHUNK, seed);
    until_stored(reader, 2, 0, 2 * NODE_CHUNK); /* the open has asked for all of it */
    close_on(reader, 2);
    node_run(owner, order_behave, &o);
    return r;
}

START_TEST(wrong_bytes_from_the_owner_are_refused)
{
    struct order o = read_from_bad_owner("lied", 0, 4);
    ck_assert_uint_ge(o.counters.bad_checksums, 1);
}
END_TEST

START_TEST(another_chunk_from_the_owner_is_refused)
{
    struct order o = read_from_bad_owner("another", 1, 5);
    ck_assert_uint_ge(o.counters.bad_answers, 1);
}
END_TEST

START_TEST(a_silent_owner_costs_seconds_and_no_byte)
{
    struct order o = read_from_bad_owner("silent", 2, 6);
    ck_assert_uint_ge(o.out[2], 2500);
    ck_assert_uint_le(o.out[2], 8000);
}
END_TEST

START_TEST(an_owner_that_wrongly_says_stale_is_not_the_last_word)
{
    read_from_bad_owner("stale", 3, 7);
}
END_TEST

/* ---- chunks that moved, and former owners that are no good ---- */

/* name: a chunk of the file that is this node's now and had another owner in an earlier view.  out:
 * its index, that owner.  -ENOENT: there is none. */
static void order_moved_here(struct order *o)
{
    struct pfs_node *n = pfs_child(pfs_root(), o->name);
    struct statx stx;
    o->err = pfs_stat(n, &stx);
    pfs_unref(n);
    if (o->err)
        return;
    struct fid fid = fid_of(&stx);
    const struct view *v = members_view();
    const struct ring *r = ring_of(v);
    for (uint32_t i = 0; i < v->nmembers; i++) /* whatever they had not until now: they are asked */
        former_answered(v->members[i].id, true);
    for (uint64_t i = 0; i < stx.stx_size / NODE_CHUNK; i++) {
        o->out[0] = i;
        o->out[1] = former_owner(fid, i);
        if (ring_owner(r, fid, i, 0) == members_self() && o->out[1])
            return;
    }
    o->err = -ENOENT;
}

static unsigned node_with_id(uint64_t id)
{
    for (unsigned i = 0; i < nnodes; i++) {
        struct order o = {0};
        node_run(i, order_members, &o);
        if (o.out[2] == id)
            return i;
    }
    ck_abort_msg("no such node");
}

/* The owner of a chunk that had another one, and that one: whoever joined last has such chunks. */
static unsigned owner_of_moved(const char *name, struct order *moved, unsigned *former)
{
    unsigned owner = N;
    do {
        ck_assert_msg(owner > 0, "no chunk has moved");
        *moved = (struct order){0};
        snprintf(moved->name, sizeof(moved->name), "%s", name);
        node_run(--owner, order_moved_here, moved);
    } while (moved->err);
    *former = node_with_id(moved->out[1]);
    return owner;
}

/* A chunk of which no node knows yet, read by its owner, which asks the former one; this one
 * misbehaves. */
static void read_from_bad_former(const char *name, uint64_t how, uint64_t seed,
                                 struct order *before, struct order *after)
{
    struct order moved, bad = {.a = how};
    pfs_make(name, 40 * NODE_CHUNK, seed);
    unsigned former, owner = owner_of_moved(name, &moved, &former);
    node_run(former, order_misbehave, &bad);
    open_on(owner, name, 6);
    *before = (struct order){0};
    node_run(owner, order_members, before);
    *after = read_on(owner, 6, moved.out[0] * NODE_CHUNK, NODE_CHUNK);
    assert_bytes(after, NODE_CHUNK, seed);
    close_on(owner, 6);
    node_run(former, order_behave, &bad);
    ck_assert_uint_eq(after->counters.former_bytes, before->counters.former_bytes);
    ck_assert_uint_eq(after->counters.pfs_read_bytes - before->counters.pfs_read_bytes, NODE_CHUNK);
}

START_TEST(wrong_bytes_from_the_former_owner_are_refused)
{
    struct order before, after;
    read_from_bad_former("moved lied", 0, 21, &before, &after);
    ck_assert_uint_eq(after.counters.bad_checksums - before.counters.bad_checksums, 1);
}
END_TEST

START_TEST(another_chunk_from_the_former_owner_is_refused)
{
    struct order before, after;
    read_from_bad_former("moved another", 1, 22, &before, &after);
    ck_assert_uint_eq(after.counters.bad_answers - before.counters.bad_answers, 1);
}
END_TEST

/* ---- what is kept when the store has another version by then ---- */

static struct version noted;

/* name: its version in this node's store, for order_keep. */
static void order_note_version(struct order *o)
{
    struct file_info info;
    struct file *f = node_file(o->name);
    if (!f) {
        o->err = -ENOENT;
        return;
    }
    store_info(f, &info);
    noted = info.base;
    o->err = info.base_known ? 0 : -ENODATA;
    file_put(f);
}

static struct keeping {
    struct origin_waiter w;
    struct file *f;
    struct version newer; /* the store's as soon as the bytes are here; size 0: none */
    sem_t ended;
    int err, kept;
    bool from_peer;
} keeping;

/* Before the bytes are kept. */
static void on_read(struct origin_waiter *w, int err, struct chunk *c)
{
    (void)w;
    keeping.err = err;
    keeping.from_peer = !err && c->from_peer;
    if (!err && keeping.newer.size)
        keeping.err = store_set_version(keeping.f, &keeping.newer, &noted);
    if (err)
        sem_post(&keeping.ended);
}

static void on_kept(struct origin_waiter *w, int kept)
{
    (void)w;
    keeping.kept = kept;
    sem_post(&keeping.ended);
}

/* name, off: the chunk in the version that was noted is read here as for a reader of it.  b: a
 * chmod comes before it is kept.  out: why it was not kept, from a peer?, is the store's version
 * what it was before, or since the chmod? */
static void order_keep(struct order *o)
{
    struct file_info before, after;
    keeping = (struct keeping){.w = {.done = on_read, .filled = on_kept}, .f = node_file(o->name)};
    struct chunk_key key = {.fid = keeping.f->fid, .index = o->off / NODE_CHUNK, .version = noted};
    store_info(keeping.f, &before);
    if (o->b) {
        keeping.newer = before.base;
        keeping.newer.ctime_ns += 1000000;
        before.base = keeping.newer;
    }
    sem_init(&keeping.ended, 0, 0);
    origin_read(&key, keeping.f, NULL, chunk_new(ROOM_ASK, NODE_CHUNK), &keeping.w);
    sem_wait(&keeping.ended);
    store_info(keeping.f, &after);
    o->err = keeping.err;
    o->out[0] = (uint64_t)-keeping.kept;
    o->out[1] = keeping.from_peer;
    o->out[2] = version_eq(&before.base, &after.base);
    file_put(keeping.f);
}

/* Its chunk at off is in the store of node i. */
static void assert_stored(unsigned i, uint64_t handle, uint64_t off)
{
    struct order o = {.a = handle, .off = off, .len = NODE_CHUNK};
    node_run(i, order_missing, &o);
    ck_assert_uint_eq(o.out[0], 1);
}

START_TEST(what_is_kept_after_a_chmod_does_not_drop_what_is_here)
{
    struct order o = {.name = "kept late"};
    pfs_make(o.name, 8 * NODE_CHUNK, 23);
    open_on(0, o.name, 7);
    struct order r = read_on(0, 7, 0, NODE_CHUNK);
    assert_bytes(&r, NODE_CHUNK, 23);
    until_stored(0, 7, 0, NODE_CHUNK);
    node_run(0, order_note_version, &o);
    ck_assert_int_eq(o.err, 0);
    o.off = 5 * NODE_CHUNK;
    o.b = true;
    node_run(0, order_keep, &o);
    ck_assert_int_eq(o.err, 0);
    ck_assert_uint_eq(o.out[0], ESTALE);
    ck_assert_uint_eq(o.out[2], 1);
    assert_stored(0, 7, 0);
    close_on(0, 7);
}
END_TEST

/* A node that had the file open before it changed still has that version: who reads it there may
 * have it from the former owner, but the present one keeps what is newer. */
START_TEST(an_older_version_from_the_former_owner_is_not_kept)
{
    struct order moved, o = {.name = "kept older"};
    pfs_make(o.name, 40 * NODE_CHUNK, 24);
    unsigned former, owner = owner_of_moved(o.name, &moved, &former);
    uint64_t off = moved.out[0] * NODE_CHUNK;
    open_on(former, o.name, 7);
    struct order r = read_on(former, 7, off, NODE_CHUNK);
    assert_bytes(&r, NODE_CHUNK, 24);
    until_stored(former, 7, off, NODE_CHUNK);
    open_on(owner, o.name, 7);
    node_run(owner, order_note_version, &o);
    ck_assert_int_eq(o.err, 0);
    close_on(owner, 7);
    pfs_make(o.name, 40 * NODE_CHUNK, 25);
    open_on(owner, o.name, 7);
    r = read_on(owner, 7, off, NODE_CHUNK);
    assert_bytes(&r, NODE_CHUNK, 25);
    until_stored(owner, 7, off, NODE_CHUNK);
    o.off = off;
    node_run(owner, order_keep, &o);
    ck_assert_int_eq(o.err, 0);
    ck_assert_uint_eq(o.out[1], 1);
    ck_assert_uint_eq(o.out[0], ESTALE);
    ck_assert_uint_eq(o.out[2], 1);
    assert_stored(owner, 7, off);
    close_on(owner, 7);
    close_on(former, 7);
}
END_TEST

/* ---- versions ---- */

START_TEST(a_file_that_changed_on_the_pfs_under_a_reader_is_read_as_it_is_now)
{
    pfs_make("changes", 8 * NODE_CHUNK, 8); /* more than is fetched at open */
    open_on(0, "changes", 0);
    open_on(1, "changes", 0);
    struct order o = read_on(0, 0, 0, 100);
    assert_bytes(&o, 100, 8);
    pfs_make("changes", 6 * NODE_CHUNK + 77, 9);
    for (unsigned i = 0; i < 2; i++) {
        o = read_on(i, 0, 2 * NODE_CHUNK, NODE_CHUNK);
        assert_bytes(&o, NODE_CHUNK, 9);
        o = read_on(i, 0, 0, 10 * NODE_CHUNK);
        assert_bytes(&o, 6 * NODE_CHUNK + 77, 9);
        close_on(i, 0);
    }
}
END_TEST

/* As fs/ does it: changes the mode, tells the home. */
static void order_chmod(struct order *o)
{
    struct pfs_node *n = pfs_child(pfs_root(), o->name);
    struct statx before, after;
    o->err = pfs_stat(n, &before);
    if (!o->err)
        o->err = pfs_chmod(n, 0640, NULL);
    if (!o->err)
        o->err = pfs_stat(n, &after);
    if (!o->err) {
        struct version a = version_of(&before), b = version_of(&after);
        claim_publish_same(fid_of(&before), &a, &b);
    }
    pfs_unref(n);
}

static void order_home_knows(struct order *o)
{
    struct pfs_node *n = pfs_child(pfs_root(), o->name);
    struct statx stx;
    struct location at;
    o->err = pfs_stat(n, &stx);
    if (!o->err)
        o->err = claim_where(fid_of(&stx), &at);
    o->out[0] = !o->err && at.known == 2;
    pfs_unref(n);
}

START_TEST(a_chmod_does_not_read_the_file_again)
{
    const size_t size = 9 * NODE_CHUNK;
    pfs_make("chmod", size, 10);
    for (unsigned i = 0; i < N; i++) {
        open_on(i, "chmod", 0);
        struct order o = read_on(
            i, 0, 0, i ? NODE_CHUNK : size); /* nodes 1 and 2 have what they own, and a chunk */
        assert_bytes(&o, i ? NODE_CHUNK : size, 10);
    }
    /* What is not in the store yet when its version changes is read again. */
    struct order o = {.len = size};
    for (unsigned i = 0; i < N; i++) {
        node_until(i, order_own_missing, &o, "the owners' chunks are in their stores");
        close_on(i, 0);
    }
    struct order before = totals();
    o = (struct order){.name = "chmod"};
    node_run(0, order_chmod, &o);
    ck_assert_int_eq(o.err, 0);
    node_until(1, order_home_knows, &o, "the home knows that the data is the same");
    open_on(1, "chmod", 0);
    o = read_on(1, 0, 0, size);
    assert_bytes(&o, size, 10);
    close_on(1, 0);
    ck_assert_uint_eq(totals().counters.pfs_read_bytes, before.counters.pfs_read_bytes);
}
END_TEST

START_TEST(a_file_without_a_name_is_read_by_who_has_it_open)
{
    char path[256];
    pfs_make("unlinked", 8 * NODE_CHUNK, 11);
    open_on(2, "unlinked", 0);
    snprintf(path, sizeof(path), "%s/pfs/unlinked", nodes_top);
    unlink(path);
    struct order o = read_on(2, 0, 0, 8 * NODE_CHUNK);
    assert_bytes(&o, 8 * NODE_CHUNK, 11);
    close_on(2, 0);
}
END_TEST

/* ---- a hostile asker ---- */

static void order_ask_nonsense(struct order *o)
{
    static const char *const paths[] = {"../secret", "/etc/passwd",  "a/../../b",
                                        "",          "no/such/file", NODE_HIDDEN "/test/secret"};
    o->out[0] = 0;
    for (unsigned i = 0; i < 32; i++) {
        struct msg *m = msg_new(MSG_FETCH), *reply = NULL;
        m->fetch.fid = (struct fid){.hi = 1 + i / 8, .lo = i};
        m->fetch.index = i % 3 == 0 ? UINT64_MAX : i % 3 == 1 ? 1000 : 0;
        m->fetch.version.size = i % 4 == 0 ? UINT64_MAX : i % 4 == 1 ? 0 : 100;
        m->fetch.only_cached = i % 5 == 0;
        m->fetch.path = paths[i % ARRAY_LEN(paths)];
        int err = peer_call(o->b, m, 3000, NULL, 0, &reply);
        if (!err || !reply)
            o->out[0]++; /* it must answer, and with an error */
        if (reply)
            msg_free(reply);
    }
}

START_TEST(nonsense_is_answered_with_errors)
{
    struct order m = {0}, o;
    node_run(1, order_members, &m);
    o = (struct order){.b = m.out[2]};
    node_run(0, order_ask_nonsense, &o);
    ck_assert_uint_eq(o.out[0], 0);
}
END_TEST

/* ---- a store that is slow ---- */

static struct range_op held;

/* Nothing can be put into the file's data until order_let_go. */
static void order_hold(struct order *o)
{
    struct file *f = node_handles[o->a].h->f;
    lock_take(&f->lock);
    range_begin(f, &held, RANGE_READ, 0, UINT64_MAX);
    lock_drop(&f->lock);
}

static void order_let_go(struct order *o)
{
    struct file *f = node_handles[o->a].h->f;
    lock_take(&f->lock);
    range_end(f, &held);
    pthread_cond_broadcast(&f->changed);
    lock_drop(&f->lock);
}

/* Reads of a chunk that the store of node i does not take yet, there and then on node `after`. */
static void read_before_it_is_stored(const char *name, unsigned i, unsigned after)
{
    const uint64_t size = 12 * NODE_CHUNK;
    struct order hold = {.a = 3}, o;
    pfs_make(name, size, 18);
    open_on(i, name, 3);
    open_on(after, name, 4);
    struct order before = totals();
    node_run(i, order_hold, &hold);
    for (unsigned k = 0; k < 3; k++) {
        o = read_on(i, 3, k * 5000, 1000);
        assert_bytes(&o, 1000, 18);
    }
    o = read_on(after, 4, 100, 2000);
    assert_bytes(&o, 2000, 18);
    o = (struct order){.a = 3, .len = NODE_CHUNK};
    node_run(i, order_missing, &o);
    ck_assert_uint_eq(o.out[0], 0);
    struct order now = totals();
    ck_assert_uint_eq(now.counters.pfs_read_bytes - before.counters.pfs_read_bytes, NODE_CHUNK);
    ck_assert_uint_eq(asked(&now) - asked(&before), 5000);
    node_run(i, order_let_go, &hold);
    o = (struct order){.a = 3, .len = NODE_CHUNK};
    node_until(i, order_missing, &o, "the chunk is in the store");
    close_on(i, 3);
    close_on(after, 4);
}

START_TEST(a_reader_does_not_wait_for_its_store)
{
    unsigned other = 0;
    pfs_make("slow", 1, 18);
    unsigned owner = owner_of("slow", 0, 0, &other);
    read_before_it_is_stored("slow", owner, other);
    pfs_make("slow2", 1, 18);
    owner = owner_of("slow2", 0, 0, &other);
    read_before_it_is_stored("slow2", other, owner);
}
END_TEST

/* ---- an owner whose disk is slow ---- */

static struct {
    struct file *f;
    struct version v;
    sem_t go, blocked, answered;
    _Atomic int err; /* of the FETCH */
} slow_disk;

static void block(void *arg)
{
    (void)arg;
    sem_post(&slow_disk.blocked);
    sem_wait(&slow_disk.go);
}

static void on_answer(void *arg, int err, struct msg *reply, bool *keep)
{
    (void)arg;
    (void)keep;
    slow_disk.err = err || !reply || reply->head.data_len != NODE_CHUNK ? -EIO : 0;
    sem_post(&slow_disk.answered);
}

/* Both are posted: no timer can come between them. */
static void keep_and_ask(void *arg)
{
    (void)arg;
    struct msg *m = msg_new(MSG_FETCH);
    m->fetch.fid = slow_disk.f->fid;
    m->fetch.version = slow_disk.v;
    m->fetch.path = "";
    served_keep(slow_disk.f);
    peer_request(members_self(), m, 60000, NULL, 0, on_answer, NULL);
}

/* FETCH of this node's first chunk of an open file while all of libuv's pool waits.  out[0]: was it
 * answered meanwhile?  2: this file system can not tell what is in the page cache.  (The first look
 * waits until the fill has ended.) */
static void order_ask_a_slow_disk(struct order *o)
{
    const unsigned threads = 4; /* libuv's default */
    struct file_info info;
    static uint8_t buf[NODE_CHUNK];
    size_t len;
    uint64_t hash;
    slow_disk.f = node_handles[o->a].h->f;
    store_info(slow_disk.f, &info);
    slow_disk.v = info.base;
    sem_init(&slow_disk.go, 0, 0);
    sem_init(&slow_disk.blocked, 0, 0);
    sem_init(&slow_disk.answered, 0, 0);
    o->err = store_get_chunk(slow_disk.f, 0, &slow_disk.v, buf, &len, &hash);
    if (store_get_chunk_now(slow_disk.f, 0, &slow_disk.v, buf, &len, &hash)) {
        o->out[0] = 2;
        return;
    }
    for (unsigned i = 0; i < threads; i++)
        loop_work(block, NULL, NULL);
    for (unsigned i = 0; i < threads; i++)
        sem_wait(&slow_disk.blocked);
    file_ref(slow_disk.f);
    loop_call(keep_and_ask, NULL);
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 20;
    o->out[0] = !sem_timedwait(&slow_disk.answered, &end) && !slow_disk.err;
    for (unsigned i = 0; i < threads; i++)
        sem_post(&slow_disk.go);
}

START_TEST(what_is_in_memory_does_not_wait_for_the_disk)
{
    pfs_make("at hand", NODE_CHUNK, 19);
    unsigned owner = owner_of("at hand", 0, 0, NULL);
    open_on(owner, "at hand", 5);
    struct order o = read_on(owner, 5, 0, NODE_CHUNK);
    assert_bytes(&o, NODE_CHUNK, 19);
    o = (struct order){.a = 5, .len = NODE_CHUNK};
    node_until(owner, order_missing, &o, "the chunk is in the store");
    node_run(owner, order_ask_a_slow_disk, &o);
    ck_assert_int_eq(o.err, 0);
    ck_assert_uint_ne(o.out[0], 0);
    if (o.out[0] == 2)
        printf("skipped: the cache's file system has no RWF_NOWAIT\n");
    close_on(owner, 5);
}
END_TEST

/* ---- read-ahead ---- */

START_TEST(reading_in_order_fetches_the_next_chunks)
{
    pfs_make("ahead", 40 * NODE_CHUNK, 12);
    open_on(0, "ahead", 3);
    for (uint64_t off = 0; off < 8 * NODE_CHUNK; off += 16384)
        ck_assert_uint_eq(read_on(0, 3, off, 16384).out[0], 16384);
    struct order o = {.a = 3, .off = 8 * NODE_CHUNK, .len = 4 * NODE_CHUNK};
    node_until(0, order_missing, &o, "four chunks ahead are in the store");
    close_on(0, 3);
}
END_TEST

START_TEST(a_small_file_is_fetched_when_it_is_opened)
{
    struct order o = {.a = 3};
    pfs_make("small", 3 * NODE_CHUNK + 100, 19);
    open_on(0, "small", 3);
    o.len = 3 * NODE_CHUNK + 100;
    node_until(0, order_missing, &o, "the file is in the store");
    close_on(0, 3);
    pfs_make("larger", 4 * NODE_CHUNK + 1, 19);
    struct order before = totals();
    open_on(0, "larger", 3);
    open_on(0, "small", 4);
    o = read_on(0, 3, 0, 10);
    assert_bytes(&o, 10, 19);
    close_on(0, 4);
    close_on(0, 3);
    ck_assert_uint_eq(totals().counters.pfs_read_bytes - before.counters.pfs_read_bytes,
                      NODE_CHUNK);
}
END_TEST

START_TEST(reading_backward_fetches_the_next_chunks)
{
    pfs_make("backward", 40 * NODE_CHUNK, 20);
    open_on(0, "backward", 3);
    for (uint64_t off = 40 * NODE_CHUNK; off > 20 * NODE_CHUNK; off -= 16384)
        ck_assert_uint_eq(read_on(0, 3, off - 16384, 16384).out[0], 16384);
    struct order o = {.a = 3, .off = 16 * NODE_CHUNK, .len = 4 * NODE_CHUNK};
    node_until(0, order_missing, &o, "four chunks before are in the store");
    close_on(0, 3);
}
END_TEST

static uint64_t local_bytes(const struct order *o)
{
    return o->counters.read_local_bytes;
}

/* Whatever was fetched ahead of the reader, a byte counts as read from where it came (but for the
 * few that are read while their fetch ends), and every byte once. */
START_TEST(bytes_count_as_read_from_where_they_came)
{
    const size_t size = 60 * NODE_CHUNK + 1000, few = 4 * NODE_CHUNK;
    pfs_make("counted", size, 17);
    open_on(1, "counted", 3);
    struct order before = {0}, o[2];
    node_run(1, order_members, &before);
    for (unsigned pass = 0; pass < 2; pass++)
        for (uint64_t off = 0; off < size; off += 10000)
            o[pass] = read_on(1, 3, off, 10000);
    ck_assert_uint_eq(asked(&o[0]) - asked(&before), size);
    ck_assert_uint_eq(asked(&o[1]) - asked(&o[0]), size);
    ck_assert_uint_le(local_bytes(&o[0]) - local_bytes(&before), few);
    ck_assert_uint_ge(local_bytes(&o[1]) - local_bytes(&o[0]), size - few);
    ck_assert_uint_gt(o[0].counters.read_peer_bytes, before.counters.read_peer_bytes);
    close_on(1, 3);
}
END_TEST

START_TEST(reading_at_random_fetches_no_more_than_is_read)
{
    pfs_make("random", 400 * NODE_CHUNK, 13);
    open_on(0, "random", 3);
    struct order before = totals();
    for (uint64_t i = 0; i < 20; i++)
        ck_assert_uint_eq(read_on(0, 3, (i * 7 % 20) * 20 * NODE_CHUNK, 1000).out[0], 1000);
    ck_assert_uint_eq(totals().counters.pfs_read_bytes - before.counters.pfs_read_bytes,
                      20 * NODE_CHUNK);
    close_on(0, 3);
}
END_TEST

/* ---- the end of a node: last, the others follow it ---- */

START_TEST(a_dead_owner_costs_seconds_and_no_byte)
{
    const size_t size = 30 * NODE_CHUNK;
    pfs_make("dead", size, 14);
    open_on(0, "dead", 4);
    node_kill(2);
    struct order o = read_on(0, 4, 0, size);
    assert_bytes(&o, size, 14);
    ck_assert_uint_le(o.out[2], 15000);
    close_on(0, 4);
}
END_TEST

static void begin(void)
{
    nodes_begin(N, 1u << 30);
}

int main(int argc, char **argv)
{
    if (node_is(argc, argv))
        return node_main(argc, argv);
    TCase *t = tcase_create("three nodes");
    tcase_add_unchecked_fixture(t, begin, nodes_end);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, three_nodes_at_once_read_each_byte_from_the_pfs_once);
    tcase_add_test(t, every_size_is_right_on_every_node);
    tcase_add_test(t, readers_of_one_node_share_a_fetch);
    tcase_add_test(t, little_memory_is_enough_for_many_readers_on_all_nodes);
    tcase_add_test(t, wrong_bytes_from_the_owner_are_refused);
    tcase_add_test(t, another_chunk_from_the_owner_is_refused);
    tcase_add_test(t, a_silent_owner_costs_seconds_and_no_byte);
    tcase_add_test(t, an_owner_that_wrongly_says_stale_is_not_the_last_word);
    tcase_add_test(t, wrong_bytes_from_the_former_owner_are_refused);
    tcase_add_test(t, another_chunk_from_the_former_owner_is_refused);
    tcase_add_test(t, what_is_kept_after_a_chmod_does_not_drop_what_is_here);
    tcase_add_test(t, an_older_version_from_the_former_owner_is_not_kept);
    tcase_add_test(t, a_file_that_changed_on_the_pfs_under_a_reader_is_read_as_it_is_now);
    tcase_add_test(t, a_chmod_does_not_read_the_file_again);
    tcase_add_test(t, a_file_without_a_name_is_read_by_who_has_it_open);
    tcase_add_test(t, nonsense_is_answered_with_errors);
    tcase_add_test(t, a_reader_does_not_wait_for_its_store);
    tcase_add_test(t, what_is_in_memory_does_not_wait_for_the_disk);
    tcase_add_test(t, a_small_file_is_fetched_when_it_is_opened);
    tcase_add_test(t, reading_in_order_fetches_the_next_chunks);
    tcase_add_test(t, reading_backward_fetches_the_next_chunks);
    tcase_add_test(t, bytes_count_as_read_from_where_they_came);
    tcase_add_test(t, reading_at_random_fetches_no_more_than_is_read);
    tcase_add_test(t, a_dead_owner_costs_seconds_and_no_byte);
    return run_case("fetch", t);
}
