/* test_kernel_io.c - files that the kernel reads and writes: who has one open or mapped, how long it is
 * looked at, what keeps it from being evicted, and what is found after the daemon's death.
 */
#include "kernel_io_help.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "placement/store/kernel_io.h"
#include "placement/store/store_copyout.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"
#include "placement/store/store_write.h"

static void (*at_msync)(void); /* called once */

/* In place of the C library's. */
int msync(void *p, size_t len, int flags)
{
    void (*call)(void) = at_msync;
    at_msync = NULL;
    if (call)
        call();
    return (int)syscall(SYS_msync, p, len, flags);
}

static struct file *whole_file(uint64_t n, const struct version *v)
{
    struct file *f = get_file(n, "whole");
    ck_assert_int_eq(store_set_version(f, v, NULL), 0);
    for (unsigned i = 0; i < SIZE / CHUNK; i++)
        ck_assert_int_eq(fill_chunk(f, i, v, bytes, true), 0);
    return f;
}

START_TEST(only_whole_files_are_given_to_the_kernel)
{
    struct version v = version_n(SIZE, 5);
    struct file *f = get_file(1, "a");
    int fd;
    unsigned life;
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
    ck_assert_int_eq(kernel_io_open(f, false, &fd, &life), -ENODATA);
    ck_assert_int_eq(fill_chunk(f, 0, &v, bytes, true), 0);
    ck_assert_int_eq(kernel_io_open(f, false, &fd, &life), -ENODATA);
    for (unsigned i = 1; i < SIZE / CHUNK; i++)
        ck_assert_int_eq(fill_chunk(f, i, &v, bytes, true), 0);
    life = open_pass(f, false);
    ck_assert_uint_eq(kernel_io_anchored(), SIZE);
    ck_assert(!info_of(f).kernel_io);
    kernel_io_close(f, life, false);
    ck_assert_uint_eq(kernel_io_anchored(), 0);
    file_put(f);
}
END_TEST

/* Its descriptors are opened again (/proc/self/fd), and no other data file would do. */
START_TEST(a_removed_file_is_given_to_the_kernel_beside_its_descriptors)
{
    struct version v = version_n(SIZE, 5);
    struct file *f = whole_file(1, &v);
    unsigned life = open_pass(f, false);
    file_set_unlinked(f, true);
    store_set_deleted(f);
    ck_assert_uint_eq(open_pass(f, false), life);
    ck_assert_uint_eq(open_pass(f, true), life);
    ck_assert(!info_of(f).only_here);
    int fd = open_backing(f, O_WRONLY);
    put(fd, "new", 3, CHUNK);
    close(fd);
    sample();
    ck_assert(info_of(f).only_here && !info_of(f).dirty);
    kernel_io_close(f, life, true);
    kernel_io_close(f, life, false);
    kernel_io_close(f, life, false);
    char got[3];
    ck_assert_int_eq(store_read(f, got, 3, CHUNK), 3);
    ck_assert_mem_eq(got, "new", 3);
    ck_assert_uint_eq(kernel_io_anchored(), 0);
    ck_assert(!sample());
    file_put(f);
    uint64_t dirty, room;
    store_dirty(&dirty, &room);
    ck_assert_uint_eq(dirty, 0);
}
END_TEST

START_TEST(what_is_fetched_again_at_the_next_open_is_not_given_to_the_kernel)
{
    struct version v = version_n(CHUNK, 5);
    struct file *f = get_file(1, "young");
    int fd;
    unsigned life;
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
    struct clean_chunk c = {
        .version = v, .buf = bytes, .len = CHUNK, .hash = 1, .owned = true, .racy = true};
    ck_assert_int_eq(store_fill(f, &c), 0);
    ck_assert(info_of(f).racy);
    ck_assert_int_eq(kernel_io_open(f, false, &fd, &life), -ENODATA);
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0); /* it makes them way */
    c.racy = false;
    ck_assert_int_eq(store_fill(f, &c), 0);
    kernel_io_close(f, open_pass(f, false), false);
    file_put(f);
}
END_TEST

