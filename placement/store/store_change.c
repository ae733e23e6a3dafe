/* store_change.c - see store_change.h. */
#include "placement/store/datafile.h"
#include "placement/store/state.h"
#include "placement/store/state_table.h"
#include "placement/store/store_change.h"
#include "placement/store/store_copyout.h"
#include "placement/store/store_int.h"
#include "placement/store/store_open.h"

#include <errno.h>

static const char zeros[PAGE];

/* Is this what making a file returns if the disk has no inode for it? */
static bool is_full(int err)
{
    return err == -ENOSPC || err == -EDQUOT;
}

/* Without f->lock.  A data file is made before its first bytes come: a disk without inodes is one without room. */
static int make_data_file(struct file *f, enum space_limit limit)
{
    int fd, err = space_reserve_inode(limit);
    if (err)
        return err;
    while (is_full(err = datafile_get(f, true, &fd)))
        if (!space_more_inodes(limit))
            return -ENOSPC;
    if (!err)
        datafile_put(f);
    return err;
}

static int need_data_file(struct file *f, enum space_limit limit)
{
    if (datafile_is_made(f))
        return 0;
    lock_drop(&f->lock);
    int err = make_data_file(f, limit);
    lock_take(&f->lock);
    return err;
}

/* While the lock is dropped, a thread that works on another page of the chunk may free the chunk's record.
 * So the missing room is counted again.  page: the bytes that each page needs. */
static int make_room(struct file *f, uint64_t first, uint64_t last, unsigned page,
                     enum space_limit limit, struct room *r)
{
    for (;;) {
        uint64_t pages;
        struct room need;
        pages_need(f, first, last, &pages, &need.chunks);
        need.bytes = pages * page;
        if (need.bytes <= r->bytes && need.chunks <= r->chunks)
            return 0;
        space_return(r->bytes, r->chunks);
        *r = (struct room){0};
        lock_drop(&f->lock);
        int err = space_reserve(need.bytes, need.chunks, limit);
        lock_take(&f->lock);
        if (err)
            return err;
        *r = need;
    }
}

int change_make_room(struct file *f, uint64_t first, uint64_t last, enum space_limit limit,
                     struct room *r)
{
    int err = need_data_file(f, limit);
    return err ? err : make_room(f, first, last, PAGE, limit, r);
}

int change_make_records(struct file *f, uint64_t first, uint64_t last, enum space_limit limit,
                        struct room *r)
{
    return make_room(f, first, last, 0, limit, r);
}

/* ---- pages that are only partly covered ---- */

/* Must the page be filled before [off, off + len) of it is changed?  True if it is not valid, and some of its
 * bytes are on the PFS. */
static bool needs_fill(struct file *f, uint64_t page, uint64_t off, uint64_t len)
{
    uint64_t begin = page * PAGE, base_end = core(f)->base_end;
    if (page >= store_first_hole(f) || has_kernel_io(f) || page_valid(f, page))
        return false;
    return off > begin || off + len < MIN(begin + PAGE, base_end);
}

int change_check_edges(struct file *f, uint64_t off, uint64_t len, uint64_t *fill_off)
{
    uint64_t first = page_of(off), last = last_page(off, len);
    uint64_t page = needs_fill(f, first, off, len)  ? first
                    : needs_fill(f, last, off, len) ? last
                                                    : UINT64_MAX;
    if (page == UINT64_MAX)
        return 0;
    *fill_off = page * PAGE;
    return -ENODATA;
}

struct padding change_padding(struct file *f, uint64_t off, uint64_t len)
{
    struct padding p = {0, 0};
    if (has_kernel_io(f)) /* all pages are whole, whatever the records say */
        return p;
    uint64_t end = off + len, size = MAX(core(f)->size, end);
    if (!page_valid(f, page_of(off)))
        p.before = off % PAGE;
    /* Not beyond the end of the file: the data file is never longer, so what follows is zeros
     * already. */
    if (end % PAGE && !page_valid(f, page_of(end)))
        p.after = MIN(PAGE - end % PAGE, size - end);
    return p;
}

int change_put(struct file *f, const void *buf, size_t len, uint64_t off, struct padding p)
{
    struct iovec iov[3] = {
        {(void *)(uintptr_t)zeros, p.before},
        {(void *)(uintptr_t)buf, len},
        {(void *)(uintptr_t)zeros, p.after},
    };
    return datafile_pwritev(f, iov, 3, off - p.before);
}

/* ---- the end ---- */

int change_clear_end(struct file *f)
{
    int err = f->rec->uncut & UNCUT_END ? datafile_truncate(f, core(f)->size) : 0;
    if (!err)
        clear_uncut(f, UNCUT_END);
    return err;
}

/* ---- the record ---- */

/* c: the core that is being changed; it has the size already. */
static void end_change(struct file *f, struct file_core *c)
{
    uint64_t was = core(f)->size;
    struct chunk_record *last =
        was && was != c->size ? state_chunk_find(f->fid, (was - 1) / store_chunk_size()) : NULL;
    if (last) /* it was the hash of a chunk that ended there */
        last->flags = (uint16_t)(last->flags & ~CHUNK_HASH);
    c->mtime_ns = real_ns();
    c->ctime_ns = MAX(c->ctime_ns + 1, c->mtime_ns); /* each change has a later one: the PFS's clock may be ahead */
    c->flags &= ~(uint32_t)CORE_MTIME_SET;
    if (c->flags & CORE_DELETED)
        f->only_here = true;
    else
        c->flags |= CORE_DIRTY;
    store_commit(f);
    store_changed(f);
}

void change_begins(struct file *f)
{
    if (!(core(f)->flags & CORE_FLUSHING) || has_kernel_io(f)) /* the kernel stamps the data file */
        return;
    struct file_core *c = core_change(f->rec);
    c->ctime_ns = MAX(c->ctime_ns + 1, real_ns());
    store_commit(f);
}

void change_wrote(struct file *f, uint64_t end)
{
    struct file_core *c = core_change(f->rec);
    c->size = MAX(c->size, end);
    end_change(f, c);
}

void change_resized(struct file *f, uint64_t size)
{
    struct file_core *c = core_change(f->rec);
    if (size < c->size) {
        c->cut = MIN(c->cut, size);
        c->base_end = MIN(c->base_end, size);
    }
    c->size = size;
    end_change(f, c);
}

void change_cut(struct file *f, uint64_t from)
{
    struct file_core *c = core_change(f->rec);
    c->cut = MIN(c->cut, from);
    c->base_end = MIN(c->base_end, from);
    for (struct snapshot *s = f->snapshots; s; s = s->next)
        s->pages->cut_since = MIN(s->pages->cut_since, from);
    end_change(f, c);
}

bool change_begin_at_end(struct file *f, struct range_op *op, bool wait)
{
    for (;;) {
        uint64_t page = page_of(core(f)->size);
        if (!wait)
            return range_try(f, op, RANGE_WRITE, page, UINT64_MAX);
        range_begin(f, op, RANGE_WRITE, page, UINT64_MAX);
        if (page_of(core(f)->size) >= page)
            return true;
        range_end(f, op); /* it was truncated during the wait */
    }
}
