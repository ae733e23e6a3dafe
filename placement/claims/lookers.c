/* lookers.c - see lookers.h.
 *
 * Entries are of 32 bytes, in slabs that are never moved, and named by their place from 1 on.  Those of one hash
 * value are a list.  Times are in units of UNIT_MS since the view began, rounded up.
 */
#include "placement/claims/lookers.h"

#include "placement/claims/home_int.h"

#include <stdlib.h>
#include <string.h>

#define UNIT_MS     50
#define FOREVER     UINT32_MAX
#define QUIET       (UINT32_MAX - 1) /* LOOK_QUIET: as long */
#define HUSH        (UINT32_MAX - 1) /* instead of a node */
#define ANY_QUIET   (UINT32_MAX - 2) /* ... any node, besides those with entries of their own */
#define GOES        0x80000000u      /* with a member's index: that one is about to remove a name */
#define SLAB        1024             /* entries */
#define BUCKETS_MIN 4096             /* a power of two */
#define AT_ONCE     4096             /* buckets of a sweep: less than a millisecond */

struct looker {
    struct fid fid;
    uint32_t next;   /* in its bucket, or of the free ones; 0: the last one */
    uint32_t node;   /* index in the view, that with GOES, LOOKER_ANY, HUSH, ANY_QUIET */
    uint32_t until;  /* FOREVER: LOOK_OPEN; QUIET */
    uint32_t number; /* of the WHERE that made it so; the lower half */
};

static struct {
    uint64_t begun_ms;
    struct looker **slabs;
    uint32_t nslabs, used; /* places that were used */
    uint32_t free;         /* the first free one of those */
    uint32_t *buckets, nbuckets, count;
    uint32_t swept; /* buckets */
    bool overflow;  /* a node that looks found no room */
    bool unnamed;   /* ... nor did one that has a file open, and keeps nothing */
    bool going;     /* ... nor did one that is about to remove a name */
} t;

static uint64_t known_ms = LOOK_STAT_MS;

void lookers_known_for(uint64_t ms)
{
    known_ms = ms;
}

static struct looker *at(uint32_t place)
{
    return &t.slabs[(place - 1) / SLAB][(place - 1) % SLAB];
}

