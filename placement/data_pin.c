/* data_pin.c - see data_pin.h.
 *
 * A pin keeps the claim where it is, so a claimant must hear of the end of each open that it counts.  It drops the pins of
 * nodes that leave its view.  But a claimant that was cut off itself, and comes back, sees the same nodes as before, and
 * has not heard what they said meanwhile.  So what it has not heard is kept here, and said again while it is a member.
 */
#include "placement/data_pin.h"

#include "placement/data_int.h"
#include "transport/loop.h"
#include "transport/members.h"
#include "transport/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define UNPINS   5    /* at once */
#define AGAIN_MS 2000 /* then */

struct unheard {
    struct unheard *next;
    struct file *f;
    uint64_t node, number;
};

static struct {
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t said;
    struct unheard *list;
    bool saying; /* a job says it */
    bool ended;
} owed = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}, .said = PTHREAD_COND_INITIALIZER};

static struct loop_timer *timer; /* network thread */

static int pin_as(struct file *f, enum carry_op op, uint64_t node, uint64_t number)
{
    struct change c = {.op = op, .off = number};
    return carry_write(node, f, &c, NULL);
}

/* ---- what was not heard ---- */

static void drop(struct unheard *u)
{
    file_put(u->f);
    free(u);
}

static void put(struct unheard *u)
{
    lock_take(&owed.lock);
    bool ended = owed.ended;
    if (!ended) {
        u->next = owed.list;
        owed.list = u;
    }
    lock_drop(&owed.lock);
    if (ended)
        drop(u);
}

static struct unheard *take_all(void)
{
    lock_take(&owed.lock);
    struct unheard *all = owed.list;
    owed.list = NULL;
    lock_drop(&owed.lock);
    return all;
}

/* The number is of one open: a later daemon of the node does not know it, and loses nothing. */
static bool is_over(const struct unheard *u)
{
    const struct view *v = members_view();
    if (!v || (!view_member(v, u->node) && view_absent(v, u->node)))
        return false;
    if (!view_member(v, u->node))
        return true;
    int err = pin_as(u->f, CARRY_UNPIN, u->node, u->number);
    return !err || err == -ENOENT;
}

static void say_all(void)
{
    struct unheard *next;
    for (struct unheard *u = take_all(); u; u = next) {
        next = u->next;
        if (is_over(u))
            drop(u);
        else
            put(u);
    }
}

static void say(void *arg)
{
    (void)arg;
    say_all();
    lock_take(&owed.lock);
    owed.saying = false;
    pthread_cond_broadcast(&owed.said);
    lock_drop(&owed.lock);
}

static void on_timer(void *arg)
{
    (void)arg;
    lock_take(&owed.lock);
    bool idle = !owed.saying, begin = idle && owed.list && !owed.ended;
    owed.saying |= begin;
    lock_drop(&owed.lock);
    if (begin)
        pool_submit(pool_waiters, say, NULL);
    else if (idle)
        loop_timer_stop(timer);
}

static void arm(void *arg)
{
    (void)arg;
    lock_take(&owed.lock);
    bool ended = owed.ended;
    lock_drop(&owed.lock);
    if (ended)
        return;
    if (!timer)
        timer = loop_timer_new(on_timer, NULL);
    loop_timer_set(timer, AGAIN_MS, AGAIN_MS);
}

static void owe(struct file *f, uint64_t node, uint64_t number)
{
    struct unheard *u = xcalloc(1, sizeof(*u));
    *u = (struct unheard){.f = file_ref(f), .node = node, .number = number};
    put(u);
    loop_post(arm, NULL);
}

static void free_timer(void *arg)
{
    (void)arg;
    if (timer)
        loop_timer_free(timer);
    timer = NULL;
}

void data_pins_stop(void)
{
    struct unheard *next;
    lock_take(&owed.lock);
    owed.ended = true;
    while (owed.saying)
        lock_wait(&owed.lock, &owed.said, 0);
    lock_drop(&owed.lock);
    loop_call(free_timer, NULL);
    for (struct unheard *u = take_all(); u; u = next) {
        next = u->next;
        drop(u);
    }
}

/* ---- opens that are counted ---- */

int data_pin(struct file *f, uint64_t node, uint64_t number)
{
    int err = pin_as(f, CARRY_PIN_WRITER, node, number);
    if (err == -EAGAIN)
        owe(f, node, number); /* it may have heard it */
    return err;
}

void data_unpin(struct file *f, uint64_t node, uint64_t number)
{
    int err = -EAGAIN;
    for (unsigned i = 0; i < UNPINS && err == -EAGAIN; i++)
        err = pin_as(f, CARRY_UNPIN, node, number);
    if (err && err != -ENOENT)
        owe(f, node, number);
}

int data_pin_handle(struct data_handle *h, uint64_t node, struct carry_result *said)
{
    struct carry_result any;
    struct change c = {.op = h->writes ? CARRY_PIN_WRITER : CARRY_PIN_READER, .mode = h->appends};
    lock_take(&h->lock);
    if (!h->pin_number)
        h->pin_number = random_u64() | 1;
    c.off = h->pin_number;
    bool again = node == h->pinned || node == h->pin_asked;
    uint64_t other = again ? 0 : h->pin_asked;
    if (node != h->pinned)
        h->pin_asked = node;
    lock_drop(&h->lock);
    if (other)
        owe(h->f, other, c.off);
    return carry_write(node, h->f, &c, said ? said : &any);
}

void data_pins_moved(struct data_handle *h, uint64_t before, uint64_t now)
{
    lock_take(&h->lock);
    uint64_t asked = h->pin_asked;
    h->pin_asked = 0;
    lock_drop(&h->lock);
    if (before && before != now)
        data_unpin(h->f, before, h->pin_number);
    if (asked && asked != now && asked != before)
        data_unpin(h->f, asked, h->pin_number);
}
