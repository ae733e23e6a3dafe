/* test_store_lent_back.c - what a node knows of parts that it has lent: by its flushes, by what borrowers say, when they
 * come back, and after a start. */
#include "lend_help.h"

#include <stdatomic.h>

/* ---- flushes ---- */

START_TEST(a_flush_follows_what_borrowers_have_made_longer)
{
    struct file *f = claimed_file(1);
    write_ok(f, data, UNIT, 0);
    ck_assert(!flush_to(f, UNITS * UNIT + 5)); /* nothing is lent: somebody else's bytes */
    write_ok(f, data, UNIT, 0);
    ck_assert(flush_to(f, UNITS * UNIT));
    lend_ok(f, B, 20, 20);
    write_ok(f, data, UNIT, 0);
    ck_assert(flush_to(f, 20 * UNIT + 5));
    struct file_info i = info_of(f);
    ck_assert(!i.dirty);
    ck_assert_uint_eq(i.size, 20 * UNIT + 5);
    ck_assert_uint_eq(i.base_end, 20 * UNIT + 5);
    file_put(f);
}
END_TEST

START_TEST(what_a_borrower_says_during_a_flush_is_flushed_by_the_next)
{
    struct file *f = claimed_file(1);
    uint8_t *pfs = calloc(1, UNITS * UNIT);
    write_ok(f, data, UNIT, 0);
    lend_ok(f, B, 9, 9);
    struct flush fl = begin_flush(f, pfs);
    ck_assert(store_lent_is(f, store_lend_epoch(f), 9 * UNIT + 7, INT64_MIN));
    ck_assert(!store_flushed(f, &fl.v, fl.change, NULL));
    ck_assert(info_of(f).dirty);
    ck_assert_uint_eq(info_of(f).size, 9 * UNIT + 7);
    free(pfs);
    file_put(f);
}
END_TEST

START_TEST(a_file_becomes_whole_by_no_flush_while_parts_are_lent)
{
    struct file *f = new_file(1, "x"), *g = new_file(2, "y");
    write_ok(f, data, PAGE, 0);
    write_ok(g, data, PAGE, 0);
    lend_ok(g, B, 3, 3);
    ck_assert(flush_to(f, PAGE));
    ck_assert(f->rec->whole);
    ck_assert(flush_to(g, 3 * UNIT + PAGE));
    ck_assert(!g->rec->whole);
    lend_ok(f, B, 3, 3); /* what is not here of it may be on the PFS soon */
    ck_assert(!f->rec->whole);
    file_put(f);
    file_put(g);
}
END_TEST

/* The borrower's flush was after this node's last look at the PFS file. */
START_TEST(the_end_of_a_flush_does_not_bring_an_older_version_back)
{
    struct file *f = claimed_file(1);
    uint8_t *pfs = calloc(1, UNITS * UNIT);
    struct version v = version_n(20 * UNIT, 30);
    write_ok(f, data, UNIT, 0);
    lend_ok(f, B, 19, 19);
    struct flush fl = begin_flush(f, pfs);
    store_flush_ends(f, 0); /* its look follows: version fl.v */
    returned_ok(f, B, &v);
    ck_assert(!store_flushed(f, &fl.v, fl.change, NULL));
    struct file_info i = info_of(f);
    ck_assert(version_eq(&i.base, &v));
    ck_assert_uint_eq(i.base_end, v.size);
    ck_assert(i.dirty && !i.flushing);
    free(pfs);
    file_put(f);
}
END_TEST

