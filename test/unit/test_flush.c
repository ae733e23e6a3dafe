/* test_flush.c - write-back with a real store over a plain directory: when, what, and that nothing
 * is lost. */
#include "pfs_env.h"
#include "suite.h"

#include "flush/flush_int.h"
#include "transport/loop.h"
#include "transport/session.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/vfs.h>

#define NO_LULL (24u * 3600 * 1000) /* a wait interval that does not come: only who asks flushes */

static void start(uint64_t wait_ms)
{
    struct flush_config c = {.policy = FLUSH_IDLE, .wait_ms = wait_ms, .writers = 4};
    ck_assert_int_eq(flush_start(&c), 0);
    ck_assert_int_eq(flush_recover(), 0);
}

static void setup(void)
{
    signal(SIGXFSZ, SIG_IGN);
    env_make();
    env_open_store();
    env_open_pfs();
    ck_assert_int_eq(pools_start(), 0);
}

static void setup_user(void)
{
    env_make();
    env_be_user();
    env_open_store();
    env_open_pfs();
    ck_assert_int_eq(pools_start(), 0);
}

static void teardown(void)
{
    flush_stop();
    pools_stop();
    pfs_close();
    store_close(false);
    env_remove();
}

/* Waits for a condition; a test that never sees it fails. */
#define UNTIL(cond)                                                                                \
    do {                                                                                           \
        for (int i_ = 0; !(cond); i_++) {                                                          \
            if (i_ > 20000)                                                                        \
                ck_abort_msg("waited 20 s for " #cond);                                            \
            usleep(1000);                                                                          \
        }                                                                                          \
    } while (0)

static bool dirty(struct file *f)
{
    struct file_info info;
    store_info(f, &info);
    return info.dirty;
}

static uint64_t pending(void)
{
    struct flush_status s;
    flush_status(&s);
    return s.pending_files;
}

static void shut(struct file *f)
{
    pfs_release(f);
    file_put(f);
}

static char page[1 << 20];

static void fill_page(char seed)
{
    for (size_t i = 0; i < sizeof(page); i++)
        page[i] = (char)(seed + i * 7 + (i >> 9));
}

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

/* ---- what ---- */

START_TEST(one_byte_into_a_file)
{
    static const size_t sizes[] = {1,       1000,          4095,   4096, 4097, (1 << 20) - 1,
                                   1 << 20, (1 << 20) + 1, 3 << 20};
    start(NO_LULL);
    char *bytes = malloc(3 << 20);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        const size_t n = sizes[i],
                     offs[] = {0, n / 2, n - 1, n > 4096 ? 4096 : 0, n > 4096 ? 4095 : 0};
        for (size_t k = 0; k < ARRAY_LEN(offs); k++) {
            for (size_t b = 0; b < n; b++)
                bytes[b] = (char)(b * 13 + (b >> 10));
            env_put("f", bytes, n, 0644);
            struct file *f = env_open("f", true);
            env_write(f, "!", 1, offs[k]);
            bytes[offs[k]] = '!';
            ck_assert_int_eq(flush_file(f), 0);
            env_expect("f", bytes, n);
            store_clear_claim(f, NULL);
            shut(f);
        }
    }
    free(bytes);
}
END_TEST

START_TEST(cut_and_extended)
{
    start(NO_LULL);
    fill_page(3);
    char want[20000];
    env_put("f", page, 20000, 0644);
    struct file *f = env_open("f", true);
    env_truncate(f, 5000); /* cut, extended: zeros between, not what was there */
    env_truncate(f, 15000);
    env_write(f, "end", 3, 14997);
    memset(want, 0, sizeof(want));
    memcpy(want, page, 5000);
    memcpy(want + 14997, "end", 3);
    ck_assert_int_eq(flush_file(f), 0);
    env_expect("f", want, 15000);
    env_truncate(f, 0);
    env_write(f, "new", 3, 0);
    ck_assert_int_eq(flush_file(f), 0);
    env_expect("f", "new", 3);
    env_truncate(f, 0);
    ck_assert_int_eq(flush_file(f), 0);
    env_expect("f", "", 0);
    env_truncate(f, 10000);
    ck_assert_int_eq(flush_file(f), 0);
    memset(want, 0, sizeof(want));
    env_expect("f", want, 10000);
    store_set_times(f, 77000000000);
    ck_assert_int_eq(flush_file(f), 0);
    struct stat st;
    stat(env_path("f"), &st);
    ck_assert_int_eq(st.st_mtim.tv_sec, 77);
    shut(f);
}
END_TEST

