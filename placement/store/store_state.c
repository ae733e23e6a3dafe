/* store_state.c - a file's state in its record: dirty, size, times, marks that outlive the daemon. */
#include "placement/store/datafile.h"
#include "placement/store/kernel_io_store.h"
#include "placement/store/range.h"
#include "placement/store/shadow.h"
#include "placement/store/state.h"
#include "placement/store/state_table.h"
#include "placement/store/store_copyout.h"
#include "placement/store/store_int.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Returns what the open fails with.  Logs the error, unless there may be room again (store_room_again). */
static int disk_error(const struct file *f, const char *what, int err)
{
    if (err == -ENOSPC || err == -EDQUOT)
        return -ENOSPC;
    log_error("the cache's disk: %s: %s: %s: opens of it fail until that succeeds",
              f->path ? f->path : "?", what, strerror(-err));
    return -EIO;
}

bool store_room_again(struct file *f, int err)
{
    if (err != -ENOSPC)
        return false;
    if (store_free_inode())
        return true;
    char *path = file_path(f);
    log_error("the cache's disk: %s: it has no room or no inode for a new data file: opens of it fail until it has",
              path ? path : "?");
    free(path);
    return false;
}

int store_drop_all(struct file *f, uint64_t *bytes)
{
    store_not_whole(f);
    *bytes = pages_drop_from(f, 0);
    if (!f->rec->data_made)
        return 0;
    crash_order();
    int err = kernel_io_renew(f);
    if (err)
        return disk_error(f, "a new data file", err);
    lock_drop(&f->lock);
    err = datafile_truncate(f, 0);
    lock_take(&f->lock);
    if (err)
        return disk_error(f, "truncating a data file", err);
    clear_uncut(f, UNCUT_END | UNCUT_PAGES);
    return 0;
}

/* With it the data file that is in use becomes the shadow (kernel_io_renew). */
static int shadow_begin_once(struct file *f)
{
    struct range_op op;
    uint64_t bytes;
    int err = 0;
    lock_take(&f->lock);
    if (f->kernel_io.opens && !f->shadow) {
        range_begin(f, &op, RANGE_DROP, 0, UINT64_MAX);
        if (is_dirty(f) || core(f)->flags & CORE_CLAIMED)
            err = -EBUSY;
        else if (f->kernel_io.opens && !f->shadow)
            err = store_drop_all(f, &bytes);
        if (!err)
            pages_release_all(f, true);
        range_end(f, &op);
    }
    lock_drop(&f->lock);
    return err;
}

int shadow_begin(struct file *f)
{
    int err;
    do
        err = shadow_begin_once(f);
    while (store_room_again(f, err));
    if (err && err != -EBUSY) {
        char *path = file_path(f);
        log_warn("%s: there is no data file for what another node changed: processes that had it open before may read older bytes: %s",
                 path ? path : "?", strerror(-err));
        free(path);
    }
    return err;
}

/* st_blocks: what is here, with what the kernel stored; and what is only on the PFS, as if without holes. */
static uint64_t blocks_of(const struct file *f)
{
    const struct file_record *r = f->rec;
    uint64_t base = store_first_hole(f), present = r->valid - r->zero;
    present += base > r->valid ? base - r->valid : 0;
    return present * (PAGE / 512) + f->kernel_io.counted / 512;
}

static int64_t stands_ns(const struct file *f)
{
    const struct file_core *c = core(f);
    const struct file_trace *t = &f->rec->trace;
    if (f->rec->lent)
        return INT64_MAX;
    if (!(c->flags & CORE_FLUSHING))
        return c->flags & CORE_BASE ? c->base.ctime_ns : INT64_MIN;
    return t->kind == TRACE_LEFT ? t->v.ctime_ns : INT64_MAX;
}

