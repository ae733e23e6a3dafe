/* The command line: what each option sets, defaults, ranges, and a clear line for what is wrong. */
#include <check.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/daemon/option_choice.h"
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

static struct options o;
static char said[4096];    /* on standard error */
static char to_fuse[1024]; /* given to mount_option, one a line */

void mount_option(const char *opt)
{
    strcat(strcat(to_fuse, opt), "\n");
}

/* eddyfs WORD... PFS MNT; words end with NULL. */
static int parse(const char *first, ...)
{
    char *argv[32] = {"eddyfs"};
    int argc = 1;
    va_list ap;
    va_start(ap, first);
    for (const char *w = first; w; w = va_arg(ap, const char *))
        argv[argc++] = strdup(w);
    va_end(ap);
    FILE *err = tmpfile();
    int old = dup(STDERR_FILENO);
    fflush(stderr);
    dup2(fileno(err), STDERR_FILENO);
    optind = 0;
    to_fuse[0] = '\0';
    int code = options_parse(argc, argv, &o);
    fflush(stderr);
    dup2(old, STDERR_FILENO);
    close(old);
    rewind(err);
    said[fread(said, 1, sizeof(said) - 1, err)] = '\0';
    fclose(err);
    return code;
}

static void clear_environment(void)
{
    option_site_file = "/nonexistent"; /* no configuration of this machine */
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    static const char *const names[] = {"EDDY_SESSION", "EDDY_CACHE_DIR", "SLURM_JOB_ID",
                                        "SLURM_RESTART_COUNT", "TMPDIR"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        unsetenv(names[i]);
}

static void ck_refused(int code, const char *names_it)
{
    ck_assert_int_ne(code, 0);
    ck_assert_msg(strstr(said, names_it), "\"%s\" is not named in: %s", names_it, said);
    ck_assert_msg(strstr(said, "eddyfs -h"), "no hint in: %s", said);
}

START_TEST(defaults_are_those_of_the_manual)
{
    char dir[64];
    ck_assert_int_eq(parse("/pfs", "/mnt/a", NULL), 0);
    ck_assert_str_eq(settings.pfs_dir, "/pfs");
    ck_assert_str_eq(settings.mountpoint, "/mnt/a");
    ck_assert_str_eq(settings.session, "default");
    ck_assert_uint_eq(settings.chunk_size, 1u << 20);
    ck_assert_uint_eq(settings.memory, 256u << 20);
    ck_assert_uint_eq(settings.wait_nodes, 1);
    ck_assert_uint_eq(settings.wait_timeout, 60);
    ck_assert_double_eq(settings.attr_timeout, 1.0);
    ck_assert_double_eq(settings.negative_timeout, 0.0);
    ck_assert_uint_eq(o.flush.policy, FLUSH_IDLE);
    ck_assert_uint_eq(o.flush.wait_ms, 1000);
    ck_assert(!o.flush.wait_auto && !settings.fsync_pfs);
    ck_assert_uint_eq(o.flush.writers, 4);
    ck_assert_uint_eq(o.flush.limit, 0);
    ck_assert_uint_eq(o.flush.dirty_high, 60);
    ck_assert_uint_eq(o.flush.dirty_low, 40);
    ck_assert_uint_eq(o.flush.dirty_age_ms, 600000);
    ck_assert(!settings.foreground && !settings.allow_other && !settings.read_only &&
              settings.passthrough);
    ck_assert_int_eq(o.log_level, LOG_LEVEL_INFO);
    snprintf(dir, sizeof(dir), "/tmp/eddyfs-%u/", (unsigned)getuid());
    ck_assert_msg(!strncmp(settings.cache_dir, dir, strlen(dir)), "%s", settings.cache_dir);
    ck_assert(settings.cache_dir_is_default);
}
END_TEST

START_TEST(in_the_background_a_daemon_is_supervised)
{
    ck_assert_int_eq(parse("/p", "/m", NULL), 0);
    ck_assert(settings.supervise);
    ck_assert_int_eq(parse("-f", "/p", "/m", NULL), 0);
    ck_assert(!settings.supervise);
    ck_assert_int_eq(parse("--supervise", "-f", "/p", "/m", NULL), 0);
    ck_assert(settings.supervise);
    ck_assert_int_eq(parse("-ono-supervise", "/p", "/m", NULL), 0);
    ck_assert(!settings.supervise);
}
END_TEST

START_TEST(long_options_and_o_words_set_the_same)
{
    const char *forms[2][12] = {
        {"--cache-dir=/c", "--cache-size=2G", "--session=s", "--node=n", "--listen=127.0.0.1:7",
         "--wait-nodes=3", "--chunk-size=64K", "--flush-wait=0.5", "--attr-timeout=2",
         "--memory=64M", "--log-level=debug", "--foreground"},
        {"-ocache-dir=/c", "-ocache-size=2G", "-osession=s", "-onode=n", "-olisten=127.0.0.1:7",
         "-owait-nodes=3", "-ochunk-size=64K", "-oflush-wait=0.5", "-oattr-timeout=2",
         "-omemory=64M", "-olog-level=debug", "-oforeground"},
    };
    const char *const *w = forms[_i];
    ck_assert_int_eq(parse(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11],
                           "/p", "/m", NULL),
                     0);
    ck_assert_str_eq(settings.cache_dir, "/c");
    ck_assert(!settings.cache_dir_is_default);
    ck_assert_uint_eq(settings.cache_size, UINT64_C(2) << 30);
    ck_assert_str_eq(settings.session, "s");
    ck_assert_str_eq(settings.node, "n");
    ck_assert_str_eq(settings.listen, "127.0.0.1:7");
    ck_assert_uint_eq(settings.wait_nodes, 3);
    ck_assert_uint_eq(settings.chunk_size, 64u << 10);
    ck_assert_uint_eq(o.flush.wait_ms, 500);
    ck_assert_double_eq(settings.attr_timeout, 2.0);
    ck_assert_uint_eq(settings.memory, 64u << 20);
    ck_assert_int_eq(o.log_level, LOG_LEVEL_DEBUG);
    ck_assert(settings.foreground);
}
END_TEST

