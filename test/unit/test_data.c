/* test_data.c - claimed files between three nodes: what one wrote the others read and write on, before
 * and after the flush.
 */
#include "nodes_data.h"
#include "placement/claims/claim.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"

#define N 3

/* len: where a hole ends; out: where the data begins. */
static void order_seek(struct order *o)
{
    o->err = data_seek(node_handles[o->a].h, o->len, false, &o->out[0]);
}

START_TEST(data_that_another_open_wrote_is_found)
{
    open_on(0, "sought", 0, O_RDWR | O_CREAT);
    write_on(0, 0, 0, 5000, 1);
    open_on(1, "sought", 0, O_RDWR);
    open_on(1, "sought", 1, O_RDWR);
    ck_assert_int_eq(where_on(1, 0, NULL), WHERE_NODE);
    for (uint64_t off = 5000; off < 105000; off += 10000) /* short ones: the claimant lends nothing for them */
        write_on(1, 1, off, 10000, 1);
    struct order o = {.a = 0, .len = 60000};
    node_run(1, order_seek, &o);
    ck_assert_int_eq(o.err, 0);
    ck_assert_uint_eq(o.out[0], 60000);
    o = (struct order){.a = 0, .len = 105000};
    node_run(1, order_seek, &o);
    ck_assert_int_eq(o.err, -ENXIO);
    close_on(1, 1);
    close_on(1, 0);
    close_on(0, 0);
    flush_on(0, "sought");
}
END_TEST

START_TEST(what_one_node_wrote_another_reads_before_and_after_the_flush)
{
    uint64_t size;
    size_t len;
    open_on(0, "new", 0, O_RDWR | O_CREAT);
    write_on(0, 0, 0, 200000, 1);
    close_on(0, 0);
    open_on(1, "new", 0, O_RDONLY);
    ck_assert_int_eq(where_on(1, 0, &size), WHERE_NODE);
    ck_assert_uint_eq(size, 200000);
    assert_read(1, 0, 0, 300000, 200000, 1);
    assert_read(1, 0, 12345, 1000, 1000, 1);
    flush_on(0, "new");
    ck_assert(pfs_hash("new", &len) == hash_pattern(200000, 1, 0));
    assert_read(1, 0, 100000, 300000, 100000, 1); /* "not mine": goes on at the PFS */
    ck_assert_int_eq(where_on(1, 0, NULL), WHERE_PFS);
    close_on(1, 0);
    open_on(2, "new", 0, O_RDONLY);
    ck_assert_int_eq(where_on(2, 0, NULL), WHERE_PFS);
    assert_read(2, 0, 0, 300000, 200000, 1);
    close_on(2, 0);
}
END_TEST

START_TEST(two_writers_on_two_nodes_write_one_file)
{
    size_t len;
    open_on(0, "two", 0, O_RDWR | O_CREAT);
    open_on(1, "two", 0, O_RDWR);
    ck_assert_int_eq(where_on(0, 0, NULL), WHERE_HERE);
    ck_assert_int_eq(where_on(1, 0, NULL), WHERE_NODE);
    for (uint64_t off = 0; off < 150000; off += 3000)
        write_on(off / 3000 % 2, 0, off, 3000, 2);
    assert_read(0, 0, 0, 200000, 150000, 2);
    assert_read(1, 0, 0, 200000, 150000, 2);
    uint64_t size;
    where_on(1, 0, &size);
    ck_assert_uint_eq(size, 150000);
    close_on(0, 0);
    write_on(1, 0, 150000, 3000, 2); /* the claimant's own writer is gone, ours is counted there */
    flush_on(0, "two");
    ck_assert_uint_eq(claims_on(0), 1);
    write_on(1, 0, 153000, 3000, 2);
    close_on(1, 0);
    flush_on(0, "two");
    ck_assert_uint_eq(claims_on(0), 0);
    ck_assert(pfs_hash("two", &len) == hash_pattern(156000, 2, 0));
    ck_assert_uint_eq(len, 156000);
}
END_TEST

START_TEST(appends_of_two_nodes_do_not_overwrite_each_other)
{
    uint64_t at = 0;
    size_t len;
    open_on(2, "log", 0, O_RDWR | O_CREAT);
    open_on(0, "log", 0, O_RDWR);
    for (unsigned i = 0; i < 60; i++) {
        ck_assert_uint_eq(append_on(i % 2 ? 0 : 2, 0, 777, 3, at), at);
        at += 777;
    }
    close_on(0, 0);
    close_on(2, 0);
    flush_on(2, "log");
    ck_assert(pfs_hash("log", &len) == hash_pattern(60 * 777, 3, 0));
}
END_TEST

