/* attr.c - a file's attributes: the PFS's, with size and times from the claimant.
 *
 * Mode, owner, link count and inode number are always the PFS's.  If a file has unflushed data, its size,
 * mtime, ctime and blocks are the claimant's (docs/protocol.md, rules 8 and 12).
 * Which times are told of what is on the PFS: told_times.c.  The looks: attr_look.c.
 */
#include "fs/attr.h"

#include <string.h>
#include <sys/sysmacros.h>

#include "fs/told_times.h"
#include "placement/pfs/pfs_fid.h"

#define BLOCK_SIZE_MIN 4096

/* ---- from statx and location to stat ---- */

static struct timespec time_of(const struct statx_timestamp *t)
{
    return (struct timespec){.tv_sec = t->tv_sec, .tv_nsec = t->tv_nsec};
}

void attr_merge_word(struct stat *st, const struct location *loc, int64_t pfs_ctime_ns)
{
    bool moved = pfs_ctime_ns > loc->stands_ns;
    st->st_size = (off_t)loc->size;
    st->st_mtim = time_of_ns(loc->mtime_ns);
    st->st_ctim = time_of_ns(moved ? MAX(loc->ctime_ns, pfs_ctime_ns) : loc->ctime_ns);
    st->st_blocks = (blkcnt_t)loc->blocks;
    if (!st->st_blocks && st->st_size)
        st->st_blocks = 1;
}

bool attr_is_word(const struct location *loc)
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
    if (S_ISREG(st->st_mode) && attr_is_word(loc))
        attr_merge_word(st, loc, ns_of(&st->st_ctim));
}

/* ---- what is told ---- */

void attr_tell(struct inode *i, struct stat *st, const struct statx *stx,
               const struct location *loc)
{
    attr_merge(st, stx, loc);
    if (!S_ISREG(st->st_mode) || i->fixed)
        return;
    struct version v = version_of(stx);
    if (attr_is_word(loc))
        told_times_word(i, st, &v);
    else
        told_times_pfs(i, st, &v, loc);
}
