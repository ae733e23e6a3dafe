/* test_lull.c - activity: when there is a lull, and that who waits for one sees it. */
#include "flush/flush_events.h"
#include "flush/flush_int.h"
#include "flush/lull.h"
#include "transport/loop.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "suite.h"

#define WAIT 150

static void setup(void)
{
    lull_set_wait(WAIT);
}

START_TEST(a_request_in_progress_is_no_lull)
{
    lull_begin();
    ck_assert(!lull_now());
    ck_assert_uint_eq(lull_idle_ms(), 0);
    usleep(2 * WAIT * 1000);
    ck_assert(!lull_now()); /* however long it takes */
    lull_begin();
    lull_end();
    ck_assert(!lull_now());
    ck_assert_uint_eq(lull_due_ms(), 100); /* not before the interval, but that may get shorter */
    lull_set_wait(0);
    ck_assert_uint_eq(lull_due_ms(), 10);
    lull_set_wait(50);
    ck_assert_uint_eq(lull_due_ms(), 50);
    lull_end();
}
END_TEST

START_TEST(a_lull_comes_after_the_interval)
{
    lull_begin();
    lull_end();
    uint64_t ended = boot_ms(), due = lull_due_ms();
    bool lull = lull_now();
    if (boot_ms() - ended < WAIT) { /* a busy machine may let it pass before we look */
        ck_assert(!lull);
        ck_assert_uint_gt(due, 0);
    }
    ck_assert_uint_le(due, WAIT);
    while (!lull_now())
        usleep(1000);
    ck_assert_uint_ge(boot_ms() - ended, WAIT - 2);
    ck_assert_uint_eq(lull_due_ms(), 0);
    lull_begin(); /* and is over at once */
    ck_assert(!lull_now());
    lull_end();
    ck_assert(!lull_now());
}
END_TEST

/* The clock counts from the boot, which may be weeks ago. */
START_TEST(what_was_before_it_began_to_look_is_no_pause)
{
    uint64_t before = boot_ms();
    lull_set_wait(1000); /* shorter than any machine has been up */
    uint64_t idle = lull_idle_ms();
    ck_assert_uint_le(idle, boot_ms() - before);
    if (boot_ms() - before < 1000)
        ck_assert(!lull_now());
    before = boot_ms();
    lull_learn(1000);
    idle = lull_idle_ms();
    ck_assert_uint_le(idle, boot_ms() - before);
}
END_TEST

START_TEST(without_an_interval_only_requests_count)
{
    lull_set_wait(0);
    ck_assert(lull_now());
    lull_begin();
    ck_assert(!lull_now());
    lull_end();
    ck_assert(lull_now());
    ck_assert_uint_eq(lull_due_ms(), 0);
}
END_TEST

/* As the flusher waits; gives the time at which it saw the lull. */
static void *wait_for_lull(void *arg)
{
    uint64_t *seen_at = arg;
    for (;;) {
        uint64_t seen = bell_seen(), due = lull_due_ms();
        if (!due)
            break;
        bell_wait(seen, due);
    }
    *seen_at = boot_ms();
    return NULL;
}

/* Nobody wakes it: it looks again in time. */
START_TEST(the_end_of_activity_is_seen_by_who_waits)
{
    uint64_t seen_at = 0;
    pthread_t t;
    lull_begin();
    pthread_create(&t, NULL, wait_for_lull, &seen_at);
    usleep(100000); /* it sleeps by now; if not, the test is only easier */
    uint64_t ended = boot_ms(); /* before: this thread may lose the processor after it */
    lull_end();
    pthread_join(t, NULL);
    ck_assert_uint_ge(seen_at, ended + WAIT - 2);
}
END_TEST

#define THREADS 4
#define ROUNDS  20000

static void *busy(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        lull_begin();
        lull_end();
    }
    return NULL;
}

