/* space.h - how much the cache may hold; what leaves when there is no room: eviction.h.
 *
 * Used room is the pages with bytes in data files, the slabs, and the ballast (ballast.h).  It is bounded by
 * --cache-size, and by a reserve of free space on the disk (5 %, at most 1 GiB), whatever else fills the
 * disk.  A reserve of its inodes (5 %, at most 256) stays free in the same way.
 */
#ifndef EDDY_PLACEMENT_STORE_SPACE_H
#define EDDY_PLACEMENT_STORE_SPACE_H

#include <sys/types.h>

#include "placement/store/store_open.h"

struct space_config {
    uint64_t size;    /* --cache-size; 0: percent */
    unsigned percent; /* of the file system; 0: 80 % of what is free, divided by the user's daemons
                         there */
    int dirfd;
    dev_t dev;
    uint64_t node_id;
};
void space_start(const struct space_config *c);
void space_stop(void);
/* The cache's size for the node's weight in the session, in bytes.  It depends only on this node's
 * options and disk: by the default rule it is the room of all of the user's daemons there. */
uint64_t space_meant(void);
uint64_t space_slab_bytes(void); /* size for a new slab: clamp(limit / 64) */

/* Sets room aside for this many bytes and chunk records; evicts chunks for it.  Takes other files' locks:
 * only locks of RANK_CLAIM or outer ones may be held.  SPACE_DISK: if nothing more may go.  -ENOSPC. */
int space_reserve(uint64_t bytes, uint32_t chunk_slots, enum space_limit limit);
/* Gives back what space_reserve set aside: bytes, which count as used by now (space_count) or were not
 * needed, and slots that were not taken. */
void space_return(uint64_t bytes, uint32_t chunk_slots);
/* Before a data file is made: makes sure that the disk has an inode for it, beside a reserve; evicts files for
 * that.  As space_reserve, about locks and SPACE_DISK.  -ENOSPC. */
int space_reserve_inode(enum space_limit limit);
/* The disk had none in spite of that: evicts a file.  False: none may go. */
bool space_more_inodes(enum space_limit limit);
int space_reserve_files(
    uint32_t slots); /* file records, and pieces of long paths; state_unreserve gives back */

void space_count(int64_t used, int64_t dirty); /* bytes; any lock */

/* Evicts until a tenth of the cache, and the same amount on the disk, is free, or nothing may leave: for
 * writers that do not ask for room. */
void space_keep_free(void);
/* The same, and gives the ballast back when the disk is short of room, or makes it again.  Called at each
 * sample while there are such writers. */
void space_watch(void);
/* May `size` more bytes, in addition to `anchored`, be kept from eviction while they are open?  write: will
 * they also be written by writers that do not ask for room? */
bool space_may_anchor(uint64_t anchored, uint64_t size, bool write);
void space_usage(struct store_usage *out);

#endif
