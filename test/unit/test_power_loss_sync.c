/* test_power_loss_sync.c - fsync, and what goes on beside it: the disk has what was there when it began, and
 * what it covers is that; what could not be written is not covered. */
#include "power_loss.h"

#include "placement/local.h"
#include "placement/store/datafile_int.h"
#include "placement/store/evict.h"
#include "placement/store/kernel_io.h"
#include "placement/store/store_int.h"

static struct file *f;
static unsigned syncfs_calls;
static int syncfs_fails, fsync_fails; /* an errno, told once */

static int tell_once(int *fails)
{
    errno = *fails;
    *fails = 0;
    return errno ? -1 : 0;
}

/* In place of the C library's. */
int syncfs(int fd)
{
    (void)fd;
    syncfs_calls++;
    return tell_once(&syncfs_fails);
}

int fsync(int fd)
{
    (void)fd;
    return tell_once(&fsync_fails);
}

static void setup(void)
{
    setup_store();
    f = new_file(2, "file");
    fdatasync_fails = 0;
    while_synced = NULL;
}

/* The disk has of the data file what is synced from now on. */
static void sync_beside(void (*work)(void))
{
    data_disk_begun = true;
    disk_begins();
    files_disk_begins();
    while_synced = work;
    ck_assert_int_eq(store_sync(f), 0);
    ck_assert_ptr_null(while_synced);
}

static struct file_info lose_power(void)
{
    file_put(f);
    f = after_boot(2);
    return info_of(f);
}

START_TEST(what_was_fsynced_is_on_the_disk)
{
    write_ok(f, data, 100000, 0);
    sync_beside(NULL);
    write_ok(f, data + 1, 100000, 0); /* which does not get there */
    ck_assert_uint_eq(lose_power().size, 100000);
    read_is(f, data, 100000, 0);
    file_put(f);
}
END_TEST

/* ---- beside it ---- */

static void append(void)
{
    write_ok(f, data + 50000, 50000, 50000);
}

START_TEST(what_is_appended_during_an_fsync_is_not_covered)
{
    uint8_t zeros[50000] = {0};
    uint64_t fill;
    write_ok(f, data, 50000, 0);
    sync_beside(append);
    ck_assert_uint_eq(info_of(f).size, 100000);
    ck_assert_uint_eq(lose_power().size, 50000);
    read_is(f, data, 50000, 0);
    ck_assert_int_eq(store_truncate(f, 100000, &fill), 0);
    read_is(f, zeros, 50000, 50000);
    file_put(f);
}
END_TEST

START_TEST(the_next_fsync_covers_what_came_during_one)
{
    write_ok(f, data, 50000, 0);
    sync_beside(append);
    ck_assert_int_eq(store_sync(f), 0);
    ck_assert_uint_eq(lose_power().size, 100000);
    read_is(f, data, 100000, 0);
    file_put(f);
}
END_TEST

static void overwrite(void)
{
    write_ok(f, data + 100, 10, 100);
}

static void overwrite_middle(void)
{
    write_ok(f, data, 10, 20000);
}

/* The page was fsynced: it does not go because a part of it changed meanwhile. */
START_TEST(a_page_that_changes_during_an_fsync_is_covered)
{
    write_ok(f, data, 50000, 0);
    sync_beside(overwrite);
    ck_assert_uint_eq(lose_power().size, 50000);
    read_is(f, data, 50000, 0);
    file_put(f);
}
END_TEST

START_TEST(what_is_overwritten_during_an_fsync_is_for_the_next_one)
{
    uint8_t want[50000];
    memcpy(want, data, sizeof(want));
    memcpy(want + 20000, data, 10);
    write_ok(f, data, 50000, 0);
    sync_beside(overwrite_middle);
    ck_assert_int_eq(store_sync(f), 0);
    ck_assert_uint_eq(lose_power().size, 50000);
    read_is(f, want, 50000, 0);
    file_put(f);
}
END_TEST

static void into_the_hole(void)
{
    write_ok(f, data + 40960, 4096, 40960);
}

START_TEST(a_page_that_comes_during_an_fsync_is_not_covered)
{
    uint64_t fill;
    uint8_t zeros[8192] = {0};
    write_ok(f, data, 4096, 0);
    ck_assert_int_eq(store_truncate(f, 50000, &fill), 0);
    sync_beside(into_the_hole);
    ck_assert_uint_eq(lose_power().dirty_bytes, PAGE);
    read_is(f, zeros, 8192, 40960);
    file_put(f);
}
END_TEST

static void cut_and_write(void)
{
    uint64_t fill;
    ck_assert_int_eq(store_truncate(f, 8192, &fill), 0);
    write_ok(f, data, 20000, 20480);
}

