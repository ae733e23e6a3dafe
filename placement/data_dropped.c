/* data_dropped.c - were the latest bytes of a file without a name dropped, so that the PFS never had them?
 *
 * The claimant tells the home so, and each node that has the file open (docs/protocol.md, rule 28).  If the home does not know,
 * as after a change of the view, an older mtime than a claimant last said to this node shows it, or another size.  But not if the
 * claimant is there still: it may have written, flushed and given back the file since, and it drops no such bytes before this
 * node was told.  A claimant that has died may have come back, and have done the same: then the home knows.
 */
#include "placement/claims/claim.h"
#include "placement/claims/claim_give.h"
#include "placement/claims/ended.h"
#include "placement/claims/look.h"
#include "placement/data_int.h"

#include <errno.h>

uint64_t data_incarnation(uint64_t node)
{
    const struct view *v = members_view();
    const struct member *m = v ? view_member(v, node) : NULL;
    return m ? m->incarnation : 0;
}

/* The claimant ended, and not in order: or it said before that it would (data_keep). */
static bool may_be_dropped(struct data_handle *h)
{
    lock_take(&h->lock);
    uint64_t node = h->where.where == WHERE_NODE ? h->where.node : 0, inc = h->claimant_inc;
    lock_drop(&h->lock);
    if (!node || data_is_kept(h->f) || data_drop_said(h->f))
        return node;
    return !inc || (data_incarnation(node) != inc && !ended_in_order(node, inc));
}

/* Is that what a claimant last said to a handle of this node, perhaps another one, or what came after it?  Then it was flushed. */
static bool is_flushed(struct file *f, const struct version *v)
{
    struct file_data *d = data_of_open(f);
    lock_take(&d->lock);
    bool is = v->mtime_ns > d->said.mtime_ns || (v->mtime_ns == d->said.mtime_ns && v->size == d->said.size);
    lock_drop(&d->lock);
    return is;
}

/* While a name of the file goes, the home names its version only to who does not open it: LOOK_NONE. */
int data_check_dropped(struct data_handle *h, const struct location *at, uint64_t end_ms, const struct version *v)
{
    struct location now;
    if (at && data_names_version(at))
        return claim_dropped(at) ? -ESTALE : 0;
    if (!may_be_dropped(h) || is_flushed(h->f, v))
        return 0;
    int err = claim_where_until(h->f->fid, LOOK_NONE, end_ms, &now);
    if (err)
        return err;
    bool is_there = now.where != WHERE_PFS || (data_names_version(&now) && !claim_dropped(&now));
    return is_there ? 0 : -ESTALE;
}
