/* test_data_small_cache.c - two nodes whose caches are far smaller than the data. */
#include "nodes_data.h"

#define LARGE ((size_t)30 << 20)

START_TEST(a_small_cache_reads_a_large_file)
{
    pfs_make("large", LARGE, 20);
    for (unsigned i = 0; i < 2; i++)
        open_on(i, "large", 0, O_RDONLY);
    for (unsigned pass = 0; pass < 2; pass++)
        for (unsigned i = 0; i < 2; i++)
            for (uint64_t off = 0; off < LARGE; off += 1 << 20)
                assert_read(i, 0, off, 1 << 20, 1 << 20, 20);
    for (unsigned i = 0; i < 2; i++)
        close_on(i, 0);
}
END_TEST

/* Written on node 0, whose store has no room for it: earlier bytes go to the PFS meanwhile. */
static void write_large(const char *name, unsigned writer, uint64_t seed)
{
    size_t len;
    open_on(0, name, 0, O_RDWR | O_CREAT);
    open_on(1, name, 0, O_RDWR);
    for (uint64_t off = 0; off < LARGE; off += 1 << 20)
        write_on(writer, 0, off, 1 << 20, seed);
    for (unsigned i = 0; i < 2; i++)
        for (uint64_t off = 0; off < LARGE; off += 1 << 20)
            assert_read(i, 0, off, 1 << 20, 1 << 20, seed);
    close_on(0, 0);
    close_on(1, 0);
    flush_everywhere(name);
    struct order back = {0};
    snprintf(back.name, sizeof(back.name), "%s", name);
    node_until(0, order_all_is_back, &back, "what node 1 has borrowed is back");
    flush_on(0, name);
    ck_assert(pfs_hash(name, &len) == hash_pattern(LARGE, seed, 0));
}

START_TEST(a_small_cache_takes_a_large_file)
{
    write_large("written", 0, 21);
}
END_TEST

START_TEST(a_claimant_with_a_small_cache_takes_a_large_file)
{
    write_large("carried", 1, 22);
}
END_TEST

START_TEST(a_small_cache_takes_a_byte_in_each_chunk_of_a_large_file)
{
    const uint64_t step = NODE_CHUNK + 4096 + 17;
    size_t len;
    uint8_t *want = xmalloc(LARGE);
    pfs_make("bytes", LARGE, 23);
    fill_pattern(want, LARGE, 23, 0);
    open_on(0, "bytes", 0, O_RDWR);
    for (uint64_t off = 0; off < LARGE; off += step) {
        write_on(0, 0, off, 1, 24);
        fill_pattern(want + off, 1, 24, off);
    }
    struct order o = read_on(0, 0, 0, LARGE);
    ck_assert_uint_eq(o.out[0], LARGE);
    ck_assert_uint_eq(o.out[1], XXH3_64bits(want, LARGE));
    close_on(0, 0);
    flush_on(0, "bytes");
    ck_assert(pfs_hash("bytes", &len) == XXH3_64bits(want, LARGE));
    free(want);
}
END_TEST

static void begin(void)
{
    nodes_begin(2, 8u << 20);
}

int main(int argc, char **argv)
{
    if (node_is(argc, argv)) {
        local_on_need(&(struct local_needs){.make_room = flush_for_room});
        return node_main(argc, argv);
    }
    TCase *t = nodes_case("small caches", begin);
    tcase_add_test(t, a_small_cache_reads_a_large_file);
    tcase_add_test(t, a_small_cache_takes_a_large_file);
    tcase_add_test(t, a_claimant_with_a_small_cache_takes_a_large_file);
    tcase_add_test(t, a_small_cache_takes_a_byte_in_each_chunk_of_a_large_file);
    return run_case("data, small caches", t);
}
