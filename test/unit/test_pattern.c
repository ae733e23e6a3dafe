/* test_pattern.c - what is read ahead, and what is not: walks through reads of one open file. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "placement/chunks/pattern.h"
#include "transport/base.h"

#include "suite.h"

#define CHUNK  (1u << 20)
#define WINDOW 16
#define KIB    UINT64_C(1024)
#define MIB    (KIB * 1024)

/* An open file of at most 4096 chunks: how often each was wanted, and which were read. */
static struct pattern p;
static uint64_t size, wants;
static uint8_t wanted[4096];
static bool was_read[4096];

static void begin(uint64_t file_size)
{
    pattern_init(&p, CHUNK, WINDOW);
    size = file_size;
    wants = 0;
    memset(wanted, 0, sizeof(wanted));
    memset(was_read, 0, sizeof(was_read));
}

/* How many chunks this read made wanted. */
static unsigned see(uint64_t off, uint64_t len)
{
    struct pattern_ahead out[PATTERN_AHEAD];
    unsigned n = 0, chunks = 0;
    struct pattern_stream *s = pattern_saw(&p, off, len);
    if (s)
        n = pattern_want(&p, s, size, out);
    ck_assert_uint_le(n, PATTERN_AHEAD);
    for (unsigned i = 0; i < n; i++) {
        ck_assert_uint_le(out[i].first, out[i].last);
        ck_assert_uint_lt(out[i].last, (size + CHUNK - 1) / CHUNK);
        for (uint64_t k = out[i].first; k <= out[i].last; k++, chunks++)
            wanted[k]++;
    }
    for (uint64_t k = off / CHUNK; k < (off + len + CHUNK - 1) / CHUNK; k++)
        was_read[k] = true;
    wants += chunks;
    ck_assert_uint_le(chunks, WINDOW);
    return chunks;
}

/* Chunks [first, last] were wanted, each before it was read and once. */
static void assert_wanted_once(uint64_t first, uint64_t last)
{
    for (uint64_t k = first; k <= last; k++)
        ck_assert_msg(wanted[k] == 1, "chunk %llu was wanted %u times", (unsigned long long)k,
                      wanted[k]);
}

static void assert_nothing_wasted(void)
{
    for (unsigned k = 0; k < ARRAY_LEN(wanted); k++)
        ck_assert_msg(!wanted[k] || was_read[k], "chunk %u was wanted and not read", k);
}

/* ---- sequential ---- */

START_TEST(a_sequence_wants_each_chunk_once)
{
    static const uint64_t lens[] = {4 * KIB, 60 * KIB, 128 * KIB, 1000, MIB};
    for (unsigned i = 0; i < ARRAY_LEN(lens); i++) {
        begin(100 * MIB);
        for (uint64_t off = 0; off < size; off += lens[i])
            see(off, MIN(lens[i], size - off));
        assert_wanted_once(1, 99);
        ck_assert_uint_eq(wanted[0], 0);
    }
}
END_TEST

START_TEST(the_window_doubles_up_to_its_limit)
{
    begin(200 * MIB);
    unsigned ahead = 0;
    uint64_t most = 0, reached = 0;
    for (uint64_t off = 0; off < 100 * MIB; off += 128 * KIB) {
        ahead += see(off, 128 * KIB);
        uint64_t now = off / CHUNK;
        ck_assert_uint_le(ahead, now + WINDOW);
        ck_assert_uint_le(now, ahead + 1);
        if (ahead > now && ahead - now > most) {
            most = ahead - now;
            reached = now;
        }
    }
    ck_assert_uint_eq(most, WINDOW);
    ck_assert_uint_le(reached, 6);
}
END_TEST

START_TEST(the_first_reads_of_a_file_want_nothing)
{
    begin(100 * MIB);
    ck_assert_uint_eq(see(0, 128 * KIB), 0);
    ck_assert_uint_eq(see(128 * KIB, 64 * KIB), 0);
    ck_assert_uint_eq(see(192 * KIB, 64 * KIB), 1);
}
END_TEST

