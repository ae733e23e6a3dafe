/* setattr.c - chmod, chown, truncate, utimens.
 *
 * Mode and owner go to the PFS.  A truncation goes to where the latest bytes are, through a handle.
 * Times go to the PFS.  If the file has unflushed data, they also go to the claimant, so that its flush
 * publishes them, and not the time of the last write.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/attr_last.h"
#include "fs/attr_look.h"
#include "fs/entry.h"
#include "fs/handle.h"
#include "fs/known.h"
#include "fs/ops.h"
#include "fs/same.h"
#include "fs/uring.h"
#include "placement/claims/claim.h"
#include "placement/claims/claim_give.h"
#include "placement/data_believe.h"
#include "placement/lend.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"
#include "placement/store/store_read.h"
#include "placement/store/store_write.h"
#include "placement/tell.h"

#define OWNERS (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)
#define TIMES                                                                                      \
    (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME_NOW)
/* FUSE_HANDLE_KILLPRIV_V2: the kernel's FATTR_KILL_SUIDGID; libfuse passes it on by this name. */
#define KILL_PRIV FUSE_SET_ATTR_KILL_SUID

#define NOT_MINE_TRIES 3

/* ---- size ---- */

static int kill_priv(const struct request *r, struct handle *h)
{
    struct stat st;
    mode_t all = S_ISUID | S_ISGID;
    if (!(r->flags & KILL_PRIV))
        return 0;
    bool known = attr_last(h->inode, &st);
    return pfs_strip_suid(h->data->f, known ? request_drops(r, st.st_mode, st.st_gid) : all);
}

static int truncate_handle(struct request *r, struct handle *h)
{
    int err = kill_priv(r, h);
    return err ? err : data_truncate(h->data, (uint64_t)r->attr.st_size);
}

static int set_size(struct request *r)
{
    if (!S_ISREG(r->inode->type))
        return S_ISDIR(r->inode->type) ? -EISDIR : -EINVAL;
    if (r->fi.fh)
        return truncate_handle(r, handle_of(&r->fi));
    struct handle *h;
    int err = file_open_for_truncate(r, r->inode, &h);
    if (err)
        return err;
    err = truncate_handle(r, h);
    file_close_handle(h);
    return err;
}

/* ---- times ---- */

static struct timespec one_time(int flags, int set, int now, struct timespec t)
{
    if (flags & now)
        t.tv_nsec = UTIME_NOW;
    else if (!(flags & set))
        t.tv_nsec = UTIME_OMIT;
    return t;
}

/* Another node has the file's claim: tells it the mtime.  -ENOENT: it does not have the claim any more. */
static int carry_times(struct inode *i, uint64_t node, int64_t mtime_ns)
{
    struct file *f;
    struct change c = {.op = CARRY_TIMES, .time_ns = mtime_ns};
    char *path = pfs_path(i->node);
    int err = file_get(i->fid, path, &f);
    free(path);
    if (err)
        return err;
    struct carry_result said;
    err = carry_write(node, f, &c, &said);
    if (!err)
        data_said(f, &said);
    file_put(f);
    return err;
}

/* Which times a request sets, and where the file's latest bytes were before the request did anything.
 */
struct new_times {
    struct timespec ts[2];
    bool mtime; /* of a regular file: other nodes may have to know it */
    int64_t mtime_ns;
    struct location before;
    bool own;    /* the claim was here */
    bool others; /* it was not, and there was no claimant to be told */
    bool unlike; /* the PFS has set its own "now", which is another time than the claimant was told */
};

/* 0: the claimant knows mtime; 1: only the PFS need have it, *at is the home's answer; -EAGAIN: ask
 * again. */
static int tell_times(struct inode *i, int64_t mtime_ns, struct location *at)
{
    int err = claim_where(i->fid, LOOK_NONE, at);
    if (err)
        return err;
    if (at->where == WHERE_LOST)
        return -EIO;
    if (claim_dropped(at))
        return -ESTALE;
    if (at->where != WHERE_NODE)
        return 1;
    err = carry_times(i, at->node, mtime_ns);
    return err == -ENOENT ? -EAGAIN : err;
}

