/* test_holes.c - a hole costs nothing: it is not dirty, not looked at, has no record, and is a hole on the PFS;
 * and where the PFS has bytes, a hole that was made here becomes one there.
 */
#include "flush_env.h"

#include <sys/syscall.h>

#include "placement/store/datafile.h"
#include "placement/store/eviction.h"
#include "placement/store/state.h"
#include "placement/store/state_int.h"
#include "placement/store/state_table.h"
#include "placement/store/store_copyout.h"
#include "placement/store/store_hit.h"
#include "placement/store/store_version.h"
#include "placement/store/store_write.h"

#define HUGE  (UINT64_C(1) << 40)
#define CHUNK ((uint64_t)sizeof(env_chunk))

/* ---- the calls that look at bytes here, and put them on the PFS ---- */

static struct file *removed_at_next; /* call */
static unsigned calls_since;
static off_t fail_from = INT64_MAX; /* writes from here on fail, after they have put the bytes there */

static void call(void)
{
    if (removed_at_next)
        file_set_unlinked(removed_at_next, true);
    removed_at_next = NULL;
    calls_since++;
}

/* In place of the C library's. */
ssize_t pread(int fd, void *buf, size_t len, off_t off)
{
    call();
    return syscall(SYS_pread64, fd, buf, len, off);
}

ssize_t pwrite(int fd, const void *buf, size_t len, off_t off)
{
    call();
    ssize_t n = syscall(SYS_pwrite64, fd, buf, len, off);
    if (off < fail_from)
        return n;
    errno = EIO;
    return -1;
}

/* ---- a file that the kernel writes ---- */

struct kernel_file {
    struct file *f;
    unsigned life;
    int fd; /* as the kernel's */
};

static int open_data(struct fid fid, int flags)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/cache/data/%02x/%016llx%016llx", env_dir, (unsigned)(fid.lo & 0xff),
             (unsigned long long)fid.hi, (unsigned long long)fid.lo);
    int fd = open(path, flags | O_CLOEXEC);
    ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
    return fd;
}

static void kernel_open(struct kernel_file *k, struct file *f)
{
    int fd, err = kernel_io_open(f, true, &fd, &k->life);
    ck_assert_msg(!err, "kernel_io_open: %s", strerror(-err));
    close(fd);
    k->f = f;
    k->fd = open_data(f->fid, O_RDWR);
}

static void kernel_close(struct kernel_file *k)
{
    close(k->fd);
    kernel_io_close(k->f, k->life, true);
}

static void kernel_put(struct kernel_file *k, const void *bytes, size_t len, uint64_t off)
{
    ck_assert_int_eq(pwrite(k->fd, bytes, len, (off_t)off), (ssize_t)len);
}

/* ---- what there is ---- */

static uint64_t dirty_bytes(struct file *f)
{
    struct file_info info;
    store_info(f, &info);
    return info.dirty_bytes;
}

static uint64_t records(void)
{
    struct store_usage u;
    store_usage(&u);
    return u.chunks;
}

static bool is_here(struct file *f, uint64_t off, uint64_t len)
{
    uint64_t miss, n;
    return !store_missing(f, off, len, &miss, &n);
}

static int count_look(void *arg)
{
    ++*(unsigned *)arg;
    return 0;
}

/* How many chunks a copy-out looks at before it begins. */
static unsigned looks(struct file *f)
{
    unsigned n = 0;
    ck_assert_int_eq(kernel_io_mark(f, count_look, &n), 0);
    return n;
}

static void expect_at(const char *name, uint64_t off, const void *want, size_t len)
{
    char *got = malloc(len);
    int fd = open(env_path(name), O_RDONLY);
    ck_assert_int_eq(pread(fd, got, len, (off_t)off), (ssize_t)len);
    ck_assert_msg(!memcmp(got, want, len), "%s at %llu is something else", name, (unsigned long long)off);
    close(fd);
    free(got);
}

static uint64_t blocks(const char *name)
{
    struct stat st;
    ck_assert_int_eq(stat(env_path(name), &st), 0);
    return (uint64_t)st.st_blocks * 512;
}

static char zeros[1 << 20];

static void read_is(struct file *f, const void *want, size_t len)
{
    char *got = malloc(len);
    ck_assert_int_eq(store_read(f, got, len, 0), (ssize_t)len);
    ck_assert_msg(!memcmp(got, want, len), "a read here gets something else");
    free(got);
}

