/* suite.h - how the main() of each program of checks runs them and ends. */
#ifndef EDDY_TEST_SUITE_H
#define EDDY_TEST_SUITE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends a check that this machine or user cannot do.  Check counts it as passed; test/harness/tap.py,
 * through which meson test runs the program, hears of it and counts it as skipped for that reason. */
#define NOT_CHECKED(why)                                                                           \
    do {                                                                                           \
        printf("not checked: %s: %s\n", __func__, why);                                            \
        return;                                                                                    \
    } while (0)

/* REPEATS(n): how many rounds to make of what goes wrong only by chance. A sanitizer makes a round many times as long, and
 * sees in any round what it is for, so a quarter of them do. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED  1
#define REPEATS(n) (((n) + 3) / 4)
#else
#define SANITIZED  0
#define REPEATS(n) (n)
#endif

/* A case of the suite with what goes before and after each of its tests; seconds: that one may
 * take. */
static inline TCase *add_case(Suite *s, const char *name, SFun before, SFun after, double seconds)
{
    TCase *t = tcase_create(name);
    tcase_add_checked_fixture(t, before, after);
    tcase_set_timeout(t, seconds);
    suite_add_tcase(s, t);
    return t;
}

/* Runs it and frees it.  Returns main()'s exit code.  CK_VERBOSITY is heeded (check's manual). */
static inline int run_suite(Suite *s)
{
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* The same for a suite of one case. */
static inline int run_case(const char *name, TCase *t)
{
    Suite *s = suite_create(name);
    suite_add_tcase(s, t);
    return run_suite(s);
}

#endif
