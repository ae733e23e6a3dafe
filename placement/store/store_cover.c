/* store_cover.c - what a power loss leaves.  The record on the disk tells what an fsync has brought there
 * ("covered"; store_sync.c).  What must not come back after a power loss is taken out of it in time.
 */
#include "placement/store/datafile.h"
#include "placement/store/kernel_io_store.h"
#include "placement/store/state.h"
#include "placement/store/state_table.h"
#include "placement/store/store_int.h"
#include "placement/store/store_write.h"

#include <string.h>

int store_sync_record(struct file *f)
{
    uint64_t said = f->cover.said;
    lock_drop(&f->lock);
    int err = state_sync(f->rec, sizeof(*f->rec));
    lock_take(&f->lock);
    if (!err)
        f->cover.on_disk = MAX(f->cover.on_disk, said);
    return err;
}

int store_cover_apply(struct file *f)
{
    int err = 0;
    while (!err && !store_cover_is_applied(f))
        err = store_sync_record(f);
    return err;
}

/* With f->lock, which is dropped meanwhile: makes `next` what is covered from now on.  After an error the old
 * state is still what counts as covered, since a power loss may leave it; the next call tries again. */
static int change_covered(struct file *f, struct file_core next)
{
    struct file_core was = f->rec->covered;
    f->rec->covered = next;
    f->cover.said++;
    store_not_covered(f);
    int err = store_sync_record(f);
    if (err)
        log_error("the cache's disk: writing a record: %s", strerror(-err));
    if (err && !memcmp(&f->rec->covered, &next, sizeof(next)))
        f->rec->covered = was;
    return err;
}

int store_uncover(struct file *f)
{
    struct file_core k = f->rec->covered;
    if (f->cover.now) /* it would cover it again */
        f->cover.now->over = true;
    if (!k.check)
        return store_cover_apply(f);
    k.check = 0;
    return change_covered(f, k);
}

int store_cover_cut(struct file *f, uint64_t size)
{
    struct file_core k = f->rec->covered;
    if (!k.check || size >= k.size)
        return 0;
    k.size = size;
    k.base_end = MIN(k.base_end, size);
    k.cut = MIN(k.cut, size);
    k.check = core_check(&k, f->fid);
    return change_covered(f, k);
}

int store_cover_flushing(struct file *f)
{
    struct file_core k = f->rec->covered;
    if (!k.check || (k.flags & CORE_FLUSHING))
        return 0;
    k.flags |= CORE_FLUSHING;
    k.check = core_check(&k, f->fid);
    return change_covered(f, k);
}

int store_cover_flushed(struct file *f)
{
    struct file_core k = f->rec->covered;
    const struct file_core *c = core(f);
    if (!k.check)
        return 0;
    k.base = c->base;
    /* Not longer than when it was fsynced: the data file, or the last page, has nothing behind that. */
    k.base_end = MIN(c->base_end, k.size);
    k.cut = c->cut;
    k.flags = (k.flags | CORE_BASE) & ~(uint32_t)CORE_FLUSHING;
    k.check = core_check(&k, f->fid);
    return change_covered(f, k);
}
