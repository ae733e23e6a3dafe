/* handle_int.h - what the files of handle.h share.  Each uses those before it:
 *
 *     handle_mode.c  what of an open the kernel does by itself
 *     handle.c       the list of handles; release
 *     handle_open.c  open, and create's second half
 *     handle_sync.c  flush, fsync
 */
#ifndef EDDY_FS_HANDLE_INT_H
#define EDDY_FS_HANDLE_INT_H

#include <fcntl.h>

#include "fs/handle.h"

/* O_RDONLY | O_TRUNC truncates, too: the kernel has checked that the caller may write. */
static inline bool open_writes(int flags)
{
    return (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;
}

/* ---- handle_mode.c ---- */

/* Sets the mode of this open of *at, and in fi what the kernel does by itself and whether its pages are
 * good; perm: the file's mode; task: opens it.  *ask_attr: it must ask for the attributes again.  -ESTALE:
 * no mode can be given to this node id.  Blocking. */
int handle_choose_mode(struct handle *h, pid_t task, mode_t perm, struct fuse_file_info *fi,
                       struct location *at, bool *ask_attr);
/* Until handle_end_promise, or the end of a handle with IO_PROMISED, an open of any kind by the task that it
 * is promised to finds a mode.  -ESTALE: there are opens already that not every kind goes with, and the node
 * id is retired. */
int handle_promise(struct inode *i);
/* An open of i is about to end with ESTALE, as a name of it has gone.  The kernel tries once more, and if it comes by a
 * descriptor, it comes with this node id: then nothing that is open may be in the way of that (retired: a name leads to another
 * one). */
void handle_may_come_by_descriptor(struct inode *i);
void handle_end_promise(struct inode *i);
/* Its end, if it is not IO_NONE; gives the data file back that the kernel uses. */
void handle_leave_mode(struct handle *h);

/* ---- handle.c ---- */

void handle_add(struct handle *h); /* to the list; any thread */
void handle_put(struct handle *h); /* gives a reference back; NULL: nothing.  Any thread */

#endif
