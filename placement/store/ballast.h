/* ballast.h - room on the cache's disk that is set aside to be given back at once.
 *
 * Who writes through the kernel (FUSE passthrough) asks nobody for room: that the disk runs short
 * is seen when it is sampled, and what leaves the cache then leaves chunk by chunk.  Removing one
 * file that holds nothing gives such writers room before that.
 *
 *   CACHE_DIR/ballast   allocated, never written; made while there is room, gone at the end.  One
 *                       that a killed daemon has left is removed at start
 *
 * Wanted from the first ballast_want on.  Until it is made (again), its room is *owed*: who asks
 * for room must leave that much alone (space.c), or what was given back would go to them.
 *
 * Any thread; takes no lock but its own (RANK_LEAF), and does disk I/O: no lock of RANK_SPACE or
 * further in may be held, but for the two numbers.
 */
#ifndef EDDY_PLACEMENT_STORE_BALLAST_H
#define EDDY_PLACEMENT_STORE_BALLAST_H

#include <stdbool.h>
#include <stdint.h>

void ballast_start(int dirfd);
void ballast_stop(void);

/* From now on it is to have so many bytes; later calls change nothing. */
void ballast_want(uint64_t bytes);
/* Makes it, if it is wanted and not there.  After an error (logged) not again for some seconds, or
 * never again where the file system can not do it. */
void ballast_make(void);
/* True: it was there, and its room is free now. */
bool ballast_release(void);

uint64_t ballast_size(void); /* bytes that it has or is to have; 0: not wanted */
uint64_t ballast_owed(void); /* bytes of these that are not allocated now */

#endif
