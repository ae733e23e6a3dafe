/* test_home_break.c - before a claim is granted, the nodes that look at the file are told, and nobody else: the home's
 * side of WHERE, WANT and BREAK. */
#include "home_break_help.h"

/* ---- who is told ---- */

START_TEST(who_looked_is_told_once_before_the_grant)
{
    look_at(3, LOOK_STAT);
    uint64_t w = want(4, 1, false);
    ck_assert_uint_eq(open_ones(MSG_BREAK), 0); /* not before next has the record */
    copy_all();
    ck_assert_uint_eq(open_ones(MSG_BREAK), 1);
    ck_assert_uint_eq(net.said[w].type, MSG_NONE);
    break_at(3, 0);
    ck_assert(is_granted(w));
    ck_assert_uint_eq(net.said[w].nwatchers, 0);
    ck_assert_uint_eq(counted(breaks_sent), 1);
}
END_TEST

START_TEST(nobody_is_told_who_never_looked)
{
    bool keep;
    where(3, other, LOOK_OPEN, &keep);
    where(3, file, LOOK_NONE, &keep);
    ck_assert(!keep);
    look_at(4, LOOK_OPEN); /* the asker itself */
    uint64_t w = want(4, 1, false);
    copy_all();
    ck_assert(is_granted(w));
    ck_assert_uint_eq(counted(breaks_sent), 0);
}
END_TEST

START_TEST(three_lookers_are_told_once_and_not_again_in_shared_use)
{
    bool keep;
    look_at(3, LOOK_OPEN);
    look_at(4, LOOK_OPEN);
    look_at(1, LOOK_STAT); /* the home's own node */
    uint64_t w = want(5, 1, false);
    copy_all();
    ck_assert_uint_eq(open_ones(MSG_BREAK), 3);
    break_at(3, 0);
    break_at(1, 0);
    ck_assert_uint_eq(net.said[w].type, MSG_NONE);
    break_at(4, 0);
    ck_assert(is_granted(w));
    for (uint64_t n = 1; n <= 6; n++) {
        ck_assert_uint_eq(where(n, file, LOOK_OPEN, &keep), AT_NODE);
        ck_assert(!keep);
    }
    give_back(5, 1, LOOK_NONE);
    w = want(6, 1, false); /* nobody has asked since */
    copy_all();
    ck_assert(is_granted(w));
    ck_assert_uint_eq(counted(breaks_sent), 3);
}
END_TEST

/* A log that others follow by descriptors that cache: from then on they keep nothing for some time. */
START_TEST(a_file_that_is_broken_again_and_again_while_it_is_open_is_kept_by_nobody_new)
{
    bool keep;
    for (unsigned n = 1; n <= LOOKER_HUSH_AFTER; n++) {
        look_at(3, LOOK_OPEN);
        uint64_t w = want(5, n, false);
        copy_all();
        break_at(3, LOOKER_CACHED);
        ck_assert(is_granted(w));
        give_back(5, n, LOOK_NONE);
    }
    ck_assert_uint_eq(where(4, file, LOOK_OPEN, &keep), AT_PFS);
    ck_assert(!keep);
}
END_TEST

/* They are told the size; nothing of them is cached. */
START_TEST(nodes_that_append_are_watchers_and_keep_nobody_from_keeping)
{
    for (unsigned n = 1; n <= LOOKER_HUSH_AFTER; n++) {
        look_at(3, LOOK_OPEN);
        uint64_t w = want(5, n, false);
        copy_all();
        break_at(3, LOOKER_APPENDS);
        ck_assert(is_granted(w));
        ck_assert_uint_eq(net.said[w].watchers[0].left, LOOKER_APPENDS);
        give_back(5, n, LOOK_NONE);
    }
    look_at(4, LOOK_OPEN); /* may be kept */
}
END_TEST

