/* attr.c - a file's attributes: the PFS's, with size and times from the claimant.
 *
 * Mode, owner, link count and inode number are always the PFS's.  If a file has unflushed data, its size,
 * mtime, ctime and blocks are the claimant's (docs/protocol.md, rules 8 and 12).  The last answer to the
 * kernel is stored in the inode, and is the answer while the PFS hangs.
 * Which times are told of what is on the PFS: told_times.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "fs/attr.h"
#include "fs/early.h"
#include "fs/known.h"
#include "fs/notify.h"
#include "fs/ops.h"
#include "fs/settings.h"
#include "fs/told_times.h"
#include "placement/claims/claim.h"
#include "placement/claims/claim_give.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"

#define BLOCK_SIZE_MIN 4096
#define LOOKS          8 /* for one answer, while the file changes or moves */

/* ---- from statx and location to stat ---- */

static struct timespec time_of(const struct statx_timestamp *t)
{
    return (struct timespec){.tv_sec = t->tv_sec, .tv_nsec = t->tv_nsec};
}

/* Size, times and blocks of a file whose latest bytes are on a node; the PFS has this ctime, which counts
 * if the node has not seen it.  Blocks are never 0 if there is a size: tar -S and others take such a file
 * for a file of zeros, and read nothing. */
static void merge_word(struct stat *st, const struct location *loc, int64_t pfs_ctime_ns)
{
    bool moved = pfs_ctime_ns > loc->stands_ns;
    st->st_size = (off_t)loc->size;
    st->st_mtim = time_of_ns(loc->mtime_ns);
    st->st_ctim = time_of_ns(moved ? MAX(loc->ctime_ns, pfs_ctime_ns) : loc->ctime_ns);
    st->st_blocks = (blkcnt_t)loc->blocks;
    if (!st->st_blocks && st->st_size)
        st->st_blocks = 1;
}

static bool is_word(const struct location *loc)
{
    return loc && (loc->where == WHERE_HERE || loc->where == WHERE_NODE);
}

void attr_merge(struct stat *st, const struct statx *stx, const struct location *loc)
{
    memset(st, 0, sizeof(*st));
    st->st_ino = stx->stx_ino;
    st->st_mode = stx->stx_mode;
    st->st_nlink = stx->stx_nlink;
    st->st_uid = stx->stx_uid;
    st->st_gid = stx->stx_gid;
    st->st_rdev = makedev(stx->stx_rdev_major, stx->stx_rdev_minor);
    st->st_size = (off_t)stx->stx_size;
    st->st_blksize = MAX(stx->stx_blksize, BLOCK_SIZE_MIN);
    st->st_blocks = (blkcnt_t)stx->stx_blocks;
    st->st_atim = time_of(&stx->stx_atime);
    st->st_mtim = time_of(&stx->stx_mtime);
    st->st_ctim = time_of(&stx->stx_ctime);
    if (S_ISREG(st->st_mode) && is_word(loc))
        merge_word(st, loc, ns_of(&st->st_ctim));
}

/* ---- what is told ---- */

void attr_tell(struct inode *i, struct stat *st, const struct statx *stx,
               const struct location *loc)
{
    attr_merge(st, stx, loc);
    if (!S_ISREG(st->st_mode) || i->fixed)
        return;
    struct version v = version_of(stx);
    if (is_word(loc))
        told_times_word(i, st, &v);
    else
        told_times_pfs(i, st, &v, loc);
}

/* ---- which node has it ---- */

bool attr_overtaken(const struct statx *stx, const struct location *loc)
{
    struct version v = version_of(stx);
    if (loc->where != WHERE_PFS || !loc->known)
        return false;
    return loc->known > 2 ||
           (!version_eq(&v, &loc->version) && loc->version.ctime_ns >= v.ctime_ns);
}

/* Logged once, until it is found again. */
static int say_lost(struct inode *i, const struct location *loc)
{
    if (atomic_exchange(&i->lost_said, true))
        return -EIO;
    char *path = pfs_path(i->node);
    log_warn(
        "its latest bytes are on node %s, which left the session: %s: EIO until that node is back",
        members_name(loc->node), path);
    free(path);
    return -EIO;
}

