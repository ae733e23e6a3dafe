/* locks_own.c - the table of the locks that this node holds. */
#include "placement/claims/locks_own.h"

#include "transport/lock.h"

#include <stdlib.h>

#define BUCKETS 1024

struct own_locks {
    struct own_locks *next;
    struct fid fid;
    struct held_lock *list;
};

static struct own_locks *table[BUCKETS];
static struct lock own_lock; /* RANK_LEAF */

void locks_own_start(void)
{
    lock_init(&own_lock, RANK_LEAF);
}

static struct own_locks **slot_of(struct fid fid)
{
    struct own_locks **p = &table[fid.lo % BUCKETS];
    while (*p && !fid_eq((*p)->fid, fid))
        p = &(*p)->next;
    return p;
}

/* Locked. */
static void apply(struct fid fid, const struct held_lock *l)
{
    struct own_locks **p = slot_of(fid);
    if (!*p) {
        *p = xcalloc(1, sizeof(**p));
        (*p)->fid = fid;
    }
    struct own_locks *o = *p;
    lock_apply(&o->list, l);
    if (!o->list) {
        *p = o->next;
        free(o);
    }
}

void locks_own_apply(struct fid fid, const struct held_lock *l)
{
    lock_take(&own_lock);
    apply(fid, l);
    lock_drop(&own_lock);
}

/* The part of l that is in the range. */
static struct held_lock part_in(const struct held_lock *l, const struct held_lock *range)
{
    struct held_lock piece = *l;
    piece.start = MAX(l->start, range->start);
    piece.end = MIN(l->end, range->end);
    return piece;
}

static bool is_in(const struct held_lock *l, const struct held_lock *range)
{
    return same_holder(l, range) && l->start <= range->end && range->start <= l->end;
}

void locks_own_take(struct fid fid, const struct held_lock *l, struct held_lock **was)
{
    const struct own_locks *own;
    struct held_lock none = *l;

    none.type = HELD_NONE;
    lock_take(&own_lock);
    own = *slot_of(fid);
    for (const struct held_lock *x = own ? own->list : NULL; x; x = x->next) {
        if (is_in(x, l)) {
            struct held_lock piece = part_in(x, l);

            lock_apply(was, &piece);
        }
    }
    apply(fid, &none);
    lock_drop(&own_lock);
}

bool locks_own_any(struct fid fid, const struct held_lock *like)
{
    bool found = false;
    lock_take(&own_lock);
    const struct own_locks *o = *slot_of(fid);
    for (const struct held_lock *l = o ? o->list : NULL; l && !found; l = l->next)
        found = same_holder(l, like);
    lock_drop(&own_lock);
    return found;
}

bool locks_own_other(struct fid fid, const struct held_lock *like)
{
    bool found = false;
    lock_take(&own_lock);
    const struct own_locks *o = *slot_of(fid);
    for (const struct held_lock *l = o ? o->list : NULL; l && !found; l = l->next)
        found = same_holder(l, like) && l->type != like->type;
    lock_drop(&own_lock);
    return found;
}

void locks_own_split(struct fid fid, const struct held_lock *range, struct held_lock **held,
                     struct held_lock **rest)
{
    lock_add(rest, range);
    lock_take(&own_lock);
    const struct own_locks *own = *slot_of(fid);
    for (const struct held_lock *l = own ? own->list : NULL; l; l = l->next) {
        struct held_lock piece = part_in(l, range);
        if (!is_in(l, range))
            continue;
        lock_add(held, &piece);
        piece.type = HELD_NONE;
        lock_apply(rest, &piece);
    }
    lock_drop(&own_lock);
}

void locks_fill(uint32_t *n, struct item_lock **list)
{
    lock_take(&own_lock);
    for (unsigned b = 0; b < BUCKETS; b++)
        for (const struct own_locks *o = table[b]; o; o = o->next)
            lock_items_add(o->fid, o->list, 0, n, list);
    lock_drop(&own_lock);
}

void locks_own_stop(void)
{
    for (unsigned b = 0; b < BUCKETS; b++) {
        struct own_locks *o;
        while ((o = table[b])) {
            table[b] = o->next;
            lock_list_free(&o->list);
            free(o);
        }
    }
    lock_destroy(&own_lock);
}
