/* test_belief.c - what this mount is told of a change at another node reaches each inode of the file that may be open.
 * There is no mount: the kernel hears nothing.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/attr_last.h"
#include "fs/belief.h"
#include "fs/handle.h"
#include "fs/io_mode.h"
#include "fs/page_walk.h"
#include "placement/pfs/pfs.h"
#include "placement/pfs/pfs_fid.h"
#include "placement/pfs/pfs_node.h"
#include "store_help.h"
#include "suite.h"

static char dir[] = "/tmp/eddy-test-belief-XXXXXX";
static const struct statx seen = {.stx_ino = 10, .stx_mode = S_IFREG, .stx_nlink = 1};
static const struct told_change grown = {.what = TOLD_BYTES, .off = 5, .len = 5, .size = 10, .ends = true},
                                cut = {.what = TOLD_CUT, .size = 4, .ends = true};

static void start(void)
{
    char err[256];
    struct statx root = {.stx_ino = 1, .stx_mode = S_IFDIR};
    dir_setup();
    open_store(MIB, 64 * KIB);
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(pfs_open(dir, ".hidden", 16, err, sizeof(err)), 0);
    inode_start(pfs_root(), &root);
    walk_start();
}

static void stop(void)
{
    walk_stop();
    inode_stop();
    pfs_close();
    rmdir(dir);
    store_close(false);
    dir_teardown();
}

/* Open by the kernel with these flags.  Referenced. */
static struct inode *opened(int flags)
{
    struct inode *i = inode_found(pfs_child(pfs_root(), "a"), fid_of(&seen), seen.stx_mode);
    lock_take(&i->lock);
    mode_enter(i, flags, true, KERNEL_NOTHING, false);
    lock_drop(&i->lock);
    return i;
}

START_TEST(who_appends_is_told_the_size)
{
    struct inode *i = opened(O_WRONLY | O_APPEND);
    ck_assert_uint_eq(belief_changed(i->fid, &grown), LOOKER_APPENDS);
    ck_assert_uint_eq(i->told_size, 10);
    belief_changed(i->fid, &cut);
    ck_assert_uint_eq(i->told_size, 4);
    inode_put(i);
}
END_TEST

START_TEST(others_ask_for_the_size_themselves)
{
    struct inode *i = opened(O_RDWR);
    ck_assert_uint_eq(belief_changed(i->fid, &grown), LOOKER_CACHED);
    ck_assert_uint_eq(i->told_size, 0);
    inode_put(i);
}
END_TEST

START_TEST(a_file_without_a_name_is_told_like_any_other)
{
    struct inode *gone = opened(O_WRONLY | O_APPEND);
    inode_gone(gone);
    struct inode *retired = opened(O_WRONLY | O_APPEND);
    inode_retire(retired);
    struct inode *i = opened(O_RDONLY);
    ck_assert_uint_eq(belief_changed(i->fid, &grown), LOOKER_APPENDS | LOOKER_CACHED);
    ck_assert_uint_eq(gone->told_size, 10);
    ck_assert_uint_eq(retired->told_size, 10);
    ck_assert(gone->others && retired->others && i->others);
    inode_put(gone);
    inode_put(retired);
    inode_put(i);
}
END_TEST

/* The kernel may drop any answer but the one with which it makes its inode. */
START_TEST(a_size_is_raised_before_an_answer_that_may_be_dropped)
{
    struct inode *i = opened(O_RDONLY);
    struct belief there = {.told = true, .where = WHERE_NODE}, own = {.told = true, .where = WHERE_HERE};
    inode_give(i, 5);
    ck_assert(!belief_must_grow(i, &there, 5));
    ck_assert(belief_must_grow(i, &there, 6));
    ck_assert(!belief_must_grow(i, &own, 6)); /* it has written it itself */
    i->others = true;
    ck_assert(belief_must_grow(i, &own, 6));
    inode_give(i, 6); /* one that it has already */
    ck_assert(belief_must_grow(i, &there, 6));
    i->given = 0;
    inode_put(i);
}
END_TEST

START_TEST(what_is_answered_may_be_the_kernels_size)
{
    struct inode *i = opened(O_RDONLY);
    struct belief there = {.told = true, .where = WHERE_NODE}, own = {.told = true, .where = WHERE_HERE};
    inode_give(i, 5);
    belief_begin(&there, i, 7, 0);
    ck_assert_uint_eq(i->told_size, 5); /* or not */
    belief_begin(&there, i, 3, 0);
    ck_assert_uint_eq(i->told_size, 3);
    belief_begin(&own, i, 9, 0);
    ck_assert_uint_eq(i->told_size, 9);
    i->given = 0;
    inode_put(i);
}
END_TEST

/* While the PFS hangs, what was last known is the answer; but not if another node has changed it since, whenever it is remembered. */
START_TEST(what_was_known_does_not_stand_after_another_node_changed_it)
{
    struct inode *i = opened(O_WRONLY);
    struct stat st = {.st_mode = S_IFREG, .st_size = 10, .st_nlink = 1}, out;
    ck_assert(!attr_stands(i, &out));
    attr_remember_look(i, &st, boot_ms());
    ck_assert(attr_stands(i, &out));
    ck_assert_int_eq(out.st_size, 10);
    uint64_t before = boot_ms();
    poll(NULL, 0, 2);
    belief_changed(i->fid, &cut);
    ck_assert(!attr_stands(i, &out));
    ck_assert(attr_last(i, &out)); /* for what has no better answer */
    poll(NULL, 0, 2);
    attr_remember_look(i, &st, before); /* it began before the change */
    ck_assert(!attr_stands(i, &out));
    poll(NULL, 0, 2);
    st.st_size = 4;
    attr_remember_look(i, &st, boot_ms());
    ck_assert(attr_stands(i, &out));
    ck_assert_int_eq(out.st_size, 4);
    belief_break(i->fid);
    ck_assert(!attr_stands(i, &out));
    inode_put(i);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("belief");
    tcase_add_checked_fixture(t, start, stop);
    tcase_add_test(t, who_appends_is_told_the_size);
    tcase_add_test(t, what_was_known_does_not_stand_after_another_node_changed_it);
    tcase_add_test(t, others_ask_for_the_size_themselves);
    tcase_add_test(t, a_file_without_a_name_is_told_like_any_other);
    tcase_add_test(t, a_size_is_raised_before_an_answer_that_may_be_dropped);
    tcase_add_test(t, what_is_answered_may_be_the_kernels_size);
    return run_case("belief", t);
}
