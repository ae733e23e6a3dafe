/* test_space.c - what leaves the cache, what never does, and what happens when there is no room. */
#include "store_help.h"
#include "suite.h"

#include "placement/store/store_copyout.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"
#include "placement/store/store_write.h"
#include "transport/view.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define CHUNK (64 * KIB)
#define LIMIT (2 * MIB) /* 512 KiB of it are slabs */
#define FIT   24        /* chunks that fit */

static uint8_t data[4 * MIB];

static void setup(void)
{
    dir_setup();
    open_store(LIMIT, CHUNK);
    put_pattern(data, sizeof(data), 0, 1);
}

static void teardown(void)
{
    store_close(false);
    dir_teardown();
}

static struct store_usage usage(void)
{
    struct store_usage u;
    store_usage(&u);
    return u;
}

static bool has_chunk(struct file *f, uint64_t index)
{
    return here(f, index * CHUNK, 1);
}

/* A file of n chunks on the PFS, of which this node has none yet. */
static struct file *pfs_file(uint64_t id, uint64_t chunks, struct version *v)
{
    struct file *f = get_file(id, "on the PFS");
    *v = version_n(chunks * CHUNK, 3);
    ck_assert_int_eq(store_set_version(f, v, NULL), 0);
    return f;
}

static void fill_ok(struct file *f, uint64_t index, const struct version *v, bool owned)
{
    int err = fill_chunk(f, index, v, data, owned);
    ck_assert_msg(!err, "store_fill: %s", strerror(-err));
}

START_TEST(replicas_go_before_owned_chunks_oldest_first)
{
    struct version v, w;
    struct file *owned = pfs_file(1, 8, &v), *replica = pfs_file(2, 64, &w);
    for (uint64_t i = 0; i < 8; i++)
        fill_ok(owned, i, &v, true);
    for (uint64_t i = 0; i < 40; i++)
        fill_ok(replica, i, &w, false);
    for (uint64_t i = 0; i < 8; i++)
        ck_assert_msg(has_chunk(owned, i), "owned chunk %d is gone", (int)i);
    for (uint64_t i = 0; i < 40; i++)
        ck_assert_msg(has_chunk(replica, i) == (i >= 24), "replica %d", (int)i);
    ck_assert_uint_le(usage().used, LIMIT);
    file_put(owned);
    file_put(replica);
}
END_TEST

/* The first slab has some 2,000 chunk records. */
START_TEST(what_is_fetched_gets_more_records_when_a_slab_is_full)
{
    enum { FILES = 2500 };
    store_close(false);
    open_store(16 * MIB, CHUNK);
    for (uint64_t i = 1; i <= FILES; i++) {
        struct file *f = get_file(i, "small");
        struct version v = version_n(100, 3);
        ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
        fill_ok(f, 0, &v, true);
        file_put(f);
    }
    ck_assert_uint_eq(usage().chunks, FILES);
}
END_TEST

/* A new slab is synced: a FUSE worker leaves that to another thread. */
START_TEST(a_write_that_may_not_wait_makes_no_slab)
{
    uint64_t n = 0, fill;
    int err = 0;
    store_close(false);
    open_store(16 * MIB, CHUNK);
    while (!err && ++n < 2500) {
        struct file *f = get_file(n, "new");
        struct version v = version_n(0, 3);
        ck_assert_int_eq(store_set_claim(f, 1, n, &v), 0);
        err = store_write(f, data, 100, 0, SPACE_NOW, &fill);
        if (err)
            ck_assert_int_eq(store_write(f, data, 100, 0, SPACE_CACHE, &fill), 0);
        file_put(f);
    }
    ck_assert_int_eq(err, -EAGAIN);
    ck_assert_uint_ge(n, 2000);
}
END_TEST

