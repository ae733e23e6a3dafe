/* test_store.c - the store's page semantics, one behaviour per test: filling, reading, writing. */
#include "store_pages.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "placement/store/datafile.h"
#include "placement/store/range.h"
#include "placement/store/store_copyout.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"
#include "placement/store/store_write.h"

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
    ck_assert_uint_eq(here(f, 0, 100), 0);
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

START_TEST(a_read_begins_with_what_is_here_and_tells_where_the_file_ends)
{
    uint8_t *data = malloc(200000), *view, got[PAGE];
    struct store_hit hit;
    put_pattern(data, 200000, 0, 1);
    struct file *f = get_file(1, "x");
    struct version v = version_n(200000, 5);
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
    ck_assert_uint_eq(store_read_begin(f, 65536, 10, &hit), 0);
    for (unsigned i = 2; i < 4; i++) {
        size_t len = i == 3 ? 200000 - 3 * 65536 : 65536;
        struct clean_chunk c = {.index = i, .version = v, .buf = data + i * 65536, .len = len};
        ck_assert_int_eq(store_fill(f, &c), 0);
    }
    ck_assert_uint_eq(store_read_begin(f, 65536, 200000, &hit), 0);
    ck_assert_uint_eq(store_read_begin(f, 2 * 65536 + 7, PAGE, &hit), PAGE);
    ck_assert(!hit.ends);
    ck_assert(version_eq(&hit.base, &v));
    ck_assert_int_eq(store_read_copy(&hit, got), 0);
    ck_assert_mem_eq(got, data + 2 * 65536 + 7, PAGE);
    store_read_end(&hit);
    ck_assert_uint_eq(store_read_begin(f, 2 * 65536, 200000, &hit), 200000 - 2 * 65536);
    ck_assert(hit.ends);
    view = store_read_view(&hit);
    ck_assert_mem_eq(view, data + 2 * 65536, hit.len);
    store_unview(view, hit.len);
    store_read_end(&hit);
    ck_assert_ptr_null(f->ops);
    ck_assert_uint_eq(store_read_begin(f, 200000, 1, &hit), 0);
    file_put(f);
    free(data);
}
END_TEST

static void *cut_it(void *arg)
{
    uint64_t fill;
    ck_assert_int_eq(store_truncate(arg, 5000, &fill), 0);
    return NULL;
}

static struct store_hit late;

static void *read_late(void *arg)
{
    store_read_begin(arg, 0, 3 * PAGE, &late);
    return NULL;
}

/* Until so many work on it, or wait. */
static void wait_for_ops(struct file *f, unsigned n)
{
    for (unsigned ops = 0; ops < n; sched_yield()) {
        lock_take(&f->lock);
        ops = 0;
        for (const struct range_op *o = f->ops; o; o = o->next)
            ops++;
        lock_drop(&f->lock);
    }
}

START_TEST(a_read_that_waited_for_a_truncation_has_what_that_left)
{
    uint8_t data[3 * PAGE], got[3 * PAGE];
    struct store_hit first;
    pthread_t cutter, reader;
    put_pattern(data, sizeof(data), 0, 3);
    struct file *f = new_file(1, "x");
    write_ok(f, data, sizeof(data), 0);
    ck_assert_uint_eq(store_read_begin(f, 0, 3 * PAGE, &first), 3 * PAGE);
    ck_assert_int_eq(pthread_create(&cutter, NULL, cut_it, f), 0);
    wait_for_ops(f, 2);
    ck_assert_int_eq(pthread_create(&reader, NULL, read_late, f), 0);
    wait_for_ops(f, 3);
    ck_assert_int_eq(store_read_copy(&first, got), 0); /* all of it, as long as it lasts */
    ck_assert_mem_eq(got, data, 3 * PAGE);
    store_read_end(&first);
    pthread_join(cutter, NULL);
    pthread_join(reader, NULL);
    ck_assert_uint_eq(late.len, 5000);
    ck_assert(late.ends);
    ck_assert_int_eq(store_read_copy(&late, got), 0);
    ck_assert_mem_eq(got, data, 5000);
    store_read_end(&late);
    file_put(f);
}
END_TEST

