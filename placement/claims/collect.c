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
#include "placement/claims/record.h"
#include "placement/ring/ring.h"

#include <stdlib.h>
#include <string.h>

#define VIEWS_BACK 16 /* as far as members.c reads */

struct report {
    struct report *next;
    uint64_t id, incarnation, last;
    uint32_t nnextof, nrecords, nlocks, nclaims;
    struct item_nextof *nextof;
    struct item_record *records; /* sorted by fid */
    struct item_lock *locks;
    struct item_claim *claims;
};

/* This node's state now, and its state when the adopted view began (the contents of ADOPTED of that view,
 * also when that is sent again). */
static struct self {
    uint64_t view; /* frozen: of which view */
    uint64_t home_view;
    uint32_t nnextof;
    struct item_nextof *nextof;
    uint32_t nblinds;
    struct item_blind *blinds;
} self, frozen;

static struct report *reports;

static void *copy_of(const void *p, size_t n, size_t size)
{
    void *c = xmalloc(n * size + 1);

    if (n)
        memcpy(c, p, n * size);
    return c;
}

static void free_report(struct report *r)
{
    free(r->nextof);
    free(r->records);
    free(r->locks);
    free(r->claims);
    free(r);
}

static void drop_reports(void)
{
    struct report *r;

    while ((r = reports)) {
        reports = r->next;
        free_report(r);
    }
}

static void forget_old(const struct view *v);

void collect_begin(const struct view *v)
{
    drop_reports();
    if (v)
        forget_old(v);
    free(frozen.nextof);
    free(frozen.blinds);
    frozen = self;
    frozen.view = v ? v->number : 0;
    frozen.nextof = copy_of(self.nextof, self.nnextof, sizeof(*self.nextof));
    frozen.blinds = copy_of(self.blinds, self.nblinds, sizeof(*self.blinds));
}

bool collect_is_next(uint64_t home, uint64_t view)
{
    for (uint32_t i = 0; i < self.nnextof; i++)
        if (self.nextof[i].home == home && self.nextof[i].view == view)
            return true;
    return false;
}

void collect_note_next(uint64_t home, uint64_t view)
{
    if (collect_is_next(home, view))
        return;
    self.nextof = xrealloc(self.nextof, (self.nnextof + 1) * sizeof(*self.nextof));
    self.nextof[self.nnextof++] = (struct item_nextof){home, view};
}

void collect_fill(const struct view *v, struct body_adopted *b)
{
    const struct self *s = v->number == frozen.view ? &frozen : &self;

    b->home_view = s->home_view;
    b->nextof.n = s->nnextof;
    b->nextof.v = copy_of(s->nextof, s->nnextof, sizeof(*s->nextof));
    b->blinds.n = s->nblinds;
    b->blinds.v = copy_of(s->blinds, s->nblinds, sizeof(*s->blinds));
}

/* ---- blind pairs ---- */

static bool some_still_absent(const struct view *then, const struct view *v, uint64_t *id)
{
    for (uint32_t i = 0; i < then->nabsent; i++) {
        if (view_absent(v, then->absents[i].id)) {
            *id = then->absents[i].id;
            return true;
        }
    }
    return false;
}

static void say_blind(const struct view *at, const struct view *v)
{
    uint64_t id = v->absents[0].id;

    if (at)
        some_still_absent(at, v, &id);
    log_warn("node %s did not end in order, and nobody is left who knows which files it has not "
             "flushed: files that it may have changed give EIO until it is back with its cache "
             "directory; \"eddy forget --node %s MOUNTPOINT\" gives up what it had",
             members_name(id), members_name(id));
}

static void add_blind(const struct view *v, struct item_blind b)
{
    const struct view *at = members_view_number(b.at);
    uint64_t id;

    if (!v->nabsent || (at && !some_still_absent(at, v, &id)))
        return;
    for (uint32_t i = 0; i < self.nblinds; i++)
        if (self.blinds[i].before == b.before && self.blinds[i].at == b.at)
            return;
    self.blinds = xrealloc(self.blinds, (self.nblinds + 1) * sizeof(*self.blinds));
    self.blinds[self.nblinds++] = b;
    say_blind(at, v);
}

static bool gone(const struct view *before, uint64_t id, const struct view *v)
{
    const struct member *m = view_member(before, id);

    return !m || !view_has(v, id, m->incarnation);
}

