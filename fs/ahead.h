/* ahead.h - looks ahead at the files of a directory (ahead.c). */
#ifndef EDDY_FS_AHEAD_H
#define EDDY_FS_AHEAD_H

#include "fs/inode.h"

void ahead_start(void);
void ahead_stop(void); /* waits until none is under way; before inode_stop */
/* False: nothing was looked at ahead here lately, and nothing will be, as the PFS is quick. */
bool ahead_may_answer(const struct inode *dir);
/* The regular file that the kernel knows by this name, referenced, or NULL; *left: for how many seconds the
 * name may still be told, <= 0: it must be looked at. */
struct inode *ahead_find(struct inode *dir, const char *name, double *left);
/* An application looks at such a file of dir; helped: a look ahead has answered. */
void ahead_asked(struct inode *dir, bool helped);

#endif
