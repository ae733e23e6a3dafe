/* order.c - which file of a list is written first when room is needed: one that nobody has told to read, or that is read last.
 *
 * What is written can leave the cache.  Of a file that is about to be read nothing may leave, so that it is on the PFS makes no room; and
 * it may be removed once it was read, and then its flush was for nothing.  In a lull there is time for all: then, and where nothing is
 * hinted, the files keep their order.
 */
#include "flush/flush_int.h"
#include "flush/queue.h"
#include "placement/foresight/budget.h"
#include "placement/foresight/foresight.h"

#define LOOKED_AT 64 /* files of a list, the oldest ones */

struct flush_item *order_first(const struct item_list *l, enum flush_why why)
{
    struct flush_item *best = l->first;
    if (why == WHY_LULL || !best || best->urgent || !foresight_any())
        return best;
    uint64_t farthest = budget_distance(fid_real(best->f->fid));
    unsigned n = 1;
    for (struct flush_item *it = best->next; it && n < LOOKED_AT && farthest != UINT64_MAX; it = it->next, n++) {
        uint64_t distance = budget_distance(fid_real(it->f->fid));
        if (distance <= farthest)
            continue;
        best = it;
        farthest = distance;
    }
    return best;
}
