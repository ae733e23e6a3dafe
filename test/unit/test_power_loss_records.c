/* test_power_loss_records.c - the records come to the disk when the kernel likes, and with an fsync: what is
 * there after a power loss may be of different ages, and what was fsynced is there all the same. */
#include "placement/store/evict.h"
#include "placement/store/state.h"
#include "placement/store/state_table.h"
#include "placement/store/store_copyout.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"
#include "placement/store/store_write.h"
#include "power_loss.h"

/* The file stays dirty: 10 bytes at `off` come meanwhile. */
static void flush_beside_a_write(struct file *f, uint64_t off)
{
    struct snapshot *s;
    struct file_info info;
    store_info(f, &info);
    ck_assert_int_eq(store_flush_begins(f), 0);
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    write_ok(f, data, 10, off);
    store_snapshot_done(s, true);
    struct version v = version_n(info.size, 50);
    ck_assert(!store_flushed(f, &v, info.change, NULL));
}

/* The punch can be on the disk before the record is. */
START_TEST(what_was_evicted_after_an_fsync_does_not_come_back_as_zeros)
{
    struct file *f = new_file(2, "log");
    struct snapshot *s;
    write_ok(f, data, 2 * CHUNK, 0);
    ck_assert_int_eq(store_sync(f), 0);
    disk_begins();
    flush_beside_a_write(f, CHUNK);
    ck_assert(evict_chunk(fid_n(2), 0, false));
    file_put(f);
    f = after_boot(2);
    ck_assert_uint_eq(here(f, 0, CHUNK), 0); /* the PFS has it */
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    ck_assert_uint_eq(s->bytes, CHUNK);
    ck_assert_uint_eq(s->extents[0].off, CHUNK);
    store_snapshot_done(s, false);
    file_put(f);
}
END_TEST

/* Fsynced, flushed, written again with the same pages, fsynced: the same pages are covered as before,
 * but the disk may have them as clean. */
START_TEST(what_was_flushed_between_two_fsyncs_is_covered_again)
{
    struct version v;
    struct file_info info;
    struct file *f = new_file(2, "again");
    write_ok(f, data, 2 * CHUNK, 0);
    ck_assert_int_eq(store_sync(f), 0);
    disk_begins();
    flush_all_of(f, &v);
    kernel_writes(state_chunk_find(fid_n(2), 0));
    kernel_writes(state_chunk_find(fid_n(2), 1));
    write_ok(f, data + 100, 2 * CHUNK, 0);
    ck_assert_int_eq(store_sync(f), 0);
    file_put(f);
    f = after_boot(2);
    store_info(f, &info);
    ck_assert_uint_eq(info.dirty_bytes, 2 * CHUNK);
    read_is(f, data + 100, 2 * CHUNK, 0);
    file_put(f);
}
END_TEST

START_TEST(what_was_punched_between_two_fsyncs_is_no_hole)
{
    uint64_t fill;
    struct snapshot *s;
    struct file *f = new_file(2, "punched");
    write_ok(f, data, CHUNK, 0);
    ck_assert_int_eq(store_punch(f, PAGE, PAGE, SPACE_CACHE, &fill), 0);
    ck_assert_int_eq(store_sync(f), 0);
    disk_begins();
    write_ok(f, data + PAGE, PAGE, PAGE);
    ck_assert_int_eq(store_sync(f), 0);
    file_put(f);
    f = after_boot(2);
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    ck_assert_uint_eq(s->bytes, CHUNK);
    for (size_t i = 0; i < s->nextents; i++)
        ck_assert_msg(!s->extents[i].hole, "the PFS gets zeros");
    store_snapshot_done(s, false);
    read_is(f, data, CHUNK, 0);
    file_put(f);
}
END_TEST

/* So that the next record is in another page of the slab. */
static void many_records(struct file *f)
{
    for (unsigned i = 0; i < 100; i++)
        write_ok(f, data, 1, i * CHUNK);
    file_put(f);
}

/* The PFS has it, but the disk does not know, so that a power loss would cut it off there. */
START_TEST(what_the_disk_does_not_know_to_be_flushed_is_not_evicted)
{
    struct snapshot *s;
    struct file_info info;
    struct file *f = new_file(2, "log");
    write_ok(f, data, CHUNK, 0);
    ck_assert_int_eq(store_sync(f), 0);
    store_info(f, &info);
    ck_assert_int_eq(store_flush_begins(f), 0);
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    write_ok(f, data, 10, CHUNK); /* so that the file stays dirty */
    store_snapshot_done(s, true);
    struct version v = version_n(info.size, 50);
    files_fail = true;
    ck_assert(!store_flushed(f, &v, info.change, NULL));
    files_fail = false;
    ck_assert(!evict_chunk(fid_n(2), 0, false));
    file_put(f);
    f = after_boot(2);
    read_is(f, data, CHUNK, 0);
    file_put(f);
}
END_TEST

