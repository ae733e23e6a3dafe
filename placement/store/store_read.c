/* store_read.c - what of a file is here, and chunks for other nodes; reads begin in store_hit.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "placement/store/datafile.h"
#include "placement/store/eviction.h"
#include "placement/store/kernel_io_store.h"
#include "placement/store/state.h"
#include "placement/store/state_table.h"
#include "placement/store/store_int.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_write.h"
#include "transport/hash.h"

static bool mul_chunk(uint64_t index, uint64_t *off)
{
    return !__builtin_mul_overflow(index, (uint64_t)store_chunk_size(), off) && *off <= INT64_MAX;
}

/* ---- what is here ---- */

/* First page in [first, last] whose bytes are not here; last + 1 if none. */
static uint64_t first_missing(struct file *f, uint64_t first, uint64_t last)
{
    uint64_t holes = store_first_hole(f);
    if (!holes || first >= holes)
        return last + 1;
    uint64_t stop = MIN(last, holes - 1), page = pages_find(f, first, stop, BITS_VALID, false);
    return page > stop ? last + 1 : page;
}

/* [off, off + len) clipped to the file's size; false if nothing is left. */
static bool clip(const struct file *f, uint64_t off, uint64_t *len)
{
    uint64_t size = core(f)->size;
    if (off >= size || !*len)
        return false;
    *len = MIN(*len, size - off);
    return true;
}

bool store_missing(struct file *f, uint64_t off, uint64_t len, uint64_t *miss_off,
                   uint64_t *miss_len)
{
    bool found = false;
    lock_take(&f->lock);
    if (!has_kernel_io(f) && clip(f, off, &len)) {
        uint64_t last = last_page(off, len), page = first_missing(f, page_of(off), last);
        if (page <= last) {
            uint64_t stop = MIN(last, store_first_hole(f) - 1);
            uint64_t end = MIN(pages_find(f, page, stop, BITS_VALID, true) * PAGE,
                               MIN(off + len, core(f)->base_end));
            *miss_off = MAX(off, page * PAGE);
            *miss_len = end - *miss_off;
            found = end > *miss_off; /* beyond base_end the page is zeros */
        }
    }
    lock_drop(&f->lock);
    return found;
}

/* ---- whole files, anchored ---- */

#define ANCHORED_SHARE 8 /* at most this part of the cache is anchored; the rest can be evicted */

static _Atomic uint64_t anchored_bytes;

static bool take_share(uint64_t bytes)
{
    struct store_usage u;
    space_usage(&u);
    if (atomic_fetch_add(&anchored_bytes, bytes) + bytes <= u.limit / ANCHORED_SHARE)
        return true;
    atomic_fetch_sub(&anchored_bytes, bytes);
    return false;
}

/* f->lock held. */
static bool is_whole(struct file *f, const struct version *v)
{
    const struct file_core *c = core(f);
    uint32_t owes = CORE_DIRTY | CORE_CLAIMED | CORE_RACY | CORE_DELETED | CORE_FLUSHING;
    if (!(c->flags & CORE_BASE) || c->flags & owes || !version_eq(&c->base, v) ||
        c->size != v->size)
        return false;
    uint64_t last = v->size ? (v->size - 1) / PAGE : 0;
    return !v->size || first_missing(f, 0, last) > last;
}

bool store_anchor(struct file *f, const struct version *v, uint64_t *bytes)
{
    *bytes = v->size;
    if (!take_share(*bytes))
        return false;
    lock_take(&f->lock);
    bool whole = is_whole(f, v);
    f->anchored += whole;
    if (whole)
        pages_used(f);
    lock_drop(&f->lock);
    if (!whole)
        atomic_fetch_sub(&anchored_bytes, *bytes);
    return whole;
}

bool store_is_held(struct file *f)
{
    lock_take(&f->lock);
    bool anchored = f->anchored;
    lock_drop(&f->lock);
    return anchored;
}

void store_unanchor(struct file *f, uint64_t bytes)
{
    lock_take(&f->lock);
    f->anchored--;
    lock_drop(&f->lock);
    atomic_fetch_sub(&anchored_bytes, bytes);
}

/* ---- whole chunks for others ---- */

bool store_chunk_is_clean(struct file *f, uint64_t index, const struct version *v, size_t *len,
                          struct chunk_record **c)
{
    const struct file_core *k = core(f);
    uint64_t off, pages = state_pages();
    if (!(k->flags & CORE_BASE) || (k->flags & (CORE_DELETED | CORE_KERNEL_IO)) ||
        !version_eq(&k->base, v) || !mul_chunk(index, &off) || off >= v->size)
        return false;
    *len = (size_t)MIN(v->size - off, (uint64_t)store_chunk_size());
    if (k->base_end < off + *len) /* cut off by a truncation that is not on the PFS yet */
        return false;
    *c = state_chunk_find(f->fid, index);
    uint64_t last = last_page(off, *len);
    return *c && !((*c)->flags & CHUNK_WRITTEN) &&
           pages_find(f, index * pages, last, BITS_VALID, false) > last &&
           !bits_any(chunk_bits(*c, BITS_DIRTY, state_words()));
}