/* As mount(8) calls it for a line of fstab. */
START_TEST(the_words_of_mount_and_fstab_are_taken)
{
    ck_assert_int_eq(parse("/p", "/m", "-o",
                           "rw,dev,suid,nodev,noatime,_netdev,x-systemd.automount,user=me,defaults,"
                           "nofail,session=s",
                           NULL),
                     0);
    ck_assert_str_eq(settings.session, "s");
    ck_assert(settings.suid && !settings.dev); /* the last word counts */
    ck_assert(!strstr(to_fuse, "suid") &&
              !strstr(to_fuse, "dev")); /* mount.c asks whose mount it is */
    ck_assert(strstr(to_fuse, "noatime\n"));
    ck_assert(!strstr(to_fuse, "session"));
    ck_assert(!strstr(to_fuse, "x-systemd"));
    ck_assert_int_eq(parse("/p", "/m", "-o", "ro,allow_other", NULL), 0);
    ck_assert(settings.read_only && settings.allow_other);
}
END_TEST

START_TEST(cache_size_may_be_a_percentage)
{
    ck_assert_int_eq(parse("--cache-size=25%", "/p", "/m", NULL), 0);
    ck_assert_uint_eq(settings.cache_percent, 25);
    ck_assert_uint_eq(settings.cache_size, 0);
}
END_TEST

static const char *const out_of_range[] = {
    "--chunk-size=32K",
    "--chunk-size=32M",
    "--chunk-size=100000",
    "--chunk-size=1X",
    "--chunk-size=",
    "--cache-size=0",
    "--cache-size=101%",
    "--cache-size=0%",
    "--cache-size=%",
    "--cache-size=-1",
    "--cache-size=99999999999T",
    "--memory=1",
    "--wait-nodes=0",
    "--wait-nodes=-1",
    "--wait-nodes=2x",
    "--wait-timeout=0",
    "--suspect-after=1.5",
    "--suspect-after=soon",
    "--dead-after=4",
    "--lease=2",
    "--open-wait=10",
    "--flush-wait=-1",
    "--flush-wait=nan",
    "--flush-wait=1s",
    "--attr-timeout=inf",
    "--negative-timeout=",
    "--session=a/b",
    "--session=",
    "--node=.x",
    "--log-level=loud",
    "--flush=later",
    "--flush-wait=automatic",
    "--flush-writers=0",
    "--flush-writers=65",
    "--flush-limit=fast",
    "--singlets=91%",
    "--singlets=half",
    "--dirty-high=91%",
    "--dirty-high=1",
    "--dirty-high=%",
    "--dirty-low=0",
    "--dirty-age=-1",
    "--fsync=never",
    "--immutable=",
    "--immutable=/q",
    "--immutable=/pq",
    "--immutable=a/../b",
    "--immutable=..",
};