/* mtime of a file that may have unflushed data elsewhere. */
static int times_to_claimant(struct inode *i, int64_t mtime_ns, struct location *at)
{
    int where = -EAGAIN;
    for (int tries = 0; tries < NOT_MINE_TRIES && where == -EAGAIN; tries++)
        where = tell_times(i, mtime_ns, at);
    return where == -EAGAIN ? -EIO : where;
}

/* exact: where there is unflushed data, its node must know the time that the PFS has, and the PFS gets it
 * instead of "now".  That is for the file's owner and root alone. */
static int set_on_pfs(struct request *r, struct new_times *t, bool exact)
{
    struct timespec told[2] = {t->ts[0], time_of_ns(t->mtime_ns)};
    int err = -EPERM;
    if (exact && t->ts[1].tv_nsec == UTIME_NOW)
        err = pfs_utimens(r->inode->node, told, request_cred(r));
    if (err != -EPERM && err != -EACCES)
        return err;
    t->unlike = exact && t->ts[1].tv_nsec == UTIME_NOW;
    return pfs_utimens(r->inode->node, t->ts, request_cred(r));
}

/* This node has the claim, and does not give it back meanwhile: a flush must not end between the two steps
 * and publish the older time.  Without unflushed data only the PFS gets the time, and the store gets the new
 * version (same_end): a touch leaves nothing to flush. */
static int set_own_times(struct request *r, struct file *f, struct new_times *t, struct same *same)
{
    struct file_info info;
    store_info(f, &info);
    same->on = info.base_known && version_same_bytes(&info.base, &same->before);
    same->own = true;
    bool pfs_only = !info.dirty && !info.only_here && !info.lent && same->on;
    int err = pfs_only ? 0 : lend_times_begin(f);
    if (err)
        return err;
    if (!pfs_only) {
        store_set_times(f, t->mtime_ns);
        err = store_note_time(f, t->mtime_ns);
    }
    if (!err)
        err = set_on_pfs(r, t, !pfs_only);
    if (!err || !pfs_only)
        tell_changed(f, &(struct change){.op = CARRY_TIMES}, 0);
    /* else it may fail: then the flush tries again, and publishes its own time */
    return pfs_only ? err : 0;
}

/* Has no other node changed the file between two answers of its home? */
static bool nobody_between(const struct location *a, const struct location *b)
{
    if (a->where != WHERE_PFS || b->where != WHERE_PFS || !a->view || a->view != b->view ||
        a->known != b->known || a->known > 2)
        return false;
    return !a->known || version_eq(&a->version, &b->version);
}

/* Another node has the claim, or none has it. */
static int set_others_times(struct request *r, struct new_times *t)
{
    struct location at;
    int where = times_to_claimant(r->inode, t->mtime_ns, &at);
    if (where < 0)
        return where;
    int err = set_on_pfs(r, t, where == 0);
    t->others = where == 1 && !err;
    return where == 1 ? err : 0;
}

/* Asked after the last look at the PFS.  A node that took the claim meanwhile has seen the older time.  If it
 * is another node, it is told; if it is this one, the store's base changes (same_end).  mtime does not show
 * whether somebody wrote, so the home must say it: data that another node flushed between our two looks is
 * not the data from before. */
static int end_others_times(struct request *r, const struct new_times *t, const struct statx *stx,
                            struct same *same)
{
    struct location at;
    bool tell = t->others || t->unlike;
    int where = tell ? times_to_claimant(r->inode, version_of(stx).mtime_ns, &at) : 0;
    same->own = where == 1 && at.where == WHERE_HERE;
    same->on = where == 1 && (same->own || nobody_between(&t->before, &at));
    return MIN(where, 0);
}

static int set_file_times(struct request *r, struct new_times *t, struct same *same)
{
    struct file *f = file_find(r->inode->fid);
    t->own = f && claim_change_begin(f, boot_ms() + members_patience()) == 0;
    int err = t->own ? set_own_times(r, f, t, same) : 0;
    if (t->own)
        claim_carry_end(f);
    if (f)
        file_put(f);
    return t->own ? err : set_others_times(r, t);
}

