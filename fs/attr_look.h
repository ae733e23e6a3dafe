/* attr_look.h - what a look at a file finds (attr_look.c). */
#ifndef EDDY_FS_ATTR_LOOK_H
#define EDDY_FS_ATTR_LOOK_H

#include "fs/belief.h"
#include "fs/inode.h"
#include "placement/claims/claim.h"

/* Asks the PFS's statx's fid's home where needed (regular files only) and merges. Blocking.  The
 * look at the PFS began at looked_ms (boot_ms) or later.
 * On error (-EIO: the latest bytes are lost until a node returns) *st is filled with what the PFS
 * has.  *b: whether the kernel may believe it. */
int attr_complete(struct inode *i, struct statx *stx, uint64_t looked_ms, struct stat *st,
                  struct belief *b);
/* Between the look at the PFS, which began at looked_ms (boot_ms), and the home's answer a claimant flushed and gave its claim
 * back, or may have: look again. */
bool attr_overtaken(const struct statx *stx, const struct location *loc, uint64_t looked_ms);
/* Fresh statx of a known inode: by an open descriptor, else by any of its names.  -ESTALE: it is
 * not where it was. Blocking. */
int attr_stat(struct inode *i, struct statx *stx);
/* After attr_stat's -ESTALE: the inode is in use without a name, so it goes on with what is last known of it
 * (attr_last). False: whoever uses it must be told -ESTALE. */
bool attr_is_held(struct inode *i);
/* Both: what getattr answers; *looked_ms: boot_ms before the look.  Blocking. */
int attr_get(struct inode *i, struct stat *st, uint64_t *looked_ms, struct belief *b);

#endif
