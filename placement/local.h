/* local.h - reads and changes a file in this node's store: fetches what is missing, makes room when there is
 * none.
 *
 * It serves applications of this node (data_io.c), and other nodes if this one has the claim (carry_serve.c).
 *
 * The functions block, but for local_change_now: only threads that may call fetch_range call them.  Each wait
 * (for a fetch, for a flush) ends by itself.  If a step must be tried again because another call was quicker,
 * it is tried until the caller's deadline.
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
    /* This node has the claim: bytes that the owners do not have any more, as this node's flush changed the
     * version, are read by the file's own descriptor.  Not claimed: -ESTALE for such bytes. */
    bool claimed;
    uint64_t end_ms;     /* boot_ms: from then on a step that got no byte is not tried again, -EIO */
    size_t got;          /* less than len only at the end of the file, or on error */
    struct fetched from; /* the call adds to it; .ahead is the caller's */
};
/* 0 or -errno; -EREMOTE: the next byte is lent (placement/lend.h). */
int local_read(struct file *f, struct local_read *r);

/* Makes a change, with any op but PIN_WRITER and UNPIN_WRITER; this node must have the claim. */
int local_change(struct file *f, struct change *c);
/* The same without waiting: -EAGAIN when a page must be filled, there is no room, another call is at
 * these pages, or the file is being synced.  WRITE, APPEND and STORE only. */
int local_change_now(struct file *f, struct change *c);

/* Brings the file to the PFS, whatever is dirty.  -errno of the flush. */
int local_sync_pfs(struct file *f);

/* What changes need from flush/; the daemon registers it once (fs/daemon/steps.c).  0 or -errno, but for
 * must_wait. */
struct local_needs {
    /* Makes room.  *seen: UINT64_MAX when a change asks for the first time, then as the last call left it.
     * 0: something has become clean since then. */
    int (*make_room)(struct file *f, uint64_t *seen);
    int (*sync_pfs)(struct file *f); /* brings this file to the PFS */
    /* True: a write of len bytes must wait because there is too much dirty data.  Any thread. */
    bool (*must_wait)(uint64_t len);
    int (*admit)(struct file *f, uint64_t len); /* waits until the write may go on */
};
/* `with` is not copied and must stay.  NULL: flush/ has ended: no write waits, no room is made. */
void local_on_need(const struct local_needs *needs);

#endif
