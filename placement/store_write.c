/* store_write.c - changing a file's bytes: fills, writes, truncations, holes, times; fsync.
 *
 * Each change has a range of pages to itself (range.h) and runs in three steps, of which the middle
 * one is without f->lock: mark in the records what is about to change, move the bytes, mark that
 * they are there.
 */
#include <errno.h>
#include <string.h>

#include "placement/store_int.h"

#define WRITE_MAX (16u << 20)

static const char zeros[PAGE];

/* ---- room ---- */

struct room {
    uint64_t bytes;
    uint32_t chunks;
};

/* With f->lock, which is dropped meanwhile, and a range op on the pages, so that no other call
 * changes what they need. */
static int make_room(struct file *f, uint64_t first, uint64_t last, struct room *r)
{
    uint64_t pages;
    pages_need(f, first, last, &pages, &r->chunks);
    r->bytes = pages * PAGE;
    if (!r->bytes && !r->chunks)
        return 0;
    lock_drop(&f->lock);
    int err = space_reserve(r->bytes, r->chunks);
    lock_take(&f->lock);
    if (err)
        *r = (struct room){0};
    return err;
}

void store_tell_dirty(struct file *f, bool became)
{
    if (became && store.on_dirty)
        store.on_dirty(f);
}

/* ---- pages that are only partly covered ---- */

/* Must the page be filled before [off, off + len) of it is changed?  It is not valid, and some of
 * its bytes are on the PFS. */
static bool needs_fill(struct file *f, uint64_t page, uint64_t off, uint64_t len)
{
    uint64_t begin = page * PAGE, base_end = core(f)->base_end;
    if (begin >= base_end || is_pass(f) || page_valid(f, page))
        return false;
    return off > begin || off + len < MIN(begin + PAGE, base_end);
}

/* -ENODATA if the first or last page of the range must be filled. */
static int check_edges(struct file *f, uint64_t off, uint64_t len, uint64_t *fill_off)
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

/* How many zeros belong before and after the bytes, so that pages that were not valid are whole. */
struct padding {
    size_t before, after;
};

