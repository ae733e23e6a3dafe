/* unit_map.c - see unit_map.h. */
#include "placement/store/unit_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LEAF_UNITS 4096u

struct unit_leaf {
    uint64_t index; /* of its first unit, in leaves */
    uint32_t set;   /* of its units */
    uint16_t number[LEAF_UNITS];
};

/* The first leaf whose index is >= index. */
static size_t find(const struct unit_map *m, uint64_t index)
{
    size_t low = 0, high = m->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (m->leaf[mid]->index < index)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct unit_leaf *leaf_of(const struct unit_map *m, uint64_t unit)
{
    size_t at = find(m, unit / LEAF_UNITS);
    return at < m->n && m->leaf[at]->index == unit / LEAF_UNITS ? m->leaf[at] : NULL;
}

static struct unit_leaf *leaf_new(struct unit_map *m, uint64_t index)
{
    if (m->n == UNIT_LEAVES_MAX)
        return NULL;
    size_t at = find(m, index);
    if (!(m->n & (m->n - 1))) /* it is full at each power of two */
        m->leaf = xrealloc(m->leaf, MAX(2 * m->n, (size_t)1) * sizeof(*m->leaf));
    memmove(m->leaf + at + 1, m->leaf + at, (m->n - at) * sizeof(*m->leaf));
    m->leaf[at] = xcalloc(1, sizeof(**m->leaf));
    m->leaf[at]->index = index;
    m->n++;
    return m->leaf[at];
}

static void leaf_end(struct unit_map *m, size_t at)
{
    free(m->leaf[at]);
    memmove(m->leaf + at, m->leaf + at + 1, (m->n - at - 1) * sizeof(*m->leaf));
    m->n--;
}

uint16_t unit_get(const struct unit_map *m, uint64_t unit)
{
    const struct unit_leaf *l = leaf_of(m, unit);
    return l ? l->number[unit % LEAF_UNITS] : 0;
}

int unit_set(struct unit_map *m, uint64_t unit, uint16_t number)
{
    struct unit_leaf *l = leaf_of(m, unit);
    if (!l && !number)
        return 0;
    if (!l && !(l = leaf_new(m, unit / LEAF_UNITS)))
        return -ENOSPC;
    uint16_t *at = &l->number[unit % LEAF_UNITS];
    int more = !!number - !!*at;
    *at = number;
    l->set += (uint32_t)more;
    m->set += (uint64_t)(int64_t)more;
    if (!l->set)
        leaf_end(m, find(m, l->index));
    return 0;
}

/* The first unit in [unit, last] that has another number; last + 1: there is none. */
static uint64_t other_in(const struct unit_map *m, uint64_t unit, uint64_t last, uint16_t number)
{
    while (unit <= last) {
        size_t at = find(m, unit / LEAF_UNITS);
        uint64_t begin = at < m->n ? m->leaf[at]->index * LEAF_UNITS : UINT64_MAX;
        if (begin > unit) {
            if (number)
                return unit;
            unit = MIN(begin, last + 1);
            continue;
        }
        const struct unit_leaf *l = m->leaf[at];
        uint64_t end = MIN(begin + LEAF_UNITS - 1, last);
        for (; unit <= end; unit++)
            if (l->number[unit - begin] != number)
                return unit;
    }
    return last + 1;
}

uint64_t unit_same_until(const struct unit_map *m, uint64_t unit, uint64_t last)
{
    return other_in(m, unit, last, unit_get(m, unit)) - 1;
}

bool unit_next_run(const struct unit_map *m, uint16_t number, uint64_t *first, uint64_t *last)
{
    for (size_t at = find(m, *first / LEAF_UNITS); at < m->n; at++) {
        const struct unit_leaf *l = m->leaf[at];
        uint64_t begin = l->index * LEAF_UNITS, unit = MAX(*first, begin);
        for (; unit < begin + LEAF_UNITS; unit++)
            if (l->number[unit - begin] == number) {
                *first = unit;
                *last = other_in(m, unit, UINT64_MAX - 1, number) - 1;
                return true;
            }
    }
    return false;
}

struct unit_sum unit_sum_of(const struct unit_map *m, uint16_t number)
{
    struct unit_sum sum = {0, 0, 0};
    for (uint64_t first = 0, last; unit_next_run(m, number, &first, &last); first = last + 1) {
        if (!sum.units)
            sum.first = first;
        sum.units += last - first + 1;
        sum.end = last + 1;
    }
    return sum;
}

uint64_t unit_clear(struct unit_map *m, uint16_t number)
{
    uint64_t was = m->set;
    for (size_t at = m->n; at-- > 0;) {
        struct unit_leaf *l = m->leaf[at];
        for (unsigned i = 0; i < LEAF_UNITS && l->set; i++)
            if (l->number[i] == number) {
                l->number[i] = 0;
                l->set--;
                m->set--;
            }
        if (!l->set)
            leaf_end(m, at);
    }
    return was - m->set;
}

void unit_clear_all(struct unit_map *m)
{
    for (size_t at = 0; at < m->n; at++)
        free(m->leaf[at]);
    free(m->leaf);
    *m = (struct unit_map){0};
}
