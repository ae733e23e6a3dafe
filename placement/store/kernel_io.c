/* kernel_io.c - kernel I/O: applications read and write a data file through the kernel (FUSE passthrough).
 * This daemon sees it opened and closed, and nothing in between.
 *
 *     pass_open (write)   "may be dirty" (CORE_KERNEL_IO) is in the record before the open is answered.
 *         |               From then on the data file itself is the record: all of it is here, its
 *         |               length is the file's size, its time stamps say whether it was written.
 *     look                a sample: size, mtime, ctime.  Another one than the last: the file changed
 *         |
 *     mark                a copy-out begins: a sample, the data file's pages written back (a mapping's
 *         |               next store moves ctime then), and each chunk whose hash is not the one that
 *         |               is on the PFS is marked dirty, as if it had been written here
 *     copy-out            as always (store_copyout.c)
 *         |
 *     conclude            If the sample is the same as before the copy-out, the hashes of what was copied
 *                         are those on the PFS.  (If not, only hashes that were made of the copied bytes
 *                         themselves are.  They are made so if a sample showed writers.)
 *                         If then no process is left that can store, and the sample is still the same,
 *                         the file is clean.  If not, the flush counts ("flushed"), but the file stays
 *                         "may be dirty", and the next change makes it dirty again.
 *
 * This is docs/protocol.md, F3 to F7, with F5 under f->lock, which opens take too.  A hash counts
 * only if the sample was the same from before it was made to after the bytes were on the PFS.
 *
 * A data file with live descriptors or mappings is never evicted, and never emptied for a new version
 * (readers would get zeros).  The new version gets a data file of its own, and `life` tells the two
 * apart; the old one becomes the file's shadow (shadow.h).  The record notes that a process may have a mapping left (`passed`), which so outlives the
 * daemon.  The note stays until a lease proves that no process has one.
 */
#include "placement/store/datafile_kernel_io.h"
#include "placement/store/kernel_io.h"
#include "placement/store/kernel_io_store.h"
#include "placement/store/shadow.h"
#include "placement/store/state.h"
#include "placement/store/store_int.h"
#include "placement/store/kernel_io_int.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    _Atomic uint64_t anchored;
    _Atomic unsigned open; /* files with descriptors */
} pass;

/* ---- descriptors and mappings ---- */

bool kernel_io_in_use(struct file *f)
{
    if (f->kernel_io.opens)
        return true;
    if (f->rec->passed && datafile_alone(f))
        f->rec->passed = 0;
    return f->rec->passed;
}

/* Its bytes here, without its holes. */
static uint64_t bytes_here(const struct file *f)
{
    return (f->rec->valid - f->rec->zero) * PAGE + f->kernel_io.counted;
}

static void pin(struct file *f)
{
    if (f->kernel_io.opens++)
        return;
    atomic_fetch_add(&pass.open, 1);
    f->kernel_io.anchored = bytes_here(f);
    atomic_fetch_add(&pass.anchored, f->kernel_io.anchored);
}

static void unpin(struct file *f)
{
    if (--f->kernel_io.opens)
        return;
    atomic_fetch_sub(&pass.open, 1);
    atomic_fetch_sub(&pass.anchored, f->kernel_io.anchored);
    f->kernel_io.anchored = 0;
}

uint64_t kernel_io_anchored(void)
{
    return atomic_load(&pass.anchored);
}

unsigned kernel_io_open_files(void)
{
    return atomic_load(&pass.open);
}

/* ---- opening ---- */

/* A removed file is as whole as any other: its bytes stay until it is closed.  And where its descriptors are passthrough,
 * one that is opened again by them (/proc/self/fd) cannot do without the data file.
 *
 * Racy bytes do not count: the next open fetches them again, as others may have come in the same tick of the
 * PFS's clock.  That open would use another data file, for which a file without a name can not get a new node
 * id. */
static bool is_whole(struct file *f)
{
    const struct file_core *c = core(f);
    if (has_kernel_io(f))
        return true;
    if (c->flags & CORE_RACY && !(c->flags & (CORE_CLAIMED | CORE_DIRTY)))
        return false;
    if (!(c->flags & CORE_BASE))
        return false;
    uint64_t end = f->rec->whole ? 0 : MIN(c->size, c->base_end);
    return !end || pages_find(f, 0, last_page(0, end), BITS_VALID, false) > last_page(0, end);
}

/* Gives the data file the file's mtime.  After a start the data file's own mtime is all that is left, whether
 * it was written or not. */
static void begin_sampling(struct file *f, int fd)
{
    struct timespec ts[2] = {{.tv_nsec = UTIME_OMIT}, time_of_ns(core(f)->mtime_ns)};
    if (futimens(fd, ts))
        log_warn("the cache's disk: a data file's time can not be set: %s", strerror(errno));
    kernel_io_take_sample(f, &f->kernel_io.seen);
}

