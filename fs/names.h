/* names.h - names that were found or made (names.c). */
#ifndef EDDY_FS_NAMES_H
#define EDDY_FS_NAMES_H

#include "fs/inode.h"
#include "fs/request.h"

/* The inode of what was found under this name: as inode_found. */
struct inode *names_found(struct inode *parent, const char *name, const struct statx *stx);
/* r->name of a new or changed name.  -ENAMETOOLONG; -EPERM: the hidden name in the root. */
int names_take(char to[REQUEST_NAME_MAX], const struct inode *parent, const char *name);

#endif
