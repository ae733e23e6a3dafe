/* outdated.c - targets of which something was here that is worth nothing any more. */
#include "placement/foresight/outdated.h"

#include "placement/foresight/hint_files.h"
#include "placement/foresight/hints_int.h"

bool outdated_file(struct hinted *h)
{
    bool looked_at = h->looked_at;
    h->looked_at = false;
    h->changes++;
    hint_file_left(h, NEWS_NEVER);
    for (struct target *t = h->targets; t; t = t->file_next)
        hints_step(t, LIFE_OTHER_VERSION);
    return looked_at;
}

/* A target that was admitted or kept is as one that was given up. */
static void lost_bytes(struct target *t)
{
    if (!hints_step(t, LIFE_EVICT) || !(t->admitted || (t->hinted && !t->queue->staged)))
        return;
    hints_unadmit(t);
    hints_tell(t, NEWS_UNKNOWN);
    t->queue->next = MIN(t->queue->next, t->first);
}

void outdated_range(struct fid fid, uint64_t off, uint64_t end)
{
    const struct hinted *h = hints_by_fid(fid);
    for (struct target *t = h ? h->targets : NULL; t; t = t->file_next)
        if (t->off < end && (!t->len || t->off + t->len > off))
            lost_bytes(t);
}
