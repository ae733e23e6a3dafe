/* test_store_dir.c - the cache directory: whose it is, what it refuses, what it has after another
 * start. */
#include "placement/store/state.h"
#include "placement/store/state_int.h"
#include "placement/store/store_open.h"
#include "placement/store/store_version.h"
#include "store_pages.h"

#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>

/* ---- the directory ---- */

START_TEST(the_identity_stays_and_the_incarnation_grows)
{
    uint64_t id = store_node_id(), inc = store_incarnation();
    store_close(false);
    open_store(64 * MIB, 64 * KIB);
    ck_assert(id && store_node_id() == id);
    ck_assert_uint_eq(store_incarnation() >> 32, (inc >> 32) + 1);
}
END_TEST

/* Only of a directory that is no copy the lock proves that the daemon before has ended. */
START_TEST(a_copy_knows_no_former_incarnation_and_gets_another_one)
{
    char command[512], err[512];
    uint64_t id = store_node_id(), inc = store_incarnation();
    ck_assert_uint_eq(store_former_incarnation(), 0);
    store_close(true);
    snprintf(command, sizeof(command), "cp -a %s %s.copy", cache_dir, cache_dir);
    ck_assert_int_eq(system(command), 0);
    open_store(64 * MIB, 64 * KIB);
    uint64_t next = store_incarnation();
    if (store_former_incarnation() != inc)
        NOT_CHECKED("this file system knows no birth times");
    store_close(true);
    snprintf(command, sizeof(command), "mv %s %s.first && mv %s.copy %s", cache_dir, cache_dir,
             cache_dir, cache_dir);
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_eq(try_open(64 * MIB, 64 * KIB, err, sizeof(err)), 0);
    ck_assert(store_node_id() == id);
    ck_assert_uint_eq(store_former_incarnation(), 0);
    ck_assert_uint_eq(store_incarnation() >> 32, next >> 32);
    ck_assert_uint_ne(store_incarnation(), next);
    snprintf(command, sizeof(command), "rm -rf %s.first", cache_dir);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

/* In /tmp anybody can make a link of the name that the default's parent is going to have. */
START_TEST(a_default_behind_a_link_is_refused)
{
    char real[300], link[300], path[320], err[512];
    store_close(true);
    snprintf(real, sizeof(real), "%s.real", cache_dir);
    snprintf(link, sizeof(link), "%s.link", cache_dir);
    snprintf(path, sizeof(path), "%s/mnt", link);
    ck_assert_int_eq(mkdir(real, 0700), 0);
    ck_assert_int_eq(symlink(real, link), 0);
    struct store_config c = {
        .dir = path, .dir_is_default = true, .size = 64 * MIB, .chunk_size = 64 * KIB};
    int e = store_open(&c, err, sizeof(err));
    if (e == -EINVAL && strstr(err, "tmpfs"))
        NOT_CHECKED("the tests' directory is on tmpfs");
    ck_assert_int_eq(e, -ELOOP);
    ck_assert_ptr_nonnull(strstr(err, "--cache-dir"));
    ck_assert_int_eq(unlink(link), 0);
    snprintf(path, sizeof(path), "%s/mnt/", real);
    ck_assert_msg(!store_open(&c, err, sizeof(err)), "%s", err);
    store_close(true);
    snprintf(path, sizeof(path), "rm -rf %s", real);
    ck_assert_int_eq(system(path), 0);
    open_store(64 * MIB, 64 * KIB);
}
END_TEST

START_TEST(a_directory_in_use_is_refused_with_the_pid)
{
    char err[512], pid[32], lock[128];
    store_close(false);
    snprintf(lock, sizeof(lock), "%s/lock", cache_dir);
    int fd = open(lock, O_RDWR);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    ck_assert_int_eq(try_open(64 * MIB, 64 * KIB, err, sizeof(err)), -EBUSY);
    snprintf(pid, sizeof(pid), "pid %d", (int)getpid());
    ck_assert_ptr_nonnull(strstr(err, pid));
    ck_assert_ptr_nonnull(strstr(err, "--cache-dir"));
    close(fd);
    open_store(64 * MIB, 64 * KIB);
}
END_TEST

static void refused(int want, const char *words)
{
    char err[512];
    int e = try_open(64 * MIB, 64 * KIB, err, sizeof(err));
    ck_assert_msg(e == want, "is %d (%s), should be %d", e, err, want);
    ck_assert_msg(strstr(err, words) != NULL, "\"%s\" does not say \"%s\"", err, words);
}

static void put_file(const char *name, const char *text)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/%s", cache_dir, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

START_TEST(directories_that_are_not_ours_are_refused)
{
    char other[100];
    store_close(true);
    put_file("format", "eddyfs-cache 99\nchunk 65536\n");
    refused(-EINVAL, "format 99");
    put_file("format", "something\n");
    refused(-EINVAL, "not eddyfs's");
    put_file("format", "eddyfs-cache 3\nchunk 12345\n");
    refused(-EINVAL, "damaged");
    remove_tree(cache_dir);
    ck_assert_int_eq(mkdir(cache_dir, 0700), 0);
    put_file("precious", "data");
    refused(-EEXIST, "not an eddyfs cache directory");
    remove_tree(cache_dir);
    ck_assert_int_eq(mkdir(cache_dir, 0700), 0);
    ck_assert_int_eq(chmod(cache_dir, 0770), 0);
    refused(-EPERM, "chmod 700");
    remove_tree(cache_dir);
    snprintf(other, sizeof(other), "%s/other", test_dir);
    ck_assert_int_eq(mkdir(other, 0700), 0);
    ck_assert_int_eq(symlink(other, cache_dir), 0);
    refused(-ENOTDIR, "link");
    ck_assert_int_eq(unlink(cache_dir), 0);
}
END_TEST

START_TEST(another_chunk_size_empties_a_clean_cache_and_refuses_a_dirty_one)
{
    uint8_t data[5000];
    char err[512];
    put_pattern(data, sizeof(data), 0, 3);
    struct file *f = get_file(1, "x");
    struct version v = version_n(sizeof(data), 5);
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
    ck_assert_int_eq(fill_chunk(f, 0, &v, data, true), 0);
    file_put(f);
    store_close(true);
    open_store(64 * MIB, 128 * KIB);
    ck_assert_uint_eq(store_chunk_size(), 128 * KIB);
    ck_assert_ptr_null(file_find(fid_n(1)));
    f = new_file(2, "y");
    write_ok(f, data, sizeof(data), 0);
    file_put(f);
    store_close(false);
    ck_assert_int_eq(try_open(64 * MIB, 64 * KIB, err, sizeof(err)), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err, "--chunk-size 131072"));
    open_store(64 * MIB, 128 * KIB);
    f = file_find(fid_n(2));
    ck_assert_ptr_nonnull(f);
    read_is(f, data, sizeof(data), 0);
    file_put(f);
}
END_TEST

