/* test_disk_fails.c - the cache's disk fails where the bytes of an older version, what a truncation
 * cut off or a failed write left are to go, or where a record is to be on it before something is done:
 * who asked is told, nobody is given bytes that are not the file's, and all goes on when the disk works
 * again. */
#include "store_help.h"
#include "suite.h"

#include "placement/store/datafile.h"
#include "placement/store/kernel_io.h"
#include "placement/store/state_int.h"
#include "placement/store/store_copyout.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"
#include "placement/store/store_write.h"
#include "placement/store/syncs.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/syscall.h>

#define CHUNK (64 * KIB)
#define SIZE  (2 * CHUNK)

static uint8_t bytes[SIZE], zeros[SIZE];
static bool broken;        /* the disk */
static bool broken_record; /* ... where the records are */
static bool broken_write, broken_punch;
static bool no_dup, no_making;
static unsigned failing_msyncs; /* so many fail, and are told once */
static const void *synced;      /* by the last one that succeeded */
static size_t synced_len;

/* Of a data file? */
static bool is_data(int fd)
{
    char link[40], path[256];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = 0;
    return strstr(path, "/data/");
}

/* In place of the C library's. */
int ftruncate(int fd, off_t length)
{
    if (broken && is_data(fd)) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_ftruncate, fd, length);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    if (broken && strchr(to, '/')) { /* a data file: the other names are in no directory */
        errno = EROFS;
        return -1;
    }
    return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, 0);
}

int openat(int dir, const char *name, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = flags & O_CREAT ? va_arg(args, int) : 0;
    va_end(args);
    if (no_making && flags & O_CREAT) {
        errno = ENOSPC;
        return -1;
    }
    return (int)syscall(SYS_openat, dir, name, flags, mode);
}

int unlinkat(int dir, const char *name, int flags)
{
    if (broken && strchr(name, '/')) {
        errno = EROFS;
        return -1;
    }
    return (int)syscall(SYS_unlinkat, dir, name, flags);
}

int msync(void *p, size_t len, int flags)
{
    if (broken_record || failing_msyncs) {
        failing_msyncs -= !broken_record;
        errno = EIO;
        return -1;
    }
    synced = p;
    synced_len = len;
    return (int)syscall(SYS_msync, p, len, flags);
}

int fallocate(int fd, int mode, off_t off, off_t len)
{
    if (broken_punch && is_data(fd)) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fallocate, fd, mode, off, len);
}

/* All of it comes, and an error is told. */
ssize_t pwritev(int fd, const struct iovec *iov, int n, off_t off)
{
    ssize_t done = syscall(SYS_pwritev, fd, iov, n, off, 0);
    if (broken_write && is_data(fd)) {
        errno = EIO;
        return -1;
    }
    return done;
}

int dup3(int from, int to, int flags)
{
    if (no_dup) {
        errno = EBUSY;
        return -1;
    }
    return (int)syscall(SYS_dup3, from, to, flags);
}

static void mend(void)
{
    broken = broken_record = broken_write = broken_punch = no_dup = no_making = false;
}

static void setup(void)
{
    dir_setup();
    open_store(64 * MIB, CHUNK);
    put_pattern(bytes, SIZE, 0, 3);
    mend();
}

static void teardown(void)
{
    mend();
    store_close(false);
    dir_teardown();
}

static struct file *whole_file(uint64_t n, const struct version *v)
{
    struct file *f = get_file(n, "whole");
    ck_assert_int_eq(store_set_version(f, v, NULL), 0);
    for (unsigned i = 0; i < SIZE / CHUNK; i++)
        ck_assert_int_eq(fill_chunk(f, i, v, bytes, true), 0);
    return f;
}

static bool is_based_on(struct file *f, const struct version *v)
{
    struct file_info info = info_of(f);
    return info.base_known && version_eq(&info.base, v) && info.size == v->size;
}