static void expect_huge(struct file *f)
{
    struct stat st;
    char got[4096];
    ck_assert_int_eq(stat(env_path("huge"), &st), 0);
    ck_assert_uint_eq((uint64_t)st.st_size, HUGE);
    ck_assert_uint_le(blocks("huge"), 256 << 10);
    expect_at("huge", 0, "first", 5);
    expect_at("huge", HUGE - 4, "last", 4);
    ck_assert_msg(is_here(f, 0, HUGE), "a hole has to be fetched after the flush");
    ck_assert_int_eq(store_read(f, got, sizeof(got), HUGE / 2), sizeof(got));
    ck_assert(!memcmp(got, zeros, sizeof(got)));
}

/* ---- they cost nothing ---- */

START_TEST(of_a_huge_file_only_its_two_pages_are_looked_at)
{
    struct kernel_file k;
    uint64_t off, len;
    start(NO_LULL);
    struct file *f = env_create("huge", 0644);
    kernel_open(&k, f);
    env_truncate(f, HUGE);
    kernel_put(&k, "first", 5, 0);
    kernel_put(&k, "last", 4, HUGE - 4);
    ck_assert_uint_eq(dirty_bytes(f), 2 * PAGE);
    ck_assert_uint_eq(looks(f), 2);
    ck_assert_uint_eq(dirty_bytes(f), 2 * PAGE);
    ck_assert_uint_eq(records(), 2);
    ck_assert_msg(!store_hole_owed(f, 0, &off, &len), "the PFS is asked to punch what is a hole there");
    ck_assert_int_eq(flush_file(f), 0);
    expect_huge(f);
    kernel_put(&k, "more", 4, HUGE / 2);
    ck_assert_uint_eq(looks(f), 3);
    ck_assert_uint_eq(dirty_bytes(f), PAGE);
    ck_assert_int_eq(flush_file(f), 0);
    expect_at("huge", HUGE / 2, "more", 4);
    kernel_close(&k);
    ck_assert_int_eq(flush_file(f), 0);
    kernel_io_sample(flush_dirtied, flush_dirtied);
    kernel_open(&k, f); /* again, with its holes */
    kernel_close(&k);
    shut(f);
}
END_TEST

START_TEST(the_same_through_the_daemon)
{
    start(NO_LULL);
    struct file *f = env_create("huge", 0644);
    env_truncate(f, HUGE);
    env_write(f, "first", 5, 0);
    env_write(f, "last", 4, HUGE - 4);
    ck_assert_uint_eq(dirty_bytes(f), 2 * PAGE);
    ck_assert_int_eq(flush_file(f), 0);
    expect_huge(f);
    ck_assert_uint_eq(records(), 2);
    struct file_info info;
    store_info(f, &info);
    ck_assert_uint_eq(info.blocks, 2 * PAGE / 512);
    uint64_t off;
    ck_assert_int_eq(store_seek(f, PAGE, false, &off), 0);
    ck_assert_uint_eq(off, HUGE - PAGE);
    /* into a hole that is flushed: nothing is fetched for it */
    ck_assert_int_eq(store_write(f, "more", 4, HUGE / 2 + 10, SPACE_CACHE, &off), 0);
    ck_assert_int_eq(flush_file(f), 0);
    expect_at("huge", HUGE / 2, zeros, 10);
    expect_at("huge", HUGE / 2 + 10, "more", 4);
    shut(f);
}
END_TEST

START_TEST(a_huge_file_is_not_more_anchored_than_it_has_bytes)
{
    struct kernel_file k;
    start(NO_LULL);
    struct file *f = env_create("huge", 0644);
    env_write(f, "first", 5, 0);
    env_truncate(f, HUGE);
    kernel_open(&k, f);
    ck_assert_uint_eq(kernel_io_anchored(), PAGE);
    kernel_close(&k);
    ck_assert_uint_eq(kernel_io_anchored(), 0);
    ck_assert_int_eq(flush_file(f), 0);
    shut(f);
}
END_TEST

/* A punch of a hole needs no record, and touches no byte on the PFS. */
START_TEST(a_punch_of_a_hole_makes_no_record)
{
    struct kernel_file k;
    start(NO_LULL);
    struct file *f = env_create("huge", 0644);
    env_truncate(f, HUGE);
    env_punch(f, 0, HUGE);
    kernel_open(&k, f);
    env_punch(f, 100, HUGE - 200);
    ck_assert_uint_eq(records(), 0);
    ck_assert_uint_eq(dirty_bytes(f), 0);
    ck_assert_int_eq(flush_file(f), 0);
    ck_assert_uint_eq(blocks("huge"), 0);
    kernel_close(&k);
    shut(f);
}
END_TEST

