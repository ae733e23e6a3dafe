/* flush_status.h - what the flusher says of itself (status.c).  Any thread. */
#ifndef EDDY_FLUSH_FLUSH_STATUS_H
#define EDDY_FLUSH_FLUSH_STATUS_H

#include <stdbool.h>
#include <stdint.h>

struct flush_status {
    const char *policy, *state;
    uint64_t flushed_bytes, pending_bytes, pending_files, failed_files;
    uint64_t low_bytes, high_bytes, full_bytes; /* the marks */
    bool draining;                              /* the high one was reached, the low one not yet */
    uint64_t oldest_ms, age_ms;                 /* of dirty data; --dirty-age */
    uint64_t wait_ms;                           /* this long without I/O is a lull ... */
    bool wait_auto;                             /* ... which is learned */
};
void flush_status(struct flush_status *out);
/* A file that is not on the PFS. */
struct unflushed_file {
    const char *path; /* relative to the root; the caller's */
    uint64_t bytes, since_s; /* that are not there; for how many seconds */
    unsigned tries;
    int error;    /* of the last try, -errno; 0 */
    bool suspect; /* a power loss left it in doubt: it is never written by itself */
    const char *borrower; /* not NULL: the bytes are those that this node has borrowed, and not written (flush_and_leave only) */
};
typedef int unflushed_fn(void *arg, const struct unflushed_file *u);
/* Calls cb for each; ends when it returns other than 0, and returns that. */
int flush_each_unflushed(unflushed_fn *cb, void *arg);

#endif
