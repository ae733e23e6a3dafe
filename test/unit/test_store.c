/* test_store.c - the store's page semantics, one behaviour per test. */
#include "store_help.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/file.h>
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

static void setup(void)
{
    dir_setup();
    open_store(64 * MIB, 64 * KIB);
}

static void teardown(void)
{
    store_close(false);
    dir_teardown();
}

static struct file_info info_of(struct file *f)
{
    struct file_info i;
    store_info(f, &i);
    return i;
}

/* The whole file as the flush would copy it, with the cut done; frees nothing of the model. Returns
 * the size. */
static uint64_t flush_into(struct file *f, uint8_t *pfs, uint64_t *pfs_size, struct version *v)
{
    uint64_t change = info_of(f).change, from = 0;
    store_flush_begins(f);
    for (bool last = false; !last;) {
        struct snapshot *s;
        int err = store_snapshot(f, from, MIB, &s);
        if (err == -ENODATA)
            break;
        ck_assert_int_eq(err, 0);
        if (s->cut != NO_CUT && s->cut < *pfs_size) {
            memset(pfs + s->cut, 0, *pfs_size - s->cut);
            *pfs_size = s->cut;
        }
        for (size_t i = 0; i < s->nruns; i++) {
            struct run *r = &s->runs[i];
            if (r->hole)
                memset(pfs + r->off, 0, r->len);
            else
                ck_assert_int_eq(store_pread(f, pfs + r->off, r->len, r->off), 0);
            *pfs_size = MAX(*pfs_size, r->off + r->len);
            from = r->off + r->len;
        }
        *pfs_size = MAX(*pfs_size, s->size);
        last = s->last || !s->nruns;
        store_snapshot_done(s, true);
    }
    v->size = *pfs_size;
    v->mtime_ns += 7;
    v->ctime_ns += 9;
    ck_assert(store_flushed(f, v, change));
    return *pfs_size;
}

/* ---- reading and filling ---- */

START_TEST(a_filled_chunk_is_read_back_and_the_rest_is_missing)
{
    uint8_t *data = malloc(200000);
    put_pattern(data, 200000, 0, 1);
    struct file *f = get_file(1, "a/b");
    struct version v = version_n(200000, 5);
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
    uint64_t off, len;
    ck_assert(store_missing(f, 10, 300000, &off, &len));
    ck_assert_uint_eq(off, 10);
    ck_assert_uint_eq(len, 200000 - 10);
    ck_assert_uint_eq(store_pin(f, 0, 100), 0);
    ck_assert_int_eq(fill_chunk(f, 1, &v, data, true), 0);
    read_is(f, data + 65536, 65536, 65536);
    ck_assert(store_missing(f, 65536, 200000, &off, &len));
    ck_assert_uint_eq(off, 131072);
    ck_assert(!store_missing(f, 70000, 1000, &off, &len));
    ck_assert_int_eq(fill_chunk(f, 3, &v, data, true), 0); /* the short one */
    read_is(f, data + 196608, 200000 - 196608, 196608);
    file_put(f);
    free(data);
}
END_TEST

START_TEST(a_chunk_for_another_node_has_its_hash_and_only_its_version)
{
    uint8_t data[70000], buf[65536];
    put_pattern(data, sizeof(data), 0, 2);
    struct file *f = get_file(1, "x");
    struct version v = version_n(sizeof(data), 5), other = version_n(sizeof(data), 6);
    size_t len;
    uint64_t hash;
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
    ck_assert_int_eq(store_get_chunk(f, 0, &v, buf, &len, &hash), -ENOENT);
    ck_assert_int_eq(fill_chunk(f, 0, &v, data, true), 0);
    ck_assert_int_eq(fill_chunk(f, 1, &v, data, false), 0);
    ck_assert_int_eq(store_get_chunk(f, 1, &v, buf, &len, &hash), 0);
    ck_assert_uint_eq(len, 70000 - 65536);
    ck_assert_mem_eq(buf, data + 65536, len);
    ck_assert(hash == XXH3_64bits(buf, len));
    ck_assert_int_eq(store_get_chunk(f, 0, &other, buf, &len, &hash), -ENOENT);
    ck_assert_int_eq(store_get_chunk(f, 2, &v, buf, &len, &hash), -ENOENT);
    ck_assert_int_eq(store_get_chunk(f, UINT64_MAX, &v, buf, &len, &hash), -ENOENT);
    ck_assert_int_eq(fill_chunk(f, 0, &other, data, true), -ESTALE);
    uint8_t one = 7;
    write_ok(f, &one, 1, 5); /* dirty: not for others */
    ck_assert_int_eq(store_get_chunk(f, 0, &v, buf, &len, &hash), -ENOENT);
    file_put(f);
}
END_TEST