START_TEST(who_has_an_older_version_mapped_keeps_it_when_no_new_data_file_can_be_made)
{
    struct version v = version_n(SIZE, 5), w = version_n(SIZE, 6);
    struct file *f = whole_file(1, &v);
    int fd;
    unsigned life;
    ck_assert_int_eq(kernel_io_open(f, false, &fd, &life), 0);
    uint8_t *map = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0), got[SIZE];
    ck_assert_ptr_ne(map, MAP_FAILED);
    broken = true;
    ck_assert_int_eq(store_set_version(f, &w, NULL), -EIO);
    ck_assert(is_based_on(f, &v));
    ck_assert_int_eq(store_set_claim(f, 1, 1, &w), -EIO);
    ck_assert(!info_of(f).claimed && is_based_on(f, &v));
    ck_assert_int_eq(pread(fd, got, SIZE, 0), SIZE);
    ck_assert_mem_eq(got, bytes, SIZE);
    ck_assert_mem_eq(map, bytes, SIZE);

    broken = false;
    ck_assert_int_eq(store_set_claim(f, 1, 1, &w), 0);
    ck_assert(info_of(f).claimed && is_based_on(f, &w));
    write_ok(f, zeros, CHUNK, 0);
    ck_assert_mem_eq(map, bytes, SIZE);
    munmap(map, SIZE);
    close(fd);
    kernel_io_close(f, life, false);
    file_put(f);
}
END_TEST

START_TEST(a_version_is_not_taken_while_the_older_ones_bytes_can_not_go)
{
    struct version v = version_n(SIZE, 5), w = version_n(100, 6);
    struct file *f = whole_file(1, &v);
    uint64_t fill;
    broken = true;
    ck_assert_int_eq(store_set_version(f, &w, NULL), -EIO);
    ck_assert(is_based_on(f, &v));

    broken = false;
    ck_assert_int_eq(store_set_version(f, &w, NULL), 0);
    ck_assert_int_eq(fill_chunk(f, 0, &w, bytes, true), 0);
    ck_assert_int_eq(store_set_claim(f, 1, 1, &w), 0);
    ck_assert_int_eq(store_truncate(f, SIZE, &fill), 0);
    read_is(f, bytes, 100, 0);
    read_is(f, zeros, SIZE - 100, 100);
    file_put(f);
}
END_TEST

/* A file that is 10 bytes long, with more in its data file. */
static struct file *half_truncated_file(void)
{
    struct file *f = new_file(1, "cut");
    uint64_t fill;
    write_ok(f, bytes, SIZE, 0);
    broken = true;
    ck_assert_int_eq(store_truncate(f, 10, &fill), -EIO);
    ck_assert_uint_eq(info_of(f).size, 10);
    return f;
}

/* Whatever makes it longer. */
static int lengthen(struct file *f, int how)
{
    uint64_t fill;
    struct appended out;
    switch (how) {
    case 0:
        return store_truncate(f, SIZE, &fill);
    case 1:
        return store_allocate(f, 0, SIZE, false);
    case 2:
        return store_write(f, "x", 1, SIZE - 1, SPACE_CACHE, &fill);
    default:
        return store_append(f, "x", 1, SPACE_CACHE, &out, &fill);
    }
}

START_TEST(what_a_failed_truncation_left_does_not_come_back)
{
    struct file *f = half_truncated_file();
    ck_assert_int_eq(lengthen(f, _i), -EIO);
    ck_assert_uint_eq(info_of(f).size, 10);
    file_put(f); /* the next one who opens it has another object */
    f = file_find(fid_n(1));
    ck_assert_int_eq(lengthen(f, _i), -EIO);

    broken = false;
    ck_assert_int_eq(lengthen(f, _i), 0);
    if (_i == 3)
        ck_assert_int_eq(lengthen(f, 0), 0);
    read_is(f, bytes, 10, 0);
    read_is(f, _i == 3 ? (const void *)"x" : zeros, 1, 10);
    read_is(f, zeros, SIZE - 12, 11);
    file_put(f);
}
END_TEST

