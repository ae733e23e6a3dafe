/* getattr.c - stat and its kin: what is known is told, as long as it counts, else it is looked at (attr.c). */
#include "fs/getattr.h"

#include <errno.h>

#include "fs/attr.h"
#include "fs/attr_last.h"
#include "fs/attr_look.h"
#include "fs/entry.h"
#include "fs/known.h"
#include "fs/ops.h"
#include "fs/settings.h"
#include "fs/stores.h"
#include "fs/told_times.h"
#include "placement/claims/claim_give.h"

#define LOOKS 8 /* for one answer, while the file changes or moves */

/* For the kernel, which asks again after each read and write through it.  If the PFS was looked at less than
 * the attribute time-out ago, and this node has changed nothing since: *st, as of *k, for what is left of
 * that time (seconds). */
static bool attr_fresh(struct inode *i, struct stat *st, struct data_known *k, struct told *told,
                       double *left)
{
    lock_take(&i->lock);
    bool fresh = i->attr_known && i->known.looked_ms > i->touched_ms && !i->gone && !i->retired;
    *st = i->attr;
    st->st_blocks = (blkcnt_t)i->known_blocks; /* an open sees only changes of others (attr_seen) */
    st->st_atim = i->known_atim;
    *k = i->known;
    *told = told_times_before(i, &k->version);
    lock_drop(&i->lock);
    *left = attr_left(k->looked_ms);
    return fresh && *left > 0 && S_ISREG(i->type);
}

/* Of a file that is written here, this node itself says size and times, unless parts are lent: borrowers know them, too.
 * *own: no other node has changed it. */
static bool has_own_word(struct inode *i, struct stat *st, int64_t pfs_ctime_ns, bool *own,
                         struct belief *b)
{
    struct location loc;
    struct file *f = claim_file_here(i->fid, &loc);
    if (!f)
        return false;
    *b = belief_of(i, &loc);
    *own = attr_changed_here_only(f);
    file_put(f);
    if (!loc.keep)
        return false;
    attr_merge_word(st, &loc, pfs_ctime_ns);
    return true;
}

/* A file that is not written here has not changed if its home knows of nothing newer
 * (placement/data_where.c). */
int attr_known(struct inode *i, struct stat *st, double *left, struct belief *b)
{
    struct data_known k;
    struct told told;
    struct location at;
    if (!attr_fresh(i, st, &k, &told, left) || (!told_times_are(st, &k.version, &told) && !claim_is_here(i->fid)))
        return -EAGAIN;
    int err = claim_where(i->fid, LOOK_STAT, &at);
    if (err)
        return err;
    *left = attr_left(k.looked_ms); /* it may have taken long */
    bool own = at.where == WHERE_HERE; /* parts are lent, and their borrowers were asked */
    if (*left <= 0 || (!own && (!told_times_are(st, &k.version, &told) || !data_still_known(&k, &at))))
        return -EAGAIN;
    if (own)
        attr_merge_word(st, &at, k.version.ctime_ns);
    *b = belief_of(i, &at);
    attr_remember_known(i, st, &k, false);
    return 0;
}

static int look(struct inode *i, struct stat *st, double *left, struct belief *b)
{
    int err = attr_known(i, st, left, b);
    if (err != -EAGAIN)
        return err;
    uint64_t looked_ms;
    err = attr_get(i, st, &looked_ms, b);
    *left = known_timeout(i);
    if (!err)
        attr_remember_look(i, st, looked_ms);
    return err;
}

static void getattr_fn(struct request *r)
{
    struct stat st;
    double left;
    struct belief b;
    int err, looks = 0;
    stores_take_of(r->inode->fid); /* an error is told by fsync and close */
    do
        err = look(r->inode, &st, &left, &b);
    while (!err && !belief_grow(r->inode, &b, (uint64_t)st.st_size) && ++looks < LOOKS);
    if (err)
        request_err(r, err);
    else
        reply_attr(r, &st, left, &b);
}

static bool getattr_stalled(struct request *r)
{
    struct stat st;
    if (!attr_stands(r->inode, &st))
        return false;
    if (request_take(r))
        fuse_reply_attr(r->req, &st, r->inode->fixed ? known_timeout(r->inode) : 0);
    return true;
}

bool attr_known_here(struct inode *i, struct stat *st, double *left, struct belief *b)
{
    struct data_known k;
    struct told told;
    struct location at;
    bool own = false;
    if (!attr_fresh(i, st, &k, &told, left))
        return false;
    if (!has_own_word(i, st, k.version.ctime_ns, &own, b)) {
        if (!told_times_are(st, &k.version, &told) || !claim_told_here(i->fid, LOOK_STAT, &at) ||
            !data_still_known(&k, &at))
            return false;
        *b = belief_of(i, &at);
    }
    attr_remember_known(i, st, &k, own);
    return true;
}

/* Without the PFS and without a message; false: they must be asked. */
static bool getattr_here(fuse_req_t req, struct inode *i)
{
    struct stat st;
    struct belief b = belief_fixed();
    double left;
    if (i->fixed && attr_last(i, &st)) /* after a read, for the access time */
        left = known_timeout(i);
    else if (!attr_known_here(i, &st, &left, &b) || belief_must_grow(i, &b, (uint64_t)st.st_size))
        return false;
    fuse_reply_attr(req, &st, belief_begin(&b, i, (uint64_t)st.st_size, left));
    belief_end(&b);
    return true;
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)fi; /* an open file is found by its fid */
    struct inode *i = inode_get(ino);
    if (!i) {
        fuse_reply_err(req, ESTALE);
        return;
    }
    if (!stores_any() && getattr_here(req, i)) {
        inode_put(i);
        return;
    }
    struct request *r = request_on(req, i);
    request_on_stall(r, getattr_stalled);
    request_start(r, pool_names, getattr_fn);
}

void getattr_ops(struct fuse_lowlevel_ops *ops)
{
    ops->getattr = op_getattr;
}
