/* datafile_int.h - private to placement/store/datafile*.c: the descriptors that are open, and names. */
#ifndef EDDY_PLACEMENT_STORE_DATAFILE_INT_H
#define EDDY_PLACEMENT_STORE_DATAFILE_INT_H

#include "placement/store/file.h"


#define DATAFILE_NAME_BYTES 40

extern struct datafiles {
    struct lock lock; /* RANK_LEAF: the list; data_fd, data_users, idle_* of all files */
    int dirfd;
    struct file *idle, **idle_last;
    unsigned nidle, max_idle;
} datafiles;

/* XX/FID, below dirfd. */
void datafile_name(struct fid fid, char name[DATAFILE_NAME_BYTES]);
/* With the lock: takes the descriptor away from f; to be closed without it.  -1: none was open. */
int datafile_take_away(struct file *f);

#endif
