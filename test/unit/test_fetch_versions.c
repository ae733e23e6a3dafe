/* test_fetch_versions.c - clean chunks between three nodes, of a file that becomes another version
 * meanwhile: what is read, and what is kept of it. */
#include "fetch_env.h"

#include "placement/chunks/chunk.h"
#include "placement/chunks/flight.h"
#include "placement/claims/claim.h"
#include "placement/store/store_version.h"

#include <semaphore.h>

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
    struct flight_peer peer;
    struct file *f;
    struct version newer; /* the store's as soon as the bytes are here; size 0: none */
    struct chunk_key key;
    struct flight_call call;
    struct flight_reader stored; /* waits until the chunk is in the store */
    sem_t read;
    int err;
} keeping;

/* Before the bytes are kept: the flight is there yet. */
static void on_read(struct flight_peer *p, int err, struct chunk *c)
{
    (void)p;
    (void)c;
    keeping.err = err;
    if (!err && keeping.newer.size)
        keeping.err = store_set_version(keeping.f, &keeping.newer, &noted);
    if (!err && !flight_join(&keeping.call, &keeping.key, &keeping.stored, NULL))
        keeping.err = -ESRCH;
    sem_post(&keeping.read);
}

/* name, off: the chunk in the version that was noted is read here for another node.  b: a chmod comes before
 * it is kept.  out: why it was not kept, from a peer?, is the store's version what it was before, or since
 * the chmod? */
static void order_keep(struct order *o)
{
    struct file_info before, after;
    keeping = (struct keeping){.peer.done = on_read, .f = node_file(o->name)};
    keeping.key = (struct chunk_key){
        .fid = keeping.f->fid, .index = o->off / NODE_CHUNK, .version = noted};
    keeping.stored.file = keeping.f;
    store_info(keeping.f, &before);
    struct flight_served w = {.key = keeping.key,
                              .file = keeping.f,
                              .before = before.base,
                              .before_known = before.base_known,
                              .looked = flight_ended(keeping.f->fid)};
    if (o->b) {
        keeping.newer = before.base;
        keeping.newer.ctime_ns += 1000000;
        before.base = keeping.newer;
    }
    flight_call_init(&keeping.call);
    sem_init(&keeping.read, 0, 0);
    flight_serve(&w, chunk_new(ROOM_SERVE, NODE_CHUNK), &keeping.peer);
    sem_wait(&keeping.read);
    struct flight_reader *r = keeping.call.n ? flight_next(&keeping.call, 0) : NULL;
    o->err = keeping.err;
    if (r) {
        o->out[0] = (uint64_t)-r->err;
        o->out[1] = r->source == FROM_PEER;
        flight_put(r);
    }
    store_info(keeping.f, &after);
    o->out[2] = version_eq(&before.base, &after.base);
    flight_call_destroy(&keeping.call);
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
        o->err = claim_where(fid_of(&stx), LOOK_NONE, &at);
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

int main(int argc, char **argv)
{
    if (node_is(argc, argv))
        return node_main(argc, argv);
    TCase *t = three_nodes();
    tcase_add_test(t, what_is_kept_after_a_chmod_does_not_drop_what_is_here);
    tcase_add_test(t, an_older_version_from_the_former_owner_is_not_kept);
    tcase_add_test(t, a_file_that_changed_on_the_pfs_under_a_reader_is_read_as_it_is_now);
    tcase_add_test(t, a_chmod_does_not_read_the_file_again);
    tcase_add_test(t, a_file_without_a_name_is_read_by_who_has_it_open);
    return run_case("fetch_versions", t);
}