START_TEST(what_a_dead_daemon_left_is_listed_without_a_daemon)
{
    uint8_t data[5000] = {1};
    struct seen s = {0};
    ck_assert_int_eq(store_each_unflushed(cache_dir, see, &s), -EWOULDBLOCK);
    struct file *f = new_file(2, "dir/a file");
    write_ok(f, data, sizeof(data), 0);
    file_put(f);
    f = get_file(3, "clean");
    file_put(f);
    store_close(false);
    ck_assert_int_eq(store_each_unflushed(cache_dir, see, &s), 0);
    ck_assert_uint_eq(s.n, 1);
    ck_assert_str_eq(s.path, "dir/a file");
    ck_assert_uint_eq(s.bytes, 8192);
    ck_assert(!s.suspect);
    open_store(64 * MIB, 64 * KIB);
}
END_TEST

static void damage(const char *slab, off_t at, const void *with, size_t len)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/slabs/%s", cache_dir, slab);
    int fd = open(path, O_RDWR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, with, len, at), (ssize_t)len);
    close(fd);
}

/* A list without them would say that all is on the PFS. */
START_TEST(a_list_of_what_is_unflushed_tells_that_records_are_damaged)
{
    uint8_t data[5000] = {1};
    struct seen s = {0};
    struct file *f = new_file(2, "lost"), *g = new_file(3, "kept");
    write_ok(f, data, sizeof(data), 0);
    write_ok(g, data, sizeof(data), 0);
    struct fid fid = fid_n(2);
    off_t at = -1;
    for (uint32_t i = 0; at < 0 && i < state.files.slab[0].slots; i++) {
        struct file_record *r = slab_at(&state.files, i);
        if (r->magic == FILE_MAGIC && fid_eq(r->fid, fid))
            at = (uint8_t *)&r->fid - state.files.slab[0].map;
    }
    ck_assert_int_ge(at, 0);
    file_put(f);
    file_put(g);
    store_close(false);
    fid.lo ^= 1;
    damage("files.000", at, &fid, sizeof(fid)); /* one record */
    ck_assert_int_eq(store_each_unflushed(cache_dir, see, &s), -EUCLEAN);
    ck_assert_uint_eq(s.n, 1);
    ck_assert_str_eq(s.path, "kept");
    fid.lo ^= 1;
    damage("files.000", at, &fid, sizeof(fid));
    damage("files.000", 0, "nothing", 7); /* all of a slab */
    s.n = 0;
    ck_assert_int_eq(store_each_unflushed(cache_dir, see, &s), -EUCLEAN);
    ck_assert_uint_eq(s.n, 0);
    open_store(64 * MIB, 64 * KIB);
}
END_TEST

