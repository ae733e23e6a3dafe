/* uring_entry.h - the memory of a request that comes over io_uring; from a request's number to its entry. */
#ifndef EDDY_FS_URING_ENTRY_H
#define EDDY_FS_URING_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "fs/uring_kernel.h"

struct queue;

struct entry {
    struct queue *queue;
    struct uring_head *head;
    char *memory;  /* all of it */
    char *payload; /* URING_PAYLOAD bytes */
    size_t used;   /* of it, by the last request or its answer */
    struct iovec parts[2]; /* both, as the kernel wants to be told */
    bool huge;             /* the payload is in a huge page, and keeps it */
    uint64_t number;       /* the request's: the kernel's `unique` */
    uint64_t commit_id;
    struct entry *next;    /* with the same hash */
    struct entry *behind;  /* answered, to be given back: its queue's lock */
};

/* n entries for a queue, the last `huge` of them with huge pages, where there are some.  The memory is touched when
 * it is used.  NULL: there is none. */
struct entry *entries_new(struct queue *q, unsigned n, unsigned huge);
void entries_free(struct entry *entries, unsigned n);

/* The request that the kernel has put into it, in one piece, as it would be read from /dev/fuse; *n: bytes.  It ends where
 * the payload ends.  NULL: it is none. */
void *entry_request(struct entry *e, size_t *n);
/* Puts an answer into it. */
void entry_put_answer(struct entry *e, const struct iovec *iov, int n);
/* Finds e by its number, until it is taken.  Any thread. */
void entry_enter(struct entry *e, uint64_t number);
struct entry *entry_take(uint64_t number); /* NULL: there is none */

#endif
