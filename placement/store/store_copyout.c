/* store_copyout.c - bytes for the PFS: snapshots of dirty pages, and what is clean afterwards
 * (docs/protocol.md, F1, F2).
 *
 * A snapshot names dirty pages.  The run copies their bytes from the data file to the PFS, syncs, and
 * ends the snapshot.  Then each page that is still in the snapshot becomes clean.  Every change of a page
 * takes it out of all snapshots (pages_changed) before its bytes change, and a new snapshot waits for the
 * changes that are under way.  So either a page's bytes stayed the same since the copy, or it stays
 * dirty.
 *
 * A truncation that the PFS has not seen (cut) comes before all bytes, so a snapshot that has one is the
 * only one.  The cut is taken out of the record before the first page becomes clean.  After it, a crash in
 * between would cut clean bytes off.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "placement/store/kernel_io_store.h"
#include "placement/store/state.h"
#include "placement/store/state_table.h"
#include "placement/store/store_copyout.h"
#include "placement/store/store_int.h"
#include "placement/store/store_lend_int.h"
#include "placement/store/store_open.h"
#include "placement/store/kernel_io_int.h"

#define CHUNKS_MAX 4096 /* of a snapshot */

/* ---- taking ---- */

struct taking {
    struct file *f;
    struct snapshot *s;
    uint64_t max;
    size_t room, chunks_room;
    uint64_t taken; /* pages */
};

/* Adds the page to the runs and to its chunk's bits. */
static void take_page(struct taking *t, struct chunk_record *c, uint32_t bit)
{
    struct snapshot *s = t->s;
    struct page_set *p = &s->pages->left;
    uint64_t page = c->index * state_pages() + bit, off = page * PAGE,
             len = MIN((uint64_t)PAGE, s->size - off);
    bool hole = bit_get(chunk_bits(c, BITS_ZERO, state_words()), bit);
    struct extent *last = s->nextents ? &s->extents[s->nextents - 1] : NULL;
    if (last && last->off + last->len == off && last->hole == hole) {
        last->len += len;
    } else {
        if (s->nextents == t->room)
            s->extents = xrealloc(s->extents, (t->room = t->room * 2 + 8) * sizeof(*s->extents));
        s->extents[s->nextents++] = (struct extent){off, len, hole};
    }
    s->bytes += hole ? 0 : len;
    if (!p->n || p->chunk[p->n - 1].index != c->index) {
        if (p->n == t->chunks_room)
            p->chunk =
                xrealloc(p->chunk, (t->chunks_room = t->chunks_room * 2 + 4) * sizeof(*p->chunk));
        p->chunk[p->n++] =
            (struct page_set_chunk){c->index, xcalloc(state_words(), sizeof(uint64_t))};
    }
    p->chunk[p->n - 1].bits[bit / 64] |= UINT64_C(1) << bit % 64;
    if (!t->taken++)
        s->pages->first = page;
    s->pages->last = page;
}

/* Is the page in another snapshot's range?  *until: the answer is the same up to this page. */
static bool taken_by_other(const struct file *f, uint64_t page, uint64_t *until)
{
    *until = UINT64_MAX;
    for (const struct snapshot *s = f->snapshots; s; s = s->next) {
        const struct snapshot_pages *p = s->pages;
        if (!p->left.n)
            continue;
        if (p->first <= page && page <= p->last) {
            *until = p->last;
            return true;
        }
        if (p->first > page)
            *until = MIN(*until, p->first - 1);
    }
    return false;
}

/* Takes dirty pages of one chunk from bit lo on.  False: the snapshot is full. */
static bool take_chunk(struct taking *t, struct chunk_record *c, uint32_t lo)
{
    uint32_t pages = state_pages(), bit = lo;
    const uint64_t *dirty = chunk_bits(c, BITS_DIRTY, state_words());
    while (bit < pages && (bit = bits_find(dirty, bit, pages - 1, true)) < pages) {
        uint64_t page = c->index * pages + bit, until;
        bool other = taken_by_other(t->f, page, &until);
        if (other || page * PAGE >= t->s->size) {
            bit++;
            continue;
        }
        for (; bit < pages && bit_get(dirty, bit) && c->index * pages + bit <= until; bit++) {
            if (t->s->bytes >= t->max || c->index * pages + bit > page_of(t->s->size - 1))
                return false;
            take_page(t, c, bit);
        }
    }
    return true;
}