/* Nothing is kept of it there, so each grant names it, and none waits for it. */
START_TEST(one_that_only_has_it_open_is_told_once_and_named_by_each_grant)
{
    look_at(3, LOOK_OPEN);
    uint64_t w = want(5, 1, false);
    copy_all();
    break_at(3, LOOKER_OPEN);
    is_named(w, 0, 3, LOOKER_OPEN);
    for (unsigned n = 1; n <= LOOKER_HUSH_AFTER; n++) {
        give_back(5, n, LOOK_NONE);
        w = want(5, n + 1, false);
        copy_all();
        ck_assert_uint_eq(open_ones(MSG_BREAK), 0);
        ck_assert_uint_eq(net.said[w].nwatchers, 1);
        is_named(w, 0, 3, LOOKER_OPEN);
    }
    give_back(5, LOOKER_HUSH_AFTER + 1, LOOK_NONE);
    look_at(3, LOOK_STAT);
    w = want(3, 1, false); /* not to itself */
    copy_all();
    ck_assert(is_granted(w));
    ck_assert_uint_eq(net.said[w].nwatchers, 0);
}
END_TEST

START_TEST(what_is_open_alone_keeps_nobody_from_keeping_it)
{
    for (unsigned n = 1; n <= LOOKER_HUSH_AFTER; n++) {
        look_at(3, LOOK_OPEN);
        uint64_t w = want(5, n, false);
        copy_all();
        break_at(3, LOOKER_OPEN);
        ck_assert(is_granted(w));
        give_back(5, n, LOOK_NONE);
    }
    look_at(4, LOOK_OPEN);
}
END_TEST

START_TEST(one_that_opens_it_during_a_grant_is_any_member)
{
    bool keep;
    look_at(3, LOOK_STAT);
    uint64_t w = want(4, 1, false);
    copy_all();
    ck_assert_uint_eq(where(6, file, LOOK_OPEN, &keep), AT_PFS);
    ck_assert(!keep);
    break_at(3, 0);
    ck_assert_uint_eq(net.said[w].nwatchers, 1);
    is_named(w, 0, 0, LOOKER_OPEN);
    give_back(4, 1, LOOK_NONE);
    w = want(4, 2, false);
    copy_all();
    ck_assert(is_granted(w));
    ck_assert_uint_eq(net.said[w].nwatchers, 0); /* that claim's FREE would name it */
}
END_TEST

START_TEST(many_that_only_have_it_open_are_any_member_and_not_told)
{
    for (uint64_t n = 1; n < NODES; n++)
        look_at(n, LOOK_OPEN);
    uint64_t w = want(12, 1, false);
    copy_all();
    for (uint64_t n = 1; n < NODES; n++)
        break_at(n, LOOKER_OPEN);
    ck_assert_uint_eq(net.said[w].nwatchers, LOOKERS_NAMED + 1);
    is_named(w, LOOKERS_NAMED, 0, LOOKER_OPEN);
    give_back(12, 1, LOOK_NONE);
    w = want(11, 1, false);
    copy_all();
    ck_assert_uint_eq(open_ones(MSG_BREAK), 1);
    break_at(12, 0); /* it was the asker, and has what it had open */
    is_named(w, net.said[w].nwatchers - 1, 0, LOOKER_OPEN);
    ck_assert_uint_lt(net.said[w].nwatchers, LOOKERS_NAMED + 1); /* but the asker */
}
END_TEST

START_TEST(a_file_that_was_only_looked_up_may_be_kept_again)
{
    look_at(3, LOOK_STAT);
    uint64_t w = want(4, 1, false);
    copy_all();
    break_at(3, 0);
    ck_assert(is_granted(w));
    give_back(4, 1, LOOK_NONE);
    look_at(3, LOOK_OPEN);
}
END_TEST