START_TEST(holes_stay_holes)
{
    start(NO_LULL);
    struct file *f = env_create("f", 0644);
    env_write(f, "far", 3, 100 << 20);
    env_truncate(f, 200 << 20);
    ck_assert_int_eq(flush_file(f), 0);
    struct stat st;
    ck_assert_int_eq(stat(env_path("f"), &st), 0);
    ck_assert_int_eq(st.st_size, 200 << 20);
    ck_assert_int_le(st.st_blocks, 64);
    shut(f);
    fill_page(5);
    env_put("g", page, 1 << 20, 0644);
    f = env_open("g", true);
    env_punch(f, 64 << 10, 512 << 10);
    ck_assert_int_eq(flush_file(f), 0);
    memset(page + (64 << 10), 0, 512 << 10);
    env_expect("g", page, 1 << 20);
    ck_assert_int_eq(stat(env_path("g"), &st), 0);
    ck_assert_int_le(st.st_blocks * 512, (1 << 20) - (500 << 10));
    shut(f);
}
END_TEST

START_TEST(larger_than_a_batch)
{
    start(NO_LULL);
    struct file *f = env_create("f", 0644);
    uint64_t before = counted(pfs_write_bytes);
    for (int i = 0; i < 150; i++) {
        memset(page, i, sizeof(page));
        env_write(f, page, sizeof(page), (uint64_t)i << 20);
    }
    ck_assert_int_eq(flush_file(f), 0);
    ck_assert(!dirty(f));
    ck_assert_uint_eq(counted(pfs_write_bytes) - before, 150u << 20);
    int fd = open(env_path("f"), O_RDONLY);
    for (int i = 0; i < 150; i++) {
        ck_assert_int_eq(read(fd, page, sizeof(page)), (ssize_t)sizeof(page));
        ck_assert((unsigned char)page[0] == i && memcmp(page, page + 1, sizeof(page) - 1) == 0);
    }
    close(fd);
    shut(f);
}
END_TEST

/* ---- against a model ---- */

#define MODEL (3u << 20)

static uint32_t rnd(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

struct model {
    char bytes[MODEL];
    size_t size;
    uint32_t state;
};

static void random_change(struct model *m, struct file *f)
{
    uint32_t what = rnd(&m->state) % 10;
    size_t off = rnd(&m->state) % (MODEL - 70000),
           n = 1 + rnd(&m->state) % (what == 0 ? 60000 : 6000);
    if (what < 6) {
        static char data[60001];
        memset(data, (int)(1 + rnd(&m->state) % 255), n);
        env_write(f, data, n, off);
        memcpy(m->bytes + off, data, n);
        m->size = MAX(m->size, off + n);
    } else if (what < 8) {
        size_t size = what == 6 ? off : MIN(m->size, off);
        env_truncate(f, size);
        if (size < m->size)
            memset(m->bytes + size, 0, m->size - size);
        m->size = size;
    } else if (m->size) {
        off %= m->size;
        n = MIN(n * 4, m->size - off);
        env_punch(f, off, n);
        memset(m->bytes + off, 0, n);
    }
}

static void model_run(uint32_t seed, int rounds, bool flush_often)
{
    struct model *m = calloc(1, sizeof(*m));
    m->state = seed;
    m->size = 1500000;
    for (size_t i = 0; i < m->size; i++)
        m->bytes[i] = (char)rnd(&m->state);
    env_put("f", m->bytes, m->size, 0644);
    struct file *f = env_open("f", true);
    for (int i = 0; i < rounds; i++) {
        random_change(m, f);
        if (flush_often && rnd(&m->state) % 8 == 0) {
            ck_assert_int_eq(flush_file(f), 0);
            env_expect("f", m->bytes, m->size);
        }
    }
    ck_assert_int_eq(flush_file(f), 0);
    ck_assert(!dirty(f));
    env_expect("f", m->bytes, m->size);
    store_clear_claim(f, NULL);
    shut(f);
    free(m);
}

START_TEST(random_changes_and_flushes)
{
    start(NO_LULL);
    for (uint32_t seed = 1; seed <= 6; seed++)
        model_run(seed, 300, true);
}
END_TEST

/* The flusher runs all the time, in the middle of every change. */
START_TEST(random_changes_while_it_flushes)
{
    start(0);
    for (uint32_t seed = 11; seed <= 16; seed++)
        model_run(seed, 600, false);
}
END_TEST

START_TEST(rewritten_while_it_is_flushed)
{
    start(0);
    enum { FILES = 30, ROUNDS = 20 };
    struct file *f[FILES];
    char name[16];
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        f[i] = env_create(name, 0644);
    }
    for (int r = 0; r < ROUNDS; r++)
        for (int i = 0; i < FILES; i++) {
            memset(page, 'A' + (i + r) % 26, 300000);
            env_write(f[i], page, 300000, 0);
        }
    ck_assert_int_eq(flush_all(NULL, NULL), 0);
    for (int i = 0; i < FILES; i++) {
        ck_assert(!dirty(f[i]));
        snprintf(name, sizeof(name), "f%d", i);
        memset(page, 'A' + (i + ROUNDS - 1) % 26, 300000);
        env_expect(name, page, 300000);
        shut(f[i]);
    }
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
    char name[16];
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        f[i] = env_create(name, 0644);
        env_write(f[i], page, sizeof(page), 0);
    }
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

