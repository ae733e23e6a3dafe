/* store_sync.c - fsync: brings to the disk what is here when it begins, and then the records that say so.
 * Writes go on meanwhile.
 *
 *     begins    (no write is half done) notes the file's size and which pages are here: that much it
 *        |      covers, less what is cut off from now on
 *     data      fdatasync: these pages are on the disk, as they were then, or as a later write has
 *        |      left them
 *     chunks    those pages are marked as covered where the PFS does not have them: their records
 *        |
 *     record    the file's: its core as it is now, but no longer than at the beginning
 *
 * So a record that survives a power loss tells the truth.  If the PFS has everything meanwhile, nothing is
 * left to cover ("over").  One fsync of a file runs at a time; all fsyncs that are called meanwhile share the
 * next one.  No chunk of the file is evicted while one runs.
 *
 * If a sync of the data file fails, the kernel tells that once, and counts the pages as written.  What was
 * dirty then is "lost" for fsync, which fails until the PFS has it.
 */
#include "placement/store/kernel_io_store.h"
#include "placement/store/store_int.h"
#include "placement/store/store_write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the data file's bytes ---- */

/* With kernel I/O, the records have no pages for what was stored: then all pages count as lost. */
static void note_loss(struct file *f, int err)
{
    f->rec->unsynced = 1;
    f->cover.err = err;
    store_drop_lost(f);
    if (!has_kernel_io(f)) {
        f->cover.lost = xmalloc(sizeof(*f->cover.lost));
        page_set_take(f->cover.lost, f, BITS_DIRTY, false);
    }
    log_error("the cache's disk: %s: writing it there: %s: fsync of it fails until it is on the PFS",
              f->path ? f->path : "?", strerror(-err));
}

static int loss(struct file *f)
{
    if (f->cover.lost && !page_set_keep_dirty(f->cover.lost, f))
        store_sync_made_good(f);
    return f->cover.err;
}

/* One thread at a time, as the kernel tells an error to one only. */
int store_sync_data(struct file *f)
{
    while (f->cover.data)
        lock_wait(&f->lock, &f->changed, 0);
    f->cover.data = true;
    lock_drop(&f->lock);
    int err = datafile_sync(f);
    lock_take(&f->lock);
    f->cover.data = false;
    pthread_cond_broadcast(&f->changed);
    if (err)
        note_loss(f, err);
    return err;
}

/* ---- the records ---- */

static int sync_freed(struct file *f)
{
    bool freed = f->rec->freed;
    f->rec->freed = 0;
    lock_drop(&f->lock);
    int err = state_sync_freed(freed);
    lock_take(&f->lock);
    if (err && freed)
        f->rec->freed = 1;
    return err;
}

int store_sync_path(struct file *f)
{
    const void *piece[PATH_PIECES_MAX];
    unsigned n = state_path_pieces(f->rec, piece);
    int err = 0;
    if (!n)
        return 0;
    lock_drop(&f->lock);
    for (unsigned i = 0; !err && i < n; i++)
        err = state_sync(piece[i], FILE_SLOT);
    lock_take(&f->lock);
    return err;
}

/* What the record will say.  It gives no greater size than at the beginning: writes go on, and newer bytes
 * are not on the disk.  Nor does it give the data file's length: a file system may write that before the
 * bytes of the last block. */
static struct file_core core_to_cover(const struct file *f, const struct covering *c)
{
    struct file_core k = *core(f);
    k.size = MIN(k.size, c->size);
    k.base_end = MIN(k.base_end, k.size);
    return k;
}

/* Does the record on the disk say so already, apart from the times?  With kernel I/O the data file tells the
 * times, so that an fsync after a rewrite has to sync only the data file. */
static bool is_said(const struct file *f, const struct covering *now)
{
    struct file_core c = f->rec->covered, k = core_to_cover(f, now);
    if (!f->kernel_io.covered)
        return false;
    if (!(c.flags & CORE_MTIME_SET))
        c.mtime_ns = k.mtime_ns;
    c.ctime_ns = k.ctime_ns;
    return !memcmp(&c, &k, offsetof(struct file_core, check));
}

static int say(struct file *f, const struct covering *c)
{
    struct file_core k = core_to_cover(f, c);
    unsigned uncovered = f->kernel_io.uncovered;
    k.check = core_check(&k, f->fid);
    f->rec->covered = k;
    f->cover.said++;
    int err = store_sync_record(f);
    f->kernel_io.covered = !err && has_kernel_io(f) && f->kernel_io.uncovered == uncovered;
    return err;
}

static int sync_records(struct file *f, struct covering *c)
{
    int err = sync_freed(f); /* before a new record in its place is covered */
    if (err || is_said(f, c))
        return err;
    err = pages_cover(f, c);
    if (!err)
        err = store_sync_path(f);
    return err || c->over ? err : say(f, c);
}

/* ---- the whole ---- */

static void begin(struct file *f, struct covering *c)
{
    *c = (struct covering){.size = core(f)->size, .change = f->change};
    page_set_take(&c->here, f, BITS_VALID, pages_are_beyond(f));
    f->cover.now = c;
    f->cover.begun++;
}

/* What changed since the fsync began is for the next one: on_unsynced is told if anything did. */
static void note_success(struct file *f, const struct covering *c)
{
    f->cover.change = c->change;
    f->synced = f->change == c->change;
    void (*unsynced)(void) = f->synced ? NULL : store.on_unsynced;
    if (unsynced)
        unsynced();
}

static int run(struct file *f, struct covering *c)
{
    int err = loss(f);
    if (!err)
        err = store_sync_data(f);
    if (!err && !c->over)
        err = sync_records(f, c);
    if (!err)
        note_success(f, c);
    f->cover.now = NULL;
    f->cover.last = err;
    page_set_free(&c->here);
    pthread_cond_broadcast(&f->changed);
    return err;
}

void store_cover_wait(struct file *f)
{
    while (f->cover.now)
        lock_wait(&f->lock, &f->changed, 0);
}

int store_cover(struct file *f)
{
    struct covering c;
    store_cover_wait(f);
    begin(f, &c);
    return run(f, &c);
}

/* Does the disk have it already? */
static bool is_covered(const struct file *f)
{
    return !has_kernel_io(f) && store_cover_is_applied(f) && f->cover.change == f->change &&
           f->rec->covered.check == core(f)->check;
}

int store_sync(struct file *f)
{
    struct range_op op;
    struct covering c;
    int err = 0;
    lock_take(&f->lock);
    uint64_t begun = f->cover.begun;
    range_begin(f, &op, RANGE_READ, 0, UINT64_MAX);
    while (f->cover.now) {
        range_end(f, &op); /* writes go on */
        store_cover_wait(f);
        range_begin(f, &op, RANGE_READ, 0, UINT64_MAX);
    }
    kernel_io_look(f);
    bool shared = f->cover.begun != begun; /* one began, and ended, since this was called */
    bool any = !shared && is_dirty(f) && !is_covered(f);
    if (any)
        begin(f, &c);
    range_end(f, &op);
    err = shared ? f->cover.last : any ? run(f, &c) : 0;
    lock_drop(&f->lock);
    return err;
}