START_TEST(what_is_cut_off_during_an_fsync_is_not_covered)
{
    write_ok(f, data, 50000, 0);
    sync_beside(cut_and_write);
    struct file_info info = lose_power();
    ck_assert_uint_eq(info.size, 8192);
    ck_assert_uint_eq(info.cut, 8192);
    read_is(f, data, 8192, 0);
    file_put(f);
}
END_TEST

static void flush_it(void)
{
    struct version v;
    flush_all_of(f, &v);
    ck_assert(store_clear_claim(f, &v));
}

START_TEST(what_is_flushed_during_an_fsync_does_not_come_back)
{
    write_ok(f, data, 50000, 0);
    sync_beside(flush_it);
    file_put(f);
    power_loss();
    open_store(LIMIT, CHUNK);
    ck_assert_ptr_null(file_find(fid_n(2)));
}
END_TEST

static void give_away_and_take_again(void)
{
    struct version longer = version_n(100000, 60);
    flush_it();
    ck_assert_int_eq(store_set_claim(f, 1, 7, &longer), 0); /* as another node has left it */
    write_ok(f, data, 4096, 0);
}

/* As it was before, it would be cut off on the PFS. */
START_TEST(what_was_given_away_during_an_fsync_is_not_taken_for_what_comes_then)
{
    write_ok(f, data, 50000, 0);
    sync_beside(give_away_and_take_again);
    file_put(f);
    power_loss();
    open_store(LIMIT, CHUNK);
    ck_assert_ptr_null(file_find(fid_n(2)));
}
END_TEST

static bool evicted;

static void flush_a_part_and_evict(void)
{
    struct snapshot *s;
    struct file_info info = info_of(f);
    struct version v = version_n(info.size, 50);
    ck_assert_int_eq(store_flush_begins(f), 0);
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    write_ok(f, data, 10, CHUNK); /* so that the file stays dirty */
    store_snapshot_done(s, true);
    ck_assert(!store_flushed(f, &v, info.change, NULL));
    evicted = evict_chunk(fid_n(2), 0, false);
}

START_TEST(nothing_is_evicted_during_an_fsync)
{
    write_ok(f, data, 2 * CHUNK, 0);
    sync_beside(flush_a_part_and_evict);
    ck_assert(!evicted);
    ck_assert(evict_chunk(fid_n(2), 0, false));
    file_put(f);
}
END_TEST

/* ---- who may not wait ---- */

static struct change one_write(void)
{
    return (struct change){.op = CARRY_WRITE, .buf = data, .len = 4096, .off = 8192};
}

static void write_now(void)
{
    struct change c = one_write(), end = c;
    end.op = CARRY_APPEND;
    ck_assert_int_eq(local_change_now(f, &c), -EAGAIN);
    ck_assert_int_eq(local_change_now(f, &end), -EAGAIN);
    ck_assert_int_eq(local_change(f, &c), 0);
}

/* Some file systems let nobody into a file that they sync. */
START_TEST(who_may_not_wait_does_not_write_into_a_file_that_is_synced)
{
    struct change c = one_write();
    write_ok(f, data, 4096, 0);
    while_synced = write_now;
    ck_assert_int_eq(store_sync(f), 0);
    ck_assert_int_eq(local_change_now(f, &c), 0);
    file_put(f);
}
END_TEST

START_TEST(who_may_not_wait_does_not_wait_for_another_call)
{
    struct range_op op;
    struct change c = one_write(), end = c;
    end.op = CARRY_APPEND;
    write_ok(f, data, 20000, 0);
    lock_take(&f->lock);
    range_begin(f, &op, RANGE_DROP, 2, UINT64_MAX); /* as a truncation has */
    lock_drop(&f->lock);
    ck_assert_int_eq(local_change_now(f, &c), -EAGAIN);
    ck_assert_int_eq(local_change_now(f, &end), -EAGAIN);
    lock_take(&f->lock);
    range_end(f, &op);
    lock_drop(&f->lock);
    ck_assert_int_eq(local_change_now(f, &c), 0);
    ck_assert_int_eq(local_change_now(f, &end), 0);
    file_put(f);
}
END_TEST

/* ---- what goes back ---- */

static struct version flushed;
static unsigned life;

