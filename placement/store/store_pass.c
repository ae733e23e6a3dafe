/* store_pass.c - files whose data file applications read and write through the kernel (FUSE
 * passthrough): this daemon sees them opened and closed, and nothing in between.
 *
 *     pass_open (write)   "may be dirty" (CORE_PASS) is in the record before the open is answered.
 *         |               From then on the data file itself is the record: all of it is here, its
 *         |               length is the file's size, its time stamps say whether somebody stored.
 *     look                a sample: size, mtime, ctime.  Another one than the last: the file changed
 *         |
 *     mark                a copy-out begins: a sample, the data file's pages written back (a mapping's
 *         |               next store moves ctime then), and each chunk whose hash is not the one that
 *         |               is on the PFS is marked dirty, as if it had been written here
 *     copy-out            as always (store_copyout.c)
 *         |
 *     settle              the same sample as before it: the hashes of what was copied are those on the
 *                         PFS.  (Else only those that were made of the copied bytes themselves, where
 *                         a sample in between had told that there are writers.)  And nobody is left who
 *                         can store, and still the same sample: clean.  Else the flush counts
 *                         ("flushed"), but the file stays "may be dirty", and the next change makes it
 *                         dirty again.
 *
 * This is docs/protocol.md, F3 to F7, with F5 under f->lock, which opens take too.  A hash counts
 * only if the sample was the same from before it was made to after the bytes were on the PFS.
 *
 * A data file with live descriptors or mappings is never evicted and never emptied for a new
 * version (who reads it would get zeros): the new version gets a data file of its own, and `life`
 * tells the two apart.  That somebody may have a mapping left is in the record (`passed`), so that
 * it outlives the daemon, until a lease proves that nobody has.
 */
#include "placement/store/datafile_pass.h"
#include "placement/store/kernel_io.h"
#include "placement/store/kernel_io_store.h"
#include "placement/store/state.h"
#include "placement/store/store_int.h"
#include "placement/store/store_pass_int.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    _Atomic uint64_t pinned;
    _Atomic unsigned open; /* files with descriptors */
} pass;

/* ---- who has it ---- */

bool store_pass_holds(struct file *f)
{
    if (f->pass.opens)
        return true;
    if (f->rec->passed && datafile_alone(f))
        f->rec->passed = 0;
    return f->rec->passed;
}

static void pin(struct file *f)
{
    if (f->pass.opens++)
        return;
    atomic_fetch_add(&pass.open, 1);
    f->pass.pinned = core(f)->size;
    atomic_fetch_add(&pass.pinned, f->pass.pinned);
}

static void unpin(struct file *f)
{
    if (--f->pass.opens)
        return;
    atomic_fetch_sub(&pass.open, 1);
    atomic_fetch_sub(&pass.pinned, f->pass.pinned);
    f->pass.pinned = 0;
}

uint64_t store_pass_pinned(void)
{
    return atomic_load(&pass.pinned);
}

unsigned store_pass_open_files(void)
{
    return atomic_load(&pass.open);
}

/* ---- opening ---- */

/* Not with bytes that the next open has fetched again, as others may have come in the same tick of the PFS's
 * clock: that one would pass another data file, which a file without a name cannot be given a new node id for. */
static bool is_whole(struct file *f)
{
    const struct file_core *c = core(f);
    if (is_pass(f))
        return true;
    if (c->flags & CORE_RACY && !(c->flags & (CORE_CLAIMED | CORE_DIRTY)))
        return false;
    if (!(c->flags & CORE_BASE) || c->flags & CORE_DELETED)
        return false;
    uint64_t end = MIN(c->size, c->base_end);
    return !end || pages_find(f, 0, last_page(0, end), BITS_VALID, false) > last_page(0, end);
}

/* The data file's own mtime becomes the file's: after a start it is all that is left, whether somebody
 * has stored or not. */
