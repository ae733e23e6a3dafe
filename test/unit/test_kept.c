/* The kernel's pages stay at an open if, and only if, they surely hold what it is to see. */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>

#include "fs/handle.h"
#include "fs/kept.h"
#include "fs/io_mode.h"
#include "suite.h"

static const struct data_tag old = {.node = 1, .counter = 7}, new = {.node = 1, .counter = 8};

static struct inode *i;

static void setup(void)
{
    i = xcalloc(1, sizeof(*i));
    lock_init(&i->lock, RANK_INODE);
}

static void teardown(void)
{
    lock_destroy(&i->lock);
    free(i);
}

/* A cached open of these bytes: do the pages stay? */
static bool opened(const struct data_tag *tag, unsigned *turn)
{
    lock_take(&i->lock);
    ck_assert_int_eq(mode_enter(i, O_RDONLY, true, KERNEL_NOTHING, false), IO_CACHED);
    bool keep = kept_open(i, tag, turn);
    lock_drop(&i->lock);
    return keep;
}

static void reads(unsigned turn)
{
    lock_take(&i->lock);
    kept_asked(i, turn);
    lock_drop(&i->lock);
}

static void closed(void)
{
    lock_take(&i->lock);
    mode_leave(i, O_RDONLY, IO_CACHED);
    lock_drop(&i->lock);
}

static void known(const struct data_tag *tag)
{
    unsigned turn;
    opened(tag, &turn);
    reads(turn);
    closed();
}

START_TEST(what_was_read_stays_at_the_next_open)
{
    unsigned turn;
    ck_assert(!opened(&old, &turn));
    reads(turn);
    ck_assert(opened(&old, &turn)); /* beside it */
    closed();
    closed();
    ck_assert(opened(&old, &turn)); /* and after it */
}
END_TEST

START_TEST(other_bytes_make_the_kernel_drop_what_it_has)
{
    unsigned turn;
    known(&old);
    ck_assert(!opened(&new, &turn));
    reads(turn);
    closed();
    ck_assert(opened(&new, &turn));
    closed();
    ck_assert(!opened(&old, &turn));
}
END_TEST

/* The first one's answer may still be on its way: the pages are the old ones until it arrives. */
START_TEST(a_second_open_keeps_nothing_that_the_first_is_about_to_drop)
{
    unsigned first, second;
    known(&old);
    ck_assert(!opened(&new, &first));
    ck_assert(!opened(&new, &second));
    reads(second);
    ck_assert(opened(&new, &first));
}
END_TEST

START_TEST(a_late_read_by_an_open_of_older_bytes_makes_nothing_known)
{
    unsigned first, second;
    opened(&old, &first);
    ck_assert(!opened(&new, &second));
    reads(first);
    ck_assert(!opened(&old, &first));
    ck_assert(!opened(&new, &second));
}
END_TEST

START_TEST(beside_opens_of_other_bytes_nothing_is_known_until_all_are_closed)
{
    unsigned turn;
    known(&old);
    ck_assert(opened(&old, &turn)); /* it goes on reading, and brings what it may */
    ck_assert(!opened(&new, &turn));
    reads(turn);
    ck_assert(!opened(&new, &turn));
    reads(turn);
    closed();
    closed();
    ck_assert(!opened(&new, &turn));
    closed();
    closed();
    ck_assert(!opened(&new, &turn));
    reads(turn);
    ck_assert(opened(&new, &turn));
}
END_TEST

START_TEST(what_the_kernel_served_by_itself_is_not_known)
{
    unsigned turn;
    known(&old);
    lock_take(&i->lock);
    kept_lose(i);
    lock_drop(&i->lock);
    ck_assert(!opened(&old, &turn));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("kept");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, what_was_read_stays_at_the_next_open);
    tcase_add_test(t, other_bytes_make_the_kernel_drop_what_it_has);
    tcase_add_test(t, a_second_open_keeps_nothing_that_the_first_is_about_to_drop);
    tcase_add_test(t, a_late_read_by_an_open_of_older_bytes_makes_nothing_known);
    tcase_add_test(t, beside_opens_of_other_bytes_nothing_is_known_until_all_are_closed);
    tcase_add_test(t, what_the_kernel_served_by_itself_is_not_known);
    return run_case("kept", t);
}
