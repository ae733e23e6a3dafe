/* checks.c - a program of checks that ends in the way its argument says: what a run of tests is to tell
 * of such a program is shown with it (cluster/test_each_check_is_counted_as_it_ended.sh). */
#include "../unit/suite.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static const char *way;

static bool is(const char *what)
{
    return strcmp(way, what) == 0;
}

START_TEST(passes)
{
    ck_assert(way);
}
END_TEST

START_TEST(cannot_be_done)
{
    NOT_CHECKED("it needs a # and more");
}
END_TEST

START_TEST(is_as_the_way_says)
{
    if (is("kills"))
        raise(SIGSEGV);
    ck_assert(!is("fails"));
}
END_TEST

/* In the process of all checks, before the last of them. */
static void before_the_last(void)
{
    if (is("crashes"))
        abort();
    if (is("leaves"))
        exit(EXIT_SUCCESS);
    if (is("hangs"))
        pause();
}

int main(int argc, char **argv)
{
    (void)argc;
    way = argv[1];
    Suite *s = suite_create("checks");
    TCase *first = tcase_create("first: of two"), *last = tcase_create("last");
    tcase_add_test(first, passes);
    tcase_add_test(first, cannot_be_done);
    tcase_add_unchecked_fixture(last, before_the_last, NULL);
    tcase_add_test(last, is_as_the_way_says);
    suite_add_tcase(s, first);
    suite_add_tcase(s, last);
    int code = run_suite(s);
    return is("leaks") ? 23 : code; /* as LeakSanitizer ends a program */
}
