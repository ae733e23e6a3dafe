/* pfs_layout.c - the best unit for writing a file's bytes to the PFS: Lustre's stripe size, else
 * st_blksize.
 *
 * Lustre's st_blksize does not show the file's own stripes; those are in its extended attribute
 * lustre.lov, struct lov_user_md_v1 or _v3 of lustre_user.h, which begin alike, or lov_comp_md_v1
 * with several of them:
 *
 *     v1, v3  0 magic  4 pattern  8 object id  24 stripe_size  28 ...
 *     comp    0 magic  4 size ... 14 entry_count ... 32 entries of 48 bytes, each with 24 offset, 28 size
 *
 * all little-endian on the hosts that eddyfs runs on.
 */
#include <string.h>
#include <sys/xattr.h>

#include "placement/pfs/pfs_file.h"

#define MAGIC_V1     0x0BD10BD0u
#define MAGIC_V3     0x0BD30BD0u
#define MAGIC_COMP   0x0BD60BD0u
#define COMP_HEAD    32
#define COMP_ENTRY   48
#define LAYOUT_BYTES 4096 /* room for its first components */

static uint32_t u32_at(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static uint64_t plain_stripe(const uint8_t *p, size_t len)
{
    if (len < 28 || (u32_at(p) != MAGIC_V1 && u32_at(p) != MAGIC_V3))
        return 0;
    return u32_at(p + 24);
}

uint64_t pfs_lustre_stripe(const void *layout, size_t len)
{
    const uint8_t *p = layout;
    uint64_t most = 0;
    if (len < 4 || u32_at(p) != MAGIC_COMP)
        return plain_stripe(p, len);
    for (size_t at = COMP_HEAD; len >= COMP_HEAD && at + COMP_ENTRY <= len; at += COMP_ENTRY) {
        if ((at - COMP_HEAD) / COMP_ENTRY >= (u32_at(p + 12) >> 16)) /* entry_count */
            break;
        uint32_t offset = u32_at(p + at + 24);
        if (offset < len)
            most = MAX(most, plain_stripe(p + offset, len - offset));
    }
    return most;
}

uint64_t pfs_unit_of(int fd, uint32_t blksize)
{
    uint8_t layout[LAYOUT_BYTES];
    if (!pfs_is_lustre(fd))
        return blksize;
    ssize_t len = fgetxattr(fd, "lustre.lov", layout, sizeof(layout));
    uint64_t stripe = len > 0 ? pfs_lustre_stripe(layout, (size_t)len) : 0;
    return stripe ? stripe : blksize;
}