START_TEST(a_start_that_can_not_repair_says_so_and_touches_nothing)
{
    char err[512];
    uint64_t fill;
    file_put(half_truncated_file());
    store_close(false);
    ck_assert_int_eq(try_open(64 * MIB, CHUNK, err, sizeof(err)), -EIO);
    ck_assert_ptr_nonnull(strstr(err, "repairing"));

    broken = false;
    open_store(64 * MIB, CHUNK);
    struct file *f = file_find(fid_n(1));
    ck_assert_int_eq(store_truncate(f, SIZE, &fill), 0);
    read_is(f, bytes, 10, 0);
    read_is(f, zeros, SIZE - 10, 10);
    file_put(f);
}
END_TEST

START_TEST(a_new_file_with_the_fid_of_a_removed_one_has_nothing_of_it)
{
    struct file *f = new_file(1, "old");
    uint64_t fill;
    write_ok(f, bytes, SIZE, 0);
    store_set_deleted(f);
    broken = true;
    ck_assert_int_eq(store_set_reborn(f), -EIO);
    ck_assert(file_is_unlinked(f));

    broken = false;
    ck_assert_int_eq(store_set_reborn(f), 0);
    ck_assert(!file_is_unlinked(f));
    ck_assert_int_eq(store_truncate(f, SIZE, &fill), 0);
    read_is(f, zeros, SIZE, 0);
    ck_assert(info_of(f).dirty);
    file_put(f);
}
END_TEST

/* ---- records that can not be written ---- */

static struct file *fsynced_file(void)
{
    struct file *f = new_file(1, "fsynced");
    write_ok(f, bytes, SIZE, 0);
    ck_assert_int_eq(store_sync(f), 0);
    return f;
}

START_TEST(a_flush_neither_begins_nor_ends_while_its_record_can_not_be_written)
{
    struct file *f = fsynced_file();
    struct version v = version_n(SIZE, 5);
    struct snapshot *s;
    int err = 1;
    broken_record = true;
    ck_assert_int_eq(store_flush_begins(f), -EIO);
    ck_assert(!info_of(f).flushing);
    mend();
    ck_assert_int_eq(store_flush_begins(f), 0);
    ck_assert(info_of(f).flushing);
    ck_assert_int_eq(store_snapshot(f, 0, UINT64_MAX, &s), 0);
    store_snapshot_done(s, true);

    broken_record = true;
    for (unsigned i = 0; i < 2; i++) {
        ck_assert(!store_flushed(f, &v, info_of(f).change, &err));
        ck_assert_int_eq(err, -EIO);
        ck_assert(info_of(f).dirty);
        ck_assert(!store_clear_claim(f, &v));
    }
    mend();
    ck_assert(store_flushed(f, &v, info_of(f).change, &err));
    ck_assert_int_eq(err, 0);
    ck_assert(!info_of(f).dirty);
    ck_assert(store_clear_claim(f, &v));
    file_put(f);
}
END_TEST

/* What else of the slab was not written is not known. */
START_TEST(after_a_failed_sync_of_a_record_all_records_beside_it_are_written_again)
{
    struct file *f = fsynced_file(), *g = new_file(2, "beside");
    const struct slab *files = slab_of(&state.files, f->rec);
    write_ok(g, bytes, 10, 0);
    failing_msyncs = 1;
    ck_assert_int_eq(store_not_again(f), -EIO);
    ck_assert_ptr_eq(slab_of(&state.files, g->rec), files);
    ck_assert_int_eq(store_sync(g), 0);
    ck_assert_msg(synced == files->map && synced_len == files->bytes, "its own page only");
    write_ok(g, bytes, 20, 0);
    ck_assert_int_eq(store_sync(g), 0);
    ck_assert_uint_lt(synced_len, files->bytes); /* all is well again */
    file_put(g);
    file_put(f);
}
END_TEST