void store_info(struct file *f, struct file_info *out)
{
    lock_take(&f->lock);
    kernel_io_peek(f);
    const struct file_core *c = core(f);
    *out = (struct file_info){
        .size = c->size,
        .mtime_ns = c->mtime_ns,
        .ctime_ns = c->ctime_ns,
        .stands_ns = stands_ns(f),
        .blocks = blocks_of(f),
        .base = c->base,
        .base_known = c->flags & CORE_BASE,
        .base_end = c->base_end,
        .cut = c->cut,
        .dirty_bytes = (f->rec->dirty - f->hollow) * PAGE + (c->flags & CORE_DELETED ? 0 : f->kernel_io.counted),
        .change = f->change,
        .dirty = is_dirty(f) && !kernel_io_flushed(f),
        .claimed = c->flags & CORE_CLAIMED,
        .claim_inc = c->claim_inc,
        .claim_number = c->claim_number,
        .kernel_io = has_kernel_io(f),
        .mtime_set = c->flags & CORE_MTIME_SET,
        .racy = c->flags & CORE_RACY,
        .flushing = c->flags & CORE_FLUSHING,
        .trace = f->rec->trace,
        .policy = f->rec->policy,
        .deleted = c->flags & CORE_DELETED,
        .only_here = f->only_here,
        .leaving = f->rec->leaving,
        .lent = f->rec->lent,
        .loss_told = f->rec->loss_told,
    };
    lock_drop(&f->lock);
}

int store_not_again(struct file *f)
{
    lock_take(&f->lock);
    int err = store_uncover(f);
    lock_drop(&f->lock);
    return err;
}

void store_set_deleted(struct file *f)
{
    lock_take(&f->lock);
    bool was = core(f)->flags & CORE_DELETED;
    kernel_io_look(f);
    if (!was)
        f->only_here = is_dirty(f) && !kernel_io_flushed(f);
    core_change(f->rec)->flags |= CORE_DELETED;
    store_commit(f);
    pages_clean_all(f);
    pages_release_all(f, false);
    if (!was)
        kernel_io_deleted(f);
    f->change++;
    /* If a power loss brings it back, the log names it, and nothing is done: the file has no name any more */
    (void)store_uncover(f);
    lock_drop(&f->lock);
    kernel_io_not_watched(f);
    void (*deleted)(struct file *f) = store.on_deleted;
    if (deleted)
        deleted(f);
}

void store_set_policy(struct file *f, uint8_t policy)
{
    lock_take(&f->lock);
    f->rec->policy = policy;
    lock_drop(&f->lock);
}

void file_set_unlinked(struct file *f, bool unlinked)
{
    lock_take(&f->lock);
    f->unlinked = unlinked;
    f->nameless &= unlinked;
    f->rec->leaving = unlinked;
    lock_drop(&f->lock);
}

void file_saw_links(struct file *f, unsigned links)
{
    if (links || f->nameless)
        return;
    lock_take(&f->lock);
    f->nameless = true;
    f->rec->leaving = true;
    lock_drop(&f->lock);
}

void store_set_leaving(struct fid fid, bool leaving)
{
    struct file *f = store.open ? file_find(fid) : NULL;
    if (!f)
        return;
    lock_take(&f->lock);
    f->rec->leaving = leaving;
    lock_drop(&f->lock);
    file_put(f);
}

/* With a RANGE_DROP on the whole file.  It counts as deleted until the old bytes are gone. */
static int be_born_again(struct file *f)
{
    uint64_t bytes;
    int err = store_uncover(f);
    if (err)
        return -EIO;
    err = store_drop_all(f, &bytes);
    f->change++;
    if (err)
        return err;
    kernel_io_uncount(f);
    struct file_core *c = core_change(f->rec);
    c->flags &= CORE_CLAIMED;
    c->size = c->base_end = 0;
    c->cut = NO_CUT;
    store_commit(f);
    return 0;
}

static int set_reborn(struct file *f)
{
    struct range_op op;
    int err = 0;
    lock_take(&f->lock);
    if (core(f)->flags & CORE_DELETED) {
        range_begin(f, &op, RANGE_DROP, 0, UINT64_MAX);
        if (core(f)->flags & CORE_DELETED) /* else another call was quicker */
            err = be_born_again(f);
        range_end(f, &op);
    }
    f->unlinked = err; /* the next open comes here again */
    f->nameless &= err != 0;
    f->only_here &= err != 0;
    if (!err)
        f->rec->leaving = false;
    lock_drop(&f->lock);
    return err;
}

int store_set_reborn(struct file *f)
{
    int err;
    do
        err = set_reborn(f);
    while (store_room_again(f, err));
    return err;
}

/* ---- the mode ---- */

void store_set_raised_mode(struct file *f, uint32_t mode)
{
    lock_take(&f->lock);
    core_change(f->rec)->raised_mode = mode;
    store_commit(f);
    lock_drop(&f->lock);
}

bool store_raised_mode(struct file *f, uint32_t *mode)
{
    lock_take(&f->lock);
    *mode = core(f)->raised_mode;
    lock_drop(&f->lock);
    return *mode != STORE_NO_MODE;
}