static int begin_times(struct request *r, struct new_times *t)
{
    t->ts[0] = one_time(r->flags, FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW, r->attr.st_atim);
    t->ts[1] = one_time(r->flags, FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW, r->attr.st_mtim);
    bool now = t->ts[1].tv_nsec == UTIME_NOW;
    if (now && r->flags & FUSE_SET_ATTR_SIZE) /* the truncation has done it */
        t->ts[1].tv_nsec = UTIME_OMIT;
    t->mtime = S_ISREG(r->inode->type) && t->ts[1].tv_nsec != UTIME_OMIT;
    if (!t->mtime)
        return 0;
    t->mtime_ns = now ? real_ns() : ns_of_time(t->ts[1].tv_sec, t->ts[1].tv_nsec);
    return claim_where(r->inode->fid, LOOK_NONE, &t->before);
}

static int set_times(struct request *r, struct new_times *t, struct same *same)
{
    if (t->mtime)
        return set_file_times(r, t, same);
    bool none = t->ts[0].tv_nsec == UTIME_OMIT && t->ts[1].tv_nsec == UTIME_OMIT;
    return none ? 0 : pfs_utimens(r->inode->node, t->ts, request_cred(r));
}

/* ---- all of it ---- */

static int set_owner(struct request *r)
{
    uid_t uid = r->flags & FUSE_SET_ATTR_UID ? r->attr.st_uid : (uid_t)-1;
    gid_t gid = r->flags & FUSE_SET_ATTR_GID ? r->attr.st_gid : (gid_t)-1;
    return pfs_chown(r->inode->node, uid, gid, request_cred(r));
}

/* A request that sets nothing is chown(-1, -1).  It asks for the side effects of a chown: setuid, setgid and
 * capabilities are removed (FUSE_HANDLE_KILLPRIV_V2).  The kernel has not checked the right to do so, which
 * the owner and root have. */
static bool only_kills_priv(const struct request *r, const struct statx *stx)
{
    return !(r->flags & (FUSE_SET_ATTR_SIZE | FUSE_SET_ATTR_MODE | OWNERS | TIMES)) &&
           (!r->uid || r->uid == stx->stx_uid);
}

/* In this order: a chown clears setuid, which the mode of the same request sets again.  Times are set last,
 * because a truncation changes them. */
static int set_all(struct request *r, const struct statx *before, struct new_times *t,
                   struct same *same)
{
    int err = 0;
    if (r->flags & FUSE_SET_ATTR_SIZE)
        err = set_size(r);
    if (!err && (r->flags & OWNERS || only_kills_priv(r, before)))
        err = set_owner(r);
    if (!err && r->flags & FUSE_SET_ATTR_MODE)
        err = pfs_chmod(r->inode->node, r->attr.st_mode & 07777, request_cred(r));
    if (!err && r->flags & TIMES)
        err = set_times(r, t, same);
    return err;
}

static void set_time(struct timespec *to, int flags, int set, int now, struct timespec t)
{
    if (flags & now)
        *to = time_of_ns(real_ns());
    else if (flags & set)
        *to = t;
}

/* Neither a name nor a descriptor leads to it (a removed directory, for example).  Its attributes are only in
 * what is last known of it, as long as the inode is in use. */
static int set_gone(struct request *r, struct stat *st)
{
    if (!attr_last(r->inode, st))
        return -ESTALE;
    int err = r->flags & FUSE_SET_ATTR_SIZE ? set_size(r) : 0;
    if (err)
        return err;
    if (r->flags & FUSE_SET_ATTR_SIZE)
        st->st_size = r->attr.st_size;
    if (r->flags & FUSE_SET_ATTR_MODE)
        st->st_mode = (st->st_mode & S_IFMT) | (r->attr.st_mode & 07777);
    if (r->flags & FUSE_SET_ATTR_UID)
        st->st_uid = r->attr.st_uid;
    if (r->flags & FUSE_SET_ATTR_GID)
        st->st_gid = r->attr.st_gid;
    set_time(&st->st_atim, r->flags, FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW, r->attr.st_atim);
    set_time(&st->st_mtim, r->flags, FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW, r->attr.st_mtim);
    st->st_ctim = time_of_ns(real_ns());
    st->st_nlink = 0;
    return 0;
}