START_TEST(what_is_out_of_range_is_refused_by_its_name)
{
    char name[64];
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(out_of_range[_i], "="), out_of_range[_i]);
    ck_refused(parse(out_of_range[_i], "/p", "/m", NULL), name);
}
END_TEST

START_TEST(when_to_write_back)
{
    static const char *const names[] = {"--flush=idle", "--flush=immediate", "--flush=close",
                                        "--flush=end"};
    for (unsigned p = 0; p < FLUSH_POLICIES; p++) {
        ck_assert_int_eq(parse(names[p], "/p", "/m", NULL), 0);
        ck_assert_uint_eq(o.flush.policy, p);
    }
    ck_assert_int_eq(parse("--flush-wait=auto", "--flush-limit=100M", "--flush-writers=7",
                           "--dirty-age=0.5", "--fsync=pfs", "/p", "/m", NULL),
                     0);
    ck_assert(o.flush.wait_auto && settings.fsync_pfs);
    ck_assert_uint_eq(o.flush.wait_ms, 1000); /* until something is learned */
    ck_assert_uint_eq(o.flush.limit, 100 << 20);
    ck_assert_uint_eq(o.flush.writers, 7);
    ck_assert_uint_eq(o.flush.dirty_age_ms, 500);
    ck_assert_int_eq(parse("--flush-wait=auto", "--flush-wait=2", "/p", "/m", NULL), 0);
    ck_assert(!o.flush.wait_auto);
}
END_TEST

START_TEST(marks_go_with_each_other)
{
    static const struct {
        const char *a, *b;
        unsigned high, low;
    } ok[] = {
        {"--dirty-high=70%", "--dirty-low=10%", 70, 10},
        {"--dirty-high=70", "--dirty-low=69", 70, 69},
        {"--dirty-high=30%", "--foreground", 30, 29},
        {"--dirty-low=75%", "--foreground", 76, 75},
        {"--dirty-low=10%", "--foreground", 60, 10},
    };
    for (size_t i = 0; i < ARRAY_LEN(ok); i++) {
        ck_assert_int_eq(parse(ok[i].a, ok[i].b, "/p", "/m", NULL), 0);
        ck_assert_uint_eq(o.flush.dirty_high, ok[i].high);
        ck_assert_uint_eq(o.flush.dirty_low, ok[i].low);
    }
    ck_refused(parse("--dirty-high=30%", "--dirty-low=30%", "/p", "/m", NULL), "dirty-low");
}
END_TEST

START_TEST(unknown_options_are_named)
{
    ck_refused(parse("--frobnicate", "/p", "/m", NULL), "frobnicate");
    ck_refused(parse("-o", "frobnicate=1", "/p", "/m", NULL), "frobnicate");
    ck_refused(parse("-o", "cache-dir", "/p", "/m", NULL), "cache-dir");
    ck_refused(parse("-o", "foreground=1", "/p", "/m", NULL), "foreground");
}
END_TEST

START_TEST(two_directories_are_needed)
{
    ck_refused(parse("/p", NULL), "two directories");
    ck_refused(parse("/p", "/m", "/x", NULL), "two directories");
}
END_TEST

START_TEST(the_session_comes_from_the_environment)
{
    setenv("SLURM_JOB_ID", "4711", 1);
    ck_assert_int_eq(parse("/p", "/m", NULL), 0);
    ck_assert_str_eq(settings.session, "4711");
    setenv("SLURM_RESTART_COUNT", "2", 1);
    ck_assert_int_eq(parse("/p", "/m", NULL), 0);
    ck_assert_str_eq(settings.session, "4711.2");
    setenv("EDDY_SESSION", "mine", 1);
    ck_assert_int_eq(parse("/p", "/m", NULL), 0);
    ck_assert_str_eq(settings.session, "mine");
    ck_assert_int_eq(parse("--session=given", "/p", "/m", NULL), 0);
    ck_assert_str_eq(settings.session, "given");
}
END_TEST

