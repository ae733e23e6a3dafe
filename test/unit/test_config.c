/* test_config.c - configuration files and the environment: what is read of them, what counts, what is refused and how. */
#include <check.h>
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/daemon/config_file.h"
#include "fs/daemon/option_choice.h"
#include "fs/daemon/option_table.h"
#include "fs/daemon/options.h"
#include "fs/daemon/paths.h"
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

static char top[64], file[128], site[128], said[8192], shown[8192];
static struct options o;

static void make_top(void)
{
    strcpy(top, "/tmp/eddy-test-config-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(top));
    snprintf(file, sizeof(file), "%s/eddyfs.conf", top);
    snprintf(site, sizeof(site), "%s/site.conf", top);
    option_site_file = site;
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
    unlink(site);
    ck_assert_int_eq(rmdir(top), 0);
}

static void write_to(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
    ck_assert_int_eq(chmod(path, 0600), 0);
}

static void write_config(const char *text)
{
    write_to(file, text);
}

/* The site's file must be root's. */
static void write_site(const char *text)
{
    if (geteuid())
        NOT_CHECKED("needs root");
    write_to(site, text);
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

START_TEST(the_sites_file_is_the_last)
{
    char from[256];
    write_site("memory = 64M\nflush = end\nnode = of-the-site\nsession = of-the-site\n[/pfs]\nnode = of-the-section\n");
    write_config("memory = 65M\nflush = close\nnode = of-the-user\n");
    setenv("EDDY_MEMORY", "66M", 1);
    setenv("EDDY_FLUSH", "immediate", 1);
    ck_assert_int_eq(parse("--memory", "67M", "/pfs", "/mnt/a"), 0);
    ck_assert_uint_eq(settings.memory, 67u << 20);
    ck_assert_uint_eq(o.flush.policy, FLUSH_IMMEDIATE);
    ck_assert_str_eq(settings.node, "of-the-user"); /* a section of the site's file does not count before the user's */
    ck_assert_str_eq(settings.session, "of-the-site");
    show();
    snprintf(from, sizeof(from), "%s:3", file);
    ck_shows("node", "of-the-user", from);
}
END_TEST

START_TEST(what_the_site_fixes_stays)
{
    char from[256];
    write_site("fixed flush = end\nfixed immutable = a\nimmutable = b\nfixed no-passthrough = yes\nfixed memory = 64M\n"
               "[/pfs/free]\nmemory = 65M\n[/pfs/fixed]\nfixed memory = 66M\n[/pfs]\nfixed memory = 67M\n");
    ck_assert_int_eq(parse("/elsewhere", "/mnt/a"), 0);
    ck_assert_uint_eq(o.flush.policy, FLUSH_END);
    ck_assert_uint_eq(settings.nimmutable, 2);
    ck_assert_int_eq(parse("--flush=end", "--immutable=a", "--immutable=b", "/elsewhere", "/mnt/a"), 0);
    ck_assert_int_ne(parse("--flush=close", "/elsewhere", "/mnt/a"), 0);
    snprintf(from, sizeof(from), "--flush close: this site has fixed flush = end (%s:1)", site);
    ck_says(from);
    ck_assert_int_ne(parse("--immutable=b", "/elsewhere", "/mnt/a"), 0);
    ck_assert_int_ne(parse("--passthrough", "/elsewhere", "/mnt/a"), 0);
    ck_says("--passthrough yes: this site has fixed passthrough = no");
    /* The line that counts says whether it is fixed. */
    ck_assert_int_eq(parse("--memory=70M", "/pfs/free", "/mnt/a"), 0);
    ck_assert_int_ne(parse("--memory=70M", "/pfs/fixed/a", "/mnt/a"), 0);
    ck_says("fixed memory = 66M");
    ck_assert_int_eq(parse("--memory=67M", "/pfs", "/mnt/a"), 0);
    setenv("EDDY_FLUSH", "close", 1);
    ck_assert_int_ne(parse("/elsewhere", "/mnt/a"), 0);
    ck_says("eddyfs: $EDDY_FLUSH: --flush close: this site has fixed");
}
END_TEST

START_TEST(a_path_is_made_plain)
{
    static const char *const paths[][2] = {{"/", "/"}, {"//", "/"}, {"/a/", "/a"}, {"//a/.//b/.", "/a/b"}, {"a/./b//", "a/b"},
                                           {"./", ""}, {"", ""}, {"/..a/b..", "/..a/b.."}};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        char path[32];
        snprintf(path, sizeof(path), "%s", paths[i][0]);
        ck_assert(path_make_plain(path));
        ck_assert_str_eq(path, paths[i][1]);
    }
    ck_assert(!path_make_plain((char[]){"/a/../b"}));
    ck_assert(!path_make_plain((char[]){".."}));
}
END_TEST

START_TEST(sections_are_of_directories_not_of_texts)
{
    char real[96], link[96], text[512];
    snprintf(real, sizeof(real), "%s/real", top);
    snprintf(link, sizeof(link), "%s/link", top);
    ck_assert_int_eq(mkdir(real, 0700), 0);
    ck_assert_int_eq(symlink(real, link), 0);
    snprintf(text, sizeof(text), "[ //pfs/./a// ]\nwait-nodes = 3\n[%s]\nwait-nodes = 4\n[/]\nlease = 5\nwait-nodes = 5\n", real);
    write_config(text);
    ck_assert_int_eq(parse("/pfs//a/", "/mnt/a"), 0);
    ck_assert_uint_eq(settings.wait_nodes, 3);
    ck_assert_int_eq(parse("/pfs/a/../b", "/mnt/a"), 0); /* is not below /pfs/a */
    ck_assert_uint_eq(settings.wait_nodes, 1);
    ck_assert_int_eq(parse(link, "/mnt/a"), 0);
    ck_assert_uint_eq(settings.wait_nodes, 4);
    ck_assert_int_eq(parse("/pfs/ab", "/mnt/a"), 0);
    ck_assert_uint_eq(settings.wait_nodes, 5);
    ck_assert_int_eq(chdir(top), 0);
    ck_assert_int_eq(parse("real", "/mnt/a"), 0);
    ck_assert_uint_eq(settings.wait_nodes, 4);
    unlink(link);
    rmdir(real);
}
END_TEST

START_TEST(a_value_goes_to_the_end_of_its_line)
{
    write_config("cache-dir = /with space/a # b \"c\"\r\n\r\n# comment\r\n\tsession\t=\tname \r\nimmutable = \"a\"");
    ck_assert_int_eq(parse("/pfs", "/mnt/a"), 0);
    ck_assert_str_eq(settings.cache_dir, "/with space/a # b \"c\"");
    ck_assert_str_eq(settings.session, "name");
    ck_assert_str_eq(settings.immutable[0], "\"a\"");
}
END_TEST

START_TEST(a_file_is_for_several_mounts)
{
    write_config("immutable = /pfs/a/data\nimmutable = /elsewhere\nimmutable = everywhere\n");
    ck_assert_int_eq(parse("/pfs", "/mnt/a"), 0);
    ck_assert_uint_eq(settings.nimmutable, 2);
    ck_assert_str_eq(settings.immutable[0], "a/data");
    ck_assert_str_eq(settings.immutable[1], "everywhere");
    ck_assert_int_eq(parse("/pfs/b", "/mnt/a"), 0);
    ck_assert_uint_eq(settings.nimmutable, 1);
    ck_assert_int_eq(parse("/pfs/a/data/b/", "/mnt/a"), 0); /* all of it */
    ck_assert_uint_eq(settings.nimmutable, 2);
    ck_assert_str_eq(settings.immutable[0], "");
    ck_assert_int_ne(parse("--immutable=/elsewhere", "/pfs", "/mnt/a"), 0);
    setenv("EDDY_IMMUTABLE", "/elsewhere", 1);
    ck_assert_int_ne(parse("/pfs", "/mnt/a"), 0);
    ck_says("--immutable /elsewhere: is not below the PFS directory");
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
        {"[/pfs/../a]\n", "eddyfs.conf:1: a section's path must have no \"..\""},
        {"cache-dir = \"/a\"\n", "eddyfs.conf:1: cache-dir: give an absolute path"},
        {"log = ~/a\n", "eddyfs.conf:1: log: give an absolute path"},
        {"[/elsewhere]\nsession-dir = $SCRATCH/a\n", "eddyfs.conf:2: session-dir: give an absolute path"},
        {"usr = root\n", "eddyfs.conf:1: usr: no such option\n"},
        {"show_config = yes\n", "eddyfs.conf:1: show_config: can be given on the command line only"},
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
    ck_assert_int_eq(unlink(file), 0);
    ck_assert_int_eq(mkdir(file, 0700), 0);
    ck_assert_int_ne(parse("/pfs", "/mnt/a"), 0);
    ck_says("is no regular file");
    ck_assert_int_eq(rmdir(file), 0);
    ck_assert_int_eq(symlink("eddyfs.conf", file), 0);
    ck_assert_int_ne(parse("/pfs", "/mnt/a"), 0);
    ck_says("eddyfs.conf: Too many levels");
    unlink(file);
    write_config("memory = 64M\n");
    ck_assert_int_eq(truncate(file, CONFIG_MAX + 1), 0);
    ck_assert_int_ne(parse("/pfs", "/mnt/a"), 0);
    ck_says("is larger than");
}
END_TEST

/* Variables that another one left, after `su`. */
START_TEST(a_file_of_another_user_is_not_used_and_told)
{
    if (geteuid())
        NOT_CHECKED("needs root to give one away");
    write_config("memory = 64M\n");
    ck_assert_int_eq(chown(file, 12345, (gid_t)-1), 0);
    ck_assert_int_eq(parse("/pfs", "/mnt/a"), 0);
    ck_assert_uint_eq(settings.memory, 256u << 20);
    show();
    ck_assert_msg(strstr(shown, "eddyfs.conf: belongs to user 12345, not to root: it is not used\n"), "it shows %s", shown);
    write_site("memory = 64M\n");
    ck_assert_int_eq(chown(site, 12345, (gid_t)-1), 0);
    ck_assert_int_ne(parse("/pfs", "/mnt/a"), 0);
    ck_says("site.conf: belongs to user 12345, not to root");
}
END_TEST

START_TEST(variables_that_look_like_options_are_told)
{
    char name[128];
    setenv("EDDY_CACHESIZE", "1G", 1);
    setenv("EDDY_USER", "root", 1);
    static const char *const others[] = {"EDDY_BUILD", "EDDY_TEST_OPTIONS", "EDDY_TEST_SEED", "EDDY_TEST_ROUNDS", "EDDY_JOBS",
                                         "EDDY_LIBRARY", "EDDY_UCX_ENV", "EDDY_PRETEND_FILES", "EDDY_COMPLETELY_DIFFERENT", "EDDY_",
                                         "EDDY_TEST_DIRS_FILE", "EDDY_TEST_INNER", "EDDY_CHECK_INNER", "EDDY_TEST_LOG",
                                         "EDDY_A_NAME_THAT_IS_LONGER_THAN_ANY_NAME_OF_AN_OPTION_COULD_EVER_BE"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        setenv(others[i], "1", 1);
    ck_assert_int_eq(parse("/pfs", "/mnt/a"), 0);
    show();
    ck_assert_ptr_nonnull(strstr(shown, "# $EDDY_CACHESIZE: no such option: did you mean EDDY_CACHE_SIZE?"));
    ck_assert_ptr_nonnull(strstr(shown, "# $EDDY_USER: --user can be given on the command line only: it is not used"));
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        snprintf(name, sizeof(name), "$%s:", others[i]);
        ck_assert_msg(!strstr(shown, name), "%s is told: %s", name, shown);
        unsetenv(others[i]);
    }
    unsetenv("EDDY_CACHESIZE");
    unsetenv("EDDY_USER");
}
END_TEST

START_TEST(variables_that_contradict_are_refused)
{
    setenv("EDDY_SUPERVISE", "yes", 1);
    setenv("EDDY_NO_SUPERVISE", "no", 1);
    ck_assert_int_eq(parse("/pfs", "/mnt/a"), 0);
    setenv("EDDY_NO_SUPERVISE", "yes", 1);
    ck_assert_int_ne(parse("/pfs", "/mnt/a"), 0);
    ck_says("$EDDY_NO_SUPERVISE: says another thing than $EDDY_SUPERVISE");
}
END_TEST

START_TEST(a_wrong_value_is_told_before_missing_directories)
{
    ck_assert_int_ne(parse("--flush="), 0);
    ck_says("--flush : give idle, immediate, close or end");
    ck_assert_int_ne(parse("--json", "/pfs", "/mnt/a"), 0);
    ck_says("--json: goes with --show-config");
}
END_TEST

START_TEST(what_does_not_fit_together_is_shown)
{
    write_config("dirty-high = 30%\n");
    ck_assert_int_eq(parse("--show-config", "/pfs", "/mnt/a"), 0);
    show();
    ck_shows("dirty-low", "29%", "default");
    setenv("EDDY_DIRTY_LOW", "50%", 1);
    ck_assert_int_ne(catch(STDOUT_FILENO, stdout, shown, sizeof(shown), parse_now,
                           (char *[]){"--show-config", "/pfs", "/mnt/a", NULL}),
                     0);
    ck_shows("dirty-low", "50%", "$EDDY_DIRTY_LOW");
}
END_TEST

static const char *json_of(const json_t *all, const char *name, const char *key)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(all, "options"), i, one)
        if (!strcmp(json_string_value(json_object_get(one, "name")), name))
            return json_string_value(json_object_get(one, key));
    return NULL;
}