static struct padding padding_of(struct file *f, uint64_t off, uint64_t len)
{
    struct padding p = {0, 0};
    if (is_pass(f)) /* all pages are whole, whatever the records say */
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

static int put_bytes(struct file *f, const void *buf, size_t len, uint64_t off, struct padding p)
{
    struct iovec iov[3] = {
        {(void *)(uintptr_t)zeros, p.before},
        {(void *)(uintptr_t)buf, len},
        {(void *)(uintptr_t)zeros, p.after},
    };
    return datafile_pwritev(f, iov, 3, off - p.before);
}

/* ---- write ---- */

/* After a write that failed: pages that are not valid, and what is beyond the end, must read as
 * zeros.  Punched and not truncated, as another write may be under way farther on. */
static void clear_failed(struct file *f, uint64_t off, uint64_t len)
{
    uint64_t first = page_of(off), last = last_page(off, len), size = core(f)->size,
             end = off + len;
    if (is_pass(f)) /* perhaps not our bytes */
        return;
    for (uint64_t page = pages_find(f, first, last, BITS_VALID, false), until; page <= last;
         page = pages_find(f, until, last, BITS_VALID, false)) {
        until = pages_find(f, page, last, BITS_VALID, true);
        lock_drop(&f->lock);
        datafile_punch(f, page * PAGE, (until - page) * PAGE);
        lock_take(&f->lock);
    }
    if (end > size) {
        lock_drop(&f->lock);
        datafile_punch(f, MAX(off, size), end - MAX(off, size));
        lock_take(&f->lock);
    }
}

static void wrote(struct file *f, uint64_t end)
{
    struct file_core *c = core_change(f->rec);
    c->size = MAX(c->size, end);
    c->mtime_ns = c->ctime_ns = real_ns();
    c->flags &= ~(uint32_t)CORE_MTIME_SET;
    if (!(c->flags & CORE_DELETED))
        c->flags |= CORE_DIRTY;
    store_commit(f);
    store_changed(f);
}

/* With f->lock (dropped meanwhile), a WRITE op, and room. */
static int write_pages(struct file *f, const void *buf, size_t len, uint64_t off, struct room *room)
{
    uint64_t first = page_of(off), last = last_page(off, len);
    struct padding pad = padding_of(f, off, len);
    room->chunks -= pages_begin_write(f, first, last);
    lock_drop(&f->lock);
    int err = put_bytes(f, buf, len, off, pad);
    lock_take(&f->lock);
    if (err) {
        pages_fail_write(f, first, last);
        store_changed(f); /* valid pages may have some of it */
        clear_failed(f, off, len);
        return err;
    }
    pages_end_write(f, first, last);
    wrote(f, off + len);
    store_pass_look(f);
    return 0;
}

/* With f->lock and a WRITE op that covers the pages. */
static int write_locked(struct file *f, const void *buf, size_t len, uint64_t off,
                        uint64_t *fill_off, bool *became)
{
    struct room room = {0};
    int err = check_edges(f, off, len, fill_off);
    if (!err)
        err = make_room(f, page_of(off), last_page(off, len), &room);
    if (!err) {
        *became = store_mark_dirty(f) || store_pass_flushed(f);
        err = write_pages(f, buf, len, off, &room);
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

int store_write(struct file *f, const void *buf, size_t len, uint64_t off, uint64_t *fill_off)
{
    struct range_op op;
    bool became = false;
    int err = check_length(off, len);
    if (err || !len)
        return err;
    lock_take(&f->lock);
    store_pass_look(f);
    range_begin(f, &op, RANGE_WRITE, page_of(off), last_page(off, len));
    err = write_locked(f, buf, len, off, fill_off, &became);
    range_end(f, &op);
    lock_drop(&f->lock);
    store_tell_dirty(f, became);
    return err;
}

/* A WRITE op from the page of the end of the file on: while it lasts, nobody moves the end. */
static void begin_at_end(struct file *f, struct range_op *op)
{
    for (;;) {
        uint64_t page = page_of(core(f)->size);
        range_begin(f, op, RANGE_WRITE, page, UINT64_MAX);
        if (page_of(core(f)->size) >= page)
            return;
        range_end(f, op); /* it was truncated while we waited */
    }
}

/* Beside writers that the kernel serves, who may move the end at any time: the file system's own
 * append.  Where it went is known only if nobody else appended. */
static int append_pass(struct file *f, const void *buf, size_t len, uint64_t *off_out)
{
    int fd, err = datafile_get(f, true, &fd); /* in use: the file does not become clean meanwhile */
    if (err)
        return err;
    lock_drop(&f->lock);
    err = datafile_append(f, buf, len);
    lock_take(&f->lock);
    datafile_put(f);
    store_pass_look(f);
    *off_out = core(f)->size - MIN((uint64_t)len, core(f)->size);
    return err;
}

int store_append(struct file *f, const void *buf, size_t len, uint64_t *off_out, uint64_t *fill_off)
{
    struct range_op op;
    bool became = false;
    lock_take(&f->lock);
    store_pass_look(f);
    begin_at_end(f, &op);
    *off_out = core(f)->size;
    int err = check_length(*off_out, len);
    if (!err && len && is_pass(f))
        err = append_pass(f, buf, len, off_out), became = true;
    else if (!err && len)
        err = write_locked(f, buf, len, *off_out, fill_off, &became);
    range_end(f, &op);
    lock_drop(&f->lock);
    store_tell_dirty(f, became);
    return err;
}

/* ---- truncate ---- */

static void resized(struct file *f, uint64_t size)
{
    struct file_core *c = core_change(f->rec);
    if (size < c->size) {
        c->cut = MIN(c->cut, size);
        c->base_end = MIN(c->base_end, size);
    }
    c->size = size;
    c->mtime_ns = c->ctime_ns = real_ns();
    c->flags &= ~(uint32_t)CORE_MTIME_SET;
    if (!(c->flags & CORE_DELETED))
        c->flags |= CORE_DIRTY;
    store_commit(f);
    store_changed(f);
}

/* What is cut off goes: first by the size in the record, then its pages, then its bytes.  The page
 * that the new end is in stays as it was: valid pages get their tail zeroed by the data file's
 * truncation, others end at base_end. */
static int shrink(struct file *f, uint64_t size)
{
    resized(f, size);
    for (struct snapshot *s = f->snapshots; s; s = s->next)
        s->pages->cut_since = MIN(s->pages->cut_since, size);
    store_cover_cut(f, size);
    pages_drop_from(f, (size + PAGE - 1) / PAGE);
    if (size % PAGE) {
        struct chunk_record *c = state_chunk_find(f->fid, page_of(size) / state_pages());
        pages_changed(f, page_of(size), page_of(size));
        if (c)
            c->flags = (uint16_t)(c->flags & ~CHUNK_HASH);
    }
    crash_order();
    if (is_pass(f)) /* done already, and may have grown again */
        return 0;
    lock_drop(&f->lock);
    int err = datafile_truncate(f, size);
    if (err)
        log_error("the cache's disk: truncating a data file: %s", strerror(-err));
    lock_take(&f->lock);
    return err;
}

/* Extending changes no page, but the end must stand still; shrinking waits for readers too. */
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

/* What the kernel serves is as long as the file: before the record says so, and with f->lock, so
 * that no look in between finds the old length and takes it for a writer's.  A file that it only
 * reads is cut last, as any other: until the record says so the bytes count. */
static int pass_resize(struct file *f, uint64_t size)
{
    bool longer = size > core(f)->size;
    return is_pass(f) || (f->pass.opens && longer) ? datafile_resize(f, size) : 0;
}

int store_truncate(struct file *f, uint64_t size, uint64_t *fill_off)
{
    struct range_op op;
    int err = 0;
    (void)fill_off; /* never needed: see shrink */
    if (size > INT64_MAX)
        return -EFBIG;
    lock_take(&f->lock);
    store_pass_look(f);
    begin_resize(f, &op, size);
    bool was_dirty = is_dirty(f) && !store_pass_flushed(f);
    err = pass_resize(f, size);
    if (!err && size < core(f)->size)
        err = shrink(f, size);
    else if (!err)
        resized(f, size);
    store_pass_look(f);
    range_end(f, &op);
    bool became = is_dirty(f) && !was_dirty;
    lock_drop(&f->lock);
    store_tell_dirty(f, became);
    return err;
}

int store_allocate(struct file *f, uint64_t off, uint64_t len, bool keep_size)
{
    if (!len)
        return -EINVAL;
    if (off > INT64_MAX || len > INT64_MAX - off)
        return -EFBIG;
    if (keep_size)
        return 0;
    struct range_op op;
    int err = 0;
    lock_take(&f->lock);
    store_pass_look(f);
    begin_at_end(f, &op);
    bool was_dirty = is_dirty(f) && !store_pass_flushed(f), longer = off + len > core(f)->size;
    if (longer && (is_pass(f) || f->pass.opens))
        err = datafile_grow(f, off + len);
    if (longer && !err)
        resized(f, MAX(off + len, core(f)->size));
    store_pass_look(f);
    range_end(f, &op);
    bool became = longer && is_dirty(f) && !was_dirty;
    lock_drop(&f->lock);
    store_tell_dirty(f, became);
    return err;
}

/* ---- punch ---- */

/* [off, off + len) in whole pages where a page is not valid (its other bytes are zeros by
 * definition, not on the disk). */
static void widen(struct file *f, uint64_t *off, uint64_t *len)
{
    uint64_t end = *off + *len;
    if (is_pass(f))
        return;
    if (!page_valid(f, page_of(*off)))
        *off -= *off % PAGE;
    if (end % PAGE && !page_valid(f, page_of(end)))
        end += PAGE - end % PAGE;
    *len = end - *off;
}

/* Pages [first, last], of which [off, off + len) becomes zeros. */
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
    pages_end_write(f, first, last);
    uint64_t whole = (off + PAGE - 1) / PAGE, end = (off + len) / PAGE;
    if (whole < end)
        pages_end_punch(f, whole, end - 1);
    return 0;
}

/* Records for this many pages at a time: a punch may be as long as the file. */
#define PUNCH_PAGES (UINT64_C(1) << 20)

/* Beyond base_end only chunks that have a record can hold bytes: the rest of the range is a hole
 * already.  The next page to work on, and up to where at once. */
static bool next_punch(struct file *f, uint64_t page, uint64_t last, uint64_t *first,
                       uint64_t *until)
{
    uint64_t holes = is_pass(f) ? UINT64_MAX : (core(f)->base_end + PAGE - 1) / PAGE;
    *first = page < holes ? page : pages_find(f, page, last, BITS_VALID, true);
    if (*first > last)
        return false;
    *until =
        *first < holes ? MIN(last, holes - 1) : pages_find(f, *first, last, BITS_VALID, false) - 1;
    *until = MIN(*until, *first + PUNCH_PAGES - 1);
    return true;
}

/* With f->lock and a DROP op on the pages. */
static int punch_locked(struct file *f, uint64_t off, uint64_t len, bool *became)
{
    uint64_t last = last_page(off, len), first, until;
    int err = 0;
    for (uint64_t page = page_of(off);
         !err && page <= last && next_punch(f, page, last, &first, &until); page = until + 1) {
        struct room room = {0};
        uint64_t from = MAX(off, first * PAGE), to = MIN(off + len, (until + 1) * PAGE);
        err = make_room(f, first, until, &room);
        if (!err) {
            *became |= store_mark_dirty(f) || store_pass_flushed(f);
            err = punch_pages(f, from, to - from, &room);
        }
        space_return(room.bytes, room.chunks);
    }
    if (!err)
        wrote(f, 0);
    store_pass_look(f);
    return err;
}

int store_punch(struct file *f, uint64_t off, uint64_t len, uint64_t *fill_off)
{
    struct range_op op;
    bool became = false;
    int err = 0;
    lock_take(&f->lock);
    store_pass_look(f);
    uint64_t size = core(f)->size;
    if (off < size && len) {
        len = MIN(len, size - off);
        range_begin(f, &op, RANGE_DROP, page_of(off), last_page(off, len));
        size = core(f)->size; /* it may have waited for a truncation */
        len = off < size ? MIN(len, size - off) : 0;
        if (len)
            err = check_edges(f, off, len, fill_off);
        if (!err && len)
            err = punch_locked(f, off, len, &became);
        range_end(f, &op);
    }
    lock_drop(&f->lock);
    store_tell_dirty(f, became);
    return err;
}

/* ---- fill ---- */

/* One run of pages that are not valid: bytes from the chunk's buffer up to base_end, then zeros. */
static int fill_run(struct file *f, uint64_t first, uint64_t last, const uint8_t *buf,
                    uint64_t buf_off)
{
    uint64_t from = first * PAGE, end = MIN((last + 1) * PAGE, core(f)->size),
             base = MIN(end, core(f)->base_end);
    lock_drop(&f->lock);
    int err =
        put_bytes(f, buf + (from - buf_off), base - from, from, (struct padding){0, end - base});
    if (err)
        datafile_punch(f, from, end - from);
    lock_take(&f->lock);
    if (!err)
        pages_end_fill(f, first, last);
    return err;
}

static int fill_pages(struct file *f, uint64_t first, uint64_t stop, const uint8_t *buf,
                      uint64_t buf_off)
{
    int err = 0;
    for (uint64_t page = pages_find(f, first, stop, BITS_VALID, false), until; !err && page <= stop;
         page = pages_find(f, until, stop, BITS_VALID, false)) {
        until = pages_find(f, page, stop, BITS_VALID, true);
        err = fill_run(f, page, until - 1, buf, buf_off);
    }
    return err;
}

/* With f->lock and a WRITE op on the chunk. */
static int fill_locked(struct file *f, uint64_t index, const struct version *v, const void *buf,
                       size_t len, uint64_t hash, bool owned, bool racy)
{
    uint64_t chunk = store_chunk_size(), off = index * chunk, first = page_of(off);
    const struct file_core *k = core(f);
    if (is_pass(f))
        return 0; /* all is here, and newer */
    if (!(k->flags & CORE_BASE) || !version_eq(&k->base, v) || off >= v->size ||
        len < MIN(chunk, v->size - off))
        return -ESTALE;
    if (k->base_end <= off)
        return 0; /* cut off meanwhile: nothing of it counts */
    uint64_t stop = last_page(off, MIN(len, k->base_end - off));
    struct room room = {0};
    int err = make_room(f, first, stop, &room);
    if (err)
        return err;
    uint32_t made;
    struct chunk_record *c = pages_begin_fill(f, index, &made);
    room.chunks -= made;
    if (racy && !(core(f)->flags & CORE_RACY)) {
        core_change(f->rec)->flags |= CORE_RACY;
        store_commit(f);
    }
    space_unlist(c);
    c->flags = (uint16_t)(owned ? c->flags | CHUNK_OWNED : c->flags & ~CHUNK_OWNED);
    err = fill_pages(f, first, stop, buf, off);
    k = core(f);
    if (!err && !(c->flags & CHUNK_WRITTEN) && version_eq(&k->base, v) &&
        k->base_end >= off + MIN(chunk, v->size - off)) {
        c->hash = hash;
        crash_order();
        c->flags |= CHUNK_HASH;
    }
    pages_settle(f, c);
    space_return(room.bytes, room.chunks);
    return err;
}

int store_fill(struct file *f, uint64_t index, const struct version *v, const void *buf, size_t len,
               uint64_t hash, bool owned, bool racy)
{
    struct range_op op;
    uint64_t pages = state_pages();
    if (index >= (uint64_t)INT64_MAX / store_chunk_size() || len > store_chunk_size())
        return -EINVAL;
    lock_take(&f->lock);
    range_begin(f, &op, RANGE_WRITE, index * pages, index * pages + pages - 1);
    int err = fill_locked(f, index, v, buf, len, hash, owned, racy);
    range_end(f, &op);
    lock_drop(&f->lock);
    return err;
}

/* ---- times ---- */

void store_set_times(struct file *f, int64_t mtime_ns)
{
    lock_take(&f->lock);
    store_pass_look(f);
    bool was_dirty = is_dirty(f) && !store_pass_flushed(f);
    struct file_core *c = core_change(f->rec);
    c->mtime_ns = mtime_ns;
    c->ctime_ns = real_ns();
    c->flags |= CORE_MTIME_SET;
    if (!(c->flags & CORE_DELETED))
        c->flags |= CORE_DIRTY;
    store_commit(f);
    store_changed(f);
    bool became = is_dirty(f) && !was_dirty;
    lock_drop(&f->lock);
    store_tell_dirty(f, became);
}

void store_touch_ctime(struct file *f)
{
    lock_take(&f->lock);
    core_change(f->rec)->ctime_ns = real_ns();
    store_commit(f);
    lock_drop(&f->lock);
}

/* ---- fsync ---- */

/* Does the record on the disk say it already, but for what the data file tells as well? */
static bool is_said(const struct file *f, const struct file_core *k)
{
    struct file_core c = f->rec->covered;
    if (!f->pass.covered)
        return false;
    if (!(c.flags & CORE_MTIME_SET))
        c.mtime_ns = k->mtime_ns;
    c.ctime_ns = k->ctime_ns;
    return !memcmp(&c, k, offsetof(struct file_core, check));
}

/* First the bytes, then what says that they are there: a record that survives a power loss tells
 * the truth.  That of a file which the kernel writes leaves its time to the data file, so that an
 * fsync after a rewrite is that of the data file alone.  Not the size: a file system may have written
 * that of the data file before the bytes of its last block. */
int store_cover(struct file *f)
{
    uint64_t size = core(f)->size;
    lock_drop(&f->lock);
    int err = datafile_sync(f);
    lock_take(&f->lock);
    struct file_core k = *core(f);
    k.size = MIN(k.size, size); /* the kernel's writers went on, and a sample has found it longer */
    bool said = is_said(f, &k);
    if (!err && !said)
        err = pages_cover(f);
    if (!err && !said)
        err = state_path_sync(f->rec);
    if (!err)
        err = state_sync_freed(f->rec);
    if (err)
        return err;
    unsigned uncovered = f->pass.uncovered;
    k.check = core_check(&k, f->fid);
    if (said)
        k = f->rec->covered;
    f->rec->covered = k;
    f->synced = true;
    lock_drop(&f->lock);
    err = said ? 0 : slab_sync(f->rec, sizeof(*f->rec));
    lock_take(&f->lock);
    f->pass.covered = !err && is_pass(f) && f->pass.uncovered == uncovered;
    if (err)
        f->rec->covered.check = 0; /* once more the next time */
    return err;
}

int store_sync(struct file *f)
{
    struct range_op op;
    int err = 0;
    lock_take(&f->lock);
    range_begin(f, &op, RANGE_READ, 0, UINT64_MAX); /* no write is half done meanwhile */
    store_pass_look(f);
    if (is_dirty(f) && (is_pass(f) || f->rec->covered.check != core(f)->check))
        err = store_cover(f);
    range_end(f, &op);
    lock_drop(&f->lock);
    return err;
}
