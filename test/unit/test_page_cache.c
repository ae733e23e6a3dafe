/* test_page_cache.c - what a drop of the kernel's pages waits for, and which requests look for their bytes
 * again.  The kernel is this program: it says which pages it was to drop, and waits where a test wants it.
 */
#include "suite.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/inode.h"
#include "fs/notify.h"
#include "fs/page_cache.h"
#include "fs/page_walk.h"
#include "placement/pfs/pfs.h"
#include "placement/pfs/pfs_node.h"
#include "placement/store/store_open.h"

static struct inode *i;
static _Atomic bool dropped;

/* ---- the kernel ---- */

#define CALLS 64

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t held;    /* the page that a request of its own holds, or -1: it waits there */
    unsigned waits;  /* calls that wait there now */
    struct span done[CALLS];
    unsigned n;
    uint64_t size;
} kernel = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* Lock held. */
static void wait_if_held(int64_t off, int64_t len)
{
    kernel.waits++;
    pthread_cond_broadcast(&kernel.changed);
    while (kernel.held >= off && (!len || kernel.held < off + len))
        pthread_cond_wait(&kernel.changed, &kernel.lock);
    kernel.waits--;
}

int notify_pages_now(uint64_t nodeid, int64_t off, int64_t len)
{
    pthread_mutex_lock(&kernel.lock);
    ck_assert_uint_eq(nodeid, 7);
    wait_if_held(off, len);
    ck_assert_uint_lt(kernel.n, CALLS);
    kernel.done[kernel.n++] = (struct span){(uint64_t)off, len ? (uint64_t)(off + len) : UINT64_MAX};
    pthread_cond_broadcast(&kernel.changed);
    pthread_mutex_unlock(&kernel.lock);
    return 0;
}

void notify_byte_now(uint64_t nodeid, uint64_t off, char byte)
{
    (void)byte;
    pthread_mutex_lock(&kernel.lock);
    ck_assert_uint_eq(nodeid, 7);
    kernel.size = off + 1;
    wait_if_held((int64_t)off / PAGE * PAGE, PAGE);
    pthread_mutex_unlock(&kernel.lock);
}

int notify_attr_now(uint64_t nodeid)
{
    (void)nodeid;
    return 0;
}

void notify_entry(uint64_t parent, const char *name)
{
    (void)parent;
    (void)name;
}

static void hold(int64_t page)
{
    pthread_mutex_lock(&kernel.lock);
    kernel.held = page;
    pthread_cond_broadcast(&kernel.changed);
    pthread_mutex_unlock(&kernel.lock);
}

static void wait_until_it_waits(void)
{
    pthread_mutex_lock(&kernel.lock);
    while (!kernel.waits)
        pthread_cond_wait(&kernel.changed, &kernel.lock);
    pthread_mutex_unlock(&kernel.lock);
}

/* All of [off, end) was dropped, by one call. */
static bool was_dropped(uint64_t off, uint64_t end)
{
    bool was = false;
    pthread_mutex_lock(&kernel.lock);
    for (unsigned n = 0; n < kernel.n; n++)
        was |= kernel.done[n].off <= off && kernel.done[n].end >= end;
    pthread_mutex_unlock(&kernel.lock);
    return was;
}

static char dir[] = "/tmp/eddy-test-pages-XXXXXX";

static void setup(void)
{
    char err[256];
    struct statx root = {.stx_ino = 1, .stx_mode = S_IFDIR};
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(pfs_open(dir, ".hidden", 16, err, sizeof(err)), 0);
    inode_start(pfs_root(), &root);
    i = xcalloc(1, sizeof(*i));
    lock_init(&i->lock, RANK_INODE);
    i->nodeid = 7;
    i->refs = 1;
    i->type = S_IFREG;
    i->first_end = UINT64_MAX; /* as inode_give */
    i->mode.cached = 1;
    dropped = false;
    kernel.held = -1;
    kernel.n = 0;
    kernel.size = 0;
    walk_start();
}

static void teardown(void)
{
    hold(-1);
    walk_stop(); /* waits until all are made */
    ck_assert_ptr_null(i->page_uses);
    ck_assert_ptr_null(i->walks);
    lock_destroy(&i->lock);
    free(i);
    inode_stop();
    pfs_close();
    rmdir(dir);
}

