/* home_time.c - the home's clock: its timer, and the calls that are made at the next tick.
 *
 * One timer serves both: it is set for the earliest time that was asked for.
 */
#include "placement/claims/home_int.h"
#include "transport/loop.h"

#include <stdlib.h>

#define LATER_MS 100

static struct loop_timer *timer;
static _Atomic uint64_t due_ms; /* of the timer, 0: not set */
static void (*each_tick)(void);

/* A call that is to be made at the next tick. */
static struct later {
    struct later *next;
    void (*fn)(void *arg), (*drop)(void *arg);
    void *arg;
} * laters, **laters_end = &laters;

static void arm_here(void *arg)
{
    home_arm((uintptr_t)arg);
}

void home_arm(uint64_t ms)
{
    uint64_t at = boot_ms() + ms, due = due_ms;
    if (due && due <= at)
        return;
    if (!loop_is_here()) {
        loop_post(arm_here, (void *)(uintptr_t)ms);
        return;
    }
    if (!timer)
        return;
    due_ms = at;
    loop_timer_set(timer, ms, 0);
}

void home_later(void (*fn)(void *arg), void (*drop)(void *arg), void *arg)
{
    if (!timer) { /* after home_stop */
        if (drop)
            drop(arg);
        return;
    }
    struct later *l = xcalloc(1, sizeof(*l));
    l->fn = fn;
    l->drop = drop;
    l->arg = arg;
    *laters_end = l; /* in order: locks are asked for again in the order they came */
    laters_end = &l->next;
    home_arm(LATER_MS);
}

static void run_laters(void)
{
    struct later *list = laters;
    laters = NULL;
    laters_end = &laters;
    struct later *l;
    while ((l = list)) {
        list = l->next;
        l->fn(l->arg);
        free(l);
    }
}

static void tick(void *arg)
{
    (void)arg;
    due_ms = 0;
    run_laters();
    each_tick();
}

void home_time_start(void (*on_tick)(void))
{
    each_tick = on_tick;
    timer = loop_timer_new(tick, NULL);
}

void home_time_stop(void)
{
    struct later *l;
    while ((l = laters)) {
        laters = l->next;
        if (l->drop)
            l->drop(l->arg);
        free(l);
    }
    laters_end = &laters;
    loop_timer_free(timer);
    timer = NULL;
    due_ms = 0;
}
