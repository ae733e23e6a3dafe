/* pages.c - page bits, in an order of which every prefix is true.
 *
 *   write   dirty, (bytes), valid             a crash leaves dirty without valid: dropped at start
 *
 *   fill    record, (bytes), valid            a crash leaves a record without pages: punched then
 *
 *   evict   not valid, (punch), record freed  the same
 *
 * "zero" is set after the punch and cleared before bytes come.
 */
#include "placement/store/pages.h"

#include <string.h>

#include "placement/store/datafile.h"
#include "placement/store/eviction.h"
#include "placement/store/kernel_io_store.h"
#include "placement/store/space.h"
#include "placement/store/state.h"
#include "placement/store/state_table.h"
#include "placement/store/store_copyout.h"
#include "placement/store/store_int.h"
#include "placement/store/store_open.h"

static uint64_t *bits(struct chunk_record *c, unsigned kind)
{
    return chunk_bits(c, kind, state_words());
}

/* ---- counted changes of [lo, hi] of a chunk ---- */

static uint32_t put(struct chunk_record *c, unsigned kind, uint32_t lo, uint32_t hi, bool set)
{
    uint32_t n = bits_put(bits(c, kind), lo, hi, set);
    if (n)
        c->flags = (uint16_t)(c->flags & ~CHUNK_SYNCED);
    return n;
}

/* Pages that are dirty and zeros without blocks: the PFS must punch them, but they are no dirty bytes. */
static uint32_t hollow(const struct file *f, struct chunk_record *c, uint32_t lo, uint32_t hi)
{
    return f->rec->zero ? bits_count_both(bits(c, BITS_DIRTY), bits(c, BITS_ZERO), lo, hi) : 0;
}

static void count_hollow(struct file *f, uint32_t before, uint32_t after)
{
    f->hollow += (uint64_t)after - before;
    space_count(0, ((int64_t)before - after) * PAGE);
}

uint64_t pages_hollow(const struct file_record *r)
{
    struct chunk_record *c;
    uint64_t n = 0, left = r->zero ? r->dirty : 0; /* chunks with dirty pages come first */
    uint32_t hi = state_pages() - 1;
    for (uint32_t no = r->first_chunk; left && (c = state_chunk_at(no)); no = c->file_next) {
        left -= bits_count(bits(c, BITS_DIRTY), 0, hi);
        n += bits_count_both(bits(c, BITS_DIRTY), bits(c, BITS_ZERO), 0, hi);
    }
    return n;
}

static void put_valid(struct file *f, struct chunk_record *c, uint32_t lo, uint32_t hi, bool set)
{
    uint32_t zeros = bits_count(bits(c, BITS_ZERO), lo, hi), was = hollow(f, c, lo, hi);
    uint32_t n = put(c, BITS_VALID, lo, hi, set);
    if (set) {
        f->rec->valid += n;
        space_count((int64_t)n * PAGE, 0);
        return;
    }
    put(c, BITS_ZERO, lo, hi, false);
    put(c, BITS_COVERED, lo, hi, false);
    count_hollow(f, was, 0);
    f->rec->valid -= n;
    f->rec->zero -= zeros;
    space_count(-(int64_t)(n - zeros) * PAGE, 0);
}

static void put_zero(struct file *f, struct chunk_record *c, uint32_t lo, uint32_t hi, bool set)
{
    uint32_t was = hollow(f, c, lo, hi), n = put(c, BITS_ZERO, lo, hi, set);
    f->rec->zero = set ? f->rec->zero + n : f->rec->zero - n;
    count_hollow(f, was, hollow(f, c, lo, hi));
    space_count(set ? -(int64_t)n * PAGE : (int64_t)n * PAGE, 0);
}

static void put_dirty(struct file *f, struct chunk_record *c, uint32_t lo, uint32_t hi, bool set)
{
    bool any = bits_any(bits(c, BITS_DIRTY));
    uint32_t was = hollow(f, c, lo, hi), n = put(c, BITS_DIRTY, lo, hi, set);
    f->rec->dirty = set ? f->rec->dirty + n : f->rec->dirty - n;
    space_count(0, set ? (int64_t)n * PAGE : -(int64_t)n * PAGE);
    count_hollow(f, was, hollow(f, c, lo, hi));
    if (set && !any)
        state_chunk_front(f->rec, c);
}

/* ---- chunks of a range ---- */