static void begin_sampling(struct file *f, int fd)
{
    struct timespec ts[2] = {{.tv_nsec = UTIME_OMIT}, time_of_ns(core(f)->mtime_ns)};
    if (futimens(fd, ts))
        log_warn("the cache's disk: a data file's time can not be set: %s", strerror(errno));
    pass_take_sample(f, &f->pass.seen);
}

/* With a range on all of it: nothing is being put in or taken out. */
static int begin_pass(struct file *f, bool write, int *fd)
{
    if (write) /* what is filled since it began is not on the disk, and would count as if it were */
        store_cover_wait(f);
    if (!is_whole(f))
        return -ENODATA;
    if (!f->pass.opens && !space_pins(store_pass_pinned(), core(f)->size, write))
        return -ENOSPC;
    int err = store_clear_pages(f);
    if (!err)
        err = is_pass(f) ? datafile_open_again(f, fd) : datafile_open_whole(f, core(f)->size, fd);
    if (err)
        return err;
    clear_uncut(f, UNCUT_END | UNCUT_PAGES);
    f->rec->passed = 1;
    crash_order();
    if (write && !is_pass(f)) {
        bool was_dirty = is_dirty(f);
        core_change(f->rec)->flags |= CORE_PASS | CORE_DIRTY;
        store_commit(f);
        begin_sampling(f, *fd);
        f->pass.flushed = was_dirty ? f->change - 1 : f->change;
        if (f->rec->covered.check) /* what was fsynced stays so */
            err = store_cover(f);
    }
    if (err)
        close(*fd);
    return err;
}

int store_pass_open(struct file *f, bool write, int *fd, unsigned *life)
{
    struct range_op op;
    lock_take(&f->lock);
    /* a chunk that is read for another node must not change meanwhile: from now on it is not handed
     * out */
    range_begin(f, &op, write ? RANGE_WRITE : RANGE_READ, 0, UINT64_MAX);
    unsigned before = f->pass.life;
    f->pass.writers += write; /* at once: begin_pass drops the lock, and who looks would find nobody */
    int err = begin_pass(f, write, fd);
    if (err && f->pass.life == before)
        f->pass.writers -= write;
    if (err && is_pass(f))
        pass_settle_unflushed(f);
    if (!err) {
        pin(f);
        pages_used(f);
        f->pass.closed &= !write;
        *life = f->pass.life;
    }
    range_end(f, &op);
    lock_drop(&f->lock);
    if (!err && write)
        pass_watch(f);
    else if (!err)
        pass_wake_sampler();
    return err;
}

void store_pass_make_room(void)
{
    space_keep_free();
}

void store_pass_direct(struct file *f)
{
    lock_take(&f->lock);
    f->pass.direct = f->pass.collides = true;
    lock_drop(&f->lock);
}

/* ---- closing ---- */

void store_pass_close(struct file *f, unsigned life, bool write)
{
    lock_take(&f->lock);
    if (life == f->pass.life) {
        unpin(f);
        f->pass.writers -= write;
    }
    if (!f->pass.writers && f->pass.direct) {
        /* None is under way any more.  One that was when a flush counted, its time stamps already
         * moved, is found by the hashes. */
        f->pass.direct = false;
        f->change++;
    }
    /* Proved here, as it is for nearly each small file, no sample has to. */
    if (is_pass(f) && write) {
        store_pass_look(f);
        pass_prove_closed(f);
    } else if (is_pass(f) && !f->pass.closed) { /* closed: nothing came since the last look */
        pass_settle_unflushed(f);
    }
    bool quiet = write && pass_is_quiet(f);
    bool dirty = write && is_dirty(f) && !store_pass_flushed(f);
    lock_drop(&f->lock);
    if (dirty)
        pass_tell_changed(f);
    if (quiet)
        (void)pass_unwatch(f);
}

int store_pass_renew(struct file *f)
{
    if (!store_pass_holds(f))
        return 0;
    int err = datafile_replace(f);
    if (err)
        return err;
    f->rec->passed = 0;
    f->pass.life++;
    while (f->pass.opens)
        unpin(f);
    f->pass.writers = 0;
    return 0;
}