/* Cut off, written again and flushed: the record on the disk still says that the old pages are covered. */
START_TEST(what_was_cut_off_does_not_come_back_after_the_next_fsync)
{
    uint64_t fill;
    struct snapshot *s;
    struct file_info info;
    struct version v = version_n(4 * PAGE, 3);
    struct file *f = get_file(2, "cut"), *g = new_file(3, "many");
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
    ck_assert_int_eq(fill_chunk(f, 0, &v, data, true), 0);
    write_ok(f, data + 4 * PAGE, CHUNK - 4 * PAGE, 4 * PAGE);
    ck_assert_int_eq(store_sync(f), 0);
    many_records(g);
    disk_begins();
    ck_assert_int_eq(store_truncate(f, 4 * PAGE, &fill), 0);
    write_ok(f, data, CHUNK - 4 * PAGE, 4 * PAGE);
    ck_assert_int_eq(store_flush_begins(f), 0);
    for (unsigned i = 0; i < 2; i++) { /* the cut, and the bytes */
        store_info(f, &info);
        ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
        if (i) /* so that the file stays dirty */
            write_ok(f, data, 10, CHUNK);
        store_snapshot_done(s, true);
    }
    v = version_n(CHUNK, 50);
    ck_assert(!store_flushed(f, &v, info.change, NULL));
    ck_assert_int_eq(store_sync(f), 0);
    ck_assert(evict_chunk(fid_n(2), 0, false));
    file_put(f);
    f = after_boot(2);
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    ck_assert_uint_eq(s->extents[0].off, CHUNK);
    store_snapshot_done(s, false);
    file_put(f);
}
END_TEST

/* What a flush that ended has put behind the end of the file as fsynced goes from there, before the file
 * can be made longer. */
START_TEST(the_pfs_file_is_cut_to_what_was_fsynced)
{
    struct snapshot *s;
    struct file_info info;
    struct file *f = new_file(2, "log");
    write_ok(f, data, 5000, 0);
    ck_assert_int_eq(store_sync(f), 0);
    write_ok(f, data, 100000, 5000);
    flush_beside_a_write(f, 0);
    file_put(f);
    f = after_boot(2);
    store_info(f, &info);
    ck_assert_uint_eq(info.size, 5000);
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    ck_assert_uint_eq(s->cut, 5000);
    store_snapshot_done(s, false);
    file_put(f);
}
END_TEST

/* The record tells of the data file, its name had not come to the disk. */
START_TEST(a_data_file_that_was_made_after_the_fsync_is_not_missed)
{
    uint64_t fill;
    char path[300];
    uint8_t zeros[5000] = {0};
    struct file *f = new_file(1, "longer");
    ck_assert_int_eq(store_truncate(f, 100000, &fill), 0);
    ck_assert_int_eq(store_sync(f), 0);
    write_ok(f, data, 5000, 50000);
    file_put(f);
    power_loss();
    data_path(fid_n(1), path);
    ck_assert_int_eq(unlink(path), 0);
    open_store(LIMIT, CHUNK);
    f = file_find(fid_n(1));
    ck_assert_ptr_nonnull(f);
    read_is(f, zeros, 5000, 50000);
    file_put(f);
}
END_TEST

/* The last page that the PFS has was not here, and came with a read: it is neither dirty nor covered. */
START_TEST(a_page_read_after_an_fsync_puts_nothing_in_doubt)
{
    uint64_t fill;
    struct file_info info;
    struct file *f = get_file(1, "longer");
    struct version v = version_n(70000, 3);
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
    ck_assert_int_eq(store_truncate(f, 150000, &fill), 0);
    ck_assert_int_eq(store_sync(f), 0);
    ck_assert_int_eq(fill_chunk(f, 1, &v, data, true), 0);
    ck_assert(page_valid(f, 70000 / PAGE));
    file_put(f);
    f = after_boot(1);
    store_info(f, &info);
    ck_assert(info.dirty);
    ck_assert_uint_eq(info.size, 150000);
    file_put(f);
}
END_TEST

