/* pfs_kind.c - the kind of file system that the PFS directory is on, from statfs. */
#include <stdatomic.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include "placement/pfs/pfs_file.h"

/* Not in every linux/magic.h. */
#define LUSTRE_FS 0x0BD00BD0
#define XFS_FS    0x58465342

/* One mount has one PFS, so this is asked once.  0: not known. */
static uint32_t kind_of(int fd)
{
    static _Atomic uint32_t known;
    uint32_t kind = atomic_load_explicit(&known, memory_order_relaxed);
    struct statfs fs;
    if (!kind && !fstatfs(fd, &fs)) {
        kind = (uint32_t)fs.f_type;
        atomic_store_explicit(&known, kind, memory_order_relaxed);
    }
    return kind;
}

bool pfs_is_lustre(int fd)
{
    return kind_of(fd) == LUSTRE_FS;
}

bool pfs_is_local(int fd)
{
    switch (kind_of(fd)) {
    case EXT4_SUPER_MAGIC:
    case XFS_FS:
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
    case TMPFS_MAGIC:
        return true;
    default:
        return false;
    }
}
