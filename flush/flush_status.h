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
/* Every dirty file: cb(path, bytes, since (s), tries, error, suspect). */
int flush_each_unflushed(int (*cb)(void *arg, const char *path, uint64_t bytes, uint64_t since_s,
                                   unsigned tries, int error, bool suspect),
                         void *arg);

#endif
