/* store_punch.c - makes a part of a file zeros without blocks. */
#include "placement/store/datafile.h"
#include "placement/store/kernel_io_store.h"
#include "placement/store/state.h"
#include "placement/store/store_change.h"
#include "placement/store/store_int.h"
#include "placement/store/store_open.h"
#include "placement/store/store_write.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* ---- what must be zeros ---- */

/* Punches the pages of [from, to) that are not valid, except those that are being written. */
static int punch_invalid_in(struct file *f, uint64_t from, uint64_t to)
{
    uint64_t last = last_page(from, to - from), page = page_of(from), until;
    int err = 0;
    while (!err && (page = pages_find(f, page, last, BITS_VALID, false)) <= last) {
        until = MIN(pages_find(f, page, last, BITS_VALID, true),
                    pages_find(f, page, last, BITS_DIRTY, true));
        if (until > page)
            err = datafile_punch(f, page * PAGE, (until - page) * PAGE);
        else
            until = pages_find(f, page, last, BITS_DIRTY, false);
        page = until;
    }
    return err;
}

int store_punch_invalid(struct file *f)
{
    int fd, err = datafile_get(f, false, &fd);
    if (err)
        return err == -ENOENT ? 0 : err;
    off_t from, to = 0;
    while (!err && (from = lseek(fd, to, SEEK_DATA)) >= 0) {
        to = lseek(fd, from, SEEK_HOLE);
        if (to <= from)
            break;
        err = punch_invalid_in(f, (uint64_t)from, (uint64_t)to);
    }
    if (!err && (from < 0 || to < 0) && errno != ENXIO)
        err = -errno;
    datafile_put(f);
    return err;
}

int store_clear_pages(struct file *f)
{
    static _Atomic uint64_t said;
    int err = f->rec->uncut & UNCUT_PAGES ? store_punch_invalid(f) : 0;
    if (err && log_every(&said, 10000))
        log_error("the cache's disk: what a write that failed left can not be removed: %s",
                  strerror(-err));
    if (!err)
        clear_uncut(f, UNCUT_PAGES);
    return err;
}

/* ---- a hole that was asked for ---- */

/* Widens [off, off + len) to whole pages where a page is not valid: its other bytes count as zeros, but need
 * not be zeros on the disk. */
static void widen(struct file *f, uint64_t *off, uint64_t *len)
{
    uint64_t end = *off + *len;
    if (has_kernel_io(f))
        return;
    if (!page_valid(f, page_of(*off)))
        *off -= *off % PAGE;
    if (end % PAGE && !page_valid(f, page_of(end)))
        end += PAGE - end % PAGE;
    *len = end - *off;
}

/* Pages [first, last] are written: those of [whole, end) are zeros without blocks.  Only a few pages at a
 * time, since they count as used until then. */
static void end_punch(struct file *f, uint64_t first, uint64_t last, uint64_t whole, uint64_t end)
{
    for (uint64_t page = first, until; page <= last; page = until + 1) {
        until = MIN(last, page + 255);
        pages_end_write(f, page, until);
        if (MAX(page, whole) < MIN(until + 1, end))
            pages_end_punch(f, MAX(page, whole), MIN(until + 1, end) - 1);
    }
}

/* Makes [off, off + len), which lies in pages [first, last], zeros. */
static int punch_pages(struct file *f, uint64_t off, uint64_t len, struct room *room)
{
    uint64_t first = page_of(off), last = last_page(off, len);
    widen(f, &off, &len);
    room->chunks -= pages_begin_write(f, first, last);
    lock_drop(&f->lock);
    int err = datafile_punch(f, off, len);
    lock_take(&f->lock);
    if (err) {
        pages_fail_write(f, first, last);
        store_changed(f);
        return err;
    }
    end_punch(f, first, last, (off + PAGE - 1) / PAGE, (off + len) / PAGE);
    return 0;
}

