/* store_pass_sample.c - has somebody stored, as far as a data file's size and times tell?  And is it
 * sure that nobody can any more?  (F3 and F5 of docs/protocol.md; the whole is in store_pass.c.)
 */
#include "placement/store/datafile_pass.h"
#include "placement/store/kernel_io.h"
#include "placement/store/kernel_io_store.h"
#include "placement/store/state.h"
#include "placement/store/store_int.h"
#include "placement/store/store_open.h"
#include "placement/store/store_pass_int.h"

#include <string.h>

static int64_t ns_of(struct timespec t)
{
    return ns_of_time(t.tv_sec, t.tv_nsec);
}

bool pass_same_sample(const struct pass_sample *a, const struct pass_sample *b)
{
    return a->known && b->known && a->size == b->size && a->mtime_ns == b->mtime_ns &&
           a->ctime_ns == b->ctime_ns;
}

/* What is counted beside the records' pages: used, and, unless the file is deleted, dirty. */
static void set_counted(struct file *f, uint64_t bytes)
{
    int64_t more = (int64_t)(bytes - f->pass.counted);
    space_count(more, core(f)->flags & CORE_DELETED ? 0 : more);
    f->pass.counted = bytes;
}

/* Blocks of the data file that no page of the records stands for: counted, so that limits hold. */
static void count_blocks(struct file *f, const struct stat *st)
{
    uint64_t pages = (f->rec->valid - f->rec->zero) * PAGE, blocks = (uint64_t)st->st_blocks * 512;
    set_counted(f, is_pass(f) && blocks > pages ? blocks - pages : 0);
}

void store_pass_uncount(struct file *f)
{
    set_counted(f, 0);
}

void store_pass_deleted(struct file *f)
{
    space_count(0, -(int64_t)f->pass.counted);
}

bool pass_take_sample(struct file *f, struct pass_sample *s)
{
    struct stat st;
    int err = datafile_stat(f, &st);
    if (err) {
        log_error("the cache's disk: a data file's attributes: %s", strerror(-err));
        return false;
    }
    *s = (struct pass_sample){(uint64_t)st.st_size, ns_of(st.st_mtim), ns_of(st.st_ctim), true};
    count_blocks(f, &st);
    return true;
}

/* Somebody stored: size and times are what the data file says.  It only grows so; what shrinks it
 * comes by store_truncate. */
static void took_changes(struct file *f, const struct pass_sample *s)
{
    struct file_core *c = core_change(f->rec);
    if (s->mtime_ns != f->pass.seen.mtime_ns || s->size != f->pass.seen.size) {
        c->mtime_ns = s->mtime_ns;
        c->flags &= ~(uint32_t)CORE_MTIME_SET;
    }
    c->size = MAX(c->size, s->size);
    c->ctime_ns = MAX(c->ctime_ns, s->ctime_ns);
    store_commit(f);
    store_changed(f);
}

/* utimens came after the last store, and the daemon died: the time that it set still holds. */
static bool time_was_set_last(const struct file *f, const struct pass_sample *now)
{
    const struct file_core *c = core(f);
    return (c->flags & CORE_MTIME_SET) && now->mtime_ns <= c->ctime_ns && now->size <= c->size;
}

bool store_pass_look(struct file *f)
{
    struct pass_sample now;
    if (!is_pass(f))
        return false;
    if (!pass_take_sample(f, &now)) {
        f->pass.seen.known = false; /* nothing is proved any more: it counts as changed */
        return false;
    }
    if (pass_same_sample(&now, &f->pass.seen))
        return false;
    bool first = !f->pass.seen.known;
    if (first) /* after a start: all of it may be news */
        f->pass.seen.mtime_ns = now.mtime_ns;
    if (first && time_was_set_last(f, &now))
        f->pass.seen.size = now.size;
    took_changes(f, &now);
    f->pass.seen = now;
    return true;
}

void store_pass_peek(struct file *f)
{
    if (!f->pass.closed)
        store_pass_look(f);
}

bool store_pass_flushed(const struct file *f)
{
    return is_pass(f) && f->pass.seen.known && f->pass.flushed == f->change && !f->rec->dirty &&
           core(f)->cut == NO_CUT;
}

uint64_t store_pass_age_ms(struct file *f)
{
    lock_take(&f->lock);
    int64_t age = is_pass(f) && f->pass.seen.known ? real_ns() - f->pass.seen.ctime_ns : 0;
    lock_drop(&f->lock);
    return age > 0 ? (uint64_t)age / 1000000 : 0;
}

/* ---- clean again ---- */

bool pass_nobody_stores(struct file *f)
{
    return !f->pass.writers && datafile_unwritten(f) && !store_pass_look(f) && f->pass.seen.known;
}

void pass_end(struct file *f, bool clean)
{
    struct file_core *c = core_change(f->rec);
    c->flags &= ~(uint32_t)CORE_PASS;
    if (clean)
        c->flags &= ~(uint32_t)(CORE_DIRTY | CORE_MTIME_SET);
    store_commit(f);
    f->pass.seen.known = false;
    f->pass.closed = false;
    store_pass_uncount(f);
}

void pass_settle_unflushed(struct file *f)
{
    store_pass_look(f);
    if (store_pass_flushed(f) && !f->snapshots)
        pass_prove_closed(f);
}

/* One proof for both: of two, one after the other, the first can fail by a use that ends before the
 * second. */
void pass_prove_closed(struct file *f)
{
    if (!pass_nobody_stores(f))
        return;
    f->pass.closed = true;
    if (store_pass_flushed(f) && !f->snapshots)
        pass_end(f, true);
}

bool pass_is_quiet(const struct file *f)
{
    return is_pass(f) && f->pass.closed && !f->pass.writers && !store_pass_flushed(f);
}
