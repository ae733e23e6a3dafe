/* test_budget.c - who has the PFS: what is fetched ahead, or what is flushed. */
#include "placement/foresight/budget.h"

#include <check.h>

#include "placement/foresight/hint_files.h"
#include "placement/foresight/queue_parse.h"
#include "queue_body.h"
#include "suite.h"
#include "transport/base.h"

static struct body b;
static struct queue *q;
static unsigned calm, woken;

static void on_calm(void)
{
    calm++;
}

static void wake(void)
{
    woken++;
}

/* Two files of 1 MiB; the queue's reader reads 1 KiB a millisecond: so the second one is read in a second. */
static void setup(void)
{
    struct parsed_add a;
    int64_t first;
    log_open(NULL, LOG_LEVEL_ERROR, "test");
    hints_init(1u << 20);
    budget_start(wake);
    budget_on_calm(on_calm);
    calm = woken = 0;
    lock_take(&hints_lock);
    q = hints_queue_new();
    body_begin(&b, 2, 2, 2);
    body_path(&b, "near");
    body_path(&b, "far");
    for (uint32_t i = 0; i < 2; i++)
        body_target(&b, i, 0, 0);
    for (uint32_t i = 0; i < 2; i++)
        body_entry(&b, i);
    ck_assert_int_eq(queue_parse_add(b.bytes, b.len, 0, 0, &a), 0);
    ck_assert_int_eq(hints_add(q, &a, &first), 0);
    for (uint32_t i = 0; i < 2; i++) {
        hints_set_fid(q->target[i]->file, (struct fid){i + 1, 1});
        hints_admit(q->target[i], 1 << 20);
    }
    q->begun_ms = boot_ms() - 1000000;
    q->read_bytes = 1000000u << 10;
    lock_drop(&hints_lock);
}

static void teardown(void)
{
    budget_on_calm(NULL);
    lock_take(&hints_lock);
    hints_queue_end(q);
    hints_end();
    lock_drop(&hints_lock);
}

static bool may_fetch(unsigned i)
{
    lock_take(&hints_lock);
    bool may = budget_may_fetch(q->target[i]);
    lock_drop(&hints_lock);
    return may;
}

static bool begins(unsigned i)
{
    lock_take(&hints_lock);
    bool soon = budget_begins(q->target[i]);
    lock_drop(&hints_lock);
    return soon;
}

/* What has begun with this answer is all that is still fetched and read soon: its end is told. */
static void is_last(bool soon)
{
    ck_assert(budget_is_soon());
    ck_assert_uint_eq(calm, 0);
    budget_ends(soon);
    ck_assert(!budget_is_soon());
    ck_assert_uint_eq(calm, 1);
}

START_TEST(a_flush_in_a_lull_waits_for_what_is_read_soon)
{
    ck_assert(!budget_is_soon());
    bool soon = begins(0);
    ck_assert(soon && budget_is_soon());
    bool later = begins(1);
    ck_assert(!later);
    budget_ends(later);
    is_last(soon);
}
END_TEST

START_TEST(what_is_guessed_from_reads_is_read_soon)
{
    budget_guess_begins();
    ck_assert(budget_is_soon());
    bool soon = begins(0);
    budget_guess_ends();
    is_last(soon);
}
END_TEST

START_TEST(a_flush_that_presses_comes_before_what_is_read_later)
{
    ck_assert(may_fetch(0) && may_fetch(1));
    budget_flush_presses(true);
    ck_assert(may_fetch(0) && !may_fetch(1));
    ck_assert_uint_eq(woken, 0);
    budget_flush_presses(false);
    ck_assert(may_fetch(1));
    ck_assert_uint_eq(woken, 1);
}
END_TEST

START_TEST(a_files_distance_is_the_least_of_its_hints)
{
    uint64_t far = budget_distance((struct fid){2, 1});
    ck_assert(far > 900 && far < 1100);
    ck_assert_uint_eq(budget_distance((struct fid){1, 1}), 0);
    ck_assert_uint_eq(budget_distance((struct fid){3, 1}), UINT64_MAX);
    q->staged = true; /* of a stage nothing is read at any time */
    ck_assert_uint_eq(budget_distance((struct fid){2, 1}), UINT64_MAX);
    q->staged = false;
}
END_TEST

int main(void)
{
    Suite *s = suite_create("budget");
    TCase *t = add_case(s, "budget", setup, teardown, 30);
    tcase_add_test(t, a_flush_in_a_lull_waits_for_what_is_read_soon);
    tcase_add_test(t, what_is_guessed_from_reads_is_read_soon);
    tcase_add_test(t, a_flush_that_presses_comes_before_what_is_read_later);
    tcase_add_test(t, a_files_distance_is_the_least_of_its_hints);
    return run_suite(s);
}
