/* local.h - a file's bytes through this node's store: what is missing is fetched, room is made when
 * there is none.
 *
 * For applications here (data_io.c) and for other nodes, when this one has the claim
 * (carry_serve.c).
 * The functions block, in the threads that may call fetch_range; local_change_now does not.  What they wait
 * for (a fetch, a flush) has its own end; what must be tried again because another call was quicker is tried
 * until the caller's deadline.
 */
#ifndef EDDY_PLACEMENT_LOCAL_H
#define EDDY_PLACEMENT_LOCAL_H

#include "placement/carry.h"
#include "placement/chunks/fetch.h"
#include "placement/store/file.h"

struct local_read {
    void *buf;
    size_t len;
    uint64_t off;
    /* this node has the claim, so that what the owners do not have any more (our own flush changed the
     * version) is read by the file's own descriptor; else -ESTALE */
    bool claimed;
    uint64_t end_ms;     /* boot_ms: nothing that gained no byte is tried again then, -EIO */
    size_t got;          /* short only at the end of the file, or on error */
    struct fetched from; /* grows; .ahead is the caller's */
};
int local_read(struct file *f, struct local_read *r);

/* A change of the file's data; only with the claim. */
struct change {
    enum carry_op op; /* WRITE .. SYNC, STORE */
    const void *buf;  /* WRITE, APPEND, STORE: len bytes, <= 16 MiB */
    uint64_t len, off;
    unsigned mode;    /* ALLOCATE: fallocate's; SYNC: 1 = to the PFS */
    int64_t time_ns;  /* TIMES */
    uint64_t off_out; /* WRITE, APPEND, STORE: where the bytes went */
    size_t appended;  /* APPEND: how many are there already; 0 at first */
    uint64_t end_ms;  /* boot_ms: no page is fetched once more then, -EIO */
};
int local_change(struct file *f, struct change *c);
/* The same without waiting: -EAGAIN when a page must be filled, there is no room, another call is at
 * these pages, or the file is being synced.  WRITE, APPEND and STORE only. */
int local_change_now(struct file *f, struct change *c);

/* What changes need of the flusher, 0 or -errno each; the daemon registers it once (fs/daemon/steps.c). */
struct local_needs {
    /* There is no room: makes some.  *seen: UINT64_MAX when a change asks for the first time, then as it was
     * left.  0: something has become clean since. */
    int (*make_room)(struct file *f, uint64_t *seen);
    int (*sync_pfs)(struct file *f); /* brings this file to the PFS */
    /* Must a write of len bytes wait because of dirty data (any thread); the waiting. */
    bool (*must_wait)(uint64_t len);
    int (*admit)(struct file *f, uint64_t len);
};
/* needs lives on.  NULL: there is no flusher any more: no write waits, no room is made. */
void local_on_need(const struct local_needs *needs);

#endif
