/* early.h - files that are opened when they are looked up (early.c). */
#ifndef EDDY_FS_EARLY_H
#define EDDY_FS_EARLY_H

#include "fs/request.h"

struct handle;

void early_start(void);
void early_stop(void); /* after the last request, and before file_close_all.  Blocking */
/* An open of i ended with ESTALE: the kernel looks its name up again, once. */
void early_doubt(struct inode *i);
/* Has an open of a file of this directory ended so a moment ago? */
bool early_is_wanted(const struct inode *dir);
/* Keeps a handle of i that the kernel does not know of until the kernel's open of i has come, then closes it.
 * Blocking. */
void early_keep(struct inode *i, struct handle *h, void (*close)(struct handle *h));
bool early_is_open(const struct inode *i);
/* The kernel's open of i has come.  Blocking. */
void early_end(const struct inode *i);

#endif