/* ---- errors ---- */

struct listed {
    unsigned n, tries;
    int error;
    uint64_t bytes;
};

static int list_one(void *arg, const char *path, uint64_t bytes, uint64_t since_s, unsigned tries,
                    int error, bool suspect)
{
    struct listed *l = arg;
    ck_assert_ptr_nonnull(path);
    ck_assert_uint_lt(since_s, 60);
    ck_assert(!suspect);
    l->n++;
    l->tries = tries;
    l->error = error;
    l->bytes += bytes;
    return 0;
}

static struct listed unflushed(void)
{
    struct listed l = {0};
    flush_each_unflushed(list_one, &l);
    return l;
}

START_TEST(a_file_that_is_too_large)
{
    start(NO_LULL);
    fill_page(9);
    struct file *f = env_create("f", 0644);
    struct flush_seen handle, other, later;
    flush_error_seen(f, &handle);
    flush_error_seen(f, &other);
    env_write(f, page, 500000, 1 << 20);
    struct rlimit old, r;
    getrlimit(RLIMIT_FSIZE, &old);
    r = old;
    r.rlim_cur = 1 << 20; /* Check's own notes need some, too */
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &r), 0);
    ck_assert_int_eq(flush_file(f), -EFBIG);
    ck_assert(dirty(f));
    ck_assert_int_eq(flush_error_once(f, &handle), -EFBIG);
    ck_assert_int_eq(flush_error_once(f, &handle), 0);     /* once */
    ck_assert_int_eq(flush_error_once(f, &other), -EFBIG); /* each */
    flush_error_seen(f, &later);
    ck_assert_int_eq(flush_error_once(f, &later), 0); /* opened after it */
    ck_assert_int_eq(flush_all(NULL, NULL), -EIO);
    ck_assert_int_eq(flush_error_once(f, &handle), 0); /* the same still */
    ck_assert_int_eq(flush_error_once(f, &later), -EFBIG);
    ck_assert_int_eq(flush_error_once(f, &later), 0);
    struct listed l = unflushed();
    ck_assert_uint_eq(l.n, 1);
    ck_assert_int_eq(l.error, -EFBIG);
    ck_assert_uint_eq(l.tries, 2);
    ck_assert_uint_ge(l.bytes, 500000);
    struct flush_status s;
    flush_status(&s);
    ck_assert_uint_eq(s.failed_files, 1);
    ck_assert_uint_eq(s.pending_files, 1);
    ck_assert_int_eq(flush_retry(NULL, NULL), -EIO);
    setrlimit(RLIMIT_FSIZE, &old);
    struct file *g = env_create("g", 0644);
    env_write(g, "abc", 3, 0);
    ck_assert_int_eq(flush_retry(NULL, NULL), 0); /* at once, not after the back-off */
    ck_assert(!dirty(f) && dirty(g));             /* only what failed */
    shut(g);
    ck_assert_int_eq(flush_all(NULL, NULL), 0);
    struct stat st;
    ck_assert_int_eq(stat(env_path("f"), &st), 0);
    ck_assert_int_eq(st.st_size, (1 << 20) + 500000);
    ck_assert_uint_eq(unflushed().n, 0);
    ck_assert_int_eq(flush_error_once(f, &handle), 0);
    shut(f);
}
END_TEST

