/* shared.h - files that several nodes write at the same time, each its parts (shared.c). */
#ifndef EDDY_FS_SHARED_H
#define EDDY_FS_SHARED_H

#include "fs/handle.h"

/* To be called for an open for writing, before its mode is chosen: true: no kernel I/O and no cached pages for it, so that
 * parts of the file can be lent (placement/lend.h).  Blocking: asks the PFS for the directory's policy. */
bool shared_expected(struct handle *h);
/* The open ends: its directory remembers whether other nodes wrote the file, too. */
void shared_learn(struct handle *h);

#endif
