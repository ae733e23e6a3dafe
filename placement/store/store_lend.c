/* store_lend.c - see store_lend.h. */
#include "placement/store/store_lend.h"

#include <errno.h>
#include <stdlib.h>

#include "placement/store/pages.h"
#include "placement/store/state_table.h"
#include "placement/store/store_change.h"
#include "placement/store/store_int.h"
#include "placement/store/store_lend_int.h"

#define BORROWERS_MAX 4096u

struct lending {
    struct unit_map map; /* the number is the borrower's place, from 1 on */
    struct borrower {
        uint64_t node;  /* 0: a free place */
        uint64_t since; /* the epoch in which it has got it */
    } *borrower;
    unsigned n;
    unsigned stopped;
    bool known;     /* what a daemon before this one has lent */
    uint64_t epoch; /* how often something was taken back, or was about to be */
    uint64_t looks, flush_looks; /* store_pfs_looks: now, and before the look of the flush that runs */
};

static uint64_t unit_of(uint64_t page)
{
    return page / UNIT_PAGES;
}

/* ---- what it forbids here ---- */

bool store_is_lent(struct file *f)
{
    return __atomic_load_n(&f->rec->lent, __ATOMIC_ACQUIRE);
}

/* The first page in [first, last] that is lent, if `is`, or is not; last + 1: there is none. */
static uint64_t find_page(const struct file *f, uint64_t first, uint64_t last, bool is)
{
    const struct unit_map *m = &f->lending->map;
    for (uint64_t page = first; page <= last;) {
        uint64_t unit = unit_of(page), until = unit_same_until(m, unit, unit_of(last));
        if (!!unit_get(m, unit) == is)
            return page;
        if (until >= unit_of(last))
            break;
        page = (until + 1) * UNIT_PAGES;
    }
    return last + 1;
}

/* All may be lent. */
static bool is_vague(const struct file *f)
{
    return f->rec->lent && (!f->lending || !f->lending->known);
}

uint64_t lent_next(const struct file *f, uint64_t first, uint64_t last)
{
    if (is_vague(f))
        return first;
    if (!f->lending)
        return last + 1;
    return find_page(f, first, last, true);
}

uint64_t lent_end(const struct file *f, uint64_t first, uint64_t last)
{
    if (is_vague(f))
        return last + 1;
    if (!f->lending)
        return first;
    return find_page(f, first, last, false);
}

/* ---- beginning and end ---- */

int store_share_begin(struct file *f)
{
    int err = 0;
    lock_take(&f->lock);
    if (core(f)->flags & CORE_DELETED || f->unlinked)
        err = -EIDRM;
    else if (f->kernel_io.opens || f->shadow)
        err = -EBUSY;
    else if (has_kernel_io(f))
        err = -EAGAIN;
    if (!err) {
        f->shares++;
        f->shared = true;
    }
    lock_drop(&f->lock);
    return err;
}

static void look_shared(struct file *f)
{
    f->shared = f->shares || f->rec->lent;
}

void store_share_end(struct file *f)
{
    lock_take(&f->lock);
    f->shares--;
    look_shared(f);
    lock_drop(&f->lock);
}

/* ---- borrowers ---- */

/* The node's number; 0: it has none.  make: it gets one, 0: there are too many. */
static uint16_t number_of(struct lending *l, uint64_t node, bool make)
{
    unsigned free = l->n;
    for (unsigned i = 0; i < l->n; i++) {
        if (l->borrower[i].node == node)
            return (uint16_t)(i + 1);
        if (!l->borrower[i].node)
            free = i;
    }
    if (!make || free == BORROWERS_MAX)
        return 0;
    if (free == l->n) {
        l->borrower = xrealloc(l->borrower, (l->n + 1) * sizeof(*l->borrower));
        l->n++;
    }
    l->borrower[free] = (struct borrower){node, l->epoch};
    return (uint16_t)(free + 1);
}

unsigned store_borrowers(struct file *f, uint64_t *out, unsigned max)
{
    unsigned n = 0;
    lock_take(&f->lock);
    const struct lending *l = f->lending;
    for (unsigned i = 0; l && i < l->n; i++) {
        if (l->borrower[i].node && n < max)
            out[n] = l->borrower[i].node;
        n += l->borrower[i].node != 0;
    }
    lock_drop(&f->lock);
    return n;
}

