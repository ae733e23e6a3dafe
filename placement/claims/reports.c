/* reports.c - see reports.h. */
#include "placement/claims/reports.h"

#include "placement/claims/claim_own.h"
#include "placement/claims/home.h"
#include "placement/claims/locks_own.h"
#include "placement/ring/ring.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A list's item and its home; sorted by home, of one home in the list's order. */
struct place {
    uint64_t home;
    uint32_t item;
};

static struct {
    const struct view *view; /* NULL: not between begin and end */
    struct msg *all;
    struct place *claims, *records, *locks;
} now;

static int by_home(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    if (x->home != y->home)
        return x->home < y->home ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

static struct place *sort(const void *items, uint32_t n, size_t size, size_t fid_at)
{
    const struct ring *ring = ring_of(now.view);
    struct place *p = xcalloc((size_t)n + 1, sizeof(*p));

    for (uint32_t i = 0; i < n; i++) {
        struct fid fid;

        memcpy(&fid, (const char *)items + i * size + fid_at, sizeof(fid));
        p[i] = (struct place){ring_home(ring, fid, 0), i};
    }
    qsort(p, n, sizeof(*p), by_home);
    return p;
}

static uint32_t first_of(const struct place *p, uint32_t n, uint64_t home)
{
    uint32_t low = 0, high = n;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (p[mid].home < home)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void *slice(const struct place *p, uint32_t n, uint64_t home, const void *items, size_t size,
                   uint32_t *nout)
{
    uint32_t first = first_of(p, n, home), end = first;
    char *out;

    while (end < n && p[end].home == home)
        end++;
    *nout = end - first;
    out = *nout ? xmalloc(*nout * size) : NULL;
    for (uint32_t i = first; i < end; i++)
        memcpy(out + (i - first) * size, (const char *)items + p[i].item * size, size);
    return out;
}

static void *copy_of(const void *items, uint32_t n, size_t size)
{
    void *out = n ? xmalloc(n * size) : NULL;

    if (n)
        memcpy(out, items, n * size);
    return out;
}

static void fill(const struct view *v, uint64_t to, struct msg *m)
{
    home_fill_adopted(v, to, m);
    own_list(v, to, &m->adopted.claims.n, &m->adopted.claims.v);
}

void reports_begin(const struct view *v)
{
    struct body_adopted *b;

    reports_end();
    now.view = v;
    now.all = msg_new(MSG_ADOPTED);
    b = &now.all->adopted;
    fill(v, 0, now.all);
    locks_fill(v, 0, &b->locks.n, &b->locks.v);
    now.claims =
        sort(b->claims.v, b->claims.n, sizeof(*b->claims.v), offsetof(struct item_claim, fid));
    now.records =
        sort(b->records.v, b->records.n, sizeof(*b->records.v), offsetof(struct item_record, fid));
    now.locks = sort(b->locks.v, b->locks.n, sizeof(*b->locks.v), offsetof(struct item_lock, fid));
}

void reports_end(void)
{
    struct body_adopted *b;

    if (!now.view)
        return;
    b = &now.all->adopted;
    free(b->nextof.v);
    free(b->blinds.v);
    free(b->claims.v);
    free(b->records.v);
    free(b->locks.v);
    msg_free(now.all);
    free(now.claims);
    free(now.records);
    free(now.locks);
    now.view = NULL;
}

void reports_fill(const struct view *v, uint64_t to, struct msg *m)
{
    const struct body_adopted *all;
    struct body_adopted *b = &m->adopted;

    if (now.view != v || !to) {
        fill(v, to, m);
        if (to) /* a node that says farewell has given its locks back */
            locks_fill(v, to, &b->locks.n, &b->locks.v);
        return;
    }
    all = &now.all->adopted;
    b->home_view = all->home_view;
    b->nextof.n = all->nextof.n;
    b->nextof.v = copy_of(all->nextof.v, all->nextof.n, sizeof(*all->nextof.v));
    b->blinds.n = all->blinds.n;
    b->blinds.v = copy_of(all->blinds.v, all->blinds.n, sizeof(*all->blinds.v));
    b->claims.v =
        slice(now.claims, all->claims.n, to, all->claims.v, sizeof(*all->claims.v), &b->claims.n);
    b->records.v = slice(now.records, all->records.n, to, all->records.v, sizeof(*all->records.v),
                         &b->records.n);
    b->locks.v =
        slice(now.locks, all->locks.n, to, all->locks.v, sizeof(*all->locks.v), &b->locks.n);
}
