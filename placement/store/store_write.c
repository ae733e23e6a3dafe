/* store_write.c - writes bytes into a file, at an offset or at its end; and sets its times. */
#include "placement/store/datafile.h"
#include "placement/store/datafile_kernel_io.h"
#include "placement/store/kernel_io_store.h"
#include "placement/store/state.h"
#include "placement/store/store_change.h"
#include "placement/store/store_int.h"
#include "placement/store/store_lend_int.h"
#include "placement/store/store_open.h"
#include "placement/store/store_write.h"

#include <errno.h>

#define WRITE_MAX (16u << 20)

/* ---- without waiting ---- */

/* Would a write have to wait that may not?  The file system may block a file while it syncs it. */
static bool would_wait(const struct file *f, enum space_limit limit)
{
    return limit == SPACE_NOW && f->cover.data;
}

static int begin_write(struct file *f, struct range_op *op, uint64_t first, uint64_t last,
                       enum space_limit limit)
{
    if (limit != SPACE_NOW) {
        range_begin(f, op, RANGE_WRITE, first, last);
        return 0;
    }
    return would_wait(f, limit) || !range_try(f, op, RANGE_WRITE, first, last) ? -EAGAIN : 0;
}

/* ---- write ---- */

/* With f->lock, which is dropped meanwhile.  If the punch fails, it is done later, before the bytes could
 * count: by store_clear_pages, change_clear_end, or the next start. */
static void clear(struct file *f, uint64_t off, uint64_t end, uint8_t uncut)
{
    lock_drop(&f->lock);
    int err = datafile_punch(f, off, end - off);
    lock_take(&f->lock);
    if (err)
        set_uncut(f, uncut);
}

/* After a write that failed: pages that are not valid, and what is beyond the end, must read as
 * zeros.  They are punched, and the file is not truncated, as another write may run farther on. */
static void clear_failed(struct file *f, uint64_t off, uint64_t len)
{
    uint64_t first = page_of(off), last = last_page(off, len), size = core(f)->size,
             end = off + len;
    if (has_kernel_io(f)) /* the bytes may be another writer's */
        return;
    for (uint64_t page = pages_find(f, first, last, BITS_VALID, false), until; page <= last;
         page = pages_find(f, until, last, BITS_VALID, false)) {
        until = pages_find(f, page, last, BITS_VALID, true);
        clear(f, page * PAGE, until * PAGE, UNCUT_PAGES);
    }
    if (end > size)
        clear(f, MAX(off, size), end, UNCUT_END);
}

/* With f->lock (dropped meanwhile), a WRITE op, and room. */
static int write_pages(struct file *f, const void *buf, size_t len, uint64_t off, struct room *room)
{
    uint64_t first = page_of(off), last = last_page(off, len);
    struct padding pad = change_padding(f, off, len);
    room->chunks -= pages_begin_write(f, first, last);
    change_begins(f);
    lock_drop(&f->lock);
    int err = change_put(f, buf, len, off, pad);
    lock_take(&f->lock);
    if (err) {
        pages_fail_write(f, first, last);
        store_changed(f); /* valid pages may have some of it */
        clear_failed(f, off, len);
        return err;
    }
    pages_end_write(f, first, last);
    change_wrote(f, off + len);
    kernel_io_look(f);
    return 0;
}

/* What is written, and where. */
struct put {
    const void *buf;
    size_t len;
    uint64_t off;
    bool within; /* only what lies before the end, as it is when no truncation is under way there */
    uint64_t giver; /* all of it is lent to this node, which gives it back; 0: nothing of it may be lent */
    enum space_limit limit;
};

/* With f->lock and a WRITE op that covers the pages. */
static int write_locked(struct file *f, const struct put *p, uint64_t *fill_off, bool *became)
{
    uint64_t off = p->off, len = p->len;
    struct room room = {0};
    int err = off + len > core(f)->size ? change_clear_end(f) : 0;
    if (!err)
        err = change_check_edges(f, off, len, fill_off);
    if (!err)
        err = change_make_room(f, page_of(off), last_page(off, len), p->limit, &room);
    if (!err) {
        *became = store_mark_dirty(f) || kernel_io_flushed(f);
        err = write_pages(f, p->buf, len, off, &room);
    }
    space_return(room.bytes, room.chunks);
    return err;
}

static int check_length(uint64_t off, uint64_t len)
{
    if (len > WRITE_MAX)
        return -EINVAL;
    return off > INT64_MAX || len > INT64_MAX - off ? -EFBIG : 0;
}

