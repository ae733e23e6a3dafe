/* test_suggest.c - what a mistyped option may have meant. */
#include "transport/suggest.h"

#include "suite.h"
#include "transport/base.h"

static const char *const names[] = {"cache-dir", "cache-size", "flush", "flush-wait", "log", "log-level", "node"};

static const char *meant(const char *word)
{
    const char *name = suggest(word, names, ARRAY_LEN(names));
    return name ? name : "none";
}

START_TEST(the_nearest_name_is_meant)
{
    ck_assert_str_eq(meant("cache-siz"), "cache-size");
    ck_assert_str_eq(meant("cache_size"), "cache-size");
    ck_assert_str_eq(meant("cahce-dir"), "cache-dir");
    ck_assert_str_eq(meant("nod"), "node");
    ck_assert_str_eq(meant("loglevel"), "log-level");
    ck_assert_str_eq(meant("flush-policy"), "flush");
    ck_assert_str_eq(meant("flush-wiat"), "flush-wait");
}
END_TEST

START_TEST(nothing_is_meant_by_what_is_far_from_all)
{
    ck_assert_str_eq(meant("banana"), "none");
    ck_assert_str_eq(meant("x"), "none");
    ck_assert_str_eq(meant(""), "none");
    ck_assert_str_eq(meant("a-word-that-is-longer-than-any-name-that-any-program-has"), "none");
}
END_TEST

static const struct option options[] = {
    {"json", no_argument, NULL, 'j'}, {"timeout", required_argument, NULL, 't'}, {"help", no_argument, NULL, 'h'}, {0}};

/* What is wrong with this one; "" if nothing is. */
static const char *wrong(const char *word)
{
    static char why[SUGGEST_WHY];
    char text[64], *argv[] = {"eddy", text, NULL};
    snprintf(text, sizeof(text), "%s", word);
    optind = 0;
    return option_next(2, argv, "h", options, why) == '?' ? why : "";
}

START_TEST(an_option_that_is_wrong_is_named)
{
    ck_assert_str_eq(wrong("--json"), "");
    ck_assert_str_eq(wrong("--jsn"), "--jsn: no such option: did you mean --json?");
    ck_assert_str_eq(wrong("--timeoot=3"), "--timeoot=3: no such option: did you mean --timeout?");
    ck_assert_str_eq(wrong("--json=yes"), "--json=yes: takes no value");
    ck_assert_str_eq(wrong("--timeout"), "--timeout: needs a value");
    ck_assert_str_eq(wrong("--banana"), "--banana: no such option");
    ck_assert_str_eq(wrong("-x"), "-x: no such option");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("suggest");
    tcase_add_test(t, the_nearest_name_is_meant);
    tcase_add_test(t, nothing_is_meant_by_what_is_far_from_all);
    tcase_add_test(t, an_option_that_is_wrong_is_named);
    return run_case("suggest", t);
}
