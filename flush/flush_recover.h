/* flush_recover.h - what a dead daemon left (conflict.c, recover.c, rescue.c). */
#ifndef EDDY_FLUSH_FLUSH_RECOVER_H
#define EDDY_FLUSH_FLUSH_RECOVER_H

#include "placement/store/file.h"

/* At the start, after claim_recover and before any request is served.  If the PFS's file is not the version
 * on which the unflushed data was based, there is a conflict: the data is written beside it, as
 * NAME.eddy-conflict-NODE, and this is logged. */
int flush_check_recovered(const char *node);
struct flush_conflict {
    const char *path, *beside; /* live as long as the program */
    uint64_t missing;          /* bytes that were only in the version that is gone, or that other nodes have: holes */
};
int flush_each_conflict(int (*cb)(void *arg, const struct flush_conflict *c), void *arg);
/* Of one file that flush_copy_to met. */
struct flush_copy {
    const char *path, *made; /* made: where it was copied to; NULL: nowhere */
    uint64_t missing;        /* bytes that could not be read: holes */
    bool part;               /* other nodes have, or may have, parts of it */
    bool suspect;            /* a power loss left it in doubt: missing is how much of it */
    int err;
};
/* Copies the data that is not on the PFS below another directory (rootfd), where nothing is replaced; the
 * cache directory stays as it is.  Needs only the store.  origin: the PFS is open, and bytes that
 * only the PFS has are read from it.  Calls cb for each file, also for one of which only other nodes have something. */
int flush_copy_to(int rootfd, const char *node, bool origin, void (*cb)(void *arg, const struct flush_copy *c), void *arg);
/* At the start, after claim_recover: queues the dirty files that a dead daemon left; logs how many. */
int flush_recover(void);

#endif