/* ---- where the PFS has bytes, they become zeros there ---- */

static struct file *with_bytes(struct kernel_file *k, bool kernel)
{
    fill_page(5);
    struct file *f = env_create("f", 0644);
    if (kernel) {
        kernel_open(k, f);
        kernel_put(k, page, sizeof(page), 0);
    } else {
        env_write(f, page, sizeof(page), 0);
    }
    ck_assert_int_eq(flush_file(f), 0);
    env_expect("f", page, sizeof(page));
    return f;
}

/* _i: with kernel I/O or without. */
START_TEST(what_is_punched_is_punched_on_the_pfs)
{
    struct kernel_file k;
    start(NO_LULL);
    struct file *f = with_bytes(&k, _i);
    env_punch(f, 10000, 500000);
    memset(page + 10000, 0, 500000);
    ck_assert_int_eq(flush_file(f), 0);
    env_expect("f", page, sizeof(page));
    ck_assert_uint_le(blocks("f"), sizeof(page) - 400000);
    if (_i)
        kernel_close(&k);
    shut(f);
}
END_TEST

START_TEST(what_is_cut_off_and_extended_is_a_hole_on_the_pfs)
{
    struct kernel_file k;
    start(NO_LULL);
    struct file *f = with_bytes(&k, _i);
    env_truncate(f, 10000);
    env_truncate(f, sizeof(page) + 5 * CHUNK);
    if (_i)
        kernel_put(&k, "end", 3, sizeof(page) - 3);
    else
        env_write(f, "end", 3, sizeof(page) - 3);
    memset(page + 10000, 0, sizeof(page) - 10000);
    memcpy(page + sizeof(page) - 3, "end", 3);
    ck_assert_int_eq(flush_file(f), 0);
    expect_at("f", 0, page, sizeof(page));
    expect_at("f", sizeof(page) + CHUNK, zeros, sizeof(zeros));
    ck_assert_uint_le(blocks("f"), 64 << 10);
    if (_i)
        kernel_close(&k);
    shut(f);
}
END_TEST

/* Nothing in memory knows of the file any more. */
static void end_daemon(struct file *f)
{
    struct fid fid = f->fid;
    pfs_release(f);
    stop_flush();
    pfs_drop(f);
    file_put(f);
    ck_assert_ptr_null(file_find_used(fid));
    pfs_close();
    store_close(false);
}

/* The daemon dies and starts again; the file as it is found then. */
static struct file *after_death(struct file *f)
{
    struct fid fid = f->fid;
    end_daemon(f);
    env_open_store();
    env_open_pfs();
    start(NO_LULL);
    f = file_find(fid);
    ck_assert_ptr_nonnull(f);
    return f;
}

static uint64_t dirty_in_all(void)
{
    uint64_t dirty, room;
    store_dirty(&dirty, &room);
    return dirty;
}

START_TEST(what_is_punched_is_not_dirty)
{
    struct kernel_file k;
    start(NO_LULL);
    struct file *f = with_bytes(&k, _i);
    env_punch(f, 10000, 500000);
    ck_assert_uint_le(dirty_bytes(f), 2 * PAGE);
    ck_assert_uint_eq(dirty_in_all(), dirty_bytes(f));
    env_write(f, page, 5000, 100000);
    ck_assert_uint_ge(dirty_bytes(f), 5000);
    ck_assert_uint_eq(dirty_in_all(), dirty_bytes(f));
    env_punch(f, 90000, 50000);
    ck_assert_uint_le(dirty_bytes(f), 4 * PAGE); /* the pages at the two ends of each */
    env_truncate(f, 200000);
    ck_assert_uint_le(dirty_bytes(f), 4 * PAGE);
    ck_assert_uint_eq(dirty_in_all(), dirty_bytes(f));
    ck_assert_int_eq(flush_file(f), 0);
    ck_assert_uint_eq(dirty_in_all(), 0);
    memset(page + 10000, 0, 190000);
    env_expect("f", page, 200000);
    if (_i)
        kernel_close(&k);
    shut(f);
}
END_TEST

