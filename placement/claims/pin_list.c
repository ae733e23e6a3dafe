/* pin_list.c - see pin_list.h. */
#include "placement/claims/pin_list.h"

static struct {
    struct lock lock; /* RANK_LEAF */
    struct pin *list;
    bool refused; /* this node leaves: no new ones */
} pins = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}};

/* With the lock: takes it out. */
static struct pin *take_out(const struct pin_id *id, const struct file *f)
{
    for (struct pin **pp = &pins.list; *pp; pp = &(*pp)->next) {
        struct pin *p = *pp;
        if (p->id.node == id->node && p->id.incarnation == id->incarnation &&
            p->id.number == id->number && p->f == f) {
            *pp = p->next;
            return p;
        }
    }
    return NULL;
}

struct pin *pin_list_put(struct pin *p)
{
    struct pin *gone = p;
    lock_take(&pins.lock);
    if (!pins.refused) {
        gone = take_out(&p->id, p->f); /* it came twice */
        p->next = pins.list;
        pins.list = p;
    }
    lock_drop(&pins.lock);
    return gone;
}

struct pin *pin_list_take(const struct pin_id *id, const struct file *f)
{
    lock_take(&pins.lock);
    struct pin *p = take_out(id, f);
    lock_drop(&pins.lock);
    return p;
}

struct pin *pin_list_take_all(bool (*fn)(struct pin *p, const void *arg), const void *arg)
{
    struct pin *gone = NULL;
    lock_take(&pins.lock);
    for (struct pin **pp = &pins.list; *pp;) {
        struct pin *p = *pp;
        if (fn(p, arg)) {
            *pp = p->next;
            p->next = gone;
            gone = p;
        } else {
            pp = &p->next;
        }
    }
    lock_drop(&pins.lock);
    return gone;
}

bool pin_list_is_empty(void)
{
    lock_take(&pins.lock);
    bool empty = !pins.list;
    lock_drop(&pins.lock);
    return empty;
}

void pin_list_refuse(bool refused)
{
    lock_take(&pins.lock);
    pins.refused = refused;
    lock_drop(&pins.lock);
}

void pin_list_of(const struct file *f, void (*fn)(void *arg, const struct pin_id *id), void *arg)
{
    lock_take(&pins.lock);
    for (const struct pin *p = pins.list; p; p = p->next)
        if (p->f == f)
            fn(arg, &p->id);
    lock_drop(&pins.lock);
}
