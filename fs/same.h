/* same.h - this node's operations that move a file's ctime, but not its bytes. */
#ifndef EDDY_FS_SAME_H
#define EDDY_FS_SAME_H

#include "fs/inode.h"

/* Our own name and attribute operations move a file's ctime but not its data: a stat before and one
 * after, published, so that nobody's cached data becomes stale by a chmod or a mv.  Always, not
 * only for files that are cached here: other nodes may have them, and the kernel's look-up just
 * before has brought the attributes to the PFS's client. */
struct same {
    bool on, times; /* times: mtime is meant to change too */
    bool own;       /* ... and only the store's own base tells whether somebody wrote */
    struct fid fid;
    struct version before;
};
/* nothing for what is no regular file */
void same_begin(struct same *s, const struct statx *before);
void same_end(struct same *s, const struct statx *after);

#endif