START_TEST(owned_chunks_go_when_there_is_nothing_else)
{
    struct version v;
    struct file *f = pfs_file(1, 64, &v);
    for (uint64_t i = 0; i < 64; i++)
        fill_ok(f, i, &v, true);
    ck_assert(!has_chunk(f, 0) && has_chunk(f, 63));
    ck_assert_uint_eq(counted(evicted_bytes), (64 - FIT) * CHUNK);
    read_is(f, data + 63 * CHUNK, CHUNK, 63 * CHUNK);
    file_put(f);
}
END_TEST

START_TEST(a_pinned_chunk_stays)
{
    struct version v;
    struct file *f = pfs_file(1, 64, &v);
    fill_ok(f, 0, &v, false);
    fill_ok(f, 1, &v, false);
    struct store_hit hit;
    ck_assert_uint_eq(store_read_begin(f, 100, 200, &hit), 200);
    for (uint64_t i = 2; i < 64; i++)
        fill_ok(f, i, &v, false);
    ck_assert(has_chunk(f, 0));
    ck_assert(!has_chunk(f, 1));
    store_read_end(&hit);
    file_put(f);
}
END_TEST

START_TEST(a_whole_file_that_is_held_stays)
{
    struct version v, w;
    struct file *f = pfs_file(1, 2, &v), *other = pfs_file(2, 64, &w);
    uint64_t bytes, more;
    fill_ok(f, 0, &v, false);
    ck_assert(!store_anchor(f, &v, &bytes)); /* not whole */
    fill_ok(f, 1, &v, false);
    ck_assert(!store_anchor(f, &w, &bytes)); /* not that version */
    ck_assert(store_anchor(f, &v, &bytes) && store_is_held(f));
    ck_assert(store_anchor(f, &v, &more));
    store_unanchor(f, more);
    for (uint64_t i = 0; i < 64; i++)
        fill_ok(other, i, &w, false);
    ck_assert(has_chunk(f, 0) && has_chunk(f, 1));
    store_unanchor(f, bytes);
    ck_assert(!store_is_held(f));
    for (uint64_t i = 0; i < 64; i++)
        fill_ok(other, i, &w, false);
    ck_assert(!has_chunk(f, 0) && !has_chunk(f, 1));
    file_put(f);
    file_put(other);
}
END_TEST

START_TEST(no_more_than_an_eighth_of_the_cache_is_held)
{
    struct version v;
    struct file *f = pfs_file(1, 3, &v);
    uint64_t bytes[2];
    for (uint64_t i = 0; i < 3; i++)
        fill_ok(f, i, &v, false);
    ck_assert(store_anchor(f, &v, &bytes[0])); /* 192 of 256 KiB */
    ck_assert(!store_anchor(f, &v, &bytes[1]));
    store_unanchor(f, bytes[0]);
    ck_assert(store_anchor(f, &v, &bytes[0]));
    store_unanchor(f, bytes[0]);
    file_put(f);
}
END_TEST

START_TEST(dirty_bytes_are_never_evicted_and_then_there_is_no_room)
{
    struct version v;
    struct file *f = new_file(1, "dirty"), *other = pfs_file(2, 64, &v);
    uint64_t fill, n = 0;
    int err;
    while (!(err = store_write(f, data + n * CHUNK, CHUNK, n * CHUNK, SPACE_CACHE, &fill)))
        n++;
    ck_assert_int_eq(err, -ENOSPC);
    ck_assert_uint_eq(n, FIT);
    ck_assert_int_eq(fill_chunk(other, 0, &v, data, true), -ENOSPC);
    struct file_info info;
    store_info(f, &info);
    ck_assert_uint_eq(info.size, FIT * CHUNK); /* nothing of the write that failed */
    ck_assert_uint_eq(info.dirty_bytes, FIT * CHUNK);
    read_is(f, data, FIT * CHUNK, 0);
    write_ok(f, data + 7, 5000, 3 * CHUNK + 11); /* over what is there: needs no room */
    memcpy(data + 3 * CHUNK + 11, data + 7, 5000);
    read_is(f, data, FIT * CHUNK, 0);

    struct snapshot *s;
    store_info(f, &info);
    ck_assert_int_eq(store_snapshot(f, 0, 2 * CHUNK, &s), 0);
    store_snapshot_done(s, true);
    ck_assert_int_eq(fill_chunk(other, 0, &v, data, true),
                     -ENOSPC); /* not yet: the flush has not ended */
    ck_assert_int_eq(store_snapshot(f, 0, UINT64_MAX, &s), 0);
    store_snapshot_done(s, true);
    struct version w = version_n(FIT * CHUNK, 9);
    ck_assert(store_flushed(f, &w, info.change, NULL));
    fill_ok(other, 0, &v, true);
    ck_assert_uint_eq(usage().dirty, 0);
    file_put(f);
    file_put(other);
}
END_TEST

