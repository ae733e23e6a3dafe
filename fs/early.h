/* early.h - files that are opened when they are looked up (early.c). */
#ifndef EDDY_FS_EARLY_H
#define EDDY_FS_EARLY_H

#include "fs/request.h"

struct handle;

void early_start(void);
void early_stop(void); /* after the last request, and before file_close_all.  Blocking */
/* A call of this task (a thread's id) with i ended with ESTALE: the kernel looks its name up again, once. */
void early_doubt(struct inode *i, pid_t task);
/* Has a call of this task ended so a moment ago?  Then what it looks up must be fit for any open. */
bool early_is_again(pid_t task);
/* That, or a call of any task with a file of this directory. */
bool early_is_wanted(const struct inode *dir, pid_t task);
/* Keeps a handle of i that the kernel does not know of until the kernel's open of i for this task has come,
 * or another file is kept for the task; then closes it.  Blocking. */
void early_keep(struct inode *i, pid_t task, struct handle *h, void (*close)(struct handle *h));
bool early_is_open(const struct inode *i); /* for any task */
bool early_is_for(const struct inode *i, pid_t task);
/* The kernel's open of i for this task has come.  Blocking. */
void early_end(const struct inode *i, pid_t task);

#endif
