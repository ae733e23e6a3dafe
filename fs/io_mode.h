/* io_mode.h - which I/O mode an open gets, decided in one place under the inode's lock (io_mode.c). */
#ifndef EDDY_FS_IO_MODE_H
#define EDDY_FS_IO_MODE_H

#include "fs/handle.h"

/* What of an open the kernel may serve from the data file. */
enum kernel_part {
    KERNEL_NOTHING,
    KERNEL_MAPS, /* its mappings alone; only beside opens that have kernel I/O already */
    KERNEL_ALL,
};

/* Called with i->lock, all of them. */

/* may_cache: the kernel may keep bytes (data_may_cache); part: what can be had, with the same data file as that
 * of the opens that have kernel I/O; promised: one mode_promise was made to this task. */
enum io_mode mode_enter(struct inode *i, int flags, bool may_cache, enum kernel_part part,
                        bool promised);
/* Counted as IO_PROMISED: until mode_leave an open of any kind by one task finds a mode.  False: not beside
 * the opens that there are. */
bool mode_promise(struct inode *i);
void mode_leave(struct inode *i, int flags, enum io_mode m);
/* An open with these flags: does the kernel put its writes, which the daemon makes, at the end? */
bool mode_appends(int flags, enum io_mode m);
/* Would it be given if it can be had? */
bool mode_may_kernel_io(const struct inode *i, enum kernel_part part, bool promised);
bool mode_has_kernel_io(const struct inode *i); /* has any open now? */

#endif