/* Into a hole; the flush that took it did not end, so that the PFS has it and the hole comes back. */
START_TEST(what_a_flush_took_after_an_fsync_puts_nothing_in_doubt)
{
    struct snapshot *s;
    struct file *f = new_file(1, "holes");
    write_ok(f, data, 5000, 0);
    write_ok(f, data, 5000, 100000);
    ck_assert_int_eq(store_sync(f), 0);
    write_ok(f, data, 5000, 50000);
    ck_assert_int_eq(store_flush_begins(f), 0);
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    store_snapshot_done(s, true);
    file_put(f);
    f = after_boot(1);
    read_is(f, data, 5000, 0);
    read_is(f, data, 5000, 100000);
    uint8_t zeros[5000] = {0};
    read_is(f, zeros, 5000, 50000);
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    ck_assert_uint_eq(s->cut, 0);                               /* the PFS's bytes go before */
    ck_assert_uint_eq(s->bytes, 2 * PAGE + 105000 - 24 * PAGE); /* pages 0, 1 and from 24 on */
    store_snapshot_done(s, false);
    file_put(f);
}
END_TEST

/* Chunk 0 of a file was evicted and read again: its old record is free, the disk has both. */
START_TEST(two_records_of_a_chunk_put_nothing_in_doubt)
{
    struct file_info info;
    cached_file(1);
    struct file *f = file_find(fid_n(1)), *g = new_file(2, "many");
    write_ok(f, data, 10, 2 * CHUNK);
    ck_assert_int_eq(store_sync(f), 0);
    many_records(g);
    disk_begins();
    struct chunk_record *old = state_chunk_find(fid_n(1), 0);
    ck_assert(evict_chunk(fid_n(1), 0, false));
    store_info(f, &info);
    ck_assert_int_eq(fill_chunk(f, 0, &info.base, data, true), 0);
    struct chunk_record *c = state_chunk_find(fid_n(1), 0);
    ck_assert_msg((uintptr_t)c / 4096 != (uintptr_t)old / 4096, "the test is none");
    kernel_writes(c);
    file_put(f);
    f = after_boot(1);
    store_info(f, &info);
    ck_assert(info.dirty);
    ck_assert_uint_eq(info.dirty_bytes, PAGE);
    read_is(f, data, 10, 2 * CHUNK);
    file_put(f);
}
END_TEST

/* Cut off after one fsync, made again before the next one, in which the power went: the new record
 * counts, whichever is found first. */
START_TEST(of_two_records_of_a_chunk_the_covered_one_counts)
{
    uint64_t fill;
    struct file_info info;
    struct file *f = new_file(1, "again"), *g = new_file(2, "many");
    write_ok(f, data, 100000, 0);
    many_records(g);
    disk_begins();
    struct chunk_record *old = state_chunk_find(fid_n(1), 1);
    ck_assert_int_eq(store_truncate(f, CHUNK, &fill), 0);
    write_ok(f, data + CHUNK, 5000, CHUNK);
    struct chunk_record *c = state_chunk_find(fid_n(1), 1);
    ck_assert_msg((uintptr_t)c / 4096 != (uintptr_t)old / 4096, "the test is none");
    ck_assert_int_eq(store_sync(f), 0);
    /* as if what was free had not come to the disk, which the fsync has seen to */
    for (size_t at = 0; at < disk_size; at += 64)
        if (((struct chunk_record *)(disk + at))->fid.lo == fid_n(1).lo &&
            ((struct chunk_record *)(disk + at))->index == 1)
            ((struct chunk_record *)(disk + at))->magic = CHUNK_MAGIC;
    file_put(f);
    f = after_boot(1);
    store_info(f, &info);
    ck_assert_uint_eq(info.size, CHUNK + 5000);
    ck_assert_uint_eq(info.dirty_bytes, CHUNK + 2 * PAGE);
    read_is(f, data, CHUNK + 5000, 0);
    file_put(f);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("power loss: records");
    tcase_add_checked_fixture(t, setup_store, teardown_store);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, what_was_evicted_after_an_fsync_does_not_come_back_as_zeros);
    tcase_add_test(t, what_was_flushed_between_two_fsyncs_is_covered_again);
    tcase_add_test(t, what_was_punched_between_two_fsyncs_is_no_hole);
    tcase_add_test(t, what_the_disk_does_not_know_to_be_flushed_is_not_evicted);
    tcase_add_test(t, what_was_cut_off_does_not_come_back_after_the_next_fsync);
    tcase_add_test(t, the_pfs_file_is_cut_to_what_was_fsynced);
    tcase_add_test(t, a_data_file_that_was_made_after_the_fsync_is_not_missed);
    tcase_add_test(t, a_page_read_after_an_fsync_puts_nothing_in_doubt);
    tcase_add_test(t, what_a_flush_took_after_an_fsync_puts_nothing_in_doubt);
    tcase_add_test(t, two_records_of_a_chunk_put_nothing_in_doubt);
    tcase_add_test(t, of_two_records_of_a_chunk_the_covered_one_counts);
    return run_case("power loss: records", t);
}
