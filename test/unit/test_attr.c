/* What stat shows: the PFS's attributes, the claimant's word, and what is remembered of both. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "fs/attr.h"
#include "fs/attr_last.h"
#include "fs/attr_look.h"
#include "fs/entry.h"
#include "fs/settings.h"
#include "pfs_env.h"
#include "placement/claims/claim.h"
#include "suite.h"

#define SECOND INT64_C(1000000000)

static void setup_store(void)
{
    env_make();
    env_open_store();
    env_open_pfs();
}

static void teardown_store(void)
{
    pfs_close();
    store_close(false);
    env_remove();
}

static struct statx a_file(void)
{
    return (struct statx){
        .stx_ino = UINT64_C(0x123456789abcdef0),
        .stx_mode = S_IFREG | 0640,
        .stx_nlink = 3,
        .stx_uid = 7,
        .stx_gid = 8,
        .stx_size = 1000,
        .stx_blocks = 8,
        .stx_blksize = 512,
        .stx_rdev_major = 4,
        .stx_rdev_minor = 5,
        .stx_atime = {.tv_sec = 11, .tv_nsec = 1},
        .stx_mtime = {.tv_sec = 22, .tv_nsec = 2},
        .stx_ctime = {.tv_sec = 33, .tv_nsec = 3},
    };
}

static struct location at_node(uint64_t size, uint64_t blocks, int64_t mtime_ns, int64_t ctime_ns)
{
    return (struct location){.where = WHERE_NODE,
                             .node = 1,
                             .size = size,
                             .blocks = blocks,
                             .mtime_ns = mtime_ns,
                             .ctime_ns = ctime_ns};
}

START_TEST(an_unclaimed_file_looks_as_on_the_pfs)
{
    struct statx stx = a_file();
    struct location loc = {.where = WHERE_PFS, .size = 77, .mtime_ns = 77};
    struct stat st;
    attr_merge(&st, &stx, &loc);
    ck_assert_uint_eq(st.st_ino, UINT64_C(0x123456789abcdef0));
    ck_assert_uint_eq(st.st_mode, S_IFREG | 0640);
    ck_assert_uint_eq(st.st_nlink, 3);
    ck_assert_uint_eq(st.st_uid, 7);
    ck_assert_uint_eq(st.st_gid, 8);
    ck_assert_uint_eq(st.st_rdev, makedev(4, 5));
    ck_assert_int_eq(st.st_size, 1000);
    ck_assert_int_eq(st.st_blocks, 8);
    ck_assert_int_eq(st.st_blksize, 4096);
    ck_assert_int_eq(st.st_atim.tv_nsec, 1);
    ck_assert_int_eq(st.st_mtim.tv_sec, 22);
    ck_assert_int_eq(st.st_ctim.tv_nsec, 3);

    struct stat again;
    attr_merge(&again, &stx, NULL);
    ck_assert_mem_eq(&st, &again, sizeof(st));
}
END_TEST

START_TEST(a_claimed_files_size_and_times_are_the_claimants)
{
    struct statx stx = a_file();
    struct location loc = at_node(5000, 16, 44 * SECOND + 4, 55 * SECOND + 5);
    struct stat st;
    attr_merge(&st, &stx, &loc);
    ck_assert_int_eq(st.st_size, 5000);
    ck_assert_int_eq(st.st_blocks, 16);
    ck_assert_int_eq(st.st_mtim.tv_sec, 44);
    ck_assert_int_eq(st.st_mtim.tv_nsec, 4);
    ck_assert_int_eq(st.st_ctim.tv_sec, 55);
    ck_assert_int_eq(st.st_ctim.tv_nsec, 5);
    ck_assert_int_eq(st.st_atim.tv_sec, 11);
    ck_assert_uint_eq(st.st_nlink, 3);
    ck_assert_uint_eq(st.st_mode, S_IFREG | 0640);
}
END_TEST

START_TEST(ctime_never_goes_back)
{
    struct statx stx = a_file();
    struct location loc =
        at_node(1, 8, 1 * SECOND, 33 * SECOND + 2); /* a chmod came after the last write */
    struct stat st;
    attr_merge(&st, &stx, &loc);
    ck_assert_int_eq(st.st_ctim.tv_sec, 33);
    ck_assert_int_eq(st.st_ctim.tv_nsec, 3);
    ck_assert_int_eq(st.st_mtim.tv_sec, 1);
}
END_TEST

