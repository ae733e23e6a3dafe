/* working.c - one timer for all requests that are being worked on; it runs only while there are some. */
#include "placement/chunks/working.h"

#include "transport/lock.h"
#include "transport/loop.h"
#include "transport/peer.h"

#define WORKING_MS 1000

static struct {
    pthread_once_t once;
    struct lock lock; /* RANK_FLIGHT: held while peer_working queues, so that m stays */
    struct working *list;
    struct loop_timer *timer; /* network thread */
    bool armed;               /* network thread */
} all = {.once = PTHREAD_ONCE_INIT};

static void init(void)
{
    lock_init(&all.lock, RANK_FLIGHT);
}

static void on_timer(void *arg)
{
    (void)arg;
    lock_take(&all.lock);
    for (struct working *w = all.list; w; w = w->next)
        peer_working(w->m);
    bool idle = !all.list;
    lock_drop(&all.lock);
    if (idle) {
        loop_timer_stop(all.timer);
        all.armed = false;
    }
}

void working_begin(struct working *w, const struct msg *m)
{
    pthread_once(&all.once, init);
    w->m = m;
    lock_take(&all.lock);
    w->next = all.list;
    w->prev = &all.list;
    if (w->next)
        w->next->prev = &w->next;
    all.list = w;
    lock_drop(&all.lock);

    if (!all.timer)
        all.timer = loop_timer_new(on_timer, NULL);
    if (!all.armed)
        loop_timer_set(all.timer, WORKING_MS, WORKING_MS);
    all.armed = true;
}

void working_end(struct working *w)
{
    lock_take(&all.lock);
    *w->prev = w->next;
    if (w->next)
        w->next->prev = w->prev;
    lock_drop(&all.lock);
}

static void free_timer(void *arg)
{
    (void)arg;
    if (all.timer)
        loop_timer_free(all.timer);
    all.timer = NULL;
    all.armed = false;
}

void working_stop(void)
{
    loop_call(free_timer, NULL);
}
