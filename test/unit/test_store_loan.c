/* test_store_loan.c - the store's file of what a node has borrowed. */
#include "placement/store/store_loan.h"

#include "lend_help.h"

static struct file *loan_file(uint64_t base_end)
{
    struct file *f;
    ck_assert_int_eq(file_get(fid_of_loan(fid_n(1)), "x", &f), 0);
    ck_assert_int_eq(store_loan_begin(f, 0xa, 77, 78, base_end, true), 0);
    return f;
}

static int fill_loan(struct file *f, uint64_t off, size_t len)
{
    return store_loan_fill(f, info_of(f).base.mtime_ns, off, data + off, len);
}

static void is_loan_of(struct file *f, uint64_t lender, uint64_t inc, uint64_t number)
{
    uint64_t i, n;
    ck_assert_uint_eq(store_loan_of(f, &i, &n), lender);
    ck_assert_uint_eq(i, inc);
    ck_assert_uint_eq(n, number);
}

START_TEST(a_loan_says_whose_it_is_to_the_next_daemon_too)
{
    struct file *f = loan_file(5 * UNIT);
    is_loan_of(f, 0xa, 77, 78);
    ck_assert(!info_of(f).dirty && !info_of(f).claimed);
    ck_assert_uint_eq(info_of(f).size, 5 * UNIT);
    write_ok(f, data, UNIT, UNIT);
    f = reopen(f, UNIT);
    is_loan_of(f, 0xa, 77, 78);
    ck_assert(info_of(f).dirty);
    ck_assert_uint_eq(info_of(f).base_end, 5 * UNIT);
    read_is(f, data, UNIT, UNIT);
    file_put(f);
}
END_TEST

START_TEST(a_file_is_no_loan)
{
    struct file *f = claimed_file(1);
    uint64_t inc, number;
    ck_assert_uint_eq(store_loan_of(f, &inc, &number), 0);
    ck_assert(!fid_is_loan(f->fid));
    ck_assert(fid_eq(fid_real(fid_of_loan(f->fid)), f->fid));
    file_put(f);
}
END_TEST

START_TEST(the_end_of_the_pfs_bytes_only_grows)
{
    struct file *f = loan_file(2 * UNIT);
    store_loan_begin(f, 0xa, 77, 78, UNIT, false);
    ck_assert_uint_eq(info_of(f).base_end, 2 * UNIT);
    write_ok(f, data, 10, 7 * UNIT);
    store_loan_begin(f, 0xa, 77, 78, 4 * UNIT, false);
    ck_assert_uint_eq(info_of(f).base_end, 4 * UNIT);
    ck_assert_uint_eq(info_of(f).size, 7 * UNIT + 10);
    store_loan_begin(f, 0xa, 77, 78, 9 * UNIT, false);
    ck_assert_uint_eq(info_of(f).size, 9 * UNIT);
    read_is(f, data, 10, 7 * UNIT);
    file_put(f);
}
END_TEST

START_TEST(a_page_of_a_loan_is_filled_once)
{
    struct file *f = loan_file(UNIT);
    uint64_t fill;
    ck_assert_int_eq(store_write(f, "x", 1, 3, SPACE_CACHE, &fill), -ENODATA);
    ck_assert_uint_eq(fill, 0);
    ck_assert_int_eq(fill_loan(f, 0, PAGE), 0);
    ck_assert(!info_of(f).dirty);
    read_is(f, data, PAGE, 0);
    write_ok(f, "x", 1, 3);
    ck_assert_int_eq(fill_loan(f, 0, PAGE), 0); /* late: the page is here */
    uint8_t page[PAGE];
    memcpy(page, data, PAGE);
    page[3] = 'x';
    read_is(f, page, PAGE, 0);
    file_put(f);
}
END_TEST

START_TEST(behind_the_pfs_bytes_a_page_of_a_loan_is_zeros)
{
    struct file *f = loan_file(PAGE + 100);
    uint8_t page[PAGE] = {0};
    ck_assert_int_eq(fill_loan(f, PAGE, 60), 0); /* the PFS had less */
    write_ok(f, "x", 1, 3 * PAGE);
    memcpy(page, data + PAGE, 60);
    read_is(f, page, PAGE, PAGE);
    ck_assert_uint_eq(info_of(f).size, 3 * PAGE + 1);
    file_put(f);
}
END_TEST