START_TEST(nothing_is_cut_off_while_a_power_loss_could_bring_it_back)
{
    struct file *f = fsynced_file();
    uint64_t fill;
    broken_record = true;
    ck_assert_int_eq(store_truncate(f, 10, &fill), -EIO);
    read_is(f, bytes, SIZE, 0);
    mend();
    ck_assert_int_eq(store_truncate(f, 10, &fill), 0);
    ck_assert_uint_eq(info_of(f).size, 10);
    file_put(f);
}
END_TEST

START_TEST(a_removed_files_fid_is_not_used_while_a_power_loss_could_bring_it_back)
{
    struct file *f = fsynced_file();
    broken_record = true;
    store_set_deleted(f);
    ck_assert_int_eq(store_not_again(f), -EIO);
    ck_assert_int_eq(store_set_reborn(f), -EIO);
    ck_assert(file_is_unlinked(f));
    mend();
    ck_assert_int_eq(store_set_reborn(f), 0);
    ck_assert_int_eq(store_not_again(f), 0);
    file_put(f);
}
END_TEST

/* ---- descriptors ---- */

START_TEST(nobody_goes_on_with_a_data_file_that_another_one_replaced)
{
    struct version v = version_n(SIZE, 5), w = version_n(SIZE, 6);
    struct file *f = whole_file(1, &v);
    uint8_t got[SIZE];
    int fd;
    unsigned life;
    ck_assert_int_eq(kernel_io_open(f, false, &fd, &life), 0);
    no_dup = true;
    ck_assert_int_eq(store_set_version(f, &w, NULL), 0);
    no_dup = false;
    ck_assert_int_eq(fill_chunk(f, 0, &w, zeros, true), 0);
    ck_assert_int_eq(pread(fd, got, SIZE, 0), SIZE);
    ck_assert_mem_eq(got, bytes, SIZE);
    close(fd);
    kernel_io_close(f, life, false);
    file_put(f);
}
END_TEST

/* ---- writes that fail, and what they leave can not be removed ---- */

START_TEST(what_a_failed_write_left_is_never_shown)
{
    struct file *f = new_file(1, "holes");
    uint64_t fill;
    uint8_t got[CHUNK];
    int fd;
    unsigned life;
    ck_assert_int_eq(store_truncate(f, CHUNK, &fill), 0);
    broken_write = broken_punch = true;
    ck_assert_int_eq(store_write(f, bytes, 3 * PAGE, PAGE, SPACE_CACHE, &fill), -EIO);
    ck_assert_int_eq(store_write(f, bytes, CHUNK, CHUNK, SPACE_CACHE, &fill), -EIO);
    broken_write = false;
    ck_assert_uint_eq(info_of(f).size, CHUNK);
    ck_assert_uint_eq(here(f, 0, CHUNK), CHUNK);
    ck_assert_int_eq(store_read(f, got, CHUNK, 0), -EIO);
    ck_assert_int_eq(kernel_io_open(f, false, &fd, &life), -EIO);

    if (_i == 1) {
        mend();
        read_is(f, zeros, CHUNK, 0);
    } else if (_i == 2) { /* the next daemon */
        char err[512];
        file_put(f);
        store_close(false);
        ck_assert_int_eq(try_open(64 * MIB, CHUNK, err, sizeof(err)), -EIO);
        mend();
        open_store(64 * MIB, CHUNK);
        f = file_find(fid_n(1));
    }
    mend();
    ck_assert_int_eq(store_truncate(f, SIZE, &fill), 0);
    ck_assert_int_eq(kernel_io_open(f, false, &fd, &life), 0);
    for (unsigned i = 0; i < SIZE / CHUNK; i++) {
        ck_assert_int_eq(pread(fd, got, CHUNK, (off_t)i * CHUNK), CHUNK);
        ck_assert_mem_eq(got, zeros, CHUNK);
    }
    close(fd);
    kernel_io_close(f, life, false);
    file_put(f);
}
END_TEST

