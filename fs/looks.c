/* looks.c - many looks at the PFS, several at a time.
 *
 * A PFS that answers after half a millisecond can answer eight questions in that time.  If its
 * answers are in this node's memory, one thread alone asks, because waking another takes longer than a look.
 */
#include "fs/looks.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "transport/base.h"
#include "transport/loop.h"

#define THREADS_MAX   8
#define US_PER_THREAD 50 /* us of a look that are worth one more thread */

struct job {
    void (*look)(void *arg, unsigned k);
    void (*done)(void *arg);
    void *arg;
    unsigned n;
    _Atomic unsigned next, left; /* looks not begun; not ended */
    _Atomic unsigned refs;       /* threads; one that comes late finds nothing to do */
};

/* How long a look takes, us: a moving mean.  One look may have taken long only because it waited for a
 * processor, so only several long looks move the mean far. */
static _Atomic uint64_t mean_us;

static uint64_t mean(void)
{
    return atomic_load_explicit(&mean_us, memory_order_relaxed);
}

void looks_took(uint64_t us)
{
    uint64_t was = mean();
    us = MIN(us, 2 * was + US_PER_THREAD);
    atomic_store_explicit(&mean_us, (3 * was + us) / 4, memory_order_relaxed);
}

bool looks_are_slow(void)
{
    return mean() >= US_PER_THREAD;
}

static unsigned threads_for(unsigned n)
{
    return (unsigned)MIN(MIN(1 + mean() / US_PER_THREAD, (uint64_t)THREADS_MAX), MAX(n, 1u));
}

static void work(void *arg)
{
    struct job *j = arg;
    uint64_t began = boot_ns();
    unsigned ended = 0, k;
    bool last = false;
    while ((k = atomic_fetch_add(&j->next, 1)) < j->n) {
        j->look(j->arg, k);
        ended++;
        last = atomic_fetch_sub(&j->left, 1) == 1;
    }
    if (ended)
        looks_took((boot_ns() - began) / 1000 / ended);
    if (last)
        j->done(j->arg);
    if (atomic_fetch_sub(&j->refs, 1) == 1)
        free(j);
}

void looks_run(unsigned n, void (*look)(void *arg, unsigned k), void (*done)(void *arg), void *arg)
{
    if (!n) {
        done(arg);
        return;
    }
    struct job *j = xcalloc(1, sizeof(*j));
    unsigned threads = threads_for(n);
    *j = (struct job){.look = look, .done = done, .arg = arg, .n = n, .left = n, .refs = threads};
    for (unsigned t = 1; t < threads; t++)
        pool_submit(pool_names, work, j);
    work(j);
}
