/* test_shadow.c - what descriptors that the kernel serves from a data file read after the store has left it. */
#include "kernel_io_help.h"

#include "placement/store/datafile_kernel_io.h"
#include "placement/store/kernel_io.h"
#include "placement/store/shadow.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"

#include <fcntl.h>
#include <sys/mman.h>

/* What a process that has it open reads. */
static int in_use;
static struct file *put_file;

static struct file *open_whole(unsigned *life)
{
    struct version v = version_n(SIZE, 5);
    struct file *f = get_file(1, "whole");
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
    for (unsigned k = 0; k < SIZE / CHUNK; k++)
        ck_assert_int_eq(fill_chunk(f, k, &v, bytes, true), 0);
    ck_assert_int_eq(kernel_io_open(f, false, &in_use, life), 0);
    return f;
}

static void assert_reads(uint64_t off, const void *expected, size_t len)
{
    char buf[4096];
    ck_assert_int_eq(pread(in_use, buf, len, (off_t)off), (ssize_t)len);
    ck_assert_int_eq(memcmp(buf, expected, len), 0);
}

static off_t length(void)
{
    return lseek(in_use, 0, SEEK_END);
}

/* The last descriptor of the data file ends its shadow, whichever node id it has. */
static void close_all(struct file *f, unsigned life)
{
    ck_assert(kernel_io_is_open(f));
    kernel_io_close(f, life, false);
    ck_assert(!shadow_is(f) && !kernel_io_is_open(f));
    close(in_use);
    file_put(f);
}

START_TEST(a_new_version_leaves_the_old_bytes_and_then_new_ones_come)
{
    unsigned life;
    struct version v = version_n(SIZE, 6);
    struct file *f = open_whole(&life);
    char first[100];
    ck_assert_int_eq(pread(in_use, first, sizeof(first), 0), sizeof(first));
    ck_assert(!shadow_is(f));
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
    ck_assert(shadow_is(f));
    assert_reads(0, first, sizeof(first));
    ck_assert_int_eq(length(), SIZE);
    shadow_write(f, "new", 3, SIZE);
    assert_reads(SIZE, "new", 3);
    shadow_zero(f, 10, 20);
    memset(first + 10, 0, 20);
    assert_reads(0, first, sizeof(first));
    shadow_resize(f, 50);
    ck_assert_int_eq(length(), 50);
    close_all(f, life);
}
END_TEST

START_TEST(what_is_told_makes_a_shadow)
{
    unsigned life;
    struct file *f = open_whole(&life);
    ck_assert_int_eq(shadow_begin(f), 0);
    ck_assert(shadow_is(f));
    uint64_t miss, n;
    ck_assert_msg(store_missing(f, 0, SIZE, &miss, &n) && miss == 0 && n == SIZE, "the store has bytes that are the shadow's");
    ck_assert_int_eq(shadow_begin(f), 0); /* there is one */
    shadow_write(f, "told", 4, 4096);
    assert_reads(4096, "told", 4);
    close_all(f, life);
}
END_TEST

START_TEST(it_lives_as_long_as_any_descriptor_of_its_data_file)
{
    unsigned life, second;
    int fd;
    struct file *f = open_whole(&life);
    ck_assert(!shadow_join(f, life)); /* there is none yet */
    ck_assert_int_eq(kernel_io_open(f, false, &fd, &second), 0);
    ck_assert_uint_eq(second, life);
    close(fd);
    ck_assert_int_eq(shadow_begin(f), 0);
    ck_assert(shadow_join(f, life));
    ck_assert(!shadow_join(f, life + 1));
    kernel_io_close(f, second, false);
    kernel_io_close(f, life + 2, false); /* of another data file */
    kernel_io_close(f, life, true);
    ck_assert(shadow_is(f));
    close_all(f, life);
}
END_TEST

START_TEST(without_such_descriptors_there_is_none)
{
    unsigned life;
    struct version v = version_n(SIZE, 6);
    struct file *f = open_whole(&life);
    kernel_io_close(f, life, false);
    close(in_use);
    ck_assert_int_eq(shadow_begin(f), 0);
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
    ck_assert(!shadow_is(f));
    shadow_write(f, "nothing", 7, 0);
    file_put(f);
}
END_TEST

