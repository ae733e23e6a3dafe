/* stores.h - what processes store into a shadow (placement/store/shadow.h) by mappings of an open becomes the file's.
 *
 * The kernel tells nobody of such stores.  So they are looked for: five times a second, as long as a process may store; and
 * before a read, a write or a stat of the file by this node, an fsync, and a close of such an open is answered.
 */
#ifndef EDDY_FS_STORES_H
#define EDDY_FS_STORES_H

#include "fs/handle.h"

/* The processes that have h may store from now on, until no mapping of it is left, also if it is closed before. */
void stores_add(struct handle *h);
/* May there be such an open of any file; of this one?  Any thread, no lock. */
bool stores_any(void);
bool stores_any_of(struct file *f);
/* What was stored into f's shadow becomes the file's.  0, or -errno: it was not possible for some of it, which is tried again
 * later.  Blocking; a pool thread that holds no lock. */
int stores_take(struct file *f);
int stores_take_of(struct fid fid);
/* The same of all files, for the last time: the mount has ended.  Blocking; before file_close_all. */
void stores_end(void);

#endif
