/* range.c - the list of page ranges in work of a file (range.h has the table). */
#include "placement/store/range.h"

static bool overlap(const struct range_op *op, uint64_t first, uint64_t last)
{
    return op->first <= last && first <= op->last;
}

static bool beside(enum range_kind a, enum range_kind b)
{
    if (a == RANGE_DROP || b == RANGE_DROP)
        return false;
    return a == RANGE_PIN || b == RANGE_PIN || (a == RANGE_READ && b == RANGE_READ);
}

/* Is there an earlier one that op must wait for? */
static bool must_wait(const struct file *f, const struct range_op *op)
{
    for (const struct range_op *o = f->ops; o != op; o = o->next)
        if (overlap(o, op->first, op->last) && !beside(o->kind, op->kind))
            return true;
    return false;
}

static void add(struct file *f, struct range_op *op, enum range_kind kind, uint64_t first,
                uint64_t last)
{
    struct range_op **end = &f->ops;
    while (*end)
        end = &(*end)->next;
    *op = (struct range_op){.first = first, .last = last, .kind = kind};
    *end = op;
}

bool range_begin(struct file *f, struct range_op *op, enum range_kind kind, uint64_t first,
                 uint64_t last)
{
    bool waited = false;
    add(f, op, kind, first, last);
    for (; must_wait(f, op); waited = true)
        lock_wait(&f->lock, &f->changed, 0);
    return waited;
}

bool range_try(struct file *f, struct range_op *op, enum range_kind kind, uint64_t first,
               uint64_t last)
{
    add(f, op, kind, first, last);
    bool waits = must_wait(f, op);
    if (waits)
        range_end(f, op);
    return !waits;
}

void range_end(struct file *f, struct range_op *op)
{
    struct range_op **p = &f->ops;
    while (*p != op)
        p = &(*p)->next;
    *p = op->next;
    if (f->ops)
        pthread_cond_broadcast(&f->changed);
}

bool range_busy(const struct file *f, uint64_t first, uint64_t last)
{
    for (const struct range_op *o = f->ops; o; o = o->next)
        if (overlap(o, first, last))
            return true;
    return false;
}

bool range_changing(const struct file *f, uint64_t page, uint64_t *until)
{
    *until = UINT64_MAX;
    for (const struct range_op *o = f->ops; o; o = o->next) {
        if (o->kind != RANGE_WRITE && o->kind != RANGE_DROP)
            continue;
        if (overlap(o, page, page)) {
            *until = o->last;
            return true;
        }
        if (o->first > page)
            *until = MIN(*until, o->first - 1);
    }
    return false;
}
