/* flush_recover.h - what a dead daemon left (conflict.c, recover.c, rescue.c). */
#ifndef EDDY_FLUSH_FLUSH_RECOVER_H
#define EDDY_FLUSH_FLUSH_RECOVER_H

#include "placement/store/file.h"

/* At start, after claim_recover and before anybody is served: a file that the PFS has differently
 * now than it was based on is a conflict: its data is written beside it, as
 * NAME.eddy-conflict-NODE, and said. */
int flush_check_recovered(const char *node);
struct flush_conflict {
    const char *path, *beside; /* live as long as the program */
    uint64_t missing;          /* bytes that were only in the version that is gone: holes */
};
int flush_each_conflict(int (*cb)(void *arg, const struct flush_conflict *c), void *arg);
/* Copies what is not on the PFS below another directory (rootfd), where nothing is replaced; the
 * cache directory stays as it is.  Needs the store alone; origin: the PFS is open, and bytes that
 * only it has are read from there.  cb for each file; missing: bytes that could not be had. */
int flush_copy_to(int rootfd, const char *node, bool origin,
                  void (*cb)(void *arg, const char *path, const char *made, uint64_t missing,
                             int err),
                  void *arg);
/* At start, after claim_recover: queues what a dead daemon left; logs how much. */
int flush_recover(void);

#endif
