/* test_store_lend.c - parts of a file are lent: which, when, and what that forbids here. */
#include "lend_help.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "placement/store/range.h"

/* ---- what is lent ---- */

START_TEST(only_untouched_units_are_lent)
{
    struct file *f = claimed_file(1);
    write_ok(f, data + 2 * UNIT + 5 * PAGE, PAGE, 2 * UNIT + 5 * PAGE); /* dirty */
    ck_assert_int_eq(fill_chunk(f, 4, &base, data, true), 0);           /* clean */
    lend_ok(f, B, 0, 5);
    owners_are(f, (uint64_t[UNITS]){B, B, 0, B, 0, B, 0, 0});
    lend_ok(f, C, 0, UNITS - 1);
    owners_are(f, (uint64_t[UNITS]){B, B, 0, B, 0, B, C, C});
    file_put(f);
}
END_TEST

START_TEST(units_behind_the_end_are_lent_too)
{
    struct file *f = new_file(1, "x");
    lend_ok(f, B, 1000, 1000);
    ck_assert_uint_eq(lent_to(f, 1000), B);
    ck_assert_uint_eq(lent_to(f, 999), 0);
    ck_assert_uint_eq(info_of(f).size, 0);
    file_put(f);
}
END_TEST

START_TEST(the_owner_is_told_with_how_far_it_owns)
{
    struct file *f = claimed_file(1);
    uint64_t until;
    ck_assert_uint_eq(store_lent_to(f, 0, 7, &until), 0);
    ck_assert_uint_eq(until, 7);
    lend_ok(f, B, 2, 4);
    ck_assert_uint_eq(store_lent_to(f, 0, 7, &until), 0);
    ck_assert_uint_eq(until, 1);
    ck_assert_uint_eq(store_lent_to(f, 2, 7, &until), B);
    ck_assert_uint_eq(until, 4);
    ck_assert_uint_eq(store_lent_to(f, 3, 3, &until), B);
    ck_assert_uint_eq(until, 3);
    ck_assert_uint_eq(store_lent_to(f, 5, 7, &until), 0);
    ck_assert_uint_eq(until, 7);
    file_put(f);
}
END_TEST

START_TEST(borrowers_are_those_that_have_something)
{
    struct file *f = claimed_file(1);
    uint64_t nodes[2];
    ck_assert_uint_eq(store_borrowers(f, nodes, 2), 0);
    write_ok(f, data, PAGE, 0);
    lend_ok(f, B, 0, 0); /* nothing: it is this node's own */
    ck_assert_uint_eq(store_borrowers(f, nodes, 2), 0);
    ck_assert(!store_is_lent(f));
    lend_ok(f, B, 1, 1);
    lend_ok(f, B, 5, 5);
    lend_ok(f, C, 2, 2);
    ck_assert_uint_eq(store_borrowers(f, nodes, 1), 2);
    ck_assert_uint_eq(nodes[0], B);
    ck_assert_uint_eq(store_borrowers(f, nodes, 2), 2);
    ck_assert_uint_eq(nodes[1], C);
    returned_ok(f, B, &base);
    ck_assert_uint_eq(store_borrowers(f, nodes, 2), 1);
    ck_assert_uint_eq(nodes[0], C);
    lend_ok(f, B, 1, 1); /* it gets the free place */
    ck_assert_uint_eq(store_borrowers(f, nodes, 2), 2);
    owners_are(f, (uint64_t[UNITS]){0, B, C, 0, 0, 0, 0, 0});
    file_put(f);
}
END_TEST

/* ---- when nothing is lent ---- */

START_TEST(nothing_is_lent_while_a_truncation_is_owed)
{
    struct file *f = claimed_file(1);
    uint8_t *pfs = calloc(1, UNITS * UNIT);
    uint64_t fill;
    ck_assert_int_eq(store_truncate(f, 2 * UNIT, &fill), 0);
    ck_assert_int_eq(store_truncate(f, 6 * UNIT, &fill), 0);
    ck_assert_int_eq(try_lend(f, B, 3), -EBUSY); /* the PFS has old bytes there */
    ck_assert_uint_eq(lent_to(f, 3), 0);
    ck_assert(!store_is_lent(f));
    ck_assert(flush(f, pfs));
    lend_ok(f, B, 3, 3);
    ck_assert_uint_eq(lent_to(f, 3), B);
    free(pfs);
    file_put(f);
}
END_TEST

