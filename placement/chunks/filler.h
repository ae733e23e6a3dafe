/* filler.h - the threads that write fetched chunks into the store, after the readers have them.
 *
 * They wait neither for other nodes nor for the PFS.  A file always has the same thread: a second thread that
 * writes its data file would only spin on the kernel's lock of the file, on a processor that the readers
 * need.
 */
#ifndef EDDY_PLACEMENT_CHUNKS_FILLER_H
#define EDDY_PLACEMENT_CHUNKS_FILLER_H

#include "placement/pfs/pfs_fid.h"

void filler_start(void);
void filler_stop(void); /* runs all submitted calls first; no thread may submit one after it */
/* Runs fn(arg) in the file's thread, in the order of submission.  Any thread, between start and
 * stop. */
void filler_submit(struct fid fid, void (*fn)(void *arg), void *arg);

#endif
