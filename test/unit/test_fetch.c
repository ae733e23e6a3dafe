/* test_fetch.c - clean chunks between three nodes: once from the PFS, right bytes from owners that
 * are honest, wrong, silent or dead. */
#include "fetch_env.h"

#include "placement/chunks/chunk.h"
#include "placement/chunks/served.h"
#include "placement/store/range.h"
#include "placement/store/store_read.h"

#include <pthread.h>
#include <semaphore.h>

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

/* ---- former owners that are no good ---- */

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

int main(int argc, char **argv)
{
    if (node_is(argc, argv))
        return node_main(argc, argv);
    TCase *t = three_nodes();
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
    tcase_add_test(t, nonsense_is_answered_with_errors);
    tcase_add_test(t, a_reader_does_not_wait_for_its_store);
    tcase_add_test(t, what_is_in_memory_does_not_wait_for_the_disk);
    tcase_add_test(t, a_dead_owner_costs_seconds_and_no_byte);
    return run_case("fetch", t);
}
