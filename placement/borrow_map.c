/* borrow_map.c - which node has which unit of a file, as far as this node knows: its own units count, those of other nodes
 * are hints, which the other node corrects by "not mine".
 */
#include <stdlib.h>

#include "placement/borrow_map.h"
#include "transport/members.h"

#define NODES_MAX 4096u

/* ---- the part ---- */

static void part_begin(struct file *f, struct file_part *part)
{
    struct borrow *b = (struct borrow *)part;
    (void)f;
    lock_init(&b->lock, RANK_LEAF);
    lock_cond_init(&b->changed);
}

static void part_end(struct file_part *part)
{
    struct borrow *b = (struct borrow *)part;
    unit_clear_all(&b->map);
    free(b->node);
    pthread_cond_destroy(&b->changed);
    lock_destroy(&b->lock);
}

const struct file_part_ops borrow_ops = {
    .size = sizeof(struct borrow), .begin = part_begin, .end = part_end};

/* ---- who has what ---- */

/* Lock held. */
static struct place place_at(struct borrow *b, uint64_t off, uint64_t len)
{
    uint64_t first = off / LOAN_UNIT, last = (off + len - 1) / LOAN_UNIT;
    uint64_t until = unit_same_until(&b->map, first, last);
    struct place p = {.number = unit_get(&b->map, first),
                      .len = until >= last ? len : (until + 1) * LOAN_UNIT - off};
    if (p.number >= UNIT_NODES)
        p.node = b->node[p.number - UNIT_NODES];
    if (p.number == UNIT_MINE && (b->unanswered || b->is_void))
        p.number = 0;
    b->using += p.number == UNIT_MINE;
    return p;
}

/* Lock held. */
static bool goes_back(const struct borrow *b)
{
    return b->returning && !b->unanswered;
}

struct place borrow_place(struct borrow *b, uint64_t off, uint64_t len)
{
    lock_take(&b->lock);
    while (goes_back(b))
        lock_wait(&b->lock, &b->changed, 0);
    struct place p = place_at(b, off, len);
    lock_drop(&b->lock);
    return p;
}

struct place borrow_place_now(struct borrow *b, uint64_t off, uint64_t len)
{
    lock_take(&b->lock);
    struct place p = goes_back(b) ? (struct place){0} : place_at(b, off, len);
    lock_drop(&b->lock);
    return p;
}

bool borrow_is_void(struct borrow *b)
{
    lock_take(&b->lock);
    bool is = b->is_void;
    lock_drop(&b->lock);
    return is;
}

void borrow_use_end(struct file *f)
{
    struct borrow *b = borrow_of(f);
    lock_take(&b->lock);
    if (!--b->using)
        pthread_cond_broadcast(&b->changed);
    lock_drop(&b->lock);
}

void borrow_doubt(struct file *f)
{
    struct borrow *b = borrow_of(f);
    lock_take(&b->lock);
    b->unsure = true;
    lock_drop(&b->lock);
}

void borrow_unknown(struct borrow *b, const struct place *p, uint64_t off)
{
    lock_take(&b->lock);
    if (p->number >= UNIT_NODES)
        unit_clear(&b->map, (uint16_t)p->number);
    for (uint64_t unit = off / LOAN_UNIT; unit <= (off + p->len - 1) / LOAN_UNIT; unit++)
        if (unit_get(&b->map, unit) == UNIT_CLAIMANTS)
            unit_set(&b->map, unit, 0);
    lock_drop(&b->lock);
}

/* ---- what LENT says ---- */

/* Lock held.  0: there are too many nodes. */
static uint16_t number_of(struct borrow *b, uint64_t node)
{
    for (unsigned i = 0; i < b->nodes; i++)
        if (b->node[i] == node)
            return (uint16_t)(UNIT_NODES + i);
    if (b->nodes == NODES_MAX)
        return 0;
    b->node = xrealloc(b->node, (b->nodes + 1) * sizeof(*b->node));
    b->node[b->nodes++] = node;
    return (uint16_t)(UNIT_NODES + b->nodes - 1);
}

void borrow_note(struct borrow *b, const struct body_lent *lent, bool mine)
{
    for (uint32_t i = 0; i < lent->parts.n; i++) {
        const struct item_lent *p = &lent->parts.v[i];
        bool own = p->node == members_self();
        uint16_t number = own ? UNIT_MINE : number_of(b, p->node);
        if (!number || (own && !mine) || p->last < p->first || p->last - p->first >= LEND_MAX)
            continue;
        for (uint64_t unit = p->first; unit <= p->last; unit++)
            if (own || unit_get(&b->map, unit) != UNIT_MINE)
                unit_set(&b->map, unit, number);
    }
}

void borrow_own_nothing(struct borrow *b)
{
    for (uint64_t unit = 0, last; unit_next_run(&b->map, UNIT_MINE, &unit, &last);)
        while (unit <= last)
            unit_set(&b->map, unit++, 0);
}

struct unit_sum borrow_units(struct borrow *b)
{
    lock_take(&b->lock);
    struct unit_sum sum = unit_sum_of(&b->map, UNIT_MINE);
    lock_drop(&b->lock);
    return sum;
}