static int by_index(const void *a, const void *b)
{
    const struct chunk_record *x = *(struct chunk_record *const *)a,
                              *y = *(struct chunk_record *const *)b;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* The file's chunks with dirty pages from `index` on, in order; malloc'd. */
static struct chunk_record **dirty_chunks(struct file *f, uint64_t index, size_t *n)
{
    struct chunk_record *c, **list = NULL;
    size_t room = 0;
    uint64_t left = f->rec->dirty;
    *n = 0;
    for (uint32_t no = f->rec->first_chunk; left && (c = state_chunk_at(no)); no = c->file_next) {
        uint32_t dirty = bits_count(chunk_bits(c, BITS_DIRTY, state_words()), 0, state_pages() - 1);
        left -= dirty;
        if (!dirty || c->index < index)
            continue;
        if (*n == room)
            list = xrealloc(list, (room = room * 2 + 16) * sizeof(*list));
        list[(*n)++] = c;
    }
    if (*n)
        qsort(list, *n, sizeof(*list), by_index);
    return list;
}

/* Takes chunks from `index` on as long as one follows the other, which is the usual case.  Returns the chunk
 * at which that ended; UINT64_MAX: the snapshot is full. */
static uint64_t take_row(struct taking *t, uint64_t index, uint32_t lo)
{
    struct chunk_record *c;
    for (unsigned n = 0; t->taken < t->f->rec->dirty && (c = state_chunk_find(t->f->fid, index));
         n++, index++, lo = 0)
        if (n == CHUNKS_MAX || !take_chunk(t, c, lo))
            return UINT64_MAX;
    return index;
}

static void take_pages(struct taking *t, uint64_t from)
{
    size_t n;
    uint64_t first = page_of(from),
             index = take_row(t, first / state_pages(), (uint32_t)(first % state_pages()));
    if (index == UINT64_MAX || t->taken == t->f->rec->dirty)
        return;
    struct chunk_record **list = dirty_chunks(t->f, index, &n);
    for (size_t i = 0; i < n && i < CHUNKS_MAX; i++)
        if (!take_chunk(t, list[i],
                        list[i]->index == first / state_pages() ? (uint32_t)(first % state_pages())
                                                                : 0))
            break;
    free(list);
}

static void free_snapshot(struct snapshot *s)
{
    page_set_free(&s->pages->left);
    free(s->pages);
    free(s->extents);
    free(s);
}

static struct snapshot *new_snapshot(struct file *f)
{
    const struct file_core *c = core(f);
    struct snapshot *s = xcalloc(1, sizeof(*s));
    s->f = f;
    s->size = c->size;
    s->cut = c->cut;
    s->mtime_ns = c->mtime_ns;
    s->mtime_set = c->flags & CORE_MTIME_SET;
    s->pages = xcalloc(1, sizeof(*s->pages));
    s->pages->cut_since = NO_CUT;
    return s;
}

static bool cut_is_taken(const struct file *f)
{
    for (const struct snapshot *s = f->snapshots; s; s = s->next)
        if (s->cut != NO_CUT)
            return true;
    return false;
}

/* Waits for changes that are under way.  Otherwise it would leave their pages out, which may also have bytes
 * that were written before.  An application would then be told that these bytes are on the PFS, and they
 * would not be. */
int store_snapshot(struct file *f, uint64_t from, uint64_t max, struct snapshot **out)
{
    struct range_op op;
    int err = 0;
    lock_take(&f->lock);
    range_begin(f, &op, RANGE_READ, page_of(from), UINT64_MAX);
    if (!is_dirty(f))
        err = -ENODATA;
    else if (f->snapshots && (core(f)->cut != NO_CUT || cut_is_taken(f)))
        err = -EBUSY;
    if (!err) {
        struct taking t = {.f = f, .s = new_snapshot(f), .max = MAX(max, (uint64_t)PAGE)};
        if (t.s->cut != NO_CUT) /* it cuts off what was copied before */
            kernel_io_cut(f, t.s->cut);
        if (t.s->size)
            take_pages(&t, from);
        t.s->last = t.taken == f->rec->dirty;
        t.s->next = f->snapshots;
        f->snapshots = t.s;
        *out = t.s;
    }
    range_end(f, &op);
    lock_drop(&f->lock);
    return err;
}

bool store_snapshot_next(struct snapshot *s, uint64_t *off, uint64_t end, uint64_t *until)
{
    uint64_t page = page_of(*off), stop;
    lock_take(&s->f->lock);
    bool found = *off < end && page_set_next(&s->pages->left, &page, page_of(end - 1), &stop);
    lock_drop(&s->f->lock);
    if (found) {
        *off = MAX(*off, page * PAGE);
        *until = MIN(end, (stop + 1) * PAGE);
    }
    return found;
}

/* ---- done ---- */

static void pages_on_pfs(struct file *f, const struct snapshot *s)
{
    for (size_t i = 0; i < s->pages->left.n; i++) {
        const struct page_set_chunk *sc = &s->pages->left.chunk[i];
        struct chunk_record *c = state_chunk_find(f->fid, sc->index);
        if (c && bits_any(sc->bits))
            pages_clean(f, c, sc->bits);
    }
}

void store_snapshot_done(struct snapshot *s, bool ok)
{
    struct file *f = s->f;
    lock_take(&f->lock);
    struct snapshot **p = &f->snapshots;
    while (*p != s)
        p = &(*p)->next;
    *p = s->next;
    if (ok && s->cut != NO_CUT) {
        /* Only truncations since the snapshot are left: to cut at the old place again would take
         * bytes that become clean now. */
        core_change(f->rec)->cut = s->pages->cut_since;
        store_commit(f);
        crash_order();
    }
    if (ok)
        pages_on_pfs(f, s);
    lock_drop(&f->lock);
    free_snapshot(s);
}

/* The PFS has what was fsynced, and more, so a power loss must not bring an older state back.  The record
 * says "clean" already, and goes to the disk so.  If it can not be written, the file is not clean. */
static int end_clean(struct file *f)
{
    int err = store_uncover(f);
    if (err)
        store_mark_dirty(f);
    return err;
}

/* Has the PFS no bytes of the file but those that this run, or an earlier one, has copied from here?  clean:
 * with kernel I/O, all that was a hole when the run punched the holes still is one. */
static bool becomes_whole(const struct file *f, bool had_kernel_io, bool clean)
{
    const struct file_core *c = core(f);
    bool others = f->rec->lent || fid_is_loan(f->fid); /* write the PFS file, too */
    return had_kernel_io ? clean : c->flags & CORE_BASE && !c->base_end && !others;
}

static void take_flushed(const struct file *f, struct file_core *c, const struct version *v)
{
    c->base = *v;
    if (f->rec->lent) /* a borrower has made it longer */
        c->size = MAX(c->size, v->size);
    c->base_end = MIN(MIN(v->size, c->size), c->cut);
    c->flags |= CORE_BASE;
}

bool store_flushed(struct file *f, const struct version *v, uint64_t change_then, int *err)
{
    lock_take(&f->lock);
    bool had_kernel_io = has_kernel_io(f);
    bool clean = f->change == change_then && !f->rec->dirty && core(f)->cut == NO_CUT &&
                 (v->size == core(f)->size || f->rec->lent);
    clean = kernel_io_conclude(f, clean);
    bool whole = becomes_whole(f, had_kernel_io, clean);
    struct file_core *c = core_change(f->rec);
    if (lend_flush_looked(f))
        take_flushed(f, c, v);
    c->flags &= ~(uint32_t)CORE_FLUSHING;
    if (clean) /* if it has a name, this node was about to remove it, and has not done so */
        f->rec->leaving = f->unlinked || f->nameless;
    /* The times stay as they were told; whether a loan's counts is asked later. */
    if (clean && !(c->flags & CORE_KERNEL_IO))
        c->flags &= ~(uint32_t)(fid_is_loan(f->fid) ? CORE_DIRTY : CORE_DIRTY | CORE_MTIME_SET);
    store_commit(f);
    if (clean) /* else a time that came meanwhile may still be on its way to the PFS */
        f->rec->trace.ntold = 0;
    f->rec->whole |= whole;
    int failed = clean ? end_clean(f) : store_cover_flushed(f);
    pages_release_all(f, true);  /* what may be evicted follows from both */
    if (clean)
        store_sync_made_good(f);
    bool unproved = has_kernel_io(f); /* a process may still store: it is sampled until none can */
    lock_drop(&f->lock);
    if (unproved)
        kernel_io_watch(f);
    if (err)
        *err = failed;
    return clean && !failed;
}

bool store_loan_flushed(struct file *f, uint64_t change_then, int *err)
{
    lock_take(&f->lock);
    struct version v = {.size = core(f)->size, .mtime_ns = core(f)->base.mtime_ns + 1};
    lock_drop(&f->lock);
    return store_flushed(f, &v, change_then, err);
}