START_TEST(a_failed_file_is_tried_again_by_itself)
{
    start(20);
    struct file *f = env_create("f", 0644);
    struct rlimit old, r;
    getrlimit(RLIMIT_FSIZE, &old);
    r = old;
    r.rlim_cur = 1 << 20;
    lull_begin();
    env_write(f, "abc", 3, 1 << 20);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &r), 0);
    lull_end();
    UNTIL(unflushed().error == -EFBIG);
    setrlimit(RLIMIT_FSIZE, &old);
    UNTIL(!dirty(f));
    struct stat st;
    ck_assert_int_eq(stat(env_path("f"), &st), 0);
    ck_assert_int_eq(st.st_size, (1 << 20) + 3);
    shut(f);
}
END_TEST

START_TEST(a_file_that_may_not_be_written)
{
    start(NO_LULL);
    if (getuid() != 0)
        return;
    struct file *f = env_create("f", 0644);
    env_write(f, "abc", 3, 0);
    pfs_release(f);
    pfs_drop(f);
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(chown(env_path("f"), 0, 0), 0);
    ck_assert_int_eq(seteuid(NOBODY), 0);
    ck_assert_int_eq(flush_file(f), -EACCES);
    ck_assert(dirty(f));
    env_expect("f", "", 0);
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(chmod(env_path("f"), 0666), 0);
    ck_assert_int_eq(seteuid(NOBODY), 0);
    ck_assert_int_eq(flush_file(f), 0);
    env_expect("f", "abc", 3);
    file_put(f);
}
END_TEST

/* As git, tar and cp -p make them. */
START_TEST(a_file_without_owner_write)
{
    start(50);
    struct file *f = env_create("with", 0444), *g = env_create("without", 0400);
    env_write(f, "abc", 3, 0);
    env_write(g, "abcd", 4, 0);
    lull_begin();
    pfs_release(f); /* its descriptor is kept */
    pfs_release(g);
    pfs_drop(g); /* this one fell out of the budget */
    lull_end();
    UNTIL(!dirty(f) && !dirty(g));
    UNTIL(!pending());
    ck_assert_uint_eq(env_mode("with"), 0444);
    ck_assert_uint_eq(env_mode("without"), 0400);
    env_expect("with", "abc", 3);
    env_expect("without", "abcd", 4);
    file_put(f);
    file_put(g);
}
END_TEST

START_TEST(unlinked_is_never_flushed)
{
    start(NO_LULL);
    struct file *f = env_create("f", 0644), *g = env_create("g", 0644);
    uint64_t before = counted(pfs_write_bytes);
    env_write(f, "abc", 3, 0);
    env_write(g, "abc", 3, 0);
    /* f: seen by its descriptor; g: told */
    ck_assert_int_eq(unlink(env_path("f")), 0);
    ck_assert_int_eq(unlink(env_path("g")), 0);
    lock_take(&g->lock);
    g->unlinked = true;
    lock_drop(&g->lock);
    ck_assert_int_eq(flush_all(NULL, NULL), 0);
    ck_assert_uint_eq(counted(pfs_write_bytes), before);
    ck_assert_uint_eq(unflushed().n, 0);
    char back[3]; /* who has it open reads on */
    size_t n = store_pin(f, 0, 3);
    ck_assert_uint_eq(n, 3);
    ck_assert_int_eq(store_pread(f, back, 3, 0), 0);
    store_unpin(f, 0, n);
    ck_assert_mem_eq(back, "abc", 3);
    shut(f);
    shut(g);
}
END_TEST

START_TEST(removed_behind_our_back_keeps_the_data)
{
    start(NO_LULL);
    struct file *f = env_create("f", 0644);
    env_write(f, "abc", 3, 0);
    pfs_release(f);
    pfs_drop(f);
    ck_assert_int_eq(rename(env_path("f"), env_path("elsewhere")), 0);
    ck_assert_int_eq(flush_file(f), -ENOENT);
    env_put("f", "other", 5, 0644);
    ck_assert_int_eq(flush_file(f), -ESTALE);
    env_expect("f", "other", 5);
    ck_assert(dirty(f));
    file_set_path(f, "elsewhere"); /* found again */
    ck_assert_int_eq(flush_all(NULL, NULL), 0);
    env_expect("elsewhere", "abc", 3);
    file_put(f);
}
END_TEST

