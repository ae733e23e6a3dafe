/* evict.c - a victim that eviction.c has chosen is looked at again, under its file's lock, and goes. */
#include "placement/store/evict.h"

#include "placement/store/file.h"
#include "placement/store/kernel_io_store.h"
#include "placement/store/pages.h"
#include "placement/store/store_int.h"

/* What an fsync that runs has noted stays.  has_kernel_io: somebody may store into it, or has since its bits
 * were last set; one that was when it was fsynced comes back with all of its data file. */
static bool is_wanted(struct file *f)
{
    const struct file_core *k = &f->rec->covered;
    return f->held || f->cover.now || has_kernel_io(f) || kernel_io_holds(f) ||
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
