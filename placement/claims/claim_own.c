/* claim_own.c - the table of this node's own claims.  It grows with them, since every small file that
 * is not flushed yet has a claim, and each request for a claim looks here. */
#include "placement/claims/claim_own.h"

#include "placement/ring/ring.h"
#include "transport/members.h"

#include <stdlib.h>

#define BUCKETS_MIN 1024 /* a power of two */

struct own {
    struct own *next;
    struct item_claim claim;
    bool ready;
};

static struct own **table;
static unsigned nbuckets;
static _Atomic unsigned count_now; /* changes with the lock */
static uint64_t view_now;
static struct lock own_lock;

void own_start(void)
{
    lock_init(&own_lock, RANK_LEAF);
    nbuckets = BUCKETS_MIN;
    table = xcalloc(nbuckets, sizeof(*table));
}

static struct own **slot_of(struct fid fid)
{
    struct own **p = &table[fid.lo & (nbuckets - 1)];
    while (*p && !fid_eq((*p)->claim.fid, fid))
        p = &(*p)->next;
    return p;
}

static void grow(void)
{
    struct own **old = table;
    unsigned n = nbuckets;
    nbuckets = 2 * n;
    table = xcalloc(nbuckets, sizeof(*table));
    for (unsigned b = 0; b < n; b++) {
        struct own *o;
        while ((o = old[b])) {
            struct own **p = &table[o->claim.fid.lo & (nbuckets - 1)];
            old[b] = o->next;
            o->next = *p;
            *p = o;
        }
    }
    free(old);
}

bool own_add(struct fid fid, uint64_t inc, uint64_t number, uint64_t view)
{
    lock_take(&own_lock);
    bool ok = !view || (view == view_now && members_lease());
    if (ok) {
        if (count_now >= nbuckets)
            grow();
        struct own **p = slot_of(fid);
        if (!*p) {
            *p = xcalloc(1, sizeof(**p));
            count_now++;
        }
        (*p)->claim = (struct item_claim){fid, inc, number};
        (*p)->ready = !view;
    }
    lock_drop(&own_lock);
    return ok;
}

void own_ready(struct fid fid)
{
    lock_take(&own_lock);
    struct own *o = *slot_of(fid);
    if (o)
        o->ready = true;
    lock_drop(&own_lock);
}

void own_remove(struct fid fid)
{
    lock_take(&own_lock);
    struct own **p = slot_of(fid);
    struct own *o = *p;
    if (o) {
        *p = o->next;
        count_now--;
    }
    lock_drop(&own_lock);
    free(o);
}

bool own_has(struct fid fid, uint64_t *inc, uint64_t *number)
{
    if (!count_now) /* all that was written here has been flushed and given back */
        return false;
    lock_take(&own_lock);
    const struct own *o = *slot_of(fid);
    if (o && !o->ready)
        o = NULL;
    if (o && inc) {
        *inc = o->claim.number_inc;
        *number = o->claim.number;
    }
    lock_drop(&own_lock);
    return o != NULL;
}

bool own_all_ready(void)
{
    bool all = true;
    lock_take(&own_lock);
    for (unsigned b = 0; b < nbuckets && all; b++)
        for (const struct own *o = table[b]; o && all; o = o->next)
            all = o->ready;
    lock_drop(&own_lock);
    return all;
}

unsigned own_count(void)
{
    lock_take(&own_lock);
    unsigned n = count_now;
    lock_drop(&own_lock);
    return n;
}

void own_adopted(uint64_t view)
{
    lock_take(&own_lock);
    view_now = view;
    lock_drop(&own_lock);
}

void own_list(uint32_t *n, struct item_claim **out)
{
    *n = 0;
    lock_take(&own_lock);
    *out = xmalloc((count_now + 1) * sizeof(**out));
    for (unsigned b = 0; b < nbuckets; b++)
        for (const struct own *o = table[b]; o; o = o->next)
            (*out)[(*n)++] = o->claim;
    lock_drop(&own_lock);
}

static void call(void *arg, struct file *f)
{
    void (**fn)(struct file *f) = arg;
    (*fn)(f);
}

void own_each(void (*fn)(struct file *f))
{
    own_each_arg(call, &fn);
}

void own_each_arg(void (*fn)(void *arg, struct file *f), void *arg)
{
    struct item_claim *all;
    uint32_t n;
    own_list(&n, &all);
    for (uint32_t i = 0; i < n; i++) {
        struct file *f = file_find(all[i].fid);
        if (!f)
            continue;
        fn(arg, f);
        file_put(f);
    }
    free(all);
}

void own_stop(void)
{
    for (unsigned b = 0; b < nbuckets; b++) {
        struct own *o;
        while ((o = table[b])) {
            table[b] = o->next;
            free(o);
        }
    }
    free(table);
    table = NULL;
    nbuckets = 0;
    count_now = 0;
    view_now = 0;
    lock_destroy(&own_lock);
}
