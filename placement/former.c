/* former.c - see former.h. */
#include "placement/former.h"

#include <string.h>

#include "placement/record.h"
#include "placement/ring.h"
#include "transport/lock.h"

#define VIEWS_BACK 15 /* as far as members.c keeps them */

/* Views are never freed, so a copy of the list may be used without the lock. */
struct past {
    const struct view *now, *views[VIEWS_BACK]; /* newest first */
    unsigned n;
};

static struct {
    struct lock lock; /* RANK_LEAF */
    struct past past;
    bool redirect;
} former = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}};

void former_start(bool redirect)
{
    former.redirect = redirect;
}

void former_stop(void)
{
    former.past = (struct past){0};
}

/* Also views that this node was not in: it may be new. */
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
    lock_drop(&former.lock);
}

static struct past past_views(void)
{
    lock_take(&former.lock);
    struct past p = former.past;
    lock_drop(&former.lock);
    return p;
}

/* Its cache directory survives a restart, so the incarnation does not matter. */
static bool answers(const struct view *v, uint64_t node)
{
    return view_member(v, node) && strcmp(members_state(node), "suspected") != 0;
}

uint64_t former_owner(struct fid fid, uint64_t index)
{
    struct past p = past_views();
    for (unsigned i = 0; i < p.n; i++) {
        uint64_t node = ring_owner(ring_of(p.views[i]), fid, index, 0);
        if (node == members_self())
            return 0;
        if (answers(p.now, node))
            return node;
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
