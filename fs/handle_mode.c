/* handle_mode.c - what of an open the kernel does by itself (passthrough, pages), and which of its caches are still
 * valid: attributes are dropped if they differ from the last answer, pages if the bytes may have changed (data_tag).
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "fs/attr_last.h"
#include "fs/backing.h"
#include "fs/belief.h"
#include "fs/early.h"
#include "fs/handle_int.h"
#include "fs/io_mode.h"
#include "fs/kept.h"
#include "fs/links.h"
#include "fs/notify.h"
#include "fs/settings.h"
#include "fs/shared.h"
#include "placement/claims/claim_watch.h"
#include "placement/data_believe.h"
#include "placement/store/shadow.h"

#define ON_ITS_WAY_MS 1000 /* what an answer may take from us into the kernel's inode */

/* Does the kernel have the attributes of the file that is opened?  If two answers are on their way at once,
 * the kernel accepts the one that arrives first and drops the other, whichever is older.  If they differ, it
 * is not known which one the kernel has, until both have expired. */
static bool same_attr(const struct inode *i, const struct location *at)
{
    uint64_t expired_ms = i->attr_moved_ms + attr_timeout_ms() + ON_ITS_WAY_MS;
    return attr_is(i, at) && (!i->attr_moved_ms || boot_ms() > expired_ms);
}

/* ---- passthrough ---- */

static bool may_store(const struct handle *h)
{
    return (h->flags & O_ACCMODE) == O_RDWR;
}

/* Must the kernel not map a data file for it?  It may store there, and nobody would hear of that.  Beside
 * passthrough descriptors it gets another node id for this.  Where it comes with a retired one again, or with that of a
 * file of which no name is known, it was opened by a descriptor (/proc/self/fd), which leads to no other: then its stores are looked
 * for (fs/stores.h). */
static bool needs_stores_told(const struct handle *h)
{
    return may_store(h) && !h->inode->retired && h->by_name;
}

/* What of an open the kernel may do by itself, if it can be had.  O_DIRECT would be I/O past the page cache, by
 * which the store reads and writes this file.  O_DSYNC would reach only the data file, but not its record,
 * which counts after a power loss, and not the PFS.  A write to a plain file removes setuid and setgid; a write
 * through the kernel does not.  And of a write through the kernel no other node could be told, nor the kernel
 * itself of one by a retired node id, or where it appends by another one.  appended: it does. */
static enum kernel_part part_for(const struct handle *h, mode_t mode, bool appended)
{
    bool suid = mode & S_ISUID || (mode & S_ISGID && mode & S_IXGRP);
    bool told = open_writes(h->flags) && claim_watched(h->data->f);
    if (!settings.passthrough || (told && needs_stores_told(h)))
        return KERNEL_NOTHING;
    bool past_us = h->flags & (O_DIRECT | O_DSYNC) || (suid && open_writes(h->flags)) || told ||
                   (appended && open_writes(h->flags));
    return past_us || h->inode->retired ? KERNEL_MAPS : KERNEL_ALL;
}

/* Inode locked.  True: h->life is counted in the store, and the kernel has the data file as
 * i->backing_id. */
static bool pass_begin(struct handle *h)
{
    struct inode *i = h->inode;
    int fd, err = data_kernel_io_open(h->data, &fd, &h->life);
    if (err)
        return false;
    bool begun = mode_has_kernel_io(i), same = !begun || i->backing_life == h->life;
    int id = begun ? i->backing_id : backing_open(fd);
    close(fd);
    if (!same || id < 0) {
        data_kernel_io_close(h->data, h->life);
        return false;
    }
    i->backing_id = id;
    i->backing_life = h->life;
    return true;
}

/* Inode locked.  This open goes beside passthrough descriptors that have a shadow, if it can: their data file
 * is not the store's any more, and what is stored there by a mapping must be looked for. */
static bool joins_shadow(struct handle *h)
{
    struct inode *i = h->inode;
    if (!mode_has_kernel_io(i) || needs_stores_told(h) || !shadow_join(h->data->f, i->backing_life))
        return false;
    h->life = i->backing_life;
    h->stores = may_store(h) && !shadow_stores_begin(h->data->f);
    return true;
}

/* Processes may store into the data file by this open, and the kernel tells nobody: so this is made ready where it can be
 * found.  Here, as it may take long: joins_shadow finds it done. */
