/* attr_look.c - a look at a file's attributes: at the PFS, and then, of a file whose latest bytes may be on a node, at its
 * home's word.
 */
#include "fs/attr_look.h"

#include <errno.h>
#include <stdlib.h>

#include "fs/attr.h"
#include "fs/attr_last.h"
#include "fs/known.h"
#include "fs/told_times.h"
#include "placement/claims/claim_give.h"
#include "placement/claims/claim_settled.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"
#include "placement/store/store_read.h"

bool attr_overtaken(const struct statx *stx, const struct location *loc, uint64_t looked_ms)
{
    struct version v = version_of(stx);
    if (loc->where != WHERE_PFS)
        return false;
    if (!loc->known)
        return loc->view && !claim_look_counts(loc, looked_ms);
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
        if (err || was_dropped(i, stx, &loc) || !attr_overtaken(stx, &loc, looked_ms))
            break;
        looked_ms = boot_ms();
        err = attr_stat(i, stx);
        /* this look came after the home's answer, so it counts.  But if the file was removed
         * meanwhile, the PFS may never have had its data */
        if (err || (loc.known > 2 && stx->stx_nlink))
            break;
    }
    attr_tell(i, st, stx, err ? NULL : &loc);
    if (err && S_ISREG(stx->stx_mode))
        st->st_size = (off_t)belief_size_if_lost(i, (uint64_t)st->st_size);
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

/* It was opened without the PFS (fs/known.c), so only its names led to it. */
static bool is_open_by_name(struct inode *i)
{
    struct file *f = S_ISREG(i->type) ? file_find_used(i->fid) : NULL;
    bool by_name = f && pfs_is_open(f) && !pfs_has_descriptor(f);
    if (f)
        file_put(f);
    return by_name;
}

bool attr_is_held(struct inode *i)
{
    return i->gone || is_open_by_name(i);
}

/* No look at the PFS leads to the file any more: what other nodes have changed before that its home or claimant says. */
static void add_what_others_know(struct inode *i, struct stat *st)
{
    struct location loc;
    if (!S_ISREG(i->type) || claim_where(i->fid, LOOK_NONE, &loc) || claim_dropped(&loc))
        return;
    if (attr_is_word(&loc)) {
        attr_merge_word(st, &loc, ns_of(&st->st_ctim));
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
    if (err != -ESTALE || !attr_is_held(i) || !attr_last(i, st))
        return err;
    add_what_others_know(i, st);
    st->st_nlink = 0; /* removed while it is still in use, for example a directory */
    return 0;
}
