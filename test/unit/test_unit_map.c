/* test_unit_map.c - the map of units against a plain array, at the borders of its leaves, and full. */
#include "placement/store/unit_map.h"

#include <errno.h>
#include <string.h>

#include "suite.h"

#define LEAF  4096u
#define UNITS (4 * LEAF) /* of the plain array */

static struct unit_map map;
static uint16_t plain[UNITS];

static void setup(void)
{
    memset(plain, 0, sizeof(plain));
}

static void teardown(void)
{
    unit_clear_all(&map);
    ck_assert_uint_eq(map.n, 0);
    ck_assert_uint_eq(map.set, 0);
    ck_assert_ptr_null(map.leaf);
}

static void set(uint64_t unit, uint16_t number)
{
    ck_assert_int_eq(unit_set(&map, unit, number), 0);
}

/* ---- against a plain array ---- */

/* splitmix64 */
static uint64_t chance(void)
{
    static uint64_t state = 1;
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t plain_same_until(uint64_t unit, uint64_t last)
{
    uint64_t at = unit;
    while (at < last && plain[at + 1] == plain[unit])
        at++;
    return at;
}

static bool plain_next_run(uint16_t number, uint64_t *first, uint64_t *last)
{
    for (uint64_t unit = *first; unit < UNITS; unit++)
        if (plain[unit] == number) {
            *first = unit;
            *last = plain_same_until(unit, UNITS - 1);
            return true;
        }
    return false;
}

static void runs_are_the_same(uint16_t number)
{
    uint64_t first = 0, last, want = 0, want_last;
    while (plain_next_run(number, &want, &want_last)) {
        ck_assert(unit_next_run(&map, number, &first, &last));
        ck_assert_uint_eq(first, want);
        ck_assert_uint_eq(last, want_last);
        first = want = last + 1;
    }
    ck_assert(!unit_next_run(&map, number, &first, &last));
}

static void all_is_the_same(void)
{
    uint64_t n = 0, leaves = 0;
    for (uint64_t leaf = 0; leaf < UNITS; leaf += LEAF) {
        uint64_t before = n;
        for (uint64_t unit = leaf; unit < leaf + LEAF; unit++) {
            ck_assert_uint_eq(unit_get(&map, unit), plain[unit]);
            n += plain[unit] != 0;
        }
        leaves += n > before;
    }
    ck_assert_uint_eq(map.set, n);
    ck_assert_uint_eq(map.n, leaves); /* none is kept for nothing */
    for (uint16_t number = 1; number <= 3; number++)
        runs_are_the_same(number);
    for (unsigned i = 0; i < 200; i++) {
        uint64_t unit = chance() % UNITS, last = unit + chance() % (UNITS - unit);
        ck_assert_uint_eq(unit_same_until(&map, unit, last), plain_same_until(unit, last));
    }
}

static void clear_one_number(void)
{
    uint16_t number = (uint16_t)(1 + chance() % 3);
    uint64_t n = 0;
    for (uint64_t unit = 0; unit < UNITS; unit++)
        if (plain[unit] == number) {
            plain[unit] = 0;
            n++;
        }
    ck_assert_uint_eq(unit_clear(&map, number), n);
}

START_TEST(it_is_a_plain_array)
{
    for (unsigned round = 0; round < 400; round++) {
        uint64_t unit = chance() % UNITS, len = 1 + chance() % (chance() % 4 ? 64 : 2 * LEAF);
        uint16_t number = (uint16_t)(chance() % 4);
        for (; len-- && unit < UNITS; unit++) {
            plain[unit] = number;
            set(unit, number);
        }
        if (chance() % 10 == 0)
            clear_one_number();
        if (round % 10 == 0)
            all_is_the_same();
    }
    all_is_the_same();
}
END_TEST

/* ---- borders ---- */

START_TEST(a_run_goes_over_the_border_of_two_leaves)
{
    uint64_t first = 0, last;
    for (uint64_t unit = LEAF - 2; unit <= LEAF + 1; unit++)
        set(unit, 7);
    ck_assert_uint_eq(map.n, 2);
    ck_assert_uint_eq(unit_same_until(&map, 0, UINT64_MAX - 1), LEAF - 3);
    ck_assert_uint_eq(unit_same_until(&map, LEAF - 2, UINT64_MAX - 1), LEAF + 1);
    ck_assert_uint_eq(unit_same_until(&map, LEAF - 2, LEAF - 1), LEAF - 1);
    ck_assert_uint_eq(unit_same_until(&map, LEAF + 2, 9 * LEAF), 9 * LEAF);
    ck_assert(unit_next_run(&map, 7, &first, &last));
    ck_assert_uint_eq(first, LEAF - 2);
    ck_assert_uint_eq(last, LEAF + 1);
    first = LEAF; /* from its middle on */
    ck_assert(unit_next_run(&map, 7, &first, &last));
    ck_assert_uint_eq(first, LEAF);
    ck_assert_uint_eq(last, LEAF + 1);
}
END_TEST

START_TEST(a_run_ends_with_its_leaf_if_no_leaf_follows)
{
    uint64_t first = 0, last;
    set(LEAF - 1, 7);
    set(5 * LEAF, 7);
    ck_assert_uint_eq(unit_same_until(&map, LEAF - 1, 9 * LEAF), LEAF - 1);
    ck_assert_uint_eq(unit_same_until(&map, LEAF, 9 * LEAF), 5 * LEAF - 1);
    ck_assert(unit_next_run(&map, 7, &first, &last));
    ck_assert_uint_eq(last, LEAF - 1);
    first = last + 1;
    ck_assert(unit_next_run(&map, 7, &first, &last));
    ck_assert_uint_eq(first, 5 * LEAF);
    ck_assert_uint_eq(last, 5 * LEAF);
    first = last + 1;
    ck_assert(!unit_next_run(&map, 7, &first, &last));
}
END_TEST

START_TEST(a_file_may_be_as_long_as_any)
{
    const uint64_t most = INT64_MAX / LOAN_UNIT;
    uint64_t first = 0, last;
    set(most, 3);
    ck_assert_uint_eq(map.n, 1);
    ck_assert_uint_eq(unit_get(&map, most), 3);
    ck_assert_uint_eq(unit_get(&map, most - LEAF), 0);
    ck_assert_uint_eq(unit_same_until(&map, 0, most), most - 1);
    ck_assert_uint_eq(unit_same_until(&map, most, most), most);
    ck_assert(unit_next_run(&map, 3, &first, &last));
    ck_assert_uint_eq(first, most);
    ck_assert_uint_eq(last, most);
}
END_TEST

START_TEST(zero_where_nothing_is_makes_no_leaf)
{
    set(3, 0);
    ck_assert_uint_eq(map.n, 0);
    set(3, 1);
    set(3, 1); /* again: it counts once */
    ck_assert_uint_eq(map.set, 1);
    set(3, 0);
    ck_assert_uint_eq(map.n, 0);
    ck_assert_uint_eq(map.set, 0);
    ck_assert_uint_eq(unit_clear(&map, 1), 0);
}
END_TEST

/* ---- full ---- */

START_TEST(a_map_that_is_full_takes_no_leaf_more_but_all_else)
{
    for (uint64_t leaf = 0; leaf < UNIT_LEAVES_MAX; leaf++)
        set(2 * leaf * LEAF, 1);
    ck_assert_int_eq(unit_set(&map, LEAF, 1), -ENOSPC);
    ck_assert_uint_eq(unit_get(&map, LEAF), 0);
    ck_assert_uint_eq(map.set, UNIT_LEAVES_MAX);
    ck_assert_int_eq(unit_set(&map, LEAF, 0), 0); /* nothing is needed for it */
    set(1, 1);
    set(0, 0);
    set(1, 0); /* a leaf is free again */
    set(LEAF, 1);
    ck_assert_uint_eq(unit_clear(&map, 1), UNIT_LEAVES_MAX);
    ck_assert_uint_eq(map.n, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("unit_map");
    TCase *t = add_case(s, "array", setup, teardown, 60);
    tcase_add_test(t, it_is_a_plain_array);
    t = add_case(s, "borders", setup, teardown, 10);
    tcase_add_test(t, a_run_goes_over_the_border_of_two_leaves);
    tcase_add_test(t, a_run_ends_with_its_leaf_if_no_leaf_follows);
    tcase_add_test(t, a_file_may_be_as_long_as_any);
    tcase_add_test(t, zero_where_nothing_is_makes_no_leaf);
    t = add_case(s, "full", setup, teardown, 60);
    tcase_add_test(t, a_map_that_is_full_takes_no_leaf_more_but_all_else);
    return run_suite(s);
}