uint64_t store_lent_units(struct file *f, uint64_t node)
{
    uint64_t n = 0, first = 0, last;
    lock_take(&f->lock);
    uint16_t number = f->lending ? number_of(f->lending, node, false) : 0;
    while (number && unit_next_run(&f->lending->map, number, &first, &last)) {
        n += last - first + 1;
        first = last + 1;
    }
    lock_drop(&f->lock);
    return n;
}

/* ---- lending ---- */

static bool is_untouched(struct file *f, uint64_t unit)
{
    uint64_t first = unit * UNIT_PAGES, last = first + UNIT_PAGES - 1;
    return !unit_get(&f->lending->map, unit) && pages_find(f, first, last, BITS_VALID, true) > last &&
           pages_find(f, first, last, BITS_DIRTY, true) > last;
}

static int may_lend(const struct file *f)
{
    const struct file_core *c = core(f);
    if (f->lending->stopped || !f->lending->known || c->flags & CORE_DELETED || f->unlinked)
        return -EAGAIN;
    bool owed = c->cut != NO_CUT || !(c->flags & CORE_BASE) || c->base.size > c->base_end;
    return owed && !f->rec->lent ? -EBUSY : 0;
}

/* With a DROP op on their pages. */
static int lend_units(struct file *f, uint64_t node, uint64_t first, uint64_t last)
{
    int err = may_lend(f);
    uint16_t number = 0;
    for (uint64_t unit = first; !err && unit <= last; unit++) {
        if (!is_untouched(f, unit))
            continue;
        if (!number && !(number = number_of(f->lending, node, true)))
            return -ENOSPC;
        store_not_whole(f);
        __atomic_store_n(&f->rec->lent, 1, __ATOMIC_RELEASE);
        err = unit_set(&f->lending->map, unit, number);
    }
    return err;
}

/* With f->lock. */
static struct lending *lending_of(struct file *f)
{
    if (!f->lending) {
        f->lending = xcalloc(1, sizeof(*f->lending));
        f->lending->known = !f->rec->lent;
    }
    return f->lending;
}

int store_lent_found(struct file *f, uint64_t node, uint64_t first, uint64_t last)
{
    lock_take(&f->lock);
    uint16_t number = number_of(lending_of(f), node, true);
    int err = number ? 0 : -ENOSPC;
    for (uint64_t unit = first; !err && unit <= last; unit++)
        err = unit_set(&f->lending->map, unit, number);
    lock_drop(&f->lock);
    return err;
}

int store_lend(struct file *f, uint64_t node, uint64_t first, uint64_t last)
{
    struct range_op op;
    lock_take(&f->lock);
    lending_of(f);
    range_begin(f, &op, RANGE_DROP, first * UNIT_PAGES, last * UNIT_PAGES + UNIT_PAGES - 1);
    int err = lend_units(f, node, first, last);
    range_end(f, &op);
    lock_drop(&f->lock);
    return err;
}

uint64_t store_lent_to(struct file *f, uint64_t unit, uint64_t last, uint64_t *until)
{
    uint64_t node = 0;
    *until = last;
    lock_take(&f->lock);
    const struct lending *l = f->lending;
    if (l && l->map.set) {
        uint16_t number = unit_get(&l->map, unit);
        *until = unit_same_until(&l->map, unit, last);
        node = number ? l->borrower[number - 1].node : 0;
    }
    lock_drop(&f->lock);
    return node;
}

uint64_t store_lend_stop(struct file *f)
{
    lock_take(&f->lock);
    lending_of(f)->stopped++;
    uint64_t epoch = ++f->lending->epoch;
    lock_drop(&f->lock);
    return epoch;
}

uint64_t store_lend_epoch(struct file *f)
{
    lock_take(&f->lock);
    uint64_t epoch = f->lending ? f->lending->epoch : 0;
    lock_drop(&f->lock);
    return epoch;
}

uint64_t store_lend_next_epoch(struct file *f)
{
    lock_take(&f->lock);
    uint64_t epoch = f->lending ? ++f->lending->epoch : 0;
    lock_drop(&f->lock);
    return epoch;
}

