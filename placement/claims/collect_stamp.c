/* collect_stamp.c - the walk back through the views, for the newest record of a file that anybody has. */
#include "placement/claims/collect_int.h"
#include "placement/ring/ring.h"

/* A node of view u that is here never adopted u: nothing was granted in u. */
static bool never_begun(const struct view *before)
{
    for (const struct report *r = collect_reports; r; r = r->next)
        if (view_has(before, r->id, r->incarnation) && r->last < before->number)
            return true;
    return false;
}

const struct item_record *collect_newest_stamp(const struct view *v, struct fid fid,
                                               const struct report **from)
{
    for (uint64_t u = v->number - 1; u >= 1; u--) {
        const struct view *before = members_view_number(u);
        if (!before)
            return NULL;
        if (never_begun(before))
            continue;
        uint64_t home = ring_home(ring_of(before), fid, 0);
        uint64_t next = ring_home(ring_of(before), fid, 1);
        const struct report *h = collect_report_of(before, home);
        const struct report *x = next ? collect_report_of(before, next) : NULL;
        const struct item_record *hr = collect_record_of(h, fid, u);
        const struct item_record *xr = collect_record_of(x, fid, u);
        bool has_h = hr || collect_had_all(h, home, u);
        /* a record of view u may have come before the copy of all */
        bool has_x = xr || collect_had_all(x, home, u);
        if (!has_h && !has_x) {
            if (!h && !x)
                return NULL; /* both gone: blind, see collect_find_blinds */
            continue;        /* one is here with older stamps: nothing was granted in u */
        }
        if (has_h && (!xr || (hr && hr->stamp_count >= xr->stamp_count) || (!hr && !has_x))) {
            *from = h;
            return hr;
        }
        *from = x;
        return xr;
    }
    return NULL;
}

/* Does every file's walk end in this view, unless it meets a pair that is gone?  Each home that is here
 * was complete, and for each home that is gone, all nodes that may be its next have its records. */
static bool all_end_at(const struct view *before)
{
    for (uint32_t i = 0; i < before->nmembers; i++) {
        uint64_t id = before->members[i].id;
        const struct report *home = collect_report_of(before, id);
        if (home && !collect_had_all(home, id, before->number))
            return false;
        for (const struct report *r = collect_reports; r && !home; r = r->next)
            if (view_has(before, r->id, r->incarnation) && !collect_had_all(r, id, before->number))
                return false;
    }
    return true;
}

void collect_find_blinds(const struct view *v)
{
    for (uint64_t u = v->number - 1; u >= 1; u--) {
        const struct view *before = members_view_number(u);
        uint32_t missing = 0;
        /* too old to be known; or the last node left, and no node has its records */
        if (!before || !before->nmembers) {
            collect_add_blind(v, (struct item_blind){u, v->number});
            return;
        }
        if (never_begun(before))
            continue;
        for (uint32_t i = 0; i < before->nmembers; i++)
            missing += !collect_report_of(before, before->members[i].id);
        if (missing >= MIN(2u, before->nmembers))
            collect_add_blind(v, (struct item_blind){u, v->number});
        if (all_end_at(before))
            return;
    }
}
