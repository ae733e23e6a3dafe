/* test_fid.c - identities: stable, the same for the same file, different for another; versions;
 * what is racy. */
#include "placement/pfs/pfs_fid.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "suite.h"

static struct statx statx_like(uint64_t ino, int64_t born_s, uint32_t born_ns)
{
    struct statx s;
    memset(&s, 0, sizeof(s));
    s.stx_mask = PFS_STATX_MASK;
    s.stx_ino = ino;
    s.stx_btime.tv_sec = born_s;
    s.stx_btime.tv_nsec = born_ns;
    return s;
}

START_TEST(a_fid_is_inode_and_birth)
{
    struct statx a = statx_like(17, 1000, 5), same = statx_like(17, 1000, 5);
    struct statx other = statx_like(18, 1000, 5), reborn = statx_like(17, 1000, 6);
    same.stx_dev_minor = 77; /* never st_dev */
    same.stx_size = 12;
    ck_assert(fid_eq(fid_of(&a), fid_of(&same)));
    ck_assert(!fid_eq(fid_of(&a), fid_of(&other)));
    ck_assert(!fid_eq(fid_of(&a), fid_of(&reborn)));
    a.stx_mask &= ~STATX_BTIME; /* no birth time: what is in the field does not count */
    other = statx_like(17, 9, 9);
    other.stx_mask &= ~STATX_BTIME;
    ck_assert(fid_eq(fid_of(&a), fid_of(&other)));
}
END_TEST

/* On the wire and on disk: must never change. */
START_TEST(the_hash_is_the_agreed_one)
{
    struct statx a = statx_like(1, 2, 3);
    char text[FID_TEXT];
    fid_text(fid_of(&a), text);
    ck_assert_str_eq(text, "7b1bb1297164ed42594fb78a6ccc07a4");
}
END_TEST

START_TEST(text_and_back)
{
    struct fid f = {0x0123456789abcdefu, 0xfedcba9876543210u}, back;
    char text[FID_TEXT];
    ck_assert_str_eq(fid_text(f, text), "0123456789abcdeffedcba9876543210");
    ck_assert_int_eq(fid_parse(text, &back), 0);
    ck_assert(fid_eq(f, back));
    ck_assert_int_eq(fid_parse("0123", &back), -EINVAL);
    ck_assert_int_eq(fid_parse("0123456789abcdeffedcba987654321g", &back), -EINVAL);
    ck_assert_int_eq(fid_parse("0123456789ABCDEFfedcba9876543210", &back), -EINVAL);
    ck_assert_int_eq(fid_parse("0123456789abcdeffedcba98765432100", &back), -EINVAL);
}
END_TEST

START_TEST(a_descriptor_gives_the_same_as_its_statx)
{
    char path[] = "/tmp/eddy-fid-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    struct statx stx;
    ck_assert_int_eq(statx(AT_FDCWD, path, 0, PFS_STATX_MASK, &stx), 0);
    struct fid f;
    ck_assert_int_eq(fid_of_fd(fd, &f), 0);
    ck_assert(fid_eq(f, fid_of(&stx)));
    close(fd);
    unlink(path);
    ck_assert_int_eq(fid_of_fd(fd, &f), -EBADF);
}
END_TEST

/* A chmod, a touch and a rename of ours followed each other: from `first` to `last`. */
START_TEST(versions_between_are_the_same_data)
{
    struct version first = {.size = 10, .mtime_ns = 1, .ctime_ns = 100};
    struct version last = {.size = 10, .mtime_ns = 2, .ctime_ns = 200};
    struct version between = {.size = 10, .mtime_ns = 1, .ctime_ns = 150};
    ck_assert(version_is_same(&first, &last, &first));
    ck_assert(version_is_same(&last, &last, &first));
    ck_assert(version_is_same(&between, &last, &first));
    between.mtime_ns = 2;
    ck_assert(version_is_same(&between, &last, &first));
    between.mtime_ns = 3; /* written by somebody whose clock is late */
    ck_assert(!version_is_same(&between, &last, &first));
    between = (struct version){.size = 10, .mtime_ns = 1, .ctime_ns = 99};
    ck_assert(!version_is_same(&between, &last, &first));
    between.ctime_ns = 201;
    ck_assert(!version_is_same(&between, &last, &first));
    between = (struct version){.size = 11, .mtime_ns = 1, .ctime_ns = 150};
    ck_assert(!version_is_same(&between, &last, &first));
    last.size = 11;
    ck_assert(!version_is_same(&between, &last, &first));
}
END_TEST

START_TEST(a_young_version_is_racy)
{
    const int64_t s = 1000000000;
    struct version fine = {10, 500 * s + 1, 500 * s + 1};
    ck_assert(version_racy(&fine, 500 * s + 1));
    ck_assert(version_racy(&fine, 500 * s + 10000000));
    ck_assert(!version_racy(&fine, 500 * s + 10000001));
    ck_assert(version_racy(&fine, 400 * s));        /* from the future */
    struct version coarse = {10, 500 * s, 500 * s}; /* a PFS with whole seconds */
    ck_assert(version_racy(&coarse, 500 * s + s - 1));
    ck_assert(!version_racy(&coarse, 501 * s));
    struct version half = {10, 400 * s,
                           500 * s + 7}; /* mtime set by hand: ctime shows the granularity */
    ck_assert(!version_racy(&half, 500 * s + 20000000));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("fid");
    tcase_add_test(t, a_fid_is_inode_and_birth);
    tcase_add_test(t, the_hash_is_the_agreed_one);
    tcase_add_test(t, text_and_back);
    tcase_add_test(t, a_descriptor_gives_the_same_as_its_statx);
    tcase_add_test(t, a_young_version_is_racy);
    tcase_add_test(t, versions_between_are_the_same_data);
    return run_case("fid", t);
}
