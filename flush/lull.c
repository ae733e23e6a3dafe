/* lull.c - activity: how many I/O requests of applications and peers are in progress, and when the
 * last one ended.
 *
 * There is a lull when no request is in progress, and there was none for the wait interval (Tatebe, Hiraga,
 * Ohtsuji, "I/O-Aware Flushing for HPC Caching Filesystem").  The beginning and the end of a request cost one
 * atomic each, and a clock read.  The last request that ends rings the bell only if a thread waits for
 * that (`wanted`).
 *
 * With --flush-wait auto the interval follows the gaps between requests (gaps.c): a request that finds no
 * other in progress notes how long there was none.
 *
 * I/O that this daemon does not serve is only seen afterwards, at a sample (lull_past).
 */
#include "flush/flush_events.h"
#include "flush/gaps.h"
#include "flush/lull.h"
#include "transport/base.h"
#include "transport/lock.h"

static _Atomic unsigned active;
static _Atomic uint64_t last_end_ms; /* boot_ms; 0: never */
static _Atomic uint64_t since_ms;    /* boot_ms: nothing was looked at before; the machine may have been up for weeks */
static _Atomic uint64_t wait_interval_ms;

/* While a request is in progress who waits looks again so often, at least and at most: the interval may get shorter. */
#define LOOK_MIN_MS UINT64_C(10)
#define LOOK_MAX_MS UINT64_C(100)

static struct {
    struct lock lock; /* RANK_LEAF */
    _Atomic bool on;
    _Atomic bool stale; /* gaps came since the interval was computed */
    uint64_t first_ms;  /* until something is known */
    struct gaps gaps;
} learned = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}};

static struct {
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t rung;
    uint64_t seq;
} bell;
static pthread_once_t bell_once = PTHREAD_ONCE_INIT;

static void bell_init(void)
{
    lock_init(&bell.lock, RANK_LEAF);
    lock_cond_init(&bell.rung);
}

void lull_set_wait(uint64_t wait_ms)
{
    atomic_store(&learned.on, false);
    atomic_store(&since_ms, boot_ms());
    atomic_store(&wait_interval_ms, wait_ms);
}

void lull_learn(uint64_t first_ms)
{
    lock_take(&learned.lock);
    learned.first_ms = first_ms;
    learned.gaps = (struct gaps){.total = 0};
    lock_drop(&learned.lock);
    atomic_store(&since_ms, boot_ms());
    atomic_store(&wait_interval_ms, first_ms);
    atomic_store(&learned.on, true);
}

/* A gap has ended, at that time (boot_ms). */
static void learn(uint64_t at)
{
    uint64_t end = atomic_load_explicit(&last_end_ms, memory_order_relaxed);
    if (!end || at < end + GAP_MIN_MS)
        return;
    lock_take(&learned.lock);
    gaps_add(&learned.gaps, at - end);
    lock_drop(&learned.lock);
    atomic_store(&learned.stale, true);
}

/* Computed by the threads that ask for it, not by the application's requests. */
uint64_t lull_wait_ms(void)
{
    if (atomic_load(&learned.on) && atomic_exchange(&learned.stale, false)) {
        lock_take(&learned.lock);
        uint64_t ms = gaps_interval(&learned.gaps, learned.first_ms);
        lock_drop(&learned.lock);
        atomic_store(&wait_interval_ms, ms);
    }
    return atomic_load(&wait_interval_ms);
}

void lull_begin(void)
{
    if (atomic_fetch_add(&active, 1) == 0 &&
        atomic_load_explicit(&learned.on, memory_order_relaxed))
        learn(boot_ms());
}

void lull_end(void)
{
    atomic_store_explicit(&last_end_ms, boot_ms(), memory_order_relaxed);
    atomic_fetch_sub(&active, 1);
}

void lull_past(uint64_t ago_ms)
{
    uint64_t now = boot_ms(), at = now - MIN(ago_ms, now), end = atomic_load(&last_end_ms);
    if (!atomic_load(&active) && atomic_load_explicit(&learned.on, memory_order_relaxed))
        learn(at);
    while (end < at && !atomic_compare_exchange_weak(&last_end_ms, &end, at))
        ;
}

uint64_t lull_idle_ms(void)
{
    if (atomic_load(&active))
        return 0;
    uint64_t end = MAX(atomic_load_explicit(&last_end_ms, memory_order_relaxed), atomic_load(&since_ms)), now = boot_ms();
    return now - MIN(now, end);
}

bool lull_now(void)
{
    return atomic_load(&active) == 0 && lull_idle_ms() >= lull_wait_ms();
}

uint64_t lull_due_ms(void)
{
    uint64_t wait = lull_wait_ms();
    if (atomic_load(&active))
        return MIN(MAX(wait, LOOK_MIN_MS), LOOK_MAX_MS);
    uint64_t idle = lull_idle_ms();
    return idle >= wait ? 0 : wait - idle;
}

uint64_t bell_seen(void)
{
    pthread_once(&bell_once, bell_init);
    lock_take(&bell.lock);
    uint64_t seq = bell.seq;
    lock_drop(&bell.lock);
    return seq;
}

void bell_ring(void)
{
    pthread_once(&bell_once, bell_init);
    lock_take(&bell.lock);
    bell.seq++;
    pthread_cond_broadcast(&bell.rung);
    lock_drop(&bell.lock);
}

void bell_wait(uint64_t seen, uint64_t timeout_ms)
{
    lock_take(&bell.lock);
    while (bell.seq == seen && lock_wait(&bell.lock, &bell.rung, timeout_ms) == 0)
        ;
    lock_drop(&bell.lock);
}