/* What a flush and a large read hand on without a copy. */
START_TEST(a_view_is_what_is_stored_and_no_longer_than_the_data_file)
{
    size_t len = 3 * 65536;
    uint8_t *data = malloc(len), one = 0;
    put_pattern(data, len, 0, 3);
    struct file *f = new_file(1, "x");
    write_ok(f, data, len, 0);
    uint8_t *view = store_view(f, 2 * 65536, 65536);
    ck_assert_ptr_nonnull(view);
    ck_assert_mem_eq(view, data + 65536, 2 * 65536);
    one = (uint8_t)~data[70000];
    write_ok(f, &one, 1, 70000);
    ck_assert_uint_eq(view[70000 - 65536], one);
    ck_assert_ptr_null(store_view(f, 3 * 65536, 65536));
    ck_assert_int_eq(datafile_truncate(f, 0), 0); /* below it: a system call is told, not killed */
    int fd = memfd_create("to", MFD_CLOEXEC);
    errno = 0;
    ck_assert(pwrite(fd, view, 2 * 65536, 0) < 0 && errno == EFAULT);
    close(fd);
    store_unview(view, 2 * 65536);
    file_put(f);
    free(data);
}
END_TEST

/* ---- chunks for who may not wait ---- */

static struct {
    struct file *f;
    struct version v;
    uint8_t data[70000], buf[65536];
} now;

static int get_now(uint64_t index, const struct version *v)
{
    size_t len;
    uint64_t hash;
    int err = store_get_chunk_now(now.f, index, v, now.buf, &len, &hash);
    if (!err) {
        ck_assert_uint_eq(len, MIN(sizeof(now.data) - index * 65536, 65536));
        ck_assert_mem_eq(now.buf, now.data + index * 65536, len);
        ck_assert(hash == XXH3_64bits(now.buf, len));
    }
    return err;
}

static void *get_now_in_thread(void *err)
{
    *(int *)err = get_now(0, &now.v);
    return NULL;
}

static int get_now_elsewhere(void)
{
    pthread_t t;
    int err = 0;
    pthread_create(&t, NULL, get_now_in_thread, &err);
    pthread_join(t, NULL);
    return err;
}

/* A file system without RWF_NOWAIT gives nothing now. */
static bool can_read_now(void)
{
    char byte;
    struct iovec iov = {&byte, 1};
    char path[128];
    snprintf(path, sizeof(path), "%s/try", test_dir);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    bool can =
        write(fd, "x", 1) == 1 && (preadv2(fd, &iov, 1, 0, RWF_NOWAIT) >= 0 || errno == EAGAIN);
    close(fd);
    return can;
}

static bool now_begin(void)
{
    put_pattern(now.data, sizeof(now.data), 0, 2);
    now.f = get_file(1, "x");
    now.v = version_n(sizeof(now.data), 5);
    ck_assert_int_eq(store_set_version(now.f, &now.v, NULL), 0);
    ck_assert_int_eq(get_now(0, &now.v), -EAGAIN);
    for (uint64_t i = 0; i < 2; i++)
        ck_assert_int_eq(fill_chunk(now.f, i, &now.v, now.data, true), 0);
    return can_read_now();
}

START_TEST(a_chunk_that_is_at_hand_is_given_at_once)
{
    struct version other = version_n(sizeof(now.data), 6);
    if (now_begin()) {
        ck_assert_int_eq(get_now(0, &now.v), 0);
        ck_assert_int_eq(get_now(1, &now.v), 0);
    }
    ck_assert_int_eq(get_now(0, &other), -EAGAIN);
    ck_assert_int_eq(get_now(2, &now.v), -EAGAIN);
    ck_assert_int_eq(get_now(UINT64_MAX, &now.v), -EAGAIN);
    uint8_t one = 7;
    write_ok(now.f, &one, 1, 5); /* dirty: not for others */
    ck_assert_int_eq(get_now(0, &now.v), -EAGAIN);
    file_put(now.f);
}
END_TEST

