/* test_marks.c - dirty bytes against the marks: levels, rates, how writers are slowed; the limit. */
#include "flush/marks.h"
#include "transport/base.h"

#include <check.h>
#include <stdlib.h>

#include "suite.h"

#define MIB    (UINT64_C(1) << 20)
#define ROOM   (1000 * MIB)
#define SECOND UINT64_C(1000000000)

static struct marks marks(void)
{
    return (struct marks){.high = 60, .low = 40};
}

START_TEST(from_high_down_to_low)
{
    struct marks m = marks();
    ck_assert_int_eq(marks_level(&m, 0, ROOM), MARK_NONE);
    ck_assert_int_eq(marks_level(&m, 500 * MIB, ROOM), MARK_NONE); /* not reached yet */
    ck_assert_int_eq(marks_level(&m, 600 * MIB, ROOM), MARK_HIGH);
    ck_assert_int_eq(marks_level(&m, 599 * MIB, ROOM), MARK_DRAIN);
    ck_assert_int_eq(marks_level(&m, 401 * MIB, ROOM), MARK_DRAIN);
    ck_assert_int_eq(marks_level(&m, 400 * MIB, ROOM), MARK_NONE);
    ck_assert_int_eq(marks_level(&m, 599 * MIB, ROOM), MARK_NONE); /* from the beginning */
    ck_assert_int_eq(marks_level(&m, 0, 0), MARK_NONE);            /* the limit is not known yet */
}
END_TEST

/* Both rates come to what goes in and out. */
static void run(struct marks *m, uint64_t in, uint64_t out, bool busy)
{
    struct marks_sample s = {.at_ms = 1000, .dirty = 100 * MIB};
    for (int i = 0; i < 100; i++) {
        marks_measure(m, &s, busy);
        s.at_ms += 250;
        s.flushed += out / 4;
        s.written += out / 4;
        s.dirty += in / 4 - out / 4;
    }
}

START_TEST(the_drain_follows_the_input)
{
    struct marks m = marks();
    run(&m, 80 * MIB, 20 * MIB, true);
    ck_assert_double_eq_tol(m.in, 80.0 * MIB, 1.0 * MIB);
    ck_assert_double_eq_tol(m.out, 20.0 * MIB, 1.0 * MIB);
    /* input, and what is above the low mark in 30 s */
    ck_assert_double_eq_tol(marks_drain_rate(&m, 550 * MIB, ROOM), 85.0 * MIB, 1.0 * MIB);
    ck_assert_double_eq_tol(marks_drain_rate(&m, 400 * MIB, ROOM), 80.0 * MIB, 1.0 * MIB);
    m.in = 0;
    ck_assert_double_eq_tol(marks_drain_rate(&m, 10 * 700 * MIB, 10 * ROOM), 100.0 * MIB,
                            0.1 * MIB);
    ck_assert_double_gt(marks_drain_rate(&m, 400 * MIB, ROOM), 0); /* it ends */
}
END_TEST

START_TEST(a_flush_that_rests_says_nothing_of_its_rate)
{
    struct marks m = marks();
    run(&m, 80 * MIB, 20 * MIB, true);
    run(&m, 80 * MIB, 0, false);
    ck_assert_double_eq_tol(m.out, 20.0 * MIB, 1.0 * MIB);
}
END_TEST

START_TEST(measures_too_close_count_once)
{
    struct marks m = marks();
    struct marks_sample s = {.at_ms = 1000};
    marks_measure(&m, &s, true);
    s = (struct marks_sample){.at_ms = 1001, .dirty = 100 * MIB};
    marks_measure(&m, &s, true);
    ck_assert_double_eq(m.in, 0);
    s.at_ms = 1250;
    marks_measure(&m, &s, true);
    ck_assert_double_gt(m.in, 0);
}
END_TEST

START_TEST(below_the_high_mark_nobody_waits)
{
    struct marks m = marks();
    m.out = 10.0 * MIB;
    for (uint64_t dirty = 0; dirty <= 600 * MIB; dirty += 50 * MIB)
        ck_assert_uint_eq(marks_slow(&m, MIB, dirty, ROOM, 5 * SECOND), 5 * SECOND);
}
END_TEST

