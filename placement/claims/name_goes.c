/* name_goes.c - see name_goes.h.
 *
 * The home enters the asker as a looker.  So if it grants the claim to another node before the name has gone, the asker is told
 * (BREAK), and its ticket does not hold any more.
 */
#include "placement/claims/name_goes.h"

#include "placement/claims/look.h"
#include "transport/members.h"

void name_goes_begin(struct name_goes *v, const struct fid *fids, unsigned n)
{
    struct location at[NAMES_GO] = {0};
    int errs[NAMES_GO] = {0};
    for (unsigned i = 0; i < n; i++)
        look_goes(fids[i]);
    bool asked = members_view();
    if (asked && n == 1)
        errs[0] = claim_where(fids[0], LOOK_GOES, &at[0]);
    else if (asked && n)
        claim_where_many(fids, n, LOOK_GOES, at, errs);
    for (unsigned i = 0; i < n; i++)
        v[i] = (struct name_goes){.fid = fids[i], .at = at[i], .begun = true, .heard = asked && !errs[i]};
}

bool name_goes_unclaimed(const struct name_goes *g)
{
    return g->heard && g->at.where == WHERE_PFS && g->at.keep && look_unbroken(g->fid, g->at.ticket);
}

void name_goes_end(struct name_goes *g)
{
    if (g->begun)
        look_goes_end(g->fid);
    g->begun = false;
}