/* The PFS file is not longer than it was, but a flush that is to come cuts it there. */
START_TEST(nothing_is_lent_while_a_cut_behind_the_pfs_bytes_is_owed)
{
    struct file *f = claimed_file(1);
    uint8_t *pfs = calloc(1, 20 * UNIT);
    uint64_t fill;
    ck_assert_int_eq(store_truncate(f, 20 * UNIT, &fill), 0);
    ck_assert_int_eq(store_truncate(f, 10 * UNIT, &fill), 0);
    ck_assert_uint_eq(info_of(f).base_end, UNITS * UNIT);
    ck_assert_int_eq(try_lend(f, B, 15), -EBUSY);
    ck_assert(flush(f, pfs));
    lend_ok(f, B, 15, 15);
    free(pfs);
    file_put(f);
}
END_TEST

START_TEST(nothing_is_lent_between_stop_and_go)
{
    struct file *f = claimed_file(1);
    uint64_t before = lend_ok(f, B, 0, 0), epoch = store_lend_stop(f);
    ck_assert_uint_eq(store_lent_epoch(f), before); /* what LENT names now is older than the recall */
    ck_assert_uint_gt(epoch, before);
    ck_assert_uint_gt(store_lend_stop(f), epoch); /* two calls at once */
    ck_assert_int_eq(try_lend(f, C, 1), -EAGAIN);
    store_lend_go(f);
    ck_assert_int_eq(try_lend(f, C, 1), -EAGAIN);
    ck_assert_uint_eq(store_lent_epoch(f), before);
    store_lend_go(f);
    ck_assert_uint_eq(store_lent_epoch(f), store_lend_epoch(f));
    ck_assert_uint_gt(lend_ok(f, C, 1, 1), epoch);
    owners_are(f, (uint64_t[UNITS]){B, C, 0, 0, 0, 0, 0, 0});
    file_put(f);
}
END_TEST

START_TEST(nothing_of_a_file_without_a_name_is_lent)
{
    struct file *f = claimed_file(1), *g = claimed_file(2);
    file_set_unlinked(f, true);
    ck_assert_int_eq(store_share_begin(f), -EIDRM);
    ck_assert_int_eq(try_lend(f, B, 0), -EAGAIN); /* it lost it since share_begin */
    store_set_deleted(g);
    ck_assert_int_eq(store_share_begin(g), -EIDRM);
    ck_assert_int_eq(try_lend(g, B, 0), -EAGAIN);
    ck_assert(!store_is_shared(f) && !store_is_shared(g));
    file_put(f);
    file_put(g);
}
END_TEST

/* ---- beside other calls ---- */

struct lender {
    struct file *f;
    uint64_t unit;
};

static void *lend_one(void *arg)
{
    const struct lender *l = arg;
    lend_ok(l->f, B, l->unit, l->unit);
    return NULL;
}

/* Until the other thread's call waits for what this one has begun in the page. */
static void until_it_waits(struct file *f, uint64_t page)
{
    uint64_t until;
    for (bool waits = false; !waits; usleep(1000)) {
        lock_take(&f->lock);
        waits = range_changing(f, page, &until);
        lock_drop(&f->lock);
    }
}

/* Zeros of which nothing is here. */
START_TEST(a_unit_is_lent_when_its_reader_has_ended)
{
    struct file *f = new_file(1, "x");
    struct lender six = {f, 6}, seven = {f, 7};
    struct store_hit hit;
    pthread_t t;
    uint64_t fill;
    ck_assert_int_eq(store_truncate(f, 9 * UNIT, &fill), 0);
    ck_assert_uint_eq(store_read_begin(f, 7 * UNIT, UNIT, &hit), UNIT);
    lend_one(&six); /* another one: at once */
    ck_assert_int_eq(pthread_create(&t, NULL, lend_one, &seven), 0);
    until_it_waits(f, 7 * UNIT / PAGE);
    ck_assert_uint_eq(lent_to(f, 7), 0);
    store_read_end(&hit);
    pthread_join(t, NULL);
    ck_assert_uint_eq(lent_to(f, 7), B);
    file_put(f);
}
END_TEST

/* ---- what it forbids ---- */

