/* test_home_looks.c - which nodes look at a file, as a home and its next know it: by FREE, LEAVE and COPY. */
#include "home_break_help.h"

/* ---- FREE, LEAVE ---- */

START_TEST(who_gives_back_looks_itself)
{
    for (unsigned i = 0; i < 2; i++) {
        uint64_t w = want(4, i + 1, false);
        copy_all();
        ck_assert(is_granted(w));
        give_back(4, i + 1, i ? LOOK_OPEN : LOOK_STAT);
        w = want(5, i + 1, false);
        copy_all();
        ck_assert_uint_eq(open_ones(MSG_BREAK), 1);
        break_at(4, 0);
        ck_assert(is_granted(w));
        give_back(5, i + 1, LOOK_NONE);
    }
}
END_TEST

/* Node 4 has the claim, and gives it back with these watchers; then node 5 asks for it.  Answers the number of its request. */
static uint64_t want_after(struct item_watcher *watchers, uint32_t n)
{
    want(4, 1, false);
    copy_all();
    struct msg *m = free_of(4, 1);
    m->free.watchers.n = n;
    m->free.watchers.v = watchers;
    handle_free(m);
    copy_all();
    uint64_t w = want(5, 1, false);
    copy_all();
    return w;
}

START_TEST(nodes_that_only_have_it_open_are_named_again_after_free)
{
    struct item_watcher v[] = {{3, 102, LOOKER_OPEN}};
    uint64_t w = want_after(v, ARRAY_LEN(v));
    ck_assert_uint_eq(open_ones(MSG_BREAK), 0);
    is_named(w, 0, 3, LOOKER_OPEN);
}
END_TEST

START_TEST(watchers_that_are_given_back_look)
{
    struct item_watcher v[] = {{3, 102, LOOKER_CACHED}, {99, 1, LOOKER_CACHED}};
    uint64_t w = want_after(v, ARRAY_LEN(v));
    ck_assert_uint_eq(open_ones(MSG_BREAK), 1);
    break_at(3, 0);
    ck_assert(is_granted(w));
}
END_TEST

static void leave(uint64_t node, uint64_t number, uint64_t incarnation, uint64_t in_view)
{
    struct item_left v = {file, number};
    struct msg *m = from(node, MSG_LEAVE);
    m->head.incarnation = incarnation;
    m->head.view = in_view;
    m->leave.files.n = 1;
    m->leave.files.v = &v;
    handle_leave(m);
}

static enum look look_of_3(void)
{
    struct looker_found f[LOOKERS_NAMED + 1];
    return lookers_of(file, f) == 1 ? f[0].look : LOOK_NONE;
}

START_TEST(only_a_member_leaves_and_only_for_itself)
{
    look_at(3, LOOK_OPEN);
    leave(5, 100, 104, 5);
    leave(3, 100, 101, 5); /* of an older run of it */
    leave(3, 100, 102, 4);
    leave(77, 100, 1, 5);
    ck_assert_uint_eq(look_of_3(), LOOK_OPEN);
    leave(3, 100, 102, 5);
    ck_assert_uint_eq(look_of_3(), LOOK_STAT);
}
END_TEST

START_TEST(who_is_no_member_is_not_entered_and_is_granted_nothing)
{
    struct msg *m = from(77, MSG_WHERE);
    struct item_fid_item *items = xcalloc(1, sizeof(*items));
    items->fid = file;
    m->where.look = LOOK_OPEN;
    m->where.fids.n = 1;
    m->where.fids.v = m->arena = items;
    handle_where(m);
    ck_assert_uint_eq(net.said[requests].keep, 0);
    ck_assert_uint_eq(lookers(), 0);
    uint64_t w = want(77, 1, false);
    ck_assert_int_eq(net.said[w].err, -E_ASK_AGAIN);
}
END_TEST

/* ---- a name goes ---- */

static uint64_t goes(uint64_t node)
{
    struct msg *m = from(node, MSG_WHERE);
    struct item_fid_item *items = xcalloc(1, sizeof(*items));
    items->fid = file;
    m->where.look = LOOK_GOES;
    m->where.number = ++numbers;
    m->where.fids.n = 1;
    m->where.fids.v = m->arena = items;
    handle_where(m);
    return requests;
}