START_TEST(two_mounts_have_two_caches)
{
    static const char *const pairs[][2] = {
        {"/a/b", "/a-b"}, {"/a/b", "/a_b"}, {"/a-b", "/a\\x2db"}, {"/a", "/a/a"}};
    for (size_t n = 0; n < ARRAY_LEN(pairs); n++) {
        ck_assert_int_eq(parse("/p", pairs[n][0], NULL), 0);
        char *first = strdup(settings.cache_dir);
        ck_assert_int_eq(parse("/p", pairs[n][1], NULL), 0);
        ck_assert_msg(strcmp(first, settings.cache_dir), "%s and %s: %s", pairs[n][0], pairs[n][1],
                      first);
        ck_assert_ptr_null(strchr(strrchr(first, '/') + 1, '/'));
        free(first);
    }
}
END_TEST

START_TEST(relative_paths_hold_in_another_directory)
{
    char here[4096], expected[8192];
    ck_assert_ptr_nonnull(getcwd(here, sizeof(here)));
    ck_assert_int_eq(parse("--cache-dir=c", "--log=l", "p", "m", NULL), 0);
    snprintf(expected, sizeof(expected), "%s/c", here);
    ck_assert_str_eq(settings.cache_dir, expected);
    snprintf(expected, sizeof(expected), "%s/l", here);
    ck_assert_str_eq(settings.log_file, expected);
    snprintf(expected, sizeof(expected), "%s/p", here);
    ck_assert_str_eq(settings.pfs_dir, expected);
}
END_TEST

START_TEST(immutable_paths_are_relative_to_the_pfs)
{
    ck_assert_int_eq(parse("--immutable", "a//b/./c/", "--immutable=/p/d", "-o",
                           "immutable=/p,immutable=e", "/p", "/m", NULL),
                     0);
    ck_assert_uint_eq(settings.nimmutable, 4);
    ck_assert_str_eq(settings.immutable[0], "a/b/c");
    ck_assert_str_eq(settings.immutable[1], "d");
    ck_assert_str_eq(settings.immutable[2], "");
    ck_assert_str_eq(settings.immutable[3], "e");
}
END_TEST

/* The session directory's default place is never shown, wherever this session's is. */
START_TEST(the_session_directory_of_the_pfs_is_hidden)
{
    char name[32];
    snprintf(name, sizeof(name), ".eddyfs-%u", (unsigned)getuid());
    ck_assert_int_eq(parse("/p", "/m", NULL), 0);
    options_session_dir();
    ck_assert_str_eq(settings.hidden, name);
    ck_assert(strstr(settings.session_dir, name));
    ck_assert_int_eq(parse("--session-dir=/s", "/p", "/m", NULL), 0);
    options_session_dir();
    ck_assert_str_eq(settings.session_dir, "/s");
    ck_assert_ptr_nonnull(settings.hidden);
    ck_assert_str_eq(settings.hidden, name);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("options");
    tcase_add_checked_fixture(t, clear_environment, NULL);
    tcase_add_test(t, in_the_background_a_daemon_is_supervised);
    tcase_add_test(t, defaults_are_those_of_the_manual);
    tcase_add_loop_test(t, long_options_and_o_words_set_the_same, 0, 2);
    tcase_add_test(t, the_words_of_mount_and_fstab_are_taken);
    tcase_add_test(t, cache_size_may_be_a_percentage);
    tcase_add_loop_test(t, what_is_out_of_range_is_refused_by_its_name, 0,
                        (int)ARRAY_LEN(out_of_range));
    tcase_add_test(t, when_to_write_back);
    tcase_add_test(t, marks_go_with_each_other);
    tcase_add_test(t, unknown_options_are_named);
    tcase_add_test(t, two_directories_are_needed);
    tcase_add_test(t, the_session_comes_from_the_environment);
    tcase_add_test(t, two_mounts_have_two_caches);
    tcase_add_test(t, relative_paths_hold_in_another_directory);
    tcase_add_test(t, immutable_paths_are_relative_to_the_pfs);
    tcase_add_test(t, the_session_directory_of_the_pfs_is_hidden);
    return run_case("options", t);
}