START_TEST(a_fill_leaves_lent_pages_out)
{
    struct file *f = claimed_file(1);
    uint8_t *buf = malloc(4 * UNIT);
    uint64_t hash;
    size_t n;
    lend_ok(f, B, 1, 2);
    ck_assert_int_eq(fill_chunk(f, 0, &base, data, true), 0);
    ck_assert_uint_eq(here(f, 0, 4 * UNIT), UNIT);
    ck_assert_uint_eq(here(f, UNIT, 3 * UNIT), 0);
    ck_assert_uint_eq(here(f, 2 * UNIT, 2 * UNIT), 0);
    ck_assert_uint_eq(here(f, 3 * UNIT, UNIT), UNIT);
    read_is(f, data + 3 * UNIT, UNIT, 3 * UNIT);
    ck_assert_int_eq(store_get_chunk(f, 0, &base, buf, &n, &hash), -ENOENT);

    struct version v = version_n(UNITS * UNIT, 5); /* with the borrower's bytes */
    returned_ok(f, B, &v);
    memset(data + UNIT, 0x55, 2 * UNIT);
    ck_assert_int_eq(fill_chunk(f, 0, &base, data, true), -ESTALE); /* one that is late */
    ck_assert_int_eq(fill_chunk(f, 0, &v, data, true), 0);
    read_is(f, data, 4 * UNIT, 0);
    free(buf);
    file_put(f);
}
END_TEST

START_TEST(a_read_ends_before_a_lent_part_and_begins_in_none)
{
    struct file *f = claimed_file(1);
    struct store_hit hit;
    uint64_t fill;
    uint8_t byte;
    ck_assert_int_eq(fill_chunk(f, 0, &base, data, true), 0);
    ck_assert_int_eq(store_truncate(f, 20 * UNIT, &fill), 0);
    lend_ok(f, B, 1, 2);
    lend_ok(f, C, 12, 12); /* zeros until now */
    ck_assert_uint_eq(here(f, UNIT - 100, 500), 100);
    ck_assert_int_eq(store_read(f, &byte, 1, UNIT), 0);
    ck_assert_int_eq(store_read(f, &byte, 1, 2 * UNIT + 77), 0);
    ck_assert_uint_eq(here(f, 11 * UNIT, 9 * UNIT), UNIT);
    ck_assert_int_eq(store_read(f, &byte, 1, 12 * UNIT), 0);
    ck_assert_uint_eq(here(f, 13 * UNIT, 99 * UNIT), 7 * UNIT);

    ck_assert_uint_gt(store_read_begin(f, 13 * UNIT, 99 * UNIT, &hit), 0);
    ck_assert(!hit.ends); /* somebody may have written behind it */
    store_read_end(&hit);
    file_put(f);
}
END_TEST

START_TEST(a_change_of_a_lent_part_is_refused_and_nothing_is_done)
{
    struct file *f = claimed_file(1);
    struct appended out;
    uint64_t fill;
    write_ok(f, data, 3 * UNIT, 0);
    lend_ok(f, B, 3, 4);
    struct file_info before = info_of(f), after;
    ck_assert_int_eq(store_write(f, data, 10, 3 * UNIT, SPACE_CACHE, &fill), -EREMOTE);
    ck_assert_int_eq(store_write(f, data, UNIT, 3 * UNIT - PAGE, SPACE_CACHE, &fill), -EREMOTE);
    ck_assert_int_eq(store_write(f, data, UNIT, 4 * UNIT + 1, SPACE_CACHE, &fill), -EREMOTE);
    ck_assert_int_eq(store_write_within(f, data, 10, 3 * UNIT, SPACE_CACHE, &fill), -EREMOTE);
    ck_assert_int_eq(store_append(f, data, 10, SPACE_CACHE, &out, &fill), -EREMOTE);
    ck_assert_uint_eq(out.len, 0);
    ck_assert_int_eq(store_punch(f, 3 * UNIT, UNIT, SPACE_CACHE, &fill), -EREMOTE);
    ck_assert_int_eq(store_truncate(f, 4 * UNIT, &fill), -EREMOTE);
    ck_assert_int_eq(store_truncate(f, UNITS * UNIT - 1, &fill), -EREMOTE);
    after = info_of(f);
    same_state(&before, &after);
    read_is(f, data, 3 * UNIT, 0);

    ck_assert_int_eq(store_write(f, data, 100, 3 * UNIT - 100, SPACE_CACHE, &fill), 0); /* its own */
    ck_assert_int_eq(store_write(f, data, UNIT, 5 * UNIT, SPACE_CACHE, &fill), 0);
    file_put(f);
}
END_TEST