/* A lull begins at the last store, however late it is seen. */
START_TEST(it_is_known_when_the_kernel_stored_last)
{
    struct file *f = new_file(1, "log");
    ck_assert_uint_eq(kernel_io_age_ms(f), 0);
    unsigned life = open_pass(f, true);
    int fd = open_backing(f, O_WRONLY);
    uint64_t began = boot_ms();
    put(fd, bytes, PAGE, 0);
    usleep(300000);
    sample();
    uint64_t age = kernel_io_age_ms(f);
    ck_assert_uint_ge(age, 290);
    ck_assert_uint_le(age, boot_ms() - began + 20); /* the file system's clock is that coarse */
    end_writing(f, life, fd);
}
END_TEST

START_TEST(a_mapping_that_outlives_its_close_keeps_the_file_unfinished)
{
    uint8_t pfs[SIZE];
    struct file *f = new_file(1, "mapped");
    unsigned life = open_pass(f, true);
    int fd = open_backing(f, O_RDWR);
    put(fd, bytes, SIZE, 0);
    uint8_t *map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(map, MAP_FAILED);
    close(fd);
    kernel_io_close(f, life, true);
    ck_assert(flush(f, pfs));
    ck_assert(sample());
    ck_assert(info_of(f).kernel_io);
    for (unsigned n = 0; n < 3; n++) {
        map[n * CHUNK + 100] = bytes[n * CHUNK + 100] = 'm';
        ck_assert(info_of(f).dirty);
        ck_assert(flush(f, pfs));
        ck_assert_mem_eq(pfs, bytes, SIZE);
    }
    munmap(map, SIZE);
    ck_assert(!sample());
    ck_assert(!info_of(f).kernel_io && !info_of(f).dirty);
    file_put(f);
}
END_TEST

START_TEST(who_has_an_older_version_open_or_mapped_keeps_it)
{
    struct version v = version_n(SIZE, 5), w = version_n(SIZE, 6);
    struct file *f = whole_file(1, &v);
    unsigned life = open_pass(f, false);
    int fd = open_backing(f, O_RDONLY);
    uint8_t *map = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0), got[SIZE];
    ck_assert_ptr_ne(map, MAP_FAILED);
    ck_assert_int_eq(store_set_version(f, &w, NULL), 0);
    ck_assert_uint_ne(f->kernel_io.life, life);
    ck_assert_int_eq(pread(fd, got, SIZE, 0), SIZE);
    ck_assert_mem_eq(got, bytes, SIZE);
    uint64_t off, len;
    ck_assert(store_missing(f, 0, SIZE, &off, &len));
    close(fd);
    kernel_io_close(f, life, false);
    ck_assert_mem_eq(map, bytes, SIZE);
    ck_assert_uint_eq(kernel_io_anchored(), 0);
    munmap(map, SIZE);
    file_put(f);
}
END_TEST

static bool is_missing(struct file *f)
{
    uint64_t off, len;
    return store_missing(f, 0, SIZE, &off, &len);
}

/* Fills the store with other files, new ones each time, until something of f is gone; false: it
 * never is. */
static bool pressure_evicts(struct file *f)
{
    static uint64_t other = 100;
    struct version v = version_n(SIZE, 7);
    for (unsigned n = 0; n < 600 && !is_missing(f); n++)
        file_put(whole_file(other++, &v));
    return is_missing(f);
}

START_TEST(what_is_open_or_mapped_is_not_evicted)
{
    struct version v = version_n(SIZE, 5);
    struct file *f = whole_file(1, &v);
    unsigned life = open_pass(f, false);
    int fd = open_backing(f, O_RDONLY);
    uint8_t *map = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(map, MAP_FAILED);
    close(fd);
    ck_assert(!pressure_evicts(f));
    kernel_io_close(f, life, false);
    ck_assert_msg(!pressure_evicts(f), "evicted under a mapping");
    ck_assert_mem_eq(map, bytes, SIZE);
    munmap(map, SIZE);
    ck_assert(pressure_evicts(f));
    file_put(f);
}
END_TEST