static bool small_pfs(void)
{
    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return false;
    char pfs[128];
    snprintf(pfs, sizeof(pfs), "%s/pfs", env_dir);
    pfs_close();
    bool mounted = mount("none", pfs, "tmpfs", 0, "size=4m,mode=0777") == 0;
    env_open_pfs();
    return mounted;
}

START_TEST(a_full_pfs_loses_nothing)
{
    bool full = small_pfs();
    start(NO_LULL);
    if (!full)
        return;
    enum { FILES = 30 };
    struct file *f[FILES];
    char name[16];
    env_put("ballast", page, sizeof(page), 0644);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        f[i] = env_create(name, 0644);
        memset(page, i + 1, 200000);
        env_write(f[i], page, 200000, 0);
    }
    ck_assert_int_eq(flush_all(NULL, NULL), -EIO);
    struct listed l = unflushed();
    ck_assert_uint_gt(l.n, 5);
    ck_assert_uint_lt(l.n, FILES);
    ck_assert_int_eq(l.error, -ENOSPC);
    /* a writer who needs room is told, and does not hang */
    int err = flush_make_room(f[0]); /* 0: some files have just become clean */
    ck_assert(err == 0 || err == -ENOSPC);
    ck_assert_int_eq(flush_make_room(f[0]), -ENOSPC);
    char pfs[128], options[] = "size=64m";
    snprintf(pfs, sizeof(pfs), "%s/pfs", env_dir);
    ck_assert_int_eq(mount("none", pfs, NULL, MS_REMOUNT, options), 0);
    ck_assert_int_eq(flush_all(NULL, NULL), 0);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        memset(page, i + 1, 200000);
        env_expect(name, page, 200000);
        shut(f[i]);
    }
    pfs_close();
    umount2(pfs, MNT_DETACH);
    env_open_pfs();
}
END_TEST

START_TEST(room_is_made_by_flushing)
{
    start(NO_LULL);
    lull_begin();
    struct file *f = env_create("f", 0644);
    env_write(f, page, sizeof(page), 0);
    ck_assert_int_eq(flush_make_room(f), 0);
    UNTIL(!dirty(f));
    /* once more is the truth for who did not know; then there is nothing that could be flushed */
    int err = flush_make_room(f);
    ck_assert(err == 0 || err == -ENOSPC);
    ck_assert_int_eq(flush_make_room(f), -ENOSPC);
    lull_end();
    shut(f);
}
END_TEST

/* ---- the end, and after a crash ---- */

START_TEST(a_stop_in_the_middle_keeps_what_is_dirty)
{
    start(30);
    struct file *f = env_create("f", 0644);
    fill_page(2);
    for (int i = 0; i < 40; i++)
        env_write(f, page, sizeof(page), (uint64_t)i << 20);
    uint64_t before = counted(pfs_write_bytes);
    UNTIL(counted(pfs_write_bytes) > before);
    lull_begin();
    flush_stop(); /* must not wait for a lull */
    lull_end();
    start(NO_LULL);
    ck_assert_int_eq(flush_recover(), 0);
    ck_assert_int_eq(flush_all(NULL, NULL), 0);
    ck_assert(!dirty(f));
    int fd = open(env_path("f"), O_RDONLY);
    static char back[1 << 20];
    for (int i = 0; i < 40; i++) {
        ck_assert_int_eq(read(fd, back, sizeof(back)), (ssize_t)sizeof(back));
        ck_assert_mem_eq(back, page, sizeof(page));
    }
    close(fd);
    shut(f);
}
END_TEST

START_TEST(what_a_dead_daemon_left_is_flushed)
{
    start(NO_LULL);
    struct file *f = env_create("f", 0644), *g = env_create("g", 0644);
    fill_page(4);
    env_write(f, page, 70000, 0);
    env_write(g, "abc", 3, 0);
    ck_assert_int_eq(chmod(env_path("g"), 0644), 0); /* a flush of it was under way: it is 0444 */
    store_set_raised_mode(g, 0444);
    shut(f);
    shut(g);
    flush_stop();
    store_close(false); /* as after kill -9: nothing is flushed */
    env_open_store();
    start(NO_LULL);
    ck_assert_int_eq(flush_recover(), 0);
    ck_assert_uint_eq(env_mode("g"), 0444);
    ck_assert_uint_eq(pending(), 2);
    ck_assert_int_eq(flush_all(NULL, NULL), 0);
    ck_assert_uint_eq(pending(), 0);
    env_expect("f", page, 70000);
    env_expect("g", "abc", 3);
    ck_assert_uint_eq(env_mode("g"), 0444);
}
END_TEST

