/* test_power_loss.c - what is left of the cache after a power loss: what was fsynced, and no byte that
 * is in doubt without a word. */
#include "store_help.h"
#include "suite.h"

#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "placement/pages.h"
#include "placement/state_int.h"

#define CHUNK (64 * KIB)
#define LIMIT (8 * MIB)

static uint8_t data[200000];

/* ---- the disk's own copy of the chunks' records: what was synced, where a test wants to know ---- */

#define SLAB "chunks.000"
static uint8_t *disk;
static size_t disk_size;

static int open_slab(const char *name)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/slabs/%s", cache_dir, name);
    int fd = open(path, O_RDWR);
    ck_assert_int_ge(fd, 0);
    return fd;
}

/* From here on only what is synced gets to it. */
static void disk_begins(void)
{
    int fd = open_slab(SLAB);
    disk_size = (size_t)lseek(fd, 0, SEEK_END);
    disk = malloc(disk_size);
    ck_assert_int_eq(pread(fd, disk, disk_size, 0), (ssize_t)disk_size);
    close(fd);
}

static void disk_comes_back(void)
{
    int fd = open_slab(SLAB);
    ck_assert_int_eq(pwrite(fd, disk, disk_size, 0), (ssize_t)disk_size);
    close(fd);
    free(disk);
    disk = NULL;
}

static void note_synced(const void *p, size_t len)
{
    char line[600];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof(line), maps)) {
        uintptr_t from, to, off;
        if (strstr(line, SLAB) && sscanf(line, "%lx-%lx %*s %lx", &from, &to, &off) == 3 &&
            (uintptr_t)p >= from && (uintptr_t)p < to) {
            size_t at = (uintptr_t)p - from + off;
            memcpy(disk + at, p, at + len < disk_size ? len : disk_size - at);
        }
    }
    if (maps)
        fclose(maps);
}

static bool files_fail; /* the slab of the files' records can not be written */

/* In place of the C library's. */
int msync(void *p, size_t len, int flags)
{
    const struct slab *slab = &state.files.slab[0];
    if (files_fail && (uint8_t *)p >= slab->map && (uint8_t *)p < slab->map + slab->bytes) {
        errno = EIO;
        return -1;
    }
    int r = (int)syscall(SYS_msync, p, len, flags);
    if (!r && disk)
        note_synced(p, len);
    return r;
}

/* ---- */

/* Which it does when it likes. */
static void kernel_writes(struct chunk_record *c)
{
    ck_assert_int_eq(slab_sync(c, chunk_slot_size(CHUNK)), 0);
}

static void setup_store(void)
{
    dir_setup();
    open_store(LIMIT, CHUNK);
    put_pattern(data, sizeof(data), 0, 5);
}

static void teardown_store(void)
{
    store_close(false);
    dir_teardown();
}

/* The daemon is gone without a word and the node has booted since. */
static void power_loss(void)
{
    static const char *const names[] = {"files.000", SLAB};
    store_close(false);
    if (disk)
        disk_comes_back();
    for (unsigned i = 0; i < 2; i++) {
        int fd = open_slab(names[i]);
        ck_assert_int_eq(pwrite(fd, "another boot", 13, offsetof(struct slab_header, boot_id)), 13);
        close(fd);
    }
}

static void cached_file(uint64_t n)
{
    struct file *f = get_file(n, "clean");
    struct version v = version_n(sizeof(data), 3);
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
    for (uint64_t i = 0; i < 4; i++)
        ck_assert_int_eq(fill_chunk(f, i, &v, data, true), 0);
    file_put(f);
}

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
    power_loss();
    open_store(LIMIT, CHUNK);
    f = file_find(fid_n(1));
    ck_assert_ptr_nonnull(f);
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

static void data_path(struct fid fid, char path[300])
{
    snprintf(path, 300, "%s/data/%02x/%016llx%016llx", cache_dir, (unsigned)(fid.lo & 0xff),
             (unsigned long long)fid.hi, (unsigned long long)fid.lo);
}

