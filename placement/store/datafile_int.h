/* datafile_int.h - private to placement/store/datafile*.c: the open descriptors, and the names. */
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
/* As datafile_put, after something was stored into the file, or may have been. */
void datafile_put_stored(struct file *f);

/* ---- datafile_sync.c ---- */
void datafile_sync_start(void);
/* The file's name is about to be made. */
void datafile_naming(struct file *f);
/* With the lock: its descriptor is about to be closed. */
void datafile_closing(struct file *f);

/* With the lock: takes the descriptor away from f, and returns it.  The caller closes it without the lock.
 * -ENOENT: none is open; -EBUSY: it is in use. */
int datafile_take_away(struct file *f);

#endif
