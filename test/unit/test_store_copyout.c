/* test_store_copyout.c - a file's dirty pages are copied out: beside writes and truncations, failed,
 * in part. */
#include "store_pages.h"

#include "placement/store/range.h"
#include "placement/store/store_copyout.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"
#include "placement/store/store_write.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/uio.h>

/* ---- a write that stands still in the middle ---- */

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool hold, held;
} gate = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

/* libc's, with a gate in front of the second half. */
ssize_t pwritev(int fd, const struct iovec *iov, int n, off_t off)
{
    ssize_t done = 0;
    for (int i = 0; i < n; i++) {
        const char *p = iov[i].iov_base;
        size_t half[2] = {iov[i].iov_len / 2, iov[i].iov_len - iov[i].iov_len / 2};
        for (unsigned h = 0; h < 2; p += half[h++]) {
            if (half[h] && pwrite(fd, p, half[h], off + done) != (ssize_t)half[h])
                return -1;
            done += (ssize_t)half[h];
            pthread_mutex_lock(&gate.mutex);
            while (gate.hold && done) {
                gate.held = true;
                pthread_cond_broadcast(&gate.cond);
                pthread_cond_wait(&gate.cond, &gate.mutex);
            }
            pthread_mutex_unlock(&gate.mutex);
        }
    }
    return done;
}

static void gate_close(void)
{
    gate.hold = true;
}

static void gate_wait(void)
{
    pthread_mutex_lock(&gate.mutex);
    while (!gate.held)
        pthread_cond_wait(&gate.cond, &gate.mutex);
    pthread_mutex_unlock(&gate.mutex);
}

static void gate_open(void)
{
    pthread_mutex_lock(&gate.mutex);
    gate.hold = gate.held = false;
    pthread_cond_broadcast(&gate.cond);
    pthread_mutex_unlock(&gate.mutex);
}

struct slow_write {
    struct file *f;
    const uint8_t *buf;
    size_t len;
    uint64_t off;
};

static void *write_slowly(void *arg)
{
    struct slow_write *w = arg;
    write_ok(w->f, w->buf, w->len, w->off);
    return NULL;
}

/* ---- copy-out ---- */

START_TEST(a_page_written_during_its_copy_out_stays_dirty)
{
    uint8_t data[12288];
    put_pattern(data, sizeof(data), 0, 10);
    struct file *f = new_file(1, "x");
    write_ok(f, data, sizeof(data), 0);
    uint64_t change = info_of(f).change;
    struct snapshot *s, *t;
    store_flush_begins(f);
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    ck_assert(s->last);
    ck_assert_uint_eq(s->bytes, 12288);
    write_ok(f, data, 10, 5000); /* page 1 again */
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &t),
                     0); /* and not into a second copy-out beside the first */
    ck_assert_uint_eq(t->nextents, 0);
    ck_assert(!t->last);
    store_snapshot_done(t, true);
    store_snapshot_done(s, true);
    ck_assert_uint_eq(info_of(f).dirty_bytes, 4096);
    struct version v = version_n(12288, 9);
    ck_assert(!store_flushed(f, &v, change, NULL));
    ck_assert(info_of(f).dirty);
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    ck_assert_uint_eq(s->nextents, 1);
    ck_assert_uint_eq(s->extents[0].off, 4096);
    store_snapshot_done(s, true);
    ck_assert(store_flushed(f, &v, info_of(f).change, NULL));
    ck_assert(!info_of(f).dirty);
    file_put(f);
}
END_TEST

struct waiting {
    struct file *f;
    struct snapshot *s;
    int err;
    _Atomic bool ended;
};

static void *take_snapshot(void *arg)
{
    struct waiting *w = arg;
    w->err = store_snapshot(w->f, 0, MIB, &w->s);
    w->ended = true;
    return NULL;
}

static bool is_waited_for(struct file *f)
{
    lock_take(&f->lock);
    bool waits = f->ops && f->ops->next;
    lock_drop(&f->lock);
    return waits;
}

/* Left out, what was written to the page before would be missing where who had written it is told that
 * it is on the PFS. */