/* Its bits say that the chunk is clean; the data file does not. */
START_TEST(what_was_stored_since_the_last_flush_is_not_evicted)
{
    uint8_t pfs[SIZE];
    struct file *f = new_file(1, "log");
    unsigned life = open_pass(f, true);
    int fd = open_backing(f, O_WRONLY);
    put(fd, bytes, SIZE, 0);
    ck_assert(flush(f, pfs));
    put(fd, "new", 3, CHUNK);
    memcpy(bytes + CHUNK, "new", 3);
    close(fd);
    kernel_io_close(f, life, true);
    struct version v = version_n(SIZE, 7);
    for (uint64_t n = 100; n < 700; n++)
        file_put(whole_file(n, &v));
    read_is(f, bytes, SIZE, 0);
    ck_assert(flush(f, pfs));
    ck_assert_mem_eq(pfs, bytes, SIZE);
    sample();
    file_put(f);
}
END_TEST

/* fallocate beside a writer that the kernel serves, who is farther on already. */
START_TEST(fallocate_never_shortens)
{
    struct file *f = new_file(1, "log");
    unsigned life = open_pass(f, true);
    int fd = open_backing(f, O_WRONLY);
    put(fd, bytes, SIZE, 0);
    ck_assert_int_eq(store_allocate(f, 0, CHUNK, false), 0);
    read_is(f, bytes, SIZE, 0);
    ck_assert_int_eq(store_allocate(f, SIZE, CHUNK, false), 0);
    ck_assert_uint_eq(info_of(f).size, SIZE + CHUNK);
    read_is(f, bytes, SIZE, 0);
    end_writing(f, life, fd);
}
END_TEST

static void end_daemon(struct file *f)
{
    kernel_io_forget();
    file_put(f);
    store_close(false);
}

static struct file *start_again(void)
{
    open_store(64 * MIB, CHUNK);
    struct file *f = file_find(fid_n(1));
    ck_assert_ptr_nonnull(f);
    return f;
}

START_TEST(what_is_stored_after_the_daemons_death_is_found)
{
    uint8_t pfs[SIZE];
    struct file *f = new_file(1, "survivor");
    open_pass(f, true);
    int fd = open_backing(f, O_WRONLY);
    put(fd, bytes, CHUNK, 0);
    end_daemon(f);
    put(fd, bytes + CHUNK, SIZE - CHUNK, CHUNK);
    f = start_again();
    ck_assert_uint_eq(info_of(f).size, SIZE);
    ck_assert(info_of(f).dirty && info_of(f).kernel_io);
    read_is(f, bytes, SIZE, 0);
    ck_assert(flush(f, pfs));
    ck_assert_mem_eq(pfs, bytes, SIZE);
    ck_assert_msg(sample(), "finished beside a descriptor that can write");
    put(fd, "later", 5, 0);
    ck_assert(info_of(f).dirty);
    close(fd);
    ck_assert(flush(f, pfs));
    ck_assert(!memcmp(pfs, "later", 5));
    ck_assert(!sample() && !info_of(f).kernel_io);
    file_put(f);
}
END_TEST

START_TEST(what_was_only_open_when_the_daemon_died_keeps_its_time)
{
    struct version v = version_n(SIZE, 5);
    struct file *f = whole_file(1, &v);
    ck_assert_int_eq(store_set_claim(f, 1, 1, &v), 0);
    open_pass(f, true);
    end_daemon(f);
    f = start_again();
    ck_assert_int_eq(info_of(f).mtime_ns, v.mtime_ns);
    int fd = open_backing(f, O_WRONLY);
    put(fd, "x", 1, 0);
    ck_assert_int_gt(info_of(f).mtime_ns, v.mtime_ns);
    close(fd);
    file_put(f);
}
END_TEST

/* The data file hears nothing of this change. */
START_TEST(the_time_of_our_own_last_change_outlives_the_daemon)
{
    struct file *f = new_file(1, "allocated");
    open_pass(f, true);
    int fd = open_backing(f, O_WRONLY);
    put(fd, bytes, SIZE, 0);
    int64_t stored = info_of(f).mtime_ns;
    ck_assert_int_eq(store_allocate(f, 0, 1, true), 0);
    int64_t allocated = info_of(f).mtime_ns;
    ck_assert_int_gt(allocated, stored);
    end_daemon(f);
    f = start_again();
    ck_assert_int_eq(info_of(f).mtime_ns, allocated);
    put(fd, "x", 1, 0);
    ck_assert_int_ge(info_of(f).mtime_ns, allocated);
    close(fd);
    file_put(f);
}
END_TEST

