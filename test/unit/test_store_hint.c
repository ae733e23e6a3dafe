/* test_store_hint.c - which chunks leave when it is known which are read next: what is not read again first, then by age, and
 * hinted ones only when their hint was given up. */
#include "store_help.h"

#include "placement/store/eviction.h"
#include "placement/store/store_hint.h"
#include "suite.h"

#define CHUNK (64 * KIB)
#define CHUNKS 8

static uint8_t data[CHUNKS * CHUNK];
static struct version v;
static struct file *f;

static void setup(void)
{
    dir_setup();
    open_store(64 * MIB, CHUNK);
    v = version_n(sizeof(data), 5);
    put_pattern(data, sizeof(data), 0, 1);
    f = get_file(1, "f");
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
}

static void teardown(void)
{
    eviction_on_farthest(NULL);
    eviction_on_hinted(NULL);
    file_put(f);
    store_close(false);
    dir_teardown();
}

static void fill(uint64_t index, bool owned)
{
    ck_assert_int_eq(fill_chunk(f, index, &v, data, owned), 0);
}

static void fill_all(bool owned)
{
    for (uint64_t i = 0; i < CHUNKS; i++)
        fill(i, owned);
}

static bool has(uint64_t index)
{
    return here(f, index * CHUNK, CHUNK) == CHUNK;
}

static void hint(uint64_t index, uint64_t n, enum eviction_time t)
{
    store_hint(fid_n(1), index * CHUNK, n * CHUNK, t);
}

/* Just these chunks leave, one after the other; looked at without a use of them. */
static void leaves(uint64_t index)
{
    uint64_t off, len;
    ck_assert(!store_missing(f, index * CHUNK, CHUNK, &off, &len));
    ck_assert(eviction_one(false, false));
    ck_assert(store_missing(f, index * CHUNK, CHUNK, &off, &len));
}

START_TEST(what_is_not_read_again_leaves_first)
{
    fill_all(_i);
    hint(5, 1, TIME_NEVER);
    hint(2, 1, TIME_NEVER);
    leaves(5);
    leaves(2);
    leaves(0); /* by its age */
    leaves(1);
    leaves(3);
}
END_TEST

START_TEST(replicas_of_what_is_not_read_again_leave_before_owned_ones)
{
    fill(0, false);
    fill(1, true);
    fill(2, false);
    hint(1, 2, TIME_NEVER);
    leaves(2);
    leaves(1); /* before a replica of which nothing is known */
    leaves(0);
}
END_TEST

START_TEST(what_is_hinted_leaves_last_and_only_when_it_is_given_up)
{
    fill_all(_i);
    hint(0, CHUNKS, TIME_HINTED);
    ck_assert(!eviction_one(false, true));
    hint(3, 2, TIME_UNKNOWN);
    leaves(3);
    leaves(4);
    ck_assert(!eviction_one(false, true));
    hint(0, CHUNKS, TIME_UNKNOWN);
    leaves(0);
}
END_TEST

static unsigned given_up;
static bool asked_ahead;

static bool give_up(bool ahead)
{
    asked_ahead = ahead;
    if (given_up == 2)
        return false;
    hint(CHUNKS - ++given_up, 1, TIME_UNKNOWN);
    return true;
}

START_TEST(the_farthest_hint_is_given_up_when_nothing_else_may_leave)
{
    given_up = 0;
    eviction_on_farthest(give_up);
    fill_all(false);
    hint(1, CHUNKS - 1, TIME_HINTED);
    leaves(0);
    ck_assert_uint_eq(given_up, 0);
    leaves(CHUNKS - 1);
    ck_assert(!asked_ahead);
    ck_assert(eviction_one(false, true) && asked_ahead);
    ck_assert(!has(CHUNKS - 2));
    ck_assert(!eviction_one(false, true));
    ck_assert(has(1));
}
END_TEST

/* A file is written, and hinted before it is flushed. */
START_TEST(a_hint_for_dirty_chunks_counts_when_they_are_clean)
{
    struct file *w = new_file(2, "w");
    fill(0, true);
    write_ok(w, data, 2 * CHUNK, 0);
    store_hint(fid_n(2), 0, CHUNK, TIME_HINTED);
    ck_assert(eviction_one(false, true)); /* that of f */
    ck_assert(!eviction_one(false, true)); /* dirty ones stay anyway */
    file_put(w);
}
END_TEST