static uint8_t known_at_open(uint64_t node)
{
    bool keep;
    where(node, file, LOOK_OPEN, &keep);
    return net.said[requests].known;
}

START_TEST(who_has_it_open_is_told_before_a_name_goes)
{
    look_at(3, LOOK_OPEN);
    look_at(4, LOOK_STAT);
    look_at(5, LOOK_OPEN);
    look_at(6, LOOK_OPEN);
    uint64_t g = goes(6);
    ck_assert_uint_eq(open_ones(MSG_BREAK), 2);
    ck_assert_uint_eq(net.said[g].type, MSG_NONE);
    break_at(3, LOOKER_OPEN);
    answer(find_out(MSG_BREAK, 5), NULL, -ETIMEDOUT); /* told again */
    net.later[0].fn(net.later[0].arg);
    ck_assert_uint_eq(net.said[g].type, MSG_NONE);
    break_at(5, 0);
    ck_assert_uint_eq(net.said[g].type, MSG_AT);
    ck_assert_uint_eq(net.said[g].keep, 1);
}
END_TEST

START_TEST(where_nobody_has_it_open_nobody_is_told)
{
    look_at(4, LOOK_STAT);
    ck_assert_uint_eq(net.said[goes(6)].type, MSG_AT);
    ck_assert_uint_eq(net.n, 0);
}
END_TEST

START_TEST(who_opens_it_while_a_name_goes_looks_at_the_pfs)
{
    ck_assert_uint_eq(known_at_open(3), 0);
    leave(3, 100, 102, 5);
    goes(6);
    ck_assert_uint_eq(known_at_open(4), KNOWN_LOST);
    leave(6, 1, 105, 5); /* of an earlier look */
    ck_assert_uint_eq(known_at_open(5), KNOWN_LOST);
}
END_TEST

/* So it knows that nobody need be told where the file is now. */
START_TEST(who_removes_a_name_is_told_before_a_claim_is_granted)
{
    goes(6);
    uint64_t w = want(4, 1, false);
    copy_all();
    ck_assert(!is_granted(w));
    break_at(6, LOOKER_OPEN);
    ck_assert(is_granted(w));
    ck_assert_uint_eq(net.said[goes(7)].where, AT_NODE);
    ck_assert_uint_eq(open_ones(MSG_BREAK), 0);
}
END_TEST

START_TEST(while_a_claim_is_being_granted_it_is_asked_again)
{
    look_at(3, LOOK_OPEN);
    want(4, 1, false);
    copy_all();
    ck_assert_int_eq(net.said[goes(6)].err, -E_ASK_AGAIN);
    ck_assert_uint_eq(known_at_open(5), KNOWN_LOST);
    break_at(3, LOOKER_OPEN);
}
END_TEST

START_TEST(a_new_view_asks_again)
{
    look_at(3, LOOK_OPEN);
    uint64_t g = goes(6);
    home_goes_drop();
    ck_assert_int_eq(net.said[g].err, -E_ASK_AGAIN);
    break_at(3, 0);
}
END_TEST

static struct view alone = {.number = 5, .nmembers = 1, .members = members};

START_TEST(alone_nobody_is_entered_and_all_may_be_kept)
{
    uint64_t i = 1;
    bool keep;
    become(1, &alone);
    for (unsigned n = 0; n < 100; n++, i++) {
        where(1, (struct fid){i, i}, LOOK_OPEN, &keep);
        ck_assert(keep);
    }
    ck_assert_uint_eq(lookers_bytes(), 0);
    uint64_t w = want(1, 1, false);
    ck_assert(is_granted(w));
    give_back(1, 1, LOOK_OPEN);
    ck_assert_uint_eq(lookers_bytes(), 0);
    ck_assert_uint_eq(net.n, 0);
}
END_TEST

/* ---- next ---- */

static uint64_t come_copy(uint64_t claimant, uint64_t stamp, bool heard)
{
    struct msg *m = from(1, MSG_COPY);
    m->copy.heard = heard;
    struct item_record *r = xcalloc(1, sizeof(*r));
    *r = (struct item_record){
        .fid = file, .claimant = claimant, .stamp_view = 5, .stamp_count = stamp};
    m->copy.records.n = 1;
    m->copy.records.v = m->arena = r;
    handle_copy(m);
    return requests;
}

