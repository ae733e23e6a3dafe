/* test_lookers.c - the home's table of lookers: who is in it, for how long, and what becomes of it when it is
 * full.  The test is the clock. */
#include "placement/claims/home_int.h"

#include <stdlib.h>

static uint64_t now_ms;

static uint64_t fake_ms(void)
{
    return now_ms;
}

static void fake_arm(uint64_t ms)
{
    (void)ms;
}

#define boot_ms  fake_ms
#define home_arm fake_arm
#include "placement/claims/lookers.c"
#undef boot_ms
#undef home_arm

#include "suite.h"

static const struct fid file = {1, 2}, other = {3, 4};

static void begin(void)
{
    now_ms = 1000000;
    lookers_begin();
}

static void end(void)
{
    lookers_begin();
}

static unsigned lookers(struct fid fid)
{
    struct looker_found f[LOOKERS_NAMED + 1];
    return lookers_of(fid, f);
}

static enum look look_of(struct fid fid, uint32_t node)
{
    struct looker_found f[LOOKERS_NAMED + 1];
    unsigned n = lookers_of(fid, f);
    for (unsigned i = 0; i < n; i++)
        if (f[i].node == node)
            return f[i].look;
    return LOOK_NONE;
}

START_TEST(a_stat_is_over_after_its_time_and_an_open_one_is_not)
{
    ck_assert(looker_enter(file, 1, LOOK_STAT, 1));
    ck_assert(looker_enter(file, 2, LOOK_OPEN, 1));
    ck_assert_uint_eq(lookers(file), 2);
    now_ms += LOOKER_STAT_MS;
    ck_assert_uint_eq(look_of(file, 1), LOOK_STAT);
    now_ms += 2 * UNIT_MS;
    ck_assert_uint_eq(look_of(file, 1), LOOK_NONE);
    ck_assert_uint_eq(look_of(file, 2), LOOK_OPEN);
    now_ms += (uint64_t)1 << 36; /* two years */
    ck_assert_uint_eq(look_of(file, 2), LOOK_OPEN);
    ck_assert_uint_eq(lookers_count(), 1);
}
END_TEST

START_TEST(a_stat_ends_no_open_look)
{
    looker_enter(file, 1, LOOK_OPEN, 5);
    looker_enter(file, 1, LOOK_STAT, 6);
    now_ms += 10 * LOOKER_STAT_MS;
    ck_assert_uint_eq(look_of(file, 1), LOOK_OPEN);
    looker_leave(file, 1, 5); /* of the open one */
    ck_assert_uint_eq(look_of(file, 1), LOOK_STAT);
}
END_TEST

START_TEST(who_leaves_may_still_have_attributes_for_a_moment)
{
    looker_enter(file, 1, LOOK_OPEN, 7);
    looker_leave(file, 2, 9);
    looker_leave(other, 1, 9);
    ck_assert_uint_eq(look_of(file, 1), LOOK_OPEN);
    looker_leave(file, 1, 7);
    ck_assert_uint_eq(look_of(file, 1), LOOK_STAT);
    now_ms += LOOKER_STAT_MS + 2 * UNIT_MS;
    ck_assert_uint_eq(lookers(file), 0);
}
END_TEST

START_TEST(a_leave_that_was_sent_before_an_open_does_not_end_it)
{
    looker_enter(file, 1, LOOK_OPEN, 8);
    looker_leave(file, 1, 7);
    ck_assert_uint_eq(look_of(file, 1), LOOK_OPEN);
    looker_enter(file, 1, LOOK_OPEN, 6); /* a WHERE that came late */
    looker_leave(file, 1, 7);
    ck_assert_uint_eq(look_of(file, 1), LOOK_OPEN);
    looker_leave(file, 1, 8);
    ck_assert_uint_eq(look_of(file, 1), LOOK_STAT);
}
END_TEST

START_TEST(a_name_that_goes_is_known_for_as_long_as_a_look_from_before)
{
    lookers_known_for(20000);
    looker_goes(file, 1, 7);
    looker_goes(file, 2, 3);
    ck_assert(looker_name_goes(file) && !looker_name_goes(other));
    looker_leave(file, 2, 3);
    looker_leave(file, 1, 6); /* of an earlier look */
    now_ms += 20000 + 2 * UNIT_MS;
    ck_assert(looker_name_goes(file));
    ck_assert_uint_eq(lookers(file), 0);
    looker_leave(file, 1, 7);
    now_ms += 20000;
    ck_assert(looker_name_goes(file));
    looker_leave(file, 1, 8); /* it does not begin again */
    now_ms += 2 * UNIT_MS;
    ck_assert(!looker_name_goes(file));
    ck_assert_uint_eq(lookers_count(), 0);
}
END_TEST

