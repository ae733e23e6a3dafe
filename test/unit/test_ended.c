/* test_ended.c - whether a claimant that is no member any more left in order. */
#include "transport/members_int.h"

#include "placement/claims/ended.c"
#include "suite.h"

#define A 3
#define B 7

static struct member with_a[2] = {{.id = A, .incarnation = 30}, {.id = B, .incarnation = 70}},
                     with_new_a[2] = {{.id = A, .incarnation = 31}, {.id = B, .incarnation = 70}},
                     alone[1] = {{.id = B, .incarnation = 70}};
static struct absent gone[1] = {{.id = A, .incarnation = 30}};

static struct view views[8];
static unsigned n;

static void adopt(uint64_t number, struct member *members, uint32_t nmembers, bool absent)
{
    const struct view *before = n ? &views[n - 1] : NULL;
    struct view *v = &views[n++];
    *v = (struct view){.number = number,
                       .nmembers = nmembers,
                       .members = members,
                       .nabsent = absent,
                       .absents = gone};
    ended_adopted(before, v);
    members_now.adopted = v;
}

static void begin(void)
{
    n = 0;
    adopt(1, with_a, 2, false);
}

static void end(void)
{
    members_now.adopted = NULL;
    free(all.died);
    all.died = NULL;
    all.n = 0;
    all.outside = false;
}

START_TEST(a_member_has_not_ended)
{
    ck_assert(!ended_in_order(A, 30));
}
END_TEST

START_TEST(who_is_not_in_the_next_view_and_not_absent_left_in_order)
{
    adopt(2, alone, 1, false);
    ck_assert(ended_in_order(A, 30));
    adopt(3, with_new_a, 2, false);
    ck_assert(ended_in_order(A, 30));
    ck_assert(!ended_in_order(A, 31));
    adopt(4, alone, 1, true); /* it may have had bytes again */
    ck_assert(!ended_in_order(A, 30));
}
END_TEST

/* Whoever may have been given up was missing before. */
START_TEST(each_departure_counts)
{
    uint64_t seen = ended_departures();
    adopt(2, with_a, 2, false);
    ck_assert_uint_eq(ended_departures(), seen);
    adopt(3, alone, 1, true);
    ck_assert_uint_gt(ended_departures(), seen);
    seen = ended_departures();
    adopt(4, with_a, 2, false); /* the same daemon, which was cut off */
    ck_assert_uint_eq(ended_departures(), seen);
    adopt(5, with_new_a, 2, false);
    ck_assert_uint_gt(ended_departures(), seen);
    seen = ended_departures();
    adopt(7, with_new_a, 2, false); /* it may have been missing in between */
    ck_assert_uint_gt(ended_departures(), seen);
    seen = ended_departures();
    ended_outside();
    ck_assert_uint_gt(ended_departures(), seen);
}
END_TEST

START_TEST(a_death_is_remembered_when_the_node_has_come_back_and_left)
{
    adopt(2, alone, 1, true);
    ck_assert(!ended_in_order(A, 30));
    adopt(3, with_new_a, 2, false);
    adopt(4, alone, 1, false);
    ck_assert(!ended_in_order(A, 30));
    ck_assert(ended_in_order(A, 31));
}
END_TEST

START_TEST(a_restart_within_a_view_is_a_death)
{
    adopt(2, with_new_a, 2, false);
    adopt(3, alone, 1, false);
    ck_assert(!ended_in_order(A, 30));
    ck_assert(ended_in_order(A, 31));
}
END_TEST

START_TEST(a_view_that_was_skipped_may_have_had_a_death)
{
    adopt(3, alone, 1, false);
    ck_assert(!ended_in_order(A, 30));
}
END_TEST

START_TEST(nothing_is_known_of_the_time_outside)
{
    ended_outside();
    ck_assert(!ended_in_order(A, 30));
    adopt(2, alone, 1, false);
    ck_assert(!ended_in_order(A, 30));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("ended");
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, a_member_has_not_ended);
    tcase_add_test(t, who_is_not_in_the_next_view_and_not_absent_left_in_order);
    tcase_add_test(t, each_departure_counts);
    tcase_add_test(t, a_death_is_remembered_when_the_node_has_come_back_and_left);
    tcase_add_test(t, a_restart_within_a_view_is_a_death);
    tcase_add_test(t, a_view_that_was_skipped_may_have_had_a_death);
    tcase_add_test(t, nothing_is_known_of_the_time_outside);
    return run_case("ended", t);
}
