/* test_page_cache.c - what a drop of the kernel's pages waits for, and which requests look for their bytes
 * again.  There is no mount: the kernel drops nothing, and never waits.
 */
#include "suite.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "fs/inode.h"
#include "fs/page_cache.h"
#include "placement/store/store_open.h"

static struct inode *i;
static _Atomic bool dropped;

static void setup(void)
{
    i = xcalloc(1, sizeof(*i));
    lock_init(&i->lock, RANK_INODE);
    i->nodeid = 7;
    dropped = false;
}

static void teardown(void)
{
    ck_assert_ptr_null(i->page_uses);
    lock_destroy(&i->lock);
    free(i);
}

static void *drop_first(void *arg)
{
    (void)arg;
    page_cache_drop(i, 0, PAGE);
    dropped = true;
    return NULL;
}

static pthread_t drop_beside(void)
{
    pthread_t t;
    ck_assert_int_eq(pthread_create(&t, NULL, drop_first, NULL), 0);
    return t;
}

START_TEST(a_read_under_way_looks_again)
{
    struct page_use u;
    page_use_begin(i, &u, 100, 10, false);
    page_cache_drop(i, 0, PAGE); /* waits for nothing */
    ck_assert(!page_use_answer(i, &u, false, false));
    ck_assert(page_use_answer(i, &u, false, false));
    page_use_end(i, &u);
}
END_TEST

START_TEST(a_read_that_was_made_again_too_often_is_answered)
{
    struct page_use u;
    page_use_begin(i, &u, 100, 10, false);
    page_cache_drop(i, 0, 0);
    ck_assert(page_use_answer(i, &u, true, false));
    page_use_end(i, &u);
}
END_TEST

START_TEST(reads_of_other_pages_are_left_alone)
{
    struct page_use before, after;
    page_use_begin(i, &before, 0, PAGE, false);
    page_use_begin(i, &after, 2 * PAGE, PAGE, false);
    page_cache_drop(i, PAGE + 1, 1);
    ck_assert(page_use_answer(i, &before, false, false));
    ck_assert(page_use_answer(i, &after, false, false));
    page_use_end(i, &before);
    page_use_end(i, &after);
}
END_TEST

START_TEST(a_drop_waits_for_an_answer_that_is_being_given)
{
    struct page_use u;
    page_use_begin(i, &u, 100, 10, _i);
    ck_assert(page_use_answer(i, &u, false, false));
    pthread_t t = drop_beside();
    usleep(50000);
    ck_assert(!dropped);
    page_use_end(i, &u);
    pthread_join(t, NULL);
    ck_assert(dropped);
}
END_TEST

/* It may wait for the change that drops its pages. */
START_TEST(a_drop_does_not_wait_for_a_write_under_way)
{
    struct page_use u;
    page_use_begin(i, &u, 100, 10, true);
    page_cache_drop(i, 0, PAGE);
    ck_assert(u.stale);
    ck_assert(page_use_answer(i, &u, false, false));
    page_use_end(i, &u);
}
END_TEST

/* It may wait for the change whose size this is. */
START_TEST(a_size_does_not_wait_for_a_request_that_has_its_page)
{
    struct page_use u;
    page_use_begin(i, &u, 100, 10, _i);
    page_cache_grow_beside(i, PAGE, 'x');
    ck_assert_uint_eq(i->told_size, 0);
    ck_assert(page_use_answer(i, &u, false, false));
    page_use_end(i, &u);
    ck_assert_uint_eq(i->told_size, PAGE);
}
END_TEST

START_TEST(a_size_is_told_at_once_if_no_request_has_its_page)
{
    struct page_use u;
    page_use_begin(i, &u, 100, 10, _i);
    page_cache_grow_beside(i, PAGE + 1, 'x');
    ck_assert_uint_eq(i->told_size, PAGE + 1);
    page_use_end(i, &u);
}
END_TEST

START_TEST(a_drop_waits_for_requests_that_never_wait)
{
    page_quick_begin();
    pthread_t t = drop_beside();
    usleep(50000);
    ck_assert(!dropped);
    page_quick_end();
    pthread_join(t, NULL);
    ck_assert(dropped);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("drops");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_read_under_way_looks_again);
    tcase_add_test(t, a_read_that_was_made_again_too_often_is_answered);
    tcase_add_test(t, reads_of_other_pages_are_left_alone);
    tcase_add_loop_test(t, a_drop_waits_for_an_answer_that_is_being_given, 0, 2);
    tcase_add_test(t, a_drop_does_not_wait_for_a_write_under_way);
    tcase_add_loop_test(t, a_size_does_not_wait_for_a_request_that_has_its_page, 0, 2);
    tcase_add_loop_test(t, a_size_is_told_at_once_if_no_request_has_its_page, 0, 2);
    tcase_add_test(t, a_drop_waits_for_requests_that_never_wait);
    return run_case("page cache", t);
}