START_TEST(numbers_go_round)
{
    uint64_t last = UINT32_MAX;
    looker_enter(file, 1, LOOK_OPEN, last + 5);
    looker_leave(file, 1, last - 5);
    ck_assert_uint_eq(look_of(file, 1), LOOK_OPEN);
    looker_enter(other, 1, LOOK_OPEN, last - 5);
    looker_leave(other, 1, last + 5);
    ck_assert_uint_eq(look_of(other, 1), LOOK_STAT);
}
END_TEST

START_TEST(one_more_than_can_be_named_is_any_node)
{
    for (uint32_t i = 0; i < LOOKERS_NAMED; i++)
        ck_assert(looker_enter(file, i, i == 3 ? LOOK_OPEN : LOOK_STAT, 1));
    ck_assert(looker_enter(file, 0, LOOK_STAT, 2)); /* again: it has an entry */
    ck_assert_uint_eq(lookers(file), LOOKERS_NAMED);
    ck_assert(looker_enter(file, LOOKERS_NAMED, LOOK_STAT, 1));
    ck_assert_uint_eq(lookers(file), 1);
    ck_assert_uint_eq(look_of(file, LOOKER_ANY), LOOK_OPEN); /* as one of them */
    looker_leave(file, 3, 9);                                /* nobody knows who else */
    looker_forget(file, 3);
    ck_assert_uint_eq(look_of(file, LOOKER_ANY), LOOK_OPEN);
    ck_assert_uint_eq(lookers_count(), 1);
    looker_forget(file, LOOKER_ANY);
    ck_assert_uint_eq(lookers_count(), 0);
}
END_TEST

START_TEST(nobody_is_entered_after_many_breaks_of_an_open_file_for_some_time)
{
    looker_enter(file, 1, LOOK_OPEN, 1);
    for (unsigned n = 1; n < LOOKER_HUSH_AFTER; n++) {
        looker_hush(file);
        ck_assert(looker_enter(file, 2, LOOK_STAT, 1));
    }
    looker_forget(file, 2);
    looker_hush(file);
    ck_assert(!looker_enter(file, 2, LOOK_STAT, 1));
    ck_assert(looker_enter(other, 2, LOOK_STAT, 1));
    ck_assert(looker_enter(file, 1, LOOK_OPEN, 2)); /* a node that is in it stays */
    ck_assert(looker_enter(file, 1, LOOK_STAT, 3));
    looker_note(file, 3, LOOK_OPEN, 1); /* as does one that looks anyway */
    ck_assert_uint_eq(lookers(file), 2);
    lookers_forget(file);
    ck_assert_uint_eq(lookers(file), 0);
    ck_assert(!looker_enter(file, 2, LOOK_STAT, 1));
    now_ms += LOOKER_HUSH_MS + 2 * UNIT_MS;
    ck_assert(looker_enter(file, 2, LOOK_STAT, 1));
}
END_TEST

static struct fid nth(uint64_t i)
{
    return (struct fid){i * 0x9e3779b97f4a7c15u, i};
}

/* It has the file open, and keeps nothing. */
START_TEST(a_quiet_one_is_known_until_it_leaves)
{
    looker_note(file, 1, LOOK_QUIET, 5);
    now_ms += 10 * LOOKER_STAT_MS;
    ck_assert_uint_eq(look_of(file, 1), LOOK_QUIET);
    looker_leave(file, 1, 4);
    ck_assert_uint_eq(look_of(file, 1), LOOK_QUIET);
    looker_leave(file, 1, 5);
    ck_assert_uint_eq(look_of(file, 1), LOOK_STAT);
    looker_note(file, 1, LOOK_QUIET, 6); /* it may have attributes, and has it open */
    ck_assert_uint_eq(look_of(file, 1), LOOK_OPEN);
    looker_note(file, 2, LOOK_QUIET, 7);
    ck_assert(looker_enter(file, 2, LOOK_STAT, 8));
    ck_assert_uint_eq(look_of(file, 2), LOOK_OPEN);
}
END_TEST

START_TEST(of_a_file_that_nobody_may_keep_opens_are_quiet)
{
    for (unsigned n = 1; n <= LOOKER_HUSH_AFTER; n++)
        looker_hush(file);
    for (uint32_t i = 0; i < LOOKERS_NAMED; i++)
        ck_assert(!looker_enter(file, i, LOOK_OPEN, 1));
    ck_assert_uint_eq(lookers(file), LOOKERS_NAMED);
    ck_assert_uint_eq(look_of(file, 3), LOOK_QUIET);
}
END_TEST