static int complete_once(struct inode *i, struct location *loc)
{
    int err = 0;
    if (i->fixed)
        claim_here(i->fid, loc); /* before a node was asked, *loc is the PFS */
    else
        err = claim_where(i->fid, LOOK_STAT, loc);
    if (err)
        return err;
    if (loc->where == WHERE_LOST)
        return say_lost(i, loc);
    i->lost_said = false;
    return 0;
}

/* The file was removed before it was flushed, and its claimant has ended, while it is open here: the PFS never had
 * its data.  Its size stays what was last known, so that what the kernel has cached can still be read; other
 * reads fail with ESTALE (placement/data_where.c). */
static bool was_dropped(struct inode *i, const struct statx *stx, struct location *loc)
{
    struct stat last;
    if (stx->stx_nlink || !claim_dropped(loc) || !attr_last(i, &last))
        return false;
    *loc = (struct location){.where = WHERE_NODE,
                             .size = (uint64_t)last.st_size,
                             .blocks = (uint64_t)last.st_blocks,
                             .mtime_ns = ns_of(&last.st_mtim),
                             .ctime_ns = ns_of(&last.st_ctim)};
    return true;
}

int attr_complete(struct inode *i, struct statx *stx, uint64_t looked_ms, struct stat *st,
                  struct belief *b)
{
    struct location loc = {.where = WHERE_PFS};
    int err = 0;
    for (int looks = 0; S_ISREG(stx->stx_mode) && looks < 2; looks++) {
        err = complete_once(i, &loc);
        if (err || was_dropped(i, stx, &loc) || !attr_overtaken(stx, &loc))
            break;
        looked_ms = boot_ms();
        err = attr_stat(i, stx);
        /* this look came after the home's answer, so it counts.  But if the file was removed
         * meanwhile, the PFS may never have had its data */
        if (err || (loc.known > 2 && stx->stx_nlink))
            break;
    }
    attr_tell(i, st, stx, err ? NULL : &loc);
    if (S_ISREG(stx->stx_mode))
        known_note(i, stx, err ? NULL : &loc, looked_ms);
    *b = err ? belief_none() : belief_of(i, &loc);
    return err;
}

/* By the descriptor of an open file: this is right also if the file has no name any more. */
static int stat_open(struct inode *i, struct statx *stx)
{
    struct file *f = S_ISREG(i->type) ? file_find_used(i->fid) : NULL;
    if (!f)
        return -ESTALE;
    int err = pfs_is_open(f) && pfs_has_descriptor(f) ? pfs_file_stat(f, stx) : -ESTALE;
    file_put(f);
    return err;
}

static bool is_inode(const struct inode *i, const struct statx *stx)
{
    return fid_eq(fid_of(stx), i->fid) && (stx->stx_mode & S_IFMT) == i->type;
}

int attr_stat(struct inode *i, struct statx *stx)
{
    if (!stat_open(i, stx) && is_inode(i, stx))
        return 0;
    for (;;) {
        struct pfs_node *node = i->node;
        int err = pfs_stat(node, stx);
        if (!err && is_inode(i, stx))
            return 0;
        if (err && err != -ENOENT && err != -ESTALE && err != -ENOTDIR)
            return err;
        if (!inode_lost_name(i, node)) /* it is not there any more; by another name? */
            return -ESTALE;
    }
}

/* It was opened without the PFS (fs/known.c), so only its names lead to it. */
static bool is_open_by_name(struct inode *i)
{
    struct file *f = S_ISREG(i->type) ? file_find_used(i->fid) : NULL;
    bool by_name = f && pfs_is_open(f) && !pfs_has_descriptor(f);
    if (f)
        file_put(f);
    return by_name;
}

/* No look at the PFS leads to the file any more: what other nodes have changed before that its home or claimant says. */
static void add_what_others_know(struct inode *i, struct stat *st)
{
    struct location loc;
    if (!S_ISREG(i->type) || claim_where(i->fid, LOOK_NONE, &loc) || claim_dropped(&loc))
        return;
    if (is_word(&loc)) {
        merge_word(st, &loc, ns_of(&st->st_ctim));
    } else if (told_times_named(&loc, &loc.version) && loc.told.ctime_ns > ns_of(&st->st_ctim)) {
        st->st_size = (off_t)loc.version.size;
        st->st_mtim = time_of_ns(loc.told.mtime_ns);
        st->st_ctim = time_of_ns(loc.told.ctime_ns);
    }
}

