/* test_config.c - configuration files and the environment: what is read of them, what counts, what is refused and how. */
#include <check.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/daemon/config_file.h"
#include "fs/daemon/option_table.h"
#include "fs/daemon/options.h"
#include "fs/mount.h"
#include "fs/settings.h"
#include "suite.h"

/* Options live as long as the program, which parses them once: no leaks. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return 1;
}

void mount_option(const char *opt)
{
    (void)opt;
}

static char top[64], file[128], said[8192], shown[8192];
static struct options o;

static void make_top(void)
{
    strcpy(top, "/tmp/eddy-test-config-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(top));
    snprintf(file, sizeof(file), "%s/eddyfs.conf", top);
    setenv("XDG_CONFIG_HOME", top, 1);
    for (size_t i = 0; i < option_count; i++) {
        char env[OPTION_ENV_MAX];
        unsetenv(option_env(&option_table[i], env));
    }
    unsetenv("SLURM_JOB_ID");
}

static void remove_top(void)
{
    unlink(file);
    rmdir(top);
}

static void write_config(const char *text)
{
    FILE *f = fopen(file, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
    ck_assert_int_eq(chmod(file, 0600), 0);
}

/* What fn writes to a stream. */
static int catch(int fd, FILE *stream, char *text, size_t size, int (*fn)(void *arg), void *arg)
{
    FILE *to = tmpfile();
    fflush(stream);
    int old = dup(fd);
    dup2(fileno(to), fd);
    int code = fn(arg);
    fflush(stream);
    dup2(old, fd);
    close(old);
    rewind(to);
    text[fread(text, 1, size - 1, to)] = 0;
    fclose(to);
    return code;
}

static int parse_now(void *arg)
{
    char **words = arg;
    int argc = 1;
    char *argv[16] = {"eddyfs"};
    for (; words[argc - 1]; argc++)
        argv[argc] = words[argc - 1];
    optind = 0;
    return options_parse(argc, argv, &o);
}

static int show_now(void *arg)
{
    (void)arg;
    options_show_config();
    return 0;
}

#define parse(...) catch(STDERR_FILENO, stderr, said, sizeof(said), parse_now, (char *[]){__VA_ARGS__, NULL})
#define show()     catch(STDOUT_FILENO, stdout, shown, sizeof(shown), show_now, NULL)

static void ck_says(const char *what)
{
    ck_assert_msg(strstr(said, what), "\"%s\" is not in: %s", what, said);
}

static void ck_shows(const char *name, const char *value, const char *from)
{
    char line[512];
    snprintf(line, sizeof(line), "%-17s = %-24s # %s\n", name, value, from);
    ck_assert_msg(strstr(shown, line), "no line %s in: %s", line, shown);
}

START_TEST(the_order_is_command_line_environment_file)
{
    char from[256];
    write_config("memory = 64M\nflush = end\n  cache-size= 10G  \n; a comment\n# another\nfsync =pfs\n");
    setenv("EDDY_FLUSH", "close", 1);
    setenv("EDDY_CACHE_SIZE", "20G", 1);
    setenv("EDDY_NODE", "", 1); /* as none */
    ck_assert_int_eq(parse("--cache-size", "30G", "/pfs", "/mnt/a"), 0);
    ck_assert_uint_eq(settings.memory, 64u << 20);
    ck_assert_uint_eq(o.flush.policy, FLUSH_CLOSE);
    ck_assert_uint_eq(settings.cache_size, 30ull << 30);
    ck_assert(settings.fsync_pfs);
    show();
    snprintf(from, sizeof(from), "%s:1", file);
    ck_shows("memory", "64M", from);
    ck_shows("flush", "close", "$EDDY_FLUSH");
    ck_shows("cache-size", "30G", "command line");
    ck_shows("lease", "4", "default");
}
END_TEST

START_TEST(the_longest_section_that_fits_counts)
{
    write_config("wait-nodes = 2\n[/pfs/a/b]\nwait-nodes = 4\n[/pfs/a]\nwait-nodes = 3\n[/pfs/ab]\nwait-nodes = 5\n[/pfs/c/]\nwait-nodes=6\n");
    ck_assert_int_eq(parse("/pfs", "/mnt/a"), 0);
    ck_assert_uint_eq(settings.wait_nodes, 2);
    ck_assert_int_eq(parse("/pfs/a", "/mnt/a"), 0);
    ck_assert_uint_eq(settings.wait_nodes, 3);
    ck_assert_int_eq(parse("/pfs/a/b/c", "/mnt/a"), 0);
    ck_assert_uint_eq(settings.wait_nodes, 4);
    ck_assert_int_eq(parse("/pfs/c", "/mnt/a"), 0);
    ck_assert_uint_eq(settings.wait_nodes, 6);
}
END_TEST

START_TEST(yes_and_no_can_be_taken_back)
{
    write_config("no-passthrough = yes\nsupervise = off\n");
    ck_assert_int_eq(parse("/pfs", "/mnt/a"), 0);
    ck_assert(!settings.passthrough && !settings.supervise);
    setenv("EDDY_PASSTHROUGH", "yes", 1);
    ck_assert_int_eq(parse("--supervise", "/pfs", "/mnt/a"), 0);
    ck_assert(settings.passthrough && settings.supervise);
    ck_assert_int_eq(parse("--no-passthrough", "/pfs", "/mnt/a"), 0);
    ck_assert(!settings.passthrough);
    setenv("EDDY_SUPERVISE", "maybe", 1);
    ck_assert_int_ne(parse("/pfs", "/mnt/a"), 0);
    ck_says("$EDDY_SUPERVISE: --supervise maybe: give yes or no");
}
END_TEST

