/* collect_report.c - what each member has said of itself in ADOPTED, and questions about it. */
#include "placement/claims/collect_int.h"

#include <stdlib.h>
#include <string.h>

struct report *collect_reports;

static void free_report(struct report *r)
{
    free(r->nextof);
    free(r->records);
    free(r->index);
    free(r->locks);
    free(r->claims);
    free(r);
}

void collect_drop_reports(void)
{
    struct report *r;
    while ((r = collect_reports)) {
        collect_reports = r->next;
        free_report(r);
    }
}

/* ---- a piece comes ---- */

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
    struct report *r = piece ? collect_reports : NULL;
    while (r && (r->id != from || r->incarnation != incarnation))
        r = r->next;
    if (r)
        return r;
    r = xcalloc(1, sizeof(*r));
    r->id = from;
    r->incarnation = incarnation;
    r->next = collect_reports;
    collect_reports = r;
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
        collect_add_blind(v, b->blinds.v[i]);
}

/* ---- questions ---- */

void collect_sort_locks(void)
{
    for (struct report *r = collect_reports; r; r = r->next)
        if (r->nlocks)
            qsort(r->locks, r->nlocks, sizeof(*r->locks), lock_by_fid);
}

const struct report *collect_report_of(const struct view *before, uint64_t id)
{
    const struct member *m = view_member(before, id);
    for (const struct report *r = collect_reports; m && r; r = r->next)
        if (r->id == id && r->incarnation == m->incarnation)
            return r;
    return NULL;
}

bool collect_had_all(const struct report *r, uint64_t home, uint64_t view)
{
    for (uint32_t i = 0; r && i < r->nnextof; i++)
        if (r->nextof[i].home == home && r->nextof[i].view == view)
            return true;
    return false;
}

const struct item_record *collect_record_of(const struct report *r, struct fid fid, uint64_t view)
{
    uint32_t place = r && r->nrecords ? *index_of(r, fid) : 0;
    return place && r->records[place - 1].stamp_view == view ? &r->records[place - 1] : NULL;
}

uint32_t collect_locks_of(const struct report *r, struct fid fid)
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