START_TEST(a_file_of_which_parts_are_lent_gets_longer)
{
    struct file *f = claimed_file(1);
    uint64_t fill;
    lend_ok(f, B, 3, 4);
    ck_assert_int_eq(store_truncate(f, 20 * UNIT, &fill), 0);
    ck_assert_uint_eq(info_of(f).size, 20 * UNIT);
    ck_assert_int_eq(store_allocate(f, 0, 30 * UNIT, false), 0);
    ck_assert_uint_eq(info_of(f).size, 30 * UNIT);
    ck_assert_uint_eq(info_of(f).base_end, UNITS * UNIT);
    ck_assert_uint_eq(lent_to(f, 3), B);
    file_put(f);
}
END_TEST

/* f->lock is dropped while what was fsynced is taken off; then parts may be lent. */
static struct file *cut_file;
static atomic_bool lend_while_cut;

static void *cut_short(void *arg)
{
    uint64_t fill;
    *(int *)arg = store_truncate(cut_file, UNIT, &fill);
    return NULL;
}

int msync(void *addr, size_t len, int flags)
{
    (void)addr;
    (void)len;
    (void)flags;
    if (lend_while_cut) {
        lend_while_cut = false;
        lend_ok(cut_file, B, 0, 0); /* a unit that the truncation leaves alone */
    }
    return 0;
}

START_TEST(a_truncation_sees_what_was_lent_while_it_waited)
{
    pthread_t t;
    int err;
    cut_file = claimed_file(1);
    write_ok(cut_file, data, 2 * UNIT, 4 * UNIT);
    ck_assert_int_eq(store_sync(cut_file), 0);
    lend_while_cut = true;
    ck_assert_int_eq(pthread_create(&t, NULL, cut_short, &err), 0);
    pthread_join(t, NULL);
    ck_assert(!lend_while_cut);
    ck_assert_uint_eq(lent_to(cut_file, 0), B);
    ck_assert_int_eq(err, -EREMOTE);
    ck_assert_uint_eq(info_of(cut_file).size, UNITS * UNIT);
    read_is(cut_file, data, 2 * UNIT, 4 * UNIT);
    file_put(cut_file);
}
END_TEST

/* ---- kernel I/O ---- */

START_TEST(no_kernel_io_begins_while_a_file_is_shared)
{
    struct file *f = new_file(1, "x");
    write_ok(f, data, UNIT, 0);
    ck_assert_int_eq(store_share_begin(f), 0);
    ck_assert_int_eq(store_share_begin(f), 0);
    ck_assert(store_is_shared(f));
    ck_assert_int_eq(try_kernel_io(f, false), -ENODATA);
    ck_assert_int_eq(try_kernel_io(f, true), -ENODATA);
    store_share_end(f);
    ck_assert(store_is_shared(f));
    ck_assert_int_eq(try_kernel_io(f, false), -ENODATA);
    store_share_end(f);
    ck_assert(!store_is_shared(f));
    ck_assert_int_eq(try_kernel_io(f, false), 0);
    file_put(f);
}
END_TEST

START_TEST(a_file_stays_shared_until_all_is_back)
{
    struct file *f = new_file(1, "x");
    struct version v = version_n(0, 5);
    write_ok(f, data, UNIT, 0);
    ck_assert_int_eq(store_share_begin(f), 0);
    lend_ok(f, B, 1, 1);
    lend_ok(f, C, 2, 2);
    store_share_end(f);
    ck_assert(store_is_shared(f));
    returned_ok(f, B, &v);
    ck_assert(store_is_shared(f));
    returned_ok(f, C, &v);
    ck_assert(!store_is_shared(f));
    ck_assert(!store_is_lent(f));
    ck_assert_int_eq(try_kernel_io(f, false), 0);
    file_put(f);
}
END_TEST

