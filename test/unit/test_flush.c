/* test_flush.c - when the write-back flushes, with a real store over a plain directory; and who asks
 * for it. */
#include "flush_env.h"

#include "flush/piece.h"
#include "placement/claims/claim_give.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_write.h"

#include <pthread.h>
#include <sys/resource.h>

/* ---- when ---- */

START_TEST(a_dirty_file_is_flushed_in_the_lull)
{
    start(50);
    fill_page(1);
    struct file *f = env_create("f", 0644);
    env_write(f, page, 5000, 0);
    store_set_times(f, 1500000000123456789);
    UNTIL(!dirty(f));
    env_expect("f", page, 5000);
    struct stat st;
    ck_assert_int_eq(stat(env_path("f"), &st), 0);
    ck_assert_int_eq(st.st_mtim.tv_sec, 1500000000);
    ck_assert_int_eq(st.st_mtim.tv_nsec, 123456789);
    struct file_info info;
    store_info(f, &info);
    ck_assert(info.base_known);
    ck_assert_uint_eq(info.base.size, 5000);
    ck_assert_uint_eq(info.base_end, 5000);
    UNTIL(!pending());
    ck_assert_uint_eq(counted(flushed_files), 1);
    shut(f);
}
END_TEST

START_TEST(writing_gives_the_mtime)
{
    start(NO_LULL);
    struct file *f = env_create("f", 0644);
    int64_t before = real_ns();
    env_write(f, "x", 1, 0);
    int64_t after = real_ns();
    usleep(20000);
    ck_assert_int_eq(flush_file(f), 0);
    struct stat st;
    ck_assert_int_eq(stat(env_path("f"), &st), 0);
    int64_t mtime = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
    ck_assert(mtime >= before - 20000000 && mtime <= after); /* the write's, not the flush's */
    shut(f);
}
END_TEST

static struct {
    unsigned calls, dirty;
    uint64_t size;
} copied;

static void note_copied(struct file *f, const struct statx *stx, uint64_t looked_ms)
{
    ck_assert_uint_le(looked_ms, boot_ms());
    copied.calls++;
    copied.dirty += dirty(f);
    copied.size = stx->stx_size;
}

/* What is clean may be given back by others at any time: who is told is told before. */
START_TEST(what_a_flush_saw_is_told_while_the_claim_is_here)
{
    start(NO_LULL);
    flush_on_copied(note_copied);
    struct file *f = env_create("f", 0644);
    env_write(f, "abc", 3, 0);
    ck_assert_int_eq(flush_file(f), 0);
    flush_on_copied(NULL);
    ck_assert_uint_eq(copied.calls, 1);
    ck_assert_uint_eq(copied.dirty, 1);
    ck_assert_uint_eq(copied.size, 3);
    ck_assert(!dirty(f));
    env_write(f, "d", 1, 3);
    ck_assert_int_eq(flush_file(f), 0);
    ck_assert_uint_eq(copied.calls, 1);
    shut(f);
}
END_TEST

static uint64_t files_in_store(void)
{
    struct store_usage u;
    store_usage(&u);
    return u.files;
}

/* Thousands of temporary files may come and go before the next lull. */
START_TEST(a_removed_file_does_not_wait_for_a_lull)
{
    start(NO_LULL);
    struct file *f = env_create("f", 0644);
    env_write(f, "abc", 3, 0);
    ck_assert_uint_eq(pending(), 1);
    ck_assert_int_eq(unlink(env_path("f")), 0);
    claim_unlinked(f);
    ck_assert_uint_eq(pending(), 0);
    shut(f);
    ck_assert_uint_eq(files_in_store(), 0);
    ck_assert_uint_eq(counted(flushed_files), 0);
}
END_TEST

/* The release of a file that the kernel wrote comes after its close: also while somebody flushes it. */
START_TEST(what_is_told_of_a_file_after_its_flush_leaves_it_clean)
{
    start(NO_LULL);
    struct file *f = env_create("f", 0644);
    env_write(f, "abc", 3, 0);
    ck_assert_uint_eq(pending(), 1);
    ck_assert_int_eq(flush_file(f), 0);
    ck_assert_uint_eq(pending(), 0);
    flush_kernel_wrote(f);
    ck_assert_uint_eq(pending(), 0);
    flush_dirtied(f);
    ck_assert_uint_eq(pending(), 0);
    env_write(f, "d", 1, 0);
    flush_kernel_wrote(f);
    ck_assert_uint_eq(pending(), 1);
    ck_assert_int_eq(flush_file(f), 0);
    shut(f);
}
END_TEST

START_TEST(activity_holds_the_flush)
{
    start(50);
    lull_begin();
    struct file *f = env_create("f", 0644);
    env_write(f, "abc", 3, 0);
    usleep(400000);
    ck_assert(dirty(f));
    env_expect("f", "", 0);
    lull_end();
    UNTIL(!dirty(f));
    env_expect("f", "abc", 3);
    shut(f);
}
END_TEST

static _Atomic bool stop_thread;

static void *stat_often(void *arg)
{
    struct statx stx;
    (void)arg;
    while (!stop_thread)
        pfs_lookup(pfs_root(), "f", &stx);
    return NULL;
}

START_TEST(metadata_is_no_activity)
{
    start(100);
    pthread_t t;
    struct file *f = env_create("f", 0644);
    pthread_create(&t, NULL, stat_often, NULL);
    env_write(f, "abc", 3, 0);
    UNTIL(!dirty(f));
    stop_thread = true;
    pthread_join(t, NULL);
    env_expect("f", "abc", 3);
    shut(f);
}
END_TEST