/* The PFS has them, under a version that is not known yet: what was read of the old one must not
 * take their place. */
START_TEST(flushed_bytes_stay_until_their_flush_has_ended)
{
    static uint8_t old[CHUNK];
    struct version v, w, x;
    struct file *f = pfs_file(1, 2, &v), *other = pfs_file(2, 64, &w);
    struct file_info info;
    struct snapshot *s;
    memcpy(old, data, CHUNK);
    store_set_claim(f, 1, 1, &v);
    fill_ok(f, 0, &v, true);
    write_ok(f, data + 77, 5000, 100);
    store_info(f, &info);
    ck_assert_int_eq(store_snapshot(f, 0, UINT64_MAX, &s), 0);
    store_snapshot_done(s, true);
    for (uint64_t i = 0; i < 64; i++)
        fill_ok(other, i, &w, true);
    struct clean_chunk on_its_way = {.version = v, .buf = old, .len = CHUNK, .owned = true};
    ck_assert_int_eq(store_fill(f, &on_its_way), 0);
    read_is(f, data + 77, 5000, 100);
    x = version_n(2 * CHUNK, 9);
    ck_assert(store_flushed(f, &x, info.change, NULL));
    ck_assert_int_eq(store_fill(f, &on_its_way), -ESTALE);
    for (uint64_t i = 0; i < 64; i++)
        fill_ok(other, i, &w, true);
    ck_assert(!has_chunk(f, 0));
    file_put(f);
    file_put(other);
}
END_TEST

START_TEST(records_of_files_leave_with_their_pages)
{
    struct store_usage u;
    for (uint64_t i = 0; i < 5000; i++) { /* 504 records fit into one slab */
        struct file *f = get_file(i + 1, "small");
        struct version v = version_n(100, 3);
        ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
        struct clean_chunk c = {.version = v, .buf = data, .len = 100, .owned = i % 2};
        int err = store_fill(f, &c);
        ck_assert_msg(!err, "file %d: %s", (int)i, strerror(-err));
        file_put(f);
    }
    u = usage();
    ck_assert_uint_le(u.used, LIMIT);
    ck_assert_uint_ge(u.files, 100);
    ck_assert_uint_eq(u.files, u.chunks);
    struct file *f = file_find(fid_n(5000));
    ck_assert_ptr_nonnull(f);
    read_is(f, data, 100, 0);
    file_put(f);
    ck_assert_ptr_null(file_find(fid_n(1)));
    store_close(false);
    open_store(LIMIT, CHUNK);
    ck_assert_uint_eq(usage().files, u.files);
    ck_assert_uint_eq(usage().used, u.used);
}
END_TEST

static void *fill_all(void *arg)
{
    uint64_t id = (uint64_t)(uintptr_t)arg;
    struct version v;
    struct file *f = pfs_file(id, 64, &v);
    for (unsigned round = 0; round < 5; round++)
        for (uint64_t i = 0; i < 64; i++) {
            fill_chunk(f, i, &v, data, i % 3 == 0);
            if (has_chunk(f, i))
                continue; /* it may have gone again at once */
        }
    file_put(f);
    return NULL;
}