START_TEST(more_nodes_than_can_be_named_are_all_members)
{
    for (uint64_t n = 1; n <= LOOKERS_NAMED + 1; n++)
        look_at(n, LOOK_OPEN);
    uint64_t w = want(4, 1, false);
    copy_all();
    ck_assert_uint_eq(open_ones(MSG_BREAK), NODES - 1);
    for (uint64_t n = 1; n <= NODES; n++)
        if (n != 4)
            break_at(n, n == 7 ? LOOKER_PASSTHROUGH : 0);
    ck_assert(is_granted(w));
    ck_assert_uint_eq(net.said[w].nwatchers, 1);
    ck_assert_uint_eq(net.said[w].watchers[0].node, 7);
    ck_assert_uint_eq(net.said[w].watchers[0].incarnation, 106);
    ck_assert_uint_eq(net.said[w].watchers[0].left, LOOKER_PASSTHROUGH);
    ck_assert_uint_eq(lookers(), 2); /* 7, and the asker, which has it open, too */
    give_back(4, 1, LOOK_NONE);
    w = want(5, 1, false);
    copy_all();
    ck_assert_uint_eq(open_ones(MSG_BREAK), 2);
    break_at(4, 0);
    break_at(7, 0);
    ck_assert(is_granted(w));
}
END_TEST

START_TEST(more_watchers_than_can_be_named_are_any_member)
{
    for (uint64_t n = 1; n <= NODES; n++)
        look_at(n, LOOK_OPEN);
    uint64_t w = want(12, 1, false);
    copy_all();
    for (uint64_t n = 1; n < NODES; n++)
        break_at(n, LOOKER_CACHED);
    ck_assert(is_granted(w));
    ck_assert_uint_eq(net.said[w].nwatchers, LOOKERS_NAMED + 1);
    ck_assert_uint_eq(net.said[w].watchers[LOOKERS_NAMED].node, 0);
    ck_assert_uint_eq(net.said[w].watchers[LOOKERS_NAMED].left, LOOKER_CACHED);
    ck_assert_uint_eq(lookers(), 1); /* any node */
}
END_TEST

START_TEST(what_homes_of_the_view_before_let_keep_is_broken_in_the_first_second)
{
    home.complete_ms = boot_ms();
    uint64_t w = want(4, 1, false);
    copy_all();
    /* the view before is not known: all may have been there */
    ck_assert_uint_eq(open_ones(MSG_BREAK), NODES - 1);
    for (uint64_t n = 1; n <= NODES; n++)
        if (n != 4)
            break_at(n, 0);
    ck_assert(is_granted(w));
}
END_TEST

START_TEST(what_next_let_keep_is_broken)
{
    look_at(3, LOOK_STAT);
    uint64_t w = want(4, 1, false);
    struct item_looker v[] = {
        {3, LOOK_STAT, 1}, {6, LOOK_OPEN, 2}, {77, LOOK_OPEN, 3}, {4, LOOK_OPEN, 4}};
    struct msg *r = msg_new(MSG_COPIED);
    r->copied.lookers.n = ARRAY_LEN(v);
    r->copied.lookers.v = v;
    answer(find_out(MSG_COPY, 2), r, 0);
    ck_assert_uint_eq(open_ones(MSG_BREAK), 2);
    break_at(3, 0);
    break_at(6, 0);
    ck_assert(is_granted(w));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("home_break");
    TCase *t = add_case(s, "who is told", begin, end, 20);
    tcase_add_test(t, who_looked_is_told_once_before_the_grant);
    tcase_add_test(t, nobody_is_told_who_never_looked);
    tcase_add_test(t, three_lookers_are_told_once_and_not_again_in_shared_use);
    tcase_add_test(t, a_file_that_is_broken_again_and_again_while_it_is_open_is_kept_by_nobody_new);
    tcase_add_test(t, nodes_that_append_are_watchers_and_keep_nobody_from_keeping);
    tcase_add_test(t, one_that_only_has_it_open_is_told_once_and_named_by_each_grant);
    tcase_add_test(t, what_is_open_alone_keeps_nobody_from_keeping_it);
    tcase_add_test(t, one_that_opens_it_during_a_grant_is_any_member);
    tcase_add_test(t, many_that_only_have_it_open_are_any_member_and_not_told);
    tcase_add_test(t, a_file_that_was_only_looked_up_may_be_kept_again);
    tcase_add_test(t, more_nodes_than_can_be_named_are_all_members);
    tcase_add_test(t, more_watchers_than_can_be_named_are_any_member);
    tcase_add_test(t, what_homes_of_the_view_before_let_keep_is_broken_in_the_first_second);
    tcase_add_test(t, what_next_let_keep_is_broken);
    return run_suite(s);
}