START_TEST(a_new_version_drops_clean_pages_and_same_data_keeps_them)
{
    uint8_t data[10000];
    put_pattern(data, sizeof(data), 0, 3);
    struct file *f = get_file(1, "x");
    struct version v = version_n(sizeof(data), 5), w = version_n(sizeof(data), 6),
                   x = version_n(500, 7);
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
    ck_assert_int_eq(fill_chunk(f, 0, &v, data, true), 0);
    ck_assert_int_eq(store_set_version(f, &w, &v), 0); /* chmod: same data */
    read_is(f, data, sizeof(data), 0);
    struct file_info now = info_of(f);
    ck_assert(version_eq(&now.base, &w));
    uint64_t stale = counted(stale_bytes);
    ck_assert_int_eq(store_set_version(f, &x, NULL), 0);
    ck_assert_uint_eq(counted(stale_bytes) - stale, 12288);
    ck_assert_uint_eq(info_of(f).size, 500);
    ck_assert_uint_eq(store_pin(f, 0, 10), 0);
    file_put(f);
}
END_TEST

START_TEST(racy_pages_are_dropped_when_the_version_is_confirmed)
{
    uint8_t data[5000];
    put_pattern(data, sizeof(data), 0, 3);
    struct file *f = get_file(1, "x");
    struct version v = version_n(sizeof(data), 5);
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
    ck_assert_int_eq(store_fill(f, 0, &v, data, sizeof(data), 0, true, true), 0);
    ck_assert(info_of(f).racy);
    read_is(f, data, sizeof(data), 0);
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
    ck_assert(!info_of(f).racy);
    ck_assert_uint_eq(store_pin(f, 0, 1), 0);
    file_put(f);
}
END_TEST

START_TEST(a_short_fill_is_refused)
{
    uint8_t data[5000] = {1};
    struct file *f = get_file(1, "x");
    struct version v = version_n(5000, 5);
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
    ck_assert_int_eq(store_fill(f, 0, &v, data, 4999, 0, true, false), -ESTALE);
    ck_assert_int_eq(store_fill(f, 1, &v, data, 10, 0, true, false), -ESTALE);
    ck_assert_int_eq(store_fill(f, UINT64_MAX, &v, data, 10, 0, true, false), -EINVAL);
    ck_assert_uint_eq(store_pin(f, 0, 1), 0);
    file_put(f);
}
END_TEST

/* ---- writing ---- */

START_TEST(one_byte_into_an_uncached_file_asks_for_its_page_first)
{
    uint8_t data[1000], one = 'x';
    put_pattern(data, sizeof(data), 0, 4);
    struct file *f = get_file(1, "x");
    struct version v = version_n(sizeof(data), 5);
    store_set_claim(f, 1, 1, &v);
    uint64_t fill = 99;
    ck_assert_int_eq(store_write(f, &one, 1, 100, &fill), -ENODATA);
    ck_assert_uint_eq(fill, 0);
    ck_assert(!info_of(f).dirty);
    ck_assert_int_eq(fill_chunk(f, 0, &v, data, false), 0);
    write_ok(f, &one, 1, 100);
    data[100] = 'x';
    read_is(f, data, sizeof(data), 0);
    ck_assert_uint_eq(info_of(f).size, 1000);
    ck_assert(info_of(f).dirty);
    uint8_t pfs[8192];
    uint64_t pfs_size = 1000;
    memset(pfs, 0, sizeof(pfs));
    struct version w = v;
    flush_into(f, pfs, &pfs_size, &w);
    ck_assert_uint_eq(pfs_size, 1000);
    ck_assert_mem_eq(pfs, data, 1000);
    ck_assert(!info_of(f).dirty);
    file_put(f);
}
END_TEST

