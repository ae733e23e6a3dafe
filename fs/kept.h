/* kept.h - whether the kernel's pages stay at an open; i->lock held (kept.c). */
#ifndef EDDY_FS_KEPT_H
#define EDDY_FS_KEPT_H

#include "fs/inode.h"

/* For a cached open that is counted already: true = they hold what it is to see.  *turn: for
 * kept_asked. */
bool kept_open(struct inode *i, const struct data_tag *tag, unsigned *turn);
/* The kernel has taken the answer to an open of that turn: it asks for bytes by it. */
void kept_asked(struct inode *i, unsigned turn);
/* What becomes of the pages is not known: passthrough. */
void kept_lose(struct inode *i);

#endif
