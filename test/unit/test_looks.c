/* Many looks, several at a time: each once, and then the end, once. */
#include <check.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "fs/looks.h"
#include "transport/base.h"
#include "transport/lock.h"
#include "transport/loop.h"

#include "suite.h"

#define LOOKS 500u

struct looked {
    struct lock lock;
    pthread_cond_t changed;
    unsigned n, ends, under_way, most;
    unsigned times[LOOKS];
    bool missed; /* when it ended */
    unsigned waits_us;
};

static void look(void *arg, unsigned k)
{
    struct looked *l = arg;
    lock_take(&l->lock);
    l->times[k]++;
    l->under_way++;
    l->most = MAX(l->most, l->under_way);
    lock_drop(&l->lock);
    if (l->waits_us)
        usleep(l->waits_us);
    lock_take(&l->lock);
    l->under_way--;
    lock_drop(&l->lock);
}

static void done(void *arg)
{
    struct looked *l = arg;
    lock_take(&l->lock);
    l->ends++;
    for (unsigned k = 0; k < l->n; k++)
        l->missed |= l->times[k] != 1;
    l->missed |= l->under_way != 0;
    pthread_cond_broadcast(&l->changed);
    lock_drop(&l->lock);
}

static void run(struct looked *l, unsigned n, unsigned waits_us)
{
    *l = (struct looked){.n = n, .waits_us = waits_us};
    lock_init(&l->lock, RANK_LEAF);
    lock_cond_init(&l->changed);
    looks_run(n, look, done, l);
    lock_take(&l->lock);
    while (!l->ends)
        lock_wait(&l->lock, &l->changed, 0);
    ck_assert_uint_eq(l->ends, 1);
    ck_assert(!l->missed);
    lock_drop(&l->lock);
}

static void quick_ones(void)
{
    for (unsigned n = 0; n < 100; n++)
        looks_took(3);
}

static void slow_ones(void)
{
    for (unsigned n = 0; n < 100; n++)
        looks_took(2000);
}

static void start(void)
{
    ck_assert_int_eq(pools_start(), 0);
}

static void stop(void)
{
    pools_stop();
}

START_TEST(each_is_looked_at_once_and_then_it_ends)
{
    struct looked l;
    for (unsigned n = 0; n < LOOKS; n = 2 * n + 1) {
        slow_ones();
        run(&l, n, n < 64 ? 1000 : 0);
        quick_ones();
        run(&l, n, 0);
    }
}
END_TEST

START_TEST(slow_ones_overlap_and_quick_ones_do_not)
{
    struct looked l;
    slow_ones();
    run(&l, 64, 2000);
    ck_assert_uint_ge(l.most, 2);
    ck_assert_uint_le(l.most, 8);
    quick_ones();
    run(&l, 64, 0);
    ck_assert_uint_eq(l.most, 1);
}
END_TEST

START_TEST(one_that_waited_for_a_processor_makes_none_slow)
{
    quick_ones();
    ck_assert(!looks_are_slow());
    looks_took(50000);
    ck_assert(!looks_are_slow());
    for (unsigned n = 0; n < 20; n++)
        looks_took(500);
    ck_assert(looks_are_slow());
    quick_ones();
    ck_assert(!looks_are_slow());
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("all");

    tcase_add_checked_fixture(t, start, stop);
    tcase_add_test(t, each_is_looked_at_once_and_then_it_ends);
    tcase_add_test(t, slow_ones_overlap_and_quick_ones_do_not);
    tcase_add_test(t, one_that_waited_for_a_processor_makes_none_slow);
    return run_case("looks", t);
}