/* A writer that the kernel serves has stored, and the PFS has it. */
static void flush_beside_a_writer(void)
{
    int backing;
    struct snapshot *s;
    char path[300];
    flushed = version_n(50000, 50);
    ck_assert_int_eq(kernel_io_open(f, true, &backing, &life), 0);
    close(backing);
    data_path(fid_n(2), path);
    int fd = open(path, O_WRONLY);
    ck_assert_int_eq(pwrite(fd, data, 50000, 0), 50000);
    close(fd);
    ck_assert_int_eq(kernel_io_mark(f, NULL, NULL), 0);
    ck_assert_int_eq(store_flush_begins(f), 0);
    uint64_t change = info_of(f).change;
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    store_snapshot_done(s, true);
    ck_assert(store_flushed(f, &flushed, change, NULL));
}

static void close_and_give_back(void)
{
    kernel_io_close(f, life, true);
    ck_assert(store_clear_claim(f, &flushed));
    kernel_io_forget();
}

/* The record that says that it is clean need not come to the disk. */
START_TEST(what_was_fsynced_after_its_flush_does_not_come_back_when_it_is_given_back)
{
    flush_beside_a_writer();
    ck_assert_int_eq(store_sync(f), 0);
    ck_assert_msg(f->rec->covered.check, "nothing is covered: the test is none");
    files_disk_begins();
    close_and_give_back();
    file_put(f);
    power_loss();
    open_store(LIMIT, CHUNK);
    ck_assert_ptr_null(file_find(fid_n(2)));
}
END_TEST

static void not_again(void)
{
    ck_assert_int_eq(store_not_again(f), 0);
}

START_TEST(what_is_not_to_come_back_is_not_covered_by_the_fsync_that_runs)
{
    write_ok(f, data, 50000, 0);
    while_synced = not_again;
    ck_assert_int_eq(store_sync(f), 0);
    ck_assert_uint_eq(f->rec->covered.check, 0);
    file_put(f);
}
END_TEST

/* The punch has not come to the disk, its record has. */
START_TEST(a_hole_is_one_for_who_reads_it_and_for_the_pfs)
{
    uint64_t fill;
    uint8_t zeros[8192] = {0};
    write_ok(f, data, 50000, 0);
    sync_beside(NULL);
    ck_assert_int_eq(store_punch(f, 8192, 8192, SPACE_CACHE, &fill), 0);
    kernel_writes(state_chunk_find(fid_n(2), 0));
    lose_power();
    read_is(f, data, 8192, 0);
    read_is(f, zeros, 8192, 8192);
    file_put(f);
}
END_TEST

/* ---- what could not be written ---- */

START_TEST(a_failed_sync_is_told_until_the_pfs_has_the_bytes)
{
    struct version v;
    write_ok(f, data, 50000, 0);
    fdatasync_fails = EIO;
    ck_assert_int_eq(store_sync(f), -EIO);
    ck_assert_int_eq(store_sync(f), -EIO);
    write_ok(f, data, 10, 60000); /* what comes since is not lost, but the rest still is */
    ck_assert_int_eq(store_sync(f), -EIO);
    ck_assert_uint_eq(f->rec->covered.check, 0);

    flush_all_of(f, &v);
    write_ok(f, data, 10, 0);
    ck_assert_int_eq(store_sync(f), 0);
    ck_assert_uint_ne(f->rec->covered.check, 0);
    file_put(f);
}
END_TEST

/* Only what was dirty when it failed has to be there, not what is written all the time. */
START_TEST(a_failed_sync_is_made_good_beside_a_writer)
{
    struct snapshot *s;
    write_ok(f, data, 50000, 0);
    fdatasync_fails = ENOSPC;
    ck_assert_int_eq(store_sync(f), -ENOSPC);
    struct file_info info = info_of(f);
    ck_assert_int_eq(store_flush_begins(f), 0);
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    write_ok(f, data, 4096, CHUNK);
    ck_assert_int_eq(store_sync(f), -ENOSPC);
    store_snapshot_done(s, true);
    struct version v = version_n(info.size, 50);
    ck_assert(!store_flushed(f, &v, info.change, NULL));
    ck_assert_int_eq(store_sync(f), 0);
    file_put(f);
}
END_TEST

/* The kernel has told it to a descriptor, or a daemon, that is gone. */
START_TEST(a_failed_sync_outlives_the_object_and_the_daemon)
{
    struct version v;
    write_ok(f, data, 50000, 0);
    fdatasync_fails = EIO;
    ck_assert_int_eq(store_sync(f), -EIO);
    file_put(f);
    f = file_find(fid_n(2));
    ck_assert_int_eq(store_sync(f), -EIO);
    file_put(f);
    store_close(false);
    open_store(LIMIT, CHUNK);
    f = file_find(fid_n(2));
    ck_assert_int_eq(store_sync(f), -EIO);
    flush_all_of(f, &v);
    write_ok(f, data, 10, 0);
    ck_assert_int_eq(store_sync(f), 0);
    file_put(f);
}
END_TEST