START_TEST(who_may_not_wait_gets_nothing_of_what_is_being_worked_on)
{
    struct range_op op;
    bool can = now_begin();
    lock_take(&now.f->lock);
    ck_assert_int_eq(get_now_elsewhere(), -EAGAIN); /* for ever, if it waited */
    range_begin(now.f, &op, RANGE_WRITE, 3, 3);
    lock_drop(&now.f->lock);
    ck_assert_int_eq(get_now(0, &now.v), -EAGAIN);
    if (can)
        ck_assert_int_eq(get_now(1, &now.v), 0); /* elsewhere in the file */
    lock_take(&now.f->lock);
    range_end(now.f, &op);
    range_begin(now.f, &op, RANGE_READ, 3, 3);
    lock_drop(&now.f->lock);
    if (can)
        ck_assert_int_eq(get_now(0, &now.v), 0); /* beside another reader */
    lock_take(&now.f->lock);
    range_end(now.f, &op);
    lock_drop(&now.f->lock);
    file_put(now.f);
}
END_TEST

START_TEST(who_may_not_wait_opens_nothing)
{
    size_t len;
    uint64_t hash;
    bool can = now_begin();
    file_put(now.f); /* closes it */
    now.f = get_file(1, "x");
    ck_assert_int_eq(get_now(0, &now.v), -EAGAIN);
    ck_assert_int_eq(store_get_chunk(now.f, 1, &now.v, now.buf, &len, &hash), 0);
    if (can)
        ck_assert_int_eq(get_now(0, &now.v), 0);
    file_put(now.f);
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
    ck_assert_uint_eq(here(f, 0, 10), 0);
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
    struct clean_chunk c = {
        .version = v, .buf = data, .len = sizeof(data), .owned = true, .racy = true};
    ck_assert_int_eq(store_fill(f, &c), 0);
    ck_assert(info_of(f).racy);
    read_is(f, data, sizeof(data), 0);
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
    ck_assert(!info_of(f).racy);
    ck_assert_uint_eq(here(f, 0, 1), 0);
    file_put(f);
}
END_TEST

START_TEST(a_short_fill_is_refused)
{
    uint8_t data[5000] = {1};
    struct file *f = get_file(1, "x");
    struct version v = version_n(5000, 5);
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
    struct clean_chunk c = {.version = v, .buf = data, .len = 4999, .owned = true};
    ck_assert_int_eq(store_fill(f, &c), -ESTALE);
    c.len = 10;
    c.index = 1;
    ck_assert_int_eq(store_fill(f, &c), -ESTALE);
    c.index = UINT64_MAX;
    ck_assert_int_eq(store_fill(f, &c), -EINVAL);
    ck_assert_uint_eq(here(f, 0, 1), 0);
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
    ck_assert_int_eq(store_write(f, &one, 1, 100, SPACE_CACHE, &fill), -ENODATA);
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
    ck_assert_int_eq(store_write(f, data, 403, 4096, SPACE_CACHE, &fill), 0); /* it is valid now */
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
    uint64_t fill;
    struct appended out;
    for (unsigned i = 0; i < 10; i++) {
        ck_assert_int_eq(store_append(f, data + i * 500, 500, SPACE_CACHE, &out, &fill), 0);
        ck_assert_uint_eq(out.len, 500);
        ck_assert_uint_eq(out.off, i * 500);
    }
    read_is(f, data, 5000, 0);
    file_put(f);
}
END_TEST