int attr_get(struct inode *i, struct stat *st, uint64_t *looked_ms, struct belief *b)
{
    struct statx stx;
    *looked_ms = boot_ms();
    int err = attr_stat(i, &stx);
    if (!err)
        return attr_complete(i, &stx, *looked_ms, st, b);
    *b = belief_none();
    bool held = i->gone || is_open_by_name(i);
    if (err != -ESTALE || !held || !attr_last(i, st))
        return err;
    add_what_others_know(i, st);
    st->st_nlink = 0; /* removed while it is still in use, for example a directory */
    return 0;
}

/* ---- what was last known ---- */

/* All changes came through this mount: the kernel knows the size itself, and drops answers to questions
 * from before one of them. */
static bool changed_here_only(struct file *f)
{
    return claim_is_held(f) && !claim_carried(f);
}

/* Lock held. */
static bool is_other(const struct inode *i, const struct stat *st)
{
    return i->attr_known &&
           (i->attr.st_size != st->st_size || ns_of(&i->attr.st_mtim) != ns_of(&st->st_mtim));
}

static bool moves(struct inode *i, const struct stat *st)
{
    lock_take(&i->lock);
    bool moves = is_other(i, st);
    lock_drop(&i->lock);
    struct file *f = moves && S_ISREG(i->type) && claim_is_here(i->fid) ? file_find(i->fid) : NULL;
    if (f) {
        moves = !changed_here_only(f);
        file_put(f);
    }
    return moves;
}

/* Lock held. */
static void set_attr(struct inode *i, const struct stat *st, bool moved)
{
    i->attr_ms = boot_ms();
    if (moved)
        i->attr_moved_ms = i->attr_ms;
    i->attr = *st;
    i->attr_known = true;
}

static void remember(struct inode *i, const struct stat *st, bool moved)
{
    lock_take(&i->lock);
    set_attr(i, st, moved);
    lock_drop(&i->lock);
}

void attr_remember(struct inode *i, const struct stat *st)
{
    lock_take(&i->lock);
    bool other = is_other(i, st);
    if (!other)
        set_attr(i, st, false);
    lock_drop(&i->lock);
    if (other)
        remember(i, st, moves(i, st));
}

/* Is it what is told of version v? */
static bool is_of(const struct stat *st, const struct version *v, const struct told *told)
{
    return (uint64_t)st->st_size == v->size && ns_of(&st->st_mtim) == told->mtime_ns &&
           ns_of(&st->st_ctim) == told->ctime_ns;
}

/* Lock held.  Not what attr_complete has seen itself, when it had to look again. */
static bool knows_newer(const struct inode *i, const struct stat *st, uint64_t looked_ms)
{
    struct told told = told_times_before(i, &i->known.version);
    bool older = looked_ms < i->known.looked_ms && !is_of(st, &i->known.version, &told);
    return i->attr_known && (older || looked_ms <= i->touched_ms);
}

void attr_remember_look(struct inode *i, const struct stat *st, uint64_t looked_ms)
{
    lock_take(&i->lock);
    bool newer = knows_newer(i, st, looked_ms);
    if (newer && is_other(i, st))
        i->attr_moved_ms = boot_ms();
    lock_drop(&i->lock);
    if (!newer)
        attr_remember(i, st);
}

bool attr_is(const struct inode *i, const struct location *at)
{
    lock_assert_held(&i->lock);
    return i->attr_known && (uint64_t)i->attr.st_size == at->size &&
           ns_of(&i->attr.st_mtim) == at->mtime_ns;
}

void attr_opened(struct inode *i, const struct location *at, uint64_t looked_ms)
{
    lock_take(&i->lock);
    if (i->attr_known && !attr_is(i, at) && i->attr_ms <= looked_ms) {
        i->attr.st_size = (off_t)at->size;
        i->attr.st_mtim = time_of_ns(at->mtime_ns);
        i->attr_ms = i->attr_moved_ms = boot_ms();
    }
    lock_drop(&i->lock);
}