/* The part of [first, last] in one chunk. */
struct span {
    uint64_t index;
    uint32_t lo, hi;
    uint64_t next; /* first page behind it */
};

static bool span_at(uint64_t page, uint64_t last, struct span *s)
{
    if (page > last)
        return false;
    uint64_t pages = state_pages(), end;
    s->index = page / pages;
    end = MIN(last, s->index * pages + pages - 1);
    s->lo = (uint32_t)(page % pages);
    s->hi = (uint32_t)(end % pages);
    s->next = end + 1;
    return true;
}

#define EACH_SPAN(s, first, last)                                                                  \
    for (struct span s = {.next = (first)}; span_at(s.next, (last), &s);)

static struct chunk_record *find(struct file *f, uint64_t index)
{
    return state_chunk_find(f->fid, index);
}

struct chunk_record *pages_next_chunk(struct file *f, uint64_t index)
{
    struct chunk_record *c, *best = NULL;
    for (uint64_t i = index; i < index + 4; i++) /* mostly the next one is there */
        if ((c = find(f, i)))
            return c;
    for (uint32_t no = f->rec->first_chunk; (c = state_chunk_at(no)); no = c->file_next)
        if (c->index >= index && (!best || c->index < best->index))
            best = c;
    return best;
}

/* ---- looking ---- */

bool page_valid(struct file *f, uint64_t page)
{
    struct chunk_record *c = find(f, page / state_pages());
    return c && bit_get(bits(c, BITS_VALID), (uint32_t)(page % state_pages()));
}

uint64_t pages_find(struct file *f, uint64_t first, uint64_t last, unsigned kind, bool set)
{
    EACH_SPAN(s, first, last)
    {
        struct chunk_record *c = find(f, s.index);
        if (!c && !set)
            return s.index * state_pages() + s.lo;
        if (!c) { /* skips the gap in one step: it may be very long */
            c = pages_next_chunk(f, s.index);
            if (!c)
                break;
            s.next = c->index * state_pages();
            continue;
        }
        uint32_t at = bits_find(bits(c, kind), s.lo, s.hi, set);
        if (at <= s.hi)
            return s.index * state_pages() + at;
    }
    return last + 1;
}

/* The first page of s that is not valid, and lies before `holes`; s->next if none. */
static uint64_t first_missing(struct chunk_record *c, const struct span *s, uint64_t holes)
{
    uint64_t start = s->index * state_pages(), end = MIN(s->next, holes);
    if (start + s->lo >= end)
        return s->next;
    uint32_t hi = (uint32_t)(end - 1 - start), at = s->lo;
    if (c)
        at = bits_find(bits(c, BITS_VALID), s->lo, hi, false);
    return at <= hi ? start + at : s->next;
}

uint64_t pages_use(struct file *f, uint64_t first, uint64_t last, uint64_t holes)
{
    EACH_SPAN(s, first, last)
    {
        struct chunk_record *c = find(f, s.index);
        uint64_t page = first_missing(c, &s, holes);
        if (c && page > s.index * state_pages() + s.lo)
            eviction_used(c);
        if (page < s.next)
            return page;
    }
    return last + 1;
}

void pages_need(struct file *f, uint64_t first, uint64_t last, uint64_t *pages, uint32_t *chunks)
{
    *pages = 0;
    *chunks = 0;
    EACH_SPAN(s, first, last)
    {
        struct chunk_record *c = find(f, s.index);
        uint32_t have = !c ? 0
                           : bits_count(bits(c, BITS_VALID), s.lo, s.hi) -
                                 bits_count(bits(c, BITS_ZERO), s.lo, s.hi);
        *pages += s.hi - s.lo + 1 - have;
        *chunks += !c;
    }
}

/* ---- snapshots ---- */

void pages_changed(struct file *f, uint64_t first, uint64_t last)
{
    for (struct snapshot *snap = f->snapshots; snap; snap = snap->next)
        EACH_SPAN(s, MAX(first, snap->pages->first), MIN(last, snap->pages->last))
    page_set_drop(&snap->pages->left, s.index, s.lo, s.hi);
}

/* ---- writing ---- */

uint32_t pages_begin_write(struct file *f, uint64_t first, uint64_t last)
{
    uint32_t made = 0;
    EACH_SPAN(s, first, last)
    {
        struct chunk_record *c = find(f, s.index);
        if (!c) {
            c = state_chunk_new(f->rec, s.index);
            made++;
        }
        c->flags = (uint16_t)((c->flags & ~CHUNK_HASH) | CHUNK_WRITTEN);
        crash_order();
        put_dirty(f, c, s.lo, s.hi, true);
        put_zero(f, c, s.lo, s.hi, false);
        eviction_remove(c);
    }
    pages_changed(f, first, last);
    crash_order();
    return made;
}

