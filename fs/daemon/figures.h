/* figures.h - the numbers that a node tells of itself: the counters (transport/base.h), and gauges, which go up and down.
 *
 * `eddy stats`, `eddy metrics`, reports and other nodes get the same ones, by name.  They come from memory alone, also while
 * the PFS and the network hang.
 */
#ifndef EDDY_FS_DAEMON_FIGURES_H
#define EDDY_FS_DAEMON_FIGURES_H

#include "transport/base.h"

#define GAUGES(X)                                                                                  \
    X(cache_size_bytes, "bytes that this node's cache may use")                                    \
    X(cache_used_bytes, "bytes that it uses, with records and what is set aside")                  \
    X(cache_content_bytes, "bytes of files in it")                                                 \
    X(cache_files, "files of which it has something")                                              \
    X(dirty_bytes, "bytes in it that are not on the PFS yet")                                      \
    X(pending_files, "files of which something is not on the PFS yet")                             \
    X(failed_files, "of these: files whose last flush failed")                                     \
    X(oldest_dirty_ms, "age of the oldest dirty data")                               \
    X(open_files, "files that are open on this node")                                              \
    X(passthrough_files, "of these: files that the kernel reads and writes by itself")             \
    X(claims, "files whose latest bytes this node has")                                            \
    X(locks, "locks of which this node is the home")                                               \
    X(lost_files, "files that wait for a node that left")                                          \
    X(hints_waiting, "hints that were not consumed yet")                                           \
    X(hint_queues, "queues of hints that are open")                                                \
    X(requests_waiting, "requests of the kernel that wait for an answer now")                      \
    X(pfs_silent_ms, "for how long the PFS has not answered")                            \
    X(nodes, "nodes in the view")                                                                  \
    X(nodes_suspected, "of these: nodes that do not answer")                                       \
    X(joined, "1: this node is in the newest view")

#define FIGURE_COUNT(name, help) +1
#define FIGURES (0 COUNTERS(FIGURE_COUNT) GAUGES(FIGURE_COUNT))

struct figure {
    const char *name, *help;
    bool counter;
    uint64_t value;
};

/* All of them, counters first.  Any thread; waits for nothing. */
void figures_take(struct figure out[FIGURES]);

#endif
