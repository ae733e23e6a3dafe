/* test_mount_map.c - from a mount point to its cache directory, in whatever way it is written;
 * paths as text. */
#include "fs/daemon/control.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/mountinfo.h"
#include "transport/base.h"

#include "suite.h"

static char top[64], here[4096];

static void setup(void)
{
    char run[128];
    strcpy(top, "/tmp/eddy-test-map-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(top));
    ck_assert_ptr_nonnull(getcwd(here, sizeof(here)));
    snprintf(run, sizeof(run), "%s/run", top);
    ck_assert_int_eq(mkdir(run, 0700), 0);
    setenv("XDG_RUNTIME_DIR", run, 1);
    ck_assert_int_eq(chdir(top), 0);
    ck_assert_int_eq(mkdir("mnt", 0755), 0);
    ck_assert_int_eq(mkdir("cache", 0700), 0);
}

/* Does `what`, a shell command, with $f each entry of this test's that the daemon wrote into the directories
 * whose paths are in no variable. */
static void each_fixed(const char *what)
{
    char command[1024];
    snprintf(command, sizeof(command),
             "for f in $(grep -ls '^%s/' /run/user/%u/eddyfs/* /tmp/eddyfs-run-%u/eddyfs/*); do "
             "%s; done",
             top, (unsigned)geteuid(), (unsigned)geteuid(), what);
    ck_assert_int_eq(system(command), 0);
}

static void teardown(void)
{
    char command[128];
    ck_assert_int_eq(chdir(here), 0);
    each_fixed("rm $f");
    snprintf(command, sizeof(command), "rm -rf %s", top);
    ck_assert_int_eq(system(command), 0);
}

/* top/name, in a few buffers that take turns */
static char *below(const char *name)
{
    static char buf[64][512];
    static int n;
    char *p = buf[n++ % 64];
    snprintf(p, sizeof(buf[0]), "%s/%s", top, name);
    return p;
}

static struct mount_entry entry(const char *mountpoint, const char *cache, const char *node)
{
    return (struct mount_entry){
        .mountpoint = (char *)mountpoint,
        .cache_dir = (char *)cache,
        .pfs_dir = below("pfs"),
        .session = "job.1",
        .session_dir = below("pfs/.eddyfs-0"),
        .node = (char *)node,
        .listen = "10.1.0.17",
        .pfs_fid = "00112233445566778899aabbccddeeff",
    };
}

static void check_found(const char *path, const char *mountpoint, const char *cache,
                        const char *node)
{
    struct mount_entry e;
    ck_assert_msg(mount_map_find(path, &e) == 0, "%s is not found", path);
    ck_assert_str_eq(e.mountpoint, mountpoint);
    ck_assert_str_eq(e.cache_dir, cache);
    ck_assert_str_eq(e.pfs_dir, below("pfs"));
    ck_assert_str_eq(e.session, "job.1");
    ck_assert_str_eq(e.session_dir, below("pfs/.eddyfs-0"));
    ck_assert_str_eq(e.node, node);
    ck_assert_str_eq(e.pfs_fid, "00112233445566778899aabbccddeeff");
    ck_assert_uint_eq(e.owner, geteuid());
    mount_entry_free(&e);
}

static void put(const char *mountpoint, const char *cache, const char *node)
{
    struct mount_entry e = entry(mountpoint, cache, node);
    ck_assert_int_eq(mount_map_write(&e), 0);
}

START_TEST(a_mount_is_found_however_it_is_written)
{
    const char *mnt = below("mnt"), *cache = below("cache");
    put(mnt, cache, "n1");
    check_found(mnt, mnt, cache, "n1");
    check_found(below("./mnt//"), mnt, cache, "n1");
    check_found("mnt", mnt, cache, "n1");
    check_found("./mnt/", mnt, cache, "n1");
    check_found("cache/../mnt", mnt, cache, "n1");
    ck_assert_int_eq(symlink("mnt", "link"), 0);
    ck_assert_int_eq(symlink(top, "itself"), 0);
    check_found("link", mnt, cache, "n1");
    check_found("itself/mnt", mnt, cache, "n1");
    check_found("itself/link/", mnt, cache, "n1");
    ck_assert_int_eq(chdir("mnt"), 0);
    check_found(".", mnt, cache, "n1");
    ck_assert_int_eq(mkdir("sub", 0755), 0);
    ck_assert_int_eq(chdir("sub"), 0);
    check_found("..", mnt, cache, "n1");
}
END_TEST

START_TEST(what_was_never_mounted_is_not_found)
{
    struct mount_entry e;
    put(below("mnt"), below("cache"), "n1");
    ck_assert_int_eq(mount_map_find("cache", &e), -ENOENT);
    ck_assert_int_eq(mount_map_find("nothing/at/all", &e), -ENOENT);
    ck_assert_int_eq(mount_map_find("", &e), -ENOENT);
    ck_assert_int_eq(mount_map_find(below("mn"), &e), -ENOENT);
    ck_assert_int_eq(symlink("loop", "loop"), 0);
    ck_assert_int_eq(mount_map_find("loop", &e), -ELOOP);
}
END_TEST

START_TEST(strange_names_come_back_as_they_were)
{
    const char *mnt = below("new\nline \\n and \xff"), *cache = below("ca\\che\n");
    ck_assert_int_eq(mkdir(cache, 0700), 0);
    put(mnt, cache, "n1");
    check_found(mnt, mnt, cache, "n1");
}
END_TEST

START_TEST(a_new_mount_replaces_the_entry)
{
    const char *mnt = below("mnt");
    put(mnt, below("cache"), "old");
    put(mnt, below("cache"), "new");
    check_found(mnt, mnt, below("cache"), "new");
}
END_TEST

/* Other tests' mounts may be there, too. */
static int collect(void *arg, const struct mount_entry *e)
{
    if (!strncmp(e->mountpoint, top, strlen(top)))
        strcat(strcat(arg, e->node), " ");
    return 0;
}

static int stop(void *arg, const struct mount_entry *e)
{
    (void)e;
    ++*(int *)arg;
    return 7;
}

START_TEST(each_tells_every_mount_once)
{
    char names[256] = "";
    int n = 0;
    put(below("mnt"), below("cache"), "first");
    put(below("mnt2"), below("cache"), "second");
    put(below("mnt"), below("cache"), "third");
    ck_assert_int_eq(mount_map_each(collect, names), 0);
    ck_assert_msg(!strcmp(names, "second third ") || !strcmp(names, "third second "), "%s", names);
    ck_assert_int_eq(mount_map_each(stop, &n), 7);
    ck_assert_int_eq(n, 1);
}
END_TEST

START_TEST(entries_go_with_their_cache_directory)
{
    struct mount_entry e;
    put(below("mnt"), below("gone"), "n1");
    check_found("mnt", below("mnt"), below("gone"), "n1");
    put(below("other"), below("cache"), "n2");
    ck_assert_int_eq(mount_map_find("mnt", &e), -ENOENT);
}
END_TEST

/* The entry's file, found by its being the only one. */
static void damage(const char *text)
{
    char command[512];
    ck_assert_int_eq(setenv("TEXT", text, 1), 0);
    each_fixed("rm $f");
    snprintf(command, sizeof(command), "for f in %s/run/eddyfs/*; do printf \"$TEXT\" >$f; done",
             top);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(damaged_entries_are_passed_over)
{
    static const char *const texts[] = {"",
                                        "x",
                                        "/a\\n/b\\n/c\\nd\\n/e\\n",
                                        "/a\\n/b\\n/c\\nd\\n/e\\nf",
                                        "a\\nb\\nc\\nd\\ne\\nf\\n",
                                        "/other\\n/b\\n/c\\nd\\n/e\\nf\\n"};
    struct mount_entry e;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        put(below("mnt"), below("cache"), "n1");
        damage(texts[i]);
        ck_assert_msg(mount_map_find(below("mnt"), &e) == -ENOENT, "text %zu is believed", i);
    }
}
END_TEST

START_TEST(a_directory_that_others_can_write_to_is_not_believed)
{
    struct mount_entry e;
    char saved[128];
    put(below("mnt"), below("cache"), "n1");
    each_fixed("rm $f");
    snprintf(saved, sizeof(saved), "%s/run/eddyfs", top);
    ck_assert_int_eq(chmod(saved, 0777), 0);
    ck_assert_int_eq(mount_map_find(below("mnt"), &e), -ENOENT);
    ck_assert_int_eq(chmod(saved, 0700), 0);
    check_found("mnt", below("mnt"), below("cache"), "n1");
}
END_TEST

/* As `eddy` in a shell that has another environment than the daemon's. */
START_TEST(a_mount_is_found_without_the_daemons_variables)
{
    struct mount_entry e;
    put(below("mnt"), below("cache"), "n1");
    ck_assert_int_eq(mkdir("otherrun", 0700), 0);
    setenv("XDG_RUNTIME_DIR", below("otherrun"), 1);
    check_found("mnt", below("mnt"), below("cache"), "n1");
    unsetenv("XDG_RUNTIME_DIR");
    check_found("mnt", below("mnt"), below("cache"), "n1");
    each_fixed("rm $f");
    ck_assert_int_eq(mount_map_find("mnt", &e), -ENOENT);
}
END_TEST

/* ---- root, and what other users say ---- */

#define STRANGER 54321
#define OWNER    54322

/* That user's entry, in their own directory below /tmp. */
static void put_as(uid_t uid, const char *mountpoint, const char *cache, const char *node)
{
    pid_t pid = fork();
    if (!pid) {
        unsetenv("XDG_RUNTIME_DIR");
        unsetenv("TMPDIR");
        struct mount_entry e = entry(mountpoint, cache, node);
        _exit(setresuid(uid, uid, uid) || mount_map_write(&e));
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

static void remove_of(uid_t uid)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf /tmp/eddyfs-run-%u", (unsigned)uid);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(root_believes_a_user_of_his_own_directory_only)
{
    struct mount_entry e;
    if (geteuid())
        NOT_CHECKED("needs root, to be other users");
    ck_assert_int_eq(chmod(top, 0755), 0);
    ck_assert_int_eq(chown("mnt", OWNER, OWNER), 0);
    put_as(STRANGER, below("mnt"), below("cache"), "stranger");
    ck_assert_int_eq(mount_map_find("mnt", &e), -EPERM);
    put_as(OWNER, below("mnt"), below("cache"), "owner");
    put_as(STRANGER, below("mnt"), below("cache"), "newer");
    ck_assert_int_eq(mount_map_find("mnt", &e), 0);
    ck_assert_str_eq(e.node, "owner");
    ck_assert_uint_eq(e.owner, OWNER);
    mount_entry_free(&e);
    char names[256] = "";
    mount_map_each(collect, names);
    ck_assert_str_eq(names, "owner ");
    ck_assert_int_eq(rename("mnt", "moved"), 0);
    ck_assert_int_eq(symlink("moved", "mnt"), 0); /* a link says nothing about whose it is */
    ck_assert_int_eq(mount_map_find(below("mnt"), &e), -EPERM);
    remove_of(STRANGER);
    remove_of(OWNER);
}
END_TEST

/* Each user sees their own entries, whatever another one says. */
START_TEST(root_believes_itself_where_nothing_is_mounted)
{
    if (geteuid())
        NOT_CHECKED("needs root, to be other users");
    ck_assert_int_eq(chmod(top, 0755), 0);
    put(below("mnt"), below("cache"), "n1");
    put_as(STRANGER, below("mnt"), below("cache"), "newer");
    check_found("mnt", below("mnt"), below("cache"), "n1");
    remove_of(STRANGER);
}
END_TEST

START_TEST(escaped_paths_are_printable_and_on_one_line)
{
    static const struct {
        const char *path, *text;
    } cases[] = {
        {"plain/name with blank", "plain/name with blank"},
        {"a\nb", "a\\nb"},
        {"a\\nb", "a\\\\nb"},
        {"\x1b[31m\x7f\t", "\\x1b[31m\\x7f\\x09"},
        {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\xff", "\\xff"},
        {"\xc3", "\\xc3"},                            /* cut off */
        {"\xc0\xaf", "\\xc0\\xaf"},                   /* overlong */
        {"\xed\xa0\x80", "\\xed\\xa0\\x80"},          /* surrogate */
        {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}, /* beyond U+10FFFF */
        {"\xc2\x9b", "\\xc2\\x9b"},                   /* a control sequence's start */
        {"", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *text = control_escape(cases[i].path);
        ck_assert_str_eq(text, cases[i].text);
        char *back = control_unescape(text);
        ck_assert_ptr_nonnull(back);
        ck_assert_str_eq(back, cases[i].path);
        free(back);
        free(text);
    }
    static const char *const no_escapes[] = {"\\", "a\\q", "\\x", "\\x1", "\\x1g", "\\xFF", "\\x00"};
    for (size_t i = 0; i < ARRAY_LEN(no_escapes); i++)
        ck_assert_ptr_null(control_unescape(no_escapes[i]));
}
END_TEST

START_TEST(mountinfo_knows_what_is_mounted)
{
    struct mounted m;
    ck_assert_int_eq(mounted_find("/proc", &m), 0);
    ck_assert_str_eq(m.path, "/proc");
    ck_assert_str_eq(m.type, "proc");
    mounted_free(&m);
    ck_assert_int_eq(mounted_find(top, &m), -ENOENT);
    ck_assert(!mounted_eddyfs("/proc", NULL));
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("all");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, a_mount_is_found_however_it_is_written);
    tcase_add_test(c, what_was_never_mounted_is_not_found);
    tcase_add_test(c, strange_names_come_back_as_they_were);
    tcase_add_test(c, a_new_mount_replaces_the_entry);
    tcase_add_test(c, each_tells_every_mount_once);
    tcase_add_test(c, entries_go_with_their_cache_directory);
    tcase_add_test(c, damaged_entries_are_passed_over);
    tcase_add_test(c, a_directory_that_others_can_write_to_is_not_believed);
    tcase_add_test(c, a_mount_is_found_without_the_daemons_variables);
    tcase_add_test(c, root_believes_a_user_of_his_own_directory_only);
    tcase_add_test(c, root_believes_itself_where_nothing_is_mounted);
    tcase_add_test(c, escaped_paths_are_printable_and_on_one_line);
    tcase_add_test(c, mountinfo_knows_what_is_mounted);
    return run_case("mount_map", c);
}
