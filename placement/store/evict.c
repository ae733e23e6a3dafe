/* evict.c - looks again at a chunk that eviction.c has chosen, under its file's lock, and evicts it, or all of
 * its file.
 */
#include "placement/store/evict.h"

#include "placement/store/datafile.h"
#include "placement/store/eviction.h"
#include "placement/store/file.h"
#include "placement/store/kernel_io_store.h"
#include "placement/store/pages.h"
#include "placement/store/store_int.h"

/* Chunks that a running fsync has noted stay.  has_kernel_io: an application may store into the file, or has
 * since its bits were last set.  A file that had kernel I/O when it was fsynced comes back after a power loss
 * with its whole data file. */
static bool is_wanted(struct file *f)
{
    const struct file_core *k = &f->rec->covered;
    return f->anchored || f->cover.now || has_kernel_io(f) || kernel_io_in_use(f) ||
           (k->check && k->flags & CORE_KERNEL_IO);
}

static bool evict(struct file *f, uint64_t index, bool now)
{
    bool gone = pages_evict(f, index, is_wanted, now);
    if (gone)
        eviction_tell_left(f->fid, index);
    return gone;
}

bool evict_chunk(struct fid fid, uint64_t index, bool now)
{
    struct file *f = file_find_now(fid);
    if (!f)
        return false;
    bool gone = evict(f, index, now);
    file_put(f);
    return gone;
}

/* ---- a whole file ---- */

/* With f->lock. */
static bool may_go(struct file *f)
{
    return !is_dirty(f) && !(core(f)->flags & CORE_DELETED) && !is_wanted(f);
}

/* False: it has none any more, or must stay. */
static bool next_chunk(struct file *f, uint64_t *index)
{
    lock_take(&f->lock);
    struct chunk_record *c = may_go(f) ? state_chunk_at(f->rec->first_chunk) : NULL;
    if (c)
        *index = c->index;
    lock_drop(&f->lock);
    return c;
}

/* Removes the data file of a file without pages. */
static bool discard(struct file *f)
{
    struct range_op op;
    lock_take(&f->lock);
    bool goes = may_go(f) && f->rec->first_chunk == SLOT_NONE && datafile_is_made(f) &&
                range_try(f, &op, RANGE_DROP, 0, UINT64_MAX);
    lock_drop(&f->lock);
    if (!goes)
        return false;
    bool gone = datafile_discard(f);
    lock_take(&f->lock);
    range_end(f, &op);
    lock_drop(&f->lock);
    return gone;
}

bool evict_file(struct fid fid, uint64_t index, bool now)
{
    struct file *f = file_find_now(fid);
    bool goes = f;
    if (!f)
        return false;
    while (goes && next_chunk(f, &index))
        goes = evict(f, index, now);
    bool gone = goes && discard(f);
    file_put(f);
    return gone;
}
