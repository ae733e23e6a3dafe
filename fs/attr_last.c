/* attr_last.c - what the kernel was told last of a file's attributes (i->attr): the answer while the PFS hangs, and as long as
 * nothing has changed.
 */
#include "fs/attr_last.h"

#include "fs/attr.h"
#include "fs/known.h"
#include "fs/notify.h"
#include "fs/told_times.h"
#include "placement/claims/claim.h"
#include "placement/claims/claim_give.h"
#include "placement/pfs/pfs_fid.h"

bool attr_changed_here_only(struct file *f)
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
        moves = !attr_changed_here_only(f);
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

void attr_remember_known(struct inode *i, const struct stat *st, const struct data_known *k, bool own)
{
    bool moved = !own && moves(i, st);
    lock_take(&i->lock);
    if (i->known.looked_ms == k->looked_ms && i->touched_ms < k->looked_ms)
        set_attr(i, st, moved);
    else
        i->attr_moved_ms = boot_ms();
    lock_drop(&i->lock);
}

/* Lock held.  Not what attr_complete has seen itself, when it had to look again. */
static bool knows_newer(const struct inode *i, const struct stat *st, uint64_t looked_ms)
{
    struct told told = told_times_before(i, &i->known.version);
    bool older = looked_ms < i->known.looked_ms && !told_times_are(st, &i->known.version, &told);
    return i->attr_known && (older || looked_ms <= i->touched_ms);
}

/* Lock held.  A look that began at looked_ms was remembered: not as one from after another node's change, if it began before. */
static void keep_told(struct inode *i, uint64_t looked_ms)
{
    if (looked_ms <= i->told_ms)
        i->told_ms = boot_ms();
}

void attr_remember_look(struct inode *i, const struct stat *st, uint64_t looked_ms)
{
    lock_take(&i->lock);
    bool newer = knows_newer(i, st, looked_ms);
    if (newer && is_other(i, st))
        i->attr_moved_ms = boot_ms();
    lock_drop(&i->lock);
    if (newer)
        return;
    attr_remember(i, st);
    lock_take(&i->lock);
    keep_told(i, looked_ms);
    lock_drop(&i->lock);
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
        keep_told(i, looked_ms);
    }
    lock_drop(&i->lock);
}

static void flushed(struct inode *i, struct file *f, const struct statx *stx, uint64_t looked_ms)
{
    struct stat st;
    struct location word;
    attr_merge(&st, stx, NULL);
    if (!claim_here_of(f, &word) || !attr_changed_here_only(f))
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
    attr_merge_word(st, &loc, pfs_ctime_ns);
    return true;
}

bool attr_stands(struct inode *i, struct stat *st)
{
    lock_take(&i->lock);
    bool stands = i->fixed || i->attr_ms > i->told_ms;
    lock_drop(&i->lock);
    return (stands || claim_is_here(i->fid)) && attr_last(i, st);
}

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