static int count_name(void *arg, const char *session, uint64_t node, const char *node_name,
                      struct fid fid, const char *path)
{
    unsigned *n = arg;
    (void)session;
    (void)node_name;
    ck_assert_uint_eq(node, store_node_id());
    ck_assert(!fid_is_zero(fid));
    ck_assert(strncmp(path, "file ", 5) == 0);
    ++*n;
    return 0;
}

static unsigned named(const char *dir)
{
    unsigned n = 0;
    int err = session_each_dirty(dir, count_name, &n);
    ck_assert(err == 0 || err == -ENOENT);
    return n;
}

START_TEST(dirty_files_are_named_in_the_session)
{
    char err[256] = "", dir[128];
    snprintf(dir, sizeof(dir), "%s/sessions", env_dir);
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    struct session_config c = {dir, "test", 1 << 20};
    ck_assert_msg(session_open(&c, err, sizeof(err)) == 0, "%s", err);
    start(NO_LULL);
    struct file *f[20];
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof(name), "file %d\nof \\ many", i);
        f[i] = env_create(name, 0644);
        env_write(f[i], "x", 1, 0);
    }
    UNTIL(named(dir) == 20); /* a batch, within a second */
    ck_assert_int_eq(flush_file(f[0]), 0);
    UNTIL(named(dir) == 19);
    ck_assert_int_eq(flush_all(NULL, NULL), 0);
    UNTIL(named(dir) == 0);
    env_write(f[3], "y", 1, 0);
    flush_stop(); /* at once, in the end */
    ck_assert_uint_eq(named(dir), 1);
    start(NO_LULL);
    for (int i = 0; i < 20; i++)
        shut(f[i]);
}
END_TEST

/* ---- policies, age, marks: I/O is in progress all the time ---- */

static void start_with(struct flush_config c)
{
    c.wait_ms = NO_LULL;
    c.writers = 2;
    ck_assert_int_eq(flush_start(&c), 0);
    ck_assert_int_eq(flush_recover(), 0);
    lull_begin();
}

static struct file *written(const char *name, int mib)
{
    struct file *f = env_create(name, 0644);
    for (int i = 0; i < mib; i++)
        env_write(f, page, sizeof(page), (uint64_t)i << 20);
    return f;
}

START_TEST(immediate_waits_for_nothing)
{
    start_with((struct flush_config){.policy = FLUSH_IMMEDIATE});
    struct file *f = written("f", 1);
    UNTIL(!dirty(f));
    ck_assert_uint_eq(counted(flushed_lull_bytes), 0);
    lull_end();
    shut(f);
}
END_TEST

START_TEST(a_file_has_the_policy_that_it_is_given)
{
    start_with((struct flush_config){.policy = FLUSH_END, .dirty_age_ms = 1});
    struct file *f = written("f", 1), *g = written("g", 1), *h = written("h", 1);
    ck_assert_int_eq(flush_policy_of(g), FLUSH_END);
    flush_set_policy(g, FLUSH_IMMEDIATE); /* while it is in the queue */
    ck_assert_int_eq(flush_policy_of(g), FLUSH_IMMEDIATE);
    UNTIL(!dirty(g));
    usleep(300000);
    ck_assert(dirty(f) && dirty(h)); /* of age, but `end` has none */
    ck_assert_int_eq(flush_all(NULL, NULL), 0);
    ck_assert(!dirty(f) && !dirty(h));
    lull_end();
    shut(f);
    shut(g);
    shut(h);
}
END_TEST

START_TEST(of_age)
{
    start_with((struct flush_config){.policy = FLUSH_IDLE, .dirty_age_ms = 700});
    uint64_t began = boot_ms();
    struct file *f = written("f", 1);
    struct flush_status s;
    flush_status(&s);
    ck_assert_uint_le(s.oldest_ms, boot_ms() - began);
    while (boot_ms() < began + 600)
        ck_assert(dirty(f));
    UNTIL(!dirty(f));
    UNTIL((flush_status(&s), s.oldest_ms == 0)); /* the pass ends after its last file is clean */
    lull_end();
    shut(f);
}
END_TEST

