/* pfs_dir.h - directories on the PFS, entry by entry; pfs.h has the rules of this room. */
#ifndef EDDY_PLACEMENT_PFS_PFS_DIR_H
#define EDDY_PLACEMENT_PFS_PFS_DIR_H

#include "placement/pfs/pfs_fid.h"
#include "placement/pfs/pfs_node.h"

#include <sys/types.h>

struct pfs_dir;
/* renamed: if its name leads elsewhere, opens the directory that it was, wherever that is now; else -ESTALE.
 * */
int pfs_opendir(struct pfs_node *n, bool renamed, struct pfs_dir **out);
/* The next entry at or after `offset` (0 = first); offsets are the PFS's cookies.  0: *e is valid until
 * the next call; -ENODATA: the end.  The hidden name is left out. */
struct pfs_dirent {
    const char *name;
    uint64_t ino;
    unsigned char type;
    int64_t next;
};
int pfs_readdir(struct pfs_dir *d, int64_t offset, struct pfs_dirent *e);
int pfs_stat_at(struct pfs_dir *d, const char *name, struct statx *stx);
/* Which of the n extended attributes in `wanted` (a bit for each) the file fid, by this name, does not have.
 * */
unsigned pfs_absent_at(struct pfs_dir *d, const char *name, struct fid fid,
                       const char *const *attributes, unsigned n, unsigned wanted);
int pfs_fsyncdir(struct pfs_dir *d);
void pfs_closedir(struct pfs_dir *d);

#endif