START_TEST(a_sequence_in_the_middle_is_seen_as_well)
{
    begin(100 * MIB);
    for (uint64_t off = 30 * MIB; off < 60 * MIB; off += 128 * KIB)
        see(off, 128 * KIB);
    assert_wanted_once(31, 59);
    ck_assert_uint_eq(wanted[30], 0);
}
END_TEST

/* Requests of the kernel's read-ahead, brought here by several threads: of `some` that are under
 * way any comes next, but none is overtaken by more than twice as many. */
static void see_out_of_order(uint64_t len, unsigned some, unsigned seed)
{
    uint64_t way[16], n = 0, next = 0, count = size / len;
    srand(seed);
    while (next < count || n) {
        while (n < some && next < count)
            way[n++] = next++;
        unsigned i = next - way[0] > 2 * some ? 0 : (unsigned)rand() % (unsigned)n;
        see(way[i] * len, len);
        n--;
        memmove(&way[i], &way[i + 1], (n - i) * sizeof(way[0]));
    }
}

START_TEST(a_sequence_out_of_order_is_one)
{
    static const uint64_t lens[] = {128 * KIB, 256 * KIB, MIB};
    for (unsigned i = 0; i < ARRAY_LEN(lens); i++)
        for (unsigned seed = 1; seed <= 50; seed++) {
            begin(100 * MIB);
            see_out_of_order(lens[i], lens[i] == MIB ? 2 : 8, seed);
            unsigned missed = 0, twice = 0;
            for (unsigned k = 8; k < 100; k++) { /* 4 MiB are under way before anything is known */
                missed += !wanted[k];
                twice += wanted[k] > 1;
            }
            ck_assert_uint_eq(missed, 0);
            ck_assert_uint_le(twice, 2);
        }
}
END_TEST

START_TEST(pairs_in_the_wrong_order_are_a_sequence)
{
    begin(100 * MIB);
    for (uint64_t off = 0; off < size; off += 256 * KIB) {
        see(off + 128 * KIB, 128 * KIB);
        see(off, 128 * KIB);
    }
    assert_wanted_once(2, 99);
}
END_TEST

START_TEST(nothing_beyond_the_end_is_wanted)
{
    begin(5 * MIB + 1);
    for (uint64_t off = 0; off < size; off += 128 * KIB)
        see(off, 128 * KIB); /* the last ones are beyond */
    assert_wanted_once(1, 5);
    ck_assert_uint_eq(wants, 5);
    begin(0);
    for (uint64_t off = 0; off < MIB; off += 128 * KIB)
        ck_assert_uint_eq(see(off, 128 * KIB), 0);
    begin(MIB);
    ck_assert_ptr_null(pattern_saw(&p, UINT64_MAX - 10, 100));
    ck_assert_ptr_null(pattern_saw(&p, 0, 0));
}
END_TEST

START_TEST(a_second_pass_is_a_sequence_again)
{
    begin(20 * MIB);
    for (unsigned pass = 0; pass < 3; pass++)
        for (uint64_t off = 0; off < size; off += 128 * KIB)
            see(off, 128 * KIB);
    for (unsigned k = 2; k < 20; k++)
        ck_assert_uint_ge(wanted[k], 2); /* what is in the store by then is the caller's to see */
}
END_TEST

START_TEST(the_same_bytes_again_want_nothing)
{
    begin(100 * MIB);
    for (unsigned i = 0; i < 1000; i++)
        ck_assert_uint_eq(see(10 * MIB + i % 3 * 64 * KIB, 64 * KIB), 0);
    for (unsigned i = 0; i < 1000; i++)
        ck_assert_uint_eq(see(50 * MIB, MIB), 0);
}
END_TEST

/* ---- interleaved ---- */