START_TEST(a_return_is_looked_at_again_if_a_flush_has_ended_meanwhile)
{
    struct file *f = claimed_file(1);
    struct version old = version_n(UNITS * UNIT, 20), v = version_n(UNITS * UNIT, 30);
    lend_ok(f, B, 1, 1);
    lend_ok(f, C, 2, 2);
    uint64_t looks = store_pfs_looks(f);
    write_ok(f, data, UNIT, 0);
    ck_assert(flush_to(f, UNITS * UNIT));
    ck_assert(!try_return(f, B, looks, &old));
    ck_assert_uint_eq(lent_to(f, 1), B);
    looks = store_pfs_looks(f);
    returned_ok(f, C, &v); /* the same for another borrower's */
    ck_assert(!try_return(f, B, looks, &old));
    struct file_info i = info_of(f);
    ck_assert(version_eq(&i.base, &v));
    returned_ok(f, B, &v);
    file_put(f);
}
END_TEST

/* ---- size and times ---- */

START_TEST(size_and_mtime_are_the_largest_that_a_borrower_has_said)
{
    struct file *f = claimed_file(1);
    struct file_info i = info_of(f);
    uint64_t epoch = lend_ok(f, B, 20, 20);
    ck_assert(store_lent_is(f, epoch, 20 * UNIT + 3, i.mtime_ns + 50));
    struct file_info now = info_of(f);
    ck_assert_uint_eq(now.size, 20 * UNIT + 3);
    ck_assert_int_eq(now.mtime_ns, i.mtime_ns + 50);
    ck_assert_int_gt(now.ctime_ns, i.ctime_ns);
    ck_assert_uint_ne(now.change, i.change);
    ck_assert_uint_eq(now.base_end, UNITS * UNIT);
    ck_assert(store_lent_is(f, epoch, UNIT, i.mtime_ns)); /* less than is known */
    ck_assert(store_lent_is(f, epoch, 0, INT64_MIN));
    i = info_of(f);
    same_state(&now, &i);
    file_put(f);
}
END_TEST

START_TEST(a_later_write_ends_what_utimens_has_set)
{
    struct file *f = claimed_file(1);
    uint64_t epoch = lend_ok(f, B, 0, 0);
    store_set_times(f, 1000);
    ck_assert(store_lent_is(f, epoch, 0, 500));
    ck_assert_int_eq(info_of(f).mtime_ns, 1000);
    ck_assert(info_of(f).mtime_set);
    ck_assert(store_lent_is(f, epoch, 0, 2000));
    ck_assert_int_eq(info_of(f).mtime_ns, 2000);
    ck_assert(!info_of(f).mtime_set);
    file_put(f);
}
END_TEST

START_TEST(what_was_said_of_an_earlier_epoch_does_not_count)
{
    struct file *f = claimed_file(1);
    uint64_t epoch = lend_ok(f, B, 0, 0);
    struct file_info before = info_of(f), after;
    store_lend_stop(f);
    store_lend_go(f);
    ck_assert(!store_lent_is(f, epoch, 99 * UNIT, before.mtime_ns + 1)); /* perhaps it was cut off since */
    after = info_of(f);
    same_state(&before, &after);
    ck_assert(store_lent_is(f, store_lend_epoch(f), 99 * UNIT, before.mtime_ns + 1));
    file_put(f);
}
END_TEST

START_TEST(nothing_is_said_of_a_file_of_which_nothing_is_lent)
{
    struct file *f = claimed_file(1);
    struct file_info before = info_of(f), after;
    store_lent_is(f, store_lend_epoch(f), 99 * UNIT, before.mtime_ns + 1);
    after = info_of(f);
    same_state(&before, &after);
    file_put(f);
}
END_TEST

/* ---- what comes back ---- */

static atomic_int told_dirty;

static void on_dirty(struct file *f)
{
    (void)f;
    told_dirty++;
}