/* What was to be changed is changed, but the node that has the latest bytes cannot be asked for the size (it
 * is lost, for example): *st then has the last one that was known here. */
static void put_last_known(struct request *r, struct stat *st)
{
    struct stat last;
    if (attr_last(r->inode, &last)) {
        st->st_size = last.st_size;
        st->st_blocks = last.st_blocks;
        if (!(r->flags & TIMES))
            st->st_mtim = last.st_mtim;
    }
    if (r->flags & FUSE_SET_ATTR_SIZE)
        st->st_size = r->attr.st_size;
}

/* *sure: *st is all true now. */
static int set_file(struct request *r, struct stat *st, bool *sure, struct belief *b)
{
    struct statx stx;
    struct new_times t = {0};
    int err = begin_times(r, &t);
    if (!err)
        err = attr_stat(r->inode, &stx);
    if (err)
        return err;
    struct same same;
    same_begin(&same, &stx);
    same.times = t.mtime;
    err = set_all(r, &stx, &t, &same);
    attr_touched(r->inode); /* also if only the first part was done */
    if (err)
        return err;
    uint64_t looked_ms = boot_ms();
    err = attr_stat(r->inode, &stx);
    if (!err && t.mtime && !t.own)
        err = end_others_times(r, &t, &stx, &same);
    if (err)
        return err;
    if (r->flags & FUSE_SET_ATTR_SIZE)
        same.on = false;
    same_end(&same, &stx);
    *sure = !attr_complete(r->inode, &stx, looked_ms, st, b);
    if (!*sure)
        put_last_known(r, st);
    return 0;
}

/* The kernel has stopped to write back pages of the file, until it is answered (fs/page_walk.h). */
struct truncation {
    struct inode *inode; /* referenced */
    struct page_use pages;
};

static struct truncation *truncation_begin(const struct request *r)
{
    struct truncation *t = xcalloc(1, sizeof(*t));
    t->inode = inode_ref(r->inode);
    page_use_begin(t->inode, &t->pages, 0, INT64_MAX - PAGE, PAGE_TRUNCATE);
    return t;
}

/* The request is answered, and may be gone. */
static void truncation_end(struct truncation *t)
{
    uring_settle();
    page_use_end(t->inode, &t->pages);
    inode_put(t->inode);
    free(t);
}

static void answer(struct request *r, const struct stat *st, int err, struct belief *b)
{
    struct truncation *t = r->extra;
    if (t)
        page_use_answer(t->inode, &t->pages, 0, false);
    if (err)
        request_err(r, err);
    else
        reply_attr(r, st, known_timeout(r->inode), b);
}

static void setattr_fn(struct request *r)
{
    struct stat st;
    struct belief b = belief_none();
    bool sure = true;
    int err = set_file(r, &st, &sure, &b);
    if (err == -ESTALE && attr_is_held(r->inode))
        err = set_gone(r, &st);
    if (r->flags & FUSE_SET_ATTR_SIZE)
        belief_changed_by(r->inode, 0, 0);
    else
        belief_changed_attr_by(r->inode);
    if (!err && r->flags & FUSE_SET_ATTR_SIZE && b.told)
        belief_grown_by(r->inode, &(struct location){.where = b.where, .node = b.node, .size = (uint64_t)st.st_size});
    if (!err && sure)
        attr_remember(r->inode, &st);
    answer(r, &st, err, &b);
}

static void truncate_fn(struct request *r)
{
    struct truncation *t = r->extra;
    setattr_fn(r);
    truncation_end(t);
}

static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
                       struct fuse_file_info *fi)
{
    struct request *r = request_new(req, ino);
    if (!r)
        return;
    r->attr = *attr;
    r->flags = to_set;
    if (fi)
        handle_use(r, fi, NULL);
    if (to_set & FUSE_SET_ATTR_SIZE) { /* waits for the claim, perhaps at another node */
        r->extra = truncation_begin(r);
        request_start(r, pool_waiters, truncate_fn);
    } else {
        request_start(r, pool_names, setattr_fn);
    }
}

void setattr_ops(struct fuse_lowlevel_ops *ops)
{
    ops->setattr = op_setattr;
}
