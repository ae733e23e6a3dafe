/* test_fetch_ahead.c - what three nodes fetch before it is read: in order, backward, small files whole,
 * and nothing at random. */
#include "fetch_env.h"

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

int main(int argc, char **argv)
{
    if (node_is(argc, argv))
        return node_main(argc, argv);
    TCase *t = three_nodes();
    tcase_add_test(t, a_small_file_is_fetched_when_it_is_opened);
    tcase_add_test(t, reading_in_order_fetches_the_next_chunks);
    tcase_add_test(t, reading_backward_fetches_the_next_chunks);
    tcase_add_test(t, bytes_count_as_read_from_where_they_came);
    tcase_add_test(t, reading_at_random_fetches_no_more_than_is_read);
    return run_case("fetch_ahead", t);
}
