/* pfs_fid.c - a file's identity and version, made from a statx answer of the PFS.
 *
 * Most file systems use inode numbers again; the birth time distinguishes the generations.
 * If statx has no birth time (old NFS, some FUSE file systems), the fid is made from the inode number alone.
 */
#include "placement/pfs/pfs_fid.h"

#include <errno.h>
#include <fcntl.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static int64_t stx_ns(const struct statx_timestamp *t)
{
    return ns_of_time(t->tv_sec, t->tv_nsec);
}

static void put_le64(unsigned char *p, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        p[i] = (unsigned char)(v >> (8 * i));
}

struct fid fid_of(const struct statx *stx)
{
    unsigned char in[16];
    int64_t born = stx->stx_mask & STATX_BTIME ? stx_ns(&stx->stx_btime) : 0;
    put_le64(in, stx->stx_ino);
    put_le64(in + 8, (uint64_t)born);
    XXH128_hash_t h = XXH3_128bits(in, sizeof(in));
    struct fid f = {h.high64 & ~FID_LOAN, h.low64};
    if (fid_is_zero(f)) /* zero means "no file" everywhere */
        f.lo = 1;
    return f;
}

struct version version_of(const struct statx *stx)
{
    return (struct version){stx->stx_size, stx_ns(&stx->stx_mtime), stx_ns(&stx->stx_ctime)};
}

int fid_of_fd(int fd, struct fid *out)
{
    struct statx stx;
    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, PFS_STATX_MASK, &stx) < 0)
        return -errno;
    *out = fid_of(&stx);
    return 0;
}
