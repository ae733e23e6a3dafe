/* waits.h - where a thread has waited: for the log of slow operations.
 *
 * Each thread adds to numbers of its own; who runs an operation in it takes them (waits_take) before and after.
 */
#ifndef EDDY_TRANSPORT_WAITS_H
#define EDDY_TRANSPORT_WAITS_H

#include "transport/base.h"
#include "transport/lock.h"

/* W(NAME, what it is called) */
#define WAITS_FOR(W)                                                                               \
    W(PFS, "the PFS")                                                                              \
    W(NODES, "other nodes")                                                                        \
    W(CHUNK, "chunks from nodes or the PFS")                                                       \
    W(ROOM, "room in the cache")                                                                   \
    W(DISK, "the node's disk")

enum wait_for {
#define X(NAME, text) WAIT_##NAME,
    WAITS_FOR(X)
#undef X
        WAIT_KINDS
};

struct waits {
    uint64_t ns[WAIT_KINDS];
};

extern _Thread_local struct waits waits_here;
extern const char *const wait_names[WAIT_KINDS];

/* Around what may wait: uint64_t began = wait_begin(); ... wait_end(WAIT_PFS, began). */
static inline uint64_t wait_begin(void)
{
    return boot_ns();
}

static inline void wait_end(enum wait_for kind, uint64_t began_ns)
{
    waits_here.ns[kind] += boot_ns() - began_ns;
}

/* lock_wait, that counts. */
static inline void wait_on(enum wait_for kind, struct lock *l, pthread_cond_t *c, uint64_t ms)
{
    uint64_t began = wait_begin();
    lock_wait(l, c, ms);
    wait_end(kind, began);
}

/* This thread's numbers since the last call. */
static inline struct waits waits_take(void)
{
    struct waits taken = waits_here;
    waits_here = (struct waits){0};
    return taken;
}

#endif
