/* shadow_copy.c - the store goes on with a copy of a data file, and leaves the data file itself to the descriptors that have it.
 *
 *     hashes of its pages --> copy --> the copy has its name; it is the shadow
 *
 * A process with a mapping may store into it at any time.  What it stores after the hashes were made is found by them
 * (shadow_stores.c), whether the copy has it or not.
 */
#include <errno.h>
#include <unistd.h>

#include "placement/store/datafile_kernel_io.h"
#include "placement/store/kernel_io.h"
#include "placement/store/kernel_io_int.h"
#include "placement/store/kernel_io_store.h"
#include "placement/store/range.h"
#include "placement/store/shadow_int.h"
#include "placement/store/space.h"
#include "placement/store/store_int.h"
#include "placement/store/store_read.h"

static bool may(const struct file *f)
{
    return f->kernel_io.opens && !f->shadow;
}

/* With f->lock and a range on the whole file: nobody changes the data file but processes with mappings.  s is taken. */
static int go_on_with(struct file *f, int copy, struct shadow *s)
{
    bool sampled = has_kernel_io(f);
    if (sampled)
        kernel_io_look(f);
    s->known = !is_dirty(f);
    shadow_is_of(f, s);
    s->followed = true; /* whatever its base: it is what is here */
    int err = kernel_io_leave(f, copy, s);
    if (!err && sampled) /* the copy has a ctime of its own */
        kernel_io_take_sample(f, &f->kernel_io.seen);
    return !err && f->rec->covered.check ? store_cover(f) : err;
}

/* With f->lock, which is dropped meanwhile, and a range on the whole file. */
static int leave(struct file *f)
{
    struct shadow *s = shadow_make(f);
    if (!s)
        return -EIO;
    lock_drop(&f->lock);
    lock_take(&s->lock);
    shadow_pages_begin(s);
    lock_drop(&s->lock);
    int copy, err = datafile_copy(f, &copy);
    lock_take(&f->lock);
    if (!err && may(f))
        err = go_on_with(f, copy, s);
    else
        shadow_put(s);
    if (copy >= 0)
        close(copy);
    return err;
}

int shadow_begin_by_copy(struct file *f)
{
    struct range_op op;
    struct file_info info;
    store_info(f, &info);
    if (!kernel_io_is_open(f) || shadow_is(f))
        return 0;
    int err = space_reserve(info.blocks * 512, 0, SPACE_CACHE);
    if (err)
        return err;
    lock_take(&f->lock);
    range_begin(f, &op, RANGE_DROP, 0, UINT64_MAX);
    store_cover_wait(f);
    err = may(f) ? leave(f) : 0;
    range_end(f, &op);
    lock_drop(&f->lock);
    space_return(info.blocks * 512, 0);
    return err;
}