START_TEST(interleaved_sequences_are_each_seen)
{
    for (unsigned n = 2; n <= 4; n++) {
        begin(400 * MIB);
        uint64_t apart = size / n, len = 40 * MIB;
        for (uint64_t off = 0; off < len; off += 128 * KIB)
            for (unsigned k = 0; k < n; k++)
                see(k * apart + off, 128 * KIB);
        for (unsigned k = 0; k < n; k++) {
            unsigned missed = 0, twice = 0;
            for (uint64_t c = k * apart / CHUNK + 3; c < (k * apart + len) / CHUNK - 1; c++) {
                missed += !wanted[c];
                twice += wanted[c] > 1;
            }
            ck_assert_msg(!missed && twice <= 1, "stream %u of %u: %u missed, %u twice", k, n,
                          missed, twice);
        }
    }
}
END_TEST

START_TEST(interleaved_sequences_share_the_window)
{
    begin(400 * MIB);
    for (uint64_t off = 0; off < 90 * MIB; off += 128 * KIB)
        for (unsigned k = 0; k < 4; k++)
            see(k * 100 * MIB + off, 128 * KIB);
    for (unsigned k = 0; k < 4; k++) /* 90 MiB were read of each */
        for (unsigned c = 90 + WINDOW / 4; c < 100; c++)
            ck_assert_uint_eq(wanted[k * 100 + c], 0);
}
END_TEST

START_TEST(a_sequence_beside_random_reads_is_seen)
{
    begin(1000 * MIB);
    srand(5);
    for (uint64_t off = 0; off < 50 * MIB; off += 128 * KIB) {
        see(off, 128 * KIB);
        see((100 + (uint64_t)rand() % 899) * MIB + 4 * KIB * ((uint64_t)rand() % 255), 4 * KIB);
    }
    assert_wanted_once(1, 49);
}
END_TEST

/* ---- strided and backward ---- */

START_TEST(records_at_a_constant_distance_are_seen)
{
    static const struct {
        uint64_t len, step;
    } all[] = {
        {64 * KIB, 5 * MIB}, {4 * KIB, 3 * MIB + 4 * KIB}, {1000, 2 * MIB + 123}, {MIB, 7 * MIB}};
    for (unsigned i = 0; i < ARRAY_LEN(all); i++) {
        begin(500 * MIB);
        for (uint64_t off = all[i].step; off + all[i].len < size; off += all[i].step)
            see(off, all[i].len);
        assert_nothing_wasted();
        for (uint64_t off = 7 * all[i].step; off + all[i].len < size; off += all[i].step)
            ck_assert_uint_ge(wanted[off / CHUNK], 1);
        ck_assert_uint_le(wants, 2 * size / all[i].step + WINDOW);
    }
}
END_TEST

START_TEST(records_read_in_pieces_are_wanted_whole)
{
    begin(400 * MIB);
    for (uint64_t off = 0; off < size; off += 10 * MIB)
        for (uint64_t in = 0; in < 2 * MIB; in += 128 * KIB)
            see(off + in, 128 * KIB);
    unsigned wasted = 0;
    for (unsigned k = 0; k < 400; k++)
        wasted += wanted[k] && !was_read[k];
    ck_assert_uint_le(wasted, 9); /* the first ones may be sequences */
    for (unsigned k = 60; k < 400; k += 10) {
        ck_assert_uint_eq(wanted[k], 1);
        ck_assert_uint_eq(wanted[k + 1], 1);
    }
}
END_TEST

START_TEST(small_steps_want_each_chunk_once)
{
    begin(100 * MIB);
    for (uint64_t off = 0; off < size; off += 300 * KIB)
        see(off, 16 * KIB);
    assert_wanted_once(2, 99);
}
END_TEST

START_TEST(reading_backward_wants_each_chunk_once)
{
    static const uint64_t lens[] = {4 * KIB, 64 * KIB, 128 * KIB, MIB};
    for (unsigned i = 0; i < ARRAY_LEN(lens); i++) {
        begin(100 * MIB);
        for (uint64_t off = size; off > 0; off -= lens[i])
            see(off - lens[i], lens[i]);
        assert_wanted_once(0, 94);
    }
}
END_TEST