START_TEST(options_that_repeat_come_from_one_place)
{
    write_config("immutable = a\nimmutable = b c\n");
    ck_assert_int_eq(parse("/pfs", "/mnt/a"), 0);
    ck_assert_uint_eq(settings.nimmutable, 2);
    ck_assert_str_eq(settings.immutable[1], "b c");
    ck_assert_int_eq(parse("--immutable", "d", "/pfs", "/mnt/a"), 0);
    ck_assert_uint_eq(settings.nimmutable, 1);
    ck_assert_str_eq(settings.immutable[0], "d");
}
END_TEST

START_TEST(mistakes_are_told_with_file_line_and_what_is_meant)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"memory = 64M\n\ncach-size = 1G\n", "eddyfs.conf:3: cach-size: no such option: did you mean cache-size?"},
        {"[/elsewhere]\nxyzzy = 1\n", "eddyfs.conf:2: xyzzy: no such option\n"},
        {"cache-size = 1X\n", "eddyfs.conf:1: --cache-size 1X: give a size"},
        {"flush\n", "eddyfs.conf:1: flush: is no setting: write name = value"},
        {"= 3\n", "eddyfs.conf:1: has no name"},
        {"flush =  \n", "eddyfs.conf:1: flush: has no value"},
        {"[/pfs\n", "eddyfs.conf:1: a section's line ends with ]"},
        {"[pfs]\n", "eddyfs.conf:1: [pfs]: a section is named by the absolute path"},
        {"user = root\n", "eddyfs.conf:1: user: can be given on the command line only"},
        {"fixed flush = end\n", "eddyfs.conf:1: flush: only the site's file"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        write_config(bad[i].text);
        ck_assert_int_ne(parse("/pfs", "/mnt/a"), 0);
        ck_says(bad[i].says);
    }
}
END_TEST

START_TEST(files_that_others_could_have_written_are_refused)
{
    write_config("memory = 64M\n");
    ck_assert_int_eq(chmod(file, 0620), 0);
    ck_assert_int_ne(parse("/pfs", "/mnt/a"), 0);
    ck_says("others can write to it (mode 0620)");
    ck_assert_int_eq(unlink(file), 0);
    ck_assert_int_eq(mkfifo(file, 0600), 0); /* and does not hang */
    ck_assert_int_ne(parse("/pfs", "/mnt/a"), 0);
    ck_says("is no regular file");
    if (geteuid())
        NOT_CHECKED("needs root to give one away");
    unlink(file);
    write_config("memory = 64M\n");
    ck_assert_int_eq(chown(file, 12345, (gid_t)-1), 0);
    ck_assert_int_ne(parse("/pfs", "/mnt/a"), 0);
    ck_says("belongs to user 12345");
}
END_TEST

START_TEST(variables_that_look_like_options_are_told)
{
    setenv("EDDY_CACHESIZE", "1G", 1);
    setenv("EDDY_BUILD", "/somewhere", 1);
    setenv("EDDY_COMPLETELY_DIFFERENT", "1", 1);
    ck_assert_int_eq(parse("/pfs", "/mnt/a"), 0);
    show();
    ck_assert_ptr_nonnull(strstr(shown, "# $EDDY_CACHESIZE: no such option: did you mean EDDY_CACHE_SIZE?"));
    ck_assert_ptr_null(strstr(shown, "EDDY_BUILD"));
    ck_assert_ptr_null(strstr(shown, "DIFFERENT"));
    unsetenv("EDDY_CACHESIZE");
}
END_TEST

START_TEST(without_directories_the_configuration_can_be_shown)
{
    char from[256];
    write_config("memory = 64M\n[/pfs]\nmemory = 128M\n");
    ck_assert_int_eq(parse("--show-config"), 0);
    ck_assert(o.show_config);
    show();
    snprintf(from, sizeof(from), "%s:1", file);
    ck_shows("memory", "64M", from);
    ck_assert_int_ne(parse("--show-config", "/pfs"), 0);
}
END_TEST

static int count_one(void *arg, const struct config_line *l)
{
    ck_assert(*l->name && *l->value);
    ++*(unsigned *)arg;
    return 0;
}

START_TEST(a_file_that_is_no_text_is_refused)
{
    static const char *const none[] = {NULL};
    struct config_error e;
    unsigned n = 0;
    ck_assert_int_eq(config_parse("flush = end\r\nfsync = pfs", 24, none, count_one, &n, &e), 0);
    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(config_parse("flush = e\0d\n", 12, none, count_one, &n, &e), -EPROTO);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("config");
    TCase *t = tcase_create("config");
    tcase_add_checked_fixture(t, make_top, remove_top);
    tcase_add_test(t, the_order_is_command_line_environment_file);
    tcase_add_test(t, the_longest_section_that_fits_counts);
    tcase_add_test(t, yes_and_no_can_be_taken_back);
    tcase_add_test(t, options_that_repeat_come_from_one_place);
    tcase_add_test(t, mistakes_are_told_with_file_line_and_what_is_meant);
    tcase_add_test(t, files_that_others_could_have_written_are_refused);
    tcase_add_test(t, variables_that_look_like_options_are_told);
    tcase_add_test(t, without_directories_the_configuration_can_be_shown);
    tcase_add_test(t, a_file_that_is_no_text_is_refused);
    suite_add_tcase(s, t);
    return run_suite(s);
}
