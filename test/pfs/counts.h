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
/* Every kind of request, once: name, whether it moves file data (else it is metadata), and whether
 * it changes something. */
#define OPS(X)                                                                                     \
    X(lookup, false, false)                                                                        \
    X(getattr, false, false)                                                                       \
    X(setattr, false, true)                                                                        \
    X(readlink, false, false)                                                                      \
    X(mknod, false, true)                                                                          \
    X(mkdir, false, true)                                                                          \
    X(unlink, false, true)                                                                         \
    X(rmdir, false, true)                                                                          \
    X(symlink, false, true)                                                                        \
    X(rename, false, true)                                                                         \
    X(link, false, true)                                                                           \
    X(open, false, false)                                                                          \
    X(create, false, true)                                                                         \
    X(read, true, false)                                                                           \
    X(write, true, true)                                                                           \
    X(copy_file_range, true, true)                                                                 \
    X(fallocate, true, true)                                                                       \
    X(lseek, false, false)                                                                         \
    X(flush, false, false)                                                                         \
    X(fsync, false, false)                                                                         \
    X(release, false, false)                                                                       \
    X(opendir, false, false)                                                                       \
    X(readdir, false, false)                                                                       \
    X(fsyncdir, false, false)                                                                      \
    X(releasedir, false, false)                                                                    \
    X(statfs, false, false)                                                                        \
    X(setxattr, false, true)                                                                       \
    X(getxattr, false, false)                                                                      \
    X(listxattr, false, false)                                                                     \
    X(removexattr, false, true)

enum op {
#define X(name, data, changes) OP_##name,
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
bool op_changes(enum op op);
const char *op_name(enum op op);

void count_op(enum op op);
/* `file` may be NULL: then only the totals grow. */
void count_read(struct file_counts *file, uint64_t bytes);
void count_write(struct file_counts *file, uint64_t bytes);
void count_copy(uint64_t bytes);

/* The counters of `path`, relative to the file system's root; NULL when out of memory. */
struct file_counts *counts_of(const char *path);

/*
 * Starts the thread that writes the counters to `stats_file`: at most 100 ms after a
 * change (later if there are so many files that writing them takes long), and at
 * once on SIGUSR1. The caller must have blocked SIGUSR1 in all threads. "asked" in the
 * file is the number of signals seen before the counters were collected: a test that
 * sends a signal and waits for that number to grow has counters no older than the signal.
 * Returns 0 or -errno.
 */
int counts_start(const char *stats_file);

/* Ends the thread and writes the counters for the last time. */
void counts_stop(void);

#endif
