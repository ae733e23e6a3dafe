/* test_next.c - which files are given out to be looked at before their reader opens them. */
#include "placement/foresight/hint_files.h"
#include "placement/foresight/next.h"
#include "placement/foresight/queue_parse.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "queue_body.h"
#include "suite.h"
#include "transport/base.h"

#define FILES   300u
#define TURN_MS 3600000u /* longer than the test */
#define AT_ONCE 64u      /* as in next.c */

static struct body b;
static struct queue *q;
static unsigned said;

static void say(void)
{
    said++;
}

/* FILES files that are all here, hinted once. */
static void setup(void)
{
    struct parsed_add a;
    int64_t first;
    char name[16];
    log_open(NULL, LOG_LEVEL_ERROR, "test");
    hints_init(1u << 20);
    next_on_due(say, TURN_MS);
    said = 0;
    lock_take(&hints_lock);
    q = hints_queue_new();
    body_begin(&b, FILES, FILES, FILES);
    for (uint32_t i = 0; i < FILES; i++) {
        snprintf(name, sizeof(name), "f%u", i);
        body_path(&b, name);
    }
    for (uint32_t i = 0; i < FILES; i++)
        body_target(&b, i, 0, 0);
    for (uint32_t i = 0; i < FILES; i++)
        body_entry(&b, i);
    ck_assert_int_eq(queue_parse_add(b.bytes, b.len, 0, 0, &a), 0);
    ck_assert_int_eq(hints_add(q, &a, &first), 0);
    for (uint32_t i = 0; i < FILES; i++) {
        hints_admit(q->target[i], 1000);
        hints_set_life(q->target[i], LIFE_AHEAD);
    }
    q->started = true;
    q->turn_ms = boot_ms();
}

static void teardown(void)
{
    next_on_due(NULL, 0);
    lock_take(&hints_lock);
    hints_queue_end(q);
    hints_end();
    lock_drop(&hints_lock);
}

/* Of the file's number; the lock is held. */
static void open_file(uint32_t i)
{
    next_opened(q, i);
    hints_opened(q->target[i]);
}

/* Marks what is given out, and returns how many there were. */
static unsigned give_out(unsigned given[FILES])
{
    char *paths[AT_ONCE];
    lock_drop(&hints_lock);
    unsigned n = next_give(paths, AT_ONCE);
    for (unsigned k = 0; k < n; k++) {
        given[atoi(paths[k] + 1)]++;
        free(paths[k]);
    }
    lock_take(&hints_lock);
    return n;
}

START_TEST(each_file_is_given_out_once_and_not_long_before_its_open)
{
    unsigned given[FILES] = {0}, portions = 0;
    for (uint32_t i = 0; i < FILES; i++) {
        ck_assert_uint_eq(given[i], i > 1);
        open_file(i);
        portions += next_is_due() && give_out(given);
        ck_assert(!next_is_due());
        for (uint32_t k = i + 1 + AT_ONCE; k < FILES; k++)
            ck_assert_uint_eq(given[k], 0);
    }
    ck_assert_uint_lt(portions, FILES / 8); /* not one for each open */
    lock_drop(&hints_lock);
}
END_TEST

START_TEST(what_is_not_here_or_read_already_is_not_given_out)
{
    unsigned given[FILES] = {0};
    hints_set_life(q->target[3], LIFE_READING);
    hints_done(q, 4, false);
    hints_unadmit(q->target[5]);
    for (uint32_t i = 0; i < 20; i++)
        next_opened(q, 0); /* a quick reader */
    ck_assert(next_is_due());
    ck_assert_uint_eq(give_out(given), 17); /* of 20 */
    ck_assert_uint_eq(given[3] + given[4] + given[5], 0);
    ck_assert_uint_eq(given[1] + given[2] + given[6] + given[20], 4);
    lock_drop(&hints_lock);
}
END_TEST

START_TEST(for_a_slow_reader_nothing_is_given_out)
{
    for (uint32_t i = 0; i < 10; i++) {
        q->turn_ms = boot_ms() - 3 * (uint64_t)TURN_MS;
        open_file(i);
        ck_assert(!next_is_due());
    }
    /* two turns, one after the other: the pace of the first one counts in the second one */
    q->turn_ms = boot_ms();
    open_file(10);
    open_file(11);
    q->turn_ms = boot_ms() - TURN_MS;
    open_file(12);
    ck_assert_uint_eq(q->pace, 3);
    ck_assert(next_is_due());
    lock_drop(&hints_lock);
}
END_TEST

START_TEST(nobody_is_told_of_a_stage_or_when_nobody_asks)
{
    q->staged = true;
    for (uint32_t i = 0; i < 20; i++)
        next_opened(q, i);
    ck_assert(!next_is_due());
    q->staged = false;
    ck_assert(next_is_due());
    lock_drop(&hints_lock);
    next_say();
    ck_assert_uint_eq(said, 1);
    next_on_due(NULL, 0);
    next_say();
    ck_assert_uint_eq(said, 1);
    lock_take(&hints_lock);
    ck_assert(!next_is_due());
    lock_drop(&hints_lock);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("next");
    TCase *t = add_case(s, "next", setup, teardown, 30);
    tcase_add_test(t, each_file_is_given_out_once_and_not_long_before_its_open);
    tcase_add_test(t, what_is_not_here_or_read_already_is_not_given_out);
    tcase_add_test(t, for_a_slow_reader_nothing_is_given_out);
    tcase_add_test(t, nobody_is_told_of_a_stage_or_when_nobody_asks);
    return run_suite(s);
}