static void flushed(struct inode *i, struct file *f, const struct statx *stx, uint64_t looked_ms)
{
    struct stat st;
    struct location word;
    attr_merge(&st, stx, NULL);
    if (!claim_here_of(f, &word) || !changed_here_only(f))
        return;
    struct version v = version_of(stx);
    struct told told = {word.mtime_ns, word.ctime_ns};
    told_times_note(i, &v, &told);
    st.st_mtim = time_of_ns(told.mtime_ns);
    st.st_ctim = time_of_ns(told.ctime_ns);
    notify_attr_now(i->nodeid); /* what it has may not be from what was written by it */
    lock_take(&i->lock);
    bool newest = looked_ms >= i->known.looked_ms && looked_ms > i->touched_ms;
    if (newest)
        set_attr(i, &st, false);
    lock_drop(&i->lock);
    if (newest)
        known_note(i, stx, &word, looked_ms);
}

void attr_flushed(struct file *f, const struct statx *stx, uint64_t looked_ms)
{
    struct inode *i = inode_known(f->fid);
    if (i)
        flushed(i, f, stx, looked_ms);
    inode_put(i);
}

void attr_seen(struct inode *i, const struct statx *stx, const struct location *at,
               uint64_t looked_ms)
{
    struct stat st;
    attr_tell(i, &st, stx, at);
    lock_take(&i->lock);
    if (looked_ms >= i->known.looked_ms && looked_ms > i->touched_ms) {
        i->attr.st_mode = stx->stx_mode;
        i->attr.st_nlink = stx->stx_nlink;
        i->attr.st_uid = stx->stx_uid;
        i->attr.st_gid = stx->stx_gid;
        i->attr.st_ctim = st.st_ctim;
    }
    lock_drop(&i->lock);
}

bool attr_last(struct inode *i, struct stat *st)
{
    lock_take(&i->lock);
    bool known = i->attr_known;
    int64_t pfs_ctime_ns = i->known.version.ctime_ns;
    *st = i->attr;
    lock_drop(&i->lock);
    struct location loc;
    if (!known || !S_ISREG(i->type) || !claim_here(i->fid, &loc))
        return known;
    if (!loc.keep) { /* parts are lent: this is the least that both can be, and borrowers may have said more */
        loc.size = MAX(loc.size, (uint64_t)st->st_size);
        loc.mtime_ns = MAX(loc.mtime_ns, ns_of(&st->st_mtim));
    }
    merge_word(st, &loc, pfs_ctime_ns);
    return true;
}

/* ---- same data, new ctime ---- */

void attr_born(struct inode *i)
{
    lock_take(&i->lock);
    i->born_ms = boot_ms();
    lock_drop(&i->lock);
}

void attr_touched(struct inode *i)
{
    lock_take(&i->lock);
    i->touched_ms = boot_ms();
    lock_drop(&i->lock);
}

/* Something has been changed, and what is told of the ctime moves on to ctime_ns at once, also if the
 * claimant does not see it because it flushes the file just now. */
static void touched(struct fid fid, int64_t ctime_ns)
{
    struct inode *i = inode_known(fid);
    if (!i)
        return;
    attr_touched(i);
    lock_take(&i->lock);
    i->moved_ns = MAX(i->moved_ns, ctime_ns);
    lock_drop(&i->lock);
    inode_put(i);
}

void same_begin(struct same *s, const struct statx *before)
{
    s->on = S_ISREG(before->stx_mode);
    s->times = s->own = false;
    s->fid = fid_of(before);
    s->before = version_of(before);
}

/* If size or mtime changed, somebody wrote in between, and the data is not the same. */
void same_end(struct same *s, const struct statx *after)
{
    if (!s->on || !fid_eq(s->fid, fid_of(after)))
        return;
    struct version v = version_of(after);
    bool written = v.size != s->before.size || (!s->times && v.mtime_ns != s->before.mtime_ns);
    touched(s->fid, written || v.ctime_ns == s->before.ctime_ns ? INT64_MIN : v.ctime_ns);
    if (written || version_eq(&v, &s->before))
        return;
    struct file *f = file_find(s->fid);
    bool moved = f && store_same_data(f, &s->before, &v);
    if (f)
        file_put(f);
    if (moved || !s->own)
        claim_publish_same(s->fid, &s->before, &v);
}

/* ---- answers ---- */

