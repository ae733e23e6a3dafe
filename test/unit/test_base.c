/* test_base.c - the log's lines, sizes, names, clocks. */
#include "transport/base.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "suite.h"

static char log_path[] = "/tmp/eddy-test-base-XXXXXX";

static void make_log_file(void)
{
    int fd = mkstemp(log_path);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void remove_log_file(void)
{
    unlink(log_path);
    strcpy(log_path + strlen(log_path) - 6, "XXXXXX");
}

/* malloc'd, NUL-terminated */
static char *slurp(const char *path)
{
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    char *text = calloc(1, 4 << 20);
    size_t n = fread(text, 1, (4 << 20) - 1, f);
    text[n] = 0;
    fclose(f);
    return text;
}

static void assert_matches(const char *text, const char *pattern)
{
    regex_t re;
    ck_assert_int_eq(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), 0);
    int no = regexec(&re, text, 0, NULL, 0);
    regfree(&re);
    ck_assert_msg(!no, "\"%s\" does not match %s", text, pattern);
}

START_TEST(log_lines_in_a_file_have_time_node_and_level)
{
    ck_assert_int_eq(log_open(log_path, LOG_LEVEL_INFO, "node017"), 0);
    log_warn("flush failed: %s: kept", "a/b");
    char *text = slurp(log_path);
    assert_matches(text, "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z "
                         "eddyfs\\[node017\\]: warn: flush failed: a/b: kept\n$");
    free(text);
}
END_TEST

START_TEST(log_below_its_level_writes_nothing)
{
    ck_assert_int_eq(log_open(log_path, LOG_LEVEL_WARN, "n"), 0);
    log_info("not this");
    log_debug("nor this");
    log_error("this");
    char *text = slurp(log_path);
    ck_assert_ptr_null(strstr(text, "not this"));
    ck_assert_ptr_null(strstr(text, "nor this"));
    ck_assert_ptr_nonnull(strstr(text, "error: this\n"));
    free(text);
}
END_TEST

START_TEST(log_to_standard_error_has_no_time)
{
    int fd = open(log_path, O_WRONLY | O_TRUNC);
    ck_assert_int_ge(fd, 0);
    int saved = dup(STDERR_FILENO);
    dup2(fd, STDERR_FILENO);
    ck_assert_int_eq(log_open(NULL, LOG_LEVEL_DEBUG, "n1"), 0);
    log_debug("one");
    ck_assert_int_eq(log_open(NULL, LOG_LEVEL_DEBUG, NULL), 0);
    log_debug("two");
    dup2(saved, STDERR_FILENO);
    char *text = slurp(log_path);
    ck_assert_str_eq(text, "eddyfs[n1]: debug: one\neddyfs: debug: two\n");
    free(text);
    close(fd);
    close(saved);
}
END_TEST

START_TEST(log_lines_from_before_the_file_is_open_are_in_it)
{
    int fd = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY);
    dup2(null, STDERR_FILENO);
    ck_assert_int_eq(log_open(NULL, LOG_LEVEL_INFO, "n"), 0);
    log_info("not kept");
    log_keep(true);
    log_info("before");
    log_debug("below the level");
    ck_assert_int_eq(log_open(log_path, LOG_LEVEL_INFO, "n"), 0);
    log_info("after");
    dup2(fd, STDERR_FILENO);
    close(fd);
    close(null);
    char *text = slurp(log_path), *before = strstr(text, "Z eddyfs[n]: info: before\n");
    ck_assert_ptr_nonnull(before);
    ck_assert_ptr_nonnull(strstr(before, "Z eddyfs[n]: info: after\n"));
    ck_assert_ptr_null(strstr(text, "not kept"));
    ck_assert_ptr_null(strstr(text, "below"));
    ck_assert_ptr_null(strstr(strstr(before, "after"), "before"));
    free(text);
}
END_TEST

START_TEST(log_line_can_not_be_forged_by_a_file_name)
{
    ck_assert_int_eq(log_open(log_path, LOG_LEVEL_INFO, "n"), 0);
    log_info("opened: %s", "a\neddyfs[n]: error: b\x1b[2J");
    char *text = slurp(log_path);
    ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
    ck_assert_ptr_nonnull(strstr(text, "a?eddyfs[n]: error: b?[2J\n"));
    free(text);
}
END_TEST

START_TEST(log_cuts_a_line_that_is_too_long)
{
    static char big[20000];
    memset(big, 'x', sizeof(big) - 1);
    ck_assert_int_eq(log_open(log_path, LOG_LEVEL_INFO, "n"), 0);
    log_info("%s", big);
    log_info("next");
    char *text = slurp(log_path);
    char *newline = strchr(text, '\n');
    ck_assert_ptr_nonnull(newline);
    ck_assert_int_le(newline - text, 8192);
    ck_assert_int_gt(newline - text, 8000);
    ck_assert_ptr_nonnull(strstr(newline, "info: next\n"));
    free(text);
}
END_TEST

