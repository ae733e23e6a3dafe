/* collect.c - rule 7: what a new home knows of its files after a view change (docs/protocol.md).
 *
 * Every member sends ADOPTED(k): its own claims and locks, its records as home or next, and for
 * itself as a whole
 *
 *     last        the view that it had adopted before
 *     home_view   the last view in which it, as home, had complete records ("stamp (home_view, 0)" for
 *                 all its files)
 *     nextof      pairs (home, view): in that view it had, as next, a copy of home's records.  With its own
 *                 id as home: its records were complete in that view.  There are pairs of the last views, not
 *                 only of the last one: a view may end when some homes were complete and others not yet, and
 *                 then the walk goes on to the view before
 *     blinds      see below
 *
 * So a file without a record needs no message: no record in a complete state means
 * "unclaimed".
 *
 * Blind (a, b): the files whose home and next in view a were both gone in view b.  Their claims are
 * unknown; absent nodes of b may have them.  This is a pure function of the two views and the fid, so
 * a list of such pairs covers all files.  It is passed on from ADOPTED to ADOPTED until no node
 * that was absent in b is absent any more.
 */
#include "placement/claims/collect_int.h"
#include "placement/ring/ring.h"

#define FILES_AT_ONCE 32768 /* files that are looked at before others have their turn: some 30 ms */

/* All reports of a view are here, and records are made of them. */
static struct {
    const struct view *v; /* NULL: not now */
    bool claims;          /* records were looked at, now come claims and locks */
    const struct report *rep;
    uint32_t at; /* of its records, or claims */
} work;

void collect_begin(const struct view *v)
{
    collect_finish(); /* else what this node knew would be half gone */
    collect_drop_reports();
    collect_self_begin(v);
}

/* ---- from reports to records ---- */

struct wanted {
    const struct view *v;
    const struct ring *ring;
};

static bool is_mine(const struct record *r, void *arg)
{
    const struct wanted *w = arg;
    return ring_home(w->ring, r->fid, 0) == members_self() || r->stamp_view + 16 < w->v->number;
}

/* What an absent node had, from the newest stamp; members report themselves what they have. */
static void take_stamp(const struct view *v, struct fid fid)
{
    const struct report *from = NULL;
    const struct item_record *rec = collect_newest_stamp(v, fid, &from);
    if (!rec)
        return;
    struct record *r = record_make(fid);
    if (collect_blind(v, fid)) /* what was unknown then is still unknown */
        r->unknown = rec->unknown;
    if (rec->claimant && view_absent(v, rec->claimant)) {
        r->claimant = rec->claimant;
        r->number_inc = rec->number_inc;
        r->number = rec->number;
    }
    for (uint32_t i = collect_locks_of(from, fid); i < from->nlocks; i++) {
        struct held_lock l = lock_of_item(&from->locks[i]);
        if (!fid_eq(from->locks[i].fid, fid))
            break;
        if (view_absent(v, l.node))
            lock_add(&r->locks, &l);
    }
}

/* The record of a file that is in a member's own list. */
static struct record *listed(const struct view *v, struct fid fid)
{
    struct record *r = record_find(fid);
    if (!r) { /* no stamp has it */
        r = record_make(fid);
        if (collect_blind(v, fid))
            r->unknown = RECORD_CLAIM_UNKNOWN | RECORD_LOCKS_UNKNOWN;
    }
    return r;
}

static void take_claim(const struct view *v, const struct report *rep, const struct item_claim *c)
{
    if (!view_has(v, rep->id, rep->incarnation) || view_home(v, c->fid) != members_self())
        return;
    struct record *r = listed(v, c->fid);
    if (r->claimant && r->claimant != rep->id)
        log_error("two nodes say that they hold one claim: %s and %s", members_name(r->claimant),
                  members_name(rep->id));
    r->unknown &= (uint8_t)~RECORD_CLAIM_UNKNOWN;
    r->claimant = rep->id;
    r->number_inc = c->number_inc;
    r->number = c->number;
}

static void take_locks(const struct view *v, const struct report *rep)
{
    if (!view_has(v, rep->id, rep->incarnation))
        return;
    for (uint32_t i = 0; i < rep->nlocks; i++) {
        struct held_lock l = lock_of_item(&rep->locks[i]);
        if (l.node == rep->id && l.incarnation == rep->incarnation &&
            view_home(v, rep->locks[i].fid) == members_self())
            lock_add(&listed(v, rep->locks[i].fid)->locks, &l);
    }
}

static void stamp(struct record *r, void *arg)
{
    const struct wanted *w = arg;
    if (ring_home(w->ring, r->fid, 0) == members_self()) {
        r->stamp_view = w->v->number;
        r->stamp_count = 0;
    }
}

static void take_record(const struct view *v, const struct item_record *in)
{
    if (view_home(v, in->fid) == members_self() && !record_find(in->fid))
        take_stamp(v, in->fid);
}

/* ---- some at a time ---- */

static void work_begin(const struct view *v)
{
    struct wanted w = {v, ring_of(v)};
    work.v = v;
    work.claims = false;
    work.rep = collect_reports;
    work.at = 0;
    collect_sort_locks();
    record_sweep(is_mine, &w); /* this node's own report has what it knew */
}

static void work_end(void)
{
    struct wanted w = {work.v, ring_of(work.v)};
    record_each(stamp, &w);
    collect_self_complete(work.v);
    collect_drop_reports();
    work.v = NULL;
}

/* What members hold comes after all that is said of absent nodes. */
static void go_on_to_claims(void)
{
    collect_find_blinds(work.v);
    work.claims = true;
    work.rep = collect_reports;
}

/* The rest of this report, but `most` files; answers how many. */
static uint32_t work_on(const struct report *rep, uint32_t most)
{
    uint32_t n = MIN(most, (work.claims ? rep->nclaims : rep->nrecords) - work.at);
    for (uint32_t i = work.at; i < work.at + n; i++) {
        if (work.claims)
            take_claim(work.v, rep, &rep->claims[i]);
        else
            take_record(work.v, &rep->records[i]);
    }
    return n;
}

static bool work_some(uint32_t most)
{
    while (work.v && most) {
        uint32_t n = work.rep ? work_on(work.rep, most) : 0;
        most -= n;
        work.at += n;
        if (!most)
            break;
        if (work.rep && work.claims)
            take_locks(work.v, work.rep);
        work.at = 0;
        work.rep = work.rep ? work.rep->next : NULL;
        if (!work.rep && work.claims)
            work_end();
        else if (!work.rep)
            go_on_to_claims();
    }
    return !work.v;
}

bool collect_some(const struct view *v)
{
    if (collect_self_is_complete(v))
        return true;
    if (!work.v)
        work_begin(v);
    return work_some(FILES_AT_ONCE);
}

void collect_finish(void)
{
    work_some(UINT32_MAX);
}

void collect_stop(void)
{
    work.v = NULL;
    collect_drop_reports();
    collect_self_stop();
}
