/* record.c - the table of records. */
#include "placement/record.h"

#include "placement/home_int.h"

#include <stdlib.h>

#define BUCKETS 4096

static struct record *table[BUCKETS];
static unsigned nrecords;

static struct record **slot_of(struct fid fid)
{
    struct record **p = &table[fid.lo % BUCKETS];

    while (*p && !fid_eq((*p)->fid, fid))
        p = &(*p)->hash_next;
    return p;
}

struct record *record_find(struct fid fid)
{
    return *slot_of(fid);
}

struct record *record_make(struct fid fid)
{
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
    for (unsigned b = 0; b < BUCKETS; b++)
        for (struct record *r = table[b]; r; r = r->hash_next)
            fn(r, arg);
}

void record_sweep(bool (*drop)(const struct record *r, void *arg), void *arg)
{
    for (unsigned b = 0; b < BUCKETS; b++) {
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

unsigned record_count(void)
{
    return nrecords;
}

struct item_record record_item(const struct record *r)
{
    return (struct item_record){r->fid,    r->claimant,   r->number_inc,
                                r->number, r->stamp_view, r->stamp_count};
}