START_TEST(long_paths_and_renames_survive)
{
    char path[4001];
    for (unsigned i = 0; i < 4000; i++)
        path[i] = i % 100 == 99 ? '/' : (char)('a' + i % 26);
    path[4000] = 0;
    struct file *f = new_file(2, "short");
    char c = 1;
    write_ok(f, &c, 1, 0);
    const char *const names[] = {path, "s", path + 3000, path + 3900, "t", ""};
    for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
        file_set_path(f, names[i]);
        file_put(f);
        store_close(false);
        open_store(64 * MIB, 64 * KIB);
        f = file_find(fid_n(2));
        ck_assert_ptr_nonnull(f);
        char *now = file_path(f);
        ck_assert_str_eq(now, names[i]);
        free(now);
    }
    file_put(f);
}
END_TEST

/* -1: this file system has no such flags. */
static int flags_of(const char *path)
{
    int flags, fd = open(path, O_RDONLY | O_DIRECTORY);
    ck_assert_int_ge(fd, 0);
    if (ioctl(fd, FS_IOC_GETFLAGS, &flags))
        flags = -1;
    close(fd);
    return flags;
}

/* Does a directory of this file system take the flag? */
static bool can_flag(int want)
{
    char probe[128];
    snprintf(probe, sizeof(probe), "%s/probe.d", cache_dir);
    ck_assert_int_eq(mkdir(probe, 0700), 0);
    int flags = want, fd = open(probe, O_RDONLY | O_DIRECTORY);
    bool can = !ioctl(fd, FS_IOC_SETFLAGS, &flags) && flags_of(probe) & want;
    close(fd);
    ck_assert_int_eq(rmdir(probe), 0);
    return can;
}

START_TEST(data_files_are_spread_over_the_disk_and_their_reads_not_noted)
{
    static const int flags[] = {FS_TOPDIR_FL, FS_NOATIME_FL};
    char data[128];
    snprintf(data, sizeof(data), "%s/data", cache_dir);
    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        bool can = can_flag(flags[i]), has = flags_of(data) >= 0 && flags_of(data) & flags[i];
        ck_assert_msg(can == has, "flag %#x: can %d, has %d", (unsigned)flags[i], can, has);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("directory");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, the_identity_stays_and_the_incarnation_grows);
    tcase_add_test(t, a_default_behind_a_link_is_refused);
    tcase_add_test(t, a_copy_knows_no_former_incarnation_and_gets_another_one);
    tcase_add_test(t, a_directory_in_use_is_refused_with_the_pid);
    tcase_add_test(t, directories_that_are_not_ours_are_refused);
    tcase_add_test(t, another_chunk_size_empties_a_clean_cache_and_refuses_a_dirty_one);
    tcase_add_test(t, what_a_dead_daemon_left_is_listed_without_a_daemon);
    tcase_add_test(t, a_list_of_what_is_unflushed_tells_that_records_are_damaged);
    tcase_add_test(t, long_paths_and_renames_survive);
    tcase_add_test(t, data_files_are_spread_over_the_disk_and_their_reads_not_noted);
    return run_case("store_dir", t);
}