static bool flush_loan(struct file *f)
{
    uint64_t change = info_of(f).change;
    struct snapshot *s;
    if (!store_snapshot(f, 0, 64 * MIB, &s))
        store_snapshot_done(s, true);
    return store_loan_flushed(f, change, NULL);
}

/* Bytes that were read from the PFS before a write, its flush and its eviction. */
START_TEST(a_late_fill_brings_no_old_bytes_back)
{
    struct file *f = loan_file(UNIT);
    int64_t before = info_of(f).base.mtime_ns;
    write_ok(f, data, UNIT, 0);
    ck_assert(flush_loan(f));
    ck_assert_int_eq(store_loan_fill(f, before, 0, data, PAGE), -ESTALE);
    before = info_of(f).base.mtime_ns;
    store_loan_begin(f, 0xa, 77, 78, 2 * UNIT, false); /* is no flush */
    ck_assert_int_eq(store_loan_fill(f, before, UNIT, data, PAGE), 0);
    file_put(f);
}
END_TEST

/* Other nodes write other parts of the PFS file; one of these may be lent to this node later. */
START_TEST(a_loan_is_never_whole)
{
    struct file *f = loan_file(0);
    uint64_t fill;
    write_ok(f, data, PAGE, 0);
    ck_assert(flush_loan(f));
    ck_assert(!f->rec->whole);
    store_loan_begin(f, 0xa, 77, 78, 3 * UNIT, false);
    ck_assert_uint_eq(here(f, UNIT, UNIT), 0);
    ck_assert_int_eq(store_write(f, "x", 1, UNIT + 5, SPACE_CACHE, &fill), -ENODATA);
    file_put(f);
}
END_TEST

/* It is still referenced, by the flusher, when the next one begins. */
START_TEST(a_loan_that_was_returned_can_begin_again)
{
    struct file *f = loan_file(UNIT), *again;
    write_ok(f, data, UNIT, UNIT);
    store_set_deleted(f);
    ck_assert_int_eq(file_get(f->fid, NULL, &again), 0);
    ck_assert_ptr_eq(again, f);
    ck_assert_int_eq(store_loan_begin(again, 0xa, 77, 79, PAGE, true), 0);
    ck_assert(!info_of(f).deleted);
    ck_assert_uint_eq(info_of(f).size, PAGE);
    write_ok(f, data, PAGE, 3 * PAGE);
    ck_assert(info_of(f).dirty);
    ck_assert(flush_loan(f));
    file_put(again);
    file_put(f);
}
END_TEST

/* The file's own time is newer than what the loan says of it, until the next write. */
START_TEST(a_time_that_was_set_is_the_last_for_the_next_daemon_too)
{
    struct file *f = loan_file(UNIT);
    ck_assert(info_of(f).mtime_set); /* nothing was written */
    write_ok(f, data, PAGE, 0);
    ck_assert(!info_of(f).mtime_set);
    store_loan_timed(f);
    f = reopen(f, UNIT);
    ck_assert(info_of(f).mtime_set);
    ck_assert(flush_loan(f));
    ck_assert(info_of(f).mtime_set);
    write_ok(f, data, PAGE, PAGE);
    ck_assert(!info_of(f).mtime_set);
    file_put(f);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("store_loan");
    TCase *t = add_case(s, "loan", setup, teardown, 20);
    tcase_add_test(t, a_loan_says_whose_it_is_to_the_next_daemon_too);
    tcase_add_test(t, a_file_is_no_loan);
    tcase_add_test(t, the_end_of_the_pfs_bytes_only_grows);
    tcase_add_test(t, a_page_of_a_loan_is_filled_once);
    tcase_add_test(t, behind_the_pfs_bytes_a_page_of_a_loan_is_zeros);
    tcase_add_test(t, a_late_fill_brings_no_old_bytes_back);
    tcase_add_test(t, a_loan_is_never_whole);
    tcase_add_test(t, a_loan_that_was_returned_can_begin_again);
    tcase_add_test(t, a_time_that_was_set_is_the_last_for_the_next_daemon_too);
    return run_suite(s);
}
