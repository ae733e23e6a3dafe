/* test_decide.c - the table of when a dirty file is written (docs/flush.md). */
#include "flush/decide.h"
#include "transport/base.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"

#define AGE 600000 /* --dirty-age */

static const struct situation quiet = {.lull_ms = NEVER, .most_dirty_ms = AGE};

static void expect(struct situation s, enum flush_policy p, enum flush_why why, uint64_t wait)
{
    uint64_t got_wait = 12345;
    s.policy = p;
    enum flush_why got = flush_decide(&s, &got_wait);
    ck_assert_msg(got == why && got_wait == wait, "%s: %d after %llu ms, expected %d after %llu ms",
                  flush_policy_name(p), got, (unsigned long long)got_wait, why,
                  (unsigned long long)wait);
}

/* For the four policies in their order. */
static void expect_all(struct situation s, enum flush_why idle, enum flush_why immediate,
                       enum flush_why close, enum flush_why end)
{
    const enum flush_why why[] = {idle, immediate, close, end};
    for (unsigned p = 0; p < FLUSH_POLICIES; p++) {
        uint64_t wait;
        s.policy = (enum flush_policy)p;
        enum flush_why got = flush_decide(&s, &wait);
        ck_assert_msg(got == why[p], "%s: %d, expected %d", flush_policy_name(s.policy), got,
                      why[p]);
        ck_assert((got == WHY_NOT) == (wait != 0));
    }
}

START_TEST(in_lulls)
{
    struct situation s = quiet;
    expect_all(s, WHY_NOT, WHY_POLICY, WHY_NOT, WHY_NOT);
    s.lull_ms = 0;
    expect_all(s, WHY_LULL, WHY_POLICY, WHY_NOT, WHY_NOT);
}
END_TEST

START_TEST(by_age)
{
    struct situation s = quiet;
    s.dirty_ms = AGE - 1;
    expect_all(s, WHY_NOT, WHY_POLICY, WHY_POLICY, WHY_NOT);
    s.dirty_ms = AGE;
    expect_all(s, WHY_AGE, WHY_POLICY, WHY_POLICY, WHY_NOT);
    s.lull_ms = 0; /* better: at idle priority */
    expect_all(s, WHY_LULL, WHY_POLICY, WHY_POLICY, WHY_NOT);
    s.lull_ms = NEVER;
    s.dirty_ms = UINT64_MAX - 1;
    s.most_dirty_ms = NEVER;
    expect_all(s, WHY_NOT, WHY_POLICY, WHY_POLICY, WHY_NOT);
}
END_TEST

START_TEST(ahead_of_the_close)
{
    struct situation s = quiet;
    s.dirty_ms = 9;
    expect(s, FLUSH_CLOSE, WHY_NOT, 1);
    s.dirty_ms = 10;
    expect(s, FLUSH_CLOSE, WHY_POLICY, 0);
    s.most_dirty_ms = 5;
    s.dirty_ms = 5;
    expect(s, FLUSH_CLOSE, WHY_POLICY, 0);
}
END_TEST

START_TEST(by_the_marks)
{
    struct situation s = quiet;
    s.level = MARK_DRAIN;
    expect_all(s, WHY_DRAIN, WHY_POLICY, WHY_DRAIN, WHY_DRAIN);
    s.lull_ms = 0; /* no need to go slowly */
    expect_all(s, WHY_LULL, WHY_POLICY, WHY_DRAIN, WHY_DRAIN);
    s.level = MARK_HIGH;
    expect_all(s, WHY_HIGH, WHY_HIGH, WHY_HIGH, WHY_HIGH);
    s.lull_ms = NEVER;
    expect_all(s, WHY_HIGH, WHY_HIGH, WHY_HIGH, WHY_HIGH);
}
END_TEST

START_TEST(when_asked)
{
    struct situation s = quiet;
    s.asked = true;
    expect_all(s, WHY_ASKED, WHY_ASKED, WHY_ASKED, WHY_ASKED);
    s.retry_ms = 60000; /* who asks does not wait for the back-off */
    s.level = MARK_HIGH;
    expect_all(s, WHY_ASKED, WHY_ASKED, WHY_ASKED, WHY_ASKED);
}
END_TEST

START_TEST(after_an_error)
{
    struct situation s = quiet;
    s.retry_ms = 2000;
    s.lull_ms = 0;
    s.level = MARK_HIGH;
    s.dirty_ms = AGE;
    for (unsigned p = 0; p < FLUSH_POLICIES; p++)
        expect(s, (enum flush_policy)p, WHY_NOT, 2000);
}
END_TEST

START_TEST(when_to_look_again)
{
    struct situation s = quiet;
    s.lull_ms = 700;
    expect(s, FLUSH_IDLE, WHY_NOT, 700);
    expect(s, FLUSH_CLOSE, WHY_NOT, 10);
    expect(s, FLUSH_END, WHY_NOT, NEVER);
    s.dirty_ms = AGE - 300; /* sooner than the lull */
    expect(s, FLUSH_IDLE, WHY_NOT, 300);
    expect(s, FLUSH_END, WHY_NOT, NEVER);
    s.lull_ms = NEVER;
    expect(s, FLUSH_IDLE, WHY_NOT, 300);
    s.most_dirty_ms = NEVER;
    expect(s, FLUSH_IDLE, WHY_NOT, NEVER);
}
END_TEST

START_TEST(names)
{
    static const char *const names[] = {"idle", "immediate", "close", "end"};
    enum flush_policy p;
    for (unsigned i = 0; i < FLUSH_POLICIES; i++) {
        ck_assert_int_eq(flush_policy_parse(names[i], strlen(names[i]), &p), 0);
        ck_assert_uint_eq(p, i);
        ck_assert_str_eq(flush_policy_name(p), names[i]);
    }
    ck_assert_int_eq(flush_policy_parse("end\0", 4, &p), -EINVAL);
    ck_assert_int_eq(flush_policy_parse("idle", 3, &p), -EINVAL);
    ck_assert_int_eq(flush_policy_parse("Idle", 4, &p), -EINVAL);
    ck_assert_int_eq(flush_policy_parse("", 0, &p), -EINVAL);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("decide");
    tcase_add_test(t, in_lulls);
    tcase_add_test(t, by_age);
    tcase_add_test(t, ahead_of_the_close);
    tcase_add_test(t, by_the_marks);
    tcase_add_test(t, when_asked);
    tcase_add_test(t, after_an_error);
    tcase_add_test(t, when_to_look_again);
    tcase_add_test(t, names);
    return run_case("decide", t);
}