/* What the kernel stored after the fsync was flushed, but had not got to the cache's disk. */
START_TEST(what_the_kernel_stored_after_an_fsync_comes_back_as_no_zeros)
{
    char path[300];
    int backing;
    unsigned life;
    struct file_info info;
    struct file *f = new_file(1, "served by the kernel");
    ck_assert_int_eq(store_pass_open(f, true, &backing, &life), 0);
    close(backing);
    data_path(fid_n(1), path);
    int fd = open(path, O_WRONLY);
    ck_assert_int_eq(pwrite(fd, data, 100000, 0), 100000);
    ck_assert_int_eq(store_sync(f), 0);
    ck_assert_int_eq(pwrite(fd, data, 150000, 0), 150000);
    ck_assert_int_eq(store_pass_mark(f, NULL, NULL), 0);
    store_flush_begins(f);
    struct version v = version_n(150000, 9);
    ck_assert_msg(!store_flushed(f, &v, 0, NULL), "a flush that missed something is clean");
    store_pass_forget();
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
    power_loss();
    open_store(LIMIT, CHUNK);
    f = file_find(fid_n(2));
    ck_assert_ptr_nonnull(f);
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

static void flush_all_of(struct file *f, struct version *v)
{
    struct file_info info;
    struct snapshot *s;
    store_info(f, &info);
    store_flush_begins(f);
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    store_snapshot_done(s, true);
    *v = version_n(info.size, 50);
    ck_assert(store_flushed(f, v, info.change, NULL));
}

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

/* The punch can be on the disk before the record is. */
START_TEST(what_was_evicted_after_an_fsync_does_not_come_back_as_zeros)
{
    struct file *f = new_file(2, "log");
    struct file_info info;
    struct snapshot *s;
    write_ok(f, data, 2 * CHUNK, 0);
    ck_assert_int_eq(store_sync(f), 0);
    disk_begins();
    store_info(f, &info);
    store_flush_begins(f);
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    write_ok(f, data, 10, CHUNK); /* so that the file stays dirty */
    store_snapshot_done(s, true);
    struct version v = version_n(info.size, 50);
    ck_assert(!store_flushed(f, &v, info.change, NULL));
    ck_assert(pages_evict(fid_n(2), 0));
    file_put(f);
    power_loss();
    open_store(LIMIT, CHUNK);
    f = file_find(fid_n(2));
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(store_pin(f, 0, CHUNK), 0); /* the PFS has it */
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    ck_assert_uint_eq(s->bytes, CHUNK);
    ck_assert_uint_eq(s->runs[0].off, CHUNK);
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
    power_loss();
    open_store(LIMIT, CHUNK);
    f = file_find(fid_n(2));
    ck_assert_ptr_nonnull(f);
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
    ck_assert_int_eq(store_punch(f, PAGE, PAGE, &fill), 0);
    ck_assert_int_eq(store_sync(f), 0);
    disk_begins();
    write_ok(f, data + PAGE, PAGE, PAGE);
    ck_assert_int_eq(store_sync(f), 0);
    file_put(f);
    power_loss();
    open_store(LIMIT, CHUNK);
    f = file_find(fid_n(2));
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    ck_assert_uint_eq(s->bytes, CHUNK);
    for (size_t i = 0; i < s->nruns; i++)
        ck_assert_msg(!s->runs[i].hole, "the PFS gets zeros");
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
    ck_assert(!pages_evict(fid_n(2), 0));
    file_put(f);
    power_loss();
    open_store(LIMIT, CHUNK);
    f = file_find(fid_n(2));
    ck_assert_ptr_nonnull(f);
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
    ck_assert(pages_evict(fid_n(2), 0));
    file_put(f);
    power_loss();
    open_store(LIMIT, CHUNK);
    f = file_find(fid_n(2));
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    ck_assert_uint_eq(s->runs[0].off, CHUNK);
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
    store_info(f, &info);
    ck_assert_int_eq(store_flush_begins(f), 0);
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    write_ok(f, data, 10, 0); /* so that the file stays dirty */
    store_snapshot_done(s, true);
    struct version v = version_n(info.size, 50);
    ck_assert(!store_flushed(f, &v, info.change, NULL));
    file_put(f);
    power_loss();
    open_store(LIMIT, CHUNK);
    f = file_find(fid_n(2));
    ck_assert_ptr_nonnull(f);
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

static struct file *after_boot(uint64_t n)
{
    power_loss();
    open_store(LIMIT, CHUNK);
    struct file *f = file_find(fid_n(n));
    ck_assert_msg(f, "what was fsynced is in doubt");
    return f;
}

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
    ck_assert(pages_evict(fid_n(1), 0));
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
    TCase *t = tcase_create("power loss");
    tcase_add_checked_fixture(t, setup_store, teardown_store);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, after_a_clean_end_and_a_boot_all_is_trusted);
    tcase_add_test(t, clean_pages_do_not_survive_a_power_loss);
    tcase_add_test(t, what_was_evicted_after_an_fsync_does_not_come_back_as_zeros);
    tcase_add_test(t, a_truncation_keeps_what_was_fsynced_of_the_rest);
    tcase_add_test(t, records_of_another_age_put_no_other_file_in_doubt);
    tcase_add_test(t, what_the_kernel_stored_after_an_fsync_comes_back_as_no_zeros);
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
    tcase_add_test(t, what_fsync_covered_survives_a_power_loss_and_is_flushed);
    tcase_add_test(t, what_was_appended_after_the_fsync_is_lost_and_the_rest_is_as_fsynced);
    tcase_add_test(t, what_no_fsync_covered_is_set_aside_and_named);
    tcase_add_test(t, what_was_flushed_and_given_back_does_not_come_back);
    return run_case("power loss", t);
}
