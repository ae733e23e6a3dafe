/* store_lend.c - see store_lend.h. */
#include "placement/store/store_lend.h"

#include <errno.h>
#include <stdlib.h>

#include "placement/store/pages.h"
#include "placement/store/state_table.h"
#include "placement/store/store_change.h"
#include "placement/store/store_int.h"
#include "placement/store/store_lend_int.h"
#include "placement/store/store_version.h"

#define BORROWERS_MAX 4096u

struct borrower {
    struct lend_node node; /* id 0: a free place */
    uint64_t since;        /* the epoch in which the first unit was lent to it; 0: it is not known which */
};
struct lending {
    struct unit_map map; /* the number is the borrower's place, from 1 on */
    struct borrower *who;
    unsigned n;
    unsigned stopped;
    uint64_t before_stop; /* the epoch */
    bool known;     /* what a daemon before this one has lent */
    uint64_t epoch; /* how often something was taken back, or was about to be, counted on from the number of this start */
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

/* The node's number; 0: it has none. */
static uint16_t number_of(const struct lending *l, uint64_t node)
{
    for (unsigned i = 0; i < l->n; i++)
        if (l->who[i].node.id == node)
            return (uint16_t)(i + 1);
    return 0;
}

/* 0: there are too many. */
static uint16_t make_number(struct lending *l, struct lend_node node, uint64_t since)
{
    unsigned free = 0;
    uint16_t number = number_of(l, node.id);
    if (number)
        return number;
    while (free < l->n && l->who[free].node.id)
        free++;
    if (free == BORROWERS_MAX)
        return 0;
    if (free == l->n)
        l->who = xrealloc(l->who, ++l->n * sizeof(*l->who));
    l->who[free] = (struct borrower){node, since};
    return (uint16_t)(free + 1);
}

unsigned store_borrowers(struct file *f, uint64_t *out, unsigned max)
{
    unsigned n = 0;
    lock_take(&f->lock);
    const struct lending *l = f->lending;
    for (unsigned i = 0; l && i < l->n; i++) {
        if (l->who[i].node.id && n < max)
            out[n] = l->who[i].node.id;
        n += l->who[i].node.id != 0;
    }
    lock_drop(&f->lock);
    return n;
}

uint64_t store_lent_units(struct file *f, uint64_t node)
{
    uint64_t n = 0, first = 0, last;
    lock_take(&f->lock);
    uint16_t number = f->lending ? number_of(f->lending, node) : 0;
    while (number && unit_next_run(&f->lending->map, number, &first, &last)) {
        n += last - first + 1;
        first = last + 1;
    }
    lock_drop(&f->lock);
    return n;
}

uint64_t store_borrower_inc(struct file *f, uint64_t node)
{
    lock_take(&f->lock);
    const struct lending *l = f->lending;
    uint16_t number = l ? number_of(l, node) : 0;
    uint64_t inc = number ? l->who[number - 1].node.inc : 0;
    lock_drop(&f->lock);
    return inc;
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
static int lend_units(struct file *f, struct lend_node node, uint64_t first, uint64_t last)
{
    int err = may_lend(f);
    uint16_t number = 0;
    for (uint64_t unit = first; !err && unit <= last; unit++) {
        if (!is_untouched(f, unit))
            continue;
        if (!number && !(number = make_number(f->lending, node, f->lending->epoch)))
            return -ENOSPC;
        store_not_whole(f);
        __atomic_store_n(&f->rec->lent, 1, __ATOMIC_RELEASE);
        err = unit_set(&f->lending->map, unit, number);
    }
    return err;
}

/* With f->lock.  Epochs grow over starts, so that what a dead daemon has lent is of an earlier one. */
static struct lending *lending_of(struct file *f)
{
    if (!f->lending) {
        f->lending = xcalloc(1, sizeof(*f->lending));
        f->lending->known = !f->rec->lent;
        f->lending->epoch = store.dir.incarnation & ~(uint64_t)UINT32_MAX; /* the number of starts */
    }
    return f->lending;
}

/* With f->lock. */
static int note_found(struct lending *l, struct lend_node node, uint64_t first, uint64_t last)
{
    uint16_t number = make_number(l, node, 0);
    int err = number ? 0 : -ENOSPC;
    for (uint64_t unit = first; !err && unit <= last; unit++)
        err = unit_set(&l->map, unit, number);
    return err;
}

int store_lent_found(struct file *f, struct lend_node node, uint64_t first, uint64_t last)
{
    lock_take(&f->lock);
    int err = note_found(lending_of(f), node, first, last);
    lock_drop(&f->lock);
    return err;
}

void store_lent_lost(struct file *f)
{
    lock_take(&f->lock);
    struct lending *l = f->lending;
    if (l && !l->known) {
        unit_clear_all(&l->map);
        l->n = 0;
    }
    lock_drop(&f->lock);
}

int store_lend(struct file *f, struct lend_node node, uint64_t first, uint64_t last)
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
        node = number ? l->who[number - 1].node.id : 0;
    }
    lock_drop(&f->lock);
    return node;
}