/* The claimant has seen the PFS's ctime up to stands_ns: its flush has moved it. */
START_TEST(a_flush_by_the_claimant_does_not_show)
{
    struct statx stx = a_file();
    struct location loc = at_node(1000, 8, 22 * SECOND + 2, 25 * SECOND);
    struct stat st;
    loc.stands_ns = 33 * SECOND + 3;
    attr_merge(&st, &stx, &loc);
    ck_assert_int_eq(st.st_ctim.tv_sec, 25);
    loc.stands_ns = INT64_MAX; /* it flushes now */
    attr_merge(&st, &stx, &loc);
    ck_assert_int_eq(st.st_ctim.tv_sec, 25);
    loc.stands_ns = 33 * SECOND + 2; /* somebody has set an attribute since */
    attr_merge(&st, &stx, &loc);
    ck_assert_int_eq(st.st_ctim.tv_sec, 33);
}
END_TEST

static void tells(struct inode *i, const struct statx *stx, const struct location *loc,
                  int64_t ctime_s)
{
    struct stat st;
    attr_tell(i, &st, stx, loc);
    ck_assert_int_eq(st.st_ctim.tv_sec, ctime_s);
}

/* The PFS has the file as a_file: which ctime is told of it? */
START_TEST(what_was_told_of_a_version_stays_told)
{
    struct statx stx = a_file();
    struct inode i = {.type = S_IFREG, .fid = fid_of(&stx)};
    lock_init(&i.lock, RANK_INODE);
    struct location pfs = {.where = WHERE_PFS}, named = pfs,
                    word = at_node(1000, 8, 22 * SECOND + 2, 25 * SECOND);
    named.known = 1;
    named.version = version_of(&stx);
    named.told = (struct told){22 * SECOND + 2, 24 * SECOND};
    if (_i == 0) { /* nothing is known: the PFS's; and so it stays */
        tells(&i, &stx, &pfs, 33);
        tells(&i, &stx, &named, 33);
    } else if (_i == 1) { /* the home's word; and so it stays */
        tells(&i, &stx, &named, 24);
        tells(&i, &stx, &pfs, 24);
        stx.stx_ctime.tv_sec = 40; /* another version, of which the home says nothing */
        tells(&i, &stx, &named, 40);
    } else if (_i == 2) { /* the claimant's word, and a flush since */
        stx.stx_ctime.tv_sec = 20;
        tells(&i, &stx, &word, 25);
        stx.stx_ctime.tv_sec = 33;
        tells(&i, &stx, &pfs, 25);
    } else { /* ... and a chmod */
        tells(&i, &stx, &word, 33);
        stx.stx_mode = S_IFREG | 0600;
        stx.stx_ctime.tv_sec = 34;
        tells(&i, &stx, &pfs, 34);
    }
    lock_destroy(&i.lock);
}
END_TEST

START_TEST(times_before_1970_keep_their_nanoseconds)
{
    struct statx stx = a_file();
    struct location loc = at_node(1, 8, -SECOND - 1, 0);
    struct stat st;
    attr_merge(&st, &stx, &loc);
    ck_assert_int_eq(st.st_mtim.tv_sec, -2);
    ck_assert_int_eq(st.st_mtim.tv_nsec, SECOND - 1);
}
END_TEST

START_TEST(unflushed_data_is_never_without_blocks)
{
    struct statx stx = a_file();
    struct location loc = at_node(1, 0, 0, 0);
    struct stat st;
    attr_merge(&st, &stx, &loc);
    ck_assert_int_gt(st.st_blocks, 0);
    loc.where = WHERE_HERE;
    attr_merge(&st, &stx, &loc);
    ck_assert_int_gt(st.st_blocks, 0);
    loc.size = 0;
    attr_merge(&st, &stx, &loc);
    ck_assert_int_eq(st.st_blocks, 0);
    ck_assert_int_eq(st.st_size, 0);
}
END_TEST

