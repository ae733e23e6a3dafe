/* test_flush_lent.c - the claimant flushes a file while a borrower writes its parts of the PFS file.  pwrite and
 * ftruncate are this program's own. */
#include "flush_env.h"

#include "placement/store/store_lend.h"

#include <stdatomic.h>
#include <sys/syscall.h>

#define BORROWER UINT64_C(0xb0b)
#define FAR      (9 * LOAN_UNIT + 123)

static struct file *f;
static void (*meanwhile)(void); /* once, in the middle of the next run */
static atomic_uint truncations;

static void run_meanwhile(void)
{
    void (*fn)(void) = meanwhile;
    meanwhile = NULL;
    if (fn)
        fn();
}

ssize_t pwrite(int fd, const void *buf, size_t len, off_t off)
{
    run_meanwhile();
    return syscall(SYS_pwrite64, fd, buf, len, off);
}

int ftruncate(int fd, off_t len)
{
    truncations++;
    return (int)syscall(SYS_ftruncate, fd, len);
}

static void before_each(void)
{
    setup();
    start(NO_LULL);
    fill_page(3);
    f = env_create("f", 0644);
    env_write(f, page, 4096, 0);
    truncations = 0;
}

static void after_each(void)
{
    shut(f);
    teardown();
}

static void lend_far(void)
{
    ck_assert_int_eq(store_lend(f, (struct lend_node){BORROWER, 1}, FAR / LOAN_UNIT, FAR / LOAN_UNIT), 0);
}

/* The borrower's own flush. */
static void borrower_flushes(void)
{
    int fd = open(env_path("f"), O_WRONLY);
    ck_assert_int_eq(syscall(SYS_pwrite64, fd, "far", 3, FAR), 3);
    close(fd);
}

static void borrower_returns(void)
{
    struct stat st;
    ck_assert_int_eq(stat(env_path("f"), &st), 0);
    struct lent_back back = {.looks = store_pfs_looks(f), .size = FAR + 3, .mtime_ns = INT64_MIN, .began = LENT_ANY};
    back.v = (struct version){(uint64_t)st.st_size, st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec,
                              st.st_ctim.tv_sec * INT64_C(1000000000) + st.st_ctim.tv_nsec};
    uint64_t epoch;
    ck_assert(store_lent_returned(f, BORROWER, &back, &epoch));
}

static void far_is_there(void)
{
    char *want = calloc(1, FAR + 3);
    memcpy(want, page, 4096);
    memcpy(want + FAR, "far", 3);
    env_expect("f", want, FAR + 3);
    free(want);
}

START_TEST(nothing_is_cut_off_while_parts_are_lent)
{
    struct file_info info;
    lend_far();
    meanwhile = borrower_flushes;
    ck_assert_int_eq(flush_file(f), 0);
    far_is_there();
    ck_assert(!dirty(f));
    store_info(f, &info);
    ck_assert_uint_eq(info.size, FAR + 3);
    ck_assert(info.claimed);
    borrower_returns();
    ck_assert_int_eq(flush_file(f), 0);
    far_is_there();
}
END_TEST

/* A truncation to this size would cut off what the borrower may flush at the same moment behind it. */
START_TEST(the_size_that_a_borrower_has_told_is_not_set_by_the_claimant)
{
    lend_far();
    ck_assert(store_lent_is(f, store_lend_epoch(f), FAR, INT64_MIN));
    ck_assert_int_eq(flush_file(f), 0);
    ck_assert_uint_eq(truncations, 0);
    borrower_flushes();
    borrower_returns();
    ck_assert_int_eq(flush_file(f), 0);
    far_is_there();
}
END_TEST

static void lend_and_return(void)
{
    lend_far();
    borrower_flushes();
    borrower_returns();
}

START_TEST(nothing_is_cut_off_that_came_back_during_the_run)
{
    meanwhile = lend_and_return;
    ck_assert_int_eq(flush_file(f), 0);
    ck_assert_ptr_null(meanwhile);
    far_is_there();
    ck_assert_int_eq(flush_file(f), 0);
    ck_assert(!dirty(f));
    far_is_there();
}
END_TEST

START_TEST(what_grew_here_meanwhile_is_set_when_all_is_back)
{
    struct stat st;
    lend_far();
    env_truncate(f, 20 * LOAN_UNIT);
    ck_assert_int_eq(flush_file(f), 0);
    borrower_flushes();
    borrower_returns();
    ck_assert_int_eq(flush_file(f), 0);
    ck_assert_int_eq(stat(env_path("f"), &st), 0);
    ck_assert_int_eq(st.st_size, 20 * LOAN_UNIT);
    ck_assert(!dirty(f));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("flush_lent");
    TCase *t = add_case(s, "lent", before_each, after_each, 30);
    tcase_add_test(t, nothing_is_cut_off_while_parts_are_lent);
    tcase_add_test(t, the_size_that_a_borrower_has_told_is_not_set_by_the_claimant);
    tcase_add_test(t, nothing_is_cut_off_that_came_back_during_the_run);
    tcase_add_test(t, what_grew_here_meanwhile_is_set_when_all_is_back);
    return run_suite(s);
}