START_TEST(from_the_high_mark_to_the_low_one)
{
    /* 5 and 2 % of 512 MiB less the records */
    start_with((struct flush_config){.policy = FLUSH_END, .dirty_high = 5, .dirty_low = 2});
    struct flush_status s;
    struct file *f[30];
    char name[16];
    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        f[i] = written(name, 1);
        room_look(); /* as the sampler does, and writers */
        flush_status(&s);
        ck_assert(s.flushed_bytes == 0 || (uint64_t)i << 20 >= s.high_bytes - (2 << 20));
    }
    UNTIL((flush_status(&s), !s.draining));
    UNTIL((flush_status(&s), s.pending_bytes <= s.low_bytes));
    usleep(300000);
    flush_status(&s);
    ck_assert_uint_le(s.pending_bytes, s.low_bytes);
    ck_assert_uint_gt(s.pending_bytes, s.low_bytes / 2); /* and no further */
    ck_assert(!dirty(f[0]) && dirty(f[29]));             /* oldest first */
    lull_end();
    for (int i = 0; i < 30; i++)
        shut(f[i]);
}
END_TEST

START_TEST(a_limit_bounds_the_flush)
{
    start_with((struct flush_config){.policy = FLUSH_IDLE, .limit = 16 << 20});
    struct file *f = written("f", 24);
    uint64_t began = boot_ms();
    ck_assert_int_eq(flush_file(f), 0); /* six pieces: the last one's turn is after 5/4 s */
    ck_assert_uint_ge(boot_ms() - began, 1200);
    ck_assert_uint_le(boot_ms() - began, 5000);
    lull_end();
    shut(f);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("flush");
    TCase *t = tcase_create("flush");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 100);
    tcase_add_test(t, a_dirty_file_is_flushed_in_the_lull);
    tcase_add_test(t, writing_gives_the_mtime);
    tcase_add_test(t, activity_holds_the_flush);
    tcase_add_test(t, metadata_is_no_activity);
    tcase_add_test(t, without_an_interval_it_is_flushed_at_once);
    tcase_add_test(t, a_lull_that_ends_stops_the_flush_within_a_piece);
    tcase_add_test(t, an_idle_flusher_uses_no_cpu);
    tcase_add_test(t, one_byte_into_a_file);
    tcase_add_test(t, cut_and_extended);
    tcase_add_test(t, holes_stay_holes);
    tcase_add_test(t, larger_than_a_batch);
    tcase_add_test(t, random_changes_and_flushes);
    tcase_add_test(t, random_changes_while_it_flushes);
    tcase_add_test(t, rewritten_while_it_is_flushed);
    tcase_add_test(t, who_asks_does_not_wait_for_a_lull);
    tcase_add_test(t, many_ask_for_one_file);
    tcase_add_test(t, progress_is_told);
    tcase_add_test(t, a_file_that_is_too_large);
    tcase_add_test(t, a_failed_file_is_tried_again_by_itself);
    tcase_add_test(t, unlinked_is_never_flushed);
    tcase_add_test(t, removed_behind_our_back_keeps_the_data);
    tcase_add_test(t, a_full_pfs_loses_nothing);
    tcase_add_test(t, room_is_made_by_flushing);
    tcase_add_test(t, a_stop_in_the_middle_keeps_what_is_dirty);
    tcase_add_test(t, what_a_dead_daemon_left_is_flushed);
    tcase_add_test(t, dirty_files_are_named_in_the_session);
    tcase_add_test(t, immediate_waits_for_nothing);
    tcase_add_test(t, a_file_has_the_policy_that_it_is_given);
    tcase_add_test(t, of_age);
    tcase_add_test(t, from_the_high_mark_to_the_low_one);
    tcase_add_test(t, a_limit_bounds_the_flush);
    suite_add_tcase(s, t);
    t = tcase_create("user");
    tcase_add_checked_fixture(t, setup_user, teardown);
    tcase_add_test(t, a_file_that_may_not_be_written);
    tcase_add_test(t, a_file_without_owner_write);
    suite_add_tcase(s, t);
    return run_suite(s);
}
