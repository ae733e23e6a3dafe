/* test_gaps.c - the wait interval from distributions of gaps. */
#include "flush/gaps.h"
#include "transport/base.h"

#include <check.h>
#include <stdlib.h>

#include "suite.h"

static struct gaps g;

static void setup(void)
{
    g = (struct gaps){.total = 0};
}

static uint32_t rnd(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

static void add(unsigned n, uint64_t low, uint64_t high)
{
    static uint32_t state = 7;
    while (n--)
        gaps_add(&g, low + rnd(&state) % (high - low + 1));
}

static void expect(uint64_t low, uint64_t high)
{
    uint64_t ms = gaps_interval(&g, 1000);
    ck_assert_msg(low <= ms && ms <= high, "%llu ms, expected %llu to %llu", (unsigned long long)ms,
                  (unsigned long long)low, (unsigned long long)high);
}

START_TEST(what_is_not_known_is_the_fallback)
{
    expect(1000, 1000);
    add(1000, 0, GAP_MIN_MS - 1); /* within bursts: say nothing */
    expect(1000, 1000);
    add(7, 100, 100);
    expect(1000, 1000);
    add(1, 100, 100);
    expect(101, 300);
}
END_TEST

/* Phases with `each` short gaps, then a pause. */
static void phases(unsigned n, unsigned each, uint64_t low, uint64_t high, uint64_t pause)
{
    while (n--) {
        add(each, low, high);
        gaps_add(&g, pause);
    }
}

START_TEST(above_the_short_gaps)
{
    static const struct {
        uint64_t low, high, pause, least, most;
    } rows[] = {
        {5, 20, 5000, 21, 60},     {5, 20, 60000, 21, 60},     {50, 150, 10000, 151, 350},
        {5, 400, 10000, 401, 900}, {200, 210, 3000, 211, 450}, /* the sampler's */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        setup();
        phases(10, 30, rows[i].low, rows[i].high, rows[i].pause);
        expect(MAX(rows[i].least, (uint64_t)WAIT_MIN_MS), rows[i].most);
    }
}
END_TEST

START_TEST(shorter_than_the_pauses)
{
    for (uint64_t pause = 1500; pause < 100000; pause *= 2) {
        setup();
        phases(20, 10, 5, 100, pause);
        ck_assert_uint_lt(gaps_interval(&g, 1000), pause / 2);
    }
}
END_TEST

START_TEST(one_odd_gap_in_a_phase_changes_nothing)
{
    phases(10, 30, 5, 20, 5000);
    uint64_t before = gaps_interval(&g, 1000);
    gaps_add(&g, 600);
    ck_assert_uint_eq(gaps_interval(&g, 1000), before);
}
END_TEST

START_TEST(without_long_gaps_no_gap_is_used)
{
    add(500, 50, 300); /* I/O that never pauses */
    expect(301, 800);
}
END_TEST

START_TEST(another_application_is_learned)
{
    phases(30, 30, 5, 20, 5000);
    expect(WAIT_MIN_MS, 60);
    phases(60, 30, 200, 400, 20000);
    expect(401, 900);
    phases(400, 30, 5, 20, 5000); /* and back: what was is forgotten */
    expect(WAIT_MIN_MS, 60);
}
END_TEST

START_TEST(it_has_bounds)
{
    add(100, 4, 5);
    expect(WAIT_MIN_MS, WAIT_MIN_MS);
    setup();
    add(100, UINT64_C(100) * 24 * 3600 * 1000, UINT64_C(100) * 24 * 3600 * 1000);
    expect(WAIT_MIN_MS, WAIT_MIN_MS); /* all of them are worth using */
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("gaps");
    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_test(t, what_is_not_known_is_the_fallback);
    tcase_add_test(t, above_the_short_gaps);
    tcase_add_test(t, shorter_than_the_pauses);
    tcase_add_test(t, one_odd_gap_in_a_phase_changes_nothing);
    tcase_add_test(t, without_long_gaps_no_gap_is_used);
    tcase_add_test(t, another_application_is_learned);
    tcase_add_test(t, it_has_bounds);
    return run_case("gaps", t);
}