/* The records of its first 4 GiB fit, those of the rest do not. */
START_TEST(a_punch_that_ends_half_way_has_changed_the_file)
{
    struct version v = version_n(64 * UINT64_C(1073741824), 5);
    uint64_t fill;
    store_close(false);
    remove_tree(cache_dir);
    open_store(4 * MIB, CHUNK_MAX);
    struct file *f = get_file(1, "long");
    ck_assert_int_eq(store_set_claim(f, 1, 1, &v), 0);
    struct file_info before = info_of(f);
    ck_assert_int_eq(store_punch(f, 0, v.size - PAGE, SPACE_CACHE, &fill), -ENOSPC);
    struct file_info after = info_of(f);
    ck_assert_msg(after.blocks < before.blocks, "nothing was punched: the test is none");
    ck_assert(after.dirty);
    ck_assert_uint_ne(after.change, before.change);
    ck_assert_int_gt(after.mtime_ns, before.mtime_ns);
    read_is(f, zeros, SIZE, 0);
    file_put(f);
}
END_TEST

/* As after a death between the note that a data file may be there and its making. */
START_TEST(a_data_file_that_could_not_be_made_is_a_hole)
{
    struct file *f = new_file(1, "hole");
    uint64_t fill;
    ck_assert_int_eq(store_truncate(f, SIZE, &fill), 0);
    no_making = true;
    ck_assert_int_eq(store_write(f, bytes, CHUNK, 0, SPACE_CACHE, &fill), -ENOSPC);
    if (_i == 1) { /* the next daemon */
        file_put(f);
        store_close(false);
        mend();
        open_store(64 * MIB, CHUNK);
        f = file_find(fid_n(1));
    }
    read_is(f, zeros, SIZE, 0);
    ck_assert_int_eq(store_sync(f), 0);
    mend();
    write_ok(f, bytes, CHUNK, 0);
    read_is(f, bytes, CHUNK, 0);
    read_is(f, zeros, CHUNK, CHUNK);
    file_put(f);
}
END_TEST

/* But not one that was there. */
START_TEST(bytes_whose_data_file_is_gone_are_not_zeros)
{
    struct file *f = new_file(1, "gone");
    uint8_t got[PAGE];
    write_ok(f, bytes, SIZE, 0);
    file_put(f);
    ck_assert_int_eq(datafile_remove(fid_n(1)), 0);
    store_close(false);
    open_store(64 * MIB, CHUNK);
    f = file_find(fid_n(1));
    ck_assert_int_eq(store_pread(f, got, PAGE, 0), -EIO);
    ck_assert_int_eq(store_read(f, got, PAGE, 0), -EIO);
    file_put(f);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("disk_fails");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, who_has_an_older_version_mapped_keeps_it_when_no_new_data_file_can_be_made);
    tcase_add_test(t, a_version_is_not_taken_while_the_older_ones_bytes_can_not_go);
    tcase_add_loop_test(t, what_a_failed_truncation_left_does_not_come_back, 0, 4);
    tcase_add_test(t, a_start_that_can_not_repair_says_so_and_touches_nothing);
    tcase_add_test(t, a_new_file_with_the_fid_of_a_removed_one_has_nothing_of_it);
    tcase_add_test(t, a_flush_neither_begins_nor_ends_while_its_record_can_not_be_written);
    tcase_add_test(t, after_a_failed_sync_of_a_record_all_records_beside_it_are_written_again);
    tcase_add_test(t, nothing_is_cut_off_while_a_power_loss_could_bring_it_back);
    tcase_add_test(t, a_removed_files_fid_is_not_used_while_a_power_loss_could_bring_it_back);
    tcase_add_test(t, nobody_goes_on_with_a_data_file_that_another_one_replaced);
    tcase_add_loop_test(t, what_a_failed_write_left_is_never_shown, 0, 3);
    tcase_add_test(t, a_punch_that_ends_half_way_has_changed_the_file);
    tcase_add_loop_test(t, a_data_file_that_could_not_be_made_is_a_hole, 0, 2);
    tcase_add_test(t, bytes_whose_data_file_is_gone_are_not_zeros);
    return run_case("disk_fails", t);
}