void store_lend_go(struct file *f)
{
    lock_take(&f->lock);
    f->lending->stopped--;
    lock_drop(&f->lock);
}

/* ---- what borrowers say ---- */

/* With f->lock. */
static void take_word(struct file *f, uint64_t size, int64_t mtime_ns)
{
    struct file_core *c = core_change(f->rec);
    c->size = MAX(c->size, size);
    if (mtime_ns > c->mtime_ns) {
        c->mtime_ns = mtime_ns;
        c->ctime_ns = MAX(c->ctime_ns + 1, real_ns());
        c->flags &= ~(uint32_t)CORE_MTIME_SET;
    }
    store_commit(f);
    store_changed(f);
}

bool store_lent_is(struct file *f, uint64_t epoch, uint64_t size, int64_t mtime_ns)
{
    lock_take(&f->lock);
    const struct file_core *now = core(f);
    bool counts = epoch == (f->lending ? f->lending->epoch : 0);
    if (counts && f->rec->lent && (size > now->size || mtime_ns > now->mtime_ns))
        take_word(f, size, mtime_ns);
    lock_drop(&f->lock);
    return counts;
}

static void nothing_is_lent(struct file *f)
{
    f->lending->known = true;
    __atomic_store_n(&f->rec->lent, 0, __ATOMIC_RELEASE);
    look_shared(f);
}

uint64_t store_pfs_looks(struct file *f)
{
    lock_take(&f->lock);
    uint64_t looks = f->lending ? f->lending->looks : 0;
    lock_drop(&f->lock);
    return looks;
}

void lend_flush_looks(struct file *f)
{
    if (f->lending)
        f->lending->flush_looks = f->lending->looks;
}

bool lend_flush_looked(struct file *f)
{
    if (!f->lending)
        return true;
    if (f->lending->looks != f->lending->flush_looks)
        return false;
    f->lending->looks++;
    return true;
}

/* The PFS file is v, by the writes of borrowers.  With f->lock; true: it became dirty. */
static bool rebase(struct file *f, const struct version *v)
{
    bool became = store_mark_dirty(f);
    struct file_core *c = core_change(f->rec);
    c->base = *v;
    c->base_end = v->size;
    c->size = MAX(c->size, v->size);
    c->flags |= CORE_BASE;
    store_commit(f);
    f->lending->looks++;
    return became;
}

/* With f->lock.  True: the file became dirty. */
static bool take_back(struct file *f, uint16_t number, const struct lent_back *b)
{
    struct lending *l = f->lending;
    bool became = rebase(f, &b->v);
    take_word(f, b->size, b->mtime_ns);
    crash_order();
    unit_clear(&l->map, number);
    l->borrower[number - 1].node = 0;
    if (!l->map.set)
        nothing_is_lent(f);
    return became;
}

bool store_lent_returned(struct file *f, uint64_t node, const struct lent_back *b, uint64_t *epoch)
{
    bool became = false;
    lock_take(&f->lock);
    struct lending *l = f->lending;
    uint16_t number = l && l->known ? number_of(l, node, false) : 0;
    if (number && l->borrower[number - 1].since > b->epoch)
        number = 0; /* it has returned all since then, and borrowed again */
    bool newest = !number || b->looks == l->looks;
    if (number && newest)
        became = take_back(f, number, b);
    *epoch = l && newest ? ++l->epoch : 0;
    lock_drop(&f->lock);
    store_tell_dirty(f, became);
    return newest;
}

bool store_lent_is_known(struct file *f)
{
    lock_take(&f->lock);
    bool known = !is_vague(f);
    lock_drop(&f->lock);
    return known;
}

void store_lent_known(struct file *f, const struct version *v)
{
    bool became = false;
    lock_take(&f->lock);
    if (is_vague(f)) {
        lending_of(f)->known = true;
        became = rebase(f, v); /* what has come back since then is on the PFS */
        store_changed(f);
        crash_order();
        if (!f->lending->map.set)
            nothing_is_lent(f);
    }
    lock_drop(&f->lock);
    store_tell_dirty(f, became);
}

