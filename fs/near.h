/* near.h - hinted files that a reader opens next are looked up before it does (near.c). */
#ifndef EDDY_FS_NEAR_H
#define EDDY_FS_NEAR_H

void near_start(void);
void near_stop(void); /* waits until no look is under way; before inode_stop.  Blocking */

#endif
