/* lock.c - mutexes with a rank.
 *
 * With EDDY_DEBUG_LOCKS each thread has a list of the locks that it holds.  Taking a lock whose rank is
 * not above all of these aborts, with both ranks' names.  So a wrong order is found the first
 * time it is run, not the first time it deadlocks.  Without EDDY_DEBUG_LOCKS a lock is a plain mutex.
 */
#include "transport/lock.h"

#include <errno.h>
#include <execinfo.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "transport/base.h"

static void check(int err, const char *what)
{
    if (err)
        die("%s: %s", what, strerror(err));
}

#ifdef EDDY_DEBUG_LOCKS

#define HELD_MAX 16

static const char *const rank_names[] = {
    [RANK_MOUNT] = "MOUNT", [RANK_INODES] = "INODES", [RANK_INODE] = "INODE",
    [RANK_POLICY] = "POLICY", [RANK_CLAIM] = "CLAIM", [RANK_TELL] = "TELL", [RANK_FILES] = "FILES", [RANK_FILE] = "FILE",
    [RANK_DATA] = "DATA", [RANK_FLIGHT] = "FLIGHT", [RANK_SPACE] = "SPACE", [RANK_STATE] = "STATE",
    [RANK_PFS_FILE] = "PFS_FILE", [RANK_PFS] = "PFS", [RANK_HOME] = "HOME",
    [RANK_SESSION] = "SESSION", [RANK_POOL] = "POOL", [RANK_NET] = "NET", [RANK_LEAF] = "LEAF",
};

static _Thread_local const struct lock *held[HELD_MAX];
static _Thread_local unsigned nheld;

static const char *rank_name(const struct lock *l)
{
    if (l->rank < RANK_MOUNT || l->rank > RANK_LEAF)
        return "not a lock";
    return rank_names[l->rank];
}

/* The held lock of the highest rank, leaving out `except`; NULL if there is none. */
static const struct lock *held_top(const struct lock *except)
{
    const struct lock *top = NULL;
    for (unsigned i = 0; i < nheld; i++)
        if (held[i] != except && (!top || held[i]->rank > top->rank))
            top = held[i];
    return top;
}

static bool held_has(const struct lock *l)
{
    for (unsigned i = 0; i < nheld; i++)
        if (held[i] == l)
            return true;
    return false;
}

/* The calls that led here, as addresses for addr2line. */
static void say_calls(void)
{
    void *calls[32];
    backtrace_symbols_fd(calls, backtrace(calls, ARRAY_LEN(calls)), STDERR_FILENO);
}

/* pair: the first lock of a pair, beside which an equal rank is right. */
static void note_take(const struct lock *l, const struct lock *pair)
{
    if (l->rank < RANK_MOUNT || l->rank > RANK_LEAF)
        die("lock_take: %p is not a lock (rank %d): lock_init is missing", (const void *)l,
            (int)l->rank);
    if (held_has(l))
        die("lock_take: this thread already holds this lock (%s)", rank_name(l));
    const struct lock *top = held_top(pair);
    if (top && top->rank >= l->rank) {
        say_calls();
        die("wrong lock order: takes %s (%d) while it holds %s (%d)", rank_name(l), (int)l->rank,
            rank_name(top), (int)top->rank);
    }
    if (nheld == HELD_MAX)
        die("lock_take: a thread holds %d locks", HELD_MAX);
    held[nheld++] = l;
}

static void note_drop(const struct lock *l)
{
    for (unsigned i = 0; i < nheld; i++)
        if (held[i] == l) {
            held[i] = held[--nheld];
            return;
        }
    die("lock_drop: this thread does not hold this lock (%s)", rank_name(l));
}

/* After the wait the lock is taken again: nothing of a higher rank may be held then. */
static void note_wait(const struct lock *l)
{
    lock_assert_held(l);
    const struct lock *top = held_top(l);
    if (top && top->rank >= l->rank)
        die("lock_wait: waits with %s (%d) while it holds %s (%d)", rank_name(l), (int)l->rank,
            rank_name(top), (int)top->rank);
}

void lock_assert_held(const struct lock *l)
{
    if (!held_has(l))
        die("this thread must hold %s (%d) here and does not", rank_name(l), (int)l->rank);
}

void lock_assert_none(void)
{
    if (nheld)
        die("no lock may be held here: %s (%d) is", rank_name(held_top(NULL)),
            (int)held_top(NULL)->rank);
}

#else

static void note_take(const struct lock *l, const struct lock *pair)
{
    (void)l;
    (void)pair;
}

static void note_drop(const struct lock *l)
{
    (void)l;
}

static void note_wait(const struct lock *l)
{
    (void)l;
}

void lock_assert_held(const struct lock *l)
{
    (void)l;
}

void lock_assert_none(void)
{
}

#endif

void lock_init(struct lock *l, enum lock_rank rank)
{
    check(pthread_mutex_init(&l->mutex, NULL), "pthread_mutex_init");
    l->rank = rank;
}

void lock_destroy(struct lock *l)
{
    check(pthread_mutex_destroy(&l->mutex), "pthread_mutex_destroy");
}

static void take(struct lock *l, const struct lock *pair)
{
    note_take(l, pair); /* before it can deadlock */
    check(pthread_mutex_lock(&l->mutex), "pthread_mutex_lock");
}

void lock_take(struct lock *l)
{
    take(l, NULL);
}

bool lock_try(struct lock *l)
{
    int err = pthread_mutex_trylock(&l->mutex);
    if (err == EBUSY)
        return false;
    check(err, "pthread_mutex_trylock");
    note_take(l, NULL); /* a wrong order aborts, although it could not have deadlocked here */
    return true;
}

void lock_drop(struct lock *l)
{
    note_drop(l);
    check(pthread_mutex_unlock(&l->mutex), "pthread_mutex_unlock");
}

void lock_pair(struct lock *a, uint64_t a_key, struct lock *b, uint64_t b_key)
{
    if (a == b)
        die("lock_pair: both are the same lock");
    if (a->rank != b->rank)
        die("lock_pair: ranks %d and %d differ", (int)a->rank, (int)b->rank);
    bool swap = a_key != b_key ? a_key > b_key : (uintptr_t)a > (uintptr_t)b;
    struct lock *first = swap ? b : a, *second = swap ? a : b;
    take(first, NULL);
    take(second, first);
}

void lock_cond_init(pthread_cond_t *c)
{
    pthread_condattr_t attr;
    check(pthread_condattr_init(&attr), "pthread_condattr_init");
    check(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC), "pthread_condattr_setclock");
    check(pthread_cond_init(c, &attr), "pthread_cond_init");
    pthread_condattr_destroy(&attr);
}

int lock_wait(struct lock *l, pthread_cond_t *c, uint64_t timeout_ms)
{
    note_wait(l);
    if (!timeout_ms) {
        check(pthread_cond_wait(c, &l->mutex), "pthread_cond_wait");
        return 0;
    }
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    timeout_ms = MIN(timeout_ms, (uint64_t)INT32_MAX * 1000);
    t.tv_sec += (time_t)(timeout_ms / 1000);
    t.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_nsec -= 1000000000;
        t.tv_sec++;
    }
    int err = pthread_cond_timedwait(c, &l->mutex, &t);
    if (err == ETIMEDOUT)
        return -ETIMEDOUT;
    check(err, "pthread_cond_timedwait");
    return 0;
}
