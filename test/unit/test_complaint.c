/* test_complaint.c - a line a minute and source, and no more sources than there is room for. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "transport/complaint.h"

START_TEST(a_source_has_one_line_a_minute)
{
    char more[COMPLAINT_MORE];
    ck_assert(complaint_due("10.0.0.1", more));
    ck_assert_str_eq(more, "");
    for (unsigned i = 0; i < 1000; i++)
        ck_assert(!complaint_due("10.0.0.1", more));
    ck_assert(complaint_due("10.0.0.11", more));
    ck_assert(!complaint_due("10.0.0.1", more));
}
END_TEST

START_TEST(a_crowd_of_sources_shares_a_line)
{
    char more[COMPLAINT_MORE], who[32];
    unsigned lines = 0;
    for (unsigned i = 0; i < 10000; i++) {
        snprintf(who, sizeof(who), "10.1.%u.%u", i / 250, i % 250);
        lines += complaint_due(who, more);
    }
    ck_assert_uint_eq(lines, 33);
    ck_assert(!complaint_due("10.1.0.0", more));
}
END_TEST

START_TEST(long_names_are_cut_and_found_again)
{
    char more[COMPLAINT_MORE], who[300];
    for (unsigned i = 0; i < sizeof(who) - 1; i++)
        who[i] = 'x';
    who[sizeof(who) - 1] = 0;
    ck_assert(complaint_due(who, more));
    ck_assert(!complaint_due(who, more));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("complaint");
    TCase *t = tcase_create("complaint"); /* each test in a process of its own */
    tcase_add_test(t, a_source_has_one_line_a_minute);
    tcase_add_test(t, a_crowd_of_sources_shares_a_line);
    tcase_add_test(t, long_names_are_cut_and_found_again);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
