/* syncs.c - see syncs.h. */
#include "placement/store/syncs.h"

void syncs_init(struct syncs *s)
{
    *s = (struct syncs){0};
    lock_init(&s->lock, RANK_LEAF);
    lock_cond_init(&s->changed);
}

void syncs_destroy(struct syncs *s)
{
    lock_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
}

void sync_begin(struct syncs *s, struct sync_turn *t)
{
    lock_take(&s->lock);
    struct sync_turn **last = &s->first;
    while (*last)
        last = &(*last)->next;
    *t = (struct sync_turn){.number = ++s->number, .failures = s->failures};
    *last = t;
    lock_drop(&s->lock);
}

/* Is one under way whose number is at most this? */
static bool runs(const struct syncs *s, uint64_t number)
{
    for (const struct sync_turn *t = s->first; t && t->number <= number; t = t->next)
        if (!t->ended)
            return true;
    return false;
}

static void take_out(struct syncs *s, struct sync_turn *t)
{
    struct sync_turn **p = &s->first;
    while (*p != t)
        p = &(*p)->next;
    *p = t->next;
}

/* With the lock. */
static int end(struct syncs *s, struct sync_turn *t, int err)
{
    t->ended = true;
    if (err) {
        s->failures++;
        s->err = err;
    }
    pthread_cond_broadcast(&s->changed);
    uint64_t now = s->number;
    while (s->failures == t->failures && runs(s, now))
        lock_wait(&s->lock, &s->changed, 0);
    take_out(s, t);
    return s->failures == t->failures ? 0 : err ? err : s->err;
}

int sync_end(struct syncs *s, struct sync_turn *t, int err)
{
    lock_take(&s->lock);
    err = end(s, t, err);
    lock_drop(&s->lock);
    return err;
}

int sync_end_of_all(struct syncs *s, struct sync_turn *t, int err)
{
    lock_take(&s->lock);
    err = end(s, t, err);
    if (!err)
        s->err = 0;
    lock_drop(&s->lock);
    return err;
}

int syncs_failed(struct syncs *s)
{
    lock_take(&s->lock);
    int err = s->err;
    lock_drop(&s->lock);
    return err;
}

uint64_t syncs_failures(struct syncs *s)
{
    lock_take(&s->lock);
    uint64_t n = s->failures;
    lock_drop(&s->lock);
    return n;
}
