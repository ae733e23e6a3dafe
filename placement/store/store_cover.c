/* store_cover.c - what a power loss leaves: fsync makes the record on the disk tell what is here
 * ("covered"), and what must not come back after one is taken from it in time.
 */
#include "placement/store/datafile.h"
#include "placement/store/kernel_io_store.h"
#include "placement/store/state.h"
#include "placement/store/state_table.h"
#include "placement/store/store_int.h"
#include "placement/store/store_write.h"

#include <errno.h>
#include <string.h>

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

/* With f->lock, which is dropped meanwhile. */
static int sync_record(struct file *f)
{
    f->cover_changes++;
    lock_drop(&f->lock);
    int err = slab_sync(f->rec, sizeof(*f->rec));
    lock_take(&f->lock);
    f->cover_changes--;
    f->cover_failed = err;
    return err;
}

int store_cover_settle(struct file *f)
{
    if (!f->cover_changes && !f->cover_failed)
        return 0;
    int err = slab_sync(f->rec, sizeof(*f->rec));
    f->cover_failed = err;
    return err;
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
    k.base_end = MIN(k.base_end, k.size);
    bool said = is_said(f, &k);
    if (!err)
        err = state_sync_freed(f->rec); /* before a record that is new is covered in its place */
    if (!err && !said)
        err = store_cover_settle(f);
    if (!err && !said)
        err = pages_cover(f);
    if (!err && !said)
        err = state_path_sync(f->rec);
    if (err)
        return err;
    unsigned uncovered = f->pass.uncovered;
    k.check = core_check(&k, f->fid);
    if (said)
        k = f->rec->covered;
    f->rec->covered = k;
    f->synced = true;
    err = said ? 0 : sync_record(f);
    f->pass.covered = !err && is_pass(f) && f->pass.uncovered == uncovered;
    return err;
}

int store_sync(struct file *f)
{
    struct range_op op;
    int err = 0;
    lock_take(&f->lock);
    range_begin(f, &op, RANGE_READ, 0, UINT64_MAX); /* no write is half done meanwhile */
    store_pass_look(f);
    if (is_dirty(f) && (is_pass(f) || f->cover_failed || f->rec->covered.check != core(f)->check))
        err = store_cover(f);
    range_end(f, &op);
    lock_drop(&f->lock);
    return err;
}

/* ---- what is covered changes ---- */

/* With f->lock, which is dropped meanwhile: `next` is what is covered from now on.  On error it is
 * what it was, since that is what a power loss may leave, and the next call tries again. */
static int change_covered(struct file *f, struct file_core next)
{
    struct file_core was = f->rec->covered;
    f->rec->covered = next;
    store_not_covered(f);
    int err = sync_record(f);
    if (err)
        log_error("the cache's disk: writing a record: %s", strerror(-err));
    if (err && !memcmp(&f->rec->covered, &next, sizeof(next)))
        f->rec->covered = was;
    return err;
}

int store_uncover(struct file *f)
{
    struct file_core k = f->rec->covered;
    if (!k.check)
        return f->cover_failed ? store_cover_settle(f) : 0;
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
    /* No longer than it was fsynced: the data file, or the last page, has nothing behind that. */
    k.base_end = MIN(c->base_end, k.size);
    k.cut = c->cut;
    k.flags = (k.flags | CORE_BASE) & ~(uint32_t)CORE_FLUSHING;
    k.check = core_check(&k, f->fid);
    return change_covered(f, k);
}