START_TEST(next_says_whom_it_has_entered_and_then_enters_nobody)
{
    bool keep;
    become(2, &view);
    collect_note_next(1, 5);
    look_at(3, LOOK_STAT);
    look_at(4, LOOK_OPEN);
    for (unsigned i = 0; i < 2; i++) { /* COPIED may be lost */
        uint64_t c = come_copy(9, 1, false);
        ck_assert_uint_eq(net.said[c].type, MSG_COPIED);
        ck_assert_uint_eq(net.said[c].nlookers, 2);
    }
    ck_assert_uint_eq(where(5, file, LOOK_STAT, &keep), AT_NODE);
    ck_assert(!keep);
    /* given back: the home has them since long */
    ck_assert_uint_eq(net.said[come_copy(0, 2, true)].nlookers, 0);
    look_at(5, LOOK_STAT);
    ck_assert_uint_eq(net.said[come_copy(0, 3, true)].nlookers, 1); /* locks have changed */
    ck_assert_uint_eq(net.said[come_copy(9, 4, false)].nlookers, 1);
    /* COPIED was lost, and the asker gave up */
    ck_assert_uint_eq(net.said[come_copy(0, 5, false)].nlookers, 1);
    ck_assert_uint_eq(net.said[come_copy(9, 6, false)].nlookers, 1);
}
END_TEST

/* In an older view this node had the record of a claim: that says nothing of the lookers of this one. */
START_TEST(a_record_of_an_older_view_ends_no_look)
{
    become(2, &view);
    collect_note_next(1, 5);
    struct record *r = record_make(file);
    r->claimant = 9;
    r->stamp_view = 4;
    look_at(3, LOOK_OPEN);
    ck_assert_uint_eq(net.said[come_copy(0, 1, true)].nlookers, 1);
}
END_TEST

START_TEST(the_home_says_what_it_has_heard_of_next)
{
    uint64_t w = want(4, 1, false);
    ck_assert_uint_eq(net.out[find_out(MSG_COPY, 2)].m->copy.heard, 0);
    handle_free(free_of(4, 1)); /* it gives up before COPIED is here */
    ck_assert_int_eq(net.said[w].err, -E_ASK_AGAIN);
    ck_assert_uint_eq(net.out[1].m->copy.heard, 0);
    copy_all();
    w = want(4, 2, false);
    copy_all();
    ck_assert(is_granted(w));
    unsigned n = net.n;
    give_back(4, 2, LOOK_NONE);
    ck_assert_uint_eq(net.n, n + 1);
    ck_assert(heard_of_last);
    want(4, 3, false);
    ck_assert_uint_eq(net.out[find_out(MSG_COPY, 2)].m->copy.heard, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("home_looks");
    TCase *t = add_case(s, "FREE and LEAVE", begin, end, 20);
    tcase_add_test(t, who_gives_back_looks_itself);
    tcase_add_test(t, who_has_it_open_is_told_before_a_name_goes);
    tcase_add_test(t, where_nobody_has_it_open_nobody_is_told);
    tcase_add_test(t, who_opens_it_while_a_name_goes_looks_at_the_pfs);
    tcase_add_test(t, who_removes_a_name_is_told_before_a_claim_is_granted);
    tcase_add_test(t, while_a_claim_is_being_granted_it_is_asked_again);
    tcase_add_test(t, a_new_view_asks_again);
    tcase_add_test(t, nodes_that_only_have_it_open_are_named_again_after_free);
    tcase_add_test(t, watchers_that_are_given_back_look);
    tcase_add_test(t, only_a_member_leaves_and_only_for_itself);
    tcase_add_test(t, who_is_no_member_is_not_entered_and_is_granted_nothing);
    tcase_add_test(t, alone_nobody_is_entered_and_all_may_be_kept);
    t = add_case(s, "next", begin, end, 20);
    tcase_add_test(t, next_says_whom_it_has_entered_and_then_enters_nobody);
    tcase_add_test(t, a_record_of_an_older_view_ends_no_look);
    tcase_add_test(t, the_home_says_what_it_has_heard_of_next);
    return run_suite(s);
}
