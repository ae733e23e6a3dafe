/* store_lend.c - what is lent, and to which nodes (store_lend.h). */
#include "placement/store/store_lend.h"

#include <errno.h>
#include <stdlib.h>

#include "placement/store/pages.h"
#include "placement/store/state_table.h"
#include "placement/store/store_int.h"
#include "placement/store/store_lending.h"

#define BORROWERS_MAX 4096u

static uint64_t unit_of(uint64_t page)
{
    return page / UNIT_PAGES;
}

/* ---- what it forbids here ---- */

bool store_is_lent(struct file *f)
{
    return __atomic_load_n(&f->rec->lent, __ATOMIC_ACQUIRE);
}

/* The first page in [first, last] that is lent, if `is`, or is not; last + 1: there is none. */
static uint64_t find_page(const struct file *f, uint64_t first, uint64_t last, bool is)
{
    const struct unit_map *m = &f->lending->map;
    for (uint64_t page = first; page <= last;) {
        uint64_t unit = unit_of(page), until = unit_same_until(m, unit, unit_of(last));
        if (!!unit_get(m, unit) == is)
            return page;
        if (until >= unit_of(last))
            break;
        page = (until + 1) * UNIT_PAGES;
    }
    return last + 1;
}

bool lending_is_vague(const struct file *f)
{
    return f->rec->lent && (!f->lending || !f->lending->known);
}

uint64_t lent_next(const struct file *f, uint64_t first, uint64_t last)
{
    if (lending_is_vague(f))
        return first;
    if (!f->lending)
        return last + 1;
    return find_page(f, first, last, true);
}

uint64_t lent_end(const struct file *f, uint64_t first, uint64_t last)
{
    if (lending_is_vague(f))
        return last + 1;
    if (!f->lending)
        return first;
    return find_page(f, first, last, false);
}

bool lent_all(const struct file *f, uint64_t node, uint64_t first, uint64_t last)
{
    uint16_t number = f->lending && !lending_is_vague(f) ? lending_number_of(f->lending, node) : 0;
    const struct unit_map *m = number ? &f->lending->map : NULL;
    return m && unit_get(m, unit_of(first)) == number && unit_same_until(m, unit_of(first), unit_of(last)) >= unit_of(last);
}

/* ---- beginning and end ---- */

int store_share_begin(struct file *f)
{
    int err = 0;
    lock_take(&f->lock);
    if (core(f)->flags & CORE_DELETED || f->unlinked)
        err = -EIDRM;
    else if (f->kernel_io.opens || f->shadow)
        err = -EBUSY;
    else if (has_kernel_io(f))
        err = -EAGAIN;
    if (!err) {
        f->shares++;
        f->shared = true;
    }
    lock_drop(&f->lock);
    return err;
}

void lending_look_shared(struct file *f)
{
    f->shared = f->shares || f->rec->lent;
}

void store_share_end(struct file *f)
{
    lock_take(&f->lock);
    f->shares--;
    lending_look_shared(f);
    lock_drop(&f->lock);
}

/* ---- borrowers ---- */

uint16_t lending_number_of(const struct lending *l, uint64_t node)
{
    for (unsigned i = 0; i < l->n; i++)
        if (l->who[i].node.id == node)
            return (uint16_t)(i + 1);
    return 0;
}

/* 0: there are too many. */
static uint16_t make_number(struct lending *l, struct lend_node node, uint64_t since)
{
    unsigned free = 0;
    uint16_t number = lending_number_of(l, node.id);
    if (number)
        return number;
    while (free < l->n && l->who[free].node.id)
        free++;
    if (free == BORROWERS_MAX)
        return 0;
    if (free == l->n)
        l->who = xrealloc(l->who, ++l->n * sizeof(*l->who));
    l->who[free] = (struct borrower){node, since};
    return (uint16_t)(free + 1);
}

unsigned store_borrowers(struct file *f, uint64_t *out, unsigned max)
{
    unsigned n = 0;
    lock_take(&f->lock);
    const struct lending *l = f->lending;
    for (unsigned i = 0; l && i < l->n; i++) {
        if (l->who[i].node.id && n < max)
            out[n] = l->who[i].node.id;
        n += l->who[i].node.id != 0;
    }
    lock_drop(&f->lock);
    return n;
}

struct unit_sum store_lent_units(struct file *f, uint64_t node)
{
    struct unit_sum sum = {0, 0, 0};
    lock_take(&f->lock);
    uint16_t number = f->lending ? lending_number_of(f->lending, node) : 0;
    if (number)
        sum = unit_sum_of(&f->lending->map, number);
    lock_drop(&f->lock);
    return sum;
}

uint64_t store_borrower_inc(struct file *f, uint64_t node)
{
    lock_take(&f->lock);
    const struct lending *l = f->lending;
    uint16_t number = l ? lending_number_of(l, node) : 0;
    uint64_t inc = number ? l->who[number - 1].node.inc : 0;
    lock_drop(&f->lock);
    return inc;
}