static bool may_write(const struct file *f, const struct put *p)
{
    uint64_t first = page_of(p->off), last = last_page(p->off, p->len);
    return p->giver ? lent_all(f, p->giver, first, last) : !lent_any(f, first, last);
}

static int write_at(struct file *f, struct put p, uint64_t *fill_off)
{
    struct range_op op;
    bool became = false;
    int err = check_length(p.off, p.len);
    if (err || !p.len)
        return err;
    lock_take(&f->lock);
    kernel_io_look(f);
    err = begin_write(f, &op, page_of(p.off), last_page(p.off, p.len), p.limit);
    if (!err && p.within)
        p.len = MIN(p.len, core(f)->size - MIN(p.off, core(f)->size));
    if (!err) {
        if (p.len && !may_write(f, &p))
            err = -EREMOTE;
        else if (p.len)
            err = write_locked(f, &p, fill_off, &became);
        range_end(f, &op);
    }
    lock_drop(&f->lock);
    store_tell_dirty(f, became);
    return err;
}

int store_write(struct file *f, const void *buf, size_t len, uint64_t off, enum space_limit limit,
                uint64_t *fill_off)
{
    return write_at(f, (struct put){.buf = buf, .len = len, .off = off, .limit = limit}, fill_off);
}

int store_write_within(struct file *f, const void *buf, size_t len, uint64_t off,
                       enum space_limit limit, uint64_t *fill_off)
{
    struct put p = {.buf = buf, .len = len, .off = off, .within = true, .limit = limit};
    return write_at(f, p, fill_off);
}

int store_write_given(struct file *f, uint64_t giver, const void *buf, size_t len, uint64_t off,
                      enum space_limit limit, uint64_t *fill_off)
{
    struct put p = {.buf = buf, .len = len, .off = off, .giver = giver, .limit = limit};
    return write_at(f, p, fill_off);
}

/* ---- append ---- */

/* Beside kernel I/O, writers may move the end at any time, so this uses the file system's own append.  The
 * place of the bytes is known only if no other writer appended. */
static int append_kernel_io(struct file *f, const void *buf, size_t len, struct appended *out)
{
    int fd, err = datafile_get(f, true, &fd); /* in use: the file does not become clean meanwhile */
    if (err)
        return err;
    lock_drop(&f->lock);
    err = datafile_append(f, buf, len, &out->len);
    lock_take(&f->lock);
    datafile_put(f);
    kernel_io_look(f);
    out->off = core(f)->size - MIN((uint64_t)out->len, core(f)->size);
    return err;
}

int store_append(struct file *f, const void *buf, size_t len, enum space_limit limit,
                 struct appended *out, uint64_t *fill_off)
{
    struct range_op op;
    bool became = false;
    out->len = 0;
    lock_take(&f->lock);
    kernel_io_look(f);
    int err = would_wait(f, limit) || !change_begin_at_end(f, &op, limit != SPACE_NOW) ? -EAGAIN : 0;
    if (err) {
        lock_drop(&f->lock);
        return err;
    }
    out->off = core(f)->size;
    err = f->rec->lent ? -EREMOTE : check_length(out->off, len);
    if (!err && len && has_kernel_io(f)) {
        err = append_kernel_io(f, buf, len, out);
        became = true;
    } else if (!err && len) {
        struct put p = {.buf = buf, .len = len, .off = out->off, .limit = limit};
        err = write_locked(f, &p, fill_off, &became);
        out->len = err ? 0 : len;
    }
    range_end(f, &op);
    lock_drop(&f->lock);
    store_tell_dirty(f, became);
    return err;
}

/* ---- times ---- */

void store_set_times(struct file *f, int64_t mtime_ns)
{
    lock_take(&f->lock);
    kernel_io_look(f);
    bool was_dirty = is_dirty(f) && !kernel_io_flushed(f);
    struct file_core *c = core_change(f->rec);
    c->mtime_ns = mtime_ns;
    c->ctime_ns = MAX(c->ctime_ns + 1, real_ns());
    c->flags |= CORE_MTIME_SET;
    if (!(c->flags & CORE_DELETED))
        c->flags |= CORE_DIRTY;
    store_commit(f);
    store_changed(f);
    bool became = is_dirty(f) && !was_dirty;
    lock_drop(&f->lock);
    store_tell_dirty(f, became);
}

void store_loan_timed(struct file *f)
{
    lock_take(&f->lock);
    core_change(f->rec)->flags |= CORE_MTIME_SET;
    store_commit(f);
    lock_drop(&f->lock);
}