/* Drops what no later view can need. */
static void forget_old(const struct view *v)
{
    uint32_t n = 0;
    uint64_t id;

    for (uint32_t i = 0; i < self.nnextof; i++)
        if (self.nextof[i].view + VIEWS_BACK > v->number)
            self.nextof[n++] = self.nextof[i];
    self.nnextof = n;
    n = 0;
    for (uint32_t i = 0; i < self.nblinds; i++) {
        const struct view *at = members_view_number(self.blinds[i].at);

        if (v->nabsent && (!at || some_still_absent(at, v, &id)))
            self.blinds[n++] = self.blinds[i];
    }
    self.nblinds = n;
}

uint64_t collect_blind(const struct view *v, struct fid fid)
{
    for (uint32_t i = 0; i < self.nblinds; i++) {
        const struct view *before = members_view_number(self.blinds[i].before);
        const struct view *at = members_view_number(self.blinds[i].at);
        uint64_t id = v->nabsent ? v->absents[0].id : 0, home, next;

        if (!before || !at)
            return id; /* too old to know which files: it is all files without a record */
        if (!some_still_absent(at, v, &id))
            continue;
        home = ring_home(ring_of(before), fid, 0);
        next = ring_home(ring_of(before), fid, 1);
        if (gone(before, home, at) && (!next || gone(before, next, at)))
            return id;
    }
    return 0;
}

/* ---- reports ---- */

static int by_fid(const void *a, const void *b)
{
    const struct fid *x = &((const struct item_record *)a)->fid,
                     *y = &((const struct item_record *)b)->fid;

    if (x->hi != y->hi)
        return x->hi < y->hi ? -1 : 1;
    return (x->lo > y->lo) - (x->lo < y->lo);
}

void collect_report(const struct view *v, uint64_t from, uint64_t incarnation,
                    const struct body_adopted *b)
{
    struct report *r = xcalloc(1, sizeof(*r));

    (void)v;
    r->id = from;
    r->incarnation = incarnation;
    r->last = b->last;
    r->nnextof = b->nextof.n;
    r->nextof = copy_of(b->nextof.v, b->nextof.n, sizeof(*b->nextof.v));
    r->nrecords = b->records.n;
    r->records = copy_of(b->records.v, b->records.n, sizeof(*b->records.v));
    qsort(r->records, r->nrecords, sizeof(*r->records), by_fid);
    r->nlocks = b->locks.n;
    r->locks = copy_of(b->locks.v, b->locks.n, sizeof(*b->locks.v));
    r->nclaims = b->claims.n;
    r->claims = copy_of(b->claims.v, b->claims.n, sizeof(*b->claims.v));
    r->next = reports;
    reports = r;
    for (uint32_t i = 0; i < b->blinds.n; i++)
        add_blind(v, b->blinds.v[i]);
}

/* The report of a node that was in `before` and is the same one now. */
static const struct report *report_of(const struct view *before, uint64_t id)
{
    const struct member *m = view_member(before, id);

    for (const struct report *r = reports; m && r; r = r->next)
        if (r->id == id && r->incarnation == m->incarnation)
            return r;
    return NULL;
}

/* Had it all records of this home in this view?  (For the home itself: was it complete?) */
static bool had_all(const struct report *r, uint64_t home, uint64_t view)
{
    for (uint32_t i = 0; r && i < r->nnextof; i++)
        if (r->nextof[i].home == home && r->nextof[i].view == view)
            return true;
    return false;
}

static const struct item_record *record_of(const struct report *r, struct fid fid, uint64_t view)
{
    struct item_record key = {.fid = fid};
    const struct item_record *found =
        r && r->nrecords ? bsearch(&key, r->records, r->nrecords, sizeof(key), by_fid) : NULL;

    return found && found->stamp_view == view ? found : NULL;
}

/* A node of view u that is here never adopted u: nothing was granted in u. */
static bool never_begun(const struct view *before)
{
    for (const struct report *r = reports; r; r = r->next)
        if (view_has(before, r->id, r->incarnation) && r->last < before->number)
            return true;
    return false;
}

