/* store_resize.c - a file gets shorter or longer: truncate, fallocate. */
#include "placement/store/datafile.h"
#include "placement/store/datafile_kernel_io.h"
#include "placement/store/kernel_io_store.h"
#include "placement/store/state.h"
#include "placement/store/state_table.h"
#include "placement/store/store_change.h"
#include "placement/store/store_copyout.h"
#include "placement/store/store_int.h"
#include "placement/store/store_open.h"
#include "placement/store/store_write.h"

#include <errno.h>
#include <string.h>

/* Removes what is cut off: first by the size in the record, then its pages, then its bytes.  The page of the
 * new end stays as it was.  If it is valid, the data file's truncation makes its tail zeros; if not, it ends
 * at base_end. */
static int shrink(struct file *f, uint64_t size)
{
    change_resized(f, size);
    if (f->cover.now)
        f->cover.now->size = MIN(f->cover.now->size, size);
    for (struct snapshot *s = f->snapshots; s; s = s->next)
        s->pages->cut_since = MIN(s->pages->cut_since, size);
    pages_drop_from(f, (size + PAGE - 1) / PAGE);
    if (size % PAGE) {
        struct chunk_record *c = state_chunk_find(f->fid, page_of(size) / state_pages());
        pages_changed(f, page_of(size), page_of(size));
        if (c)
            c->flags = (uint16_t)(c->flags & ~CHUNK_HASH);
    }
    crash_order();
    if (has_kernel_io(f)) /* done already, and may have grown again */
        return 0;
    lock_drop(&f->lock);
    int err = datafile_truncate(f, size);
    if (err)
        log_error("the cache's disk: truncating a data file: %s", strerror(-err));
    lock_take(&f->lock);
    if (err)
        set_uncut(f, UNCUT_END);
    else
        clear_uncut(f, UNCUT_END);
    return err;
}

/* Extending changes no page, but the end must not move meanwhile.  Shrinking also waits for readers. */
static void begin_resize(struct file *f, struct range_op *op, uint64_t size)
{
    for (;;) {
        bool smaller = size < core(f)->size;
        uint64_t first = page_of(MIN(size, core(f)->size));
        range_begin(f, op, smaller ? RANGE_DROP : RANGE_WRITE, first, UINT64_MAX);
        if (smaller == (size < core(f)->size) && page_of(MIN(size, core(f)->size)) >= first)
            return;
        range_end(f, op);
    }
}

/* A data file with kernel I/O has the file's length.  It gets the new length before the record does, and with
 * f->lock: a look in between would take the other length for one that a writer has made.  A file that the
 * kernel only reads is cut last, as any other: its bytes count until the record says otherwise. */
static int pass_resize(struct file *f, uint64_t size)
{
    bool longer = size > core(f)->size;
    return has_kernel_io(f) || (f->kernel_io.opens && longer) ? datafile_resize(f, size) : 0;
}

/* Makes sure that nothing beyond `size` is covered, not even by an fsync that comes in between.  f->lock is
 * dropped meanwhile. */
static int cut_covered(struct file *f, uint64_t size)
{
    int err = 0;
    while (!err && f->rec->covered.check && f->rec->covered.size > size)
        err = store_cover_cut(f, size);
    return err;
}

/* A file of which parts are lent gets no shorter. */
static int check_lent(const struct file *f, uint64_t size)
{
    return size < core(f)->size && f->rec->lent ? -EREMOTE : 0;
}

int store_truncate(struct file *f, uint64_t size, uint64_t *fill_off)
{
    struct range_op op;
    int err = 0;
    (void)fill_off; /* never needed: see shrink */
    if (size > INT64_MAX)
        return -EFBIG;
    lock_take(&f->lock);
    kernel_io_look(f);
    begin_resize(f, &op, size);
    err = check_lent(f, size);
    if (!err)
        err = size > core(f)->size ? change_clear_end(f) : cut_covered(f, size);
    if (!err) /* f->lock was dropped: a part before `size` is in no range of this call */
        err = check_lent(f, size);
    bool was_dirty = is_dirty(f) && !kernel_io_flushed(f); /* a flush may have ended meanwhile */
    if (!err)
        err = pass_resize(f, size);
    if (!err && size < core(f)->size)
        err = shrink(f, size);
    else if (!err)
        change_resized(f, size);
    kernel_io_look(f);
    range_end(f, &op);
    bool became = is_dirty(f) && !was_dirty;
    lock_drop(&f->lock);
    store_tell_dirty(f, became);
    return err;
}

/* With f->lock and a range that keeps the end where it is.  *became: as for store_tell_dirty. */
static int allocate_locked(struct file *f, uint64_t end, bool *became)
{
    bool was_dirty = is_dirty(f) && !kernel_io_flushed(f), longer = end > core(f)->size;
    int err = longer ? change_clear_end(f) : 0;
    if (longer && !err && (has_kernel_io(f) || f->kernel_io.opens))
        err = datafile_grow(f, end);
    if (!err && longer)
        change_resized(f, MAX(end, core(f)->size));
    else if (!err)
        change_wrote(f, 0); /* its times move, as with a local file system */
    kernel_io_look(f);
    *became = is_dirty(f) && !was_dirty;
    return err;
}

int store_allocate(struct file *f, uint64_t off, uint64_t len, bool keep_size)
{
    if (!len)
        return -EINVAL;
    if (off > INT64_MAX || len > INT64_MAX - off)
        return -EFBIG;
    struct range_op op;
    bool became;
    lock_take(&f->lock);
    kernel_io_look(f);
    change_begin_at_end(f, &op, true);
    int err = allocate_locked(f, keep_size ? 0 : off + len, &became);
    range_end(f, &op);
    lock_drop(&f->lock);
    store_tell_dirty(f, became);
    return err;
}
