/* io.h - what other nodes' writes do to this mount's pages (io.c). */
#ifndef EDDY_FS_IO_H
#define EDDY_FS_IO_H

#include "transport/base.h"

/* Another node has changed bytes of a file whose claim is here: this mount's pages [off, off + len) are
 * stale; off UINT64_MAX: its attributes alone.  Any thread, no lock held. */
void io_carried(struct fid fid, uint64_t off, uint64_t len);

#endif
