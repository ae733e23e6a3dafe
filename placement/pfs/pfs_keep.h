/* pfs_keep.h - a file's descriptor of the PFS: borrowed, replaced, kept (pfs_keep.c).  Private to the pfs_*.c
 * files. */
#ifndef EDDY_PLACEMENT_PFS_PFS_KEEP_H
#define EDDY_PLACEMENT_PFS_PFS_KEEP_H

#include "placement/store/file.h"

/* The file's descriptor: -ENOENT if it has none (that can write). */
int pfs_borrow_fd(struct file *f, bool write, int *fd);
void pfs_return_fd(struct file *f);
/* fd becomes the file's descriptor unless it has one as good; taken over in any case. */
void pfs_install(struct file *f, int fd, bool writable);
/* Is its descriptor needed after the last close?  For a flush, or because it is claimed and has no name. */
bool pfs_is_needed(struct file *f);
/* It is not open here any more: keeps its descriptor, within the budget. */
void pfs_keep(struct file *f);
bool pfs_keeps_more(void); /* within the budget */
/* It is open again: true if its descriptor was kept; the caller gets the reference for that. */
bool pfs_unkeep(struct file *f);
void pfs_close_fd(int fd); /* a PFS call; -1: nothing */

#endif
