/* test_pool.c - pools of threads: how many run, in which order, and that all is done in the end. */
#include "transport/loop.h"

#include <check.h>
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "transport/base.h"

#include "gate.h"
#include "suite.h"

static struct {
    pthread_barrier_t barrier;
    _Atomic int running, most, ran;
} crowd;

static void meet(void *arg)
{
    (void)arg;
    int now = ++crowd.running, most = crowd.most;
    while (now > most && !atomic_compare_exchange_weak(&crowd.most, &most, now))
        ;
    pthread_barrier_wait(&crowd.barrier);
    crowd.running--;
    crowd.ran++;
}

START_TEST(pool_runs_its_maximum_at_once_and_no_more)
{
    struct pool *p = pool_new("crowd", 8);
    pthread_barrier_init(&crowd.barrier, NULL, 8);
    for (int i = 0; i < 8 * 50; i++)
        pool_submit(p, meet, NULL); /* does not end unless 8 run at once */
    pool_free(p);
    ck_assert_int_eq(crowd.ran, 8 * 50);
    ck_assert_int_eq(crowd.most, 8);
    pthread_barrier_destroy(&crowd.barrier);
}
END_TEST

static int order[1000], norder;

static void note_order(void *arg)
{
    order[norder++] = (int)(intptr_t)arg;
}

static void wait_for_go(void *arg)
{
    (void)arg;
    gate_add(1);
    gate_wait(2);
}

START_TEST(pool_of_one_keeps_the_order_and_counts_what_waits)
{
    gate_init();
    struct pool *p = pool_new("one", 1);
    pool_submit(p, wait_for_go, NULL);
    gate_wait(1);
    ck_assert_uint_eq(pool_waiting(p), 0);
    for (int i = 0; i < 1000; i++)
        pool_submit(p, note_order, (void *)(intptr_t)i);
    ck_assert_uint_eq(pool_waiting(p), 1000);
    gate_add(1);
    pool_free(p);
    ck_assert_int_eq(norder, 1000);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(order[i], i);
}
END_TEST

static _Atomic int chained;

static void chain(void *arg)
{
    struct pool *p = arg;
    if (++chained < 100)
        pool_submit(p, chain, p);
}

START_TEST(pool_free_waits_for_jobs_that_jobs_submit)
{
    struct pool *p = pool_new("chain", 3);
    pool_submit(p, chain, p);
    pool_free(p);
    ck_assert_int_eq(chained, 100);
    pool_free(NULL);
}
END_TEST

static _Atomic int hops;

static void hop(void *arg)
{
    (void)arg;
    struct pool *const next[] = {pool_session, pool_waiters, pool_data, pool_names, pool_proofs,
                                 pool_locks};
    int n = hops++;
    if (n < 9999)
        pool_submit(next[n % ARRAY_LEN(next)], hop, NULL);
}

START_TEST(pools_stop_when_jobs_hop_from_pool_to_pool)
{
    ck_assert_int_eq(pools_start(), 0);
    pool_submit(pool_names, hop, NULL);
    pools_stop();
    ck_assert_int_eq(hops, 10000);
    ck_assert_ptr_null(pool_names);
    ck_assert_ptr_null(pool_data);
    ck_assert_ptr_null(pool_waiters);
    ck_assert_ptr_null(pool_proofs);
    ck_assert_ptr_null(pool_session);
}
END_TEST

/* Threads of this process with this name (a tool that checks threads has some of its own). */
static int count_threads(const char *name)
{
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e; (e = readdir(d));) {
        char path[300], comm[32] = "";
        snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
        FILE *f = fopen(path, "r");
        if (!f)
            continue;
        n += fgets(comm, sizeof(comm), f) && !strncmp(comm, name, strlen(name));
        fclose(f);
    }
    closedir(d);
    return n;
}

START_TEST(pool_threads_come_with_work_and_end_without)
{
    gate_init();
    struct pool *p = pool_new("comeandgo", 8);
    ck_assert_int_eq(count_threads("comeandgo"), 0);
    pthread_barrier_init(&crowd.barrier, NULL, 8);
    for (int i = 0; i < 8; i++)
        pool_submit(p, meet, NULL);
    uint64_t start_ms = boot_ms();
    int most = 0;
    for (int now = 1; crowd.ran < 8 || now; now = count_threads("comeandgo")) {
        most = MAX(most, now);
        ck_assert_uint_lt(boot_ms() - start_ms, LONG_MS);
        poll(NULL, 0, 50);
    }
    ck_assert_int_eq(most, 8);
    ck_assert_uint_ge(boot_ms() - start_ms, 9000);
    pool_submit(p, open_gate, NULL); /* and come again */
    gate_wait(1);
    pool_free(p);
    pthread_barrier_destroy(&crowd.barrier);
}
END_TEST

static void note_processors(void *arg)
{
    ck_assert_int_eq(sched_getaffinity(0, sizeof(cpu_set_t), arg), 0);
}

struct bound {
    struct pool *p;
    cpu_set_t seen;
    int core;
};

static void *submit_from_one_core(void *arg)
{
    struct bound *b = arg;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(b->core, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
    pool_submit(b->p, note_processors, &b->seen);
    return NULL;
}

static int first_processor(const cpu_set_t *cpus)
{
    int n = 0;
    while (!CPU_ISSET(n, cpus))
        n++;
    return n;
}

START_TEST(pool_threads_are_not_bound_to_the_core_of_who_submits)
{
    pthread_t t;
    cpu_set_t all;
    ck_assert_int_eq(sched_getaffinity(0, sizeof(all), &all), 0);
    struct bound b = {.p = pool_new("unbound", 1), .core = first_processor(&all)};
    ck_assert_int_eq(pthread_create(&t, NULL, submit_from_one_core, &b), 0);
    pthread_join(t, NULL);
    pool_free(b.p);
    ck_assert(CPU_EQUAL(&b.seen, &all));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("pool");
    tcase_set_timeout(t, 100);
    tcase_add_test(t, pool_runs_its_maximum_at_once_and_no_more);
    tcase_add_test(t, pool_of_one_keeps_the_order_and_counts_what_waits);
    tcase_add_test(t, pool_free_waits_for_jobs_that_jobs_submit);
    tcase_add_test(t, pools_stop_when_jobs_hop_from_pool_to_pool);
    tcase_add_test(t, pool_threads_come_with_work_and_end_without);
    tcase_add_test(t, pool_threads_are_not_bound_to_the_core_of_who_submits);
    return run_case("pool", t);
}