/* Records for this many pages at a time: a punch may be as long as the file. */
#define PUNCH_PAGES (UINT64_C(1) << 20)

/* Finds the next pages to punch in one step.  From page `holes` on only those that are valid are punched: the
 * rest of the range is a hole on the PFS already, or is cut off there. */
static bool next_punch(struct file *f, uint64_t page, uint64_t last, uint64_t holes, uint64_t *first,
                       uint64_t *until)
{
    *first = page < holes ? page : pages_find(f, page, last, BITS_VALID, true);
    if (*first > last)
        return false;
    *until =
        *first < holes ? MIN(last, holes - 1) : pages_find(f, *first, last, BITS_VALID, false) - 1;
    *until = MIN(*until, *first + PUNCH_PAGES - 1);
    return true;
}

/* With kernel I/O the data file may have bytes of which no record tells. */
static int punch_unrecorded(struct file *f, uint64_t off, uint64_t len)
{
    if (!has_kernel_io(f))
        return 0;
    lock_drop(&f->lock);
    int err = datafile_punch(f, off, len);
    lock_take(&f->lock);
    return err;
}

/* A punch of so much that ends at the file's end is a truncation for the PFS, and an extension. */
#define CUT_MIN (UINT64_C(256) << 20)

static bool cuts(const struct file *f, uint64_t off, uint64_t len)
{
    uint64_t from = (off + PAGE - 1) / PAGE * PAGE;
    return !has_kernel_io(f) && off + len >= core(f)->size && len >= CUT_MIN && from < core(f)->base_end;
}

/* With f->lock and a DROP op on the pages; if the range ends at the file's end, on all behind it, too. */
static int punch_locked(struct file *f, uint64_t off, uint64_t len, enum space_limit limit,
                        bool *became)
{
    uint64_t last = last_page(off, len), first, until;
    bool was_dirty = is_dirty(f) && !kernel_io_flushed(f);
    bool any = false; /* some bytes have changed already, even if the rest fails */
    bool cut = cuts(f, off, len);
    uint64_t holes = has_kernel_io(f) || cut ? 0 : store_first_hole(f);
    int err = 0;
    change_begins(f);
    for (uint64_t page = page_of(off);
         !err && page <= last && next_punch(f, page, last, holes, &first, &until); page = until + 1) {
        struct room room = {0};
        uint64_t from = MAX(off, first * PAGE), to = MIN(off + len, (until + 1) * PAGE);
        err = change_make_records(f, first, until, limit, &room);
        if (!err) {
            store_mark_dirty(f);
            err = punch_pages(f, from, to - from, &room);
        }
        any |= !err;
        space_return(0, room.chunks);
    }
    if (!err)
        err = punch_unrecorded(f, off, len);
    if (!err && cut)
        change_cut(f, (off + PAGE - 1) / PAGE * PAGE);
    if (!err || any)
        change_wrote(f, 0);
    kernel_io_look(f);
    *became = is_dirty(f) && !was_dirty;
    return err;
}

int store_punch(struct file *f, uint64_t off, uint64_t len, enum space_limit limit,
                uint64_t *fill_off)
{
    struct range_op op;
    bool became = false;
    int err = 0;
    lock_take(&f->lock);
    kernel_io_look(f);
    uint64_t size = core(f)->size;
    if (off < size && len) {
        len = MIN(len, size - off);
        range_begin(f, &op, RANGE_DROP, page_of(off), off + len < size ? last_page(off, len) : UINT64_MAX);
        size = core(f)->size; /* it may have waited for a truncation */
        len = off < size ? MIN(len, size - off) : 0;
        if (len && f->rec->lent)
            err = -EREMOTE;
        else if (len)
            err = change_check_edges(f, off, len, fill_off);
        if (!err && len)
            err = punch_locked(f, off, len, limit, &became);
        range_end(f, &op);
    }
    lock_drop(&f->lock);
    store_tell_dirty(f, became);
    return err;
}