START_TEST(pages_in_the_middle_of_a_write_are_waited_for)
{
    uint8_t data[16384], more[8192];
    put_pattern(data, sizeof(data), 0, 10);
    put_pattern(more, sizeof(more), 4096, 99);
    struct file *f = new_file(1, "x");
    write_ok(f, data, sizeof(data), 0);
    struct slow_write w = {f, more, sizeof(more), 4096};
    struct waiting snap = {.f = f};
    pthread_t t, u;
    gate_close();
    pthread_create(&t, NULL, write_slowly, &w);
    gate_wait();
    pthread_create(&u, NULL, take_snapshot, &snap);
    while (!is_waited_for(f) && !snap.ended)
        sched_yield();
    ck_assert_msg(!snap.ended, "a snapshot is taken in the middle of a write");
    gate_open();
    pthread_join(t, NULL);
    pthread_join(u, NULL);
    ck_assert_int_eq(snap.err, 0);
    ck_assert(snap.s->last);
    ck_assert_uint_eq(snap.s->nextents, 1);
    ck_assert_uint_eq(snap.s->bytes, sizeof(data));
    memcpy(data + 4096, more, sizeof(more));
    read_is(f, data, sizeof(data), 0);
    uint64_t change = info_of(f).change;
    store_snapshot_done(snap.s, true);
    struct version v = version_n(16384, 9);
    ck_assert(store_flushed(f, &v, change, NULL));
    file_put(f);
}
END_TEST

static _Atomic bool truncated;
static void *truncate_it(void *arg)
{
    uint64_t fill;
    ck_assert_int_eq(store_truncate(arg, 5000, &fill), 0);
    truncated = true;
    return NULL;
}

START_TEST(a_truncation_waits_for_the_write_that_it_cuts)
{
    uint8_t data[16384];
    put_pattern(data, sizeof(data), 0, 10);
    struct file *f = new_file(1, "x");
    write_ok(f, data, 10000, 0);
    struct slow_write w = {f, data, sizeof(data), 0};
    pthread_t t, u;
    gate_close();
    pthread_create(&t, NULL, write_slowly, &w);
    gate_wait();
    truncated = false;
    pthread_create(&u, NULL, truncate_it, f);
    ck_assert_uint_eq(here(f, 0, 3), 3); /* a reader does not wait for the write */
    ck_assert(!truncated);
    gate_open();
    pthread_join(t, NULL);
    pthread_join(u, NULL);
    ck_assert_uint_eq(info_of(f).size, 5000);
    ck_assert_uint_eq(info_of(f).dirty_bytes, 8192);
    read_is(f, data, 5000, 0);
    file_put(f);
}
END_TEST

/* The copy-out of a file of 50000 bytes that was cut at `at` and written again from there on. */
static struct snapshot *begin_copy_of_cut(struct file *f, uint64_t at, size_t len)
{
    uint8_t data[20000];
    put_pattern(data, sizeof(data), 0, 11);
    struct version v = version_n(50000, 5);
    store_set_claim(f, 1, 1, &v);
    uint64_t fill;
    ck_assert_int_eq(store_truncate(f, at, &fill), 0);
    write_ok(f, data, len, at);
    struct snapshot *s;
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    return s;
}

START_TEST(a_failed_copy_out_keeps_all_dirty_and_the_cut)
{
    struct file *f = get_file(1, "x");
    struct snapshot *s = begin_copy_of_cut(f, 0, 8192);
    ck_assert_uint_eq(s->cut, 0);
    store_snapshot_done(s, false);
    ck_assert_uint_eq(info_of(f).cut, 0);
    ck_assert_uint_eq(info_of(f).dirty_bytes, 8192);
    file_put(f);
}
END_TEST

START_TEST(a_second_cut_at_the_same_place_is_not_taken_for_the_first)
{
    struct file *f = get_file(1, "x");
    struct snapshot *s = begin_copy_of_cut(f, 4096, 20000);
    uint64_t fill;
    ck_assert_int_eq(store_truncate(f, 4096, &fill), 0); /* the PFS gets s's pages after its cut */
    store_snapshot_done(s, true);
    ck_assert_uint_eq(info_of(f).cut, 4096);
    file_put(f);
}
END_TEST

static const struct version before_cut = {.size = 30000, .mtime_ns = 5, .ctime_ns = 5};
static uint8_t base[30000];

static void *fill_slowly(void *arg)
{
    ck_assert_int_eq(fill_chunk(arg, 0, &before_cut, base, false), 0);
    return NULL;
}

