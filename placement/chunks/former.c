/* former.c - see former.h. */
#include "placement/chunks/former.h"

#include <stdlib.h>
#include <string.h>

#include "placement/claims/record.h"
#include "placement/ring/ring.h"
#include "transport/lock.h"
#include "transport/view.h"

#define VIEWS_BACK 15 /* as far as members.c keeps them */
#define MISSES_MAX 32
#define ASK_ONE_IN 16

/* Views are never freed, so a copy of the list may be used without the lock. */
struct past {
    const struct view *now, *views[VIEWS_BACK]; /* newest first */
    unsigned n;
};

/* A former owner that was asked in this view. */
struct luck {
    struct luck *next;
    uint64_t node;
    unsigned misses; /* answers "not here" since it last had a chunk */
    unsigned passed; /* chunks for which it was not asked since it was last asked */
};

static struct {
    struct lock lock; /* RANK_LEAF */
    struct past past;
    struct luck *luck;
    bool redirect;
} former = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}};

void former_start(bool redirect)
{
    former.redirect = redirect;
}

/* Locked, or at the end, when no other thread uses it. */
static void forget_luck(void)
{
    struct luck *l;
    while ((l = former.luck)) {
        former.luck = l->next;
        free(l);
    }
}

void former_stop(void)
{
    forget_luck();
    former.past = (struct past){0};
}

/* It counts views without this node, too: this node may be new. */
void former_adopted(const struct view *v)
{
    struct past p = {.now = v};
    for (uint64_t i = 1; v && i <= VIEWS_BACK && i < v->number; i++) {
        const struct view *before = members_view_number(v->number - i);
        if (before && before->nmembers)
            p.views[p.n++] = before;
    }
    lock_take(&former.lock);
    former.past = p;
    forget_luck();
    lock_drop(&former.lock);
}

/* ---- which former owners have chunks ---- */

/* Locked. */
static struct luck *luck_of(uint64_t node)
{
    struct luck *l = former.luck;
    while (l && l->node != node)
        l = l->next;
    return l;
}

void former_answered(uint64_t node, bool had)
{
    lock_take(&former.lock);
    struct luck *l = luck_of(node);
    if (!l) {
        l = xcalloc(1, sizeof(*l));
        l->node = node;
        l->next = former.luck;
        former.luck = l;
    }
    l->misses = had ? 0 : l->misses + 1;
    lock_drop(&former.lock);
}

static bool is_worth_asking(uint64_t node)
{
    lock_take(&former.lock);
    struct luck *l = luck_of(node);
    bool yes = !l || l->misses < MISSES_MAX || ++l->passed == ASK_ONE_IN;
    if (l && yes)
        l->passed = 0;
    lock_drop(&former.lock);
    return yes;
}

/* ---- which node owned a chunk ---- */

static struct past past_views(void)
{
    lock_take(&former.lock);
    struct past p = former.past;
    lock_drop(&former.lock);
    return p;
}

/* A node's cache directory survives its restart, so the incarnation does not matter. */
static bool answers(const struct view *v, uint64_t node)
{
    return view_member(v, node) && !members_suspected(node);
}

uint64_t former_owner(struct fid fid, uint64_t index)
{
    struct past p = past_views();
    uint64_t last = 0; /* the owner looked at last: most owners are the same in many views */
    for (unsigned i = 0; i < p.n; i++) {
        uint64_t node = ring_owner(ring_of(p.views[i]), fid, index, 0);
        if (node == members_self())
            return 0;
        if (node != last && answers(p.now, node) && is_worth_asking(node))
            return node;
        last = node;
    }
    return 0;
}

bool former_is_redirected(struct fid fid, uint64_t index)
{
    if (!former.redirect)
        return false;
    struct past p = past_views();
    if (!p.now || !p.now->nabsent)
        return false;
    for (unsigned i = 0; i < p.n; i++)
        if (view_absent(p.now, ring_owner(ring_of(p.views[i]), fid, index, 0)))
            return true;
    return false;
}
