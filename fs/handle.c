/* handle.c - open, flush, release, fsync: the life of a handle.
 *
 * An open asks the PFS (permissions), then the home (where the latest bytes are).  Then it tells the
 * kernel which of its caches are still valid: attributes are dropped if they differ from the last answer,
 * pages if the bytes may have changed (data_tag).  RELEASEs are lost when a mount ends, so
 * all handles are in a list, and file_close_all closes those that are left.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flush/flush.h"
#include "fs/attr.h"
#include "fs/backing.h"
#include "fs/belief.h"
#include "fs/dir_policy.h"
#include "fs/early.h"
#include "fs/handle.h"
#include "fs/kept.h"
#include "fs/known.h"
#include "fs/links.h"
#include "fs/io_mode.h"
#include "fs/notify.h"
#include "fs/ops.h"
#include "fs/settings.h"
#include "fs/shared.h"
#include "placement/claims/claim.h"
#include "placement/claims/claim_forget.h"
#include "placement/claims/claim_give.h"
#include "placement/claims/claim_watch.h"
#include "placement/claims/lock_ask.h"
#include "placement/data_believe.h"
#include "placement/foresight/foresight.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_node.h"
#include "placement/store/kernel_io.h"
#include "placement/store/shadow.h"

/* The kernel's flag for an open by execve (its include/linux/fs.h, __FMODE_EXEC): it has checked the right
 * to execute the file; the right to read it is not needed. */
#define OPEN_EXEC 0x20

#define ON_ITS_WAY_MS 1000 /* what an answer may take from us into the kernel's inode */

static struct {
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t changed;
    struct handle *list;
    unsigned closing; /* taken from the list, not closed yet */
} handles;

void file_start(void)
{
    lock_init(&handles.lock, RANK_LEAF);
    lock_cond_init(&handles.changed);
}

/* ---- opening ---- */

