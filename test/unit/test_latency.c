/* Histograms of latencies: each time is in the bucket that its bounds say, and quantiles are right to a bucket's width. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>

#include "suite.h"
#include "transport/base.h"
#include "transport/latency.h"

static void none(void)
{
}

START_TEST(buckets_follow_each_other)
{
    uint64_t begin = 0;
    for (unsigned b = 0; b < LATENCY_BUCKETS; b++) {
        uint64_t end = latency_end_ns(b);
        ck_assert_uint_gt(end, begin);
        ck_assert_uint_eq(latency_bucket(begin), b);
        ck_assert_uint_eq(latency_bucket(end - 1), b);
        if (begin >= 4096 && b + 1 < LATENCY_BUCKETS) /* from 4 us on: no wider than a quarter of what it begins with */
            ck_assert_uint_le(4 * (end - begin), begin);
        begin = end;
    }
    ck_assert_uint_eq(begin, UINT64_MAX);
}
END_TEST

START_TEST(quantiles_are_right_to_a_bucket)
{
    static struct latency l;
    struct latency_copy c;
    for (uint64_t us = 1; us <= 1000; us++)
        latency_add(&l, us * 1000);
    latency_copy(&l, &c);
    ck_assert_uint_eq(c.count, 1000);
    ck_assert_uint_eq(c.sum_ns, UINT64_C(1000) * 1000 * 1001 / 2);
    static const double parts[] = {0.01, 0.5, 0.9, 0.99, 1};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        double is = (double)latency_quantile_ns(&c, parts[i]), should = parts[i] * 1e6;
        ck_assert_double_ge(is, should * 0.99);
        ck_assert_double_le(is, should * 1.26 + 1024);
    }
    ck_assert_uint_eq(latency_quantile_ns(&(struct latency_copy){0}, 0.5), 0);
}
END_TEST

START_TEST(what_came_since_is_told)
{
    static struct latency l;
    struct latency_copy before, now, since;
    latency_add(&l, 5000000);
    latency_copy(&l, &before);
    latency_add(&l, 70000);
    latency_add(&l, UINT64_MAX / 2);
    latency_copy(&l, &now);
    latency_since(&now, &before, &since);
    ck_assert_uint_eq(since.count, 2);
    ck_assert_uint_eq(since.buckets[latency_bucket(70000)], 1);
    ck_assert_uint_eq(since.buckets[LATENCY_BUCKETS - 1], 1);
    ck_assert_uint_eq(since.buckets[latency_bucket(5000000)], 0);
    ck_assert_uint_lt(latency_quantile_ns(&since, 1), UINT64_MAX); /* the last bucket has no end: its beginning */
}
END_TEST

static struct latency shared;

static void *add_many(void *arg)
{
    for (int i = 0; i < 100000; i++)
        latency_add(&shared, (uint64_t)(uintptr_t)arg);
    return NULL;
}

START_TEST(no_thread_loses_any)
{
    pthread_t t[4];
    struct latency_copy c;
    for (uintptr_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, add_many, (void *)(i * 1000)), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    latency_copy(&shared, &c);
    ck_assert_uint_eq(c.count, 400000);
    ck_assert_uint_eq(c.sum_ns, UINT64_C(100000) * 6000);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("latency");
    TCase *t = add_case(s, "latency", none, none, 60);
    tcase_add_test(t, buckets_follow_each_other);
    tcase_add_test(t, quantiles_are_right_to_a_bucket);
    tcase_add_test(t, what_came_since_is_told);
    tcase_add_test(t, no_thread_loses_any);
    return run_suite(s);
}
