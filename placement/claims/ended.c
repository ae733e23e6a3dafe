/* ended.c - see ended.h.
 *
 * A node that dies is absent in the next view, or comes back in another incarnation.  It may then leave in
 * order, and is not seen in the view any more: so what is seen of a death is remembered.  A node that skips
 * a view may have missed one.
 */
#include "placement/claims/ended.h"

#include "transport/lock.h"
#include "transport/members.h"

struct ended {
    uint64_t node, incarnation;
};

static struct {
    struct lock lock;  /* RANK_LEAF */
    struct ended *died; /* a few words for each death while this node runs */
    size_t n;
    uint64_t seen; /* the view that was looked at last */
    bool outside;
    _Atomic uint64_t departures;
} all = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}};

/* Locked. */
static bool has_died(uint64_t node, uint64_t incarnation)
{
    for (size_t k = 0; k < all.n; k++)
        if (all.died[k].node == node && all.died[k].incarnation == incarnation)
            return true;
    return false;
}

/* Locked.  A later one of the node may have had the same files. */
static bool has_died_since(uint64_t node, uint64_t incarnation)
{
    for (size_t k = 0; k < all.n; k++)
        if (all.died[k].node == node && all.died[k].incarnation >= incarnation)
            return true;
    return false;
}

static bool may_have_died(const struct member *m, const struct view *v, bool skipped)
{
    const struct member *now = view_member(v, m->id);
    if (now)
        return now->incarnation != m->incarnation;
    return skipped || view_absent(v, m->id);
}

void ended_adopted(const struct view *before, const struct view *v)
{
    lock_take(&all.lock);
    bool skipped = all.outside || (before && v->number != before->number + 1);
    all.outside = false;
    if (skipped)
        all.departures++;
    all.seen = v->number;
    for (uint32_t k = 0; before && k < before->nmembers; k++) {
        const struct member *m = &before->members[k], *now = view_member(v, m->id);
        if (!now || now->incarnation != m->incarnation)
            all.departures++;
        if (!may_have_died(m, v, skipped) || has_died(m->id, m->incarnation))
            continue;
        all.died = xrealloc(all.died, (all.n + 1) * sizeof(*all.died));
        all.died[all.n++] = (struct ended){m->id, m->incarnation};
    }
    lock_drop(&all.lock);
}

void ended_outside(void)
{
    lock_take(&all.lock);
    all.outside = true;
    all.departures++;
    lock_drop(&all.lock);
}

bool ended_in_order(uint64_t node, uint64_t incarnation)
{
    const struct view *v = members_view();
    const struct member *m = v ? view_member(v, node) : NULL;
    if (!v || (m && m->incarnation == incarnation) || view_absent(v, node))
        return false;
    lock_take(&all.lock);
    bool in_order = !all.outside && all.seen == v->number && !has_died_since(node, incarnation);
    lock_drop(&all.lock);
    return in_order;
}

uint64_t ended_departures(void)
{
    return atomic_load(&all.departures);
}