START_TEST(threads_that_push_each_other_out_stay_within_the_limit)
{
    pthread_t t[4];
    for (uintptr_t i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, fill_all, (void *)(i + 1));
    for (unsigned i = 0; i < 100; i++)
        ck_assert_uint_le(usage().used, LIMIT);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    ck_assert_uint_le(usage().used, LIMIT);
}
END_TEST

static uint64_t blocks_below(const char *dir)
{
    char cmd[200], text[64] = "";
    snprintf(cmd, sizeof(cmd), "du -s --block-size=1 %s/data", dir);
    FILE *p = popen(cmd, "r");
    ck_assert_ptr_nonnull(fgets(text, sizeof(text), p));
    pclose(p);
    return strtoull(text, NULL, 10);
}

START_TEST(what_is_evicted_takes_no_room_on_the_disk)
{
    struct version v;
    struct file *f = pfs_file(1, 64, &v);
    for (uint64_t i = 0; i < 64; i++)
        fill_ok(f, i, &v, true);
    ck_assert_uint_le(blocks_below(cache_dir), FIT * CHUNK + 64 * KIB);
    ck_assert_uint_ge(blocks_below(cache_dir), FIT * CHUNK);
    file_put(f);
}
END_TEST

/* RLIMIT_FSIZE stands for a disk that is full in the middle of a write. */
static void disk_ends_at(rlim_t bytes)
{
    struct rlimit r;
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &r), 0);
    r.rlim_cur = bytes;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &r), 0);
}

START_TEST(a_write_that_fails_half_way_leaves_the_truth)
{
    uint64_t fill;
    uint8_t want[200000];
    struct file_info info;
    struct file *f = new_file(1, "x");
    write_ok(f, data, 30000, 0);
    disk_ends_at(50000);
    ck_assert_int_eq(store_write(f, data + 1000, 100000, 10000, SPACE_CACHE, &fill), -EFBIG);
    disk_ends_at(RLIM_INFINITY);
    store_info(f, &info);
    ck_assert_uint_eq(info.size, 30000);
    ck_assert_uint_eq(info.dirty_bytes, 32768); /* pages that were not there are not there now */
    memcpy(want, data, 10000);
    memcpy(want + 10000, data + 1000, 20000);
    read_is(f, want, 30000, 0); /* what was there may be new: the write was not acknowledged */
    ck_assert_int_eq(store_truncate(f, 150000, &fill), 0);
    memset(want + 30000, 0, 120000);
    read_is(f, want, 150000, 0); /* nothing of it shows up later */
    write_ok(f, data, 100, 40000);
    memcpy(want + 40000, data, 100);
    read_is(f, want, 150000, 0);
    file_put(f);
}
END_TEST

START_TEST(a_fill_that_fails_half_way_leaves_the_pages_missing)
{
    uint64_t off, len;
    struct version v;
    struct file *f = pfs_file(1, 2, &v);
    disk_ends_at(70000);
    ck_assert_int_eq(fill_chunk(f, 1, &v, data, true), -EFBIG);
    disk_ends_at(RLIM_INFINITY);
    ck_assert(store_missing(f, 0, 2 * CHUNK, &off, &len));
    ck_assert_uint_eq(off, 0);
    ck_assert_uint_eq(len, 2 * CHUNK);
    fill_ok(f, 1, &v, true);
    read_is(f, data + CHUNK, CHUNK, CHUNK);
    file_put(f);
}
END_TEST

START_TEST(a_cache_that_is_too_small_is_refused)
{
    char err[512];
    store_close(true);
    ck_assert_int_eq(setenv("TMPDIR", test_dir, 1), 0);
    snprintf(cache_dir, sizeof(cache_dir), "%s/small", test_dir);
    ck_assert_int_eq(try_open(300 * KIB, CHUNK, err, sizeof(err)), -ENOSPC);
    ck_assert_ptr_nonnull(strstr(err, "--cache-size"));
    ck_assert_int_eq(try_open(LIMIT, CHUNK, err, sizeof(err)), 0);
}
END_TEST

