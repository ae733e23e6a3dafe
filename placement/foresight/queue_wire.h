/* queue_wire.h - the messages between libeddy and a daemon, on the queues' socket (docs/wire.md, "Hints").
 *
 * Both sides are on one host, so numbers have its byte order; there is no padding.  Needs only libc: libeddy includes it.
 */
#ifndef EDDY_PLACEMENT_FORESIGHT_QUEUE_WIRE_H
#define EDDY_PLACEMENT_FORESIGHT_QUEUE_WIRE_H

#include <stdint.h>

/* getxattr(2) of any file or directory of a mount: "NAME\nPATH": the socket's abstract name without the leading NUL, and the
 * path below the mount's root ("" for the root). */
#define QUEUE_XATTR "user.eddy.queues"

#define QUEUE_VERSION  1
#define QUEUE_BODY_MAX (1u << 20)
#define QUEUE_PATH_MAX 4095u

enum queue_type {
    QUEUE_HELLO = 1,
    QUEUE_ADD,
    QUEUE_START,
    QUEUE_STOP,
    QUEUE_CONSUMED,
    QUEUE_WAIT,
    QUEUE_CANCEL,
    QUEUE_STATS,
    QUEUE_UNWAIT,
    QUEUE_TYPES,
};

/* Before each message's body. */
struct queue_head {
    uint32_t body_len;
    uint16_t type;
    uint16_t reply;   /* 1: the answer to a request of this type */
    uint32_t request; /* chosen by the client; the answer repeats it */
    int32_t status;   /* of an answer: 0 or a negative errno */
};

struct queue_hello {
    uint32_t version, flags; /* flags: those of eddy_queue_open */
};

/* QUEUE_ADD: this; then `paths` times a u16 and so many bytes; then `targets` times a struct queue_target; then `entries` times
 * a u32, the number of a target.  Paths and targets are numbered from 0, each once in the queue's life, and stay known. */
struct queue_add {
    uint32_t paths, targets, entries;
};
struct queue_target {
    uint32_t path;
    uint64_t off, len; /* len 0: to the end */
} __attribute__((packed));

/* The body of CONSUMED, WAIT and CANCEL; of the answer to ADD: the first entry's number. */
struct queue_seq {
    int64_t seq;
};
/* The body of UNWAIT. */
struct queue_unwait {
    uint32_t request; /* of the WAIT */
};

#endif