START_TEST(a_flush_that_ends_beside_a_fill_brings_nothing_back_that_was_cut_off)
{
    uint8_t page[PAGE], want[3 * PAGE] = {0};
    uint64_t fill;
    struct snapshot *s;
    pthread_t t;
    put_pattern(base, sizeof(base), 0, 21);
    put_pattern(page, sizeof(page), PAGE, 22);
    memcpy(want, base, 9000);
    memcpy(want + PAGE, page, PAGE);
    struct file *f = get_file(1, "x");
    store_set_claim(f, 1, 1, &before_cut);
    write_ok(f, page, PAGE, PAGE); /* so that two runs of pages are to be filled */
    ck_assert_int_eq(store_truncate(f, 9000, &fill), 0);
    ck_assert_int_eq(store_truncate(f, 15000, &fill), 0);
    uint64_t change = info_of(f).change;
    store_flush_begins(f);
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    store_snapshot_done(s, true);
    gate_close();
    pthread_create(&t, NULL, fill_slowly, f);
    gate_wait(); /* in the first run */
    struct version after = {.size = 15000, .mtime_ns = 6, .ctime_ns = 6};
    ck_assert(store_flushed(f, &after, change, NULL));
    gate_open();
    pthread_join(t, NULL);
    read_is(f, want, sizeof(want), 0);
    file_put(f);
}
END_TEST

START_TEST(the_snapshot_is_bounded_and_goes_on_where_it_ended)
{
    uint8_t *data = malloc(300000);
    put_pattern(data, 300000, 0, 13);
    struct file *f = new_file(1, "x");
    write_ok(f, data, 300000, 0);
    uint64_t from = 0, n = 0;
    for (bool last = false; !last; n++) {
        struct snapshot *s;
        ck_assert_int_eq(store_snapshot(f, from, 65536, &s), 0);
        ck_assert_uint_eq(s->nextents, 1);
        ck_assert_uint_eq(s->extents[0].off, from);
        ck_assert_uint_le(s->bytes, 65536);
        from += s->extents[0].len;
        last = s->last;
        store_snapshot_done(s, true);
    }
    ck_assert_uint_eq(from, 300000);
    ck_assert_uint_eq(n, 5);
    file_put(f);
    free(data);
}
END_TEST

START_TEST(an_unlinked_file_is_not_flushed_and_leaves_nothing)
{
    uint8_t data[8192];
    put_pattern(data, sizeof(data), 0, 14);
    struct file *f = new_file(1, "x");
    write_ok(f, data, sizeof(data), 0);
    store_set_deleted(f);
    ck_assert(!info_of(f).dirty);
    struct snapshot *s;
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), -ENODATA);
    read_is(f, data, sizeof(data), 0);
    write_ok(f, data, 100, 8192); /* still open somewhere */
    ck_assert(!info_of(f).dirty);
    read_is(f, data, 100, 8192);
    store_clear_claim(f, NULL);
    file_put(f);
    struct store_usage u;
    store_usage(&u);
    ck_assert_uint_eq(u.files, 0);
    ck_assert_uint_eq(u.chunks, 0);
    ck_assert_uint_eq(u.dirty, 0);
    ck_assert_ptr_null(file_find(fid_n(1)));
}
END_TEST

static void write_byte(struct file *f, uint64_t off)
{
    static const char c = 1;
    write_ok(f, &c, 1, off);
}

static struct file *file_of_a_byte(uint64_t n)
{
    struct file *f = new_file(n, "x");
    write_byte(f, 0);
    return f;
}

START_TEST(times_set_by_the_application_last_until_the_next_write)
{
    struct file *f = file_of_a_byte(1);
    store_set_times(f, 1234567890123456789);
    ck_assert_int_eq(info_of(f).mtime_ns, 1234567890123456789);
    struct snapshot *s;
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    ck_assert(s->mtime_set);
    ck_assert_int_eq(s->mtime_ns, 1234567890123456789);
    store_snapshot_done(s, true);
    write_byte(f, 0);
    ck_assert(!info_of(f).mtime_set);
    ck_assert_int_gt(info_of(f).mtime_ns, 1234567890123456789);
    file_put(f);
}
END_TEST