/* This need not take the pages out of snapshots again: one that is taken during the write leaves its pages
 * out (store_copyout.c). */
void pages_end_write(struct file *f, uint64_t first, uint64_t last)
{
    bool deleted = core(f)->flags & CORE_DELETED;
    crash_order();
    EACH_SPAN(s, first, last)
    {
        struct chunk_record *c = find(f, s.index);
        put_valid(f, c, s.lo, s.hi, true);
        if (deleted) /* never flushed: nothing is dirty */
            put_dirty(f, c, s.lo, s.hi, false);
    }
    crash_order();
}

void pages_fail_write(struct file *f, uint64_t first, uint64_t last)
{
    EACH_SPAN(s, first, last)
    {
        struct chunk_record *c = find(f, s.index);
        for (uint32_t i = s.lo; i <= s.hi; i++)
            if (!bit_get(bits(c, BITS_VALID), i) || core(f)->flags & CORE_DELETED)
                put_dirty(f, c, i, i, false);
        pages_release(f, c);
    }
}

void pages_end_punch(struct file *f, uint64_t first, uint64_t last)
{
    pages_end_write(f, first, last);
    EACH_SPAN(s, first, last)
    put_zero(f, find(f, s.index), s.lo, s.hi, true);
}

/* ---- filling ---- */

struct chunk_record *pages_begin_fill(struct file *f, uint64_t index, uint32_t *made)
{
    struct chunk_record *c = find(f, index);
    *made = !c;
    if (c)
        return c;
    c = state_chunk_new(f->rec, index);
    if (index >= f->coming && index < f->coming_end)
        eviction_set_time(c, TIME_HINTED);
    return c;
}

void pages_end_fill(struct file *f, uint64_t first, uint64_t last)
{
    crash_order();
    EACH_SPAN(s, first, last)
    put_valid(f, find(f, s.index), s.lo, s.hi, true);
    crash_order();
}

/* ---- leaving ---- */

static bool is_on_pfs(const struct chunk_record *c, const struct file_core *k)
{
    return MIN((c->index + 1) * state_pages() * PAGE, k->size) <= k->base_end;
}

/* May the chunk be evicted, apart from calls that use it now?  Only if the PFS has it under the base version,
 * also for the state that the last fsync covered and a power loss would leave. */
static bool may_go(struct file *f, struct chunk_record *c)
{
    const struct file_core *k = core(f), *covered = &f->rec->covered;
    return (k->flags & CORE_BASE) && !(k->flags & CORE_DELETED) && !(c->flags & CHUNK_WRITTEN) &&
           is_on_pfs(c, k) && (!covered->check || is_on_pfs(c, covered)) &&
           !bits_any(bits(c, BITS_DIRTY));
}

static void free_chunk(struct file *f, struct chunk_record *c)
{
    eviction_remove(c);
    state_chunk_free(f->rec, c);
}

void pages_release(struct file *f, struct chunk_record *c)
{
    if (!bits_any(bits(c, BITS_VALID)) && !bits_any(bits(c, BITS_DIRTY)))
        free_chunk(f, c);
    else if (may_go(f, c))
        eviction_add(c, c->flags & CHUNK_OWNED);
    else
        eviction_remove(c);
}

void pages_release_all(struct file *f, bool flushed)
{
    struct chunk_record *c;
    uint64_t pages = state_pages(), until;
    for (uint32_t no = f->rec->first_chunk, next; (c = state_chunk_at(no)); no = next) {
        next = c->file_next;
        if (flushed && !bits_any(bits(c, BITS_DIRTY)))
            c->flags = (uint16_t)(c->flags & ~CHUNK_WRITTEN);
        if (range_changing(f, c->index * pages, &until) || until < c->index * pages + pages - 1)
            continue; /* the call that works there releases it */
        pages_release(f, c);
    }
}

static void drop_span(struct file *f, struct chunk_record *c, uint32_t lo)
{
    uint32_t hi = state_pages() - 1;
    c->flags = (uint16_t)(c->flags & ~CHUNK_HASH);
    put_valid(f, c, lo, hi, false);
    put_dirty(f, c, lo, hi, false);
}