/* What was written by descriptors that are closed: what the disk says of all that it has. */
START_TEST(what_a_dead_daemon_wrote_is_asked_of_the_disk_once)
{
    struct file *g = new_file(3, "another"), *h;
    write_ok(f, data, 50000, 0);
    write_ok(g, data, 50000, 0);
    file_put(f);
    file_put(g);
    store_close(false);
    open_store(LIMIT, CHUNK);
    f = file_find(fid_n(2));
    g = file_find(fid_n(3));
    h = new_file(4, "young");
    write_ok(h, data, 50000, 0);
    syncfs_calls = 0;
    syncfs_fails = _i ? EIO : 0;
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(store_sync(f), _i ? -EIO : 0);
        ck_assert_int_eq(store_sync(g), _i ? -EIO : 0);
        ck_assert_int_eq(store_sync(h), 0);
    }
    ck_assert_uint_eq(syncfs_calls, 1);
    file_put(f);
    file_put(g);
    file_put(h);
}
END_TEST

/* The descriptors of files that nobody uses are closed when another one is opened. */
static void close_descriptor(struct file *other)
{
    datafiles.max_open = 0;
    write_ok(other, data, 10, 0);
    ck_assert_int_eq(f->data_fd, -1);
}

START_TEST(what_a_closed_descriptor_wrote_is_asked_of_the_disk)
{
    struct file *g = new_file(3, "another"), *h = new_file(4, "a third one");
    syncfs_calls = 0;
    write_ok(f, data, 50000, 0);
    close_descriptor(g);
    ck_assert_int_eq(store_sync(f), 0);
    ck_assert_uint_eq(syncfs_calls, 1);
    write_ok(f, data, 50000, 0);
    close_descriptor(h);
    syncfs_fails = EIO;
    ck_assert_int_eq(store_sync(f), -EIO);
    ck_assert_int_eq(store_sync(f), -EIO);
    file_put(f);
    file_put(g);
    file_put(h);
}
END_TEST

START_TEST(a_failed_sync_of_a_directory_is_one_of_all_names_that_were_there)
{
    struct file *g = new_file(258, "in the same one"), *h = new_file(514, "later");
    write_ok(f, data, 10, 0);
    write_ok(g, data, 10, 0);
    fsync_fails = EIO;
    ck_assert_int_eq(store_sync(f), -EIO);
    ck_assert_int_eq(store_sync(g), -EIO);
    write_ok(h, data, 10, 0);
    ck_assert_int_eq(store_sync(h), 0);
    file_put(f);
    file_put(g);
    file_put(h);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("power loss: fsync");
    tcase_add_checked_fixture(t, setup, teardown_store);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, what_was_fsynced_is_on_the_disk);
    tcase_add_test(t, what_is_appended_during_an_fsync_is_not_covered);
    tcase_add_test(t, the_next_fsync_covers_what_came_during_one);
    tcase_add_test(t, a_page_that_changes_during_an_fsync_is_covered);
    tcase_add_test(t, a_page_that_comes_during_an_fsync_is_not_covered);
    tcase_add_test(t, what_is_cut_off_during_an_fsync_is_not_covered);
    tcase_add_test(t, what_is_flushed_during_an_fsync_does_not_come_back);
    tcase_add_test(t, what_was_given_away_during_an_fsync_is_not_taken_for_what_comes_then);
    tcase_add_test(t, what_is_overwritten_during_an_fsync_is_for_the_next_one);
    tcase_add_test(t, nothing_is_evicted_during_an_fsync);
    tcase_add_test(t, what_was_fsynced_after_its_flush_does_not_come_back_when_it_is_given_back);
    tcase_add_test(t, what_is_not_to_come_back_is_not_covered_by_the_fsync_that_runs);
    tcase_add_test(t, a_hole_is_one_for_who_reads_it_and_for_the_pfs);
    tcase_add_test(t, a_failed_sync_is_told_until_the_pfs_has_the_bytes);
    tcase_add_test(t, a_failed_sync_is_made_good_beside_a_writer);
    tcase_add_test(t, who_may_not_wait_does_not_write_into_a_file_that_is_synced);
    tcase_add_test(t, who_may_not_wait_does_not_wait_for_another_call);
    tcase_add_loop_test(t, what_a_dead_daemon_wrote_is_asked_of_the_disk_once, 0, 2);
    tcase_add_test(t, what_a_closed_descriptor_wrote_is_asked_of_the_disk);
    tcase_add_test(t, a_failed_sync_of_a_directory_is_one_of_all_names_that_were_there);
    tcase_add_test(t, a_failed_sync_outlives_the_object_and_the_daemon);
    return run_case("power loss: fsync", t);
}