START_TEST(nor_after_the_daemons_death)
{
    start(NO_LULL);
    struct file *f = with_bytes(NULL, false);
    struct fid fid = f->fid;
    env_punch(f, 10000, 500000);
    end_daemon(f);
    env_open_store();
    env_open_pfs();
    f = file_find(fid);
    ck_assert_uint_le(dirty_bytes(f), 2 * PAGE);
    ck_assert_uint_eq(dirty_in_all(), dirty_bytes(f));
    start(NO_LULL);
    ck_assert_int_eq(flush_file(f), 0);
    ck_assert_uint_eq(dirty_bytes(f), 0);
    memset(page + 10000, 0, 500000);
    env_expect("f", page, sizeof(page));
    file_put(f);
}
END_TEST

/* A file of the PFS that is not here, as mkfs empties an image.  _i: the daemon dies meanwhile. */
START_TEST(a_punch_up_to_the_end_needs_few_records)
{
    const uint64_t size = UINT64_C(3) << 30, from = 10000;
    start(NO_LULL);
    fill_page(8);
    env_put("f", page, sizeof(page), 0644);
    int fd = open(env_path("f"), O_WRONLY);
    ck_assert_int_eq(pwrite(fd, "middle", 6, (off_t)(size / 2)), 6);
    ck_assert_int_eq(pwrite(fd, "end", 3, (off_t)(size - 3)), 3);
    close(fd);
    struct file *f = env_open("f", true);
    env_write(f, "changed", 7, size / 4); /* dirty, and punched before it is flushed */
    memcpy(page + 5000, "changed", 7);
    env_write(f, "changed", 7, 5000);
    env_punch(f, from, size - from);
    ck_assert_uint_le(records(), 2);
    ck_assert_uint_le(dirty_bytes(f), 3 * PAGE);
    if (_i)
        f = after_death(f);
    env_write(f, "later", 5, size / 3);
    ck_assert_uint_eq(dirty_in_all(), dirty_bytes(f));
    ck_assert_int_eq(flush_file(f), 0);
    struct stat st;
    ck_assert_int_eq(stat(env_path("f"), &st), 0);
    ck_assert_uint_eq((uint64_t)st.st_size, size);
    memset(page + from, 0, sizeof(page) - from);
    expect_at("f", 0, page, sizeof(page));
    expect_at("f", size / 4, zeros, 7);
    expect_at("f", size / 3, "later", 5);
    expect_at("f", size / 2, zeros, 6);
    expect_at("f", size - 3, zeros, 3);
    ck_assert_uint_le(blocks("f"), 256 << 10);
    if (_i)
        file_put(f);
    else
        shut(f);
}
END_TEST

/* Before any record tells of them. */
START_TEST(what_the_kernel_wrote_just_now_is_punched)
{
    struct kernel_file k;
    start(NO_LULL);
    fill_page(6);
    struct file *f = env_create("f", 0644);
    kernel_open(&k, f);
    kernel_put(&k, page, sizeof(page), 0);
    env_punch(f, 10000, 500000);
    memset(page + 10000, 0, 500000);
    read_is(f, page, sizeof(page));
    ck_assert_int_eq(flush_file(f), 0);
    env_expect("f", page, sizeof(page));
    kernel_close(&k);
    shut(f);
}
END_TEST

/* It has its time for the PFS. */
START_TEST(a_punched_hole_is_flushed)
{
    start(NO_LULL);
    struct file *f = env_create("f", 0644);
    env_truncate(f, HUGE);
    ck_assert_int_eq(flush_file(f), 0);
    ck_assert(!dirty(f) && !pending());
    env_punch(f, 0, HUGE);
    ck_assert(dirty(f));
    ck_assert_uint_eq(pending(), 1);
    ck_assert_int_eq(flush_file(f), 0);
    shut(f);
}
END_TEST

/* A hole is written, flushed, and punched again before the next flush. */
START_TEST(a_hole_that_was_bytes_for_one_flush_is_one_on_the_pfs_again)
{
    struct kernel_file k;
    start(NO_LULL);
    struct file *f = env_create("huge", 0644);
    if (_i)
        kernel_open(&k, f);
    env_truncate(f, HUGE);
    for (unsigned n = 0; n < 2; n++) {
        if (_i)
            kernel_put(&k, "bytes", 5, HUGE / 2);
        else
            env_write(f, "bytes", 5, HUGE / 2);
        ck_assert_int_eq(flush_file(f), 0);
        expect_at("huge", HUGE / 2, "bytes", 5);
        env_punch(f, HUGE / 2 - 100000, 200000);
        ck_assert_int_eq(flush_file(f), 0);
        expect_at("huge", HUGE / 2, zeros, 5);
    }
    if (_i)
        kernel_close(&k);
    shut(f);
}
END_TEST

