/* store_loan.c - see store_loan.h. */
#include "placement/store/store_loan.h"

#include <errno.h>

#include "placement/store/state_table.h"
#include "placement/store/store_change.h"
#include "placement/store/store_int.h"
#include "placement/store/store_lend_int.h"
#include "placement/store/store_version.h"

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

static bool find_unit(struct file *f, uint64_t *unit, unsigned which)
{
    lock_take(&f->lock);
    uint64_t page = UINT64_MAX, from = *unit * UNIT_PAGES;
    for (struct chunk_record *c = pages_next_chunk(f, from / state_pages()); c && page == UINT64_MAX;
         c = pages_next_chunk(f, c->index + 1)) {
        uint64_t first = MAX(from, c->index * state_pages()), last = (c->index + 1) * state_pages() - 1;
        uint64_t found = pages_find(f, first, last, which, true);
        if (found <= last)
            page = found;
    }
    lock_drop(&f->lock);
    *unit = page / UNIT_PAGES;
    return page != UINT64_MAX;
}

bool store_loan_dirty(struct file *f, uint64_t *unit)
{
    return find_unit(f, unit, BITS_DIRTY);
}

bool store_loan_valid(struct file *f, uint64_t *unit)
{
    return find_unit(f, unit, BITS_VALID);
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