START_TEST(a_write_over_all_of_a_page_s_base_bytes_needs_no_fill)
{
    uint8_t data[5000], want[9000];
    put_pattern(data, sizeof(data), 0, 4);
    struct file *f = get_file(1, "x");
    struct version v = version_n(4500, 5);
    store_set_claim(f, 1, 1, &v);
    write_ok(f, data, 404, 4096); /* page 1 has base bytes 4096..4499 */
    ck_assert_uint_eq(info_of(f).size, 4500);
    uint64_t fill;
    ck_assert_int_eq(store_write(f, data, 403, 4096, &fill), 0); /* it is valid now */
    uint64_t off, len;
    ck_assert(store_missing(f, 0, 9000, &off, &len));
    ck_assert_uint_eq(off, 0);
    ck_assert_uint_eq(len, 4096);
    memset(want, 0, sizeof(want));
    memcpy(want + 4096, data, 404);
    read_is(f, want + 4096, 404, 4096);
    file_put(f);
}
END_TEST

START_TEST(a_gap_beyond_the_old_end_reads_as_zeros_and_stays_a_hole)
{
    uint8_t data[100], want[300000];
    put_pattern(data, sizeof(data), 0, 5);
    memset(want, 0, sizeof(want));
    struct file *f = new_file(1, "x");
    write_ok(f, data, 100, 10);
    write_ok(f, data, 100, 250000);
    memcpy(want + 10, data, 100);
    memcpy(want + 250000, data, 100);
    ck_assert_uint_eq(info_of(f).size, 250100);
    read_is(f, want, 250100, 0);
    ck_assert_uint_eq(info_of(f).blocks, 16);
    uint64_t at;
    ck_assert_int_eq(store_seek(f, 0, true, &at), 0);
    ck_assert_uint_eq(at, 4096);
    ck_assert_int_eq(store_seek(f, 4096, false, &at), 0);
    ck_assert_uint_eq(at, 249856);
    ck_assert_int_eq(store_seek(f, 250000, true, &at), 0);
    ck_assert_uint_eq(at, 250100);
    ck_assert_int_eq(store_seek(f, 250100, false, &at), -ENXIO);
    file_put(f);
}
END_TEST

START_TEST(append_goes_to_the_end_and_says_where)
{
    uint8_t data[5000];
    put_pattern(data, sizeof(data), 0, 6);
    struct file *f = new_file(1, "log");
    uint64_t off, fill;
    for (unsigned i = 0; i < 10; i++) {
        ck_assert_int_eq(store_append(f, data + i * 500, 500, &off, &fill), 0);
        ck_assert_uint_eq(off, i * 500);
    }
    read_is(f, data, 5000, 0);
    file_put(f);
}
END_TEST