START_TEST(log_keeps_errno_and_knows_percent_m)
{
    ck_assert_int_eq(log_open(log_path, LOG_LEVEL_INFO, "n"), 0);
    errno = ENOSPC;
    log_info("%m");
    ck_assert_int_eq(errno, ENOSPC);
    char *text = slurp(log_path);
    ck_assert_ptr_nonnull(strstr(text, strerror(ENOSPC)));
    free(text);
}
END_TEST

START_TEST(log_open_of_an_impossible_path_fails_and_keeps_the_old_one)
{
    ck_assert_int_eq(log_open(log_path, LOG_LEVEL_INFO, "n"), 0);
    ck_assert_int_eq(log_open("/nonexistent/x/log", LOG_LEVEL_INFO, "n"), -ENOENT);
    log_info("still here");
    char *text = slurp(log_path);
    ck_assert_ptr_nonnull(strstr(text, "still here"));
    free(text);
}
END_TEST

#define WRITERS 8
#define LINES   500

static void *write_lines(void *arg)
{
    for (int i = 0; i < LINES; i++)
        log_info("writer %d line %d end", *(int *)arg, i);
    return NULL;
}

START_TEST(log_lines_of_many_threads_stay_whole)
{
    pthread_t t[WRITERS];
    int id[WRITERS];
    static char seen[WRITERS][LINES];
    ck_assert_int_eq(log_open(log_path, LOG_LEVEL_INFO, "n"), 0);
    for (int i = 0; i < WRITERS; i++) {
        id[i] = i;
        pthread_create(&t[i], NULL, write_lines, &id[i]);
    }
    for (int i = 0; i < 20; i++) /* and the target changes under them */
        ck_assert_int_eq(log_open(log_path, LOG_LEVEL_INFO, i % 2 ? "n" : "m"), 0);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(t[i], NULL);

    char *text = slurp(log_path);
    int lines = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        int w, l, end = 0;
        char *at = strstr(line, "info: writer ");
        ck_assert_ptr_nonnull(at);
        ck_assert_int_eq(sscanf(at, "info: writer %d line %d end%n", &w, &l, &end), 2);
        ck_assert_int_eq(at[end], 0);
        ck_assert_int_eq(seen[w][l]++, 0);
        lines++;
    }
    ck_assert_int_eq(lines, WRITERS * LINES);
    free(text);
}
END_TEST

START_TEST(log_level_names)
{
    enum log_level l;
    ck_assert_int_eq(log_level_parse("warn", &l), 0);
    ck_assert_int_eq(l, LOG_LEVEL_WARN);
    ck_assert_int_eq(log_level_parse("debug", &l), 0);
    ck_assert_int_eq(l, LOG_LEVEL_DEBUG);
    ck_assert_int_eq(log_level_parse("loud", &l), -EINVAL);
    ck_assert_int_eq(log_level_parse("", &l), -EINVAL);
}
END_TEST

START_TEST(log_every_is_true_once_per_interval)
{
    _Atomic uint64_t often = 0, seldom = 0;
    ck_assert(log_every(&seldom, 1000000));
    ck_assert(!log_every(&seldom, 1000000));
    ck_assert(log_every(&often, 20));
    uint64_t start = boot_ms();
    while (!log_every(&often, 20))
        ck_assert_uint_lt(boot_ms() - start, 10000);
    ck_assert_uint_ge(boot_ms() - start, 19);
}
END_TEST

START_TEST(die_logs_and_aborts)
{
    log_open("/dev/null", LOG_LEVEL_ERROR, "n");
    die("broken: %d", 1);
}
END_TEST

START_TEST(sizes_are_parsed_with_units_and_bounds)
{
    static const struct {
        const char *text;
        int err;
        uint64_t bytes;
    } cases[] = {
        {"0", 0, 0},
        {"1", 0, 1},
        {"64K", 0, 65536},
        {"1m", 0, 1 << 20},
        {"2G", 0, UINT64_C(2) << 30},
        {"3T", 0, UINT64_C(3) << 40},
        {"18446744073709551615", 0, UINT64_MAX},
        {"18446744073709551616", -ERANGE, 0},
        {"16777216T", -ERANGE, 0},
        {"99999999999999999999999K", -ERANGE, 0},
        {"", -EINVAL, 0},
        {"K", -EINVAL, 0},
        {"-1", -EINVAL, 0},
        {"+1", -EINVAL, 0},
        {" 1", -EINVAL, 0},
        {"1 ", -EINVAL, 0},
        {"1KB", -EINVAL, 0},
        {"1.5G", -EINVAL, 0},
        {"0x10", -EINVAL, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t bytes = 0;
        ck_assert_msg(size_parse(cases[i].text, &bytes) == cases[i].err, "%s", cases[i].text);
        ck_assert_uint_eq(bytes, cases[i].bytes);
    }
}
END_TEST

START_TEST(sizes_are_printed_with_one_digit)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},
        {1023, "1023 B"},
        {1024, "1.0 KiB"},
        {1536, "1.5 KiB"},
        {(1 << 20) - 1, "1.0 MiB"},
        {UINT64_C(3) << 29, "1.5 GiB"},
        {UINT64_MAX, "16.0 EiB"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char buf[16];
        ck_assert_ptr_eq(size_format(cases[i].bytes, buf, sizeof(buf)), buf);
        ck_assert_str_eq(buf, cases[i].text);
    }
}
END_TEST

