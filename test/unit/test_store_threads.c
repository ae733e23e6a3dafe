/* test_store_threads.c - random work on the store by writers, a flusher, an evicter and a syncer at the same
 * time is never wrong.
 */
#include "store_model.h"

#include <sched.h>
#include <stdatomic.h>

#include "placement/store/store_read.h"
#include "placement/store/store_write.h"

#define WRITERS 3
#define REGION  (FILE_MAX / WRITERS) /* not a multiple of a page: neighbours share one */

struct crowd {
    struct model m;
    pthread_rwlock_t whole; /* for reading: my region; for writing: the whole file */
    _Atomic bool stop;
    _Atomic uint64_t steps;
    uint64_t seed, rounds;
};

struct worker {
    struct crowd *c;
    unsigned n;
    pthread_t thread;
};

static void region_step(struct crowd *c, unsigned n, struct rnd *r, uint8_t *buf)
{
    uint64_t begin = n * REGION, off = begin + some_offset(r, REGION - 1);
    size_t len = least(some_length(r), begin + REGION - off);
    if (below(r, 2)) {
        put_pattern(buf, len, off, next(r));
        int err = write_filled(&c->m, buf, len, off, NULL);
        if (err == -ENOSPC)
            return; /* the flusher makes room */
        ck_assert_int_eq(err, 0);
        memcpy(c->m.shadow + off, buf, len);
    } else {
        struct file_info info;
        store_info(c->m.f, &info);
        len = off < info.size ? least(len, info.size - off) : 0;
        read_model(&c->m, buf, len, off);
        same_bytes(buf, c->m.shadow + off, len, off, "region");
    }
}

static void whole_step(struct crowd *c, struct rnd *r)
{
    struct file_info info;
    store_info(c->m.f, &info);
    c->m.size = info.size;
    if (below(r, 2))
        do_truncate(&c->m, r);
    else
        do_punch(&c->m, r);
}

static void *writer(void *arg)
{
    struct worker *w = arg;
    struct crowd *c = w->c;
    struct rnd r = {c->seed * 31 + w->n + 1};
    uint8_t *buf = malloc(FILE_MAX);
    while (!c->stop && c->steps < c->rounds) {
        bool whole = below(&r, 20) == 0;
        if (whole)
            pthread_rwlock_wrlock(&c->whole);
        else
            pthread_rwlock_rdlock(&c->whole);
        if (whole)
            whole_step(c, &r);
        else
            region_step(c, w->n, &r, buf);
        pthread_rwlock_unlock(&c->whole);
        c->steps++;
    }
    free(buf);
    return NULL;
}

/* Until the writers have done so much more. */
static void wait_for_steps(struct crowd *c, uint64_t n)
{
    uint64_t until = c->steps + n;
    while (c->steps < until && !c->stop)
        sched_yield();
}

static void let_them_write(struct model *m, struct rnd *r)
{
    wait_for_steps(m->arg, below(r, 4));
}

static void *flusher(void *arg)
{
    struct worker *w = arg;
    struct rnd r = {w->c->seed * 37 + 5};
    while (!w->c->stop)
        flush_model(&w->c->m, &r, below(&r, 3) == 0);
    return NULL;
}

static void *evicter(void *arg)
{
    struct worker *w = arg;
    struct rnd r = {w->c->seed * 41 + 7};
    while (!w->c->stop) {
        do_evict(&r);
        wait_for_steps(w->c, below(&r, 20));
    }
    return NULL;
}

static void *syncer(void *arg)
{
    struct worker *w = arg;
    struct rnd r = {w->c->seed * 43 + 9};
    while (!w->c->stop) {
        ck_assert_int_eq(store_sync(w->c->m.f), 0);
        wait_for_steps(w->c, 20 + below(&r, 100));
    }
    return NULL;
}

START_TEST(threads_that_write_flush_evict_and_sync_are_never_wrong)
{
    struct crowd c = {.seed = env_number("EDDY_TEST_SEED", random_u64() | 1),
                      .rounds = env_number("EDDY_TEST_ROUNDS", 6000)};
    printf("seed %llu\n", (unsigned long long)c.seed);
    fflush(stdout);
    model_init(&c.m);
    c.m.meanwhile = let_them_write;
    c.m.arg = &c;
    pthread_rwlock_init(&c.whole, NULL);
    void *(*const jobs[])(void *) = {writer, writer, writer, flusher, evicter, syncer, syncer};
    struct worker w[ARRAY_LEN(jobs)];
    for (unsigned i = 0; i < ARRAY_LEN(jobs); i++) {
        w[i] = (struct worker){.c = &c, .n = i};
        pthread_create(&w[i].thread, NULL, jobs[i], &w[i]);
    }
    for (unsigned i = 0; i < WRITERS; i++)
        pthread_join(w[i].thread, NULL);
    c.stop = true;
    for (unsigned i = WRITERS; i < ARRAY_LEN(jobs); i++)
        pthread_join(w[i].thread, NULL);
    struct rnd r = {c.seed};
    struct file_info info;
    c.m.meanwhile = NULL;
    store_info(c.m.f, &info);
    c.m.size = info.size;
    do_reopen(&c.m);
    model_finish(&c.m, &r);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("threads");
    tcase_add_checked_fixture(t, model_setup, model_teardown);
    tcase_set_timeout(t, 0);
    tcase_add_test(t, threads_that_write_flush_evict_and_sync_are_never_wrong);
    return run_case("store threads", t);
}