START_TEST(a_use_shows_that_it_is_read_again)
{
    fill_all(true);
    hint(0, 2, TIME_NEVER);
    struct store_hit hit;
    leaves(0);
    for (uint64_t s = boot_ms() / 1024; boot_ms() / 1024 == s;)
        ; /* uses in one second count as one */
    ck_assert_uint_eq(store_read_begin(f, CHUNK, CHUNK, &hit), CHUNK);
    store_read_end(&hit);
    leaves(2);
    ck_assert(has(1));
}
END_TEST

START_TEST(what_comes_for_a_hint_is_hinted_from_the_beginning)
{
    fill(0, true);
    store_hint_coming(f, CHUNK, 2 * CHUNK);
    fill(1, true);
    fill(2, true);
    fill(3, true);
    store_hint_coming(f, 0, 0);
    fill(4, true);
    leaves(0);
    leaves(3);
    leaves(4);
    ck_assert(!eviction_one(false, true));
}
END_TEST

static uint64_t left[CHUNKS];
static unsigned nleft;

static void note_left(struct fid fid, uint64_t index)
{
    ck_assert(fid_eq(fid, fid_n(1)));
    left[nleft++] = index;
}

START_TEST(what_leaves_is_told)
{
    eviction_on_left(note_left);
    fill_all(false);
    leaves(0);
    leaves(1);
    ck_assert_uint_eq(nleft, 2);
    ck_assert_uint_eq(left[1], 1);
    ck_assert(eviction_one_file(true));
    ck_assert_uint_eq(nleft, CHUNKS);
    eviction_on_left(NULL);
}
END_TEST

static bool is_second(struct fid fid, uint64_t index)
{
    return fid_eq(fid, fid_n(1)) && index == 1;
}

/* What the kernel writes has no chunks when it is hinted; they come when it is flushed. */
START_TEST(a_chunk_is_asked_for_when_it_may_leave_for_the_first_time)
{
    eviction_on_hinted(is_second);
    fill_all(_i);
    leaves(0);
    for (uint64_t i = 2; i < CHUNKS; i++)
        leaves(i);
    ck_assert(!eviction_one(false, true));
    hint(1, 1, TIME_UNKNOWN);
    leaves(1);
}
END_TEST

START_TEST(files_that_the_cache_does_not_have_cost_nothing)
{
    store_hint(fid_n(77), 0, INT64_MAX, TIME_HINTED);
    ck_assert_ptr_null(file_find(fid_n(77)));
}
END_TEST

START_TEST(hints_end_with_the_daemon)
{
    fill_all(true);
    hint(0, CHUNKS, TIME_HINTED);
    file_put(f);
    store_close(true);
    open_store(64 * MIB, CHUNK);
    f = get_file(1, "f");
    ck_assert(has(0) && eviction_one(false, false));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("store_hint");
    TCase *t = add_case(s, "store_hint", setup, teardown, 30);
    tcase_add_loop_test(t, what_is_not_read_again_leaves_first, 0, 2);
    tcase_add_test(t, replicas_of_what_is_not_read_again_leave_before_owned_ones);
    tcase_add_loop_test(t, what_is_hinted_leaves_last_and_only_when_it_is_given_up, 0, 2);
    tcase_add_test(t, the_farthest_hint_is_given_up_when_nothing_else_may_leave);
    tcase_add_test(t, a_hint_for_dirty_chunks_counts_when_they_are_clean);
    tcase_add_test(t, a_use_shows_that_it_is_read_again);
    tcase_add_test(t, what_comes_for_a_hint_is_hinted_from_the_beginning);
    tcase_add_test(t, what_leaves_is_told);
    tcase_add_loop_test(t, a_chunk_is_asked_for_when_it_may_leave_for_the_first_time, 0, 2);
    tcase_add_test(t, files_that_the_cache_does_not_have_cost_nothing);
    tcase_add_test(t, hints_end_with_the_daemon);
    return run_suite(s);
}