START_TEST(plain_names)
{
    char name[70];
    memset(name, 'a', sizeof(name));
    name[64] = 0;
    ck_assert(name_is_plain(name));
    name[64] = 'a';
    name[65] = 0;
    ck_assert(!name_is_plain(name));
    ck_assert(name_is_plain("job-17.step_0"));
    ck_assert(!name_is_plain(""));
    ck_assert(!name_is_plain("."));
    ck_assert(!name_is_plain(".hidden"));
    ck_assert(!name_is_plain("a/b"));
    ck_assert(!name_is_plain("a b"));
    ck_assert(!name_is_plain("a\n"));
    ck_assert(!name_is_plain("\xc3\xa4"));
}
END_TEST

START_TEST(random_bytes_differ)
{
    uint8_t a[32], b[32];
    memset(a, 0, sizeof(a));
    memset(b, 0, sizeof(b));
    ck_assert_int_eq(random_bytes(a, sizeof(a)), 0);
    ck_assert_int_eq(random_bytes(b, sizeof(b)), 0);
    ck_assert(memcmp(a, b, sizeof(a)));
    ck_assert_uint_ne(random_u64(), random_u64());
}
END_TEST

START_TEST(clocks_run_and_agree)
{
    uint64_t ns = boot_ns(), ms = boot_ms();
    ck_assert_uint_ge(ms, ns / 1000000);
    ck_assert_uint_ge(boot_ns(), ns);
    struct stat st;
    int fd = open(log_path, O_WRONLY);
    ck_assert_int_eq(write(fd, "x", 1), 1);
    fstat(fd, &st);
    close(fd);
    int64_t written = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
    ck_assert_int_lt(llabs(real_ns() - written), INT64_C(10000000000));
}
END_TEST

START_TEST(counters_count)
{
    count(flushed_bytes, 5);
    count(flushed_bytes, 7);
    ck_assert_uint_eq(counted(flushed_bytes), 12);
    ck_assert_uint_eq(counted(flushed_files), 0);
}
END_TEST

START_TEST(out_of_memory_aborts)
{
    log_open("/dev/null", LOG_LEVEL_ERROR, "n");
    xcalloc(SIZE_MAX / 2, 4);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("base");
    TCase *t = tcase_create("base");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, make_log_file, remove_log_file);
    tcase_add_test(t, log_lines_in_a_file_have_time_node_and_level);
    tcase_add_test(t, log_below_its_level_writes_nothing);
    tcase_add_test(t, log_to_standard_error_has_no_time);
    tcase_add_test(t, log_lines_from_before_the_file_is_open_are_in_it);
    tcase_add_test(t, log_line_can_not_be_forged_by_a_file_name);
    tcase_add_test(t, log_cuts_a_line_that_is_too_long);
    tcase_add_test(t, log_keeps_errno_and_knows_percent_m);
    tcase_add_test(t, log_open_of_an_impossible_path_fails_and_keeps_the_old_one);
    tcase_add_test(t, log_lines_of_many_threads_stay_whole);
    tcase_add_test(t, log_level_names);
    tcase_add_test(t, log_every_is_true_once_per_interval);
    tcase_add_test(t, sizes_are_parsed_with_units_and_bounds);
    tcase_add_test(t, sizes_are_printed_with_one_digit);
    tcase_add_test(t, plain_names);
    tcase_add_test(t, random_bytes_differ);
    tcase_add_test(t, clocks_run_and_agree);
    tcase_add_test(t, counters_count);
    suite_add_tcase(s, t);
    TCase *aborts = tcase_create("aborts"); /* no files: an abort skips the clean-up */
    tcase_add_test_raise_signal(aborts, die_logs_and_aborts, SIGABRT);
    tcase_add_test_raise_signal(aborts, out_of_memory_aborts, SIGABRT);
    suite_add_tcase(s, aborts);
    return run_suite(s);
}