/* ---- what is not known to be a hole is none ---- */

static void evict_all(void)
{
    while (eviction_one(false, false))
        ;
}

START_TEST(what_was_evicted_is_no_hole)
{
    char got[4096];
    start(NO_LULL);
    struct file *f = env_create("huge", 0644);
    env_write(f, "first", 5, 0);
    env_truncate(f, HUGE);
    ck_assert_int_eq(flush_file(f), 0);
    ck_assert(is_here(f, 0, HUGE));
    evict_all();
    ck_assert(!is_here(f, 0, PAGE));
    env_fill(f, 0);
    ck_assert_int_eq(store_read(f, got, 5, 0), 5);
    ck_assert(!memcmp(got, "first", 5));
    shut(f);
}
END_TEST

START_TEST(another_version_has_other_holes)
{
    start(NO_LULL);
    struct file *f = env_create("huge", 0644);
    env_truncate(f, HUGE);
    ck_assert_int_eq(flush_file(f), 0);
    ck_assert(is_here(f, 0, HUGE));
    struct version v = {.size = HUGE, .mtime_ns = 5, .ctime_ns = 6};
    store_clear_claim(f, NULL);
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
    ck_assert(!is_here(f, HUGE / 2, 1));
    shut(f);
}
END_TEST

START_TEST(holes_are_known_after_the_daemons_death)
{
    start(NO_LULL);
    struct file *f = env_create("huge", 0644);
    env_write(f, "first", 5, 0);
    env_truncate(f, HUGE);
    ck_assert_int_eq(flush_file(f), 0);
    f = after_death(f);
    ck_assert(is_here(f, 0, HUGE));
    file_put(f);
}
END_TEST

/* The record of a chunk is damaged: its pages are no holes, in none of the files. */
START_TEST(a_lost_record_is_no_hole)
{
    start(NO_LULL);
    struct file *f = env_create("huge", 0644);
    env_write(f, "first", 5, 0);
    env_write(f, "other", 5, HUGE / 2);
    env_truncate(f, HUGE);
    ck_assert_int_eq(flush_file(f), 0);
    store_clear_claim(f, NULL);
    state_chunk_find(f->fid, 0)->check ^= 1;
    f = after_death(f);
    ck_assert(!is_here(f, 0, PAGE));
    file_put(f);
}
END_TEST

/* The daemon dies between the two steps of a truncation, and a program that goes on writing makes the file as
 * long as it was: the PFS gets the hole in between. */
START_TEST(what_was_cut_off_at_the_daemons_death_becomes_a_hole)
{
    struct kernel_file k;
    start(NO_LULL);
    struct file *f = with_bytes(&k, true);
    kernel_put(&k, page, CHUNK, CHUNK);
    kernel_put(&k, page, CHUNK, 2 * CHUNK);
    ck_assert_int_eq(flush_file(f), 0);
    k.f = f = after_death(f);
    ck_assert_int_eq(ftruncate(k.fd, 5000), 0);
    kernel_put(&k, "end", 3, 3 * CHUNK - 3);
    close(k.fd);
    ck_assert_int_eq(flush_file(f), 0);
    expect_at("f", 0, page, 5000);
    expect_at("f", 5000, zeros, CHUNK - 5000);
    expect_at("f", CHUNK, zeros, CHUNK);
    expect_at("f", 2 * CHUNK, zeros, CHUNK - 3);
    expect_at("f", 3 * CHUNK - 3, "end", 3);
    file_put(f);
}
END_TEST

/* ---- a power loss ---- */

static void boot(void)
{
    static const char *const names[] = {"files.000", "chunks.000"};
    for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
        char path[200];
        snprintf(path, sizeof(path), "%s/cache/slabs/%s", env_dir, names[i]);
        int fd = open(path, O_RDWR);
        ck_assert_int_eq(pwrite(fd, "another boot", 13, offsetof(struct slab_header, boot_id)), 13);
        close(fd);
    }
}

/* The file had a hole at its last fsync.  Bytes that were written there since got to the PFS, but neither they
 * nor their record to the disk. */