START_TEST(what_was_returned_is_untouched_and_the_file_is_dirty)
{
    struct file *f = claimed_file(1);
    struct version v = version_n(20 * UNIT + 9, 30);
    store_on_dirty(on_dirty);
    struct lent_back back = {.v = v, .mtime_ns = info_of(f).mtime_ns + 5, .began = LENT_ANY};
    uint64_t first = lend_ok(f, B, 2, 3), epoch;
    lend_ok(f, B, 20, 20);
    lend_ok(f, C, 5, 5);
    ck_assert(!info_of(f).dirty);
    uint64_t change = info_of(f).change;
    ck_assert(store_lent_returned(f, B, &back, &epoch));
    ck_assert_uint_gt(epoch, first);
    ck_assert_uint_eq(epoch, store_lend_epoch(f));
    ck_assert_int_eq(told_dirty, 1);
    struct file_info i = info_of(f);
    ck_assert(i.dirty);
    ck_assert_uint_ne(i.change, change);
    ck_assert(version_eq(&i.base, &v));
    ck_assert_uint_eq(i.base_end, v.size);
    ck_assert_uint_eq(i.size, v.size);
    ck_assert_int_eq(i.mtime_ns, back.mtime_ns);
    owners_are(f, (uint64_t[UNITS]){0, 0, 0, 0, 0, C, 0, 0});
    ck_assert(store_is_lent(f));
    lend_ok(f, C, 2, 2);
    write_ok(f, data, PAGE, 3 * UNIT);
    returned_ok(f, C, &v);
    owners_are(f, (uint64_t[UNITS]){0});
    ck_assert(!store_is_lent(f) && !info_of(f).lent);
    file_put(f);
}
END_TEST

START_TEST(a_file_that_got_longer_here_keeps_its_size)
{
    struct file *f = claimed_file(1);
    struct version v = version_n(UNIT, 30);
    uint64_t fill;
    lend_ok(f, B, 2, 3);
    ck_assert_int_eq(store_truncate(f, 30 * UNIT, &fill), 0);
    returned_ok(f, B, &v);
    ck_assert_uint_eq(info_of(f).size, 30 * UNIT);
    ck_assert_uint_eq(info_of(f).base_end, UNIT);
    file_put(f);
}
END_TEST

START_TEST(who_has_nothing_returns_nothing)
{
    struct file *f = claimed_file(1);
    struct version v = version_n(UNIT, 30);
    struct file_info before = info_of(f), after;
    returned_ok(f, B, &v);
    after = info_of(f);
    same_state(&before, &after);
    lend_ok(f, C, 1, 1);
    returned_ok(f, B, &v);
    after = info_of(f);
    same_state(&before, &after);
    ck_assert(version_eq(&after.base, &base));
    ck_assert_uint_eq(lent_to(f, 1), C);
    file_put(f);
}
END_TEST

/* It was long on its way: the node has returned all, and borrowed again. */
START_TEST(a_return_of_an_earlier_loan_ends_no_newer_one)
{
    struct file *f = claimed_file(1);
    struct version v = version_n(20 * UNIT, 30);
    struct lent_back back = {.mtime_ns = INT64_MIN, .began = lend_ok(f, B, 2, 3), .inc = 1};
    uint64_t epoch;
    back.v = version_n(UNITS * UNIT, 29);
    ck_assert(store_lent_returned(f, B, &back, &epoch));
    owners_are(f, (uint64_t[UNITS]){0});
    uint64_t again = lend_ok(f, B, 3, 4);
    back.v = v;
    back.looks = store_pfs_looks(f);
    ck_assert(store_lent_returned(f, B, &back, &epoch));
    owners_are(f, (uint64_t[UNITS]){0, 0, 0, B, B, 0, 0, 0});
    back.began = again;
    back.inc = 2; /* of another daemon */
    ck_assert(store_lent_returned(f, B, &back, &epoch));
    owners_are(f, (uint64_t[UNITS]){0, 0, 0, B, B, 0, 0, 0});
    ck_assert_uint_ne(info_of(f).base.size, v.size);
    back.inc = 1;
    ck_assert(store_lent_returned(f, B, &back, &epoch));
    owners_are(f, (uint64_t[UNITS]){0});
    ck_assert_uint_eq(info_of(f).base.size, v.size);
    file_put(f);
}
END_TEST

/* ---- a borrower's next daemon ---- */