/* Many begin and end while somebody waits again and again: each wait ends. */
START_TEST(who_waits_beside_many_requests_sees_a_lull)
{
    lull_set_wait(0);
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, busy, NULL);
    for (int i = 0; i < 200; i++) {
        uint64_t at;
        wait_for_lull(&at);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    ck_assert(lull_now());
}
END_TEST

START_TEST(a_ring_before_the_wait_counts)
{
    uint64_t seen = bell_seen();
    bell_ring();
    bell_wait(seen, 0); /* returns: the ring was after the look */
    uint64_t began = boot_ms();
    bell_wait(bell_seen(), 50);
    ck_assert_uint_ge(boot_ms() - began, 45);
}
END_TEST

/* At a sample: the interval has begun before it. */
START_TEST(what_is_seen_afterwards_counts_from_when_it_was)
{
    lull_set_wait(60000);
    lull_past(0);
    uint64_t due = lull_due_ms();
    ck_assert(due > 0 && due <= 60000);
    lull_past(50000); /* older than what is known: nothing new */
    ck_assert_uint_ge(lull_due_ms() + 10000, due);
    usleep(300000);
    lull_past(200);
    uint64_t idle = lull_idle_ms();
    ck_assert(idle >= 200 && idle < 300 + 5000);
    lull_begin();
    lull_past(0);
    ck_assert_uint_eq(lull_due_ms(), 100);
    lull_end();
}
END_TEST

START_TEST(the_interval_is_learned_from_gaps)
{
    lull_learn(8000); /* far from the gaps, however late a busy machine ends them */
    ck_assert_uint_eq(lull_wait_ms(), 8000);
    for (int i = 0; i < 12; i++) {
        lull_begin();
        lull_begin(); /* beside another one: no gap */
        lull_end();
        lull_end();
        usleep(60000);
    }
    lull_begin();
    ck_assert_uint_ge(lull_wait_ms(), 60);
    ck_assert_uint_lt(lull_wait_ms(), 7000);
    lull_end();
    uint64_t began = boot_ms();
    while (!lull_now())
        usleep(1000);
    ck_assert_uint_lt(boot_ms() - began, 7500); /* sooner than what it was to begin with */
    lull_set_wait(0);
}
END_TEST

START_TEST(what_others_read_from_the_disk)
{
    struct disk_counts last = {.known = false}, now = {true, 100 << 20, 50 << 20};
    ck_assert(!disk_busy(&last, &now)); /* the first look */
    now.read += DISK_BUSY - 1;
    ck_assert(!disk_busy(&last, &now));
    now.read += DISK_BUSY;
    ck_assert(disk_busy(&last, &now));
    now.read += 10 * DISK_BUSY;
    now.own += 10 * DISK_BUSY; /* our own doing */
    ck_assert(!disk_busy(&last, &now));
    now.read += 10 * DISK_BUSY;
    now.own += 9 * DISK_BUSY;
    ck_assert(disk_busy(&last, &now));
    now = (struct disk_counts){.known = false};
    ck_assert(!disk_busy(&last, &now));
    now = (struct disk_counts){true, 1 << 30, 0};
    ck_assert(!disk_busy(&last, &now));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("lull");
    tcase_add_checked_fixture(t, setup, NULL);
    tcase_set_timeout(t, 30);
    tcase_add_test(t, a_request_in_progress_is_no_lull);
    tcase_add_test(t, a_lull_comes_after_the_interval);
    tcase_add_test(t, what_was_before_it_began_to_look_is_no_pause);
    tcase_add_test(t, without_an_interval_only_requests_count);
    tcase_add_test(t, the_end_of_activity_is_seen_by_who_waits);
    tcase_add_test(t, who_waits_beside_many_requests_sees_a_lull);
    tcase_add_test(t, a_ring_before_the_wait_counts);
    tcase_add_test(t, what_is_seen_afterwards_counts_from_when_it_was);
    tcase_add_test(t, the_interval_is_learned_from_gaps);
    tcase_add_test(t, what_others_read_from_the_disk);
    return run_case("lull", t);
}