START_TEST(a_lost_file_and_a_directory_are_the_pfss)
{
    struct statx stx = a_file();
    struct location loc = at_node(5000, 16, 44 * SECOND, 55 * SECOND);
    struct stat st;
    loc.where = WHERE_LOST;
    attr_merge(&st, &stx, &loc);
    ck_assert_int_eq(st.st_size, 1000);
    loc.where = WHERE_NODE;
    stx.stx_mode = S_IFDIR | 0755;
    attr_merge(&st, &stx, &loc);
    ck_assert_int_eq(st.st_size, 1000);
    ck_assert_int_eq(st.st_mtim.tv_sec, 22);
}
END_TEST

START_TEST(a_look_before_a_flush_elsewhere_is_overtaken)
{
    struct statx stx = a_file();
    struct location loc = {.where = WHERE_PFS};
    ck_assert(!attr_overtaken(&stx, &loc, boot_ms())); /* nobody gave it back since */
    loc.view = 7; /* a home of a new view knows nothing of what was given back to the last one after the look */
    ck_assert(attr_overtaken(&stx, &loc, boot_ms() - 1000));
    ck_assert(!attr_overtaken(&stx, &loc, boot_ms()));
    loc.known = 1;
    loc.version = version_of(&stx);
    ck_assert(!attr_overtaken(&stx, &loc, boot_ms()));
    loc.version.size++;
    loc.version.ctime_ns++;
    ck_assert(attr_overtaken(&stx, &loc, boot_ms()));
    loc.known = 2;
    ck_assert(attr_overtaken(&stx, &loc, boot_ms()));
    loc.version.ctime_ns -= 2; /* the PFS was changed by somebody else since */
    ck_assert(!attr_overtaken(&stx, &loc, boot_ms()));
    loc.known = 3; /* the home has forgotten what it was */
    ck_assert(attr_overtaken(&stx, &loc, boot_ms()));
    loc.where = WHERE_NODE;
    ck_assert(!attr_overtaken(&stx, &loc, boot_ms()));
}
END_TEST

START_TEST(what_was_told_last_is_remembered)
{
    struct inode i = {.type = S_IFDIR};
    lock_init(&i.lock, RANK_INODE);
    struct stat st, known = {.st_ino = 5, .st_mode = S_IFDIR | 0700, .st_size = 9};
    ck_assert(!attr_last(&i, &st));
    attr_remember(&i, &known);
    ck_assert(attr_last(&i, &st));
    ck_assert_mem_eq(&st, &known, sizeof(st));
    lock_destroy(&i.lock);
}
END_TEST

START_TEST(an_entry_that_is_not_valid_is_asked_for_again)
{
    struct inode i = {.nodeid = UINT64_C(7) << 32 | 3};
    struct stat st = {.st_ino = 5, .st_size = 9};
    struct fuse_entry_param e;
    settings.attr_timeout = 1.5;
    struct belief b = belief_fixed(), none = belief_none();
    entry_fill(&e, &i, &st, &b);
    ck_assert_uint_eq(e.ino, i.nodeid);
    ck_assert(e.attr_timeout == 1.5 && e.entry_timeout == 1.5);
    ck_assert_uint_eq(e.attr.st_ino, 5);
    entry_fill(&e, &i, &st, &none);
    ck_assert(e.attr_timeout == 0 && e.entry_timeout == 1.5);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("merge");
    tcase_add_test(t, an_unclaimed_file_looks_as_on_the_pfs);
    tcase_add_test(t, a_claimed_files_size_and_times_are_the_claimants);
    tcase_add_test(t, ctime_never_goes_back);
    tcase_add_test(t, times_before_1970_keep_their_nanoseconds);
    tcase_add_test(t, unflushed_data_is_never_without_blocks);
    tcase_add_test(t, a_lost_file_and_a_directory_are_the_pfss);
    tcase_add_test(t, a_look_before_a_flush_elsewhere_is_overtaken);
    tcase_add_test(t, what_was_told_last_is_remembered);
    tcase_add_test(t, an_entry_that_is_not_valid_is_asked_for_again);
    tcase_add_test(t, a_flush_by_the_claimant_does_not_show);
    Suite *s = suite_create("attr");
    suite_add_tcase(s, t);
    t = add_case(s, "told", setup_store, teardown_store, 60);
    tcase_add_loop_test(t, what_was_told_of_a_version_stays_told, 0, 4);
    return run_suite(s);
}
