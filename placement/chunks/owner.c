/* owner.c - see owner.h. */
#include "placement/chunks/owner.h"

#include "placement/ring/ring.h"
#include "transport/members.h"
#include "transport/view.h"

bool owner_is_here(struct fid fid, uint64_t index)
{
    const struct view *v = members_view();
    if (!v)
        return false;
    const struct ring *r = ring_of(v);
    unsigned n = 0;
    uint64_t node;
    while ((node = ring_owner(r, fid, index, n)) && members_suspected(node))
        n++;
    return node == members_self();
}
