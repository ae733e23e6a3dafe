/* filler.h - the threads that write fetched chunks into the store, after the readers have them.
 *
 * They wait for no other node and not for the PFS.  A file always has the same thread: a second writer of
 * a data file would only spin on the kernel's lock of the file, on a processor that the readers need.
 */
#ifndef EDDY_PLACEMENT_CHUNKS_FILLER_H
#define EDDY_PLACEMENT_CHUNKS_FILLER_H

#include "placement/pfs/pfs_fid.h"

void filler_start(void);
void filler_stop(void); /* runs all submitted calls; no thread may submit after it */
/* Runs fn(arg) in the file's thread, in the order of submission.  Any thread, between start and
 * stop. */
void filler_submit(struct fid fid, void (*fn)(void *arg), void *arg);

#endif