START_TEST(a_store_ends_a_time_in_the_future)
{
    int64_t future = real_ns() + INT64_C(3600000000000);
    struct version v = version_n(SIZE, 5);
    v.mtime_ns = future;
    struct file *f = whole_file(1, &v);
    ck_assert_int_eq(store_set_claim(f, 1, 1, &v), 0);
    open_pass(f, true);
    ck_assert_int_eq(info_of(f).mtime_ns, future);
    int fd = open_backing(f, O_WRONLY);
    put(fd, "x", 1, 0);
    ck_assert_int_lt(info_of(f).mtime_ns, future);
    close(fd);
    file_put(f);
}
END_TEST

START_TEST(a_time_that_was_set_after_a_flush_outlives_the_daemon)
{
    uint8_t pfs[SIZE];
    struct file *f = new_file(1, "touched");
    open_pass(f, true);
    int fd = open_backing(f, O_WRONLY);
    put(fd, bytes, SIZE, 0);
    struct flush fl = begin_flush(f, pfs);
    ck_assert(store_flushed(f, &fl.v, fl.change, NULL));
    struct version after = fl.v;
    after.mtime_ns = 42;
    after.ctime_ns++;
    store_same_data(f, &fl.v, &after);
    ck_assert_int_eq(info_of(f).mtime_ns, 42);
    end_daemon(f);
    f = start_again();
    ck_assert_int_eq(info_of(f).mtime_ns, 42);
    close(fd);
    file_put(f);
}
END_TEST

/* Carried writes and appends of other nodes beside the kernel's writer. */
START_TEST(our_own_changes_and_the_kernels_go_together)
{
    uint64_t unused;
    struct appended out;
    struct file *f = new_file(1, "both");
    unsigned life = open_pass(f, true);
    int fd = open_backing(f, O_RDWR);
    put(fd, "kernel", 6, 0);
    ck_assert_int_eq(store_append(f, "ours", 4, SPACE_CACHE, &out, &unused), 0);
    ck_assert_uint_eq(out.off, 6);
    put(fd, "K", 1, 0);
    write_ok(f, "O", 1, 6);
    read_is(f, "KernelOurs", 10, 0);
    ck_assert_int_eq(store_punch(f, 1, 2, SPACE_CACHE, &unused), 0);
    read_is(f, "K\0\0nelOurs", 10, 0);
    ck_assert_int_eq(store_truncate(f, 3 * CHUNK, &unused), 0);
    struct stat st;
    ck_assert(!fstat(fd, &st) && (uint64_t)st.st_size == 3 * CHUNK);
    end_writing(f, life, fd);
}
END_TEST

START_TEST(closed_files_are_not_looked_at_until_somebody_can_store_again)
{
    uint8_t pfs[SIZE] = {0};
    struct file *f = new_file(1, "many");
    unsigned life = open_pass(f, true);
    int fd = open_backing(f, O_RDWR);
    put(fd, bytes, SIZE, 0);
    void *map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert(map != MAP_FAILED);
    close(fd);
    kernel_io_close(f, life, true);
    sample(); /* finds what was stored */
    ck_assert_msg(sample(), "not looked at beside a mapping");
    munmap(map, SIZE);
    ck_assert_msg(!sample(), "looked at, and nobody can store");
    ck_assert(info_of(f).dirty);

    life = open_pass(f, true);
    fd = open_backing(f, O_WRONLY);
    ck_assert(sample());
    put(fd, "new", 3, 0);
    memcpy(bytes, "new", 3);
    read_is(f, bytes, SIZE, 0);
    close(fd);
    kernel_io_close(f, life, true);
    ck_assert_msg(f->kernel_io.closed && !f->kernel_io.prev, "what the close proved is left to the sampler");
    ck_assert(!sample());
    ck_assert(flush(f, pfs));
    ck_assert_mem_eq(pfs, bytes, SIZE);
    ck_assert(!info_of(f).dirty);
    sample();
    file_put(f);
}
END_TEST