/* One byte of an uncached file, written by a node or carried there. */
static void one_byte(const char *name, size_t size, uint64_t off, bool carried)
{
    unsigned writer = carried ? 1 : 0;
    size_t len;
    pfs_make(name, size, 4);
    if (carried)
        open_on(0, name, 5, O_RDWR);
    open_on(writer, name, 0, O_RDWR);
    write_on(writer, 0, off, 1, 99);
    close_on(writer, 0);
    if (carried)
        close_on(0, 5);
    flush_on(0, name);
    uint8_t *want = xmalloc(MAX(size, off + 1)), byte;
    memset(want, 0, MAX(size, off + 1));
    fill_pattern(want, size, 4, 0);
    fill_pattern(&byte, 1, 99, off);
    want[off] = byte;
    uint64_t got = pfs_hash(name, &len);
    ck_assert_msg(len == MAX(size, off + 1), "%s: size %zu after one byte at %llu", name, len,
                  (unsigned long long)off);
    ck_assert_msg(got == XXH3_64bits(want, len), "%s: other bytes changed (byte at %llu)", name,
                  (unsigned long long)off);
    free(want);
}

START_TEST(one_byte_into_an_uncached_file_changes_one_byte)
{
    static const size_t sizes[] = {0,
                                   1,
                                   1000,
                                   4095,
                                   4096,
                                   4097,
                                   NODE_CHUNK - 1,
                                   NODE_CHUNK,
                                   NODE_CHUNK + 1,
                                   3 * NODE_CHUNK + 5};
    unsigned n = 0;
    for (unsigned k = 0; k < ARRAY_LEN(sizes); k++) {
        const uint64_t at[] = {0,
                               100,
                               4095,
                               4096,
                               NODE_CHUNK - 1,
                               NODE_CHUNK,
                               sizes[k] ? sizes[k] - 1 : 0,
                               sizes[k],
                               sizes[k] + 5000};
        for (unsigned j = 0; j < ARRAY_LEN(at); j++) {
            char name[32];
            snprintf(name, sizeof(name), "byte%u", n++);
            one_byte(name, sizes[k], at[j], n % 2);
        }
    }
}
END_TEST

static struct statx looked_at;

static void order_look(struct order *o)
{
    struct pfs_node *n = pfs_child(pfs_root(), o->name);
    o->err = pfs_stat(n, &looked_at);
    pfs_unref(n);
}

/* An open whose look at the PFS was the one of order_look. */
static void order_open_late(struct order *o)
{
    struct file *f;
    struct statx now;
    struct pfs_node *n = pfs_child(pfs_root(), o->name);
    o->err = file_get(fid_of(&looked_at), o->name, &f);
    if (!o->err)
        o->err = pfs_open_file(f, n, true, NULL, &now);
    if (!o->err)
        o->err = data_open(f, DATA_WRITES, false, &looked_at, boot_ms(), true, &node_handles[o->a].h);
    file_put(f);
    pfs_unref(n);
}

START_TEST(an_open_that_comes_late_puts_no_version_back)
{
    struct order look = {.name = "late"}, late = {.name = "late", .a = 1};
    open_on(0, "late", 0, O_RDWR | O_CREAT);
    write_on(0, 0, 0, 100, 3);
    flush_on(0, "late");
    node_run(1, order_look, &look);
    ck_assert_int_eq(look.err, 0);
    write_on(0, 0, 0, 5000, 4);
    close_on(0, 0);
    flush_on(0, "late");
    nodes_find_old("late"); /* else what is read is racy, and not kept */
    open_on(1, "late", 0, O_RDONLY);
    assert_read(1, 0, 0, 10000, 5000, 4);
    struct order before = read_on(1, 0, 0, 100);
    node_run(1, order_open_late, &late);
    ck_assert_msg(!late.err, "%s", strerror(-late.err));
    ck_assert_uint_eq(late.counters.stale_bytes, before.counters.stale_bytes);
    assert_read(1, 0, 0, 10000, 5000, 4);
    close_on(1, 1);
    close_on(1, 0);
}
END_TEST

