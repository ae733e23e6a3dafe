/* kernel_io_sample.c - was a data file written, as far as its size and times tell?  And is it sure that no
 * process can write it any more?  (F3 and F5 of docs/protocol.md; the head of kernel_io.c tells the whole.)
 */
#include "placement/store/datafile_kernel_io.h"
#include "placement/store/kernel_io.h"
#include "placement/store/kernel_io_store.h"
#include "placement/store/state.h"
#include "placement/store/store_int.h"
#include "placement/store/store_open.h"
#include "placement/store/kernel_io_int.h"

#include <string.h>

static int64_t ns_of(struct timespec t)
{
    return ns_of_time(t.tv_sec, t.tv_nsec);
}

bool kernel_io_same_sample(const struct kernel_io_sample *a, const struct kernel_io_sample *b)
{
    return a->known && b->known && a->size == b->size && a->mtime_ns == b->mtime_ns &&
           a->ctime_ns == b->ctime_ns;
}

/* Counts bytes beside the records' pages: as used, and, unless the file is deleted, as dirty. */
static void set_counted(struct file *f, uint64_t bytes)
{
    int64_t more = (int64_t)(bytes - f->kernel_io.counted);
    space_count(more, core(f)->flags & CORE_DELETED ? 0 : more);
    f->kernel_io.counted = bytes;
}

/* Counts blocks of the data file that no page of the records stands for, so that limits hold. */
static void count_blocks(struct file *f, const struct stat *st)
{
    uint64_t pages = (f->rec->valid - f->rec->zero) * PAGE, blocks = (uint64_t)st->st_blocks * 512;
    set_counted(f, has_kernel_io(f) && blocks > pages ? blocks - pages : 0);
}

void kernel_io_uncount(struct file *f)
{
    set_counted(f, 0);
}

void kernel_io_deleted(struct file *f)
{
    space_count(0, -(int64_t)f->kernel_io.counted);
}

bool kernel_io_take_sample(struct file *f, struct kernel_io_sample *s)
{
    struct stat st;
    int err = datafile_stat(f, &st);
    if (err) {
        log_error("the cache's disk: a data file's attributes: %s", strerror(-err));
        return false;
    }
    *s = (struct kernel_io_sample){(uint64_t)st.st_size, ns_of(st.st_mtim), ns_of(st.st_ctim), true};
    count_blocks(f, &st);
    return true;
}

/* The mtime after a store at this time of the data file.  It does not go back: of what the daemon itself changes, the data
 * file hears nothing (fallocate of what is there), or gets an older time (its clock is a coarse one).  A time that was set,
 * or is in the future, ends with the store, as with a local file system. */
static int64_t mtime_after(const struct file_core *c, int64_t stored_ns)
{
    bool ends = c->flags & CORE_MTIME_SET || c->mtime_ns > real_ns();
    return ends ? stored_ns : MAX(c->mtime_ns, stored_ns);
}

/* The data file was written: takes size and times from it.  The file can only grow in this way; it shrinks
 * only by store_truncate. */
static void took_changes(struct file *f, const struct kernel_io_sample *s)
{
    struct file_core *c = core_change(f->rec);
    if (s->mtime_ns != f->kernel_io.seen.mtime_ns || s->size != f->kernel_io.seen.size) {
        c->mtime_ns = mtime_after(c, s->mtime_ns);
        c->flags &= ~(uint32_t)CORE_MTIME_SET;
    }
    c->size = MAX(c->size, s->size);
    c->ctime_ns = MAX(c->ctime_ns, s->ctime_ns);
    f->only_here |= (c->flags & CORE_DELETED) != 0;
    store_commit(f);
    store_changed(f);
}

/* Did utimens come after the last store, before the daemon died?  Then the time that it set still holds. */
static bool time_was_set_last(const struct file *f, const struct kernel_io_sample *now)
{
    const struct file_core *c = core(f);
    return (c->flags & CORE_MTIME_SET) && now->mtime_ns <= c->ctime_ns && now->size <= c->size;
}

bool kernel_io_look(struct file *f)
{
    struct kernel_io_sample now;
    if (!has_kernel_io(f))
        return false;
    if (!kernel_io_take_sample(f, &now)) {
        f->kernel_io.seen.known = false; /* nothing is proved any more: it counts as changed */
        return false;
    }
    if (kernel_io_same_sample(&now, &f->kernel_io.seen))
        return false;
    bool first = !f->kernel_io.seen.known;
    if (first) /* after a start: all of it may be news */
        f->kernel_io.seen.mtime_ns = now.mtime_ns;
    if (first && time_was_set_last(f, &now))
        f->kernel_io.seen.size = now.size;
    took_changes(f, &now);
    f->kernel_io.seen = now;
    return true;
}

void kernel_io_peek(struct file *f)
{
    if (!f->kernel_io.closed)
        kernel_io_look(f);
}

bool kernel_io_flushed(const struct file *f)
{
    return has_kernel_io(f) && f->kernel_io.seen.known && f->kernel_io.flushed == f->change && !f->rec->dirty &&
           core(f)->cut == NO_CUT;
}

uint64_t kernel_io_age_ms(struct file *f)
{
    lock_take(&f->lock);
    int64_t age = has_kernel_io(f) && f->kernel_io.seen.known ? real_ns() - f->kernel_io.seen.ctime_ns : 0;
    lock_drop(&f->lock);
    return age > 0 ? (uint64_t)age / 1000000 : 0;
}

/* ---- clean again ---- */

bool kernel_io_nobody_stores(struct file *f)
{
    return !f->kernel_io.writers && datafile_unwritten(f) && !kernel_io_look(f) && f->kernel_io.seen.known;
}

void kernel_io_end(struct file *f, bool clean)
{
    struct file_core *c = core_change(f->rec);
    c->flags &= ~(uint32_t)CORE_KERNEL_IO;
    if (clean)
        c->flags &= ~(uint32_t)(CORE_DIRTY | CORE_MTIME_SET);
    store_commit(f);
    f->kernel_io.seen.known = false;
    f->kernel_io.closed = false;
    kernel_io_uncount(f);
}

void kernel_io_conclude_unflushed(struct file *f)
{
    kernel_io_look(f);
    if (kernel_io_flushed(f) && !f->snapshots)
        kernel_io_prove_closed(f);
}

/* One proof serves both.  With two proofs, one after the other, the first could fail by a use that ends
 * before the second. */
void kernel_io_prove_closed(struct file *f)
{
    if (!kernel_io_nobody_stores(f))
        return;
    f->kernel_io.closed = true;
    if (kernel_io_flushed(f) && !f->snapshots)
        kernel_io_end(f, true);
}

bool kernel_io_is_quiet(const struct file *f)
{
    return has_kernel_io(f) && f->kernel_io.closed && !f->kernel_io.writers && !kernel_io_flushed(f);
}