/* ---- lending ---- */

static bool is_untouched(struct file *f, uint64_t unit)
{
    uint64_t first = unit * UNIT_PAGES, last = first + UNIT_PAGES - 1;
    return !unit_get(&f->lending->map, unit) && pages_find(f, first, last, BITS_VALID, true) > last &&
           pages_find(f, first, last, BITS_DIRTY, true) > last;
}

static int may_lend(const struct file *f)
{
    const struct file_core *c = core(f);
    if (f->lending->stopped || !f->lending->known || c->flags & CORE_DELETED || f->unlinked)
        return -EAGAIN;
    bool owed = c->cut != NO_CUT || !(c->flags & CORE_BASE) || c->base.size > c->base_end;
    return owed && !f->rec->lent ? -EBUSY : 0;
}

/* With a DROP op on their pages. */
static int lend_units(struct file *f, struct lend_node node, uint64_t first, uint64_t last)
{
    int err = may_lend(f);
    uint16_t number = 0;
    for (uint64_t unit = first; !err && unit <= last; unit++) {
        if (!is_untouched(f, unit))
            continue;
        if (!number && !(number = make_number(f->lending, node, f->lending->epoch)))
            return -ENOSPC;
        store_not_whole(f);
        __atomic_store_n(&f->rec->lent, 1, __ATOMIC_RELEASE);
        err = unit_set(&f->lending->map, unit, number);
    }
    return err;
}

struct lending *lending_of(struct file *f)
{
    if (!f->lending) {
        f->lending = xcalloc(1, sizeof(*f->lending));
        f->lending->known = !f->rec->lent;
        f->lending->epoch = store.dir.incarnation & ~(uint64_t)UINT32_MAX; /* the number of starts */
    }
    return f->lending;
}

int lending_note(struct lending *l, struct lend_node node, uint64_t first, uint64_t last)
{
    uint16_t number = make_number(l, node, 0);
    int err = number ? 0 : -ENOSPC;
    for (uint64_t unit = first; !err && unit <= last; unit++)
        err = unit_set(&l->map, unit, number);
    return err;
}

int store_lent_found(struct file *f, struct lend_node node, uint64_t first, uint64_t last)
{
    lock_take(&f->lock);
    int err = lending_note(lending_of(f), node, first, last);
    lock_drop(&f->lock);
    return err;
}

void store_lent_lost(struct file *f)
{
    lock_take(&f->lock);
    struct lending *l = f->lending;
    if (l && !l->known) {
        unit_clear_all(&l->map);
        l->n = 0;
    }
    lock_drop(&f->lock);
}

int store_lend(struct file *f, struct lend_node node, uint64_t first, uint64_t last)
{
    struct range_op op;
    lock_take(&f->lock);
    lending_of(f);
    range_begin(f, &op, RANGE_DROP, first * UNIT_PAGES, last * UNIT_PAGES + UNIT_PAGES - 1);
    int err = lend_units(f, node, first, last);
    range_end(f, &op);
    lock_drop(&f->lock);
    return err;
}

uint64_t store_lent_to(struct file *f, uint64_t unit, uint64_t last, uint64_t *until)
{
    uint64_t node = 0;
    *until = last;
    lock_take(&f->lock);
    const struct lending *l = f->lending;
    if (l && l->map.set) {
        uint16_t number = unit_get(&l->map, unit);
        *until = unit_same_until(&l->map, unit, last);
        node = number ? l->who[number - 1].node.id : 0;
    }
    lock_drop(&f->lock);
    return node;
}

uint64_t store_lend_stop(struct file *f)
{
    lock_take(&f->lock);
    struct lending *l = lending_of(f);
    if (!l->stopped++)
        l->before_stop = l->epoch;
    uint64_t epoch = ++l->epoch;
    lock_drop(&f->lock);
    return epoch;
}

uint64_t store_lent_epoch(struct file *f)
{
    lock_take(&f->lock);
    const struct lending *l = lending_of(f);
    uint64_t epoch = l->stopped ? l->before_stop : l->epoch;
    lock_drop(&f->lock);
    return epoch;
}

uint64_t store_lend_epoch(struct file *f)
{
    lock_take(&f->lock);
    uint64_t epoch = f->lending ? f->lending->epoch : 0;
    lock_drop(&f->lock);
    return epoch;
}

uint64_t store_lend_next_epoch(struct file *f)
{
    lock_take(&f->lock);
    uint64_t epoch = ++lending_of(f)->epoch;
    lock_drop(&f->lock);
    return epoch;
}

void store_lend_go(struct file *f)
{
    lock_take(&f->lock);
    f->lending->stopped--;
    lock_drop(&f->lock);
}

/* ---- the end of the file's object ---- */

void store_lend_free(struct file *f)
{
    if (!f->lending)
        return;
    unit_clear_all(&f->lending->map);
    free(f->lending->who);
    free(f->lending);
    f->lending = NULL;
}
