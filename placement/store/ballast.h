/* ballast.h - room on the cache's disk that is set aside to be given back at once.
 *
 * A program that writes by kernel I/O does not ask the daemon for room.  A sample
 * shows that the disk runs short, and then the cache gives room back only chunk by chunk.  Removing one file
 * without data gives such writers room before that.
 *
 *   CACHE_DIR/ballast   allocated, never written; made while there is room, gone at the end.  One
 *                       that a killed daemon has left is removed at start
 *
 * It is wanted from the first ballast_want on.  Until it is made (again), its room is *owed*: writers that
 * ask for room must leave that much free (space.c).  Else they would get the room that was given back.
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

/* Sets its size in bytes; later calls change nothing. */
void ballast_want(uint64_t bytes);
/* Makes it, if it is wanted and not there.  After an error (logged) it is not tried again for some seconds,
 * or never again if the file system cannot do it. */
void ballast_make(void);
/* Removes it.  True: it was there, and its room is free now. */
bool ballast_release(void);

uint64_t ballast_size(void); /* bytes that it has or should have; 0: not wanted */
uint64_t ballast_owed(void); /* bytes of these that are not allocated now */

#endif