uint64_t pages_drop_from(struct file *f, uint64_t first)
{
    struct chunk_record *c;
    uint64_t pages = state_pages(), before = f->rec->valid - f->rec->zero;
    pages_changed(f, first, UINT64_MAX - 1);
    for (uint32_t no = f->rec->first_chunk, next; (c = state_chunk_at(no)); no = next) {
        next = c->file_next;
        if ((c->index + 1) * pages <= first)
            continue;
        drop_span(f, c, first > c->index * pages ? (uint32_t)(first - c->index * pages) : 0);
        if (c->flags & CHUNK_COVERED) /* the next fsync has the disk forget it */
            f->rec->freed = 1;
        pages_release(f, c);
    }
    return (before - (f->rec->valid - f->rec->zero)) * PAGE;
}

static void clean_masked(struct file *f, struct chunk_record *c, const uint64_t *mask)
{
    for (uint32_t i = 0; i < state_pages(); i++)
        if (bit_get(mask, i))
            put_dirty(f, c, i, i, false);
}

void pages_clean(struct file *f, struct chunk_record *c, const uint64_t *mask)
{
    clean_masked(f, c, mask);
    if (!bits_any(bits(c, BITS_DIRTY)))
        pages_release(f, c);
}

/* Leaves pages that are being written now (dirty, not valid) to their writer. */
void pages_clean_all(struct file *f)
{
    struct chunk_record *c;
    for (uint32_t no = f->rec->first_chunk; (c = state_chunk_at(no)); no = c->file_next)
        clean_masked(f, c, bits(c, BITS_VALID));
}

void pages_forget(struct file *f, struct chunk_record *c, uint32_t bit)
{
    put_valid(f, c, bit, bit, false);
    put_dirty(f, c, bit, bit, false);
}

void pages_dirty_again(struct file *f, struct chunk_record *c, uint32_t bit)
{
    put_dirty(f, c, bit, bit, true);
}

/* Up to where the PFS has the clean bytes, whichever record a power loss leaves: this one or the one that the
 * last fsync covered. */
static uint64_t known_end(const struct file *f)
{
    const struct file_core *k = &f->rec->covered;
    return k->check ? MIN(core(f)->base_end, k->base_end) : core(f)->base_end;
}

bool pages_are_beyond(struct file *f)
{
    return known_end(f) < core(f)->size;
}

/* Marks as covered what a power loss must not take from this chunk: its dirty pages, and clean pages beyond
 * what the PFS has under a known version (a run has cleaned them, and has not ended).  here: the pages that
 * the disk has for sure; no others are marked. */
static void cover_chunk(struct file *f, struct chunk_record *c, const uint64_t *here)
{
    const uint64_t *dirty = bits(c, BITS_DIRTY), *valid = bits(c, BITS_VALID);
    uint64_t *covered = bits(c, BITS_COVERED), first = c->index * state_pages();
    uint64_t end = known_end(f), known = end < core(f)->size ? page_of(end) : UINT64_MAX;
    for (uint32_t w = 0; w < state_words(); w++) {
        uint64_t want = dirty[w];
        for (uint32_t i = w * 64; valid[w] & ~want && i < w * 64 + 64 && i < state_pages(); i++)
            want |= first + i >= known ? valid[w] & UINT64_C(1) << i % 64 : 0;
        want &= here[w];
        if (covered[w] != want)
            c->flags = (uint16_t)(c->flags & ~CHUNK_SYNCED);
        covered[w] = want;
        c->flags |= want ? CHUNK_COVERED : 0;
    }
}

/* Brings the chunk's record to the disk.  All of its bits count there, not only the covered bits: a page may
 * have been cleaned, or punched, and written again.  Chunks that were never covered are dropped after a power
 * loss anyway.  f->lock is dropped meanwhile: a change in between clears CHUNK_SYNCED. */
static int sync_chunk(struct file *f, struct chunk_record *c)
{
    uint64_t index = c->index;
    if (c->flags & CHUNK_SYNCED || !(c->flags & CHUNK_COVERED))
        return 0;
    c->flags |= CHUNK_SYNCED;
    lock_drop(&f->lock);
    int err = state_sync(c, sizeof(*c) + BITS_KINDS * state_words() * 8);
    lock_take(&f->lock);
    if (find(f, index) != c) /* it was cut off */
        return err;
    if (err)
        c->flags = (uint16_t)(c->flags & ~CHUNK_SYNCED);
    else if (c->flags & CHUNK_SYNCED && !bits_any(bits(c, BITS_COVERED)))
        c->flags = (uint16_t)(c->flags & ~CHUNK_COVERED);
    return err;
}