/* A piece that was read before a change must not come over it. */
START_TEST(what_is_filled_gives_way_to_changes)
{
    unsigned life;
    struct version v = version_n(SIZE, 6);
    struct file *f = open_whole(&life);
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
    uint64_t changes = shadow_changes(f);
    ck_assert_int_eq(shadow_fill(f, "version 6", 9, 0, 9, changes), 0);
    ck_assert_int_eq(length(), 9);
    shadow_now_at(f, &v);
    ck_assert(shadow_is_at(f, &v));
    shadow_write(f, "changed", 7, 0);
    ck_assert(!shadow_is_at(f, &v));
    ck_assert_int_eq(shadow_fill(f, "version 6", 9, 0, 9, changes), -EAGAIN);
    assert_reads(0, "changed 6", 9);
    close_all(f, life);
}
END_TEST

/* The claimant tells of its changes, but not of what others have changed on the PFS before it. */
START_TEST(what_another_node_claims_is_all_there_if_it_began_with_the_same_version)
{
    unsigned life;
    struct version had = version_n(SIZE, 5), v = version_n(SIZE, 6);
    struct file *f = open_whole(&life);
    ck_assert_int_eq(shadow_begin(f), 0);
    ck_assert(shadow_follows_claim(f, 2, version_mark(&had)));
    shadow_write(f, "told", 4, 0);
    ck_assert(shadow_follows_claim(f, 2, version_mark(&had)));
    ck_assert(!shadow_follows_claim(f, 2, version_mark(&v)));
    ck_assert(!shadow_follows_claim(f, 2, 0));
    shadow_now_of_claim(f, 2, version_mark(&v));
    ck_assert(shadow_follows_claim(f, 2, version_mark(&v)));
    ck_assert(!shadow_follows_claim(f, 3, version_mark(&v)));
    close_all(f, life);
}
END_TEST

/* What this node owes to the PFS is in the data file: it stays there. */
START_TEST(what_is_claimed_here_gets_no_shadow)
{
    unsigned life;
    struct version v = version_n(SIZE, 5);
    struct file *f = open_whole(&life);
    ck_assert_int_eq(store_set_claim(f, 1, 1, &v), 0);
    ck_assert_int_eq(shadow_begin(f), -EBUSY);
    ck_assert(!shadow_is(f));
    ck_assert(store_clear_claim(f, &v));
    close_all(f, life);
}
END_TEST

/* ---- what is stored into it by a mapping ---- */

static struct {
    unsigned calls;
    int err;
    uint64_t off;
    size_t len;
    char bytes[4096];
} stored;

static int put_here(void *arg, const char *buf, size_t len, uint64_t off)
{
    (void)arg;
    stored.calls++;
    stored.off = off;
    stored.len = len;
    memcpy(stored.bytes, buf, MIN(len, sizeof(stored.bytes)));
    return stored.err;
}

static int take(struct file *f, int err)
{
    stored.calls = 0;
    stored.err = err;
    return shadow_stores_take(f, put_here, NULL);
}

static void assert_put(uint64_t off, const void *bytes, size_t len)
{
    ck_assert_uint_eq(stored.calls, 1);
    ck_assert_uint_eq(stored.off, off / 4096 * 4096);
    ck_assert_uint_eq(stored.len, 4096);
    ck_assert_int_eq(memcmp(stored.bytes + off % 4096, bytes, len), 0);
}

/* A process opens the shadow again for reading and writing, and maps it. */
static char *map_shadow(struct file *f, unsigned life, int *fd)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", in_use);
    ck_assert_int_eq(shadow_begin(f), 0);
    ck_assert(shadow_join(f, life));
    ck_assert_int_eq(shadow_stores_begin(f), 0);
    *fd = open(path, O_RDWR);
    ck_assert_int_ge(*fd, 0);
    char *map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    ck_assert_ptr_ne(map, MAP_FAILED);
    return map;
}

static void unmap_shadow(struct file *f, char *map, int fd, unsigned life)
{
    close(fd);
    ck_assert_msg(!shadow_stores_are_over(f), "it is mapped");
    munmap(map, SIZE);
    ck_assert(shadow_stores_are_over(f));
    kernel_io_close(f, life, false);
    shadow_write(f, "still", 5, 0);
    assert_reads(0, "still", 5);
    close_all(f, life);
}