static void order_dropping(struct order *o)
{
    struct data_handle *h = node_handles[o->a].h;
    struct data_tag now;
    bool changed;
    o->err = data_revalidate(h, &changed, &now);
    data_dropping(h);
}

/* One handle was granted a lock, another of the same node only reads: it must not bring back what the
 * kernel was told to drop. */
START_TEST(no_handle_reads_older_bytes_after_the_kernels_pages_were_dropped)
{
    struct order o = {.a = 0};
    open_on(0, "dropped", 0, O_RDWR | O_CREAT);
    write_on(0, 0, 0, 5000, 1);
    close_on(0, 0);
    flush_on(0, "dropped");
    for (unsigned h = 0; h < 3; h++) {
        open_on(1, "dropped", h, O_RDONLY);
        assert_read(1, h, 0, 5000, 5000, 1);
    }
    open_on(0, "dropped", 0, O_RDWR);
    write_on(0, 0, 0, 5000, 2);
    node_run(1, order_dropping, &o);
    ck_assert_int_eq(o.err, 0);
    for (unsigned h = 0; h < 3; h++)
        assert_read(1, h, 0, 5000, 5000, 2);
    close_on(0, 0);
    flush_on(0, "dropped");
    for (unsigned h = 0; h < 3; h++)
        close_on(1, h);
}
END_TEST

START_TEST(truncation_and_growth_are_seen_by_the_other_node)
{
    open_on(0, "trunc", 0, O_RDWR | O_CREAT);
    write_on(0, 0, 0, 100000, 5);
    open_on(1, "trunc", 0, O_RDWR);
    truncate_on(1, 0, 5000);
    assert_read(0, 0, 0, 100000, 5000, 5);
    truncate_on(1, 0, 9000);
    struct order o = read_on(0, 0, 5000, 10000);
    uint8_t zeros[4000] = {0};
    ck_assert_uint_eq(o.out[0], 4000);
    ck_assert_uint_eq(o.out[1], XXH3_64bits(zeros, sizeof(zeros)));
    close_on(0, 0);
    close_on(1, 0);
    open_on(2, "trunc", 0,
            O_RDWR | O_TRUNC); /* at the claimant's, or here after a flush: empty in both cases */
    uint64_t size;
    where_on(2, 0, &size);
    assert_read(2, 0, 0, 1000, 0, 0);
    open_on(1, "trunc", 0, O_RDONLY);
    assert_read(1, 0, 0, 1000, 0, 0);
    close_on(1, 0);
    close_on(2, 0);
    flush_on(0, "trunc");
    size_t len;
    pfs_hash("trunc", &len);
    ck_assert_uint_eq(len, 0);
}
END_TEST

START_TEST(close_to_open_with_growing_and_shrinking_files)
{
    for (unsigned round = 0; round < 300; round++) {
        unsigned w = round % N, r = (round + 1) % N;
        uint64_t size = (round * 7919u) % (3 * NODE_CHUNK);
        open_on(w, "rounds", 0, O_RDWR | O_CREAT | O_TRUNC);
        write_on(w, 0, 0, size, round);
        close_on(w, 0);
        if (round % 7 == 0)
            flush_everywhere("rounds");
        uint64_t seen;
        open_on(r, "rounds", 1, O_RDONLY);
        where_on(r, 1, &seen);
        ck_assert_msg(seen == size, "round %u: size %llu, not %llu", round,
                      (unsigned long long)seen, (unsigned long long)size);
        assert_read(r, 1, 0, 4 * NODE_CHUNK, size, round);
        close_on(r, 1);
    }
    flush_everywhere("rounds");
}
END_TEST

static bool changed_on(unsigned i, uint64_t handle)
{
    struct order o = {.a = handle};
    node_run(i, order_revalidate, &o);
    ck_assert_msg(!o.err, "asking again on node %u: %s", i, strerror(-o.err));
    return o.out[0];
}

