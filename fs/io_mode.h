/* io_mode.h - which I/O mode an open gets, decided in one place under the inode's lock (io_mode.c). */
#ifndef EDDY_FS_IO_MODE_H
#define EDDY_FS_IO_MODE_H

#include "fs/handle.h"

/* i->lock held.  here: the latest bytes are this node's or the PFS's; can_passthrough: passthrough can be
 * had, with the same data file as that of the opens that have it. */
enum io_mode mode_enter(struct inode *i, int flags, bool here, bool can_passthrough);
void mode_leave(struct inode *i, enum io_mode m);
bool mode_may_passthrough(const struct inode *i); /* would it be given if it can be had? */

#endif