START_TEST(what_may_only_lie_within_the_file_makes_it_no_longer)
{
    uint8_t data[10000], want[10000];
    put_pattern(data, sizeof(data), 0, 8);
    struct file *f = new_file(1, "mapped");
    uint64_t fill;
    ck_assert_int_eq(store_truncate(f, 6000, &fill), 0);
    ck_assert_int_eq(store_write_within(f, data, 10000, 0, SPACE_CACHE, &fill),
                     0); /* beginning before the end */
    ck_assert_uint_eq(info_of(f).size, 6000);
    read_is(f, data, 6000, 0);
    ck_assert_int_eq(store_write_within(f, data, 4096, 8192, SPACE_CACHE, &fill), 0); /* beyond it */
    ck_assert_uint_eq(info_of(f).size, 6000);
    ck_assert_int_eq(store_truncate(f, 10000, &fill), 0);
    memset(want, 0, sizeof(want));
    memcpy(want, data, 6000);
    read_is(f, want, 10000, 0);
    ck_assert_int_eq(store_truncate(f, 0, &fill), 0);
    ck_assert_int_eq(store_write_within(f, data, 4096, 0, SPACE_CACHE, &fill), 0);
    ck_assert_uint_eq(info_of(f).size, 0);
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
    ck_assert_int_eq(store_punch(f, 5000, 80000, SPACE_CACHE, &fill), -ENODATA);
    ck_assert_uint_eq(fill, 4096);
    ck_assert_int_eq(fill_chunk(f, 0, &v, data, false), 0);
    ck_assert_int_eq(store_punch(f, 5000, 80000, SPACE_CACHE, &fill), -ENODATA);
    ck_assert_uint_eq(fill, 81920);
    ck_assert_int_eq(fill_chunk(f, 1, &v, data, false), 0);
    uint64_t blocks = info_of(f).blocks;
    ck_assert_int_eq(store_punch(f, 5000, 80000, SPACE_CACHE, &fill), 0);
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
    ck_assert_uint_eq(s->nextents, 3);
    ck_assert(!s->extents[0].hole && s->extents[1].hole && !s->extents[2].hole);
    ck_assert_uint_eq(s->extents[1].off, 8192);
    ck_assert_uint_eq(s->extents[1].len, 81920 - 8192);
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
    ck_assert_int_eq(store_punch(f, 0, UINT64_C(1) << 50, SPACE_CACHE, &fill), 0);
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
    ck_assert_int_eq(store_write(f, &c, 1, INT64_MAX, SPACE_CACHE, &fill), -EFBIG);
    ck_assert_int_eq(store_write(f, &c, 1, UINT64_MAX, SPACE_CACHE, &fill), -EFBIG);
    ck_assert_int_eq(store_truncate(f, UINT64_C(1) << 63, &fill), -EFBIG);
    ck_assert_int_eq(store_allocate(f, INT64_MAX, 2, false), -EFBIG);
    ck_assert_int_eq(store_punch(f, UINT64_MAX - 1, UINT64_MAX, SPACE_CACHE, &fill), 0);
    ck_assert_uint_eq(here(f, UINT64_MAX - 1, 10), 0);
    ck_assert_uint_eq(info_of(f).size, 0);
    file_put(f);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("pages");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_filled_chunk_is_read_back_and_the_rest_is_missing);
    tcase_add_test(t, a_chunk_for_another_node_has_its_hash_and_only_its_version);
    tcase_add_test(t, a_read_begins_with_what_is_here_and_tells_where_the_file_ends);
    tcase_add_test(t, a_read_that_waited_for_a_truncation_has_what_that_left);
    tcase_add_test(t, a_view_is_what_is_stored_and_no_longer_than_the_data_file);
    tcase_add_test(t, a_chunk_that_is_at_hand_is_given_at_once);
    tcase_add_test(t, who_may_not_wait_gets_nothing_of_what_is_being_worked_on);
    tcase_add_test(t, who_may_not_wait_opens_nothing);
    tcase_add_test(t, a_new_version_drops_clean_pages_and_same_data_keeps_them);
    tcase_add_test(t, racy_pages_are_dropped_when_the_version_is_confirmed);
    tcase_add_test(t, a_short_fill_is_refused);
    tcase_add_test(t, one_byte_into_an_uncached_file_asks_for_its_page_first);
    tcase_add_test(t, a_write_over_all_of_a_page_s_base_bytes_needs_no_fill);
    tcase_add_test(t, a_gap_beyond_the_old_end_reads_as_zeros_and_stays_a_hole);
    tcase_add_test(t, append_goes_to_the_end_and_says_where);
    tcase_add_test(t, what_may_only_lie_within_the_file_makes_it_no_longer);
    tcase_add_test(t, truncate_cuts_zeroes_the_tail_and_the_pfs_is_cut_first);
    tcase_add_test(t, truncate_of_an_uncached_file_needs_no_bytes);
    tcase_add_test(t, punch_makes_zeros_that_reach_the_pfs_as_a_hole);
    tcase_add_test(t, a_punch_over_a_hole_makes_nothing_dirty);
    tcase_add_test(t, offsets_out_of_range_are_refused);
    return run_case("store", t);
}
