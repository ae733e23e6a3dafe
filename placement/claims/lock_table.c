/* lock_table.c - conflicts, splitting and joining of the locks on one file. */
#include "placement/claims/lock_table.h"

#include <stdlib.h>

static bool overlap(const struct held_lock *a, const struct held_lock *b)
{
    return a->start <= b->end && b->start <= a->end;
}

const struct held_lock *lock_conflict(const struct held_lock *list, const struct held_lock *want)
{
    const struct held_lock *first = NULL;
    for (; list; list = list->next)
        if (list->kind == want->kind && !same_holder(list, want) && overlap(list, want) &&
            (list->type == HELD_WRITE || want->type == HELD_WRITE) &&
            (!first || list->start < first->start))
            first = list;
    return first;
}

void lock_add(struct held_lock **list, const struct held_lock *l)
{
    struct held_lock *copy = xmalloc(sizeof(*copy));
    *copy = *l;
    copy->next = *list;
    *list = copy;
}

/* Takes want's range out of one lock of the same holder; what is left stays in place, a second
 * remainder is added. */
static void cut_out(struct held_lock **list, struct held_lock **p, const struct held_lock *want)
{
    struct held_lock *l = *p;
    bool left = l->start<want->start, right = l->end> want->end;
    if (left && right) {
        struct held_lock rest = *l;
        rest.start = want->end + 1;
        l->end = want->start - 1;
        lock_add(list, &rest);
    } else if (left) {
        l->end = want->start - 1;
    } else if (right) {
        l->start = want->end + 1;
    } else {
        *p = l->next;
        free(l);
    }
}

static bool set_later(const struct held_lock *l, const struct held_lock *want)
{
    return want->number && l->number > want->number;
}

/* Grows `add` by a neighbour of the same holder and type, which is removed. */
static bool join_one(struct held_lock **list, struct held_lock *add)
{
    for (struct held_lock **p = list; *p; p = &(*p)->next) {
        struct held_lock *l = *p;
        if (!same_holder(l, add) || l->type != add->type)
            continue;
        if ((l->end != UINT64_MAX && l->end + 1 < add->start) ||
            (add->end != UINT64_MAX && add->end + 1 < l->start))
            continue;
        add->start = MIN(add->start, l->start);
        add->end = MAX(add->end, l->end);
        add->number = MAX(add->number, l->number);
        *p = l->next;
        free(l);
        return true;
    }
    return false;
}

bool lock_apply(struct held_lock **list, const struct held_lock *want)
{
    struct held_lock add = *want;
    bool changed = false;
    for (struct held_lock **p = list; *p;) {
        struct held_lock *l = *p;
        if (!same_holder(l, want) || !overlap(l, want) ||
            (want->type == HELD_NONE && set_later(l, want))) {
            p = &l->next;
            continue;
        }
        if (l->type == want->type && l->start <= want->start && l->end >= want->end) {
            l->number = MAX(l->number, want->number);
            return changed; /* already so */
        }
        changed = true;
        cut_out(list, p, want);
        if (*p == l)
            p = &l->next;
    }
    if (want->type == HELD_NONE)
        return changed;
    while (join_one(list, &add))
        ;
    lock_add(list, &add);
    return true;
}

bool lock_strengthen(struct held_lock **list, const struct held_lock *want)
{
    struct held_lock *rest = NULL;
    bool changed = false;
    lock_add(&rest, want);
    for (const struct held_lock *l = *list; l; l = l->next) {
        struct held_lock stronger = *want;
        if (!same_holder(l, want) || l->type != HELD_WRITE || want->type != HELD_READ)
            continue;
        stronger.start = l->start;
        stronger.end = l->end;
        stronger.type = HELD_NONE;
        stronger.number = 0;
        lock_apply(&rest, &stronger);
    }
    for (const struct held_lock *l = rest; l; l = l->next)
        changed |= lock_apply(list, l);
    lock_list_free(&rest);
    return changed;
}

bool lock_weaken(struct held_lock **list, const struct held_lock *want)
{
    struct held_lock *strong = NULL;
    bool changed = false;
    for (const struct held_lock *l = *list; l; l = l->next) {
        struct held_lock read = *want;
        if (!same_holder(l, want) || !overlap(l, want) || l->type != HELD_WRITE ||
            set_later(l, want))
            continue;
        read.start = MAX(l->start, want->start);
        read.end = MIN(l->end, want->end);
        read.type = HELD_READ;
        lock_add(&strong, &read);
    }
    for (const struct held_lock *l = strong; l; l = l->next)
        changed |= lock_apply(list, l);
    lock_list_free(&strong);
    return changed;
}

void lock_list_free(struct held_lock **list)
{
    struct held_lock *l;
    while ((l = *list)) {
        *list = l->next;
        free(l);
    }
}

/* ---- in messages ---- */

struct item_lock lock_item(struct fid fid, const struct held_lock *l)
{
    return (struct item_lock){.fid = fid,
                              .node = l->node,
                              .incarnation = l->incarnation,
                              .owner = l->owner,
                              .kind = l->kind,
                              .type = l->type,
                              .start = l->start,
                              .end = l->end,
                              .pid = l->pid};
}

struct held_lock lock_of_item(const struct item_lock *l)
{
    return (struct held_lock){.node = l->node,
                              .incarnation = l->incarnation,
                              .owner = l->owner,
                              .kind = l->kind,
                              .type = l->type,
                              .start = l->start,
                              .end = l->end,
                              .pid = l->pid};
}

void lock_items_add(struct fid fid, const struct held_lock *list, uint64_t except, uint32_t *n,
                    struct item_lock **v)
{
    for (; list; list = list->next) {
        if (except && list->node == except)
            continue;
        if (!(*n & (*n - 1)))
            *v = xrealloc(*v, MAX(2 * (size_t)*n, 1u) * sizeof(**v));
        (*v)[(*n)++] = lock_item(fid, list);
    }
}