/* Whatever it does to the size and the bytes. */
START_TEST(fallocate_moves_the_times)
{
    struct file *f = new_file(1, "x");
    write_byte(f, 5000);
    for (unsigned i = 0; i < 3; i++) {
        store_set_times(f, 1234567890123456789);
        struct file_info was = info_of(f);
        ck_assert_int_eq(store_allocate(f, i ? 0 : 9000, 100, i == 1), 0); /* longer, kept, inside */
        ck_assert_int_gt(info_of(f).mtime_ns, was.mtime_ns);
        ck_assert_int_gt(info_of(f).ctime_ns, was.ctime_ns);
        ck_assert(!info_of(f).mtime_set);
        ck_assert(info_of(f).dirty);
        ck_assert_uint_eq(info_of(f).size, 9100);
    }
    file_put(f);
}
END_TEST

/* A run that waited looks again before it makes holes on the PFS. */
START_TEST(a_snapshot_tells_which_pages_are_as_they_were)
{
    struct snapshot *s;
    uint64_t off = 0, until;
    static const uint64_t runs[][2] = {{0, 3}, {4, 16}, {17, 39}};
    static uint8_t data[39 * PAGE + 1];
    struct file *f = file_of_a_byte(1);
    write_ok(f, data, sizeof(data), 0);
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    write_ok(f, data, 1, 3 * PAGE + 5);
    write_ok(f, data, PAGE, 16 * PAGE);
    write_ok(f, data, 1, 39 * PAGE);
    for (unsigned i = 0; i < 3; i++, off = until) {
        ck_assert(store_snapshot_next(s, &off, 40 * PAGE, &until));
        ck_assert_uint_eq(off, runs[i][0] * PAGE);
        ck_assert_uint_eq(until, runs[i][1] * PAGE);
    }
    ck_assert(!store_snapshot_next(s, &off, 40 * PAGE, &until));
    off = 5 * PAGE + 1;
    ck_assert(store_snapshot_next(s, &off, 6 * PAGE + 1, &until));
    ck_assert_uint_eq(off, 5 * PAGE + 1);
    ck_assert_uint_eq(until, 6 * PAGE + 1);
    off = 3 * PAGE;
    ck_assert(!store_snapshot_next(s, &off, 4 * PAGE, &until));
    store_snapshot_done(s, false);
    file_put(f);
}
END_TEST

static void flush_as(struct file *f, const struct version *v)
{
    struct snapshot *s;
    uint64_t change = info_of(f).change;
    ck_assert_int_eq(store_flush_begins(f), 0);
    ck_assert_int_eq(info_of(f).stands_ns, INT64_MAX);
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    store_snapshot_done(s, true);
    ck_assert(store_flushed(f, v, change, NULL));
}

static void times_are(struct file *f, int64_t mtime_ns, int64_t ctime_ns)
{
    ck_assert_int_eq(info_of(f).mtime_ns, mtime_ns);
    ck_assert_int_eq(info_of(f).ctime_ns, ctime_ns);
}

START_TEST(a_flush_moves_no_time)
{
    struct file *f = file_of_a_byte(1);
    struct file_info was = info_of(f);
    struct version v = {1, was.mtime_ns / 1000000000 * 1000000000, was.ctime_ns + 77};
    flush_as(f, &v);
    times_are(f, was.mtime_ns, was.ctime_ns);
    ck_assert_int_eq(info_of(f).stands_ns, v.ctime_ns);
    ck_assert(store_clear_claim(f, &v));
    times_are(f, was.mtime_ns, was.ctime_ns);
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0); /* looked at again */
    times_are(f, was.mtime_ns, was.ctime_ns);
    file_put(f);
    store_close(false);
    open_store(64 * MIB, 64 * KIB);
    f = file_find(fid_n(1));
    times_are(f, was.mtime_ns, was.ctime_ns);

    struct version chmod = {1, v.mtime_ns, v.ctime_ns + 1000};
    ck_assert_int_eq(store_set_version(f, &chmod, &v), 0); /* the home says: the same data */
    times_are(f, was.mtime_ns, chmod.ctime_ns);
    struct version other = {1, v.mtime_ns, v.ctime_ns + 2000};
    ck_assert_int_eq(store_set_version(f, &other, NULL), 0);
    times_are(f, other.mtime_ns, other.ctime_ns);
    file_put(f);
}
END_TEST