/* The newest stamp known of one file: its record, or NULL for "nothing". *from: whose it is. */
static const struct item_record *newest_stamp(const struct view *v, struct fid fid,
                                              const struct report **from)
{
    for (uint64_t u = v->number - 1; u >= 1; u--) {
        const struct view *before = members_view_number(u);
        const struct report *h, *x;
        const struct item_record *hr, *xr;
        uint64_t home, next;
        bool has_h, has_x;

        if (!before)
            return NULL;
        if (never_begun(before))
            continue;
        home = ring_home(ring_of(before), fid, 0);
        next = ring_home(ring_of(before), fid, 1);
        h = report_of(before, home);
        x = next ? report_of(before, next) : NULL;
        hr = record_of(h, fid, u);
        xr = record_of(x, fid, u);
        has_h = hr || had_all(h, home, u);
        /* a record of view u may have come before the copy of all */
        has_x = xr || had_all(x, home, u);
        if (!has_h && !has_x) {
            if (!h && !x)
                return NULL; /* both gone: blind, see find_blinds */
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
        const struct report *home = report_of(before, id);

        if (home && !had_all(home, id, before->number))
            return false;
        for (const struct report *r = reports; r && !home; r = r->next)
            if (view_has(before, r->id, r->incarnation) && !had_all(r, id, before->number))
                return false;
    }
    return true;
}

/* Finds the pairs (u, v) for which some file's walk would end in "both gone".  A file whose walk ended in a
 * later view may be among them: it waits for the absent nodes without need, but nothing is lost. */
static void find_blinds(const struct view *v)
{
    for (uint64_t u = v->number - 1; u >= 1; u--) {
        const struct view *before = members_view_number(u);
        uint32_t missing = 0;

        /* too old to be known; or the last node left, and no node has its records */
        if (!before || !before->nmembers) {
            add_blind(v, (struct item_blind){u, v->number});
            return;
        }
        if (never_begun(before))
            continue;
        for (uint32_t i = 0; i < before->nmembers; i++)
            missing += !report_of(before, before->members[i].id);
        if (missing >= MIN(2u, before->nmembers))
            add_blind(v, (struct item_blind){u, v->number});
        if (all_end_at(before))
            return;
    }
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
    const struct item_record *rec = newest_stamp(v, fid, &from);
    struct record *r;

    if (!rec)
        return;
    r = record_make(fid);
    if (collect_blind(v, fid)) /* what was unknown then is still unknown */
        r->unknown = rec->unknown;
    if (rec->claimant && view_absent(v, rec->claimant)) {
        r->claimant = rec->claimant;
        r->number_inc = rec->number_inc;
        r->number = rec->number;
    }
    for (uint32_t i = 0; i < from->nlocks; i++) {
        struct held_lock l = lock_of_item(&from->locks[i]);

        if (fid_eq(from->locks[i].fid, fid) && view_absent(v, l.node))
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

static void take_own_lists(const struct view *v, const struct ring *ring, const struct report *rep)
{
    if (!view_has(v, rep->id, rep->incarnation))
        return;
    for (uint32_t i = 0; i < rep->nclaims; i++) {
        struct record *r;

        if (ring_home(ring, rep->claims[i].fid, 0) != members_self())
            continue;
        r = listed(v, rep->claims[i].fid);
        if (r->claimant && r->claimant != rep->id)
            log_error("two nodes say that they hold one claim: %s and %s",
                      members_name(r->claimant), members_name(rep->id));
        r->unknown &= (uint8_t)~RECORD_CLAIM_UNKNOWN;
        r->claimant = rep->id;
        r->number_inc = rep->claims[i].number_inc;
        r->number = rep->claims[i].number;
    }
    for (uint32_t i = 0; i < rep->nlocks; i++) {
        struct held_lock l = lock_of_item(&rep->locks[i]);

        if (l.node == rep->id && l.incarnation == rep->incarnation &&
            ring_home(ring, rep->locks[i].fid, 0) == members_self())
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

void collect_finish(const struct view *v)
{
    struct wanted w = {v, ring_of(v)};

    record_sweep(is_mine, &w); /* this node's own report has what it knew */
    for (const struct report *rep = reports; rep; rep = rep->next)
        for (uint32_t i = 0; i < rep->nrecords; i++)
            if (ring_home(w.ring, rep->records[i].fid, 0) == members_self() &&
                !record_find(rep->records[i].fid))
                take_stamp(v, rep->records[i].fid);
    find_blinds(v);
    for (const struct report *rep = reports; rep; rep = rep->next)
        take_own_lists(v, w.ring, rep);
    record_each(stamp, &w);
    self.home_view = v->number;
    collect_note_next(members_self(), v->number);
    drop_reports();
}

void collect_stop(void)
{
    drop_reports();
    free(self.nextof);
    free(self.blinds);
    free(frozen.nextof);
    free(frozen.blinds);
    self = frozen = (struct self){0};
}