START_TEST(records_backward_are_seen)
{
    begin(500 * MIB);
    for (uint64_t off = 499 * MIB; off > 6 * MIB; off -= 6 * MIB)
        see(off, 128 * KIB);
    for (uint64_t off = 499 * MIB - 5 * 6 * MIB; off > 6 * MIB; off -= 6 * MIB)
        ck_assert_uint_eq(wanted[off / CHUNK], 1);
}
END_TEST

START_TEST(four_quarters_read_at_once_are_sequences)
{
    begin(400 * MIB); /* their beginnings look like a stride */
    for (uint64_t off = 0; off < 50 * MIB; off += 64 * KIB)
        for (unsigned k = 0; k < 4; k++)
            see(k * 100 * MIB + off, 64 * KIB);
    for (unsigned k = 0; k < 4; k++)
        for (unsigned c = 3; c < 50; c++)
            ck_assert_uint_ge(wanted[k * 100 + c], 1);
    ck_assert_uint_le(wants, 4 * (50 + WINDOW));
}
END_TEST

/* ---- random ---- */

START_TEST(random_reads_want_nothing)
{
    static const uint64_t lens[] = {512, 4 * KIB, 16 * KIB, 128 * KIB, MIB};
    for (unsigned i = 0; i < ARRAY_LEN(lens); i++) {
        begin(2000 * MIB);
        srand(i + 1);
        for (unsigned k = 0; k < 20000; k++) {
            uint64_t places = (size - lens[i]) / MAX(lens[i], 4 * KIB);
            uint64_t at = ((uint64_t)rand() << 16 ^ (uint64_t)rand()) % places;
            see((at + 1) * MAX(lens[i], 4 * KIB), lens[i]);
        }
        ck_assert_msg(wants <= (lens[i] < MIB ? 0 : 20), "%llu chunks at %llu bytes",
                      (unsigned long long)wants, (unsigned long long)lens[i]);
    }
}
END_TEST

/* Records of a data set in shuffled order, each in requests of 128 KiB. */
START_TEST(large_records_at_random_want_next_to_nothing)
{
    begin(4000 * MIB);
    srand(9);
    for (unsigned k = 0; k < 2000; k++) {
        uint64_t at = (1 + (uint64_t)rand() % 3990) * MIB;
        for (uint64_t in = 0; in < 768 * KIB; in += 128 * KIB)
            see(at + in, 128 * KIB);
    }
    ck_assert_uint_le(wants, 2000 / 20);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("walks");
    tcase_add_test(t, a_sequence_wants_each_chunk_once);
    tcase_add_test(t, the_window_doubles_up_to_its_limit);
    tcase_add_test(t, the_first_reads_of_a_file_want_nothing);
    tcase_add_test(t, a_sequence_in_the_middle_is_seen_as_well);
    tcase_add_test(t, a_sequence_out_of_order_is_one);
    tcase_add_test(t, pairs_in_the_wrong_order_are_a_sequence);
    tcase_add_test(t, nothing_beyond_the_end_is_wanted);
    tcase_add_test(t, a_second_pass_is_a_sequence_again);
    tcase_add_test(t, the_same_bytes_again_want_nothing);
    tcase_add_test(t, interleaved_sequences_are_each_seen);
    tcase_add_test(t, interleaved_sequences_share_the_window);
    tcase_add_test(t, a_sequence_beside_random_reads_is_seen);
    tcase_add_test(t, records_at_a_constant_distance_are_seen);
    tcase_add_test(t, records_read_in_pieces_are_wanted_whole);
    tcase_add_test(t, small_steps_want_each_chunk_once);
    tcase_add_test(t, reading_backward_wants_each_chunk_once);
    tcase_add_test(t, records_backward_are_seen);
    tcase_add_test(t, four_quarters_read_at_once_are_sequences);
    tcase_add_test(t, random_reads_want_nothing);
    tcase_add_test(t, large_records_at_random_want_next_to_nothing);
    return run_case("pattern", t);
}
