/* handle_open.c - open: it asks the PFS (permissions), then the home (where the latest bytes are).  Then the kernel is
 * told what is still valid (handle_mode.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "fs/attr_last.h"
#include "fs/attr_look.h"
#include "fs/belief.h"
#include "fs/dir_policy.h"
#include "fs/early.h"
#include "fs/handle_int.h"
#include "fs/io_mode.h"
#include "fs/known.h"
#include "fs/links.h"
#include "fs/notify.h"
#include "fs/ops.h"
#include "fs/settings.h"
#include "fs/stores.h"
#include "placement/claims/claim_give.h"
#include "placement/data_believe.h"
#include "placement/foresight/foresight.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_node.h"
#include "placement/store/kernel_io.h"

/* The kernel's flag for an open by execve (its include/linux/fs.h, __FMODE_EXEC): it has checked the right
 * to execute the file; the right to read it is not needed. */
#define OPEN_EXEC 0x20

/* ---- the handle ---- */

/* An open under way. */
struct opening {
    struct request *r;
    struct inode *i;
    int flags;                 /* of open */
    struct fuse_file_info *fi; /* to be filled; NULL: the kernel does not know of this open */
    bool created;              /* the file is new */
    bool named;                /* if it loses its last name meanwhile, that is -ESTALE */
};

/* perm: the file's mode.  On error the handle is closed, with everything that was opened for it. */
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
    h->by_name = !o->i->gone && !o->i->retired && inode_has_name(o->i);
    h->refs = 1;
    flush_error_seen(data->f, &h->error_seen); /* it does not report earlier failures */
    if (o->fi && open_writes(o->flags) && settings.passthrough)
        kernel_io_make_room();
    data_follow(data);
    int err = o->fi ? handle_choose_mode(h, o->r->pid, perm, o->fi, &at, &ask_attr) : 0;
    if (err)
        h->mode = IO_NONE;
    handle_add(h);
    if (!err && h->stores)
        stores_add(h);
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
        h->hinted = foresight_any() && foresight_opened(o->i->node, o->i->fid, open_writes(o->flags));
        o->fi->fh = (uintptr_t)h;
        o->fi->noflush = !open_writes(o->flags) && !known_closes_matter(o->i);
    }
    *out = h;
    return 0;
}

/* ---- the data ---- */

static enum data_use use_of(int flags, bool trunc)
{
    if ((flags & O_ACCMODE) == O_RDONLY)
        return trunc ? DATA_WRITES : DATA_READS;
    return flags & O_APPEND ? DATA_APPENDS : DATA_WRITES;
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

/* The PFS open of f is counted by the caller; on error it is given back here. */
static int open_data(const struct opening *o, struct file *f, const struct statx *stx,
                     uint64_t looked_ms, struct handle **out)
{
    struct data_handle *data;
    bool trunc = o->flags & O_TRUNC && !o->created;
    int err = trunc ? drop_suid(o->i, stx, f, o->r) : 0;
    if (open_writes(o->flags)) /* before the first byte is dirty */
        dir_policy_apply(o->i, f);
    if (!err)
        err = data_open(f, use_of(o->flags, trunc), trunc, stx, looked_ms, o->named, &data);
    if (!err && trunc &&
        (o->flags & O_ACCMODE) == O_RDONLY) { /* it changes nothing more, and so keeps no claim */
        data_close(data);
        err = data_open(f, DATA_READS, false, stx, looked_ms, false, &data);
    }
    if (err) {
        data_release(f);
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

/* By its name; or by its descriptor, if it is open and no name of it is known: then the kernel comes by that.  found: or if this task
 * has just found it by a name (early.h). */
static int open_on_pfs(struct request *r, struct inode *i, int flags, struct file *f, bool found,
                       struct statx *stx)
{
    int err = pfs_open_file(f, inode_has_name(i) ? i->node : NULL, open_writes(flags), request_cred(r), stx);
    if (err == -ESTALE && found)
        err = pfs_open_file(f, NULL, open_writes(flags), request_cred(r), stx);
    /* It may have another name: if the kernel has used that, it comes back with this file, once.  So none may be left
     * that leads elsewhere. */
    if (err == -ESTALE && !attr_stat(i, stx)) {
        links_are_right(i, NULL, false);
        handle_may_come_by_descriptor(i);
    }
    if (err == -EACCES && flags & OPEN_EXEC && !open_writes(flags))
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
    if (fi && !open_writes(flags) && !known_open(i, f, &data)) {
        err = new_handle(&o, data, known_mode(i), out);
        file_put(f);
        return err;
    }
    uint64_t looked_ms = boot_ms();
    bool by_name = !pfs_has_descriptor(f);
    bool found = early_is_for(i, r->pid); /* its name led to it when this open was on its way already */
    err = open_on_pfs(r, i, flags, f, found, &stx);
    if (!err && open_writes(flags) && stx.stx_nlink && !links_are_right(i, &stx, by_name) && !found) {
        data_release(f);
        handle_may_come_by_descriptor(i);
        err = -ESTALE; /* the kernel looks its name up again */
    }
    if (!err && !stx.stx_nlink)
        file_set_unlinked(f, true);
    /* it had a name when that was looked up for this open; or the kernel has come by a descriptor */
    bool is_it = found || i->retired;
    o.named = !err && stx.stx_nlink && !is_it;
    if (!err && !stx.stx_nlink && !i->gone && !is_it) { /* another node removed it */
        inode_gone(i);
        data_release(f);
        err = -ESTALE;
    }
    if (!err)
        err = open_data(&o, f, &stx, looked_ms, out);
    if (!err) {
        attr_seen(i, &stx, &(*out)->data->where, looked_ms);
        known_note(i, &stx, &(*out)->data->where, looked_ms);
    } else {
        claim_drop_unlinked(f);
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

int file_open_in_advance(struct request *r, struct inode *i, bool any_kind, struct handle **out)
{
    int err = any_kind ? handle_promise(i) : 0;
    if (err)
        return err;
    err = open_inode(r, i, O_RDONLY, NULL, out);
    if (any_kind && !err)
        (*out)->mode = IO_PROMISED;
    else if (any_kind)
        handle_end_promise(i);
    return err;
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

void handle_open_ops(struct fuse_lowlevel_ops *ops)
{
    ops->open = op_open;
}