START_TEST(what_is_stored_by_a_mapping_is_found_once)
{
    unsigned life;
    int fd;
    struct file *f = open_whole(&life);
    char *map = map_shadow(f, life, &fd);
    ck_assert_int_eq(take(f, 0), 0);
    ck_assert_uint_eq(stored.calls, 0);
    for (int k = 0; k < 3; k++) { /* also where it was stored before */
        memcpy(map + 5000, k % 2 ? "odd " : "even", 4);
        ck_assert_int_eq(take(f, 0), 0);
        assert_put(5000, k % 2 ? "odd " : "even", 4);
        ck_assert_int_eq(take(f, 0), 0);
        ck_assert_uint_eq(stored.calls, 0);
    }
    usleep(50000); /* older than the grain of the times: what is stored shows by them alone */
    ck_assert_int_eq(take(f, 0), 0);
    memcpy(map + 5000, "late", 4);
    ck_assert_int_eq(take(f, 0), 0);
    assert_put(5000, "late", 4);
    unmap_shadow(f, map, fd, life);
}
END_TEST

START_TEST(what_is_stored_stays_beside_changes)
{
    unsigned life;
    int fd;
    struct file *f = open_whole(&life);
    char *map = map_shadow(f, life, &fd), page[4096];
    memcpy(map, "stored", 6);
    shadow_write(f, "told", 4, 100); /* in one page; and what is told alone is no store */
    shadow_write(f, "told", 4, 3 * 4096);
    ck_assert_int_eq(take(f, -EIO), -EIO);
    ck_assert_int_eq(take(f, 0), 0); /* once more */
    assert_put(0, "stored", 6);
    ck_assert_int_eq(memcmp(stored.bytes + 100, "told", 4), 0);
    memcpy(map + 4096, "stored", 6);
    memset(page, 'f', sizeof(page));
    for (uint64_t off = 0; off < 3 * 4096; off += 4096)
        ck_assert_int_eq(shadow_fill(f, page, 4096, off, SIZE, shadow_changes(f)), 0);
    assert_reads(4096, "stored", 6);
    assert_reads(0, page, 4096);
    ck_assert_int_eq(take(f, 0), 0);
    assert_put(4096, "stored", 6);
    memcpy(map + 2 * 4096 + 100, "cut", 3); /* what is cut off is no store, and nor are the zeros behind a new end */
    shadow_resize(f, 2 * 4096 + 50);
    shadow_resize(f, SIZE);
    ck_assert_int_eq(take(f, 0), 0);
    ck_assert_msg(stored.calls == 0 || (stored.off == 2 * 4096 && !memcmp(stored.bytes, page, 50) && !stored.bytes[100]),
                  "%u calls, at %llu", stored.calls, (unsigned long long)stored.off);
    unmap_shadow(f, map, fd, life);
}
END_TEST

/* The file's own change, which comes to its shadow as any, brings nothing older than what was stored meanwhile. */
static int put_into_file(void *arg, const char *buf, size_t len, uint64_t off)
{
    char *map = arg;
    memcpy(map + off, "newer", 5);
    shadow_write(put_file, buf, len, off);
    return put_here(NULL, buf, len, off);
}

START_TEST(what_is_stored_while_it_is_put_stays)
{
    unsigned life;
    int fd;
    struct file *f = open_whole(&life);
    char *map = map_shadow(f, life, &fd), page[4096];
    put_file = f;
    memcpy(map, "older", 5);
    stored.calls = 0;
    stored.err = 0;
    ck_assert_int_eq(shadow_stores_take(f, put_into_file, map), 0);
    assert_put(0, "older", 5);
    assert_reads(0, "newer", 5);
    ck_assert_int_eq(take(f, 0), 0);
    assert_put(0, "newer", 5);
    memcpy(page, stored.bytes, sizeof(page)); /* it comes back later, too */
    memcpy(map, "again", 5);
    shadow_write(f, page, sizeof(page), 0);
    assert_reads(0, "again", 5);
    ck_assert_int_eq(take(f, 0), 0);
    assert_put(0, "again", 5);
    unmap_shadow(f, map, fd, life);
}
END_TEST