START_TEST(truncate_cuts_zeroes_the_tail_and_the_pfs_is_cut_first)
{
    uint8_t data[20000], want[20000], pfs[40000];
    put_pattern(data, sizeof(data), 0, 7);
    struct file *f = get_file(1, "x");
    struct version v = version_n(sizeof(data), 5);
    store_set_claim(f, 1, 1, &v);
    ck_assert_int_eq(fill_chunk(f, 0, &v, data, false), 0);
    uint64_t fill;
    ck_assert_int_eq(store_truncate(f, 5000, &fill), 0);
    ck_assert_uint_eq(info_of(f).cut, 5000);
    ck_assert_uint_eq(info_of(f).base_end, 5000);
    ck_assert_int_eq(store_truncate(f, 15000, &fill), 0);
    ck_assert_uint_eq(info_of(f).size, 15000);
    memset(want, 0, sizeof(want));
    memcpy(want, data, 5000);
    read_is(f, want, 15000, 0);
    memcpy(pfs, data, sizeof(data));
    memset(pfs + 20000, 0, 20000);
    uint64_t pfs_size = 20000;
    flush_into(f, pfs, &pfs_size, &v);
    ck_assert_uint_eq(pfs_size, 15000);
    ck_assert_mem_eq(pfs, want, 15000);
    ck_assert_uint_eq(info_of(f).cut, NO_CUT);
    file_put(f);
}
END_TEST

START_TEST(truncate_of_an_uncached_file_needs_no_bytes)
{
    uint8_t data[20000], want[8000];
    put_pattern(data, sizeof(data), 0, 8);
    struct file *f = get_file(1, "x");
    struct version v = version_n(sizeof(data), 5);
    store_set_claim(f, 1, 1, &v);
    uint64_t fill, off, len;
    ck_assert_int_eq(store_truncate(f, 5000, &fill), 0);
    ck_assert_int_eq(store_truncate(f, 8000, &fill), 0);
    ck_assert(store_missing(f, 0, 8000, &off, &len));
    ck_assert_uint_eq(off, 0);
    ck_assert_uint_eq(len, 5000);
    ck_assert_int_eq(fill_chunk(f, 0, &v, data, false), 0); /* the PFS still has the old bytes */
    memset(want, 0, sizeof(want));
    memcpy(want, data, 5000);
    read_is(f, want, 8000, 0);
    file_put(f);
}
END_TEST

START_TEST(punch_makes_zeros_that_reach_the_pfs_as_a_hole)
{
    uint8_t data[100000], pfs[100000];
    put_pattern(data, sizeof(data), 0, 9);
    struct file *f = get_file(1, "x");
    struct version v = version_n(sizeof(data), 5);
    store_set_claim(f, 1, 1, &v);
    uint64_t fill = 1;
    ck_assert_int_eq(store_punch(f, 5000, 80000, &fill), -ENODATA);
    ck_assert_uint_eq(fill, 4096);
    ck_assert_int_eq(fill_chunk(f, 0, &v, data, false), 0);
    ck_assert_int_eq(store_punch(f, 5000, 80000, &fill), -ENODATA);
    ck_assert_uint_eq(fill, 81920);
    ck_assert_int_eq(fill_chunk(f, 1, &v, data, false), 0);
    uint64_t blocks = info_of(f).blocks;
    ck_assert_int_eq(store_punch(f, 5000, 80000, &fill), 0);
    ck_assert_uint_eq(info_of(f).blocks, blocks - 18 * 8);
    memcpy(pfs, data, sizeof(data));
    memset(data + 5000, 0, 80000);
    read_is(f, data, sizeof(data), 0);
    uint64_t at;
    ck_assert_int_eq(store_seek(f, 0, true, &at), 0);
    ck_assert_uint_eq(at, 8192);
    ck_assert_int_eq(store_seek(f, 8192, false, &at), 0);
    ck_assert_uint_eq(at, 81920);
    struct snapshot *s;
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    ck_assert_uint_eq(s->nruns, 3);
    ck_assert(!s->runs[0].hole && s->runs[1].hole && !s->runs[2].hole);
    ck_assert_uint_eq(s->runs[1].off, 8192);
    ck_assert_uint_eq(s->runs[1].len, 81920 - 8192);
    store_snapshot_done(s, false);
    uint64_t pfs_size = sizeof(pfs);
    flush_into(f, pfs, &pfs_size, &v);
    ck_assert_mem_eq(pfs, data, sizeof(data));
    file_put(f);
}
END_TEST

