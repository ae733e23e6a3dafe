/* test_loop.c - calls to the network thread, its timers and libuv's pool. */
#include "transport/loop.h"

#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "transport/base.h"
#include "transport/loop_uv.h"

#include "gate.h"
#include "suite.h"

static void start(void)
{
    gate_init();
    ck_assert_int_eq(loop_start(), 0);
}

static void stop(void)
{
    loop_stop();
}

/* ---- calls ---- */

#define POSTERS 4
#define POSTS   5000

static struct {
    int poster, i;
} posts[POSTERS][POSTS];
static int next_of[POSTERS], out_of_order, elsewhere;

static void take_post(void *arg)
{
    size_t at = (size_t)((char *)arg - (char *)posts) / sizeof(posts[0][0]);
    int poster = (int)(at / POSTS), i = (int)(at % POSTS);
    out_of_order += next_of[poster] != i;
    next_of[poster] = i + 1;
    elsewhere += !loop_is_here();
}

static void *post_all(void *arg)
{
    int poster = *(int *)arg;
    for (int i = 0; i < POSTS; i++)
        loop_post(take_post, &posts[poster][i]);
    return NULL;
}

static void nothing(void *arg)
{
    (void)arg;
}

START_TEST(posts_run_in_order_in_the_network_thread)
{
    pthread_t t[POSTERS];
    int id[POSTERS];
    for (int i = 0; i < POSTERS; i++) {
        id[i] = i;
        pthread_create(&t[i], NULL, post_all, &id[i]);
    }
    for (int i = 0; i < POSTERS; i++)
        pthread_join(t[i], NULL);
    loop_call(nothing, NULL);
    for (int i = 0; i < POSTERS; i++)
        ck_assert_int_eq(next_of[i], POSTS);
    ck_assert_int_eq(out_of_order, 0);
    ck_assert_int_eq(elsewhere, 0);
    ck_assert(!loop_is_here());
}
END_TEST

static void set_7(void *arg)
{
    *(int *)arg = 7;
}

static void call_inside(void *arg)
{
    int *steps = arg;
    int n = 0;
    loop_call(set_7, &n);
    steps[0] = n; /* it ran at once */
}

START_TEST(call_returns_when_the_function_has_run)
{
    int n = 0;
    loop_call(set_7, &n);
    ck_assert_int_eq(n, 7);
    n = 0;
    loop_call(call_inside, &n);
    ck_assert_int_eq(n, 7);
}
END_TEST

static void post_again(void *arg)
{
    int *left = arg;
    if (--*left > 0)
        loop_post(post_again, left);
}

START_TEST(stop_runs_what_is_queued_and_what_that_queues)
{
    int left = 1000;
    loop_post(post_again, &left);
    loop_stop();
    ck_assert_int_eq(left, 0);
}
END_TEST

START_TEST(without_the_thread_posts_are_dropped_and_calls_run_here)
{
    int n = 0;
    loop_stop();
    loop_post(set_7, &n);
    ck_assert_int_eq(n, 0);
    loop_call(set_7, &n);
    ck_assert_int_eq(n, 7);
    loop_stop(); /* again: nothing */
}
END_TEST

START_TEST(the_loop_starts_again)
{
    for (int i = 0; i < 20; i++) {
        int n = 0;
        loop_call(set_7, &n);
        ck_assert_int_eq(n, 7);
        loop_stop();
        ck_assert_int_eq(loop_start(), 0);
    }
}
END_TEST

static void blocked_signals(void *arg)
{
    sigset_t *set = arg;
    pthread_sigmask(SIG_SETMASK, NULL, set);
    gate_add(1);
}

static void assert_blocks(const sigset_t *set)
{
    ck_assert(sigismember(set, SIGTERM));
    ck_assert(sigismember(set, SIGINT));
    ck_assert(sigismember(set, SIGHUP));
    ck_assert(sigismember(set, SIGUSR1));
    ck_assert(!sigismember(set, SIGSEGV));
}

START_TEST(all_threads_block_signals)
{
    sigset_t net, uv, pool, ours;
    struct pool *p = pool_new("p", 1);
    loop_call(blocked_signals, &net);
    loop_work(blocked_signals, NULL, &uv);
    pool_submit(p, blocked_signals, &pool);
    gate_wait(3);
    assert_blocks(&net);
    assert_blocks(&uv);
    assert_blocks(&pool);
    pthread_sigmask(SIG_SETMASK, NULL, &ours);
    ck_assert(!sigismember(&ours, SIGTERM));
    pool_free(p);
}
END_TEST

/* ---- polling ---- */

static bool ran, ran_by_the_end;

static void set_ran(void *arg)
{
    (void)arg;
    ran = true;
}

static struct loop_timer *poller;

static void poll_for_a_post(void *arg)
{
    (void)arg;
    loop_timer_free(poller);
    loop_poll_begin();
    gate_add(1);
    while (!loop_posted())
        ;
    ran_by_the_end = !ran;
    loop_poll_end();
    ran_by_the_end &= ran;
    gate_add(1);
}

static void make_poller(void *arg)
{
    (void)arg;
    poller = loop_timer_new(poll_for_a_post, NULL);
    loop_timer_set(poller, 0, 0);
}

START_TEST(what_is_posted_while_the_loop_polls_runs_at_its_end)
{
    loop_post(make_poller, NULL);
    gate_wait(1);
    loop_post(set_ran, NULL);
    loop_call(nothing, NULL); /* the loop is woken by posts again */
    gate_wait(2);             /* that call may be run by the end, too */
    ck_assert(ran_by_the_end);
}
END_TEST

