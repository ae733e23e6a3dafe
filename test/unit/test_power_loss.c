/* test_power_loss.c - what is left of the cache after a power loss: what was fsynced, and no byte that
 * is in doubt without a word. */
#include "placement/store/kernel_io.h"
#include "placement/store/state.h"
#include "placement/store/store_copyout.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"
#include "placement/store/store_write.h"
#include "power_loss.h"

START_TEST(after_a_clean_end_and_a_boot_all_is_trusted)
{
    cached_file(1);
    store_close(true);
    open_store(LIMIT, CHUNK);
    store_close(true);
    power_loss();
    open_store(LIMIT, CHUNK);
    struct file *f = file_find(fid_n(1));
    ck_assert_ptr_nonnull(f);
    read_is(f, data, sizeof(data), 0);
    file_put(f);
}
END_TEST

START_TEST(a_truncation_keeps_what_was_fsynced_of_the_rest)
{
    uint64_t fill;
    struct file_info info;
    struct file *f = new_file(1, "cut");
    write_ok(f, data, 150000, 0);
    ck_assert_int_eq(store_sync(f), 0);
    ck_assert_int_eq(store_truncate(f, 70000, &fill), 0);
    file_put(f);
    f = after_boot(1);
    store_info(f, &info);
    ck_assert(info.dirty);
    ck_assert_uint_eq(info.size, 70000);
    read_is(f, data, 70000, 0);
    file_put(f);
}
END_TEST

/* As if the page with its record had not been written yet, and those of its chunks had. */
static void forget_record(struct fid fid)
{
    char path[200];
    struct file_record r;
    snprintf(path, sizeof(path), "%s/slabs/files.000", cache_dir);
    int fd = open(path, O_RDWR);
    ck_assert_int_ge(fd, 0);
    for (off_t at = 4096; pread(fd, &r, sizeof(r), at) == sizeof(r); at += FILE_SLOT)
        if (r.magic == FILE_MAGIC && fid_eq(r.fid, fid))
            ck_assert_int_eq(pwrite(fd, &(uint32_t){0}, 4, at), 4);
    close(fd);
}

START_TEST(records_of_another_age_put_no_other_file_in_doubt)
{
    struct file *f = new_file(1, "fsynced"), *g = new_file(2, "young");
    write_ok(f, data, 150000, 0);
    ck_assert_int_eq(store_sync(f), 0);
    write_ok(g, data, 150000, 0);
    file_put(f);
    file_put(g);
    power_loss();
    forget_record(fid_n(2));
    open_store(LIMIT, CHUNK);
    ck_assert_ptr_null(file_find(fid_n(2)));
    f = file_find(fid_n(1));
    ck_assert_ptr_nonnull(f);
    read_is(f, data, 150000, 0);
    file_put(f);
}
END_TEST

/* What the kernel stored after the fsync was flushed, but had not got to the cache's disk. */
START_TEST(what_the_kernel_stored_after_an_fsync_comes_back_as_no_zeros)
{
    char path[300];
    int backing;
    unsigned life;
    struct file_info info;
    struct file *f = new_file(1, "served by the kernel");
    ck_assert_int_eq(kernel_io_open(f, true, &backing, &life), 0);
    close(backing);
    data_path(fid_n(1), path);
    int fd = open(path, O_WRONLY);
    ck_assert_int_eq(pwrite(fd, data, 100000, 0), 100000);
    ck_assert_int_eq(store_sync(f), 0);
    ck_assert_int_eq(pwrite(fd, data, 150000, 0), 150000);
    ck_assert_int_eq(kernel_io_mark(f, NULL, NULL), 0);
    store_flush_begins(f);
    struct version v = version_n(150000, 9);
    ck_assert_msg(!store_flushed(f, &v, 0, NULL), "a flush that missed something is clean");
    kernel_io_forget();
    file_put(f);
    power_loss();
    ck_assert_int_eq(ftruncate(fd, 100000), 0);
    close(fd);
    open_store(LIMIT, CHUNK);
    f = file_find(fid_n(1));
    ck_assert_ptr_nonnull(f);
    store_info(f, &info);
    ck_assert_uint_eq(info.size, 100000);
    read_is(f, data, 100000, 0);
    file_put(f);
}
END_TEST