/* The kernel of node 1 caches what it read; a granted lock asks whether that is still good. */
START_TEST(asking_again_tells_whether_cached_bytes_are_stale)
{
    open_on(0, "again", 0, O_RDWR | O_CREAT);
    write_on(0, 0, 0, 20000, 11);
    open_on(1, "again", 0, O_RDWR);
    assert_read(1, 0, 0, 20000, 20000, 11);
    ck_assert(!changed_on(1, 0));
    write_on(1, 0, 0, 100, 11);
    ck_assert(!changed_on(1, 0)); /* our own write is in our cache */
    write_on(0, 0, 0, 100, 12);
    write_on(1, 0, 10000, 100, 11); /* must not hide the other's */
    ck_assert(changed_on(1, 0));
    ck_assert(!changed_on(1, 0));
    assert_read(1, 0, 0, 100, 100, 12);
    ck_assert(!changed_on(0, 0)); /* the claimant's mount was told of each carried write */

    open_on(2, "again", 0, O_RDONLY);
    assert_read(2, 0, 0, 100, 100, 12);
    write_on(0, 0, 0, 100, 13);
    close_on(0, 0);
    close_on(1, 0);
    flush_on(0, "again");
    nodes_find_old("again");                /* a younger version is asked for again and again */
    assert_read(2, 0, 10000, 100, 100, 11); /* moves on to the PFS, unasked */
    ck_assert(changed_on(2, 0));
    assert_read(2, 0, 0, 100, 100, 13);
    ck_assert(!changed_on(2, 0));
    close_on(2, 0);
}
END_TEST

START_TEST(the_counters_sum_up_to_what_was_read)
{
    open_on(0, "sum", 0, O_RDWR | O_CREAT);
    write_on(0, 0, 0, 100000, 7);
    open_on(1, "sum", 0, O_RDONLY);
    struct order a = {0}, b = {0};
    node_run(1, order_members, &a);
    assert_read(1, 0, 0, 100000, 100000, 7);
    assert_read(1, 0, 50000, 100000, 50000, 7);
    node_run(1, order_members, &b);
    uint64_t before =
        a.counters.read_local_bytes + a.counters.read_peer_bytes + a.counters.read_pfs_bytes;
    uint64_t after =
        b.counters.read_local_bytes + b.counters.read_peer_bytes + b.counters.read_pfs_bytes;
    ck_assert_uint_eq(after - before, 150000);
    close_on(0, 0);
    close_on(1, 0);
    flush_on(0, "sum");
}
END_TEST

static void order_bad_carried(struct order *o)
{
    o->out[0] = 0;
    for (unsigned i = 0; i < 40; i++) {
        struct msg *m, *reply = NULL;
        if (i % 2) {
            m = msg_new(MSG_READ);
            m->read.fid = (struct fid){i, 1};
            m->read.offset = i % 3 ? UINT64_MAX - 5 : 0;
            m->read.length = i % 4 ? 1u << 30 : 100;
        } else {
            m = msg_new(MSG_WRITE);
            m->write.fid = (struct fid){i, 1};
            m->write.op = (uint8_t)(i % 14);
            m->write.offset = i % 3 ? UINT64_MAX : 0;
            m->write.length = i % 5 ? UINT64_MAX : 10;
        }
        int err = peer_call(o->b, m, 3000, NULL, 0, &reply);
        o->out[0] += !err || !reply;
        if (reply)
            msg_free(reply);
    }
}

START_TEST(nonsense_is_answered_with_errors)
{
    struct order m = {0}, o;
    node_run(0, order_members, &m);
    o = (struct order){.b = m.out[2]};
    node_run(1, order_bad_carried, &o);
    ck_assert_uint_eq(o.out[0], 0);
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
    TCase *t = nodes_case("three nodes", begin);
    tcase_add_test(t, data_that_another_open_wrote_is_found);
    tcase_add_test(t, what_one_node_wrote_another_reads_before_and_after_the_flush);
    tcase_add_test(t, two_writers_on_two_nodes_write_one_file);
    tcase_add_test(t, appends_of_two_nodes_do_not_overwrite_each_other);
    tcase_add_test(t, one_byte_into_an_uncached_file_changes_one_byte);
    tcase_add_test(t, an_open_that_comes_late_puts_no_version_back);
    tcase_add_test(t, no_handle_reads_older_bytes_after_the_kernels_pages_were_dropped);
    tcase_add_test(t, truncation_and_growth_are_seen_by_the_other_node);
    tcase_add_test(t, close_to_open_with_growing_and_shrinking_files);
    tcase_add_test(t, asking_again_tells_whether_cached_bytes_are_stale);
    tcase_add_test(t, the_counters_sum_up_to_what_was_read);
    tcase_add_test(t, nonsense_is_answered_with_errors);
    return run_case("data", t);
}