START_TEST(a_borrower_that_was_started_again_has_what_it_says)
{
    struct file *f = claimed_file(1);
    struct version v = version_n(20 * UNIT, 30);
    struct lend_units parts[] = {{3, 3}, {5, 6}};
    struct lent_back back = {.v = v, .size = 22 * UNIT, .mtime_ns = INT64_MIN, .began = LENT_ANY, .inc = 2};
    uint64_t epoch = lend_ok(f, B, 2, 3), first = epoch;
    int err;
    lend_ok(f, C, 0, 0);
    ck_assert_uint_eq(store_borrower_inc(f, B), 1);
    ck_assert(!store_lent_held(f, B, epoch - 1, parts, 2, &back, &err));
    owners_are(f, (uint64_t[UNITS]){C, 0, B, B, 0, 0, 0, 0});
    epoch = store_lend_next_epoch(f);
    ck_assert(store_lent_held(f, B, epoch, parts, 2, &back, &err));
    ck_assert_int_eq(err, 0);
    owners_are(f, (uint64_t[UNITS]){C, 0, 0, B, 0, B, B, 0});
    ck_assert_uint_eq(store_borrower_inc(f, B), 2);
    ck_assert_uint_eq(info_of(f).base.size, v.size); /* what it had flushed is the PFS's */
    ck_assert_uint_eq(info_of(f).base_end, v.size);
    ck_assert_uint_eq(info_of(f).size, 22 * UNIT);
    ck_assert_uint_gt(store_lend_epoch(f), epoch);
    back.began = first; /* it was lent to the daemon before, and is this one's now */
    back.looks = store_pfs_looks(f);
    ck_assert(store_lent_returned(f, B, &back, &epoch));
    owners_are(f, (uint64_t[UNITS]){C, 0, 0, 0, 0, 0, 0, 0});
    file_put(f);
}
END_TEST

START_TEST(a_borrower_that_was_started_again_may_have_nothing)
{
    struct file *f = claimed_file(1);
    struct lent_back back = {.v = base, .mtime_ns = INT64_MIN, .began = LENT_ANY, .inc = 2};
    int err;
    lend_ok(f, B, 2, 3);
    ck_assert(store_lent_held(f, B, store_lend_epoch(f), NULL, 0, &back, &err));
    ck_assert_uint_eq(store_borrower_inc(f, B), 0);
    ck_assert(!store_is_lent(f));
    file_put(f);
}
END_TEST

/* ---- the next daemon ---- */

START_TEST(the_next_daemon_knows_that_something_may_be_lent)
{
    struct file *f = claimed_file(1);
    uint64_t fill, nodes[1];
    uint8_t byte;
    write_ok(f, data, UNIT, 0);
    lend_ok(f, B, 3, 3);
    f = reopen(f, UNIT);
    ck_assert(store_is_lent(f));
    ck_assert(store_is_shared(f));
    ck_assert(info_of(f).lent);
    ck_assert_uint_eq(store_borrowers(f, nodes, 1), 0);
    /* but not what: so it gives and changes nothing, and lends nothing to others */
    ck_assert_int_eq(store_write(f, data, 10, 5 * UNIT, SPACE_CACHE, &fill), -EREMOTE);
    ck_assert_int_eq(store_read(f, &byte, 1, 5 * UNIT), 0);
    ck_assert_int_eq(fill_chunk(f, 5, &base, data, true), 0);
    ck_assert_uint_eq(here(f, 5 * UNIT, UNIT), 0);
    ck_assert_int_eq(try_kernel_io(f, false), -ENODATA);
    ck_assert_int_eq(try_lend(f, C, 3), -EAGAIN);
    ck_assert_uint_eq(lent_to(f, 3), 0);
    ck_assert(!store_lent_is_known(f));
    store_lent_known(f, &base);
    ck_assert(store_lent_is_known(f));
    ck_assert(!store_is_lent(f));
    ck_assert(!store_is_shared(f));
    write_ok(f, data, PAGE, 3 * UNIT);
    file_put(f);
}
END_TEST