/* The request ends, and what the kernel is to be told then has been told. */
static void end(struct page_use *u)
{
    bool over = false;
    page_use_end(i, u);
    while (!over) {
        lock_take(&i->lock);
        over = !i->walks;
        lock_drop(&i->lock);
        sched_yield();
    }
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
    page_use_begin(i, &u, 100, 10, PAGE_READ);
    page_cache_drop(i, 0, PAGE); /* waits for nothing */
    ck_assert(!page_use_answer(i, &u, 8, false));
    ck_assert(page_use_answer(i, &u, 8, false));
    end(&u);
}
END_TEST

START_TEST(a_read_that_was_made_again_too_often_is_answered)
{
    struct page_use u;
    page_use_begin(i, &u, 100, 10, PAGE_READ);
    page_cache_drop(i, 0, 0);
    ck_assert(page_use_answer(i, &u, 0, false));
    end(&u);
}
END_TEST

START_TEST(reads_of_other_pages_are_left_alone)
{
    struct page_use before, after;
    page_use_begin(i, &before, 0, PAGE, PAGE_READ);
    page_use_begin(i, &after, 2 * PAGE, PAGE, PAGE_READ);
    page_cache_drop(i, PAGE + 1, 1);
    ck_assert(page_use_answer(i, &before, 8, false));
    ck_assert(page_use_answer(i, &after, 8, false));
    end(&before);
    end(&after);
}
END_TEST

START_TEST(a_drop_waits_for_an_answer_that_is_being_given)
{
    struct page_use u;
    page_use_begin(i, &u, 100, 10, _i ? PAGE_WRITE : PAGE_READ);
    ck_assert(page_use_answer(i, &u, 8, false));
    pthread_t t = drop_beside();
    usleep(50000);
    ck_assert(!dropped);
    end(&u);
    pthread_join(t, NULL);
    ck_assert(dropped);
}
END_TEST

/* It may wait for the change that drops its pages. */
START_TEST(a_drop_does_not_wait_for_a_write_under_way)
{
    struct page_use u;
    page_use_begin(i, &u, 100, 10, PAGE_WRITE);
    page_cache_drop(i, 0, PAGE);
    ck_assert(u.stale);
    ck_assert(page_use_answer(i, &u, 8, false));
    end(&u);
}
END_TEST

/* It may wait for the change whose size this is. */
START_TEST(a_size_does_not_wait_for_a_request_that_has_its_page)
{
    struct page_use u;
    page_use_begin(i, &u, 100, 10, _i ? PAGE_WRITE : PAGE_READ);
    page_cache_grow_beside(i, PAGE, 'x');
    ck_assert_uint_eq(i->told_size, 0);
    ck_assert(page_use_answer(i, &u, 8, false));
    end(&u);
    ck_assert_uint_eq(i->told_size, PAGE);
}
END_TEST

