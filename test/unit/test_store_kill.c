/* test_store_kill.c - `kill -9` at any instant: every acknowledged byte is there afterwards.
 *
 * A child opens the store, changes files at random and tells through a pipe what was acknowledged
 * (what it is about to do, and that it is done).  The parent kills it at a random instant, opens
 * the store, and compares: what was acknowledged is there; what was begun and not acknowledged is
 * there, or not, or partly, but nothing else is.  The store is not emptied between the rounds, so
 * that each starts from what the last one left.
 *
 * EDDY_TEST_SEED=n, EDDY_TEST_ROUNDS=n.
 */
#include "store_help.h"
#include "suite.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "placement/store/store_copyout.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"
#include "placement/store/store_write.h"

#define FILES    3
#define FILE_MAX (512 * KIB)
#define CHUNK    (64 * KIB)
#define LIMIT    (4 * MIB)

enum kind { WRITE, TRUNCATE, PUNCH, CLEAN };

/* What the child says: before (done 0) and after. */
struct step {
    uint32_t kind, done, file;
    uint64_t off, len, seed;
};

static uint64_t rnd_state;
static uint64_t rnd(uint64_t n)
{
    rnd_state ^= rnd_state << 13;
    rnd_state ^= rnd_state >> 7;
    rnd_state ^= rnd_state << 17;
    return n ? rnd_state % n : rnd_state;
}

static uint64_t env_number(const char *name, uint64_t otherwise)
{
    const char *s = getenv(name);
    return s && *s ? strtoull(s, NULL, 0) : otherwise;
}

/* ---- the child ---- */

static void say(int fd, const struct step *s)
{
    if (write(fd, s, sizeof(*s)) != sizeof(*s))
        _exit(3);
}

/* All dirty bytes are "flushed": clean, and cut off from eviction by nobody; the PFS is the
 * parent's shadow. */
static bool make_clean(struct file *f)
{
    struct file_info info;
    struct snapshot *s;
    store_info(f, &info);
    if (!info.dirty)
        return true;
    store_flush_begins(f);
    if (store_snapshot(f, 0, UINT64_MAX, &s))
        return false;
    store_snapshot_done(s, true);
    struct version v = {info.size, info.mtime_ns + 1, info.ctime_ns + 1};
    return store_flushed(f, &v, info.change, NULL);
}

static int try_step(struct file *f, const struct step *s, uint64_t *fill)
{
    static uint8_t buf[FILE_MAX];
    switch (s->kind) {
    case WRITE:
        put_pattern(buf, s->len, s->off, s->seed);
        return store_write(f, buf, s->len, s->off, SPACE_CACHE, fill);
    case TRUNCATE:
        return store_truncate(f, s->off, fill);
    case PUNCH:
        return store_punch(f, s->off, s->len, SPACE_CACHE, fill);
    default:
        return make_clean(f) ? 0 : -EIO;
    }
}

/* The cache holds all, so what is missing is a hole that was "flushed". */
static int run_step(struct file *f, const struct step *s)
{
    static const uint8_t zeros[CHUNK];
    uint64_t fill;
    int err;
    while ((err = try_step(f, s, &fill)) == -ENODATA) {
        struct file_info info;
        store_info(f, &info);
        uint64_t begin = fill / CHUNK * CHUNK, len = info.base.size - begin;
        err = store_fill(f, &(struct clean_chunk){.index = fill / CHUNK,
                                                  .version = info.base,
                                                  .buf = zeros,
                                                  .len = len < CHUNK ? len : CHUNK});
        if (err)
            return err;
    }
    return err;
}

static void random_step(struct step *s)
{
    static const enum kind kinds[] = {WRITE, WRITE, WRITE, WRITE, TRUNCATE, PUNCH, CLEAN};
    *s = (struct step){
        .kind = kinds[rnd(ARRAY_LEN(kinds))], .file = (uint32_t)rnd(FILES), .seed = rnd(200)};
    s->off = rnd(FILE_MAX - 1);
    uint64_t len = 1 + (rnd(2) ? rnd(100000) : rnd(5000));
    s->len = s->off + len > FILE_MAX ? FILE_MAX - s->off : len;
}

static void child(int fd)
{
    open_store(LIMIT, CHUNK);
    struct file *f[FILES];
    for (unsigned i = 0; i < FILES; i++) {
        char name[16];
        snprintf(name, sizeof(name), "file%u", i);
        f[i] = file_find(fid_n(i + 1));
        if (!f[i])
            f[i] = new_file(i + 1, name);
    }
    for (;;) {
        struct step s;
        random_step(&s);
        say(fd, &s);
        int err = run_step(f[s.file], &s);
        if (err) {
            fprintf(stderr, "step %u: %s\n", s.kind, strerror(-err));
            _exit(4);
        }
        s.done = 1;
        say(fd, &s);
    }
}

/* ---- the parent ---- */

struct shadow {
    uint8_t bytes[FILE_MAX];
    uint64_t size;
};

