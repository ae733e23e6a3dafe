/* test_flush_policies.c - write-back by policy, age, marks and limit.  I/O is in progress all the
 * time: no lull comes. */
#include "flush/flush.h"
#include "flush/flush_events.h"
#include "flush/flush_int.h"
#include "flush/flush_recover.h"
#include "flush/flush_status.h"
#include "flush_env.h"

static void start_with(struct flush_config c)
{
    c.wait_ms = NO_LULL;
    c.writers = 2;
    ck_assert_int_eq(flush_start(&c), 0);
    connect_flush(true);
    ck_assert_int_eq(flush_recover(), 0);
    lull_begin();
}

static struct file *written(const char *name, int mib)
{
    struct file *f = env_create(name, 0644);
    for (int i = 0; i < mib; i++)
        env_write(f, page, sizeof(page), (uint64_t)i << 20);
    return f;
}

START_TEST(immediate_waits_for_nothing)
{
    start_with((struct flush_config){.policy = FLUSH_IMMEDIATE});
    struct file *f = written("f", 1);
    UNTIL(!dirty(f));
    ck_assert_uint_eq(counted(flushed_lull_bytes), 0);
    lull_end();
    shut(f);
}
END_TEST

START_TEST(a_file_has_the_policy_that_it_is_given)
{
    start_with((struct flush_config){.policy = FLUSH_END, .dirty_age_ms = 1});
    struct file *f = written("f", 1), *g = written("g", 1), *h = written("h", 1);
    ck_assert_int_eq(flush_policy_of(g), FLUSH_END);
    flush_set_policy(g, FLUSH_IMMEDIATE); /* while it is in the queue */
    ck_assert_int_eq(flush_policy_of(g), FLUSH_IMMEDIATE);
    UNTIL(!dirty(g));
    usleep(300000);
    ck_assert(dirty(f) && dirty(h)); /* of age, but `end` has none */
    ck_assert_int_eq(flush_all(NULL, NULL), 0);
    ck_assert(!dirty(f) && !dirty(h));
    lull_end();
    shut(f);
    shut(g);
    shut(h);
}
END_TEST

START_TEST(of_age)
{
    start_with((struct flush_config){.policy = FLUSH_IDLE, .dirty_age_ms = 700});
    uint64_t began = boot_ms();
    struct file *f = written("f", 1);
    struct flush_status s;
    flush_status(&s);
    ck_assert_uint_le(s.oldest_ms, boot_ms() - began);
    while (boot_ms() < began + 600)
        ck_assert(dirty(f));
    UNTIL(!dirty(f));
    UNTIL((flush_status(&s), s.oldest_ms == 0)); /* the pass ends after its last file is clean */
    lull_end();
    shut(f);
}
END_TEST

START_TEST(from_the_high_mark_to_the_low_one)
{
    /* 5 and 2 % of 512 MiB less the records */
    start_with((struct flush_config){.policy = FLUSH_END, .dirty_high = 5, .dirty_low = 2});
    struct flush_status s;
    struct file *f[30];
    char name[16];
    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        f[i] = written(name, 1);
        room_look(); /* as the sampler does, and writers */
        flush_status(&s);
        ck_assert(s.flushed_bytes == 0 || (uint64_t)i << 20 >= s.high_bytes - (2 << 20));
    }
    UNTIL((flush_status(&s), !s.draining));
    UNTIL((flush_status(&s), s.pending_bytes <= s.low_bytes));
    usleep(300000);
    flush_status(&s);
    ck_assert_uint_le(s.pending_bytes, s.low_bytes);
    ck_assert_uint_gt(s.pending_bytes, s.low_bytes / 2); /* and no further */
    ck_assert(!dirty(f[0]) && dirty(f[29]));             /* oldest first */
    lull_end();
    for (int i = 0; i < 30; i++)
        shut(f[i]);
}
END_TEST

START_TEST(a_limit_bounds_the_flush)
{
    start_with((struct flush_config){.policy = FLUSH_IDLE, .limit = 16 << 20});
    struct file *f = written("f", 24);
    uint64_t began = boot_ms();
    ck_assert_int_eq(flush_file(f), 0); /* six pieces: the last one's turn is after 5/4 s */
    ck_assert_uint_ge(boot_ms() - began, 1200);
    ck_assert_uint_le(boot_ms() - began, 5000);
    lull_end();
    shut(f);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("flush_policies");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 100);
    tcase_add_test(t, immediate_waits_for_nothing);
    tcase_add_test(t, a_file_has_the_policy_that_it_is_given);
    tcase_add_test(t, of_age);
    tcase_add_test(t, from_the_high_mark_to_the_low_one);
    tcase_add_test(t, a_limit_bounds_the_flush);
    return run_case("flush_policies", t);
}
