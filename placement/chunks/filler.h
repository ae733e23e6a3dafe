/* filler.h - the threads that write fetched chunks into the store, behind those who read them.
 *
 * They wait for no other node and for no PFS.  A file has always the same thread: a second writer of
 * a data file would only spin for the kernel's lock of it, on a processor that the readers need.
 */
#ifndef EDDY_PLACEMENT_CHUNKS_FILLER_H
#define EDDY_PLACEMENT_CHUNKS_FILLER_H

#include "placement/pfs/pfs_fid.h"

void filler_start(void);
void filler_stop(void); /* runs what was submitted; after it nobody submits */
/* Runs fn(arg) in the file's thread, in the order of submission.  Any thread, between start and
 * stop. */
void filler_submit(struct fid fid, void (*fn)(void *arg), void *arg);

#endif