int pages_cover(struct file *f, const struct covering *cv)
{
    int err = 0;
    for (size_t i = 0; !err && !cv->over && i < cv->here.n; i++) {
        err = store_cover_apply(f);
        struct chunk_record *c = find(f, cv->here.chunk[i].index);
        if (err || !c)
            continue;
        cover_chunk(f, c, cv->here.chunk[i].bits);
        err = sync_chunk(f, c);
    }
    return err;
}

/* ---- eviction ---- */

void pages_used(struct file *f)
{
    struct chunk_record *c;
    for (uint32_t no = f->rec->first_chunk; (c = state_chunk_at(no)); no = c->file_next)
        eviction_used(c);
}

static bool must_uncover(const struct file *f, const struct chunk_record *c)
{
    return !store_cover_is_applied(f) || (f->rec->covered.check && c->flags & CHUNK_COVERED);
}

/* Takes the covered bits off a chunk that will be punched, also on the disk.  Else, after a power loss, the
 * record of the last fsync would say that these pages are dirty, and zeros would go to the PFS.  Before that,
 * the file's record must be on the disk, which says that the PFS has these pages.  With a range on the chunk;
 * drops f->lock meanwhile. */
static int uncover_chunk(struct file *f, struct chunk_record *c)
{
    if (!must_uncover(f, c))
        return 0;
    uint64_t *covered = bits(c, BITS_COVERED);
    size_t size = state_words() * sizeof(*covered);
    int err = store_cover_apply(f);
    if (err || !f->rec->covered.check || !(c->flags & CHUNK_COVERED))
        return err;
    memset(covered, 0, size);
    c->flags = (uint16_t)(c->flags & ~CHUNK_SYNCED);
    lock_drop(&f->lock);
    err = state_sync(c, sizeof(*c) + BITS_KINDS * size);
    lock_take(&f->lock);
    if (err)
        log_error("the cache's disk: writing a record: %s", strerror(-err));
    else
        c->flags = (uint16_t)(c->flags & ~CHUNK_COVERED);
    return err;
}

/* Under f->lock: takes the chunk's pages away if it may go now.  The caller then removes bytes and record. */
static bool evict_begin(struct file *f, uint64_t index, bool (*wanted)(struct file *f), bool now,
                        struct range_op *op, uint64_t *bytes)
{
    struct chunk_record *c = find(f, index);
    uint64_t first = index * state_pages(), last = first + state_pages() - 1;
    if (!c)
        return false;
    if (!may_go(f, c)) {
        eviction_remove(c);
        return false;
    }
    if (wanted(f) || range_busy(f, first, last))
        return false;
    if (now && must_uncover(f, c))
        return false;
    /* a replica whose owner left may be the session's last copy, and this node its owner now */
    if (!(c->flags & CHUNK_OWNED) && eviction_is_owner(c->fid, c->index)) {
        eviction_add(c, true);
        return false;
    }
    range_begin(f, op, RANGE_DROP, first, last); /* does not wait: no call works there */
    int err = uncover_chunk(f, c);
    if (err)
        eviction_remove(c);                     /* until it is released again */
    if (err || wanted(f) || !may_go(f, c)) { /* it may have been unlinked meanwhile */
        range_end(f, op);
        return false;
    }
    uint64_t before = f->rec->valid - f->rec->zero;
    store_not_whole(f);
    eviction_remove(c);
    drop_span(f, c, 0);
    *bytes = (before - (f->rec->valid - f->rec->zero)) * PAGE;
    crash_order();
    return true;
}

bool pages_evict(struct file *f, uint64_t index, bool (*wanted)(struct file *f), bool now)
{
    struct range_op op;
    uint64_t bytes, chunk = (uint64_t)state_pages() * PAGE;
    lock_take(&f->lock);
    bool begun = evict_begin(f, index, wanted, now, &op, &bytes);
    lock_drop(&f->lock);
    if (!begun)
        return false;
    int err = datafile_punch(f, index * chunk, chunk);
    if (err)
        log_warn("the cache's disk does not give space back: %s", strerror(-err));
    lock_take(&f->lock);
    free_chunk(f, find(f, index));
    range_end(f, &op);
    lock_drop(&f->lock);
    count(evicted_bytes, bytes);
    return true;
}