START_TEST(many_quiet_ones_take_nobodys_place)
{
    for (uint32_t i = 0; i <= LOOKERS_NAMED; i++)
        looker_note(file, i, LOOK_QUIET, 1);
    ck_assert_uint_eq(lookers(file), LOOKERS_NAMED + 1);
    ck_assert_uint_eq(look_of(file, LOOKER_ANY), LOOK_QUIET);
    for (uint32_t i = 0; i < LOOKERS_NAMED; i++)
        ck_assert(looker_enter(file, 100 + i, LOOK_OPEN, 1));
    ck_assert_uint_eq(lookers(file), LOOKERS_NAMED + 1);
    ck_assert_uint_eq(look_of(file, 100), LOOK_OPEN);
    ck_assert_uint_eq(look_of(file, LOOKER_ANY), LOOK_QUIET);
    ck_assert(looker_enter(file, 200, LOOK_STAT, 1));
    ck_assert_uint_eq(lookers(file), 1);
    ck_assert_uint_eq(look_of(file, LOOKER_ANY), LOOK_OPEN);
    looker_note(file, 7, LOOK_QUIET, 1);
    ck_assert_uint_eq(look_of(file, LOOKER_ANY), LOOK_OPEN); /* all are told, and say what they have open */
    looker_forget(file, LOOKER_ANY);
    ck_assert_uint_eq(lookers_count(), 0);
}
END_TEST

START_TEST(what_is_over_is_swept)
{
    for (uint64_t i = 0; i < 20000; i++)
        looker_enter(nth(i), 1, i % 2 ? LOOK_OPEN : LOOK_STAT, 1);
    now_ms += LOOKER_STAT_MS + 2 * UNIT_MS;
    while (!lookers_sweep_some())
        ;
    ck_assert_uint_eq(lookers_count(), 10000);
    size_t bytes = lookers_bytes();
    for (uint64_t i = 20000; i < 30000; i++)
        looker_enter(nth(i), 1, LOOK_OPEN, 1);
    ck_assert_uint_eq(lookers_bytes(), bytes); /* in their places */
    for (uint64_t i = 1; i < 20000; i += 2)
        ck_assert_uint_eq(look_of(nth(i), 1), LOOK_OPEN);
}
END_TEST

/* A node that asks may keep nothing then; one that looks anyway makes all members lookers of all files. */
START_TEST(a_full_table_costs_messages_and_no_memory)
{
    uint64_t i = 0;
    while (looker_enter(nth(i), 1, LOOK_OPEN, 1))
        i++;
    printf("%lu entries in %zu bytes\n", (unsigned long)i, lookers_bytes());
    ck_assert_uint_eq(lookers_count(), i);
    ck_assert_uint_le(lookers_bytes(), LOOKERS_BYTES);
    ck_assert_uint_gt(lookers_bytes(), LOOKERS_BYTES / 2);
    ck_assert_uint_eq(counted(keeps_refused), 1);
    ck_assert_uint_eq(look_of(other, LOOKER_ANY), LOOK_QUIET); /* as that one was */
    looker_note(other, 2, LOOK_OPEN, 1);
    ck_assert_uint_eq(look_of(other, LOOKER_ANY), LOOK_STAT);
    ck_assert_uint_eq(lookers(nth(i + 1)), 1);
    ck_assert_uint_eq(look_of(nth(0), 1), LOOK_OPEN);
    ck_assert_uint_eq(lookers_count(), i);
    lookers_begin(); /* the next view */
    ck_assert_uint_eq(lookers(other), 0);
    ck_assert_uint_eq(lookers_bytes(), 0);
}
END_TEST

START_TEST(stats_that_are_over_make_room)
{
    uint64_t i = 0;
    while (looker_enter(nth(i), 1, LOOK_STAT, 1))
        i++;
    now_ms += LOOKER_STAT_MS + 2 * UNIT_MS;
    ck_assert(looker_enter(nth(i), 1, LOOK_STAT, 1));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("lookers");
    TCase *t = add_case(s, "table", begin, end, 30);
    tcase_add_test(t, a_stat_is_over_after_its_time_and_an_open_one_is_not);
    tcase_add_test(t, a_stat_ends_no_open_look);
    tcase_add_test(t, who_leaves_may_still_have_attributes_for_a_moment);
    tcase_add_test(t, a_leave_that_was_sent_before_an_open_does_not_end_it);
    tcase_add_test(t, a_name_that_goes_is_known_for_as_long_as_a_look_from_before);
    tcase_add_test(t, numbers_go_round);
    tcase_add_test(t, one_more_than_can_be_named_is_any_node);
    tcase_add_test(t, nobody_is_entered_after_many_breaks_of_an_open_file_for_some_time);
    tcase_add_test(t, a_quiet_one_is_known_until_it_leaves);
    tcase_add_test(t, of_a_file_that_nobody_may_keep_opens_are_quiet);
    tcase_add_test(t, many_quiet_ones_take_nobodys_place);
    tcase_add_test(t, what_is_over_is_swept);
    tcase_add_test(t, a_full_table_costs_messages_and_no_memory);
    tcase_add_test(t, stats_that_are_over_make_room);
    return run_suite(s);
}
