/* reports.c - see reports.h. */
#include "placement/claims/reports.h"

#include "placement/claims/claim_own.h"
#include "placement/claims/home.h"
#include "placement/claims/locks_own.h"
#include "placement/claims/look.h"
#include "placement/claims/ranges.h"
#include "placement/ring/ring.h"
#include "transport/view.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct reports {
    const struct view *view;
    bool farewell; /* each member is told all */
    struct body_adopted all;
    /* Not a farewell: the first item of each member by its index, and the end of the last one's. */
    uint32_t *claims_at, *records_at, *locks_at, *looks_at, *goes_at;
};

/* ---- sorted by home ---- */

static uint32_t *sort_by_home(const struct view *v, void *items, uint32_t n, size_t size,
                              size_t fid_at)
{
    const struct ring *ring = ring_of(v);
    uint32_t *homes = xmalloc(((size_t)n + 1) * sizeof(*homes));
    for (uint32_t i = 0; i < n; i++) {
        struct fid fid;
        memcpy(&fid, (char *)items + i * size + fid_at, sizeof(fid));
        homes[i] = (uint32_t)(view_member(v, ring_home(ring, fid, 0)) - v->members);
    }
    uint32_t *at = ranges_sort(items, n, size, homes, v->nmembers);
    free(homes);
    return at;
}

#define SORTED(v, list)                                                                            \
    sort_by_home(v, (list).v, (list).n, sizeof(*(list).v), offsetof(__typeof__(*(list).v), fid))

/* ---- the whole ---- */

void *reports_make(const struct view *v, bool farewell)
{
    struct reports *r = xcalloc(1, sizeof(*r));
    struct body_adopted *b = &r->all;
    r->view = farewell ? NULL : v; /* that one lives on; the farewell's does not */
    r->farewell = farewell;
    home_fill_adopted(v, b);
    own_list(&b->claims.n, &b->claims.v);
    if (farewell)
        return r;
    locks_fill(&b->locks.n, &b->locks.v);
    look_list(false, &b->looks.n, &b->looks.v);
    look_list(true, &b->goes.n, &b->goes.v);
    b->look_number = look_number();
    r->claims_at = SORTED(v, b->claims);
    r->records_at = SORTED(v, b->records);
    r->locks_at = SORTED(v, b->locks);
    r->looks_at = SORTED(v, b->looks);
    r->goes_at = SORTED(v, b->goes);
    return r;
}

void reports_free(void *report)
{
    struct reports *r = report;
    free(r->all.nextof.v);
    free(r->all.blinds.v);
    free(r->all.claims.v);
    free(r->all.records.v);
    free(r->all.locks.v);
    free(r->all.looks.v);
    free(r->all.goes.v);
    free(r->claims_at);
    free(r->records_at);
    free(r->locks_at);
    free(r->looks_at);
    free(r->goes_at);
    free(r);
}

/* ---- pieces ---- */

/* A member's lists behind each other: the piece begins `skip` items after the first one and has `room`
 * more. */
struct piece {
    uint64_t skip;
    uint32_t room;
    bool more;
};

/* Of the items from `first` on, before `end`: how many are in the piece, and *first. */
static uint32_t cut(struct piece *p, uint32_t *first, uint32_t end)
{
    uint32_t skip = (uint32_t)MIN(p->skip, (uint64_t)(end - *first));
    p->skip -= skip;
    *first += skip;
    uint32_t n = MIN(end - *first, p->room);
    p->room -= n;
    p->more |= n < end - *first;
    return n;
}

#define CUT(p, out, list, from, end)                                                               \
    do {                                                                                           \
        uint32_t first = (from);                                                                   \
        (out).n = cut(p, &first, end);                                                             \
        (out).v = (out).n ? (list).v + first : NULL;                                               \
    } while (0)

void reports_fill(const void *report, uint64_t to, struct msg *m)
{
    const struct reports *r = report;
    const struct body_adopted *all = &r->all;
    struct body_adopted *b = &m->adopted;
    struct piece p = {.skip = (uint64_t)b->piece * MSG_PIECE_ITEMS, .room = MSG_PIECE_ITEMS};
    uint32_t i = r->farewell ? 0 : (uint32_t)(view_member(r->view, to) - r->view->members);
    b->home_view = all->home_view;
    b->look_number = all->look_number;
    CUT(&p, b->nextof, all->nextof, 0, all->nextof.n);
    CUT(&p, b->blinds, all->blinds, 0, all->blinds.n);
    if (r->farewell) {
        CUT(&p, b->claims, all->claims, 0, all->claims.n);
        CUT(&p, b->records, all->records, 0, all->records.n);
        CUT(&p, b->locks, all->locks, 0, all->locks.n);
    } else {
        CUT(&p, b->claims, all->claims, r->claims_at[i], r->claims_at[i + 1]);
        CUT(&p, b->records, all->records, r->records_at[i], r->records_at[i + 1]);
        CUT(&p, b->locks, all->locks, r->locks_at[i], r->locks_at[i + 1]);
        CUT(&p, b->looks, all->looks, r->looks_at[i], r->looks_at[i + 1]);
        CUT(&p, b->goes, all->goes, r->goes_at[i], r->goes_at[i + 1]);
    }
    b->more = p.more;
}