/* O_RDONLY | O_TRUNC truncates, too: the kernel has checked that the caller may write. */
static bool writes(int flags)
{
    return (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;
}

static enum data_use use_of(int flags, bool trunc)
{
    if ((flags & O_ACCMODE) == O_RDONLY)
        return trunc ? DATA_WRITES : DATA_READS;
    return flags & O_APPEND ? DATA_APPENDS : DATA_WRITES;
}

/* Does the kernel have the attributes of the file that is opened?  If two answers are on their way at once,
 * the kernel accepts the one that arrives first and drops the other, whichever is older.  If they differ, it
 * is not known which one the kernel has, until both have expired. */
static bool same_attr(const struct inode *i, const struct location *at)
{
    uint64_t expired_ms = i->attr_moved_ms + attr_timeout_ms() + ON_ITS_WAY_MS;
    return attr_is(i, at) && (!i->attr_moved_ms || boot_ms() > expired_ms);
}

/* ---- passthrough ---- */

/* Must the kernel not map a data file for it?  It may store there, and nobody would hear of that.  Beside
 * passthrough descriptors it gets another node id for this.  Where it comes with a retired one again, or with that of a
 * file without a name, it was opened by a descriptor (/proc/self/fd), which leads to no other (README, "What is not
 * promised"). */
static bool needs_stores_told(const struct handle *h)
{
    return (h->flags & O_ACCMODE) == O_RDWR && !h->inode->retired && !h->inode->gone;
}

/* What of an open the kernel may do by itself, if it can be had.  O_DIRECT would be I/O past the page cache, by
 * which the store reads and writes this file.  O_DSYNC would reach only the data file, but not its record,
 * which counts after a power loss, and not the PFS.  A write to a plain file removes setuid and setgid; a write
 * through the kernel does not.  And of a write through the kernel no other node could be told, nor the kernel
 * itself of one by a retired node id. */
static enum kernel_part part_for(const struct handle *h, mode_t mode)
{
    bool suid = mode & S_ISUID || (mode & S_ISGID && mode & S_IXGRP);
    bool told = writes(h->flags) && claim_watched(h->data->f);
    if (!settings.passthrough || (told && needs_stores_told(h)))
        return KERNEL_NOTHING;
    bool past_us = h->flags & (O_DIRECT | O_DSYNC) || (suid && writes(h->flags)) || told;
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

/* Inode locked.  The data file is given back after this, by data_kernel_io_close. */
static void kernel_io_end(struct inode *i)
{
    if (!mode_has_kernel_io(i))
        backing_close(i->backing_id);
}

/* Inode locked.  This open goes beside passthrough descriptors that have a shadow, if it can: their data file
 * is not the store's any more, and what is stored there by a mapping would be lost. */
static bool joins_shadow(struct handle *h)
{
    struct inode *i = h->inode;
    if (!mode_has_kernel_io(i) || needs_stores_told(h) || !shadow_join(h->data->f, i->backing_life))
        return false;
    h->life = i->backing_life;
    return true;
}

/* Inode locked.  What of this open the kernel does by itself, with what that needs. */
static enum kernel_part part_begin(struct handle *h, mode_t perm, bool told)
{
    enum kernel_part part = part_for(h, perm);
    if (part != KERNEL_NOTHING && shadow_is(h->data->f))
        return joins_shadow(h) ? KERNEL_MAPS : KERNEL_NOTHING;
    return told && mode_may_kernel_io(h->inode, part) && pass_begin(h) ? part : KERNEL_NOTHING;
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

/* The mode of this open of *at, whether the kernel's pages are good, and whether it must ask for
 * the attributes again.  -ESTALE: none can be given to this node id. */
static int choose(struct handle *h, mode_t perm, struct fuse_file_info *fi, struct location *at,
                  bool *ask_attr)
{
    bool shared = shared_expected(h);
    struct inode *i = h->inode;
    struct data_tag tag;
    data_look(h->data, at, &tag);
    lock_take(&i->lock);
    bool told = data_may_cache(h->data) && !shared, cache = told && !i->retired;
    h->mode = mode_enter(i, h->flags, cache, part_begin(h, perm, told));
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

static void add_handle(struct handle *h)
{
    lock_take(&handles.lock);
    h->next = handles.list;
    h->prev = &handles.list;
    if (h->next)
        h->next->prev = &h->next;
    handles.list = h;
    lock_drop(&handles.lock);
}

/* Setuid and setgid are removed when a user other than root empties the file. */
static int drop_suid(struct inode *i, const struct statx *stx, struct file *f,
                     const struct request *r)
{
    mode_t drop = request_drops(r, stx->stx_mode, stx->stx_gid);
    if (!drop)
        return 0;
    int err = pfs_strip_suid(f, drop);
    attr_touched(i);
    if (!err)
        notify_attr_now(i->nodeid);
    return err;
}

/* fi NULL: an open that the kernel does not know of.  On error the handle is closed, with everything that was
 * opened for it. */
/* An open under way. */
struct opening {
    struct request *r;
    struct inode *i;
    int flags;                 /* of open */
    struct fuse_file_info *fi; /* to be filled; NULL: the kernel does not know of this open */
    bool created;              /* the file is new */
    bool named;                /* if it loses its last name meanwhile, that is -ESTALE */
};

/* perm: the file's mode. */
static int new_handle(const struct opening *o, struct data_handle *data, mode_t perm,
                      struct handle **out)
{
    struct handle *h = xcalloc(1, sizeof(*h));
    struct location at = {.where = WHERE_PFS};
    bool ask_attr = false;
    uint64_t looked_ms = boot_ms();
    h->inode = inode_ref(o->i);
    h->data = data;
    h->flags = o->flags;
    h->refs = 1;
    flush_error_seen(data->f, &h->error_seen); /* it does not report earlier failures */
    if (o->fi && writes(o->flags) && settings.passthrough)
        kernel_io_make_room();
    data_follow(data);
    int err = o->fi ? choose(h, perm, o->fi, &at, &ask_attr) : 0;
    if (err)
        h->mode = IO_NONE;
    add_handle(h);
    if (err) {
        file_close_handle(h);
        return err;
    }
    bool old_size = ask_attr || o->i->others || at.where == WHERE_NODE;
    if (old_size && !o->created && mode_appends(h->flags, h->mode))
        belief_appends(o->i, &at);
    if (ask_attr && !o->created) {
        notify_attr_now(o->i->nodeid);
        attr_opened(o->i, &at, looked_ms); /* after it: another open trusts what is remembered */
    }
    if (o->fi) {
        h->hinted = foresight_any() && foresight_opened(o->i->node, o->i->fid, writes(o->flags));
        o->fi->fh = (uintptr_t)h;
        o->fi->noflush = !writes(o->flags) && !known_closes_matter(o->i);
    }
    *out = h;
    return 0;
}

/* The last close of a file without a name, or an open of it that failed at the same time: its data is
 * dropped, flushed or not, and the claim is given back. */
static void drop_unlinked(struct file *f)
{
    if (file_is_unlinked(f) && pfs_open_ends(f))
        claim_unlinked(f);
}

/* The PFS's descriptor is closed after the claim is given back: see claim_unlinked. */
static void release(struct file *f)
{
    bool held = file_is_unlinked(f) && pfs_keep_number(f);
    data_release(f);
    drop_unlinked(f);
    if (held)
        pfs_unhold_number(f);
}

/* The PFS open of f is counted by the caller; on error it is given back here. */
static int open_data(const struct opening *o, struct file *f, const struct statx *stx,
                     uint64_t looked_ms, struct handle **out)
{
    struct data_handle *data;
    bool trunc = o->flags & O_TRUNC && !o->created;
    int err = trunc ? drop_suid(o->i, stx, f, o->r) : 0;
    if (writes(o->flags)) /* before the first byte is dirty */
        dir_policy_apply(o->i, f);
    if (!err)
        err = data_open(f, use_of(o->flags, trunc), trunc, stx, looked_ms, o->named, &data);
    if (!err && trunc && (o->flags & O_ACCMODE) == O_RDONLY) { /* it changes nothing more, and so keeps no claim */
        data_close(data);
        err = data_open(f, DATA_READS, false, stx, looked_ms, false, &data);
    }
    if (err) {
        release(f);
        return err;
    }
    if (trunc)
        belief_changed_by(o->i, 0, 0);
    return new_handle(o, data, stx->stx_mode, out);
}

int file_open_handle(struct request *r, struct inode *i, const struct statx *stx, struct file *f,
                     bool created, struct handle **out)
{
    struct opening o = {
        .r = r, .i = i, .flags = r->fi.flags, .fi = &r->fi, .created = created, .named = true};
    i->opening++;
    int err = open_data(&o, f, stx, r->began_ms, out);
    i->opening--;
    return err;
}

static int open_on_pfs(struct request *r, struct inode *i, int flags, struct file *f,
                       struct statx *stx)
{
    int err = pfs_open_file(f, i->node, writes(flags), request_cred(r), stx);
    /* It may have another name: if the kernel has used that, it comes back with this file, once.  So none may be left
     * that leads elsewhere. */
    if (err == -ESTALE && !attr_stat(i, stx))
        links_are_right(i, stx, false);
    if (err == -EACCES && flags & OPEN_EXEC && !writes(flags))
        err = pfs_open_file(f, i->node, false, NULL, stx);
    return err;
}

static mode_t known_mode(struct inode *i)
{
    lock_take(&i->lock);
    mode_t mode = i->attr_known ? i->attr.st_mode : 0;
    lock_drop(&i->lock);
    return mode;
}

/* If another node has removed the file, the first open of it fails with ESTALE.  Then the kernel looks the
 * name up again, and finds what has it now.  If the kernel comes back with this file, it was opened by a
 * descriptor (/proc/self/fd), and has no name any more. */
static int open_now(struct request *r, struct inode *i, int flags, struct fuse_file_info *fi,
                    struct handle **out)
{
    struct opening o = {.r = r, .i = i, .flags = flags, .fi = fi};
    struct statx stx;
    struct file *f;
    struct data_handle *data;
    char *path = pfs_path(i->node);
    int err = file_get(i->fid, path, &f);
    free(path);
    if (err)
        return err;
    /* what is opened in advance needs a descriptor: nothing else leads to it once its name is gone */
    if (fi && !writes(flags) && !known_open(i, f, &data)) {
        err = new_handle(&o, data, known_mode(i), out);
        file_put(f);
        return err;
    }
    uint64_t looked_ms = boot_ms();
    bool by_name = !pfs_has_descriptor(f);
    err = open_on_pfs(r, i, flags, f, &stx);
    if (!err && writes(flags) && stx.stx_nlink && !links_are_right(i, &stx, by_name)) {
        release(f);
        err = -ESTALE; /* the kernel looks its name up again */
    }
    if (!err && !stx.stx_nlink)
        file_set_unlinked(f, true);
    bool early = early_is_for(i, r->pid); /* it had a name when that was looked up */
    o.named = !err && stx.stx_nlink && !early;
    if (!err && !stx.stx_nlink && !i->gone && !early) { /* another node removed it */
        inode_gone(i);
        release(f);
        err = -ESTALE;
    }
    if (!err)
        err = open_data(&o, f, &stx, looked_ms, out);
    if (!err) {
        attr_seen(i, &stx, &(*out)->data->where, looked_ms);
        known_note(i, &stx, &(*out)->data->where, looked_ms);
    } else {
        drop_unlinked(f);
    }
    file_put(f);
    return err;
}

/* From before its bytes are located until its mode is chosen it may be one that caches: a claimant that tells of a change
 * meanwhile hears so (fs/belief.c). */
static int open_inode(struct request *r, struct inode *i, int flags, struct fuse_file_info *fi,
                      struct handle **out)
{
    i->opening++;
    int err = open_now(r, i, flags, fi, out);
    i->opening--;
    return err;
}

int file_open_for_truncate(struct request *r, struct inode *i, struct handle **out)
{
    return open_inode(r, i, O_WRONLY, NULL, out);
}

int file_open_in_advance(struct request *r, struct inode *i, struct handle **out)
{
    return open_inode(r, i, O_RDONLY, NULL, out);
}

static void open_fn(struct request *r)
{
    struct handle *h;
    int err = open_inode(r, r->inode, r->fi.flags, &r->fi, &h);
    if (err) {
        request_err(r, err);
        return;
    }
    if (!request_take(r) || fuse_reply_open(r->req, &r->fi) == -ENOENT)
        file_close_handle(h);
    early_end(r->inode, r->pid);
    request_done(r);
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct request *r = request_new(req, ino);
    if (!r)
        return;
    r->fi = *fi;
    request_start(r, pool_names, open_fn);
}

/* ---- closing ---- */

/* Takes it out of the list, into the count of those being closed.  False: another thread closes it. */
static bool take_handle(struct handle *h)
{
    lock_take(&handles.lock);
    bool ours = h->prev != NULL;
    if (ours) {
        *h->prev = h->next;
        if (h->next)
            h->next->prev = h->prev;
        h->prev = NULL;
        handles.closing++;
    }
    lock_drop(&handles.lock);
    return ours;
}

static void close_taken(struct handle *h)
{
    struct file *f = file_ref(h->data->f);
    if (h->mode != IO_NONE) {
        shared_learn(h);
        lock_take(&h->inode->lock);
        mode_leave(h->inode, h->flags, h->mode);
        if (handle_has_kernel_io(h))
            kernel_io_end(h->inode);
        lock_drop(&h->inode->lock);
    }
    if (handle_has_kernel_io(h))
        data_kernel_io_close(h->data, h->life);
    for (unsigned n = 0; n < h->nlockers; n++)
        lock_drop_owner(h->inode->fid, false, h->lockers[n], NULL, NULL);
    free(h->lockers);
    data_close(h->data);
    release(f);
    claim_closed(f);
    if (h->hinted)
        foresight_closed(f->fid, writes(h->flags));
    file_put(f);
    inode_put(h->inode);
    free(h);
    lock_take(&handles.lock);
    handles.closing--;
    pthread_cond_broadcast(&handles.changed);
    lock_drop(&handles.lock);
}

static void close_job(void *arg)
{
    close_taken(arg);
}

/* Any thread may drop the last reference, so another thread may do the closing, which may wait for nodes and
 * for the PFS. */
static void put_handle(struct handle *h)
{
    if (h && !--h->refs)
        request_run(pool_waiters, close_job, h);
}

void file_close_handle(struct handle *h)
{
    if (take_handle(h) && !--h->refs)
        close_taken(h);
}

static void let_go(struct request *r)
{
    put_handle(r->handle);
    put_handle(r->handle2);
}

void handle_use(struct request *r, const struct fuse_file_info *fi, const struct fuse_file_info *fi2)
{
    r->fi = *fi;
    r->handle = handle_of(fi);
    r->handle->refs++;
    if (fi2) {
        r->handle2 = handle_of(fi2);
        r->handle2->refs++;
    }
    r->let_go = let_go;
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct handle *h = handle_of(fi);
    (void)ino;
    if (fi->flock_release)
        lock_drop_owner(h->inode->fid, true, fi->lock_owner, NULL, NULL);
    bool ours = take_handle(h);
    fuse_reply_err(req, 0);
    if (ours)
        put_handle(h);
}

void file_close_all(void)
{
    lock_take(&handles.lock);
    while (handles.list || handles.closing) {
        struct handle *h = handles.list;
        if (!h) {
            lock_wait(&handles.lock, &handles.changed, 0);
            continue;
        }
        lock_drop(&handles.lock);
        file_close_handle(h);
        lock_take(&handles.lock);
    }
    lock_drop(&handles.lock);
}

/* ---- flush, fsync ---- */

/* close reports a failed flush only to descriptors that wrote; fsync reports it to all. */
static int error_at_close(struct handle *h)
{
    return writes(h->flags) ? flush_error_once(h->data->f, &h->error_seen) : 0;
}

/* Flushes to the PFS and waits for that.  The error is returned here, so it is not reported once more. */
static int sync_to_pfs(struct handle *h)
{
    int err = data_sync(h->data, true), before = flush_error_once(h->data->f, &h->error_seen);
    return err ? err : before;
}

static bool waits_at_close(struct handle *h)
{
    return writes(h->flags) && flush_policy_of(h->data->f) == FLUSH_CLOSE;
}

static void end_flush(void *arg)
{
    struct request *r = arg;
    int err = waits_at_close(r->handle) ? sync_to_pfs(r->handle) : error_at_close(r->handle);
    request_err(r, err);
}

static void end_flush_job(struct request *r)
{
    end_flush(r);
}

/* In the network thread, which must not take the locks that this needs. */
static void unlocked(void *arg, int err, const struct lock_ask *found)
{
    (void)err;
    (void)found;
    pool_submit(pool_writers, end_flush, arg);
}

/* The kernel has served the stores of this descriptor: size and times are what the data file has now.
 * (Where they come as writes, the kernel drops its attributes itself.) */
static void tell_stores(struct handle *h)
{
    struct location at;
    if (h->mode != IO_PASSTHROUGH || !writes(h->flags))
        return;
    data_attr(h->data, &at);
    lock_take(&h->inode->lock);
    bool same = attr_is(h->inode, &at);
    lock_drop(&h->inode->lock);
    if (!same)
        notify_attr_now(h->inode->nodeid);
}

/* close() of a descriptor: its process's fcntl locks are released, and a flush that failed since is reported
 * once.  With the policy `close` it waits for the flush. */
static void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct handle *h = handle_of(fi);
    tell_stores(h);
    lock_take(&h->inode->lock);
    for (unsigned n = 0; n < h->nlockers; n++)
        if (h->lockers[n] == fi->lock_owner)
            h->lockers[n--] = h->lockers[--h->nlockers];
    lock_drop(&h->inode->lock);
    bool locks = lock_owner_has_any(h->inode->fid, fi->lock_owner);
    if (!locks && !waits_at_close(h)) {
        fuse_reply_err(req, -error_at_close(h));
        return;
    }
    struct request *r = request_new(req, ino);
    if (!r)
        return;
    handle_use(r, fi, NULL);
    if (locks)
        lock_drop_owner(h->inode->fid, false, fi->lock_owner, unlocked, r);
    else
        request_start(r, pool_writers, end_flush_job);
}

int file_sync(struct handle *h)
{
    if (settings.fsync_pfs)
        return sync_to_pfs(h);
    int err = data_sync(h->data, false);
    return err ? err : flush_error_once(h->data->f, &h->error_seen);
}

static void fsync_fn(struct request *r)
{
    request_err(r, file_sync(handle_of(&r->fi)));
}

static void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
    struct request *r = request_new(req, ino);
    (void)datasync;
    if (!r)
        return;
    handle_use(r, fi, NULL);
    request_start(r, settings.fsync_pfs ? pool_writers : pool_waiters, fsync_fn);
}

void file_ops(struct fuse_lowlevel_ops *ops)
{
    ops->open = op_open;
    ops->release = op_release;
    ops->flush = op_flush;
    ops->fsync = op_fsync;
}