/* A file that was opened in advance is opened also without a name: not by one that the kernel keeps. */
static double name_timeout(const struct inode *i, double timeout)
{
    return early_is_open(i) ? 0 : timeout;
}

void entry_fill(struct fuse_entry_param *e, struct inode *i, const struct stat *st, struct belief *b)
{
    inode_give(i, (uint64_t)st->st_size);
    *e = (struct fuse_entry_param){
        .ino = i->nodeid,
        .generation = 1, /* the node id holds ours */
        .attr = *st,
        .attr_timeout = belief_begin(b, i, (uint64_t)st->st_size, known_timeout(i)),
        .entry_timeout = name_timeout(i, known_timeout(i)),
    };
}

void entry_fill_known(struct fuse_entry_param *e, struct inode *i, const struct stat *st,
                      double left, struct belief *b)
{
    inode_give(i, (uint64_t)st->st_size);
    *e = (struct fuse_entry_param){
        .ino = i->nodeid,
        .generation = 1,
        .attr = *st,
        .attr_timeout = belief_begin(b, i, (uint64_t)st->st_size, left),
        .entry_timeout = name_timeout(i, left),
    };
}

void reply_entry(struct request *r, struct inode *i, const struct stat *st, struct belief *b)
{
    struct fuse_entry_param e;
    belief_grow(i, b, (uint64_t)st->st_size);
    entry_fill(&e, i, st, b);
    if (!request_take(r) || fuse_reply_entry(r->req, &e) == -ENOENT)
        inode_not_given(i);
    belief_end(b);
    inode_put(i);
    request_done(r);
}

void reply_attr(struct request *r, const struct stat *st, double timeout, struct belief *b)
{
    double left = belief_begin(b, r->inode, (uint64_t)st->st_size, timeout);
    if (request_take(r))
        fuse_reply_attr(r->req, st, left);
    belief_end(b);
    request_done(r);
}

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
    *own = changed_here_only(f);
    file_put(f);
    if (!loc.keep)
        return false;
    merge_word(st, &loc, pfs_ctime_ns);
    return true;
}

/* What was known, *k, is the answer now.  Something newer may have been remembered since: that stays, and the
 * kernel may get both answers in the wrong order. */
static void remember_known(struct inode *i, const struct stat *st, const struct data_known *k,
                           bool moved)
{
    lock_take(&i->lock);
    if (i->known.looked_ms == k->looked_ms && i->touched_ms < k->looked_ms)
        set_attr(i, st, moved);
    else
        i->attr_moved_ms = boot_ms();
    lock_drop(&i->lock);
}

/* A file that is not written here has not changed if its home knows of nothing newer
 * (placement/data_where.c). */
int attr_known(struct inode *i, struct stat *st, double *left, struct belief *b)
{
    struct data_known k;
    struct told told;
    struct location at;
    if (!attr_fresh(i, st, &k, &told, left) || (!is_of(st, &k.version, &told) && !claim_is_here(i->fid)))
        return -EAGAIN;
    int err = claim_where(i->fid, LOOK_STAT, &at);
    if (err)
        return err;
    *left = attr_left(k.looked_ms); /* it may have taken long */
    bool own = at.where == WHERE_HERE; /* parts are lent, and their borrowers were asked */
    if (*left <= 0 || (!own && (!is_of(st, &k.version, &told) || !data_still_known(&k, &at))))
        return -EAGAIN;
    if (own)
        merge_word(st, &at, k.version.ctime_ns);
    *b = belief_of(i, &at);
    remember_known(i, st, &k, moves(i, st));
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
    if (!attr_last(r->inode, &st))
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
        if (!is_of(st, &k.version, &told) || !claim_told_here(i->fid, LOOK_STAT, &at) ||
            !data_still_known(&k, &at))
            return false;
        *b = belief_of(i, &at);
    }
    remember_known(i, st, &k, !own && moves(i, st));
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
    if (getattr_here(req, i)) {
        inode_put(i);
        return;
    }
    struct request *r = request_on(req, i);
    request_on_stall(r, getattr_stalled);
    request_start(r, pool_names, getattr_fn);
}

void attr_ops(struct fuse_lowlevel_ops *ops)
{
    ops->getattr = op_getattr;
}