/* The proof that nobody can store may fail for a moment: who closes is not gone at once. */
START_TEST(a_flushed_file_is_clean_once_its_last_writer_has_really_gone)
{
    uint8_t pfs[SIZE] = {0};
    struct file *f = new_file(1, "late");
    unsigned life = open_pass(f, true);
    int fd = open_backing(f, O_RDWR), late = open_backing(f, O_RDWR);
    put(fd, bytes, SIZE, 0);
    ck_assert(flush(f, pfs));
    close(fd);
    kernel_io_close(f, life, true);
    ck_assert_msg(sample(), "not looked at, with a writer left");
    ck_assert(info_of(f).kernel_io);
    close(late);
    sample();
    ck_assert(!info_of(f).kernel_io);

    life = open_pass(f, true);
    fd = open_backing(f, O_RDWR);
    put(fd, "new", 3, 0);
    memcpy(bytes, "new", 3);
    close(fd);
    kernel_io_close(f, life, true);
    ck_assert_msg(!f->kernel_io.prev, "looked at, and nobody can store");
    struct flush fl = begin_flush(f, pfs);
    sample();
    ck_assert_msg(!f->kernel_io.prev, "looked at during its flush");
    late = open_backing(f, O_RDWR);
    ck_assert(store_flushed(f, &fl.v, fl.change, NULL));
    ck_assert_msg(sample(), "not looked at after a flush that could not prove it");
    close(late);
    sample();
    ck_assert(!info_of(f).kernel_io);
    ck_assert_mem_eq(pfs, bytes, SIZE);
    file_put(f);
}
END_TEST

static struct file *synced;
static unsigned reader_life;

static void a_reader_closes(void)
{
    kernel_io_close(synced, reader_life, false);
}

/* What was fsynced is covered again, with the file's lock dropped meanwhile: who looks just then must not find
 * that nobody can store. */
START_TEST(a_writer_counts_before_its_open_is_done)
{
    uint8_t pfs[SIZE] = {0};
    struct file *f = synced = new_file(1, "synced");
    unsigned life = open_pass(f, true);
    int fd = open_backing(f, O_RDWR);
    put(fd, bytes, SIZE, 0);
    ck_assert(flush(f, pfs));
    ck_assert_int_eq(store_sync(f), 0);
    close(fd);
    kernel_io_close(f, life, true);
    sample();
    ck_assert(!info_of(f).kernel_io);

    reader_life = open_pass(f, false);
    at_msync = a_reader_closes;
    life = open_pass(f, true);
    ck_assert_msg(!at_msync, "nothing was covered");
    ck_assert(info_of(f).kernel_io);
    fd = open_backing(f, O_RDWR);
    put(fd, "new", 3, 0);
    memcpy(bytes, "new", 3);
    sample();
    ck_assert(info_of(f).dirty);
    ck_assert(flush(f, pfs));
    ck_assert_mem_eq(pfs, bytes, SIZE);
    end_writing(f, life, fd);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("kernel_io");
    tcase_add_checked_fixture(t, pass_setup, pass_teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, only_whole_files_are_given_to_the_kernel);
    tcase_add_test(t, a_removed_file_is_given_to_the_kernel_beside_its_descriptors);
    tcase_add_test(t, what_is_fetched_again_at_the_next_open_is_not_given_to_the_kernel);
    tcase_add_test(t, it_is_known_when_the_kernel_stored_last);
    tcase_add_test(t, a_mapping_that_outlives_its_close_keeps_the_file_unfinished);
    tcase_add_test(t, who_has_an_older_version_open_or_mapped_keeps_it);
    tcase_add_test(t, what_is_open_or_mapped_is_not_evicted);
    tcase_add_test(t, what_was_stored_since_the_last_flush_is_not_evicted);
    tcase_add_test(t, fallocate_never_shortens);
    tcase_add_test(t, what_is_stored_after_the_daemons_death_is_found);
    tcase_add_test(t, what_was_only_open_when_the_daemon_died_keeps_its_time);
    tcase_add_test(t, the_time_of_our_own_last_change_outlives_the_daemon);
    tcase_add_test(t, a_store_ends_a_time_in_the_future);
    tcase_add_test(t, a_time_that_was_set_after_a_flush_outlives_the_daemon);
    tcase_add_test(t, our_own_changes_and_the_kernels_go_together);
    tcase_add_test(t, closed_files_are_not_looked_at_until_somebody_can_store_again);
    tcase_add_test(t, a_flushed_file_is_clean_once_its_last_writer_has_really_gone);
    tcase_add_test(t, a_writer_counts_before_its_open_is_done);
    return run_case("kernel_io", t);
}
