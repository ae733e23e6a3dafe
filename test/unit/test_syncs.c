/* test_syncs.c - of syncs beside each other Linux tells one that writing back failed: nobody believes
 * what it may have missed. */
#include "gate.h"
#include "suite.h"

#include <errno.h>

#include "placement/store/syncs.h"

static struct syncs syncs;
static struct sync_turn mine, others;
static int result;

static void setup(void)
{
    gate_init();
    syncs_init(&syncs);
}

static void teardown(void)
{
    syncs_destroy(&syncs);
}

static void *end_mine(void *arg)
{
    gate_add(1);
    result = sync_end(&syncs, &mine, 0);
    return arg;
}

static bool has_ended(const struct sync_turn *t)
{
    lock_take(&syncs.lock);
    bool ended = t->ended;
    lock_drop(&syncs.lock);
    return ended;
}

/* One that succeeded ends beside another one, which ends with err. */
static int end_beside(int err)
{
    pthread_t t;
    sync_begin(&syncs, &others);
    sync_begin(&syncs, &mine);
    ck_assert_int_eq(pthread_create(&t, NULL, end_mine, NULL), 0);
    gate_wait(1);
    while (!has_ended(&mine))
        sched_yield();
    ck_assert_int_eq(sync_end(&syncs, &others, err), err);
    pthread_join(t, NULL);
    return result;
}

START_TEST(who_succeeded_beside_a_failure_has_failed)
{
    ck_assert_int_eq(end_beside(-EIO), -EIO);
    ck_assert_int_eq(syncs_failed(&syncs), -EIO);
}
END_TEST

START_TEST(who_succeeded_beside_a_success_has_succeeded)
{
    ck_assert_int_eq(end_beside(0), 0);
    ck_assert_int_eq(syncs_failed(&syncs), 0);
}
END_TEST

START_TEST(who_began_before_a_failure_that_has_ended_has_failed)
{
    sync_begin(&syncs, &mine);
    sync_begin(&syncs, &others);
    ck_assert_int_eq(sync_end(&syncs, &others, -EIO), -EIO);
    ck_assert_int_eq(sync_end(&syncs, &mine, 0), -EIO);
}
END_TEST

START_TEST(who_began_later_does_not_wait)
{
    sync_begin(&syncs, &mine);
    ck_assert_int_eq(sync_end(&syncs, &mine, 0), 0);
    sync_begin(&syncs, &others);
    ck_assert_int_eq(sync_end(&syncs, &others, 0), 0);
}
END_TEST

START_TEST(a_failure_is_made_good_by_a_sync_of_all_that_was_stored_again)
{
    sync_begin(&syncs, &mine);
    sync_end(&syncs, &mine, -EIO);
    sync_begin(&syncs, &mine);
    ck_assert_int_eq(sync_end(&syncs, &mine, 0), 0);
    ck_assert_int_eq(syncs_failed(&syncs), -EIO);
    sync_begin(&syncs, &mine);
    ck_assert_int_eq(sync_end_of_all(&syncs, &mine, -ENOSPC), -ENOSPC);
    ck_assert_int_eq(syncs_failed(&syncs), -ENOSPC);
    sync_begin(&syncs, &mine);
    ck_assert_int_eq(sync_end_of_all(&syncs, &mine, 0), 0);
    ck_assert_int_eq(syncs_failed(&syncs), 0);
}
END_TEST

START_TEST(a_failure_while_all_is_stored_again_is_not_made_good)
{
    sync_begin(&syncs, &mine);
    sync_begin(&syncs, &others);
    sync_end(&syncs, &others, -EIO);
    ck_assert_int_eq(sync_end_of_all(&syncs, &mine, 0), -EIO);
    ck_assert_int_eq(syncs_failed(&syncs), -EIO);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("syncs");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, who_succeeded_beside_a_failure_has_failed);
    tcase_add_test(t, who_succeeded_beside_a_success_has_succeeded);
    tcase_add_test(t, who_began_before_a_failure_that_has_ended_has_failed);
    tcase_add_test(t, who_began_later_does_not_wait);
    tcase_add_test(t, a_failure_is_made_good_by_a_sync_of_all_that_was_stored_again);
    tcase_add_test(t, a_failure_while_all_is_stored_again_is_not_made_good);
    return run_case("syncs", t);
}
