/*
 * How slow the file system is made to be, and (later) what it is made to get wrong.
 *
 * The bandwidth is that of the file system below, not of one mount: mounts that are
 * given the same shared file take turns. Every function may be called from any thread.
 */
#ifndef FAULTFS_LIMITS_H
#define FAULTFS_LIMITS_H

#include "counts.h"
#include "nodes.h"

#include <stdint.h>

struct limits {
    uint64_t bandwidth;      /* bytes per second, read and written; 0: no limit */
    unsigned delay_us;       /* added to every request */
    unsigned delay_meta_us;  /* added to requests that move no file data */
    const char *shared_path; /* file that mounts of one directory share, or NULL */
};

/* Returns 0 or -errno. */
int limits_start(const struct limits *limits);

/*
 * Every request asks here first, before it does anything: counted, delayed, and the
 * place for faults on command. `node` is what the request is about or the directory
 * it is in, `name` the name in that directory or NULL.
 * Returns 0, or the -errno that the request is to fail with.
 */
int fault_check(enum op op, const struct node *node, const char *name);

/* Waits until `bytes` more may have gone through the file system. */
void limits_take(uint64_t bytes);

#endif