START_TEST(a_punch_over_a_hole_makes_nothing_dirty)
{
    struct file *f = new_file(1, "x");
    uint64_t fill;
    ck_assert_int_eq(store_truncate(f, UINT64_C(1) << 50, &fill),
                     0); /* 1 PiB of nothing, at once */
    ck_assert_int_eq(store_punch(f, 0, UINT64_C(1) << 50, &fill), 0);
    ck_assert_uint_eq(info_of(f).dirty_bytes, 0);
    uint64_t at;
    ck_assert_int_eq(store_seek(f, 0, false, &at), -ENXIO);
    ck_assert_int_eq(store_seek(f, 0, true, &at), 0);
    ck_assert_uint_eq(at, 0);
    file_put(f);
}
END_TEST

START_TEST(offsets_out_of_range_are_refused)
{
    struct file *f = new_file(1, "x");
    uint64_t fill;
    char c = 1;
    ck_assert_int_eq(store_write(f, &c, 1, INT64_MAX, &fill), -EFBIG);
    ck_assert_int_eq(store_write(f, &c, 1, UINT64_MAX, &fill), -EFBIG);
    ck_assert_int_eq(store_truncate(f, UINT64_C(1) << 63, &fill), -EFBIG);
    ck_assert_int_eq(store_allocate(f, INT64_MAX, 2, false), -EFBIG);
    ck_assert_int_eq(store_punch(f, UINT64_MAX - 1, UINT64_MAX, &fill), 0);
    ck_assert_uint_eq(store_pin(f, UINT64_MAX - 1, 10), 0);
    ck_assert_uint_eq(info_of(f).size, 0);
    file_put(f);
}
END_TEST

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
    ck_assert_uint_eq(t->nruns, 0);
    ck_assert(!t->last);
    store_snapshot_done(t, true);
    store_snapshot_done(s, true);
    ck_assert_uint_eq(info_of(f).dirty_bytes, 4096);
    struct version v = version_n(12288, 9);
    ck_assert(!store_flushed(f, &v, change));
    ck_assert(info_of(f).dirty);
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    ck_assert_uint_eq(s->nruns, 1);
    ck_assert_uint_eq(s->runs[0].off, 4096);
    store_snapshot_done(s, true);
    ck_assert(store_flushed(f, &v, info_of(f).change));
    ck_assert(!info_of(f).dirty);
    file_put(f);
}
END_TEST