uint64_t store_lend_stop(struct file *f)
{
    lock_take(&f->lock);
    struct lending *l = lending_of(f);
    if (!l->stopped++)
        l->before_stop = l->epoch;
    uint64_t epoch = ++l->epoch;
    lock_drop(&f->lock);
    return epoch;
}

uint64_t store_lent_epoch(struct file *f)
{
    lock_take(&f->lock);
    const struct lending *l = lending_of(f);
    uint64_t epoch = l->stopped ? l->before_stop : l->epoch;
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
    uint64_t epoch = ++lending_of(f)->epoch;
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

/* With f->lock.  The node has nothing any more, and what it has written is on the PFS.  True: the file became dirty. */
static bool take_back(struct file *f, uint16_t number, const struct lent_back *b)
{
    struct lending *l = f->lending;
    bool became = rebase(f, &b->v);
    take_word(f, b->size, b->mtime_ns);
    crash_order();
    unit_clear(&l->map, number);
    l->who[number - 1].node.id = 0;
    return became;
}

/* With f->lock.  0: it has nothing, or RETURN was long on its way, and speaks of what it had before. */
static uint16_t returner(const struct lending *l, uint64_t node, const struct lent_back *b)
{
    uint16_t number = l && l->known ? number_of(l, node) : 0;
    const struct borrower *who = number ? &l->who[number - 1] : NULL;
    return who && b->began >= who->since && (!b->inc || b->inc == who->node.inc) ? number : 0;
}

bool store_lent_returned(struct file *f, uint64_t node, const struct lent_back *b, uint64_t *epoch)
{
    bool became = false;
    lock_take(&f->lock);
    struct lending *l = f->lending;
    uint16_t number = returner(l, node, b);
    bool newest = !number || b->looks == l->looks;
    if (number && newest) {
        became = take_back(f, number, b);
        if (!l->map.set)
            nothing_is_lent(f);
    }
    *epoch = l && newest ? ++l->epoch : 0;
    lock_drop(&f->lock);
    store_tell_dirty(f, became);
    return newest;
}

bool store_lent_held(struct file *f, uint64_t node, uint64_t epoch, const struct lend_units *parts, size_t n,
                     const struct lent_back *b, int *err)
{
    bool became = false;
    *err = 0;
    lock_take(&f->lock);
    struct lending *l = f->lending;
    uint16_t number = l && l->known ? number_of(l, node) : 0;
    bool counts = !number || (l->epoch == epoch && b->looks == l->looks);
    if (number && counts) {
        became = take_back(f, number, b);
        for (size_t i = 0; i < n && !*err; i++)
            *err = note_found(l, (struct lend_node){node, b->inc}, parts[i].first, parts[i].last);
        l->known = !*err;
        if (!*err && !l->map.set)
            nothing_is_lent(f);
        l->epoch++;
    }
    lock_drop(&f->lock);
    store_tell_dirty(f, became);
    return counts;
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
    free(f->lending->who);
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
    int err = fresh ? store_set_reborn(f) : 0; /* the loan before may still be referenced */
    if (err)
        return err;
    lock_take(&f->lock);
    err = fresh ? drop_pages(f) : 0;
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
    if (fresh)
        c->flags |= CORE_MTIME_SET;
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
