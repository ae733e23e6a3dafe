/* pool.c - bounded pools of threads for what blocks.
 *
 * A job starts a thread when more wait than threads are idle and the bound is not reached.  A
 * thread without work for IDLE_MS ends; the next one that is made, or pool_free, joins it.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/base.h"
#include "transport/jobs.h"
#include "transport/lock.h"
#include "transport/loop.h"

#define IDLE_MS 10000

/* On the processors of the process's first thread: the caller may be bound to a core of its own. */
static int create(pthread_t *t, void *(*fn)(void *arg), void *arg)
{
    cpu_set_t cpus;
    pthread_attr_t attr;
    int err = pthread_attr_init(&attr);
    if (err)
        return err;
    /* more processors than a cpu_set_t has: then it inherits what the caller has */
    if (!sched_getaffinity(getpid(), sizeof(cpus), &cpus))
        pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
    err = pthread_create(t, &attr, fn, arg);
    pthread_attr_destroy(&attr);
    return err;
}

int thread_start(pthread_t *t, void *(*fn)(void *arg), void *arg, const char *name)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t block, before;
    sigfillset(&block);
    for (size_t i = 0; i < ARRAY_LEN(faults); i++)
        sigdelset(&block, faults[i]);
    pthread_sigmask(SIG_SETMASK, &block, &before);
    int err = create(t, fn, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!err)
        pthread_setname_np(*t, name);
    return -err;
}

struct pool_thread {
    pthread_t id;
    struct pool *pool;
    struct pool_thread *next; /* in ended */
};

struct pool {
    char name[16];
    unsigned max;
    bool ours; /* one of the daemon's, whose jobs count in all.jobs */

    /* with the lock */
    struct lock lock;
    pthread_cond_t work; /* a job came, or the end */
    pthread_cond_t gone; /* a thread ended */
    struct jobs queue;
    unsigned threads, idle;    /* alive; of these, waiting for work */
    struct pool_thread *ended; /* to be joined: they take no lock any more */
    bool closing;
};

struct pool *pool_names, *pool_data, *pool_waiters, *pool_proofs, *pool_writers, *pool_locks,
    *pool_session;

/* All pools of the daemon.  A job of one may submit to another, so looking at one after the
 * other cannot show whether all have finished. */
static struct {
    _Atomic size_t jobs; /* submitted and not ended */
    struct lock lock;
    pthread_cond_t none;
} all;

static void all_begin(const struct pool *p)
{
    if (p->ours)
        atomic_fetch_add(&all.jobs, 1);
}

static void all_end(const struct pool *p)
{
    if (!p->ours || atomic_fetch_sub(&all.jobs, 1) > 1)
        return;
    lock_take(&all.lock);
    pthread_cond_broadcast(&all.none);
    lock_drop(&all.lock);
}

struct pool *pool_new(const char *name, int max_threads)
{
    struct pool *p = xcalloc(1, sizeof(*p));
    strncpy(p->name, name, sizeof(p->name) - 1);
    p->max = (unsigned)MAX(max_threads, 1);
    lock_init(&p->lock, RANK_POOL);
    lock_cond_init(&p->work);
    lock_cond_init(&p->gone);
    return p;
}

/* With the lock: waits for a job; false: the thread is to end. */
static bool pool_wait(struct pool *p)
{
    int err = 0;
    p->idle++;
    while (!p->queue.n && !p->closing && !err)
        err = lock_wait(&p->lock, &p->work, IDLE_MS);
    p->idle--;
    return p->queue.n > 0;
}

static void *pool_main(void *arg)
{
    struct pool_thread *self = arg;
    struct pool *p = self->pool;
    lock_take(&p->lock);
    while (p->queue.n || pool_wait(p)) {
        struct job job = jobs_pop(&p->queue);
        lock_drop(&p->lock);
        job.fn(job.arg);
        all_end(p);
        lock_take(&p->lock);
    }
    p->threads--;
    self->next = p->ended;
    p->ended = self;
    pthread_cond_broadcast(&p->gone);
    lock_drop(&p->lock);
    return NULL;
}

/* With the lock. */
static void pool_join_ended(struct pool *p)
{
    while (p->ended) {
        struct pool_thread *t = p->ended;
        p->ended = t->next;
        pthread_join(t->id, NULL);
        free(t);
    }
}

/* With the lock. */
static void pool_add_thread(struct pool *p)
{
    pool_join_ended(p);
    struct pool_thread *t = xcalloc(1, sizeof(*t));
    t->pool = p;
    int err = thread_start(&t->id, pool_main, t, p->name);
    if (!err) {
        p->threads++;
        return;
    }
    free(t);
    if (!p->threads)
        die("pool %s: no thread can be made: %s", p->name, strerror(-err));
    static _Atomic uint64_t last;
    if (log_every(&last, 60000))
        log_warn("pool %s stays at %u threads: %s", p->name, p->threads, strerror(-err));
}

void pool_submit(struct pool *p, void (*fn)(void *arg), void *arg)
{
    all_begin(p);
    lock_take(&p->lock);
    jobs_push(&p->queue, fn, arg);
    if (p->queue.n > p->idle && p->threads < p->max)
        pool_add_thread(p);
    else
        pthread_cond_signal(&p->work);
    lock_drop(&p->lock);
}

unsigned pool_waiting(struct pool *p)
{
    lock_take(&p->lock);
    unsigned n = (unsigned)p->queue.n;
    lock_drop(&p->lock);
    return n;
}

void pool_free(struct pool *p)
{
    if (!p)
        return;
    lock_take(&p->lock);
    p->closing = true;
    pthread_cond_broadcast(&p->work);
    while (p->threads)
        lock_wait(&p->lock, &p->gone, 0);
    pool_join_ended(p);
    lock_drop(&p->lock);
    free(p->queue.v);
    pthread_cond_destroy(&p->work);
    pthread_cond_destroy(&p->gone);
    lock_destroy(&p->lock);
    free(p);
}

void pools_new(const struct pool_kind *kinds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        *kinds[i].pool = pool_new(kinds[i].name, kinds[i].max_threads);
}

void pools_free(const struct pool_kind *kinds, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        pool_free(*kinds[i].pool);
        *kinds[i].pool = NULL;
    }
}

static const struct pool_kind our_pools[] = {
    {&pool_names, "eddy-names", 32},     {&pool_data, "eddy-data", 16},
    {&pool_waiters, "eddy-waiters", 64}, {&pool_proofs, "eddy-proofs", 8},
    {&pool_writers, "eddy-writers", 64}, {&pool_locks, "eddy-locks", 16},
    {&pool_session, "eddy-session", 1},
};

int pools_start(void)
{
    lock_init(&all.lock, RANK_LEAF);
    lock_cond_init(&all.none);
    pools_new(our_pools, ARRAY_LEN(our_pools));
    for (size_t i = 0; i < ARRAY_LEN(our_pools); i++)
        (*our_pools[i].pool)->ours = true;
    return 0;
}

void pools_stop(void)
{
    if (!pool_names)
        return; /* not started */
    lock_take(&all.lock);
    while (atomic_load(&all.jobs))
        lock_wait(&all.lock, &all.none, 0);
    lock_drop(&all.lock);
    pools_free(our_pools, ARRAY_LEN(our_pools));
    pthread_cond_destroy(&all.none);
    lock_destroy(&all.lock);
}
