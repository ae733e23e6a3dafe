/* store_fill.c - puts clean bytes of a version into the pages that are not here yet. */
#include "placement/store/datafile.h"
#include "placement/store/state.h"
#include "placement/store/store_change.h"

#include <errno.h>

#include "placement/store/eviction.h"
#include "placement/store/store_int.h"
#include "placement/store/store_lend_int.h"
#include "placement/store/store_open.h"
#include "placement/store/store_version.h"

/* A chunk's bytes, of the version that the file has.  They count up to base_end as it is when the fill
 * begins.  A run that ends while the lock is dropped sets base_end for its new version: if there was a
 * truncation, zeros follow it there, and not these bytes. */
struct filling {
    const uint8_t *buf;
    uint64_t off, base_end;
};

/* One run of pages that are not valid: bytes from the chunk's buffer up to base_end, then zeros. */
static int fill_run(struct file *f, uint64_t first, uint64_t last, const struct filling *fl)
{
    uint64_t from = first * PAGE, end = MIN((last + 1) * PAGE, core(f)->size),
             base = MIN(end, fl->base_end);
    lock_drop(&f->lock);
    int err = change_put(f, fl->buf + (from - fl->off), base - from, from,
                         (struct padding){0, end - base});
    if (err)
        datafile_punch(f, from, end - from);
    lock_take(&f->lock);
    if (!err)
        pages_end_fill(f, first, last);
    return err;
}

/* The first page that is not valid, and not lent: of that another node has the bytes. */
static uint64_t next_to_fill(struct file *f, uint64_t page, uint64_t stop)
{
    for (page = pages_find(f, page, stop, BITS_VALID, false); page <= stop && lent_any(f, page, page);
         page = pages_find(f, page, stop, BITS_VALID, false))
        page = lent_end(f, page, stop);
    return page;
}

static int fill_pages(struct file *f, uint64_t first, uint64_t stop, const struct filling *fl)
{
    int err = 0;
    for (uint64_t page = next_to_fill(f, first, stop), until; !err && page <= stop;
         page = next_to_fill(f, until, stop)) {
        until = pages_find(f, page, stop, BITS_VALID, true);
        if (f->rec->lent)
            until = MIN(until, lent_next(f, page, stop));
        err = fill_run(f, page, until - 1, fl);
    }
    return err;
}

/* With f->lock and a WRITE op on the chunk. */
static int fill_locked(struct file *f, const struct clean_chunk *clean, enum space_limit limit)
{
    const struct version *v = &clean->version;
    uint64_t chunk = store_chunk_size(), off = clean->index * chunk, first = page_of(off);
    const struct file_core *k = core(f);
    if (has_kernel_io(f))
        return 0; /* all is here, and newer */
    if (!(k->flags & CORE_BASE) || !version_eq(&k->base, v) || off >= v->size ||
        clean->len < MIN(chunk, v->size - off))
        return -ESTALE;
    if (k->base_end <= off)
        return 0; /* cut off meanwhile: nothing of it counts */
    struct filling fl = {clean->buf, off, k->base_end};
    uint64_t stop = last_page(off, MIN(clean->len, k->base_end - off));
    struct room room = {0};
    int err = change_make_room(f, first, stop, limit, &room);
    if (err)
        return err;
    uint32_t made;
    struct chunk_record *c = pages_begin_fill(f, clean->index, &made);
    room.chunks -= made;
    if (clean->racy && !(core(f)->flags & CORE_RACY)) {
        core_change(f->rec)->flags |= CORE_RACY;
        store_commit(f);
    }
    eviction_remove(c);
    c->flags = (uint16_t)(clean->owned ? c->flags | CHUNK_OWNED : c->flags & ~CHUNK_OWNED);
    err = fill_pages(f, first, stop, &fl);
    k = core(f);
    if (!err && !(c->flags & CHUNK_WRITTEN) && !f->rec->lent && version_eq(&k->base, v) &&
        k->base_end >= off + MIN(chunk, v->size - off)) {
        c->hash = clean->hash;
        crash_order();
        c->flags |= CHUNK_HASH;
    }
    pages_release(f, c);
    space_return(room.bytes, room.chunks);
    return err;
}

static int fill_chunk(struct file *f, const struct clean_chunk *clean, enum space_limit limit)
{
    struct range_op op;
    uint64_t pages = state_pages(), first = clean->index * pages;
    if (clean->index >= (uint64_t)INT64_MAX / store_chunk_size() || clean->len > store_chunk_size())
        return -EINVAL;
    lock_take(&f->lock);
    range_begin(f, &op, RANGE_WRITE, first, first + pages - 1);
    int err = fill_locked(f, clean, limit);
    range_end(f, &op);
    lock_drop(&f->lock);
    return err;
}

int store_fill(struct file *f, const struct clean_chunk *c)
{
    return fill_chunk(f, c, SPACE_FILL);
}

int store_fill_needed(struct file *f, const struct clean_chunk *c, enum space_limit limit)
{
    return fill_chunk(f, c, limit);
}