void store_lend_free(struct file *f)
{
    if (!f->lending)
        return;
    unit_clear_all(&f->lending->map);
    free(f->lending->borrower);
    free(f->lending);
    f->lending = NULL;
}

/* ---- the borrower's side ---- */

/* With f->lock, which is dropped meanwhile. */
static int drop_pages(struct file *f)
{
    struct range_op op;
    uint64_t bytes;
    range_begin(f, &op, RANGE_DROP, 0, UINT64_MAX);
    int err = f->rec->first_chunk != SLOT_NONE ? store_drop_all(f, &bytes) : 0;
    if (!err && core(f)->flags & CORE_BASE) {
        struct file_core *c = core_change(f->rec);
        c->size = c->base_end = c->base.size = 0;
        store_commit(f);
    }
    range_end(f, &op);
    return err;
}

int store_loan_begin(struct file *f, uint64_t lender, uint64_t claim_inc, uint64_t claim_number, uint64_t base_end,
                     bool fresh)
{
    lock_take(&f->lock);
    int err = fresh ? drop_pages(f) : 0;
    if (err) {
        lock_drop(&f->lock);
        return err;
    }
    f->rec->lender = lender;
    crash_order();
    struct file_core *c = core_change(f->rec);
    if (!(c->flags & CORE_BASE))
        c->base = (struct version){0};
    c->base_end = MAX(c->base.size, base_end);
    c->size = MAX(c->size, c->base_end);
    c->base.size = c->base_end;
    c->cut = NO_CUT;
    c->claim_inc = claim_inc;
    c->claim_number = claim_number;
    c->flags |= CORE_BASE;
    store_commit(f);
    lock_drop(&f->lock);
    return 0;
}

bool store_loan_dirty(struct file *f, uint64_t *unit)
{
    lock_take(&f->lock);
    uint64_t page = UINT64_MAX, from = *unit * UNIT_PAGES;
    for (struct chunk_record *c = pages_next_chunk(f, from / state_pages()); c && page == UINT64_MAX;
         c = pages_next_chunk(f, c->index + 1)) {
        uint64_t first = MAX(from, c->index * state_pages()), last = (c->index + 1) * state_pages() - 1;
        uint64_t dirty = pages_find(f, first, last, BITS_DIRTY, true);
        if (dirty <= last)
            page = dirty;
    }
    lock_drop(&f->lock);
    *unit = page / UNIT_PAGES;
    return page != UINT64_MAX;
}

uint64_t store_loan_of(struct file *f, uint64_t *claim_inc, uint64_t *claim_number)
{
    lock_take(&f->lock);
    *claim_inc = core(f)->claim_inc;
    *claim_number = core(f)->claim_number;
    uint64_t lender = f->rec->lender;
    lock_drop(&f->lock);
    return fid_is_loan(f->fid) ? lender : 0;
}

/* With f->lock and a WRITE op on the page. */
static int fill_page(struct file *f, int64_t mtime_ns, uint64_t page, const void *buf, size_t len)
{
    struct room room = {0};
    int err = page_valid(f, page) ? 0 : change_make_room(f, page, page, SPACE_DISK, &room);
    if (!err && core(f)->base.mtime_ns != mtime_ns)
        err = -ESTALE;
    if (!err && !page_valid(f, page)) {
        uint32_t made;
        uint64_t end = MIN((page + 1) * PAGE, core(f)->size), off = page * PAGE;
        len = MIN(len, end - MIN(end, off));
        struct chunk_record *c = pages_begin_fill(f, page / state_pages(), &made);
        room.chunks -= made;
        lock_drop(&f->lock);
        err = change_put(f, buf, len, off, (struct padding){0, end - off - len});
        lock_take(&f->lock);
        if (!err)
            pages_end_fill(f, page, page);
        pages_release(f, c);
    }
    space_return(room.bytes, room.chunks);
    return err;
}

int store_loan_fill(struct file *f, int64_t mtime_ns, uint64_t page_off, const void *buf, size_t len)
{
    struct range_op op;
    uint64_t page = page_of(page_off);
    lock_take(&f->lock);
    range_begin(f, &op, RANGE_WRITE, page, page);
    int err = fill_page(f, mtime_ns, page, buf, len);
    range_end(f, &op);
    lock_drop(&f->lock);
    return err;
}