/* Nothing of it is dirty any more; but if it was, or is changed after that, the PFS never gets that. */
START_TEST(a_removed_file_says_whether_its_bytes_are_only_here)
{
    for (unsigned n = 1; n <= 2; n++) {
        struct file *f = file_of_a_byte(n);
        ck_assert(!info_of(f).only_here);
        struct version v = {1, info_of(f).mtime_ns, info_of(f).ctime_ns + 1};
        if (n == 1)
            flush_as(f, &v);
        store_set_deleted(f);
        ck_assert(!info_of(f).dirty);
        ck_assert_int_eq(info_of(f).only_here, n == 2);
        write_byte(f, 1);
        ck_assert(!info_of(f).dirty && info_of(f).only_here);
        store_set_deleted(f); /* heard again */
        ck_assert(info_of(f).only_here);
        file_put(f);
    }
}
END_TEST

START_TEST(an_attribute_of_a_removed_file_moves_no_mtime_of_what_is_only_here)
{
    struct file *f = file_of_a_byte(1);
    struct version v = {1, info_of(f).mtime_ns, info_of(f).ctime_ns + 1}, chmod = v;
    chmod.ctime_ns++;
    flush_as(f, &v);
    store_set_deleted(f);
    write_byte(f, 1);
    int64_t mtime_ns = info_of(f).mtime_ns;
    ck_assert_int_gt(mtime_ns, v.mtime_ns);
    store_same_data(f, &v, &chmod);
    ck_assert_int_eq(info_of(f).mtime_ns, mtime_ns);
    file_put(f);
}
END_TEST

START_TEST(an_attribute_that_is_set_moves_ctime)
{
    struct file *f = file_of_a_byte(1);
    struct file_info was = info_of(f);
    int64_t later = was.ctime_ns + 5000;
    store_move_ctime(f, was.ctime_ns - 1);
    times_are(f, was.mtime_ns, was.ctime_ns);
    store_move_ctime(f, later);
    times_are(f, was.mtime_ns, later);
    /* a chmod of this node during a run: the PFS's version is not the base */
    ck_assert_int_eq(store_flush_begins(f), 0);
    struct version before = {1, 5, 6}, after = {1, 5, later + 1};
    ck_assert(!store_same_data(f, &before, &after));
    times_are(f, was.mtime_ns, later + 1);
    file_put(f);
}
END_TEST

/* Also if the PFS's clock is ahead of this node's: a cache of before a change is known by its earlier ctime. */
START_TEST(each_change_has_a_later_ctime)
{
    struct file *f = new_file(1, "x");
    int64_t ahead = real_ns() + INT64_C(3600000000000);
    store_move_ctime(f, ahead);
    write_byte(f, 0);
    int64_t written = info_of(f).ctime_ns;
    ck_assert_int_gt(written, ahead);
    store_set_times(f, 5);
    times_are(f, 5, written + 1);
    write_byte(f, 0);
    ck_assert_int_eq(info_of(f).ctime_ns, written + 2);
    file_put(f);
}
END_TEST

START_TEST(times_are_told_as_another_node_told_them)
{
    struct file *f = new_file(1, "x");
    struct version v = {10, 100, 200}, v2 = {10, 100, 300};
    struct told told = {90, 80}, again = {70, 60};
    ck_assert(store_clear_claim(f, NULL));
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
    store_tell(f, &v2, &told);
    times_are(f, 100, 200);
    store_tell(f, &v, &told);
    times_are(f, 90, 80);
    store_tell(f, &v, &again); /* too late: these were told here */
    times_are(f, 90, 80);
    file_put(f);
}
END_TEST

static unsigned told;
static void hook(struct file *f)
{
    (void)f;
    lock_assert_none();
    told++;
}

START_TEST(flush_is_told_once_when_a_file_becomes_dirty)
{
    told = 0;
    store_on_dirty(hook);
    struct file *f = file_of_a_byte(1);
    write_byte(f, 1);
    ck_assert_uint_eq(told, 1);
    uint8_t pfs[4096];
    uint64_t size = 0;
    struct version v = version_n(0, 3);
    flush_into(f, pfs, &size, &v);
    write_byte(f, 2);
    ck_assert_uint_eq(told, 2);
    store_on_dirty(NULL);
    file_put(f);
}
END_TEST