/* With a range on the whole file, so that no bytes are being put in or taken out. */
static int begin_pass(struct file *f, bool write, int *fd)
{
    if (write) /* what is filled in during an fsync is not on the disk, but would count so */
        store_cover_wait(f);
    if (f->shared || !is_whole(f))
        return -ENODATA;
    if (!f->kernel_io.opens && !space_may_anchor(kernel_io_anchored(), bytes_here(f), write))
        return -ENOSPC;
    int err = store_clear_pages(f);
    if (!err)
        err = has_kernel_io(f) ? datafile_open_again(f, fd) : datafile_open_whole(f, core(f)->size, fd);
    if (err)
        return err;
    clear_uncut(f, UNCUT_END | UNCUT_PAGES);
    f->rec->passed = 1;
    crash_order();
    if (write && !has_kernel_io(f)) {
        bool was_dirty = is_dirty(f);
        f->rec->whole = 1; /* first: the record must not say that the PFS has bytes of its own */
        crash_order();
        core_change(f->rec)->flags |= CORE_KERNEL_IO | CORE_DIRTY;
        store_commit(f);
        begin_sampling(f, *fd);
        f->kernel_io.flushed = was_dirty ? f->change - 1 : f->change;
        if (f->rec->covered.check) /* what was fsynced stays so */
            err = store_cover(f);
    }
    if (err)
        close(*fd);
    return err;
}

int kernel_io_open(struct file *f, bool write, int *fd, unsigned *life)
{
    struct range_op op;
    lock_take(&f->lock);
    /* a chunk that is being read for another node must not change: from now on chunks are not handed
     * out */
    range_begin(f, &op, write ? RANGE_WRITE : RANGE_READ, 0, UINT64_MAX);
    unsigned before = f->kernel_io.life;
    f->kernel_io.writers += write; /* now: begin_pass drops the lock */
    int err = begin_pass(f, write, fd);
    if (err && f->kernel_io.life == before)
        f->kernel_io.writers -= write;
    if (err && has_kernel_io(f))
        kernel_io_conclude_unflushed(f);
    if (!err) {
        pin(f);
        pages_used(f);
        f->kernel_io.closed &= !write;
        *life = f->kernel_io.life;
    }
    range_end(f, &op);
    lock_drop(&f->lock);
    if (!err && write)
        kernel_io_watch(f);
    else if (!err)
        kernel_io_wake_sampler();
    return err;
}

void kernel_io_make_room(void)
{
    space_keep_free();
    (void)space_reserve_inode(SPACE_CACHE); /* if there is none, the open goes without kernel I/O */
}

bool kernel_io_is_open(struct file *f)
{
    return __atomic_load_n(&f->kernel_io.opens, __ATOMIC_RELAXED) || shadow_is(f);
}

bool kernel_io_writes(struct file *f)
{
    return __atomic_load_n(&f->kernel_io.writers, __ATOMIC_RELAXED);
}

/* ---- closing ---- */

void kernel_io_close(struct file *f, unsigned life, bool write)
{
    lock_take(&f->lock);
    bool current = life == f->kernel_io.life;
    if (current) {
        unpin(f);
        f->kernel_io.writers -= write;
    }
    /* If the proof succeeds here, as for nearly each small file, no sample is needed. */
    if (has_kernel_io(f) && write) {
        kernel_io_look(f);
        kernel_io_prove_closed(f);
    } else if (has_kernel_io(f) && !f->kernel_io.closed) { /* closed: nothing came since the look */
        kernel_io_conclude_unflushed(f);
    }
    bool quiet = write && kernel_io_is_quiet(f);
    bool dirty = write && is_dirty(f) && !kernel_io_flushed(f);
    lock_drop(&f->lock);
    if (!current)
        shadow_leave(f, life);
    if (dirty)
        kernel_io_tell_changed(f);
    if (quiet)
        (void)kernel_io_unwatch(f);
}

int kernel_io_renew(struct file *f)
{
    if (!kernel_io_in_use(f))
        return 0;
    struct shadow *s = f->kernel_io.opens && !f->shadow ? shadow_make(f) : NULL;
    if (s)
        shadow_is_of(f, s);
    return kernel_io_leave(f, -1, s);
}

int kernel_io_leave(struct file *f, int copy, struct shadow *s)
{
    int err = datafile_replace(f, copy);
    if (err) {
        shadow_put(s);
        return err;
    }
    shadow_take(f, s);
    f->rec->passed = 0;
    f->kernel_io.life++;
    while (f->kernel_io.opens)
        unpin(f);
    f->kernel_io.writers = 0;
    return 0;
}
