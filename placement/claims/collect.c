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
#include "transport/view.h"

#include <stdlib.h>
#include <string.h>

#define VIEWS_BACK    16    /* as far as members.c reads */
#define FILES_AT_ONCE 32768 /* files that are looked at before others have their turn: some 30 ms */

/* What a node said, in all pieces together. */
struct report {
    struct report *next;
    uint64_t id, incarnation, last;
    uint32_t nnextof, nrecords, nlocks, nclaims;
    struct item_nextof *nextof;
    struct item_record *records;
    uint32_t *index;         /* a hash table of records: their places + 1, 0: free */
    uint32_t nindex;         /* a power of two */
    struct item_lock *locks; /* sorted by fid when all are here */
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

/* All reports of a view are here, and records are made of them. */
static struct {
    const struct view *v; /* NULL: not now */
    bool claims;          /* records were looked at, now come claims and locks */
    const struct report *rep;
    uint32_t at; /* of its records, or claims */
} work;

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
    free(r->index);
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
    collect_finish(); /* else what this node knew would be half gone */
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
    log_warn("node %s did not end in order, and no node is left that knows which files it has not "
             "flushed: files that it may have changed give EIO until it is back with its cache "
             "directory; \"eddy forget --node %s MOUNTPOINT\" gives up its data",
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
    for (uint32_t i = 0; i < self.nnextof; i++)
        if (self.nextof[i].view + VIEWS_BACK > v->number)
            self.nextof[n++] = self.nextof[i];
    self.nnextof = n;
    n = 0;
    for (uint32_t i = 0; i < self.nblinds; i++) {
        const struct view *at = members_view_number(self.blinds[i].at);
        uint64_t id;
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
        uint64_t id = v->nabsent ? v->absents[0].id : 0;
        if (!before || !at)
            return id; /* too old to know which files: it is all files without a record */
        if (!some_still_absent(at, v, &id))
            continue;
        uint64_t home = ring_home(ring_of(before), fid, 0);
        uint64_t next = ring_home(ring_of(before), fid, 1);
        if (gone(before, home, at) && (!next || gone(before, next, at)))
            return id;
    }
    return 0;
}

/* ---- reports ---- */

static int by_fid(const struct fid *x, const struct fid *y)
{
    if (x->hi != y->hi)
        return x->hi < y->hi ? -1 : 1;
    return (x->lo > y->lo) - (x->lo < y->lo);
}

static int lock_by_fid(const void *a, const void *b)
{
    return by_fid(&((const struct item_lock *)a)->fid, &((const struct item_lock *)b)->fid);
}

/* More items behind the n that there are: the list has room for the next power of two. */
static void *append(void *list, uint32_t *n, const void *items, uint32_t more, size_t size)
{
    size_t room = 1;
    if (!more)
        return list;
    while (room < (size_t)*n + more)
        room *= 2;
    if (!*n || (size_t)*n <= room / 2)
        list = xrealloc(list, room * size);
    memcpy((char *)list + *n * size, items, more * size);
    *n += more;
    return list;
}

#define APPEND(r, list, l)                                                                         \
    ((r)->list = append((r)->list, &(r)->n##list, (l).v, (l).n, sizeof(*(l).v)))

/* Of a piece: the first one begins the report. */
static struct report *report_for(uint64_t from, uint64_t incarnation, uint32_t piece)
{
    struct report *r = piece ? reports : NULL;
    while (r && (r->id != from || r->incarnation != incarnation))
        r = r->next;
    if (r)
        return r;
    r = xcalloc(1, sizeof(*r));
    r->id = from;
    r->incarnation = incarnation;
    r->next = reports;
    reports = r;
    return r;
}

/* The place of fid's record in the index, or where it belongs.  Not by the bits that record.c's table goes
 * by: the records come in its order, so the first pieces would fill one stretch of the index, without a
 * gap where that table is full, and each record would go through all of it. */
static uint32_t *index_of(const struct report *r, struct fid fid)
{
    uint32_t at = (uint32_t)((fid.lo * 0x9e3779b97f4a7c15u) >> 32) & (r->nindex - 1);
    while (r->index[at] && !fid_eq(r->records[r->index[at] - 1].fid, fid))
        at = (at + 1) & (r->nindex - 1);
    return &r->index[at];
}

/* The last n records are new.  The index is at most half full. */
static void index_records(struct report *r, uint32_t n)
{
    uint32_t from = r->nrecords - n, size = MAX(r->nindex, 64u);
    while (size < 2 * (uint64_t)r->nrecords)
        size *= 2;
    if (size != r->nindex) {
        free(r->index);
        r->index = xcalloc(size, sizeof(*r->index));
        r->nindex = size;
        from = 0;
    }
    for (uint32_t i = from; i < r->nrecords; i++)
        *index_of(r, r->records[i].fid) = i + 1;
}

void collect_report(const struct view *v, uint64_t from, uint64_t incarnation,
                    const struct body_adopted *b)
{
    struct report *r = report_for(from, incarnation, b->piece);
    r->last = b->last;
    APPEND(r, nextof, b->nextof);
    APPEND(r, records, b->records);
    index_records(r, b->records.n);
    APPEND(r, locks, b->locks);
    APPEND(r, claims, b->claims);
    for (uint32_t i = 0; i < b->blinds.n; i++)
        add_blind(v, b->blinds.v[i]);
}

static void sort_locks(void)
{
    for (struct report *r = reports; r; r = r->next)
        if (r->nlocks)
            qsort(r->locks, r->nlocks, sizeof(*r->locks), lock_by_fid);
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
    uint32_t place = r && r->nrecords ? *index_of(r, fid) : 0;
    return place && r->records[place - 1].stamp_view == view ? &r->records[place - 1] : NULL;
}

/* The first of a report's locks on this file, or on one behind it. */
static uint32_t locks_of(const struct report *r, struct fid fid)
{
    uint32_t low = 0, high = r->nlocks;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (by_fid(&r->locks[mid].fid, &fid) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
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
        if (!before)
            return NULL;
        if (never_begun(before))
            continue;
        uint64_t home = ring_home(ring_of(before), fid, 0);
        uint64_t next = ring_home(ring_of(before), fid, 1);
        const struct report *h = report_of(before, home);
        const struct report *x = next ? report_of(before, next) : NULL;
        const struct item_record *hr = record_of(h, fid, u);
        const struct item_record *xr = record_of(x, fid, u);
        bool has_h = hr || had_all(h, home, u);
        /* a record of view u may have come before the copy of all */
        bool has_x = xr || had_all(x, home, u);
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
    for (uint32_t i = locks_of(from, fid); i < from->nlocks; i++) {
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

static void work_begin(const struct view *v)
{
    struct wanted w = {v, ring_of(v)};
    work.v = v;
    work.claims = false;
    work.rep = reports;
    work.at = 0;
    sort_locks();
    record_sweep(is_mine, &w); /* this node's own report has what it knew */
}

static void work_end(void)
{
    struct wanted w = {work.v, ring_of(work.v)};
    record_each(stamp, &w);
    self.home_view = work.v->number;
    collect_note_next(members_self(), work.v->number);
    drop_reports();
    work.v = NULL;
}

/* What members hold comes after all that is said of absent nodes. */
static void go_on_to_claims(void)
{
    find_blinds(work.v);
    work.claims = true;
    work.rep = reports;
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
    if (self.home_view == v->number)
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
    drop_reports();
    free(self.nextof);
    free(self.blinds);
    free(frozen.nextof);
    free(frozen.blinds);
    self = frozen = (struct self){0};
}