START_TEST(a_dirty_file_keeps_its_claim)
{
    struct file *f = file_of_a_byte(1);
    ck_assert(!store_clear_claim(f, NULL));
    ck_assert(info_of(f).claimed);
    struct version v = version_n(77, 3);
    ck_assert_int_eq(store_set_version(f, &v, NULL), -EBUSY);
    file_put(f);
}
END_TEST

/* The hash goes to other nodes with the bytes.  how: what makes the file longer. */
static void hash_is_of_the_bytes(uint64_t size, uint64_t longer, void (*how)(struct file *f))
{
    static uint8_t data[64 * KIB], buf[64 * KIB];
    struct file *f = get_file(1, "x");
    struct version v = version_n(size, 3), w = version_n(longer, 9);
    struct snapshot *s;
    uint64_t hash;
    size_t len;
    put_pattern(data, sizeof(data), 0, 1);
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
    ck_assert_int_eq(store_set_claim(f, 1, 1, &v), 0);
    ck_assert_int_eq(fill_chunk(f, 0, &v, data, true), 0);
    how(f);
    ck_assert_uint_eq(info_of(f).size, longer);
    uint64_t change = info_of(f).change;
    ck_assert_int_eq(store_flush_begins(f), 0);
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    store_snapshot_done(s, true);
    ck_assert(store_flushed(f, &w, change, NULL));
    ck_assert(store_clear_claim(f, &w));
    ck_assert_int_eq(store_get_chunk(f, 0, &w, buf, &len, &hash), 0);
    ck_assert_uint_eq(len, MIN(longer, sizeof(buf)));
    ck_assert_uint_eq(hash, XXH3_64bits(buf, len));
    file_put(f);
}

static void cut_longer(struct file *f)
{
    uint64_t fill;
    ck_assert_int_eq(store_truncate(f, 6000, &fill), 0);
}

static void write_behind(struct file *f)
{
    uint8_t page[4096] = {1};
    write_ok(f, page, sizeof(page), 64 * KIB);
}

START_TEST(a_chunk_that_was_made_longer_has_another_hash)
{
    hash_is_of_the_bytes(5000, 6000, cut_longer);
}
END_TEST

START_TEST(a_chunk_behind_which_was_written_has_another_hash)
{
    hash_is_of_the_bytes(64 * KIB - 100, 64 * KIB + 4096, write_behind);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("copy-out");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_page_written_during_its_copy_out_stays_dirty);
    tcase_add_test(t, pages_in_the_middle_of_a_write_are_waited_for);
    tcase_add_test(t, a_truncation_waits_for_the_write_that_it_cuts);
    tcase_add_test(t, a_failed_copy_out_keeps_all_dirty_and_the_cut);
    tcase_add_test(t, a_second_cut_at_the_same_place_is_not_taken_for_the_first);
    tcase_add_test(t, a_flush_that_ends_beside_a_fill_brings_nothing_back_that_was_cut_off);
    tcase_add_test(t, the_snapshot_is_bounded_and_goes_on_where_it_ended);
    tcase_add_test(t, an_unlinked_file_is_not_flushed_and_leaves_nothing);
    tcase_add_test(t, times_set_by_the_application_last_until_the_next_write);
    tcase_add_test(t, a_snapshot_tells_which_pages_are_as_they_were);
    tcase_add_test(t, a_flush_moves_no_time);
    tcase_add_test(t, fallocate_moves_the_times);
    tcase_add_test(t, a_removed_file_says_whether_its_bytes_are_only_here);
    tcase_add_test(t, an_attribute_of_a_removed_file_moves_no_mtime_of_what_is_only_here);
    tcase_add_test(t, an_attribute_that_is_set_moves_ctime);
    tcase_add_test(t, each_change_has_a_later_ctime);
    tcase_add_test(t, times_are_told_as_another_node_told_them);
    tcase_add_test(t, flush_is_told_once_when_a_file_becomes_dirty);
    tcase_add_test(t, a_dirty_file_keeps_its_claim);
    tcase_add_test(t, a_chunk_that_was_made_longer_has_another_hash);
    tcase_add_test(t, a_chunk_behind_which_was_written_has_another_hash);
    return run_case("store_copyout", t);
}
