/* test_ballast.c - room on the disk that is set aside, given back, and set aside again. */
#include "store_help.h"
#include "suite.h"

#include "placement/store/ballast.h"

#define SIZE (16 * MIB)

static int dirfd;

static void setup(void)
{
    dir_setup();
    dirfd = open(test_dir, O_RDONLY | O_DIRECTORY);
    ck_assert_int_ge(dirfd, 0);
    ballast_start(dirfd);
}

static void teardown(void)
{
    ballast_stop();
    close(dirfd);
    dir_teardown();
}

/* Bytes on the disk; -1: there is none. */
static int64_t allocated(void)
{
    struct stat st;
    return fstatat(dirfd, "ballast", &st, AT_SYMLINK_NOFOLLOW) < 0 ? -1 : st.st_blocks * 512;
}

START_TEST(nothing_is_made_before_it_is_wanted)
{
    ballast_make();
    ck_assert_int_eq(allocated(), -1);
    ck_assert(!ballast_release());
    ck_assert_uint_eq(ballast_size(), 0);
    ck_assert_uint_eq(ballast_owed(), 0);
}
END_TEST

START_TEST(it_has_blocks_and_is_owed_while_it_has_not)
{
    ballast_want(SIZE);
    ck_assert_uint_eq(ballast_owed(), SIZE);
    ballast_make();
    ck_assert_int_ge(allocated(), (int64_t)SIZE);
    ck_assert_uint_eq(ballast_owed(), 0);
    ck_assert(ballast_release());
    ck_assert_int_eq(allocated(), -1);
    ck_assert_uint_eq(ballast_owed(), SIZE);
    ck_assert(!ballast_release());
    ballast_make();
    ck_assert_int_ge(allocated(), (int64_t)SIZE);
    ck_assert_uint_eq(ballast_owed(), 0);
}
END_TEST

START_TEST(its_first_size_stays)
{
    ballast_want(SIZE);
    ballast_want(2 * SIZE);
    ck_assert_uint_eq(ballast_size(), SIZE);
}
END_TEST

START_TEST(what_a_daemon_left_goes_at_start_and_its_own_at_the_end)
{
    ballast_want(SIZE);
    ballast_make();
    ballast_start(dirfd); /* as if the one before had been killed */
    ck_assert_int_eq(allocated(), -1);
    ck_assert_uint_eq(ballast_size(), 0);
    ballast_want(SIZE);
    ballast_make();
    ballast_stop();
    ck_assert_int_eq(allocated(), -1);
    ballast_start(dirfd);
}
END_TEST

START_TEST(what_the_disk_refuses_stays_owed_and_is_not_tried_at_once_again)
{
    ballast_want(SIZE);
    ck_assert_int_eq(mkdirat(dirfd, "ballast", 0700), 0); /* can not be made */
    ballast_make();
    ck_assert_uint_eq(ballast_owed(), SIZE);
    ck_assert_int_eq(unlinkat(dirfd, "ballast", AT_REMOVEDIR), 0);
    ballast_make();
    ck_assert_int_eq(allocated(), -1);
    ck_assert_uint_eq(ballast_owed(), SIZE);
}
END_TEST

START_TEST(a_link_in_its_place_is_not_followed)
{
    int fd = openat(dirfd, "other", O_WRONLY | O_CREAT, 0600);
    ck_assert_int_eq(write(fd, "x", 1), 1);
    close(fd);
    ck_assert_int_eq(symlinkat("other", dirfd, "ballast"), 0);
    ballast_want(SIZE);
    ballast_make();
    struct stat st;
    ck_assert_int_eq(fstatat(dirfd, "other", &st, 0), 0);
    ck_assert_int_eq(st.st_size, 1);
    ck_assert_uint_eq(ballast_owed(), SIZE);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("ballast");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, nothing_is_made_before_it_is_wanted);
    tcase_add_test(t, it_has_blocks_and_is_owed_while_it_has_not);
    tcase_add_test(t, its_first_size_stays);
    tcase_add_test(t, what_a_daemon_left_goes_at_start_and_its_own_at_the_end);
    tcase_add_test(t, what_the_disk_refuses_stays_owed_and_is_not_tried_at_once_again);
    tcase_add_test(t, a_link_in_its_place_is_not_followed);
    return run_case("ballast", t);
}