static uint32_t *bucket_of(struct fid fid)
{
    uint64_t h = (fid.lo ^ fid.hi * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
    return &t.buckets[h >> 32 & (t.nbuckets - 1)];
}

static uint32_t units(uint64_t ms)
{
    return (uint32_t)((ms + UNIT_MS - 1) / UNIT_MS);
}

static uint32_t in_ms(uint64_t ms)
{
    return units(boot_ms() - t.begun_ms + ms);
}

static uint32_t until_of(enum look look)
{
    if (look == LOOK_QUIET)
        return QUIET;
    return look == LOOK_OPEN ? FOREVER : in_ms(LOOKER_STAT_MS);
}

/* ---- room ---- */

size_t lookers_bytes(void)
{
    return t.nslabs * (SLAB * sizeof(struct looker) + sizeof(*t.slabs)) +
           t.nbuckets * sizeof(*t.buckets);
}

unsigned lookers_count(void)
{
    return t.count;
}

static void grow_buckets(void)
{
    uint32_t *old = t.buckets, n = t.nbuckets;
    t.nbuckets = n ? 2 * n : BUCKETS_MIN;
    t.buckets = xcalloc(t.nbuckets, sizeof(*t.buckets));
    for (uint32_t b = 0; b < n; b++) {
        uint32_t p;
        while ((p = old[b])) {
            uint32_t *to = bucket_of(at(p)->fid);
            old[b] = at(p)->next;
            at(p)->next = *to;
            *to = p;
        }
    }
    free(old);
    t.swept = 0;
}

static bool add_slab(void)
{
    size_t more = SLAB * sizeof(struct looker) + sizeof(*t.slabs);
    bool buckets = t.used + SLAB > t.nbuckets;
    if (buckets)
        more += MAX(t.nbuckets, BUCKETS_MIN) * sizeof(*t.buckets);
    if (lookers_bytes() + more > LOOKERS_BYTES)
        return false;
    t.slabs = xrealloc(t.slabs, (t.nslabs + 1) * sizeof(*t.slabs));
    t.slabs[t.nslabs++] = xcalloc(SLAB, sizeof(struct looker));
    if (buckets)
        grow_buckets();
    return true;
}

/* A free place, 0: there is none.  Only entries whose time is over may be dropped for it. */
static uint32_t take_place(void)
{
    if (!t.free && t.used == t.nslabs * SLAB && !add_slab())
        lookers_sweep_some();
    uint32_t p = t.free;
    if (p)
        t.free = at(p)->next;
    else if (t.used < t.nslabs * SLAB)
        p = ++t.used;
    if (p && !t.count++)
        home_arm(LOOKERS_SWEEP_MS);
    return p;
}

static void drop(uint32_t *link)
{
    uint32_t p = *link;
    *link = at(p)->next;
    at(p)->next = t.free;
    t.free = p;
    t.count--;
}

/* ---- the entries of one file ---- */

/* What is known of a file: its entries that are not over.  The places are good until the next change. */
struct found {
    uint32_t hush, any, quiet, goes, named[LOOKERS_NAMED], n;
};

static void sort_in(struct found *f, uint32_t p)
{
    if (at(p)->node == HUSH)
        f->hush = p;
    else if (at(p)->node == LOOKER_ANY)
        f->any = p;
    else if (at(p)->node == ANY_QUIET)
        f->quiet = p;
    else if (at(p)->node & GOES)
        f->goes = p;
    else
        f->named[f->n++] = p;
}

/* Drops those that are over. */
static struct found find(struct fid fid)
{
    struct found f = {0};
    uint32_t now = in_ms(0);
    for (uint32_t *link = t.nbuckets ? bucket_of(fid) : NULL; link && *link;) {
        struct looker *l = at(*link);
        if (!fid_eq(l->fid, fid)) {
            link = &l->next;
        } else if (l->until < now) {
            drop(link);
        } else {
            sort_in(&f, *link);
            link = &l->next;
        }
    }
    return f;
}

static uint32_t named(const struct found *f, uint32_t node)
{
    for (uint32_t i = 0; i < f->n; i++)
        if (at(f->named[i])->node == node)
            return f->named[i];
    return 0;
}

static bool add(struct fid fid, uint32_t node, uint32_t until, uint32_t number)
{
    uint32_t p = take_place();
    if (!p)
        return false;
    uint32_t *to = bucket_of(fid);
    *at(p) = (struct looker){fid, *to, node, until, number};
    *to = p;
    return true;
}

static void drop_one(struct fid fid, uint32_t place)
{
    uint32_t *link = bucket_of(fid);
    while (*link != place)
        link = &at(*link)->next;
    drop(link);
}

/* The time of both.  A node that has the file open, and keeps something, is told until it has closed it. */
static uint32_t until_both(uint32_t a, uint32_t b)
{
    return (a == QUIET) == (b == QUIET) ? MAX(a, b) : FOREVER;
}

static bool add_quiet(struct fid fid, struct found *f)
{
    return f->quiet || add(fid, ANY_QUIET, QUIET, 0);
}

/* One more than can be named: one entry for any node takes their place.  Quiet ones have one of their own, for they
 * are not told. */
static bool make_any(struct fid fid, struct found *f, uint32_t until)
{
    bool quiet = false;
    for (uint32_t i = 0; i < f->n; i++) {
        quiet |= at(f->named[i])->until == QUIET;
        if (at(f->named[i])->until != QUIET)
            until = MAX(until, at(f->named[i])->until);
        drop_one(fid, f->named[i]);
    }
    return (!quiet || add_quiet(fid, f)) && add(fid, LOOKER_ANY, until, 0);
}

/* Makes room among those that can be named, if one of them is quiet. */
static bool unname_quiet(struct fid fid, struct found *f)
{
    for (uint32_t i = 0; i < f->n; i++)
        if (at(f->named[i])->until == QUIET && add_quiet(fid, f)) {
            drop_one(fid, f->named[i]);
            return true;
        }
    return false;
}

/* Numbers are of 32 bits, and go round. */
static bool covers(uint64_t number, uint32_t of)
{
    return (int32_t)((uint32_t)number - of) >= 0;
}

static void extend(struct looker *l, enum look look, uint64_t number)
{
    if (look != LOOK_STAT && (l->until < QUIET || covers(number, l->number)))
        l->number = (uint32_t)number;
    l->until = until_both(l->until, until_of(look));
}

static bool put(struct fid fid, struct found *f, uint32_t node, enum look look, uint64_t number)
{
    uint32_t p = f->any && look != LOOK_QUIET ? f->any : named(f, node);
    bool full = f->any || f->n == LOOKERS_NAMED || node == LOOKER_ANY;
    if (!p && full && look == LOOK_QUIET)
        return add_quiet(fid, f);
    if (!p && full && (node == LOOKER_ANY || !unname_quiet(fid, f)))
        return make_any(fid, f, until_of(look));
    if (!p)
        return add(fid, node, until_of(look), (uint32_t)number);
    extend(at(p), look, number);
    return true;
}

/* Is it told anyway, until it leaves? */
static bool is_in(const struct found *f, uint32_t node)
{
    uint32_t p = f->any ? f->any : named(f, node);
    return p && at(p)->until == FOREVER;
}

bool looker_enter(struct fid fid, uint32_t node, enum look look, uint64_t number)
{
    struct found f = find(fid);
    bool hushed = f.hush && at(f.hush)->number >= LOOKER_HUSH_AFTER;
    bool done = (!hushed || is_in(&f, node)) && put(fid, &f, node, look, number);
    if (!done && !hushed)
        count(keeps_refused, 1);
    if (!done && look == LOOK_OPEN)
        looker_note(fid, node, LOOK_QUIET, number);
    return done;
}

void looker_note(struct fid fid, uint32_t node, enum look look, uint64_t number)
{
    struct found f = find(fid);
    if (put(fid, &f, node, look, number))
        return;
    if (look == LOOK_QUIET) {
        t.unnamed = true;
        return;
    }
    if (!t.overflow)
        log_warn("the table of files that other nodes look at is full (%u entries, %zu bytes): "
                 "until the next view each first write of a file tells all nodes",
                 t.count, lookers_bytes());
    t.overflow = true;
}

/* The place of the entry that says that this node is about to remove a name. */
static uint32_t *goes_link(struct fid fid, uint32_t node)
{
    uint32_t *link = bucket_of(fid);
    while (*link && !(fid_eq(at(*link)->fid, fid) && at(*link)->node == (node | GOES)))
        link = &at(*link)->next;
    return link;
}

void looker_goes(struct fid fid, uint32_t node, uint64_t number)
{
    uint32_t p = t.nbuckets ? *goes_link(fid, node) : 0;
    if (p) {
        at(p)->number = (uint32_t)number;
        at(p)->until = FOREVER;
    } else {
        t.going |= !add(fid, node | GOES, FOREVER, (uint32_t)number);
    }
}

bool looker_name_goes(struct fid fid)
{
    return t.going || find(fid).goes;
}

static void end_goes(struct fid fid, uint32_t node, uint64_t number)
{
    uint32_t *link = goes_link(fid, node);
    if (*link && at(*link)->until == FOREVER && covers(number, at(*link)->number))
        at(*link)->until = in_ms(known_ms);
}

void looker_leave(struct fid fid, uint32_t node, uint64_t number)
{
    struct found f = find(fid);
    if (f.goes)
        end_goes(fid, node, number);
    uint32_t p = named(&f, node);
    if (p && at(p)->until >= QUIET && covers(number, at(p)->number))
        at(p)->until = in_ms(LOOKER_STAT_MS);
}

void looker_forget(struct fid fid, uint32_t node)
{
    struct found f = find(fid);
    uint32_t p = node == LOOKER_ANY ? f.any : named(&f, node);
    if (p)
        drop_one(fid, p);
    if (node == LOOKER_ANY && f.quiet)
        drop_one(fid, f.quiet);
}

void lookers_forget(struct fid fid)
{
    struct found f = find(fid);
    for (uint32_t i = 0; i < f.n; i++)
        drop_one(fid, f.named[i]);
    if (f.any)
        drop_one(fid, f.any);
    if (f.quiet)
        drop_one(fid, f.quiet);
}

static struct looker_found item_of(uint32_t place)
{
    const struct looker *l = at(place);
    enum look look = l->until == FOREVER ? LOOK_OPEN : l->until == QUIET ? LOOK_QUIET : LOOK_STAT;
    return (struct looker_found){l->node, look, l->number};
}

unsigned lookers_of(struct fid fid, struct looker_found out[LOOKERS_NAMED + 1])
{
    struct found f = find(fid);
    unsigned n = 0;
    for (uint32_t i = 0; i < f.n; i++)
        out[n++] = item_of(f.named[i]);
    if (f.any)
        out[n++] = item_of(f.any);
    else if (t.overflow)
        out[n++] = (struct looker_found){LOOKER_ANY, LOOK_STAT, 0};
    else if (f.quiet || t.unnamed)
        out[n++] = (struct looker_found){LOOKER_ANY, LOOK_QUIET, 0};
    return n;
}

/* Without room there is none: then the file is broken more often. */
void looker_hush(struct fid fid)
{
    struct found f = find(fid);
    uint32_t until = in_ms(LOOKER_HUSH_MS);
    if (!f.hush) {
        add(fid, HUSH, until, 1);
        return;
    }
    at(f.hush)->until = until;
    at(f.hush)->number++; /* of times */
}

/* ---- the whole ---- */

bool lookers_sweep_some(void)
{
    uint32_t end = MIN(t.swept + AT_ONCE, t.nbuckets), now = in_ms(0);
    for (uint32_t b = t.swept; b < end; b++)
        for (uint32_t *link = &t.buckets[b]; *link;) {
            if (at(*link)->until < now)
                drop(link);
            else
                link = &at(*link)->next;
        }
    t.swept = end < t.nbuckets ? end : 0;
    return !t.swept;
}

void lookers_begin(void)
{
    for (uint32_t i = 0; i < t.nslabs; i++)
        free(t.slabs[i]);
    free(t.slabs);
    free(t.buckets);
    memset(&t, 0, sizeof(t));
    t.begun_ms = boot_ms();
}