START_TEST(scripts_read_it_as_json)
{
    setenv("EDDY_CACHESIZE", "1G", 1);
    setenv("EDDY_IMMUTABLE", "a # b\"\n\xff", 1);
    ck_assert_int_eq(parse("--show-config", "--json", "/pfs", "/mnt/a"), 0);
    show();
    json_t *all = json_loads(shown, 0, NULL);
    ck_assert_msg(all, "it is no JSON: %s", shown);
    ck_assert_str_eq(json_of(all, "immutable", "value"), "a # b\"\\n\\xff");
    ck_assert_str_eq(json_of(all, "immutable", "from"), "$EDDY_IMMUTABLE");
    ck_assert_str_eq(json_of(all, "supervise", "value"), "yes");
    ck_assert_str_eq(json_of(all, "memory", "from"), "default");
    ck_assert_ptr_null(json_of(all, "require-mount", "value"));
    ck_assert_uint_eq(json_array_size(json_object_get(all, "notes")), 1);
    json_decref(all);
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
    tcase_add_test(t, the_sites_file_is_the_last);
    tcase_add_test(t, what_the_site_fixes_stays);
    tcase_add_test(t, a_path_is_made_plain);
    tcase_add_test(t, sections_are_of_directories_not_of_texts);
    tcase_add_test(t, a_value_goes_to_the_end_of_its_line);
    tcase_add_test(t, a_file_is_for_several_mounts);
    tcase_add_test(t, the_longest_section_that_fits_counts);
    tcase_add_test(t, yes_and_no_can_be_taken_back);
    tcase_add_test(t, options_that_repeat_come_from_one_place);
    tcase_add_test(t, mistakes_are_told_with_file_line_and_what_is_meant);
    tcase_add_test(t, files_that_others_could_have_written_are_refused);
    tcase_add_test(t, a_file_of_another_user_is_not_used_and_told);
    tcase_add_test(t, variables_that_look_like_options_are_told);
    tcase_add_test(t, variables_that_contradict_are_refused);
    tcase_add_test(t, a_wrong_value_is_told_before_missing_directories);
    tcase_add_test(t, what_does_not_fit_together_is_shown);
    tcase_add_test(t, scripts_read_it_as_json);
    tcase_add_test(t, without_directories_the_configuration_can_be_shown);
    tcase_add_test(t, a_file_that_is_no_text_is_refused);
    suite_add_tcase(s, t);
    return run_suite(s);
}