START_TEST(pages_in_the_middle_of_a_write_are_not_copied_out)
{
    uint8_t data[16384], more[8192];
    put_pattern(data, sizeof(data), 0, 10);
    put_pattern(more, sizeof(more), 4096, 99);
    struct file *f = new_file(1, "x");
    write_ok(f, data, sizeof(data), 0);
    struct slow_write w = {f, more, sizeof(more), 4096};
    pthread_t t;
    gate_close();
    pthread_create(&t, NULL, write_slowly, &w);
    gate_wait();
    struct snapshot *s;
    uint64_t change = info_of(f).change;
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    ck_assert(!s->last);
    ck_assert_uint_eq(s->nruns, 2);
    ck_assert_uint_eq(s->runs[0].off + s->runs[0].len, 4096);
    ck_assert_uint_eq(s->runs[1].off, 12288);
    store_snapshot_done(s, true);
    struct version v = version_n(16384, 9);
    ck_assert(!store_flushed(f, &v, change)); /* it came before the write was done: not clean */
    gate_open();
    pthread_join(t, NULL);
    ck_assert_uint_eq(info_of(f).dirty_bytes, 8192);
    memcpy(data + 4096, more, sizeof(more));
    read_is(f, data, sizeof(data), 0);
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
    ck_assert_uint_eq(store_pin(f, 0, 3), 3); /* a reader does not wait for the write */
    store_unpin(f, 0, 3);
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

START_TEST(a_failed_copy_out_keeps_all_dirty_and_the_cut)
{
    uint8_t data[8192];
    put_pattern(data, sizeof(data), 0, 11);
    struct file *f = get_file(1, "x");
    struct version v = version_n(50000, 5);
    store_set_claim(f, 1, 1, &v);
    uint64_t fill;
    ck_assert_int_eq(store_truncate(f, 0, &fill), 0);
    write_ok(f, data, sizeof(data), 0);
    struct snapshot *s;
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    ck_assert_uint_eq(s->cut, 0);
    store_snapshot_done(s, false);
    ck_assert_uint_eq(info_of(f).cut, 0);
    ck_assert_uint_eq(info_of(f).dirty_bytes, 8192);
    file_put(f);
}
END_TEST

START_TEST(a_second_cut_at_the_same_place_is_not_taken_for_the_first)
{
    uint8_t data[20000];
    put_pattern(data, sizeof(data), 0, 12);
    struct file *f = get_file(1, "x");
    struct version v = version_n(50000, 5);
    store_set_claim(f, 1, 1, &v);
    uint64_t fill;
    ck_assert_int_eq(store_truncate(f, 4096, &fill), 0);
    write_ok(f, data, sizeof(data), 4096);
    struct snapshot *s;
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    ck_assert_int_eq(store_truncate(f, 4096, &fill), 0); /* the PFS gets s's pages after its cut */
    store_snapshot_done(s, true);
    ck_assert_uint_eq(info_of(f).cut, 4096);
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
        ck_assert_uint_eq(s->nruns, 1);
        ck_assert_uint_eq(s->runs[0].off, from);
        ck_assert_uint_le(s->bytes, 65536);
        from += s->runs[0].len;
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

START_TEST(times_set_by_the_application_last_until_the_next_write)
{
    struct file *f = new_file(1, "x");
    char c = 1;
    write_ok(f, &c, 1, 0);
    store_set_times(f, 1234567890123456789);
    ck_assert_int_eq(info_of(f).mtime_ns, 1234567890123456789);
    struct snapshot *s;
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    ck_assert(s->mtime_set);
    ck_assert_int_eq(s->mtime_ns, 1234567890123456789);
    store_snapshot_done(s, true);
    write_ok(f, &c, 1, 0);
    ck_assert(!info_of(f).mtime_set);
    ck_assert_int_gt(info_of(f).mtime_ns, 1234567890123456789);
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
    struct file *f = new_file(1, "x");
    char c = 1;
    write_ok(f, &c, 1, 0);
    write_ok(f, &c, 1, 1);
    ck_assert_uint_eq(told, 1);
    uint8_t pfs[4096];
    uint64_t size = 0;
    struct version v = version_n(0, 3);
    flush_into(f, pfs, &size, &v);
    write_ok(f, &c, 1, 2);
    ck_assert_uint_eq(told, 2);
    store_on_dirty(NULL);
    file_put(f);
}
END_TEST

START_TEST(a_dirty_file_keeps_its_claim)
{
    struct file *f = new_file(1, "x");
    char c = 1;
    write_ok(f, &c, 1, 0);
    ck_assert(!store_clear_claim(f, NULL));
    ck_assert(info_of(f).claimed);
    struct version v = version_n(77, 3);
    ck_assert_int_eq(store_set_version(f, &v, NULL), -EBUSY);
    file_put(f);
}
END_TEST

/* ---- the directory ---- */

START_TEST(the_identity_stays_and_the_incarnation_grows)
{
    uint64_t id = store_node_id(), inc = store_incarnation();
    store_close(false);
    open_store(64 * MIB, 64 * KIB);
    ck_assert(id && store_node_id() == id);
    ck_assert_uint_eq(store_incarnation(), inc + 1);
}
END_TEST

START_TEST(a_directory_in_use_is_refused_with_the_pid)
{
    char err[512], pid[32], lock[128];
    store_close(false);
    snprintf(lock, sizeof(lock), "%s/lock", cache_dir);
    int fd = open(lock, O_RDWR);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    ck_assert_int_eq(try_open(64 * MIB, 64 * KIB, err, sizeof(err)), -EBUSY);
    snprintf(pid, sizeof(pid), "pid %d", (int)getpid());
    ck_assert_ptr_nonnull(strstr(err, pid));
    ck_assert_ptr_nonnull(strstr(err, "--cache-dir"));
    close(fd);
    open_store(64 * MIB, 64 * KIB);
}
END_TEST

static void refused(int want, const char *words)
{
    char err[512];
    int e = try_open(64 * MIB, 64 * KIB, err, sizeof(err));
    ck_assert_msg(e == want, "is %d (%s), should be %d", e, err, want);
    ck_assert_msg(strstr(err, words) != NULL, "\"%s\" does not say \"%s\"", err, words);
}

static void put_file(const char *name, const char *text)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/%s", cache_dir, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

START_TEST(directories_that_are_not_ours_are_refused)
{
    char other[100];
    store_close(true);
    put_file("format", "eddyfs-cache 99\nchunk 65536\n");
    refused(-EINVAL, "format 99");
    put_file("format", "something\n");
    refused(-EINVAL, "not eddyfs's");
    put_file("format", "eddyfs-cache 1\nchunk 12345\n");
    refused(-EINVAL, "damaged");
    remove_tree(cache_dir);
    ck_assert_int_eq(mkdir(cache_dir, 0700), 0);
    put_file("precious", "data");
    refused(-EEXIST, "not an eddyfs cache directory");
    remove_tree(cache_dir);
    ck_assert_int_eq(mkdir(cache_dir, 0700), 0);
    ck_assert_int_eq(chmod(cache_dir, 0770), 0);
    refused(-EPERM, "chmod 700");
    remove_tree(cache_dir);
    snprintf(other, sizeof(other), "%s/other", test_dir);
    ck_assert_int_eq(mkdir(other, 0700), 0);
    ck_assert_int_eq(symlink(other, cache_dir), 0);
    refused(-ENOTDIR, "link");
    ck_assert_int_eq(unlink(cache_dir), 0);
}
END_TEST

START_TEST(another_chunk_size_empties_a_clean_cache_and_refuses_a_dirty_one)
{
    uint8_t data[5000];
    char err[512];
    put_pattern(data, sizeof(data), 0, 3);
    struct file *f = get_file(1, "x");
    struct version v = version_n(sizeof(data), 5);
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
    ck_assert_int_eq(fill_chunk(f, 0, &v, data, true), 0);
    file_put(f);
    store_close(true);
    open_store(64 * MIB, 128 * KIB);
    ck_assert_uint_eq(store_chunk_size(), 128 * KIB);
    ck_assert_ptr_null(file_find(fid_n(1)));
    f = new_file(2, "y");
    write_ok(f, data, sizeof(data), 0);
    file_put(f);
    store_close(false);
    ck_assert_int_eq(try_open(64 * MIB, 64 * KIB, err, sizeof(err)), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err, "--chunk-size 131072"));
    open_store(64 * MIB, 128 * KIB);
    f = file_find(fid_n(2));
    ck_assert_ptr_nonnull(f);
    read_is(f, data, sizeof(data), 0);
    file_put(f);
}
END_TEST

struct seen {
    unsigned n;
    char path[200];
    uint64_t bytes;
    bool suspect;
};
static int see(void *arg, struct fid fid, const char *path, uint64_t bytes, bool suspect)
{
    struct seen *s = arg;
    (void)fid;
    s->n++;
    snprintf(s->path, sizeof(s->path), "%s", path);
    s->bytes = bytes;
    s->suspect = suspect;
    return 0;
}

START_TEST(what_a_dead_daemon_left_is_listed_without_a_daemon)
{
    uint8_t data[5000] = {1};
    struct seen s = {0};
    ck_assert_int_eq(store_each_unflushed(cache_dir, see, &s), -EWOULDBLOCK);
    struct file *f = new_file(2, "dir/a file");
    write_ok(f, data, sizeof(data), 0);
    file_put(f);
    f = get_file(3, "clean");
    file_put(f);
    store_close(false);
    ck_assert_int_eq(store_each_unflushed(cache_dir, see, &s), 0);
    ck_assert_uint_eq(s.n, 1);
    ck_assert_str_eq(s.path, "dir/a file");
    ck_assert_uint_eq(s.bytes, 8192);
    ck_assert(!s.suspect);
    open_store(64 * MIB, 64 * KIB);
}
END_TEST

START_TEST(long_paths_and_renames_survive)
{
    char path[4001];
    for (unsigned i = 0; i < 4000; i++)
        path[i] = i % 100 == 99 ? '/' : (char)('a' + i % 26);
    path[4000] = 0;
    struct file *f = new_file(2, "short");
    char c = 1;
    write_ok(f, &c, 1, 0);
    const char *const names[] = {path, "s", path + 3000, path + 3900, "t", ""};
    for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
        file_set_path(f, names[i]);
        file_put(f);
        store_close(false);
        open_store(64 * MIB, 64 * KIB);
        f = file_find(fid_n(2));
        ck_assert_ptr_nonnull(f);
        char *now = file_path(f);
        ck_assert_str_eq(now, names[i]);
        free(now);
    }
    file_put(f);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("store");
    TCase *t = tcase_create("pages");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_filled_chunk_is_read_back_and_the_rest_is_missing);
    tcase_add_test(t, a_chunk_for_another_node_has_its_hash_and_only_its_version);
    tcase_add_test(t, a_new_version_drops_clean_pages_and_same_data_keeps_them);
    tcase_add_test(t, racy_pages_are_dropped_when_the_version_is_confirmed);
    tcase_add_test(t, a_short_fill_is_refused);
    tcase_add_test(t, one_byte_into_an_uncached_file_asks_for_its_page_first);
    tcase_add_test(t, a_write_over_all_of_a_page_s_base_bytes_needs_no_fill);
    tcase_add_test(t, a_gap_beyond_the_old_end_reads_as_zeros_and_stays_a_hole);
    tcase_add_test(t, append_goes_to_the_end_and_says_where);
    tcase_add_test(t, truncate_cuts_zeroes_the_tail_and_the_pfs_is_cut_first);
    tcase_add_test(t, truncate_of_an_uncached_file_needs_no_bytes);
    tcase_add_test(t, punch_makes_zeros_that_reach_the_pfs_as_a_hole);
    tcase_add_test(t, a_punch_over_a_hole_makes_nothing_dirty);
    tcase_add_test(t, offsets_out_of_range_are_refused);
    tcase_add_test(t, a_page_written_during_its_copy_out_stays_dirty);
    tcase_add_test(t, pages_in_the_middle_of_a_write_are_not_copied_out);
    tcase_add_test(t, a_truncation_waits_for_the_write_that_it_cuts);
    tcase_add_test(t, a_failed_copy_out_keeps_all_dirty_and_the_cut);
    tcase_add_test(t, a_second_cut_at_the_same_place_is_not_taken_for_the_first);
    tcase_add_test(t, the_snapshot_is_bounded_and_goes_on_where_it_ended);
    tcase_add_test(t, an_unlinked_file_is_not_flushed_and_leaves_nothing);
    tcase_add_test(t, times_set_by_the_application_last_until_the_next_write);
    tcase_add_test(t, flush_is_told_once_when_a_file_becomes_dirty);
    tcase_add_test(t, a_dirty_file_keeps_its_claim);
    suite_add_tcase(s, t);
    t = tcase_create("directory");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, the_identity_stays_and_the_incarnation_grows);
    tcase_add_test(t, a_directory_in_use_is_refused_with_the_pid);
    tcase_add_test(t, directories_that_are_not_ours_are_refused);
    tcase_add_test(t, another_chunk_size_empties_a_clean_cache_and_refuses_a_dirty_one);
    tcase_add_test(t, what_a_dead_daemon_left_is_listed_without_a_daemon);
    tcase_add_test(t, long_paths_and_renames_survive);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    SRunner *r = srunner_create(suite());
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