START_TEST(a_size_is_told_at_once_if_no_request_has_its_page)
{
    struct page_use u;
    page_use_begin(i, &u, 100, 10, _i ? PAGE_WRITE : PAGE_READ);
    page_cache_grow_beside(i, PAGE + 1, 'x');
    ck_assert_uint_eq(i->told_size, PAGE + 1);
    end(&u);
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

static void *drop_all(void *arg)
{
    (void)arg;
    page_cache_drop(i, 0, 0);
    dropped = true;
    return NULL;
}

/* It may wait for the change, here or at another node. */
START_TEST(a_drop_does_not_wait_for_a_request_that_comes_while_the_kernel_waits_for_it)
{
    pthread_t t;
    struct page_use u;
    hold(4 * PAGE);
    ck_assert_int_eq(pthread_create(&t, NULL, drop_all, NULL), 0);
    wait_until_it_waits();
    ck_assert(!dropped);
    page_use_begin(i, &u, 4 * PAGE, PAGE, _i ? PAGE_WRITE : PAGE_READ);
    pthread_join(t, NULL);
    ck_assert(was_dropped(0, 4 * PAGE));
    ck_assert(was_dropped(5 * PAGE, UINT64_MAX));
    ck_assert(!was_dropped(4 * PAGE, 5 * PAGE));
    ck_assert(page_use_answer(i, &u, 8, false));
    hold(-1);
    end(&u);
    if (_i)
        ck_assert(was_dropped(4 * PAGE, 5 * PAGE));
}
END_TEST

START_TEST(pages_of_requests_are_left_out_and_all_others_dropped)
{
    struct page_use a, b;
    page_use_begin(i, &a, 8 * PAGE, PAGE, PAGE_READ);
    page_use_begin(i, &b, 2 * PAGE, 2 * PAGE, PAGE_READ);
    hold(8 * PAGE);
    page_cache_drop(i, PAGE, 20 * PAGE);
    ck_assert(was_dropped(PAGE, 2 * PAGE));
    ck_assert(was_dropped(4 * PAGE, 8 * PAGE));
    ck_assert(was_dropped(9 * PAGE, 21 * PAGE));
    ck_assert(!was_dropped(2 * PAGE, 3 * PAGE));
    ck_assert(!was_dropped(8 * PAGE, 9 * PAGE));
    hold(-1);
    end(&a);
    end(&b);
}
END_TEST

/* What goes past the pages has no drop wait or leave any out, and leaves none; but bytes of before a change are read again. */
START_TEST(a_read_past_the_pages_is_read_again_and_nothing_is_left_or_dropped_for_it)
{
    struct page_use u;
    page_use_begin(i, &u, 0, PAGE, PAGE_READ_PAST);
    page_cache_drop(i, 0, 0);
    ck_assert(was_dropped(0, PAGE));
    kernel.n = 0;
    ck_assert(!page_use_answer(i, &u, 8, false));
    ck_assert(page_use_answer(i, &u, 8, false));
    end(&u);
    ck_assert(!was_dropped(0, PAGE));
}
END_TEST

/* It brings these pages itself, so they are as new as the change. */
START_TEST(a_read_drops_nothing_of_what_was_left_for_it)
{
    struct page_use u;
    page_use_begin(i, &u, 0, PAGE, PAGE_READ);
    page_cache_drop(i, 0, 0);
    ck_assert(!was_dropped(0, PAGE));
    while (!page_use_answer(i, &u, 8, false))
        ;
    end(&u);
    ck_assert(!was_dropped(0, PAGE));
}
END_TEST

/* The kernel writes no page back until a truncation is answered. */
START_TEST(a_drop_does_not_wait_while_a_truncation_is_under_way)
{
    struct page_use u;
    pthread_t t;
    hold(0);
    if (_i) { /* it comes while the kernel waits */
        t = drop_beside();
        wait_until_it_waits();
    }
    page_use_begin(i, &u, 0, INT64_MAX - PAGE, PAGE_TRUNCATE);
    if (!_i)
        t = drop_beside();
    pthread_join(t, NULL);
    ck_assert(!was_dropped(0, PAGE));
    page_use_answer(i, &u, 0, false);
    hold(-1);
    end(&u);
    ck_assert(was_dropped(0, PAGE));
}
END_TEST

START_TEST(no_size_is_told_while_a_truncation_is_under_way)
{
    struct page_use u;
    page_use_begin(i, &u, 0, INT64_MAX - PAGE, PAGE_TRUNCATE);
    page_cache_grow_beside(i, 100, 'x');
    page_use_answer(i, &u, 0, false);
    end(&u);
    ck_assert_uint_eq(kernel.size, 0);
    ck_assert_uint_eq(i->told_size, 0);
}
END_TEST

/* The application goes on, and may append, before the request has ended. */
START_TEST(a_size_is_told_as_soon_as_a_truncation_is_answered)
{
    struct page_use u;
    page_use_begin(i, &u, 0, INT64_MAX - PAGE, PAGE_TRUNCATE);
    page_use_answer(i, &u, 0, false);
    ck_assert(walk_byte(i, 100, 'x'));
    ck_assert_uint_eq(kernel.size, 100);
    ck_assert_uint_eq(i->told_size, 100);
    end(&u);
}
END_TEST

static void *grow(void *arg)
{
    (void)arg;
    page_cache_grow_beside(i, PAGE, 'x');
    dropped = true;
    return NULL;
}

START_TEST(a_size_does_not_wait_for_a_request_that_comes_while_the_kernel_waits_for_it)
{
    pthread_t t;
    struct page_use u;
    hold(0);
    ck_assert_int_eq(pthread_create(&t, NULL, grow, NULL), 0);
    wait_until_it_waits();
    ck_assert(!dropped);
    page_use_begin(i, &u, 0, PAGE, PAGE_WRITE);
    pthread_join(t, NULL);
    page_use_answer(i, &u, 8, false);
    hold(-1);
    end(&u);
    ck_assert_uint_eq(kernel.size, PAGE);
    ck_assert_uint_eq(i->told_size, PAGE);
    ck_assert(was_dropped(0, PAGE));
}
END_TEST

/* ---- ends of the file, with zeros behind them ---- */

/* Whatever the kernel's size was before, and also if the file has been smaller. */
START_TEST(a_page_with_an_older_end_is_dropped_before_a_larger_size_is_told)
{
    page_cache_ends(i, 3 * PAGE);
    page_cache_ends(i, PAGE + 100);
    page_cache_ends(i, 2 * PAGE + 7);
    i->told_size = 4 * PAGE;
    _i ? page_cache_grow_beside(i, 5 * PAGE, 'x') : page_cache_grow(i, 5 * PAGE, 'x');
    ck_assert(was_dropped(PAGE, 5 * PAGE));
    ck_assert(!was_dropped(0, PAGE));
    ck_assert_uint_eq(kernel.size, 5 * PAGE);
}
END_TEST

/* How many drops are under way? */
static unsigned drops_now(void)
{
    unsigned n = 0;
    lock_take(&i->lock);
    for (const struct page_drop *d = i->page_drops; d; d = d->next)
        n++;
    lock_drop(&i->lock);
    return n;
}

static void *drop_two(void *arg)
{
    (void)arg;
    page_cache_drop(i, 0, 2 * PAGE);
    return NULL;
}

/* A change is told to this node, and two pages are to be dropped: the first one has an end of 100, and for the second one an answer
 * is waited for. */
START_TEST(a_size_is_not_told_before_a_drop_under_way_has_dropped_the_older_end)
{
    struct page_use u;
    page_cache_ends(i, 100);
    page_use_begin(i, &u, PAGE, PAGE, PAGE_READ);
    ck_assert(page_use_answer(i, &u, 8, false));
    pthread_t drops;
    ck_assert_int_eq(pthread_create(&drops, NULL, drop_two, NULL), 0);
    while (!drops_now())
        sched_yield();
    page_cache_grow(i, 300, 'x');
    ck_assert(was_dropped(0, PAGE));
    ck_assert_uint_eq(kernel.size, 300);
    page_use_end(i, &u);
    pthread_join(drops, NULL);
    ck_assert(was_dropped(0, 2 * PAGE));
    ck_assert_uint_eq(drops_now(), 0);
}
END_TEST

START_TEST(a_page_that_the_kernel_makes_of_a_last_byte_has_an_end)
{
    page_cache_grow(i, PAGE + 1, 'x');
    ck_assert_uint_eq(kernel.n, 0);
    page_cache_grow(i, PAGE + 300, 'y');
    ck_assert(was_dropped(PAGE, 2 * PAGE));
}
END_TEST

/* The kernel would drop the answer that makes its size less. */
START_TEST(nothing_is_dropped_where_no_page_has_an_older_end)
{
    page_cache_ends(i, 100);
    page_cache_drop(i, 0, 0);
    page_cache_ends(i, 2 * PAGE);
    kernel.n = 0;
    page_cache_grow(i, 2 * PAGE, 'x');
    ck_assert_uint_eq(kernel.n, 0);
    ck_assert_uint_eq(kernel.size, 2 * PAGE);
    page_cache_grow(i, 2 * PAGE + 1, 'x');
    ck_assert(was_dropped(2 * PAGE, 3 * PAGE));
}
END_TEST

START_TEST(nothing_is_dropped_where_nobody_reads_pages)
{
    page_cache_ends(i, 100);
    i->mode.cached = 0;
    page_cache_grow(i, 2 * PAGE, 'x');
    ck_assert_uint_eq(kernel.n, 0);
    ck_assert_uint_eq(kernel.size, 2 * PAGE);
    i->opening = 1; /* perhaps to read them */
    page_cache_grow(i, 3 * PAGE, 'x');
    ck_assert(was_dropped(0, 3 * PAGE));
}
END_TEST

static void *grow_to_two_pages(void *arg)
{
    (void)arg;
    page_cache_grow(i, 2 * PAGE, 'x');
    dropped = true;
    return NULL;
}

/* Its bytes are from before the change, and it does not look again. */
static void read_for_the_last_time(struct page_use *u)
{
    page_use_begin(i, u, 0, PAGE, PAGE_READ);
    page_cache_drop(i, 0, PAGE);
    ck_assert(!page_use_answer(i, u, 1, false));
}

static void bring_old_end(struct page_use *u)
{
    u->brings = 100;
    ck_assert(page_use_answer(i, u, 0, false));
    end(u);
}

START_TEST(a_size_waits_for_an_older_end_that_is_being_brought)
{
    pthread_t t;
    struct page_use u;
    read_for_the_last_time(&u);
    ck_assert_int_eq(pthread_create(&t, NULL, grow_to_two_pages, NULL), 0);
    for (bool is = false; !is; sched_yield()) {
        lock_take(&i->lock);
        is = u.awaited;
        lock_drop(&i->lock);
    }
    ck_assert(!dropped);
    ck_assert_uint_eq(kernel.size, 0);
    bring_old_end(&u);
    pthread_join(t, NULL);
    ck_assert(was_dropped(0, PAGE));
    ck_assert_uint_eq(kernel.size, 2 * PAGE);
}
END_TEST

/* It would not look again by itself: nobody tells this node. */
START_TEST(a_read_that_may_have_found_an_older_end_looks_again_before_a_size_is_told)
{
    struct page_use u;
    page_use_begin(i, &u, 0, PAGE, PAGE_READ);
    page_cache_grow(i, 2 * PAGE, 'x');
    u.brings = 100;
    ck_assert(!page_use_answer(i, &u, 8, true));
    u.brings = UINT64_MAX;
    ck_assert(page_use_answer(i, &u, 8, true));
    end(&u);
    ck_assert_uint_eq(kernel.size, 2 * PAGE);
}
END_TEST

/* The change may wait for whom it tells, and the read for the change. */
START_TEST(who_is_told_a_size_leaves_it_to_a_read_that_brings_an_older_end)
{
    struct page_use u;
    read_for_the_last_time(&u);
    page_cache_drop(i, 0, PAGE);
    page_cache_grow_beside(i, 2 * PAGE, 'x');
    ck_assert_uint_eq(kernel.size, 0);
    bring_old_end(&u);
    ck_assert(was_dropped(0, PAGE));
    ck_assert_uint_eq(kernel.size, 2 * PAGE);
}
END_TEST

static void *serve_one(void *arg)
{
    (void)arg;
    page_quick_begin();
    page_quick_end();
    return NULL;
}

static pthread_barrier_t begun, may_end;

static void *serve_until_told(void *arg)
{
    (void)arg;
    page_quick_begin();
    pthread_barrier_wait(&begun);
    pthread_barrier_wait(&may_end);
    page_quick_end();
    return NULL;
}

START_TEST(a_drop_waits_for_a_request_however_many_threads_have_served_before)
{
    pthread_t t;
    for (int n = 0; n < 200; n++) {
        ck_assert_int_eq(pthread_create(&t, NULL, serve_one, NULL), 0);
        pthread_join(t, NULL);
    }
    pthread_barrier_init(&begun, NULL, 2);
    pthread_barrier_init(&may_end, NULL, 2);
    ck_assert_int_eq(pthread_create(&t, NULL, serve_until_told, NULL), 0);
    pthread_barrier_wait(&begun);
    pthread_t drop = drop_beside();
    poll(NULL, 0, 50); /* a drop that does not wait has ended by then */
    ck_assert(!dropped);
    pthread_barrier_wait(&may_end);
    pthread_join(drop, NULL);
    pthread_join(t, NULL);
    ck_assert(dropped);
    pthread_barrier_destroy(&begun);
    pthread_barrier_destroy(&may_end);
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
    tcase_add_test(t, a_drop_waits_for_a_request_however_many_threads_have_served_before);
    tcase_add_loop_test(t, a_drop_does_not_wait_for_a_request_that_comes_while_the_kernel_waits_for_it, 0, 2);
    tcase_add_test(t, pages_of_requests_are_left_out_and_all_others_dropped);
    tcase_add_test(t, a_read_past_the_pages_is_read_again_and_nothing_is_left_or_dropped_for_it);
    tcase_add_test(t, a_read_drops_nothing_of_what_was_left_for_it);
    tcase_add_loop_test(t, a_drop_does_not_wait_while_a_truncation_is_under_way, 0, 2);
    tcase_add_test(t, no_size_is_told_while_a_truncation_is_under_way);
    tcase_add_test(t, a_size_is_told_as_soon_as_a_truncation_is_answered);
    tcase_add_test(t, a_size_does_not_wait_for_a_request_that_comes_while_the_kernel_waits_for_it);
    tcase_add_loop_test(t, a_page_with_an_older_end_is_dropped_before_a_larger_size_is_told, 0, 2);
    tcase_add_test(t, a_size_is_not_told_before_a_drop_under_way_has_dropped_the_older_end);
    tcase_add_test(t, a_page_that_the_kernel_makes_of_a_last_byte_has_an_end);
    tcase_add_test(t, nothing_is_dropped_where_no_page_has_an_older_end);
    tcase_add_test(t, nothing_is_dropped_where_nobody_reads_pages);
    tcase_add_test(t, a_size_waits_for_an_older_end_that_is_being_brought);
    tcase_add_test(t, a_read_that_may_have_found_an_older_end_looks_again_before_a_size_is_told);
    tcase_add_test(t, who_is_told_a_size_leaves_it_to_a_read_that_brings_an_older_end);
    return run_case("page cache", t);
}
