/* datafile_int.h - private to placement/store/datafile*.c: the descriptors that are open, and names. */
#ifndef EDDY_PLACEMENT_STORE_DATAFILE_INT_H
#define EDDY_PLACEMENT_STORE_DATAFILE_INT_H

#include "placement/store/file.h"

#define DATAFILE_NAME_BYTES 40

extern struct datafiles {
    struct lock lock; /* RANK_LEAF: the list; data_fd, data_replaced, open_* of all files */
    int dirfd;
    struct file *open, **open_last;
    unsigned nopen, max_open;
} datafiles;

/* XX/FID, below dirfd. */
void datafile_name(struct fid fid, char name[DATAFILE_NAME_BYTES]);
/* datafile_put after something was stored into it, or may have been. */
void datafile_put_stored(struct file *f);

/* ---- datafile_sync.c ---- */
void datafile_sync_start(void);
/* Its name is about to be made. */
void datafile_naming(struct file *f);
/* With the lock: its descriptor is about to be closed. */
void datafile_closing(struct file *f);

/* With the lock: takes the descriptor away from f; to be closed without it.  -ENOENT: none is open;
 * -EBUSY: it is in use. */
int datafile_take_away(struct file *f);

#endif
