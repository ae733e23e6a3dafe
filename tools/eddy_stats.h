/* eddy_stats.h - what eddy stats has measured between two answers of a daemon (eddy_stats.c), and how it is shown
 * (eddy_stats_lines.c, eddy_stats_screen.c). */
#ifndef EDDY_TOOLS_EDDY_STATS_H
#define EDDY_TOOLS_EDDY_STATS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "transport/latency.h"

/* Of one node, or of all. */
struct stats_rates {
    const char *node;  /* the answer's */
    const char *error; /* NULL; else why it told nothing */
    /* in a second */
    double read, read_local, read_peer, read_pfs, written, flushed, pfs_ops, messages, pfs_read, pfs_written;
    /* now */
    uint64_t cache_size, cache_used, content, dirty, files_dirty, files_failed, oldest_ms, open_files, passthrough_files,
        pfs_silent_ms, suspected;
};

/* Of this node. */
struct stats_operation {
    const char *name; /* the answer's */
    double calls;     /* in a second */
    double part;      /* of the interval that the kernel waited for it; may be above 1: many at once */
    double median_ms, p99_ms;
};

#define STATS_OPERATIONS 64

struct stats_interval {
    const json_t *answer;
    double seconds;
    struct stats_rates *nodes, all; /* nodes[0]: the mount's own */
    size_t n;
    struct stats_operation operations[STATS_OPERATIONS]; /* the most waited for first */
    size_t n_operations;
};

/* Part of the bytes read that this node's store had, 0 to 1; < 0: nothing was read. */
double stats_hits(const struct stats_rates *r);

/* ---- eddy_stats_lines.c ---- */
void stats_lines(const struct stats_interval *i, bool session, unsigned number); /* number: from 0 on */
json_t *stats_json(const struct stats_interval *i);

/* ---- eddy_stats_screen.c ---- */
void stats_screen_begin(void);
void stats_screen(const struct stats_interval *i, bool session);
void stats_screen_end(void); /* safe in a signal handler */

#endif