int store_get_chunk(struct file *f, uint64_t index, const struct version *v, void *buf, size_t *len,
                    uint64_t *hash)
{
    struct range_op op;
    struct chunk_record *c;
    uint64_t first = index * state_pages();
    lock_take(&f->lock);
    if (!store_chunk_is_clean(f, index, v, len, &c)) {
        lock_drop(&f->lock);
        return -ENOENT;
    }
    range_begin(f, &op, RANGE_READ, first, first + state_pages() - 1);
    bool clean = store_chunk_is_clean(f, index, v, len, &c); /* it may have waited for a write */
    if (clean)
        eviction_used(c);
    lock_drop(&f->lock);
    int err = clean ? datafile_pread(f, buf, *len, index * store_chunk_size()) : -ENOENT;
    lock_take(&f->lock);
    bool known = !err && (c->flags & CHUNK_HASH);
    if (known)
        *hash = c->hash;
    lock_drop(&f->lock);
    if (!err && !known)
        *hash = data_hash(buf, *len);
    lock_take(&f->lock);
    if (!err && !known) {
        c->hash = *hash;
        crash_order();
        c->flags |= CHUNK_HASH;
    }
    range_end(f, &op);
    lock_drop(&f->lock);
    return err;
}

/* Does no call change a page of [first, last] now, or wait to change one? */
static bool at_rest(const struct file *f, uint64_t first, uint64_t last)
{
    uint64_t until;
    return !range_changing(f, first, &until) && until >= last;
}

/* Keeps f->lock throughout, so that no call begins to change the pages. */
static bool get_chunk_now(struct file *f, uint64_t index, const struct version *v, void *buf,
                          size_t *len, uint64_t *hash)
{
    struct chunk_record *c;
    uint64_t pages = state_pages();
    if (core(f)->flags & CORE_RACY || !store_chunk_is_clean(f, index, v, len, &c) ||
        !(c->flags & CHUNK_HASH) || !at_rest(f, index * pages, index * pages + pages - 1) ||
        !datafile_pread_now(f, buf, *len, index * store_chunk_size()))
        return false;
    eviction_used(c);
    *hash = c->hash;
    return true;
}

int store_get_chunk_now(struct file *f, uint64_t index, const struct version *v, void *buf,
                        size_t *len, uint64_t *hash)
{
    if (!lock_try(&f->lock))
        return -EAGAIN;
    bool got = get_chunk_now(f, index, v, buf, len, hash);
    lock_drop(&f->lock);
    return got ? 0 : -EAGAIN;
}

/* ---- holes ---- */

/* Is the page data: bytes here, or on the PFS? */
static uint64_t next_data(struct file *f, uint64_t page, uint64_t last)
{
    uint64_t holes = store_first_hole(f);
    while (page <= last) {
        if (page >= holes && (page = pages_find(f, page, last, BITS_VALID, true)) > last)
            break;
        struct chunk_record *c = state_chunk_find(f->fid, page / state_pages());
        if (!c ||
            !bit_get(chunk_bits(c, BITS_ZERO, state_words()), (uint32_t)(page % state_pages())))
            break; /* not valid: on the PFS; else bytes */
        page = pages_find(f, page, last, BITS_ZERO, false);
    }
    return MIN(page, last + 1);
}

static uint64_t next_hole(struct file *f, uint64_t page, uint64_t last)
{
    uint64_t holes = store_first_hole(f);
    uint64_t zero = pages_find(f, page, last, BITS_ZERO, true);
    if (page < holes)
        page = holes;
    uint64_t absent = page > last ? last + 1 : pages_find(f, page, last, BITS_VALID, false);
    return MIN(zero, absent);
}

/* The data file knows: -ENXIO beyond its end. */
static int seek_kernel_io(struct file *f, uint64_t off, bool hole, uint64_t *out)
{
    int fd, err = datafile_get(f, false, &fd);
    if (err)
        return err == -ENOENT ? -ENXIO : err;
    off_t at = lseek(fd, (off_t)off, hole ? SEEK_HOLE : SEEK_DATA);
    err = at < 0 ? -errno : 0;
    *out = (uint64_t)at;
    datafile_put(f);
    return err;
}

int store_seek(struct file *f, uint64_t off, bool hole, uint64_t *out)
{
    lock_take(&f->lock);
    if (has_kernel_io(f)) {
        lock_drop(&f->lock);
        return seek_kernel_io(f, off, hole, out);
    }
    uint64_t size = core(f)->size;
    int err = off >= size ? -ENXIO : 0;
    if (!err) {
        uint64_t last = (size - 1) / PAGE;
        uint64_t page = hole ? next_hole(f, page_of(off), last) : next_data(f, page_of(off), last);
        *out = MIN(MAX(off, page * PAGE), size);
        if (!hole && page > last)
            err = -ENXIO;
    }
    lock_drop(&f->lock);
    return err;
}

/* ---- beside other nodes' parts ---- */

int store_own_next(struct file *f, uint64_t off, uint64_t *at, uint64_t *end, uint64_t *missing)
{
    lock_take(&f->lock);
    uint64_t size = core(f)->size, last = size ? (size - 1) / PAGE : 0, page = page_of(off), absent = 0;
    bool found = false;
    while (off < size && page <= last && !found) {
        uint64_t here = pages_find(f, page, last, BITS_VALID, true);
        absent += MIN(here * PAGE, size) - MIN(MAX(off, page * PAGE), size);
        page = here > last ? here : pages_find(f, here, last, BITS_ZERO, false);
        found = here <= last && page == here;
    }
    if (found) {
        uint64_t stop = MIN(pages_find(f, page, last, BITS_VALID, false), pages_find(f, page, last, BITS_ZERO, true));
        *at = MAX(off, page * PAGE);
        *end = MIN(stop * PAGE, size);
    }
    lock_drop(&f->lock);
    *missing = absent;
    return found ? 0 : -ENXIO;
}