START_TEST(the_loop_stops_with_what_was_posted_while_it_polled)
{
    loop_post(make_poller, NULL);
    gate_wait(1);
    loop_post(set_ran, NULL);
    loop_stop();
    ck_assert(ran_by_the_end);
}
END_TEST

/* ---- timers ---- */

static struct {
    struct loop_timer *timer;
    uint64_t first, repeat, set_at, fired_at;
    int fired, free_at;
} tick;

static void on_tick(void *arg)
{
    ck_assert_ptr_eq(arg, &tick);
    tick.fired_at = boot_ms();
    if (++tick.fired == tick.free_at) {
        loop_timer_free(tick.timer);
        tick.timer = NULL;
    }
    gate_add(1);
}

static void make_timer(void *arg)
{
    tick.timer = loop_timer_new(on_tick, arg);
}

static void set_timer(void *arg)
{
    (void)arg;
    tick.set_at = boot_ms();
    loop_timer_set(tick.timer, tick.first, tick.repeat);
}

static void stop_timer(void *arg)
{
    (void)arg;
    loop_timer_stop(tick.timer);
}

static void free_timer(void *arg)
{
    (void)arg;
    loop_timer_free(tick.timer);
}

START_TEST(timer_fires_once_and_not_early)
{
    loop_call(make_timer, &tick);
    tick.first = 30;
    loop_call(set_timer, NULL);
    gate_wait(1);
    ck_assert_uint_ge(tick.fired_at - tick.set_at, 29);

    loop_call(set_timer, NULL); /* a one-shot timer can be set again */
    gate_wait(2);
    loop_call(free_timer, NULL);
    ck_assert_int_eq(tick.fired, 2);
}
END_TEST

START_TEST(timer_repeats_until_freed_by_itself)
{
    tick.first = 1;
    tick.repeat = 2;
    tick.free_at = 5;
    loop_call(make_timer, &tick);
    loop_call(set_timer, NULL);
    gate_wait(5);
    loop_stop();
    ck_assert_int_eq(tick.fired, 5);
}
END_TEST

START_TEST(stopped_timer_does_not_fire)
{
    tick.first = 5;
    loop_call(make_timer, &tick);
    loop_call(set_timer, NULL);
    loop_call(stop_timer, NULL);
    int before = tick.fired; /* it may have been quick */
    struct loop_timer *first = tick.timer;
    tick.first = 50; /* a second, later one shows that the first had its time */
    tick.fired_at = 0;
    loop_call(make_timer, &tick);
    loop_call(set_timer, NULL);
    gate_wait(before + 1);
    ck_assert_int_eq(tick.fired, before + 1);
    loop_call(free_timer, NULL);
    tick.timer = first;
    loop_call(free_timer, NULL);
}
END_TEST

/* ---- libuv's pool ---- */

#define WORKS 200

static struct work_record {
    bool worked_elsewhere, done_here, in_order;
} works[WORKS];

static void do_work(void *arg)
{
    struct work_record *w = arg;
    w->worked_elsewhere = !loop_is_here();
}

static void work_done(void *arg)
{
    struct work_record *w = arg;
    w->done_here = loop_is_here();
    w->in_order = w->worked_elsewhere;
}

static void submit_from_the_loop(void *arg)
{
    loop_work(do_work, work_done, arg);
}

START_TEST(work_runs_in_the_pool_and_ends_in_the_loop_even_when_it_stops)
{
    for (int i = 0; i < WORKS; i++) {
        if (i % 2)
            loop_work(do_work, work_done, &works[i]);
        else
            loop_post(submit_from_the_loop, &works[i]);
    }
    loop_stop();
    for (int i = 0; i < WORKS; i++)
        ck_assert(works[i].worked_elsewhere && works[i].done_here && works[i].in_order);
}
END_TEST

/* ---- idle ---- */

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

START_TEST(idle_uses_no_cpu)
{
    ck_assert_int_eq(pools_start(), 0);
    pool_submit(pool_names, open_gate, NULL);
    loop_work(open_gate, NULL, NULL);
    gate_wait(2);
    uint64_t before = cpu_ns();
    poll(NULL, 0, 1000);
    ck_assert_uint_lt(cpu_ns() - before, 20 * 1000000); /* a loop that spins uses 1000 ms */
    pools_stop();
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("loop");
    tcase_set_timeout(t, 100);
    tcase_add_checked_fixture(t, start, stop);
    tcase_add_test(t, posts_run_in_order_in_the_network_thread);
    tcase_add_test(t, call_returns_when_the_function_has_run);
    tcase_add_test(t, stop_runs_what_is_queued_and_what_that_queues);
    tcase_add_test(t, without_the_thread_posts_are_dropped_and_calls_run_here);
    tcase_add_test(t, the_loop_starts_again);
    tcase_add_test(t, all_threads_block_signals);
    tcase_add_test(t, what_is_posted_while_the_loop_polls_runs_at_its_end);
    tcase_add_test(t, the_loop_stops_with_what_was_posted_while_it_polled);
    tcase_add_test(t, timer_fires_once_and_not_early);
    tcase_add_test(t, timer_repeats_until_freed_by_itself);
    tcase_add_test(t, stopped_timer_does_not_fire);
    tcase_add_test(t, work_runs_in_the_pool_and_ends_in_the_loop_even_when_it_stops);
    tcase_add_test(t, idle_uses_no_cpu);
    return run_case("loop", t);
}
