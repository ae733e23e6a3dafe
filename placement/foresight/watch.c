/* watch.c - what is hinted and not here is looked at again from time to time: a name that no file had may have been made by another
 * node, or on the PFS; the bytes that another node had may be on the PFS by now; a PFS that failed may answer again.  Nobody tells
 * this node of any of these.
 *
 * The first look comes after FIRST_MS, each other one after twice the time, up to LAST_MS; and of all targets, no more than AT_ONCE
 * at a tick, the next ones of each queue first.  The timer stands still while there are none.
 */
#include "placement/foresight/watch.h"

#include "transport/base.h"
#include "transport/loop.h"

#define TICK_MS  250
#define FIRST_MS 250u
#define DOUBLED  6 /* times: LAST_MS is 16 s */
#define AT_ONCE  32u

static struct {
    void (*wake)(void);
    struct loop_timer *timer; /* network thread */
    bool wanted, set;         /* hints_lock */
} watch;

/* Those of one queue that are due; of them at most `most` begin.  *more: others are due, or will be. */
static unsigned look_again(struct queue *q, unsigned most, bool *more)
{
    unsigned n = 0;
    uint64_t now = boot_ms();
    *more = *more || q->nadmitted > q->nahead;
    for (uint32_t i = q->head; i < q->next && n < most && q->nadmitted > q->nahead; i++) {
        struct target *t = q->target[q->entry[i]];
        if (t->first != i || !hints_lacks(t) || now < t->look_ms)
            continue;
        hints_again(t);
        n++;
    }
    return n;
}

static void tick(void *arg)
{
    (void)arg;
    unsigned n = 0;
    bool more = false;
    lock_take(&hints_lock);
    for (struct queue *q = hints_queues; q; q = q->next_queue)
        if (q->started)
            n += look_again(q, AT_ONCE - n, &more);
    watch.set = more;
    lock_drop(&hints_lock);
    if (!more)
        loop_timer_stop(watch.timer);
    if (n)
        watch.wake();
}

static void set_timer(void *arg)
{
    (void)arg;
    if (watch.timer)
        loop_timer_set(watch.timer, TICK_MS, TICK_MS);
}

void watch_on(void)
{
    watch.wanted = true;
}

void watch_go(void)
{
    lock_take(&hints_lock);
    bool begins = watch.wanted && !watch.set;
    watch.set |= begins;
    watch.wanted = false;
    lock_drop(&hints_lock);
    if (begins)
        loop_post(set_timer, NULL);
}

void watch_for(struct target *t)
{
    t->look_ms = boot_ms() + (FIRST_MS << MIN(t->looks, DOUBLED));
    if (t->looks < UINT8_MAX)
        t->looks++;
    watch_on();
}

static void start_here(void *arg)
{
    (void)arg;
    watch.timer = loop_timer_new(tick, NULL);
}

static void stop_here(void *arg)
{
    (void)arg;
    loop_timer_free(watch.timer);
    watch.timer = NULL;
}

void watch_start(void (*wake)(void))
{
    watch.wake = wake;
    watch.wanted = watch.set = false;
    loop_call(start_here, NULL);
}

void watch_stop(void)
{
    loop_call(stop_here, NULL);
}
