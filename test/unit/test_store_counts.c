/* test_store_counts.c - what is set aside for changes, and what counts as used and dirty.  pwritev
 * and pwritev2 are this program's own. */
#include "kernel_io_help.h"

#include <sys/syscall.h>
#include <sys/uio.h>

#include "placement/local.h"
#include "placement/store/kernel_io.h"
#include "placement/store/state_table.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"
#include "placement/store/store_write.h"

static uint8_t data[4 * MIB];
static bool disk_is_full;

ssize_t pwritev(int fd, const struct iovec *iov, int n, off_t off)
{
    if (disk_is_full) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_pwritev, fd, iov, n, off, 0);
}

static size_t append_room;

ssize_t pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags)
{
    struct iovec part = {iov->iov_base, MIN(iov->iov_len, append_room)};
    if (!part.iov_len) {
        errno = ENOSPC;
        return -1;
    }
    if (append_room != SIZE_MAX)
        append_room -= part.iov_len;
    ck_assert_int_eq(n, 1);
    return syscall(SYS_pwritev2, fd, &part, 1, off, 0, flags);
}

static struct store_usage usage(void)
{
    struct store_usage u;
    store_usage(&u);
    return u;
}

static void setup(void)
{
    pass_setup();
    put_pattern(data, sizeof(data), 0, 1);
    disk_is_full = false;
    append_room = SIZE_MAX;
}

/* The slab has one, and another slab could be made. */
START_TEST(a_write_over_two_chunks_with_one_record_left)
{
    struct file *f = new_file(1, "x");
    uint64_t i = 0;
    while (state_reserve(SLAB_CHUNKS, 2)) {
        state_unreserve(SLAB_CHUNKS, 2);
        write_ok(f, data, 4096, i++ * CHUNK);
    }
    ck_assert(state_reserve(SLAB_CHUNKS, 1));
    state_unreserve(SLAB_CHUNKS, 1);
    uint64_t at = (i + 1) * CHUNK - 4096;
    write_ok(f, data, 8192, at);
    read_is(f, data, 8192, at);
    file_put(f);
}
END_TEST

/* What becomes zeros needs no blocks: nothing leaves the cache for it. */
START_TEST(a_punch_of_what_is_only_on_the_pfs_takes_no_room)
{
    store_close(false);
    open_store(4 * MIB, CHUNK);
    struct file *f = get_file(1, "on the PFS"), *o = get_file(2, "other");
    struct version v = version_n(64 * MIB, 3), w = version_n(MIB, 3);
    uint64_t fill, off, len, before;
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
    ck_assert_int_eq(store_set_version(o, &w, NULL), 0);
    for (uint64_t i = 0; i < MIB / CHUNK; i++)
        ck_assert_int_eq(fill_chunk(o, i, &w, data, true), 0);
    ck_assert_int_eq(store_set_claim(f, 1, 1, &v), 0);
    before = usage().used;
    ck_assert_int_eq(store_punch(f, 0, 32 * MIB, SPACE_CACHE, &fill), 0);
    ck_assert(!store_missing(o, 0, MIB, &off, &len));
    ck_assert_uint_le(usage().used, before + MIB); /* records */
    file_put(f);
    file_put(o);
}
END_TEST

static uint64_t blocks_of(struct file *f)
{
    struct stat st;
    int fd = open_backing(f, O_RDONLY);
    ck_assert_int_eq(fsync(fd), 0);
    ck_assert_int_eq(fstat(fd, &st), 0);
    close(fd);
    return (uint64_t)st.st_blocks * 512;
}

/* Through the kernel: half of the file is written, to zeros, half is a hole. */
START_TEST(zeros_that_were_written_count_and_holes_do_not)
{
    static uint8_t pfs[SIZE], zeros[SIZE / 2];
    uint64_t before = usage().used;
    struct file *f = new_file(1, "zeros");
    unsigned life = open_pass(f, true);
    int fd = open_backing(f, O_RDWR);
    ck_assert_int_eq(ftruncate(fd, SIZE), 0);
    put(fd, zeros, sizeof(zeros), SIZE / 2);
    close(fd);
    kernel_io_close(f, life, true);
    ck_assert(flush(f, pfs));
    sample();
    ck_assert(!info_of(f).kernel_io);
    uint64_t blocks = blocks_of(f), counted = usage().used - before;
    ck_assert_uint_ge(blocks, SIZE / 2);
    ck_assert_uint_lt(blocks, SIZE);
    ck_assert_uint_ge(counted, SIZE / 2);
    ck_assert_uint_le(counted, blocks + MIB); /* records */
    ck_assert_uint_eq(usage().dirty, 0);
    file_put(f);
}
END_TEST

