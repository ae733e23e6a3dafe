/* test_store_beside.c - changes of one chunk beside each other: the room that one has set aside, and
 * the record that another gives back meanwhile.  pwritev and fstatvfs are this program's own. */
#include "kernel_io_help.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "placement/store/state_table.h"
#include "placement/store/store_copyout.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"
#include "placement/store/store_write.h"

#define DISK_ASKED_MS 150 /* space.c asks the disk again after less */

static uint8_t data[4 * MIB];
static _Thread_local bool fails, waits, asks;
static atomic_bool writing, go, asking;
static struct fid the_fid;

static void until(atomic_bool *what)
{
    while (!*what)
        usleep(1000);
}

ssize_t pwritev(int fd, const struct iovec *iov, int n, off_t off)
{
    if (fails || waits) {
        writing = true;
        until(&go);
    }
    if (fails) {
        errno = ENOSPC; /* others have filled the disk */
        return -1;
    }
    return syscall(SYS_pwritev, fd, iov, n, off, 0);
}

/* In the middle of making room: until the other one has given the chunk's record back. */
int fstatvfs(int fd, struct statvfs *st)
{
    (void)fd;
    st->f_bavail = st->f_blocks = 1 << 24;
    st->f_frsize = 4096;
    if (asks) {
        asks = false;
        asking = go = true;
        while (state_chunk_find(the_fid, 0))
            usleep(1000);
    }
    return 0;
}

static void setup(void)
{
    pass_setup();
    put_pattern(data, sizeof(data), 0, 1);
    writing = go = asking = false;
}

/* A write of its second page, while which `meanwhile`, which is under way from *begins on, takes the record of the chunk
 * away. */
static void write_beside(struct file *f, void *(*meanwhile)(void *f), atomic_bool *begins)
{
    pthread_t t;
    uint64_t fill, begun;
    the_fid = f->fid;
    ck_assert_int_eq(pthread_create(&t, NULL, meanwhile, f), 0);
    if (begins)
        until(begins);
    begun = boot_ms();
    while (boot_ms() < begun + DISK_ASKED_MS)
        usleep(1000);
    asks = true;
    ck_assert_int_eq(store_write(f, data + 4096, 4096, 4096, SPACE_CACHE, &fill), 0);
    pthread_join(t, NULL);
    ck_assert(!asks);
    read_is(f, data + 4096, 4096, 4096);
}

static void *failing_write(void *f)
{
    uint64_t fill;
    fails = true;
    ck_assert_int_eq(store_write(f, data, 4096, 0, SPACE_CACHE, &fill), -ENOSPC);
    return NULL;
}

START_TEST(a_write_while_another_one_fails_in_a_new_chunk)
{
    struct file *f = new_file(1, "x");
    write_beside(f, failing_write, &writing);
    file_put(f);
}
END_TEST

static void *cut_off(void *f)
{
    uint64_t fill;
    until(&asking);
    ck_assert_int_eq(store_truncate(f, 8192, &fill), 0);
    return NULL;
}

START_TEST(a_write_while_the_rest_of_its_chunk_is_cut_off)
{
    struct file *f = new_file(1, "x");
    write_ok(f, data, 4096, 5 * 4096);
    write_beside(f, cut_off, NULL);
    ck_assert_uint_eq(info_of(f).size, 8192);
    file_put(f);
}
END_TEST

static void *slow_fill(void *f)
{
    struct version v = version_n(CHUNK, 3);
    waits = true;
    ck_assert_int_eq(fill_chunk(f, 0, &v, data, true), 0);
    return NULL;
}

/* It is clean and whole, so it is given to other nodes, and leaves when there is no room. */
START_TEST(a_chunk_that_is_filled_while_a_flush_ends_is_as_any_other)
{
    pthread_t t;
    static uint8_t buf[CHUNK];
    store_close(false);
    open_store(4 * MIB, CHUNK);
    struct file *f = get_file(1, "x"), *o = get_file(2, "others");
    struct version v = version_n(CHUNK, 3), w = version_n(CHUNK, 9), ov = version_n(64 * CHUNK, 3);
    struct snapshot *s;
    uint64_t hash;
    size_t n;
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
    ck_assert_int_eq(store_set_version(o, &ov, NULL), 0);
    ck_assert_int_eq(store_set_claim(f, 1, 1, &v), 0);
    write_ok(f, data, 4096, 0);
    uint64_t change = info_of(f).change;
    ck_assert_int_eq(store_flush_begins(f), 0);
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    store_snapshot_done(s, true);
    ck_assert_int_eq(pthread_create(&t, NULL, slow_fill, f), 0); /* who reads the rest of it */
    until(&writing);
    ck_assert(store_flushed(f, &w, change, NULL));
    go = true;
    pthread_join(t, NULL);
    ck_assert_int_eq(store_get_chunk(f, 0, &w, buf, &n, &hash), 0);
    ck_assert_uint_eq(n, CHUNK);
    ck_assert(!memcmp(buf, data, CHUNK));
    for (unsigned round = 0; round < 3; round++)
        for (uint64_t i = 0; i < 64; i++)
            fill_chunk(o, i, &ov, data, true);
    ck_assert_uint_eq(here(f, 0, 1), 0);
    file_put(f);
    file_put(o);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("store_beside");
    tcase_add_checked_fixture(t, setup, pass_teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_write_while_another_one_fails_in_a_new_chunk);
    tcase_add_test(t, a_write_while_the_rest_of_its_chunk_is_cut_off);
    tcase_add_test(t, a_chunk_that_is_filled_while_a_flush_ends_is_as_any_other);
    return run_case("store_beside", t);
}