START_TEST(without_an_interval_it_is_flushed_at_once)
{
    start(0);
    lull_begin(); /* the write request itself */
    struct file *f = env_create("f", 0644);
    env_write(f, "abc", 3, 0);
    lull_end();
    UNTIL(!dirty(f));
    shut(f);
}
END_TEST

START_TEST(a_lull_that_ends_stops_the_flush_within_a_piece)
{
    start(30);
    lull_begin();
    struct file *f = env_create("f", 0644);
    for (int i = 0; i < 48; i++) {
        fill_page((char)i);
        env_write(f, page, sizeof(page), (uint64_t)i << 20);
    }
    uint64_t before = counted(pfs_write_bytes);
    lull_end();
    UNTIL(counted(pfs_write_bytes) > before); /* it is copying */
    lull_begin();
    uint64_t at_once = counted(pfs_write_bytes);
    usleep(300000);
    /* the piece that was under way, and perhaps one whose gate had been passed */
    ck_assert_uint_le(counted(pfs_write_bytes) - at_once, 2 * PIECE);
    ck_assert(dirty(f) || at_once - before == 48u << 20);
    /* who asks is served all the same, from the middle of it */
    ck_assert_int_eq(flush_file(f), 0);
    ck_assert(!dirty(f));
    lull_end();
    ck_assert_uint_eq(counted(pfs_write_bytes) - before, 48u << 20); /* nothing twice */
    shut(f);
}
END_TEST

static long cpu_us(const struct rusage *r)
{
    return (r->ru_utime.tv_sec + r->ru_stime.tv_sec) * 1000000 + r->ru_utime.tv_usec +
           r->ru_stime.tv_usec;
}

START_TEST(an_idle_flusher_uses_no_cpu)
{
    start(20);
    struct file *f = env_create("f", 0644);
    env_write(f, "abc", 3, 0);
    UNTIL(!pending());
    sleep(2); /* the list of names is written, the pool's threads are idle */
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    sleep(2);
    getrusage(RUSAGE_SELF, &after);
    ck_assert_int_lt(cpu_us(&after) - cpu_us(&before), 10000); /* half a percent of a core */
    shut(f);
}
END_TEST

/* ---- who asks ---- */

START_TEST(who_asks_does_not_wait_for_a_lull)
{
    start(1000);
    lull_begin();
    struct file *f = env_create("f", 0644), *g = env_create("g", 0644);
    env_write(f, "abc", 3, 0);
    env_write(g, "abcd", 4, 0);
    ck_assert_int_eq(flush_file(f), 0);
    env_expect("f", "abc", 3);
    env_expect("g", "", 0);
    ck_assert(dirty(g));
    ck_assert_int_eq(flush_all(NULL, NULL), 0);
    env_expect("g", "abcd", 4);
    ck_assert_uint_eq(pending(), 0);
    lull_end();
    shut(f);
    shut(g);
}
END_TEST

static void *ask(void *arg)
{
    return (void *)(intptr_t)flush_file(arg);
}

START_TEST(many_ask_for_one_file)
{
    start(NO_LULL);
    struct file *f = env_create("f", 0644);
    for (int r = 0; r < 20; r++) {
        pthread_t t[8];
        fill_page((char)r);
        env_write(f, page, 100000, (uint64_t)r * 1000);
        for (int i = 0; i < 8; i++)
            pthread_create(&t[i], NULL, ask, f);
        for (int i = 0; i < 8; i++) {
            void *err;
            pthread_join(t[i], &err);
            ck_assert_int_eq((intptr_t)err, 0);
        }
        ck_assert(!dirty(f));
    }
    shut(f);
}
END_TEST

struct seen {
    unsigned calls;
    uint64_t done, total, files;
    bool go_on;
};

static bool see(void *arg, const struct flush_progress *p)
{
    struct seen *s = arg;
    s->calls++;
    ck_assert_uint_le(p->done_bytes, p->total_bytes);
    s->done = p->done_bytes;
    s->total = p->total_bytes;
    s->files = p->files_left;
    return s->go_on;
}

START_TEST(progress_is_told)
{
    start(NO_LULL);
    struct file *f[10];
    create_files(f, 10);
    for (int i = 0; i < 10; i++)
        env_write(f[i], page, sizeof(page), 0);
    struct seen s = {.go_on = true};
    ck_assert_int_eq(flush_all(see, &s), 0);
    ck_assert_uint_ge(s.calls, 1);
    ck_assert_uint_eq(s.files, 0);
    ck_assert_uint_eq(s.done, 10u << 20);
    ck_assert_uint_eq(s.total, 10u << 20);
    for (int i = 0; i < 10; i++)
        shut(f[i]);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("flush");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 100);
    tcase_add_test(t, a_dirty_file_is_flushed_in_the_lull);
    tcase_add_test(t, writing_gives_the_mtime);
    tcase_add_test(t, what_a_flush_saw_is_told_while_the_claim_is_here);
    tcase_add_test(t, a_removed_file_does_not_wait_for_a_lull);
    tcase_add_test(t, what_is_told_of_a_file_after_its_flush_leaves_it_clean);
    tcase_add_test(t, activity_holds_the_flush);
    tcase_add_test(t, metadata_is_no_activity);
    tcase_add_test(t, without_an_interval_it_is_flushed_at_once);
    tcase_add_test(t, a_lull_that_ends_stops_the_flush_within_a_piece);
    tcase_add_test(t, an_idle_flusher_uses_no_cpu);
    tcase_add_test(t, who_asks_does_not_wait_for_a_lull);
    tcase_add_test(t, many_ask_for_one_file);
    tcase_add_test(t, progress_is_told);
    return run_case("flush", t);
}
