/*
 * What was asked of the file system, counted by kind and by file, and written to a
 * file that tests read.
 *
 * Every function may be called from any thread. Counters only grow. The file of
 * counters is replaced as a whole, so a reader never sees half of it.
 */
#ifndef FAULTFS_COUNTS_H
#define FAULTFS_COUNTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* clang-format off */
/* Every kind of request, once: name, and whether it moves file data (else it is metadata). */
#define OPS(X)                                                                                     \
    X(lookup, false)                                                                               \
    X(getattr, false)                                                                              \
    X(setattr, false)                                                                              \
    X(readlink, false)                                                                             \
    X(mknod, false)                                                                                \
    X(mkdir, false)                                                                                \
    X(unlink, false)                                                                               \
    X(rmdir, false)                                                                                \
    X(symlink, false)                                                                              \
    X(rename, false)                                                                               \
    X(link, false)                                                                                 \
    X(open, false)                                                                                 \
    X(create, false)                                                                               \
    X(read, true)                                                                                  \
    X(write, true)                                                                                 \
    X(copy_file_range, true)                                                                       \
    X(fallocate, true)                                                                             \
    X(lseek, false)                                                                                \
    X(flush, false)                                                                                \
    X(fsync, false)                                                                                \
    X(release, false)                                                                              \
    X(opendir, false)                                                                              \
    X(readdir, false)                                                                              \
    X(fsyncdir, false)                                                                             \
    X(releasedir, false)                                                                           \
    X(statfs, false)                                                                               \
    X(setxattr, false)                                                                             \
    X(getxattr, false)                                                                             \
    X(listxattr, false)                                                                            \
    X(removexattr, false)

enum op {
#define X(name, data) OP_##name,
    OPS(X)
#undef X
    OP_COUNT
};
/* clang-format on */

/* The counters of one path; they live as long as the process. */
struct file_counts {
    struct file_counts *next;
    atomic_ullong reads, read_bytes, writes, write_bytes;
    char path[];
};

bool op_moves_data(enum op op);

void count_op(enum op op);
/* `file` may be NULL: then only the totals grow. */
void count_read(struct file_counts *file, uint64_t bytes);
void count_write(struct file_counts *file, uint64_t bytes);
void count_copy(uint64_t bytes);

/* The counters of `path`, relative to the file system's root; NULL when out of memory. */
struct file_counts *counts_of(const char *path);

/*
 * Starts the thread that writes the counters to `stats_file`: at most 100 ms after a
 * change (later when there are so many files that writing them takes long), and at
 * once on SIGUSR1. The caller must have blocked SIGUSR1 in all threads. "asked" in the
 * file is the number of signals seen before the counters were collected: who sends one
 * and waits for that number to grow has counters no older than the signal.
 * Returns 0 or -errno.
 */
int counts_start(const char *stats_file);

/* Ends the thread and writes the counters for the last time. */
void counts_stop(void);

#endif
