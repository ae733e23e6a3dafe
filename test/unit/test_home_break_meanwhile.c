/* test_home_break_meanwhile.c - while the nodes that look at a file are told that its claim is to be granted: who may ask, who
 * may end it, and what ends it. */
#include "home_break_help.h"

START_TEST(until_the_grant_the_pfs_has_it_and_nothing_may_be_kept)
{
    bool keep;
    look_at(3, LOOK_STAT);
    want(4, 1, false);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_uint_eq(where(3, file, LOOK_OPEN, &keep), AT_PFS);
        ck_assert(!keep);
        copy_all();
    }
    break_at(3, 0);
    ck_assert_uint_eq(where(3, file, LOOK_OPEN, &keep), AT_NODE);
    ck_assert_uint_eq(lookers(), 0);
}
END_TEST

START_TEST(who_has_the_bytes_and_asks_for_its_watchers_has_them_meanwhile)
{
    bool keep;
    record_make(file)->claimant = 4;
    record_find(file)->number_inc = 103;
    record_find(file)->number = 9;
    looker_note(file, 2, LOOK_OPEN, 1); /* node 3, by ADOPTED */
    uint64_t w = want(4, 10, true);     /* as if it had not got the claim, but for what it says */
    ck_assert_uint_eq(where(5, file, LOOK_OPEN, &keep), AT_NODE);
    copy_all();
    ck_assert_uint_eq(where(5, file, LOOK_OPEN, &keep), AT_NODE);
    break_at(3, LOOKER_CACHED);
    ck_assert(is_granted(w));
    ck_assert_uint_eq(net.said[w].nwatchers, 1);
    ck_assert_uint_eq(net.said[w].watchers[0].node, 3);
}
END_TEST

START_TEST(a_late_copy_of_a_want_sends_nobody_to_the_pfs)
{
    bool keep;
    uint64_t w = want(4, 1, false);
    copy_all();
    ck_assert(is_granted(w));
    want(4, 1, false);
    ck_assert_uint_eq(where(3, file, LOOK_OPEN, &keep), AT_NODE);
    copy_all();
    want(4, 2, false); /* a new number: it has not got the claim */
    ck_assert_uint_eq(where(3, file, LOOK_OPEN, &keep), AT_PFS);
    ck_assert(!keep);
}
END_TEST

START_TEST(a_grant_that_was_lost_names_its_watchers_again)
{
    look_at(3, LOOK_OPEN);
    for (uint64_t number = 1; number < 3; number++) {
        uint64_t w = want(4, number, false);
        copy_all();
        break_at(3, LOOKER_CACHED);
        ck_assert(is_granted(w));
        ck_assert_uint_eq(net.said[w].nwatchers, 1);
        ck_assert_uint_eq(net.said[w].watchers[0].left, LOOKER_CACHED);
    }
    give_back(4, 2, LOOK_NONE); /* without them: they are still entered */
    ck_assert_uint_eq(lookers(), 1);
}
END_TEST

START_TEST(a_want_that_comes_again_waits_for_the_same_breaks)
{
    look_at(3, LOOK_STAT);
    uint64_t first = want(4, 1, false), second;
    copy_all();
    ck_assert(home_breaks_working());
    ck_assert_uint_eq(net.working, 1);
    second = want(4, 2, false);
    copy_all();
    ck_assert_uint_eq(open_ones(MSG_BREAK), 1);
    ck_assert_int_eq(net.said[first].err, -E_ASK_AGAIN);
    break_at(3, 0);
    ck_assert(is_granted(second));
    ck_assert(!home_breaks_working());
    ck_assert_uint_eq(counted(breaks_sent), 1);
}
END_TEST

static void run_laters(void)
{
    unsigned n = net.nlater;
    net.nlater = 0;
    for (unsigned i = 0; i < n; i++)
        net.later[i].fn(net.later[i].arg);
}

START_TEST(who_does_not_answer_is_asked_again_until_it_does)
{
    look_at(3, LOOK_STAT);
    look_at(5, LOOK_STAT);
    uint64_t w = want(4, 1, false), grant;
    copy_all();
    break_at(5, 0);
    for (unsigned i = 0; i < 3; i++) {
        grant = net.out[find_out(MSG_BREAK, 3)].m->brk.grant;
        answer(find_out(MSG_BREAK, 3), NULL, i ? -ETIMEDOUT : -E_ASK_AGAIN);
        ck_assert_uint_eq(open_ones(MSG_BREAK), 0);
        run_laters();
        ck_assert_uint_eq(net.out[find_out(MSG_BREAK, 3)].m->brk.grant, grant);
        ck_assert_uint_eq(net.said[w].type, MSG_NONE);
    }
    ck_assert_uint_eq(open_ones(MSG_BREAK), 1);
    break_at(3, 0);
    ck_assert(is_granted(w));
}
END_TEST

static void let_go_of(struct record *r, void *arg)
{
    (void)arg;
    home_ask_again_list(&r->pending);
    home_break_drop(r);
}

START_TEST(a_new_view_ends_it_and_late_answers_are_of_no_use)
{
    look_at(3, LOOK_STAT);
    look_at(5, LOOK_STAT);
    uint64_t w = want(4, 1, false);
    copy_all();
    answer(find_out(MSG_BREAK, 5), NULL, -ETIMEDOUT);
    record_each(let_go_of, NULL); /* home_adopted */
    ck_assert_int_eq(net.said[w].err, -E_ASK_AGAIN);
    break_at(3, LOOKER_CACHED);
    run_laters();
    ck_assert_uint_eq(open_ones(MSG_BREAK), 0);
    ck_assert(!home_breaks_working());
}
END_TEST

START_TEST(an_asker_that_gives_up_ends_it)
{
    bool keep;
    look_at(3, LOOK_STAT);
    look_at(5, LOOK_OPEN);
    uint64_t w = want(4, 1, false);
    copy_all();
    break_at(3, 0);
    give_back(4, 1, LOOK_NONE);
    ck_assert_int_eq(net.said[w].err, -E_ASK_AGAIN);
    ck_assert_uint_eq(where(7, file, LOOK_STAT, &keep), AT_PFS);
    ck_assert(keep);
    w = want(6, 1, false);
    copy_all();
    ck_assert_uint_eq(open_ones(MSG_BREAK), 3); /* 5's of the first grant is still under way */
    break_at(5, 0);
    ck_assert_uint_eq(net.said[w].type, MSG_NONE); /* that one does not count */
    break_at(5, 0);
    break_at(7, 0);
    ck_assert(is_granted(w));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("home_break_meanwhile");
    TCase *t = add_case(s, "meanwhile", begin, end, 20);
    tcase_add_test(t, until_the_grant_the_pfs_has_it_and_nothing_may_be_kept);
    tcase_add_test(t, who_has_the_bytes_and_asks_for_its_watchers_has_them_meanwhile);
    tcase_add_test(t, a_late_copy_of_a_want_sends_nobody_to_the_pfs);
    tcase_add_test(t, a_grant_that_was_lost_names_its_watchers_again);
    tcase_add_test(t, a_want_that_comes_again_waits_for_the_same_breaks);
    tcase_add_test(t, who_does_not_answer_is_asked_again_until_it_does);
    tcase_add_test(t, a_new_view_ends_it_and_late_answers_are_of_no_use);
    tcase_add_test(t, an_asker_that_gives_up_ends_it);
    return run_suite(s);
}
