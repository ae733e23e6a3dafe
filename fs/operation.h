/* operation.h - how long the kernel waits for the answers to its requests, by operation; and which took long.
 *
 * A worker begins an operation with each request that it reads.  If a struct request is made of it (request.c), that takes it
 * over, and the operation ends with it, in whichever thread.  Else it was served at once.  What the kernel does by itself,
 * with passthrough or from its own pages, is not seen.
 */
#ifndef EDDY_FS_OPERATION_H
#define EDDY_FS_OPERATION_H

#include "transport/latency.h"
#include "transport/waits.h"

struct operation {
    uint64_t began_ns; /* boot_ns; 0: none */
    uint32_t opcode;   /* the kernel's */
    struct waits waits;
};

/* ---- for workers.c and request.c ---- */
/* A worker has read a request. */
void operation_begin(uint32_t opcode);
/* It has handed it over to libfuse and is back. */
void operation_served(void);
/* What this thread has begun: now it is the caller's, who ends it. */
struct operation operation_take(void);
/* path: of its file, malloc'd, called only if the operation was slow; NULL: not known. */
void operation_end(const struct operation *op, char *(*path)(void *arg), void *arg, pid_t pid);

/* ---- what is known ---- */
/* Those that were seen, in the order of their names; stops when fn does not return 0, and returns that. */
int operation_each(int (*fn)(void *arg, const char *name, const struct latency_copy *l), void *arg);

/* Operations that took at least this long are logged; 0: none are.  Before the mount. */
void operation_log_slow(uint32_t ms);

struct slow_operation {
    const char *name;
    char *path; /* NULL: not known */
    pid_t pid;
    int64_t ended_ns; /* real_ns */
    uint64_t took_ns;
    struct waits waits;
};
#define SLOWEST 20
/* The slowest so far, the slowest first; at most SLOWEST.  Each only during the call. */
void operation_each_slowest(void (*fn)(void *arg, const struct slow_operation *s), void *arg);
/* "PFS 12 ms, other nodes 3 ms" into buf: where s waited, as far as it is known; returns buf. */
char *operation_waits_text(const struct slow_operation *s, char *buf, size_t len);

#endif
