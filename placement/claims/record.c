/* record.c - the table of records: it grows with them, so that chains stay short. */
#include "placement/claims/home_int.h"
#include "placement/claims/record.h"

#include <stdlib.h>

#define BUCKETS_MIN 4096
#define AT_ONCE     4096 /* buckets: so the lock is held for less than a millisecond */

static struct record **table;
static unsigned nbuckets, nrecords;
static unsigned swept; /* buckets, by record_sweep_some */

/* The place of fid's record, or where it belongs.  Only with a table. */
static struct record **slot_of(struct fid fid)
{
    struct record **p = &table[fid.lo & (nbuckets - 1)];
    while (*p && !fid_eq((*p)->fid, fid))
        p = &(*p)->hash_next;
    return p;
}

static void grow(void)
{
    struct record **old = table;
    unsigned n = nbuckets;
    nbuckets = n ? 2 * n : BUCKETS_MIN;
    table = xcalloc(nbuckets, sizeof(*table));
    for (unsigned b = 0; b < n; b++) {
        struct record *r;
        while ((r = old[b])) {
            struct record **p = &table[r->fid.lo & (nbuckets - 1)];
            old[b] = r->hash_next;
            r->hash_next = *p;
            *p = r;
        }
    }
    free(old);
}

struct record *record_find(struct fid fid)
{
    return table ? *slot_of(fid) : NULL;
}

struct record *record_make(struct fid fid)
{
    if (nrecords == nbuckets)
        grow();
    struct record **p = slot_of(fid);
    if (!*p) {
        *p = xcalloc(1, sizeof(**p));
        (*p)->fid = fid;
        nrecords++;
        home_arm(SWEEP_MS);
    }
    (*p)->touched_ms = boot_ms();
    return *p;
}

void record_each(void (*fn)(struct record *r, void *arg), void *arg)
{
    for (unsigned b = 0; b < nbuckets; b++)
        for (struct record *r = table[b]; r; r = r->hash_next)
            fn(r, arg);
}

bool record_some(unsigned *at, void (*fn)(struct record *r, void *arg), void *arg)
{
    unsigned end = MIN(*at + AT_ONCE, nbuckets);
    for (; *at < end; ++*at)
        for (struct record *r = table[*at]; r; r = r->hash_next)
            fn(r, arg);
    return end < nbuckets;
}

static void sweep(unsigned from, unsigned end, bool (*drop)(const struct record *r, void *arg),
                  void *arg)
{
    for (unsigned b = from; b < end; b++) {
        for (struct record **p = &table[b]; *p;) {
            struct record *r = *p;
            if (!drop(r, arg)) {
                p = &r->hash_next;
                continue;
            }
            *p = r->hash_next;
            lock_list_free(&r->locks);
            free(r);
            nrecords--;
        }
    }
}

void record_sweep(bool (*drop)(const struct record *r, void *arg), void *arg)
{
    sweep(0, nbuckets, drop, arg);
}

bool record_sweep_some(bool (*drop)(const struct record *r, void *arg), void *arg)
{
    unsigned end = MIN(swept + AT_ONCE, nbuckets);
    sweep(swept, end, drop, arg);
    swept = end < nbuckets ? end : 0;
    return !swept;
}

unsigned record_count(void)
{
    return nrecords;
}

struct item_record record_item(const struct record *r)
{
    return (struct item_record){r->fid,    r->claimant,   r->number_inc,
                                r->number, r->stamp_view, r->stamp_count, r->unknown};
}