START_TEST(clean_pages_do_not_survive_a_power_loss)
{
    cached_file(1);
    power_loss();
    open_store(LIMIT, CHUNK);
    ck_assert_ptr_null(file_find(fid_n(1)));
    struct store_usage u;
    store_usage(&u);
    ck_assert_uint_eq(u.chunks, 0);
    char path[200];
    snprintf(path, sizeof(path), "%s/data/01/%016llx%016llx", cache_dir,
             (unsigned long long)fid_n(1).hi, (unsigned long long)fid_n(1).lo);
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

START_TEST(what_fsync_covered_survives_a_power_loss_and_is_flushed)
{
    struct file *f = new_file(2, "dir/synced");
    struct seen s = {0};
    write_ok(f, data, 100000, 0);
    ck_assert_int_eq(store_sync(f), 0);
    file_put(f);
    power_loss();
    ck_assert_int_eq(store_each_unflushed(cache_dir, see, &s), 0);
    ck_assert(s.n == 1 && !s.suspect && !strcmp(s.path, "dir/synced"));
    open_store(LIMIT, CHUNK);
    f = file_find(fid_n(2));
    ck_assert_ptr_nonnull(f);
    read_is(f, data, 100000, 0);
    struct snapshot *snap;
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &snap), 0);
    ck_assert_uint_eq(snap->bytes, 100000);
    store_snapshot_done(snap, false);
    file_put(f);
}
END_TEST

START_TEST(what_was_appended_after_the_fsync_is_lost_and_the_rest_is_as_fsynced)
{
    struct file_info info;
    uint8_t zeros[4096] = {0};
    struct file *f = new_file(2, "log");
    write_ok(f, data, 50000, 0);
    ck_assert_int_eq(store_sync(f), 0);
    write_ok(f, data + 50000, 70000, 50000);
    file_put(f);
    f = after_boot(2);
    store_info(f, &info);
    ck_assert_uint_eq(info.size, 50000);
    ck_assert(info.dirty);
    read_is(f, data, 50000, 0);
    uint64_t fill;
    ck_assert_int_eq(store_truncate(f, 54096, &fill), 0);
    read_is(f, zeros, 4096, 50000); /* nothing of it shows up again */
    file_put(f);
}
END_TEST

START_TEST(what_no_fsync_covered_is_set_aside_and_named)
{
    struct seen s = {0};
    struct file *f = new_file(2, "dir/un\nsynced");
    write_ok(f, data, 5000, 0);
    file_put(f);
    power_loss();
    ck_assert_int_eq(store_each_unflushed(cache_dir, see, &s), 0);
    ck_assert(s.n == 1 && s.suspect);
    for (unsigned i = 0; i < 2; i++) {
        open_store(LIMIT, CHUNK);
        ck_assert_ptr_null(file_find(fid_n(2)));
        s.n = 0;
        ck_assert_int_eq(store_each_suspect(see, &s), 0);
        ck_assert_uint_eq(s.n, 1);
        ck_assert(s.suspect && s.bytes == 8192);
        ck_assert_str_eq(s.path, "dir/un\nsynced");
        store_close(true);
        s.n = 0;
        ck_assert_int_eq(store_each_unflushed(cache_dir, see, &s), 0);
        ck_assert_uint_eq(s.n, 1);
    }
    char path[200];
    uint8_t have[5000];
    snprintf(path, sizeof(path), "%s/suspect/%016llx%016llx", cache_dir,
             (unsigned long long)fid_n(2).hi, (unsigned long long)fid_n(2).lo);
    int fd = open(path, O_RDONLY);
    ck_assert_int_eq(read(fd, have, sizeof(have)), sizeof(have));
    ck_assert_mem_eq(have, data, sizeof(have));
    close(fd);
    open_store(LIMIT, CHUNK);
    f = new_file(2, "dir/un\nsynced"); /* its fid is free for what the PFS has */
    write_ok(f, data, 10, 0);
    read_is(f, data, 10, 0);
    file_put(f);
}
END_TEST

START_TEST(what_was_flushed_and_given_back_does_not_come_back)
{
    struct version v;
    struct seen s = {0};
    struct file *f = new_file(2, "x");
    write_ok(f, data, 5000, 0);
    ck_assert_int_eq(store_sync(f), 0);
    flush_all_of(f, &v);
    ck_assert(store_clear_claim(f, &v));
    file_put(f);
    power_loss();
    open_store(LIMIT, CHUNK);
    ck_assert_int_eq(store_each_claimed(NULL, NULL), 0);
    ck_assert_int_eq(store_each_suspect(see, &s), 0);
    ck_assert_uint_eq(s.n, 0);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("power loss");
    tcase_add_checked_fixture(t, setup_store, teardown_store);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, after_a_clean_end_and_a_boot_all_is_trusted);
    tcase_add_test(t, a_truncation_keeps_what_was_fsynced_of_the_rest);
    tcase_add_test(t, records_of_another_age_put_no_other_file_in_doubt);
    tcase_add_test(t, what_the_kernel_stored_after_an_fsync_comes_back_as_no_zeros);
    tcase_add_test(t, clean_pages_do_not_survive_a_power_loss);
    tcase_add_test(t, what_fsync_covered_survives_a_power_loss_and_is_flushed);
    tcase_add_test(t, what_was_appended_after_the_fsync_is_lost_and_the_rest_is_as_fsynced);
    tcase_add_test(t, what_no_fsync_covered_is_set_aside_and_named);
    tcase_add_test(t, what_was_flushed_and_given_back_does_not_come_back);
    return run_case("power loss", t);
}
