/* evict.c - looks again at a chunk that eviction.c has chosen, under its file's lock, and evicts it. */
#include "placement/store/evict.h"

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

bool evict_chunk(struct fid fid, uint64_t index, bool now)
{
    struct file *f = file_find_now(fid);
    if (!f)
        return false;
    bool gone = pages_evict(f, index, is_wanted, now);
    file_put(f);
    return gone;
}
