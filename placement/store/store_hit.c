/* store_hit.c - handing out bytes that are here. */
#include "placement/store/store_hit.h"

#include <errno.h>
#include <sys/mman.h>

#include "placement/store/datafile.h"
#include "placement/store/kernel_io_store.h"
#include "placement/store/store_int.h"
#include "placement/store/store_lend_int.h"
#include "placement/store/store_read.h"

/* ---- the look ---- */

/* How many of these bytes are before the first that is lent? */
static uint64_t own_bytes(const struct file *f, uint64_t off, uint64_t len)
{
    uint64_t last = last_page(off, len), lent = f->rec->lent ? lent_next(f, page_of(off), last) : last + 1;
    return lent > last ? len : lent * PAGE - MIN(off, lent * PAGE);
}

/* How many bytes from off on are here; their chunks count as used. */
static uint64_t use_pages(struct file *f, uint64_t off, uint64_t len)
{
    const struct file_core *c = core(f);
    if (off >= c->size || !len)
        return 0;
    len = own_bytes(f, off, MIN(len, c->size - off));
    if (!len)
        return 0;
    /* What is behind base_end in its page is zeros in the data file. */
    bool all = has_kernel_io(f) || off >= c->base_end;
    uint64_t last = last_page(off, len);
    uint64_t page = pages_use(f, page_of(off), last, all ? 0 : store_first_hole(f));
    if (page > last)
        return len;
    return page * PAGE > off ? page * PAGE - off : 0;
}

/* With f->lock, which is dropped while this waits for a truncation, or for another call that takes bytes
 * away. */
static uint64_t pin(struct file *f, uint64_t off, uint64_t len, struct range_op *op)
{
    uint64_t n = use_pages(f, off, len);
    if (!n)
        return 0;
    if (range_begin(f, op, RANGE_PIN, page_of(off), last_page(off, n))) {
        n = MIN(n, use_pages(f, off, n));
        if (n)
            op->last = last_page(off, n);
        else
            range_end(f, op);
    }
    return n;
}

size_t store_read_begin(struct file *f, uint64_t off, size_t len, struct store_hit *hit)
{
    bool open = false;
    lock_take(&f->lock);
    if (has_kernel_io(f))
        kernel_io_look(f);
    size_t n = pin(f, off, len, &hit->pin);
    if (n) {
        const struct file_core *c = core(f);
        hit->f = f;
        hit->off = off;
        hit->len = n;
        hit->ends = off + n >= c->size && !f->rec->lent; /* else a borrower may have written behind it */
        hit->copied = kernel_io_needs_copy(f);
        hit->base = c->flags & CORE_BASE ? c->base : (struct version){0};
        open = datafile_use(f, &hit->fd);
    }
    lock_drop(&f->lock);
    if (n && !open) {
        int err = datafile_get_made(f, &hit->fd);
        if (err)
            hit->fd = err;
    }
    return n;
}

void store_read_end(struct store_hit *hit)
{
    struct file *f = hit->f;
    if (hit->fd >= 0)
        datafile_put(f);
    lock_take(&f->lock);
    range_end(f, &hit->pin);
    lock_drop(&f->lock);
}

/* ---- the bytes ---- */

/* Removes what a failed write has left, which must not be read.  Pinned pages are changed by writers only. */
static int clear_pages(struct file *f)
{
    if (!(__atomic_load_n(&f->rec->uncut, __ATOMIC_RELAXED) & UNCUT_PAGES))
        return 0;
    lock_take(&f->lock);
    int err = store_clear_pages(f);
    lock_drop(&f->lock);
    return err;
}

int store_read_copy(const struct store_hit *hit, void *buf)
{
    int err = clear_pages(hit->f);
    return err ? err : datafile_read(hit->fd, buf, hit->len, hit->off);
}

void *store_read_view(const struct store_hit *hit)
{
    if (hit->copied || hit->fd < 0 || clear_pages(hit->f))
        return NULL;
    return datafile_map(hit->fd, hit->len, hit->off);
}

ssize_t store_read(struct file *f, void *buf, size_t len, uint64_t off)
{
    struct store_hit hit;
    size_t n = store_read_begin(f, off, len, &hit);
    if (!n)
        return 0;
    int err = store_read_copy(&hit, buf);
    store_read_end(&hit);
    return err ? err : (ssize_t)n;
}

/* ---- without a pin ---- */

int store_pread(struct file *f, void *buf, size_t len, uint64_t off)
{
    int err = clear_pages(f);
    return err ? err : datafile_pread(f, buf, len, off);
}

static bool needs_copy(struct file *f)
{
    lock_take(&f->lock);
    bool needs = kernel_io_needs_copy(f);
    lock_drop(&f->lock);
    return needs;
}

void *store_view(struct file *f, size_t len, uint64_t off)
{
    int fd;
    if (clear_pages(f) || needs_copy(f) || datafile_get_made(f, &fd))
        return NULL;
    void *view = datafile_map(fd, len, off);
    datafile_put(f);
    return view;
}

void store_unview(void *view, size_t len)
{
    munmap(view, len);
}