/* Another daemon with the default size on the same disk, until told to go. */
static pid_t sibling(int go[2])
{
    int ready[2];
    char c;
    ck_assert_int_eq(pipe(ready), 0);
    ck_assert_int_eq(pipe(go), 0);
    pid_t pid = fork();
    if (!pid) {
        close(go[1]);
        snprintf(cache_dir, sizeof(cache_dir), "%s/sibling", test_dir);
        open_store(0, CHUNK);
        if (write(ready[1], "r", 1) != 1 || read(go[0], &c, 1) < 0)
            _exit(1);
        _exit(0); /* without leaving: as if killed */
    }
    close(go[0]);
    ck_assert_int_eq(read(ready[0], &c, 1), 1);
    return pid;
}

START_TEST(the_default_size_is_shared_with_this_user_s_other_daemons)
{
    int go[2], status;
    store_close(true);
    ck_assert_int_eq(setenv("TMPDIR", test_dir, 1), 0);
    open_store(0, CHUNK);
    uint64_t alone = usage().limit;
    store_close(true);
    pid_t pid = sibling(go);
    open_store(0, CHUNK);
    uint64_t shared = usage().limit, weight = store_weight();
    store_close(true);
    ck_assert_uint_gt(alone, 100 * MIB);
    ck_assert_uint_gt(shared, alone / 10 * 4); /* about a half: the disk is not ours alone */
    ck_assert_uint_lt(shared, alone / 10 * 6);
    ck_assert_uint_gt(weight, alone / MIB / 10 * 9); /* who came first has no more weight */
    close(go[1]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    open_store(0, CHUNK);
    ck_assert_uint_gt(usage().limit, alone / 10 * 9);
}
END_TEST

START_TEST(the_weight_is_the_size_in_mib)
{
    ck_assert_uint_eq(store_weight(), LIMIT / MIB);
    store_close(false);
    open_store(3 * LIMIT + MIB / 2, CHUNK);
    ck_assert_uint_eq(store_weight(), 3 * LIMIT / MIB);
    store_close(false);
    open_store(UINT64_MAX / 2, CHUNK);
    ck_assert_uint_eq(store_weight(), WEIGHT_MAX);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("space");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 100);
    tcase_add_test(t, replicas_go_before_owned_chunks_oldest_first);
    tcase_add_test(t, what_is_fetched_gets_more_records_when_a_slab_is_full);
    tcase_add_test(t, a_write_that_may_not_wait_makes_no_slab);
    tcase_add_test(t, owned_chunks_go_when_there_is_nothing_else);
    tcase_add_test(t, a_pinned_chunk_stays);
    tcase_add_test(t, a_whole_file_that_is_held_stays);
    tcase_add_test(t, no_more_than_an_eighth_of_the_cache_is_held);
    tcase_add_test(t, dirty_bytes_are_never_evicted_and_then_there_is_no_room);
    tcase_add_test(t, flushed_bytes_stay_until_their_flush_has_ended);
    tcase_add_test(t, records_of_files_leave_with_their_pages);
    tcase_add_test(t, threads_that_push_each_other_out_stay_within_the_limit);
    tcase_add_test(t, what_is_evicted_takes_no_room_on_the_disk);
    tcase_add_test(t, a_write_that_fails_half_way_leaves_the_truth);
    tcase_add_test(t, a_fill_that_fails_half_way_leaves_the_pages_missing);
    tcase_add_test(t, a_cache_that_is_too_small_is_refused);
    tcase_add_test(t, the_default_size_is_shared_with_this_user_s_other_daemons);
    tcase_add_test(t, the_weight_is_the_size_in_mib);
    return run_case("space", t);
}
