/*
 * The faults that the file system is told to make while it runs. A fault is a rule: which requests it
 * meets (operations, and a pattern of paths), and what happens to them.
 *
 *   error        they fail
 *   hang         they wait until the fault is cleared, then go on
 *   short        writes take no more than a number of bytes
 *   space        writes fail when the files that the pattern matches take up a number of bytes; as much
 *                as fits is written first
 *   read-only    requests that would change something fail with EROFS
 *   whole seconds  time stamps lose the part below a second, except birth times (they are identity)
 *   behind       time stamps, except birth times, are of a clock that is behind by a number of seconds
 *
 * The next fsync or close of the open file reports a late error (of writes), once. The bytes
 * are accepted and dropped, as by a client that learns of a quota only when it sends them.
 *
 * Every function may be called from any thread.
 */
#ifndef FAULTFS_FAULTS_H
#define FAULTFS_FAULTS_H

#include "counts.h"
#include "nodes.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

enum fault_kind {
    FAULT_ERROR,
    FAULT_HANG,
    FAULT_SHORT,
    FAULT_SPACE,
    FAULT_READ_ONLY,
    FAULT_WHOLE_SECONDS,
    FAULT_BEHIND,
};

struct fault {
    struct fault *next;
    unsigned number;
    enum fault_kind kind;
    uint64_t ops;        /* error, hang: a bit for each operation */
    int error;           /* error, space: an errno */
    bool late;           /* error, space */
    uint64_t bytes;      /* short, space; behind: seconds */
    uint64_t times;      /* how many requests meet it at most; 0: all */
    uint64_t hits;       /* requests that met it */
    uint64_t waiting;    /* hang: requests that wait now */
    const char *pattern; /* of paths, in `text`; NULL: all */
    char *text;          /* the command that made it */
};

/* Takes over the fault, all of it from malloc. Returns its number. */
unsigned faults_add(struct fault *fault);

/* Ends the fault of that number, or all where it is 0. Returns 0 or -ENOENT. */
int faults_clear(unsigned number);

/* A line for each: "NUMBER hits=N waiting=N COMMAND". */
void faults_list(FILE *out);

/*
 * Every request calls this first. It counts and delays the request, and makes it hang or
 * fail. `node` is what the request is about, or the directory it is in; `name` is the name in that
 * directory, or NULL. Returns 0, or the -errno that the request must fail with.
 */
int fault_check(enum op op, const struct node *node, const char *name);

/* For an open that may change the file: 0 or -EROFS. */
int fault_check_writable(const struct node *node);

/* What a write is to do: between faults_write_begins and faults_write_ended. */
struct fault_write {
    size_t size;    /* so many bytes, from the first */
    int late_error; /* 0, or the errno to keep for fsync or close: the bytes are thrown away */
    bool in_turn;   /* space is counted: one write at a time */
};

/* The write's node and its file below. Returns 0 or the -errno to fail with. */
int faults_write_begins(struct fault_write *write, const struct node *node, int fd, size_t size,
                        off_t offset);
void faults_write_ended(struct fault_write *write);

/* Takes from the attributes what this file system does not keep. */
void faults_shape(struct stat *attr);

/* The seconds by which its clock is behind: a time that a caller sets is later by these below. */
time_t faults_behind(void);

#endif
