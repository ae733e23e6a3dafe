/* test_remover.c - what the cache has of removed files goes when their removals pause, and before
 * anybody meets it. */
#include "store_help.h"
#include "suite.h"

#include <pthread.h>
#include <stdatomic.h>

#include "placement/pfs/pfs_fid.h"
#include "placement/store/remover.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"

#define NEVER_MS 3600000
#define SIZE     (8 * KIB)

static uint8_t data[SIZE];

static void setup(void)
{
    dir_setup();
    remover_pause_ms = NEVER_MS;
    open_store(64 * MIB, 64 * KIB);
    put_pattern(data, sizeof(data), 0, 1);
}

static void teardown(void)
{
    store_close(false);
    dir_teardown();
}

static bool has_data_file(uint64_t n)
{
    char path[200], fid[FID_TEXT];
    struct stat st;
    fid_text(fid_n(n), fid);
    snprintf(path, sizeof(path), "%s/data/%s/%s", cache_dir, fid + FID_TEXT - 3, fid);
    return !stat(path, &st);
}

/* A clean file of `size` whose last name is removed: of its object the reference is left. */
static struct file *removed_file(uint64_t n, size_t size)
{
    struct version v = version_n(size, 1);
    uint8_t *bytes = calloc(1, size);
    struct file *f = get_file(n, "a");
    memcpy(bytes, data, size < SIZE ? size : SIZE);
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
    for (uint64_t i = 0; i * 64 * KIB < size; i++)
        ck_assert_int_eq(fill_chunk(f, i, &v, bytes, true), 0);
    free(bytes);
    ck_assert(has_data_file(n));
    store_set_deleted(f);
    return f;
}

static uint64_t files_in_store(void)
{
    struct store_usage u;
    store_usage(&u);
    return u.files;
}

START_TEST(nobody_waits_for_a_small_file)
{
    for (uint64_t n = 1; n <= 3; n++)
        file_put_removed(removed_file(n, SIZE));
    for (uint64_t n = 1; n <= 3; n++)
        ck_assert(has_data_file(n));
    ck_assert_uint_eq(files_in_store(), 3);
}
END_TEST

START_TEST(small_files_go_after_a_pause)
{
    remover_pause_ms = 20;
    for (uint64_t n = 1; n <= 30; n++)
        file_put_removed(removed_file(n, SIZE));
    while (files_in_store())
        usleep(1000);
    for (uint64_t n = 1; n <= 30; n++)
        ck_assert(!has_data_file(n));
}
END_TEST

/* Where the PFS gives the inode's number to a new file and tells no birth times. */
START_TEST(who_asks_for_its_fid_finds_nothing_of_it)
{
    for (uint64_t n = 1; n <= 3; n++)
        file_put_removed(removed_file(n, SIZE));
    struct file *f = get_file(2, "b");
    ck_assert(!has_data_file(2));
    ck_assert_uint_eq(info_of(f).size, 0);
    ck_assert_uint_eq(here(f, 0, SIZE), 0);
    file_put(f);
    ck_assert_ptr_null(file_find(fid_n(3)));
    ck_assert(!has_data_file(3));
    ck_assert(has_data_file(1));
}
END_TEST

START_TEST(a_large_file_and_one_that_is_not_deleted_go_at_once)
{
    file_put_removed(removed_file(1, REMOVER_FILE_MAX + KIB));
    ck_assert(!has_data_file(1));
    struct version v = version_n(SIZE, 1);
    struct file *f = get_file(2, "kept");
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
    ck_assert_int_eq(fill_chunk(f, 0, &v, data, true), 0);
    file_put_removed(f); /* it has another name */
    f = file_find(fid_n(2));
    ck_assert_ptr_nonnull(f);
    read_is(f, data, SIZE, 0);
    file_put(f);
}
END_TEST

/* In what they take on the disk. */
START_TEST(what_waits_is_bounded)
{
    uint64_t n, dirty, room, size = _i ? 64 * KIB : 100, takes = _i ? size : 4 * KIB;
    store_dirty(&dirty, &room);
    for (n = 1; n * takes < room / 32; n++)
        file_put_removed(removed_file(n, size));
    uint64_t waiting = files_in_store();
    ck_assert_uint_ge(waiting, 2);
    ck_assert_uint_le(waiting * takes, room / 64);
    ck_assert(has_data_file(1));
    ck_assert(!has_data_file(n - 1)); /* by who removed it */
}
END_TEST

START_TEST(none_is_left_at_the_end)
{
    for (uint64_t n = 1; n <= 5; n++)
        file_put_removed(removed_file(n, SIZE));
    store_close(true);
    for (uint64_t n = 1; n <= 5; n++)
        ck_assert(!has_data_file(n));
    open_store(64 * MIB, 64 * KIB);
    ck_assert_uint_eq(files_in_store(), 0);
}
END_TEST

static _Atomic uint64_t newest;
static _Atomic bool over;

/* As another node does, or a look at what is dirty. */
static void *ask(void *arg)
{
    for (uint64_t back = 0; !over; back = (back + 1) % 20) {
        uint64_t n = newest;
        struct file *f = n > back ? file_find(fid_n(n - back)) : NULL;
        if (f)
            file_put(f);
    }
    return arg;
}

START_TEST(who_asks_beside_the_remover_takes_some_down_and_none_twice)
{
    pthread_t threads[2];
    remover_pause_ms = 0;
    for (unsigned t = 0; t < 2; t++)
        ck_assert_int_eq(pthread_create(&threads[t], NULL, ask, NULL), 0);
    for (uint64_t n = 1; n <= 2000; n++) {
        file_put_removed(removed_file(n, SIZE));
        newest = n;
    }
    over = true;
    for (unsigned t = 0; t < 2; t++)
        pthread_join(threads[t], NULL);
    while (files_in_store())
        usleep(1000);
    ck_assert(!has_data_file(newest));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("remover");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, nobody_waits_for_a_small_file);
    tcase_add_test(t, small_files_go_after_a_pause);
    tcase_add_test(t, who_asks_for_its_fid_finds_nothing_of_it);
    tcase_add_test(t, a_large_file_and_one_that_is_not_deleted_go_at_once);
    tcase_add_loop_test(t, what_waits_is_bounded, 0, 2);
    tcase_add_test(t, none_is_left_at_the_end);
    tcase_add_test(t, who_asks_beside_the_remover_takes_some_down_and_none_twice);
    return run_case("remover", t);
}
