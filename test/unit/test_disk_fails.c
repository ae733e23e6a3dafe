/* test_disk_fails.c - the cache's disk fails where the bytes of an older version, or what a
 * truncation cut off, are to go: who asked is told, nobody is given bytes that are not the file's,
 * and all goes on when the disk works again. */
#include "store_help.h"
#include "suite.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#define CHUNK (64 * KIB)
#define SIZE  (2 * CHUNK)

static uint8_t bytes[SIZE], zeros[SIZE];
static bool broken; /* the disk */

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

int unlinkat(int dir, const char *name, int flags)
{
    if (broken && strchr(name, '/')) {
        errno = EROFS;
        return -1;
    }
    return (int)syscall(SYS_unlinkat, dir, name, flags);
}

static void setup(void)
{
    dir_setup();
    open_store(64 * MIB, CHUNK);
    put_pattern(bytes, SIZE, 0, 3);
    broken = false;
}

static void teardown(void)
{
    broken = false;
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
    ck_assert_int_eq(store_pass_open(f, false, &fd, &life), 0);
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
    store_pass_close(f, life, false);
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
    uint64_t fill, off;
    switch (how) {
    case 0:
        return store_truncate(f, SIZE, &fill);
    case 1:
        return store_allocate(f, 0, SIZE, false);
    case 2:
        return store_write(f, "x", 1, SIZE - 1, &fill);
    default:
        return store_append(f, "x", 1, &off, &fill);
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
    ck_assert(f->unlinked);

    broken = false;
    ck_assert_int_eq(store_set_reborn(f), 0);
    ck_assert(!f->unlinked);
    ck_assert_int_eq(store_truncate(f, SIZE, &fill), 0);
    read_is(f, zeros, SIZE, 0);
    ck_assert(info_of(f).dirty);
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
    return run_case("disk_fails", t);
}