START_TEST(a_file_that_the_kernel_serves_is_not_shared)
{
    struct file *f = new_file(1, "x");
    uint8_t *pfs = calloc(1, UNITS * UNIT);
    write_ok(f, data, UNIT, 0);
    unsigned life = open_pass(f, false);
    ck_assert_int_eq(store_share_begin(f), -EBUSY);
    kernel_io_close(f, life, false);
    life = open_pass(f, true);
    ck_assert_int_eq(store_share_begin(f), -EBUSY);
    kernel_io_close(f, life, true);
    ck_assert_int_eq(store_share_begin(f), -EAGAIN); /* what it stored is still to be found */
    ck_assert(!store_is_shared(f));
    while (sample() || !flush(f, pfs))
        ;
    sample();
    ck_assert_int_eq(store_share_begin(f), 0);
    store_share_end(f);
    free(pfs);
    file_put(f);
}
END_TEST

START_TEST(a_borrower_gives_bytes_of_its_own_parts_alone)
{
    struct file *f = claimed_file(1);
    uint8_t *mine = calloc(1, 2 * UNIT), *got = malloc(UNIT);
    uint64_t fill;
    put_pattern(mine, 2 * UNIT, 0, 9);
    ck_assert_int_eq(store_write_given(f, B, mine, UNIT, UNIT, SPACE_CACHE, &fill), -EREMOTE); /* nothing is lent */
    lend_ok(f, B, 1, 1);
    lend_ok(f, C, 2, 2);
    ck_assert_int_eq(store_write_given(f, C, mine, UNIT, UNIT, SPACE_CACHE, &fill), -EREMOTE);
    ck_assert_int_eq(store_write_given(f, B, mine, 2 * UNIT, UNIT, SPACE_CACHE, &fill), -EREMOTE);
    ck_assert_int_eq(store_write_given(f, B, mine, UNIT, UNIT - PAGE, SPACE_CACHE, &fill), -EREMOTE);
    ck_assert_int_eq(store_read(f, got, UNIT, UNIT), 0);
    ck_assert_int_eq(store_write_given(f, B, mine, UNIT, UNIT, SPACE_CACHE, &fill), 0);
    ck_assert_int_eq(store_write_given(f, B, mine, UNIT, UNIT, SPACE_CACHE, &fill), 0); /* its answer was lost */
    returned_ok(f, B, &base);
    ck_assert_int_eq(store_read(f, got, UNIT, UNIT), UNIT);
    ck_assert(!memcmp(got, mine, UNIT));
    ck_assert_int_eq(store_write_given(f, B, mine, UNIT, UNIT, SPACE_CACHE, &fill), -EREMOTE);
    free(mine);
    free(got);
    file_put(f);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("store_lend");
    TCase *t = add_case(s, "lent", setup, teardown, 20);
    tcase_add_test(t, only_untouched_units_are_lent);
    tcase_add_test(t, units_behind_the_end_are_lent_too);
    tcase_add_test(t, the_owner_is_told_with_how_far_it_owns);
    tcase_add_test(t, borrowers_are_those_that_have_something);
    tcase_add_test(t, nothing_is_lent_while_a_truncation_is_owed);
    tcase_add_test(t, nothing_is_lent_while_a_cut_behind_the_pfs_bytes_is_owed);
    tcase_add_test(t, nothing_is_lent_between_stop_and_go);
    tcase_add_test(t, nothing_of_a_file_without_a_name_is_lent);
    tcase_add_test(t, a_unit_is_lent_when_its_reader_has_ended);
    t = add_case(s, "forbidden", setup, teardown, 20);
    tcase_add_test(t, a_read_ends_before_a_lent_part_and_begins_in_none);
    tcase_add_test(t, a_change_of_a_lent_part_is_refused_and_nothing_is_done);
    tcase_add_test(t, a_file_of_which_parts_are_lent_gets_longer);
    tcase_add_test(t, a_borrower_gives_bytes_of_its_own_parts_alone);
    tcase_add_test(t, a_truncation_sees_what_was_lent_while_it_waited);
    tcase_add_test(t, no_kernel_io_begins_while_a_file_is_shared);
    tcase_add_test(t, a_file_stays_shared_until_all_is_back);
    tcase_add_test(t, a_file_that_the_kernel_serves_is_not_shared);
    t = add_case(s, "fills", setup_large, teardown, 20);
    tcase_add_test(t, a_fill_leaves_lent_pages_out);
    return run_suite(s);
}
