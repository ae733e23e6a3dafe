/* fid.c - a file's identity and version, made from a statx answer of the PFS.
 *
 * Inode numbers are used again by most file systems; the birth time tells the generations apart.
 * Where statx has no birth time (old NFS, some FUSE file systems) the inode number stands alone.
 */
#include "placement/pfs/fid.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

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
    struct fid f = {h.high64, h.low64};
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

bool version_racy(const struct version *v, int64_t read_at)
{
    bool whole_seconds = v->mtime_ns % 1000000000 == 0 && v->ctime_ns % 1000000000 == 0;
    int64_t grain = whole_seconds ? 1000000000 : 10000000;
    return v->ctime_ns > read_at - grain; /* also a ctime in the future: clocks differ */
}

bool version_is_same(const struct version *base, const struct version *v,
                     const struct version *same_as)
{
    if (base->size != v->size || same_as->size != v->size)
        return false;
    if (base->ctime_ns < same_as->ctime_ns || base->ctime_ns > v->ctime_ns)
        return false;
    return base->mtime_ns == v->mtime_ns || base->mtime_ns == same_as->mtime_ns;
}

char *fid_text(struct fid f, char buf[FID_TEXT])
{
    snprintf(buf, FID_TEXT, "%016llx%016llx", (unsigned long long)f.hi, (unsigned long long)f.lo);
    return buf;
}

int fid_parse(const char *text, struct fid *out)
{
    uint64_t half[2] = {0, 0};
    if (strlen(text) != FID_TEXT - 1)
        return -EINVAL;
    for (int i = 0; i < FID_TEXT - 1; i++) {
        int d = hex_digit(text[i]);
        if (d < 0)
            return -EINVAL;
        half[i / 16] = half[i / 16] << 4 | (unsigned)d;
    }
    *out = (struct fid){half[0], half[1]};
    return 0;
}