static int looks_for_stores(struct handle *h)
{
    struct file *f = h->data->f;
    if (!may_store(h) || needs_stores_told(h))
        return 0;
    lock_take(&h->inode->lock);
    bool others = mode_has_kernel_io(h->inode);
    lock_drop(&h->inode->lock);
    int err = others && claim_watched_bytes(f) ? shadow_begin_by_copy(f) : 0;
    if (!err)
        shadow_stores_begin(f); /* -ENOENT: no other node has to hear of it */
    return err;
}

/* Inode locked.  What of this open the kernel does by itself, with what that needs. */
static enum kernel_part part_begin(struct handle *h, mode_t perm, bool told, bool promised, bool appended)
{
    enum kernel_part part = part_for(h, perm, appended);
    if (part != KERNEL_NOTHING && shadow_is(h->data->f))
        return joins_shadow(h) ? KERNEL_MAPS : KERNEL_NOTHING;
    bool may = told && mode_may_kernel_io(h->inode, part, promised);
    return may && pass_begin(h) ? part : KERNEL_NOTHING;
}

/* ---- the mode ---- */

/* Its names lead to another node id from now on.  The open that finds this looks its own name up again at
 * once. */
static void retire(struct inode *i)
{
    inode_retire(i);
    notify_attr_now(i->nodeid);
    links_forget(i);
}

void handle_may_come_by_descriptor(struct inode *i)
{
    lock_take(&i->lock);
    bool others = mode_has_kernel_io(i);
    lock_drop(&i->lock);
    if (others)
        retire(i);
}

int handle_promise(struct inode *i)
{
    lock_take(&i->lock);
    bool promised = mode_promise(i);
    lock_drop(&i->lock);
    if (promised)
        return 0;
    retire(i);
    return -ESTALE;
}

void handle_end_promise(struct inode *i)
{
    lock_take(&i->lock);
    mode_leave(i, O_RDONLY, IO_PROMISED);
    lock_drop(&i->lock);
}

int handle_choose_mode(struct handle *h, pid_t task, mode_t perm, struct fuse_file_info *fi,
                       struct location *at, bool *ask_attr)
{
    bool shared = shared_expected(h);
    struct inode *i = h->inode;
    bool promised = early_is_for(i, task);
    bool unheard = belief_unheard(i), appended = belief_appended_beside(i);
    int err = looks_for_stores(h);
    if (err)
        return err;
    struct data_tag tag;
    data_look(h->data, at, &tag);
    lock_take(&i->lock);
    /* What it writes goes elsewhere: pages would gain nothing, and keep that node from lending parts of the file (placement/lend.h) */
    bool carries = open_writes(h->flags) && at->where == WHERE_NODE;
    /* where the kernel has the data file by another open nothing can be lent */
    bool told = data_may_cache(h->data) && (!shared || mode_has_kernel_io(i));
    bool cache = told && !carries && !i->retired && !unheard;
    h->mode = mode_enter(i, h->flags, cache, part_begin(h, perm, told, promised, appended), promised);
    unsigned turn = i->kept.turn;
    bool keep = h->mode == IO_CACHED && kept_open(i, &tag, &h->turn);
    bool others = i->kept.turn != turn && i->kept.mixed; /* are open, of older bytes */
    if (handle_has_kernel_io(h))
        kept_lose(i);
    fi->direct_io = handle_is_direct(h);
    fi->keep_cache = keep;
    fi->backing_id = handle_has_kernel_io(h) ? i->backing_id : 0;
    *ask_attr = !same_attr(i, at);
    lock_drop(&i->lock);
    if (others) /* what they read after the kernel has dropped its pages, this open may be given */
        data_dropping(h->data);
    if (h->mode != IO_STALE)
        return 0;
    retire(i);
    return -ESTALE;
}

void handle_leave_mode(struct handle *h)
{
    struct inode *i = h->inode;
    bool has_kernel_io = handle_has_kernel_io(h);
    lock_take(&i->lock);
    mode_leave(i, h->flags, h->mode);
    if (has_kernel_io && !mode_has_kernel_io(i))
        backing_close(i->backing_id);
    lock_drop(&i->lock);
    if (has_kernel_io)
        data_kernel_io_close(h->data, h->life);
}