/* ---- a copy of the data file ---- */

/* The node owes the file to the PFS; a process maps the data file for storing, and other nodes are to be told of that. */
static struct file *open_claimed(unsigned *life, int *fd, char **map)
{
    char path[64];
    struct version v = version_n(SIZE, 5);
    struct file *f = open_whole(life);
    ck_assert_int_eq(store_set_claim(f, 1, 1, &v), 0);
    write_ok(f, "owed", 4, 8192);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", in_use);
    *fd = open(path, O_RDWR);
    ck_assert_int_ge(*fd, 0);
    *map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    ck_assert_ptr_ne(*map, MAP_FAILED);
    return f;
}

START_TEST(what_is_claimed_gets_a_shadow_by_a_copy)
{
    unsigned life;
    int fd;
    char *map, page[4096];
    struct stat copy, left;
    struct file *f = open_claimed(&life, &fd, &map);
    ck_assert_int_eq(shadow_begin_by_copy(f), 0);
    ck_assert(shadow_is(f));
    ck_assert(!shadow_is_at(f, &(struct version){0}));
    datafile_stat(f, &copy);
    fstat(in_use, &left);
    ck_assert_msg(copy.st_ino != left.st_ino, "the store still has the file of the descriptors");
    ck_assert_int_eq(copy.st_size, left.st_size);
    ck_assert_int_eq(store_read(f, page, 4096, 8192), 4096);
    ck_assert_int_eq(memcmp(page, "owed", 4), 0);
    assert_reads(8192, page, 4096);
    ck_assert_int_eq(store_read(f, page, 4096, 4096), 4096);
    ck_assert_int_eq(memcmp(page, bytes + 4096, 4096), 0);
    ck_assert(info_of(f).dirty);
    ck_assert_int_eq(shadow_begin_by_copy(f), 0); /* there is one */
    /* what is stored is found; what changes in the store stays there until the shadow gets it */
    memcpy(map + 100, "store", 5);
    ck_assert_int_eq(take(f, 0), 0);
    assert_put(100, "store", 5);
    write_ok(f, "other", 5, 8192);
    assert_reads(8192, "owed", 4);
    munmap(map, SIZE);
    close(fd);
    close_all(f, life);
}
END_TEST

START_TEST(a_copy_needs_descriptors_and_room)
{
    unsigned life;
    int fd;
    char *map;
    struct file *f = open_claimed(&life, &fd, &map);
    munmap(map, SIZE);
    close(fd);
    struct file *other = get_file(2, "fills the cache");
    uint64_t fill, off = 0;
    while (!store_write(other, bytes, SIZE, off, SPACE_CACHE, &fill))
        off += SIZE;
    ck_assert_int_eq(shadow_begin_by_copy(f), -ENOSPC);
    ck_assert(!shadow_is(f));
    kernel_io_close(f, life, false);
    ck_assert_int_eq(shadow_begin_by_copy(f), 0);
    ck_assert(!shadow_is(f));
    close(in_use);
    file_put(other);
    file_put(f);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("shadow");
    tcase_add_checked_fixture(t, pass_setup, pass_teardown);
    tcase_add_test(t, a_new_version_leaves_the_old_bytes_and_then_new_ones_come);
    tcase_add_test(t, what_is_told_makes_a_shadow);
    tcase_add_test(t, it_lives_as_long_as_any_descriptor_of_its_data_file);
    tcase_add_test(t, without_such_descriptors_there_is_none);
    tcase_add_test(t, what_is_filled_gives_way_to_changes);
    tcase_add_test(t, what_another_node_claims_is_all_there_if_it_began_with_the_same_version);
    tcase_add_test(t, what_is_claimed_here_gets_no_shadow);
    tcase_add_test(t, what_is_claimed_gets_a_shadow_by_a_copy);
    tcase_add_test(t, a_copy_needs_descriptors_and_room);
    tcase_add_test(t, what_is_stored_by_a_mapping_is_found_once);
    tcase_add_test(t, what_is_stored_stays_beside_changes);
    tcase_add_test(t, what_is_stored_while_it_is_put_stays);
    return run_case("shadow", t);
}