/* What writers that never pause get at this level, in bytes/s; each write is one of `writers`. */
static double allowed(uint64_t dirty, uint64_t len)
{
    struct marks m = marks();
    m.out = 10.0 * MIB;
    uint64_t now = 5 * SECOND, first = now, n = 4000;
    for (uint64_t i = 0; i < n; i++)
        now = marks_slow(&m, len, dirty, ROOM, now);
    return (double)((n - 1) * len) * 1e9 / (double)(now - first);
}

START_TEST(writers_are_slowed_smoothly)
{
    double last = 1e18;
    for (uint64_t dirty = 610 * MIB; dirty <= 950 * MIB; dirty += 20 * MIB) {
        double now = allowed(dirty, 64 << 10);
        ck_assert_double_lt(now, last);
        ck_assert_double_gt(now, last / 4 < 1e17 ? last / 4 : 0); /* no step */
        last = now;
    }
    /* half-way twice as fast as the flush, at the full mark as fast; small writes too */
    ck_assert_double_eq_tol(allowed(775 * MIB, 64 << 10), 20.0 * MIB, 0.2 * MIB);
    ck_assert_double_eq_tol(allowed(950 * MIB, 64 << 10), 10.0 * MIB, 0.1 * MIB);
    ck_assert_double_eq_tol(allowed(950 * MIB, 512), 10.0 * MIB, 0.1 * MIB);
}
END_TEST

/* The rule of marks.h: dirty bytes come to rest between the marks, input is the flush's rate. */
START_TEST(in_balance_input_is_the_flushs_rate)
{
    struct marks m = marks();
    m.out = 10.0 * MIB;
    double dirty = 590.0 * MIB;
    uint64_t now = 5 * SECOND, began = now, in = 0;
    while (now < 305 * SECOND) { /* one that would write 40 MiB/s */
        uint64_t turn = marks_slow(&m, MIB, (uint64_t)dirty, ROOM, now) + SECOND / 40;
        dirty += (double)MIB - m.out * (double)(turn - now) / 1e9;
        in += MIB;
        now = turn;
        ck_assert_double_lt(dirty, 950.0 * MIB);
    }
    ck_assert_double_gt(dirty, 600.0 * MIB);
    ck_assert_double_lt((double)in * 1e9 / (double)(now - began), 12.0 * MIB);
}
END_TEST

START_TEST(the_full_mark)
{
    ck_assert(!marks_full(949 * MIB, MIB, ROOM));
    ck_assert(marks_full(950 * MIB, 1, ROOM));
    ck_assert(marks_full(949 * MIB, 2 * MIB, ROOM));
}
END_TEST

START_TEST(a_limit_is_kept_and_not_saved_up)
{
    struct limit l = {0};
    uint64_t now = 100 * SECOND, bytes = 0;
    uint64_t turn = now;
    while (turn < 110 * SECOND) { /* many at once */
        turn = limit_turn(&l, 8.0 * MIB, MIB, now, NEVER - now);
        bytes += MIB;
    }
    ck_assert_uint_ge(bytes, 80 * MIB);
    ck_assert_uint_le(bytes, 82 * MIB);
    now = 1000 * SECOND; /* a long pause gives nothing */
    ck_assert_uint_eq(limit_turn(&l, 8.0 * MIB, 8 * MIB, now, NEVER - now), now);
    ck_assert_uint_eq(limit_turn(&l, 8.0 * MIB, 1, now, NEVER - now), now + SECOND);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("marks");
    tcase_add_test(t, from_high_down_to_low);
    tcase_add_test(t, the_drain_follows_the_input);
    tcase_add_test(t, a_flush_that_rests_says_nothing_of_its_rate);
    tcase_add_test(t, measures_too_close_count_once);
    tcase_add_test(t, below_the_high_mark_nobody_waits);
    tcase_add_test(t, writers_are_slowed_smoothly);
    tcase_add_test(t, in_balance_input_is_the_flushs_rate);
    tcase_add_test(t, the_full_mark);
    tcase_add_test(t, a_limit_is_kept_and_not_saved_up);
    return run_case("marks", t);
}