/* As long as somebody can write it: room is made for him, and the ballast is there for him. */
START_TEST(a_removed_file_that_the_kernel_writes_takes_room)
{
    struct file *f = new_file(1, "x");
    uint64_t before = usage().used;
    unsigned life = open_pass(f, true);
    int fd = open_backing(f, O_RDWR);
    put(fd, data, CHUNK, 0);
    sample();
    ck_assert_uint_ge(usage().dirty, CHUNK);
    store_set_deleted(f);
    ck_assert_uint_eq(usage().dirty, 0);
    put(fd, data, SIZE, 0);
    ck_assert(sample()); /* and again */
    ck_assert_uint_ge(usage().used - before, SIZE);
    ck_assert_uint_eq(usage().dirty, 0);
    close(fd);
    kernel_io_close(f, life, true);
    ck_assert(!sample());
    file_put(f);
    ck_assert_uint_eq(usage().used, before);
    ck_assert_uint_eq(usage().dirty, 0);
}
END_TEST

START_TEST(a_failed_write_of_a_removed_file_is_not_dirty)
{
    uint64_t fill;
    struct file *f = new_file(1, "x");
    write_ok(f, data, 40960, 0);
    store_set_deleted(f);
    ck_assert_uint_eq(usage().dirty, 0);
    disk_is_full = true;
    ck_assert_int_eq(store_write(f, data, 40960, 0, SPACE_CACHE, &fill), -ENOSPC);
    disk_is_full = false;
    ck_assert_uint_eq(usage().dirty, 0);
    file_put(f);
}
END_TEST

/* ---- appends beside the kernel's writers, where nothing can be taken back ---- */

static void has_bytes(struct file *f, size_t len)
{
    uint8_t *got = malloc(len);
    int fd = open_backing(f, O_RDONLY);
    ck_assert_uint_eq(info_of(f).size, len);
    ck_assert_int_eq(pread(fd, got, len, 0), (ssize_t)len);
    ck_assert_mem_eq(got, data, len);
    close(fd);
    free(got);
}

START_TEST(an_append_of_which_a_part_went_in_says_so)
{
    struct file *f = new_file(1, "x");
    uint64_t fill;
    struct appended out;
    unsigned life = open_pass(f, true);
    ck_assert_int_eq(store_append(f, data, 4096, SPACE_CACHE, &out, &fill), 0);
    ck_assert_uint_eq(out.len, 4096);
    append_room = 4096;
    ck_assert_int_eq(store_append(f, data + 4096, 8192, SPACE_CACHE, &out, &fill), -ENOSPC);
    ck_assert_uint_eq(out.len, 4096);
    append_room = SIZE_MAX;
    ck_assert_int_eq(store_append(f, data + 8192, 4096, SPACE_CACHE, &out, &fill), 0);
    ck_assert_uint_eq(out.off, 8192);
    has_bytes(f, 12288);
    kernel_io_close(f, life, true);
    file_put(f);
}
END_TEST

static int make_room(struct file *f, uint64_t *seen)
{
    (void)f;
    (void)seen;
    append_room = SIZE_MAX;
    return 0;
}

START_TEST(when_room_was_made_an_append_goes_on_where_it_was)
{
    struct file *f = new_file(1, "x");
    unsigned life = open_pass(f, true);
    struct change first = {.op = CARRY_APPEND, .buf = data, .len = 4096};
    struct change c = {.op = CARRY_APPEND, .buf = data + 4096, .len = 8192};
    ck_assert_int_eq(local_change(f, &first), 0);
    local_on_need(&(struct local_needs){.make_room = make_room});
    append_room = 4096;
    ck_assert_int_eq(local_change_now(f, &c), -EAGAIN);
    ck_assert_uint_eq(append_room, 4096); /* who comes again begins anew: nothing went in */
    ck_assert_int_eq(local_change(f, &c), 0);
    local_on_need(NULL);
    ck_assert_uint_eq(c.off_out, 4096);
    has_bytes(f, 12288);
    kernel_io_close(f, life, true);
    file_put(f);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("store_counts");
    tcase_add_checked_fixture(t, setup, pass_teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_write_over_two_chunks_with_one_record_left);
    tcase_add_test(t, a_punch_of_what_is_only_on_the_pfs_takes_no_room);
    tcase_add_test(t, zeros_that_were_written_count_and_holes_do_not);
    tcase_add_test(t, a_removed_file_that_the_kernel_writes_takes_room);
    tcase_add_test(t, a_failed_write_of_a_removed_file_is_not_dirty);
    tcase_add_test(t, an_append_of_which_a_part_went_in_says_so);
    tcase_add_test(t, when_room_was_made_an_append_goes_on_where_it_was);
    return run_case("store_counts", t);
}