/* What a dead daemon has said to borrowers is of an earlier epoch. */
START_TEST(epochs_grow_over_starts)
{
    struct file *f = claimed_file(1);
    lend_ok(f, B, 3, 3);
    uint64_t epoch = store_lend_next_epoch(f);
    f = reopen(f, UNIT);
    ck_assert_uint_gt(store_lend_next_epoch(f), epoch);
    store_lent_known(f, &base);
    file_put(f);
}
END_TEST

START_TEST(what_was_found_by_a_round_that_failed_does_not_count)
{
    struct file *f = claimed_file(1);
    lend_ok(f, B, 3, 3);
    f = reopen(f, UNIT);
    ck_assert_int_eq(store_lent_found(f, (struct lend_node){B, 1}, 3, 3), 0);
    store_lent_lost(f);
    ck_assert_int_eq(store_lent_found(f, (struct lend_node){C, 1}, 5, 5), 0);
    store_lent_known(f, &base);
    owners_are(f, (uint64_t[UNITS]){0, 0, 0, 0, 0, C, 0, 0});
    store_lent_lost(f); /* nothing of what is known */
    ck_assert_uint_eq(lent_to(f, 5), C);
    file_put(f);
}
END_TEST

START_TEST(what_is_known_to_be_lent_stays_lent)
{
    struct file *f = claimed_file(1);
    lend_ok(f, B, 3, 3);
    store_lent_known(f, &base);
    ck_assert(store_is_lent(f));
    ck_assert_uint_eq(lent_to(f, 3), B);
    file_put(f);
}
END_TEST

START_TEST(the_next_daemon_finds_nothing_lent_if_all_came_back)
{
    struct file *f = claimed_file(1);
    lend_ok(f, B, 3, 3);
    returned_ok(f, B, &base);
    f = reopen(f, UNIT);
    ck_assert(!store_is_lent(f));
    ck_assert(!store_is_shared(f));
    file_put(f);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("store_lent_back");
    TCase *t = add_case(s, "flushes", setup, teardown, 20);
    tcase_add_test(t, a_flush_follows_what_borrowers_have_made_longer);
    tcase_add_test(t, what_a_borrower_says_during_a_flush_is_flushed_by_the_next);
    tcase_add_test(t, a_file_becomes_whole_by_no_flush_while_parts_are_lent);
    tcase_add_test(t, the_end_of_a_flush_does_not_bring_an_older_version_back);
    tcase_add_test(t, a_return_is_looked_at_again_if_a_flush_has_ended_meanwhile);
    t = add_case(s, "said", setup, teardown, 20);
    tcase_add_test(t, size_and_mtime_are_the_largest_that_a_borrower_has_said);
    tcase_add_test(t, a_later_write_ends_what_utimens_has_set);
    tcase_add_test(t, what_was_said_of_an_earlier_epoch_does_not_count);
    tcase_add_test(t, nothing_is_said_of_a_file_of_which_nothing_is_lent);
    t = add_case(s, "returned", setup, teardown, 20);
    tcase_add_test(t, what_was_returned_is_untouched_and_the_file_is_dirty);
    tcase_add_test(t, a_file_that_got_longer_here_keeps_its_size);
    tcase_add_test(t, who_has_nothing_returns_nothing);
    tcase_add_test(t, a_return_of_an_earlier_loan_ends_no_newer_one);
    t = add_case(s, "started again", setup, teardown, 20);
    tcase_add_test(t, a_borrower_that_was_started_again_has_what_it_says);
    tcase_add_test(t, a_borrower_that_was_started_again_may_have_nothing);
    tcase_add_test(t, epochs_grow_over_starts);
    tcase_add_test(t, what_was_found_by_a_round_that_failed_does_not_count);
    tcase_add_test(t, the_next_daemon_knows_that_something_may_be_lent);
    tcase_add_test(t, what_is_known_to_be_lent_stays_lent);
    tcase_add_test(t, the_next_daemon_finds_nothing_lent_if_all_came_back);
    return run_suite(s);
}
