/* notify.h - telling the kernel what it may not believe any more: one thread, no locks held (notify.c). */
#ifndef EDDY_FS_NOTIFY_H
#define EDDY_FS_NOTIFY_H

#include <stdint.h>

void notify_start(void);
void notify_stop(void);
/* pages (and attributes) stale; not waited for */
void notify_data(uint64_t nodeid, int64_t off, int64_t len);
/* ... waits until the kernel dropped them; not from a request's own FUSE thread */
void notify_data_wait(uint64_t nodeid);

void notify_attr_now(uint64_t nodeid); /* attributes only: safe inside OPEN */
void notify_entry(uint64_t parent, const char *name);

#endif
