/* store_keep.c - see store_keep.h. */
#include "placement/store/store_keep.h"

#include "placement/store/pages.h"
#include "placement/store/range.h"
#include "placement/store/state_table.h"
#include "placement/store/store_int.h"
#include "placement/store/store_read.h"

static unsigned at_most = 50;

void store_keep_at_most(unsigned percent)
{
    at_most = percent;
}

bool store_keep_version(struct fid fid, struct version *v)
{
    struct file *f = file_find(fid);
    struct file_info info = {0};
    if (f) {
        store_info(f, &info);
        file_put(f);
    }
    *v = info.base;
    return info.base_known && !info.racy;
}

/* f->lock is held. */
static bool keep_locked(struct file *f, uint64_t index, const struct version *v, enum keep keep)
{
    struct chunk_record *c;
    size_t len;
    if (!store_chunk_is_clean(f, index, v, &len, &c) || core(f)->flags & CORE_RACY)
        return false;
    if (keep != KEEP_NOT && !eviction_may_keep(keep == KEEP_FOR_OWNER ? at_most : 100))
        return false;
    eviction_keep(c, keep);
    return true;
}

bool store_keep(struct fid fid, uint64_t index, const struct version *v, enum keep keep)
{
    struct file *f = file_find(fid);
    if (!f)
        return false;
    lock_take(&f->lock);
    bool kept = keep_locked(f, index, v, keep);
    lock_drop(&f->lock);
    file_put(f);
    return kept;
}

/* f->lock is held.  NULL: it is not here. */
static struct chunk_record *chunk_at(struct file *f, uint64_t index)
{
    struct chunk_record *c = pages_next_chunk(f, index);
    return c && c->index == index ? c : NULL;
}

bool store_hold(struct file *f, uint64_t off)
{
    lock_take(&f->lock);
    struct chunk_record *c = chunk_at(f, off / store_chunk_size());
    if (c)
        eviction_remove(c);
    lock_drop(&f->lock);
    return c;
}

void store_unhold(struct file *f, uint64_t off)
{
    lock_take(&f->lock);
    struct chunk_record *c = chunk_at(f, off / store_chunk_size());
    uint64_t first = c ? c->index * state_pages() : 0, until;
    /* a call that works there releases it */
    if (c && !range_changing(f, first, &until) && until >= first + state_pages() - 1)
        pages_release(f, c);
    lock_drop(&f->lock);
}