START_TEST(after_a_power_loss_the_pfs_gets_the_holes_too)
{
    struct kernel_file k;
    start(NO_LULL);
    struct file *f = env_create("huge", 0644);
    struct fid fid = f->fid;
    kernel_open(&k, f);
    env_truncate(f, HUGE);
    kernel_put(&k, "first", 5, 0);
    ck_assert_int_eq(store_sync(f), 0);
    fill_page(9);
    kernel_put(&k, page, sizeof(page), HUGE / 2);
    fail_from = (off_t)(HUGE / 2);
    ck_assert_int_eq(flush_file(f), -EIO);
    fail_from = INT64_MAX;
    kernel_put(&k, "FIRST", 5, 0);
    expect_at("huge", HUGE / 2, page, sizeof(page));
    struct chunk_record *c;
    while ((c = state_chunk_at(f->rec->first_chunk)))
        state_chunk_free(f->rec, c);
    end_daemon(f);
    ck_assert_int_eq(fallocate(k.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(HUGE / 2), sizeof(page)), 0);
    close(k.fd);
    boot();
    env_open_store();
    env_open_pfs();
    start(NO_LULL);
    f = file_find(fid);
    ck_assert_ptr_nonnull(f);
    uint64_t off, len;
    ck_assert(store_hole_owed(f, 0, &off, &len));
    ck_assert_int_eq(flush_file(f), 0);
    expect_at("huge", 0, "FIRST", 5);
    expect_at("huge", HUGE / 2, zeros, sizeof(page));
    ck_assert(!store_hole_owed(f, 0, &off, &len));
    ck_assert(is_here(f, 0, HUGE));
    file_put(f);
}
END_TEST

/* ---- removal ---- */

static void expect_end(struct file *f)
{
    calls_since = 0;
    removed_at_next = f;
    ck_assert_int_eq(flush_file(f), 0);
    ck_assert_uint_le(calls_since, 2);
    ck_assert(!dirty(f));
}

START_TEST(the_search_in_a_removed_file_ends)
{
    struct kernel_file k;
    start(NO_LULL);
    struct file *f = env_create("f", 0644);
    kernel_open(&k, f);
    for (unsigned i = 0; i < 20; i++)
        kernel_put(&k, "bytes", 5, i * CHUNK);
    expect_end(f);
    kernel_close(&k);
    shut(f);
}
END_TEST

START_TEST(the_copy_of_a_removed_file_ends)
{
    start(NO_LULL);
    struct file *f = env_create("f", 0644);
    for (unsigned i = 0; i < 20; i++)
        env_write(f, "bytes", 5, 2 * i * CHUNK);
    expect_end(f);
    shut(f);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("holes");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, of_a_huge_file_only_its_two_pages_are_looked_at);
    tcase_add_test(t, the_same_through_the_daemon);
    tcase_add_test(t, a_huge_file_is_not_more_anchored_than_it_has_bytes);
    tcase_add_test(t, a_punch_of_a_hole_makes_no_record);
    tcase_add_loop_test(t, what_is_punched_is_punched_on_the_pfs, 0, 2);
    tcase_add_loop_test(t, what_is_cut_off_and_extended_is_a_hole_on_the_pfs, 0, 2);
    tcase_add_loop_test(t, what_is_punched_is_not_dirty, 0, 2);
    tcase_add_test(t, nor_after_the_daemons_death);
    tcase_add_loop_test(t, a_punch_up_to_the_end_needs_few_records, 0, 2);
    tcase_add_test(t, what_the_kernel_wrote_just_now_is_punched);
    tcase_add_test(t, a_punched_hole_is_flushed);
    tcase_add_loop_test(t, a_hole_that_was_bytes_for_one_flush_is_one_on_the_pfs_again, 0, 2);
    tcase_add_test(t, what_was_evicted_is_no_hole);
    tcase_add_test(t, another_version_has_other_holes);
    tcase_add_test(t, holes_are_known_after_the_daemons_death);
    tcase_add_test(t, a_lost_record_is_no_hole);
    tcase_add_test(t, what_was_cut_off_at_the_daemons_death_becomes_a_hole);
    tcase_add_test(t, after_a_power_loss_the_pfs_gets_the_holes_too);
    tcase_add_test(t, the_search_in_a_removed_file_ends);
    tcase_add_test(t, the_copy_of_a_removed_file_ends);
    return run_case("holes", t);
}