static void apply(struct shadow *w, const struct step *s)
{
    switch (s->kind) {
    case WRITE:
        put_pattern(w->bytes + s->off, s->len, s->off, s->seed);
        w->size = w->size > s->off + s->len ? w->size : s->off + s->len;
        break;
    case TRUNCATE:
        if (s->off < w->size)
            memset(w->bytes + s->off, 0, w->size - s->off);
        w->size = s->off;
        break;
    case PUNCH:
        if (s->off < w->size)
            memset(w->bytes + s->off, 0, s->off + s->len < w->size ? s->len : w->size - s->off);
        break;
    }
}

/* Each byte is as acknowledged, or as the step that was under way would have it.  Takes over what
 * is there. */
static void compare(unsigned n, struct shadow *w, const struct step *pending)
{
    static struct shadow maybe;
    static uint8_t have[FILE_MAX];
    struct file *f = file_find(fid_n(n + 1));
    if (!f) { /* its very first steps */
        ck_assert_uint_eq(w->size, 0);
        return;
    }
    struct file_info info;
    store_info(f, &info);
    maybe = *w;
    if (pending)
        apply(&maybe, pending);
    if (info.size != w->size && info.size != maybe.size)
        ck_abort_msg("file %u: size %llu, should be %llu (or %llu)", n,
                     (unsigned long long)info.size, (unsigned long long)w->size,
                     (unsigned long long)maybe.size);
    char *path = file_path(f);
    char name[16];
    snprintf(name, sizeof(name), "file%u", n);
    ck_assert_str_eq(path, name);
    free(path);
    memset(have, 0, sizeof(have));
    for (uint64_t at = 0, n1, miss; at < info.size; at += n1) {
        ssize_t got = store_read(f, have + at, info.size - at, at);
        ck_assert_int_ge(got, 0);
        n1 = (uint64_t)got;
        if (!n1) { /* a hole that was flushed */
            ck_assert(store_missing(f, at, info.size - at, &miss, &n1));
            ck_assert_uint_eq(miss, at);
        }
    }
    for (uint64_t i = 0; i < info.size; i++)
        if (have[i] != w->bytes[i] && have[i] != maybe.bytes[i])
            ck_abort_msg(
                "file %u: byte %llu of %llu is %u, should be %u (or %u); pending %d at %llu + %llu",
                n, (unsigned long long)i, (unsigned long long)info.size, have[i], w->bytes[i],
                maybe.bytes[i], pending ? (int)pending->kind : -1,
                pending ? (unsigned long long)pending->off : 0,
                pending ? (unsigned long long)pending->len : 0);
    memcpy(w->bytes, have, sizeof(have));
    w->size = info.size;
    file_put(f);
}

/* Reads what the child said until it is dead; returns whether a step was under way, in *last. */
static bool follow(int fd, struct shadow *w, struct step *last, uint64_t *steps)
{
    struct step s;
    bool pending = false;
    while (read(fd, &s, sizeof(s)) == sizeof(s)) {
        pending = !s.done;
        *last = s;
        if (s.done) {
            apply(&w[s.file], &s);
            ++*steps;
        }
    }
    return pending;
}

static void one_round(struct shadow *w, uint64_t *steps)
{
    int fds[2];
    ck_assert_int_eq(pipe(fds), 0);
    uint64_t us = rnd(4) ? 20000 + rnd(60000) : rnd(20000);
    pid_t pid = fork();
    if (!pid) {
        close(fds[0]);
        child(fds[1]);
    }
    close(fds[1]);
    pid_t killer =
        fork(); /* the parent reads all the time, so that the pipe never holds the child up */
    if (!killer) {
        struct timespec t = {0, (long)us * 1000};
        nanosleep(&t, NULL);
        kill(pid, SIGKILL);
        _exit(0);
    }
    struct step last;
    bool pending = follow(fds[0], w, &last, steps);
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(waitpid(killer, NULL, 0), killer);
    ck_assert_msg(WIFSIGNALED(status), "the child ended by itself: %d", WEXITSTATUS(status));
    close(fds[0]);
    open_store(LIMIT, CHUNK);
    for (unsigned i = 0; i < FILES; i++)
        compare(i, &w[i], pending && last.file == i ? &last : NULL);
    store_close(false);
}

START_TEST(a_killed_daemon_loses_nothing_that_it_acknowledged)
{
    uint64_t rounds = env_number("EDDY_TEST_ROUNDS", 40), steps = 0;
    rnd_state = env_number("EDDY_TEST_SEED", random_u64() | 1);
    printf("seed %llu\n", (unsigned long long)rnd_state);
    fflush(stdout);
    struct shadow *w = calloc(FILES, sizeof(*w));
    for (uint64_t i = 0; i < rounds; i++) {
        rnd(0); /* the child goes on from here, differently each time */
        one_round(w, &steps);
    }
    ck_assert_uint_gt(steps, rounds * 10);
    free(w);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("kill");
    tcase_add_checked_fixture(t, dir_setup, dir_teardown);
    tcase_set_timeout(t, 0);
    tcase_add_test(t, a_killed_daemon_loses_nothing_that_it_acknowledged);
    return run_case("store kill", t);
}
