/* carry.h - reads from and writes to a file whose claim another node has, both sides (READ, WRITE).
 *
 * The asker's side (carry.c) blocks: only for threads of pool_waiters.  It returns
 *   -ENOENT   "not mine": ask the home again (data_where.c does)
 *   -EREMOTE  the claimant has lent it to another node (lend.h), and has done nothing
 *   -EAGAIN   the claimant is out of reach, and has done nothing: the caller may ask again
 *   -EIO      the claimant may or may not have made the change: it is never sent twice
 *   ...       the claimant's own error
 */
#ifndef EDDY_PLACEMENT_CARRY_H
#define EDDY_PLACEMENT_CARRY_H

#include "placement/store/file.h"

#define CARRY_PIECE (1u << 20) /* most bytes in one message */

enum carry_op {
    CARRY_WRITE = 1,    /* at offset */
    CARRY_APPEND,       /* at the end of the claimant's file */
    CARRY_TRUNCATE,     /* to length */
    CARRY_PUNCH,        /* [offset, offset + length) */
    CARRY_ALLOCATE,     /* fallocate; mode = flags */
    CARRY_TIMES,        /* utimens: time_ns */
    CARRY_SYNC,         /* fsync; mode 1: to the PFS */
    CARRY_PIN_WRITER,   /* counts an open for writing at another node, named by offset; mode 1: it appends */
    CARRY_UNPIN,        /* this open is closed.  All three may come twice. */
    CARRY_STORE,        /* at offset, and nothing beyond the file's end: written through a mapping */
    CARRY_PIN_READER,   /* counts an open for reading, as CARRY_PIN_WRITER; its end is CARRY_UNPIN */
    CARRY_GIVE,         /* at offset: the bytes of a part that its sender has borrowed, before RETURN (borrow_give.c) */
    CARRY_OPS = CARRY_GIVE,
};
static inline bool carry_op_is_pin(enum carry_op op)
{
    return op == CARRY_PIN_WRITER || op == CARRY_PIN_READER || op == CARRY_UNPIN;
}
static inline bool carry_op_is_write(enum carry_op op)
{
    return op == CARRY_WRITE || op == CARRY_APPEND || op == CARRY_STORE || op == CARRY_GIVE;
}
/* A change, made at the claimant (carry_write) or here (local.h). */
struct change {
    enum carry_op op;
    const void *buf; /* WRITE, APPEND, STORE, GIVE: len bytes, <= 16 MiB */
    uint64_t len, off;
    unsigned mode;   /* ALLOCATE: fallocate's; SYNC: 1 = to the PFS; PIN_WRITER: 1 = appends */
    int64_t time_ns; /* TIMES */
    /* of local.h alone: */
    uint64_t giver;   /* GIVE: the borrower */
    uint64_t off_out; /* WRITE, APPEND, STORE, GIVE: where the bytes went */
    size_t appended;  /* APPEND: how many are there already; 0 at first */
    struct owed *owed; /* notes the nodes to which parts of it went; NULL: it is not noted */
    uint64_t end_ms;  /* boot_ms: from then on no page is fetched a second time, -EIO */
};
/* STORE: the file ends at size.  A borrower, which does not know where the file ends, is sent what is before as a WRITE; len
 * may be 0 then. */
static inline void carry_store_ends(struct change *c, uint64_t size)
{
    c->op = CARRY_WRITE;
    c->len = c->off < size ? MIN(c->len, size - c->off) : 0;
}
/* What the claimant said of its file. */
struct carry_result {
    uint64_t size, offset;
    int64_t mtime_ns;
    uint64_t counter;
    bool watched; /* READ: it tells this node of each change from then on */
};

/* ---- carry_serve.c ---- */
void carry_start(void); /* registers the handlers: before peer_start */
/* This node is about to leave.  From now on it answers changes and new writers of other nodes with "not
 * mine", so that its files become clean; those writers wait until the claim is free, and take it.  Reads are
 * still served.  Waits for the changes that have begun, and until all that is lent and borrowed is on the PFS and
 * back; both may wait for the PFS.  Not the network thread. */
void carry_leave(void);
void carry_stop(void); /* after peer_stop, while the loop still runs */

/* A range of the claimant's file. */
struct carry_range {
    void *buf;
    size_t len;
    uint64_t off;
    size_t got;                 /* set: less than len only at the end of the file, or on error, or: */
    bool more;                  /* set: the file goes on, but what follows is lent to another node (lend.h) */
    struct carry_result result; /* set if got > 0 or 0 is returned */
};
int carry_read(uint64_t node, struct file *f, struct carry_range *r);
/* WRITE, APPEND, STORE, GIVE: c->len <= CARRY_PIECE.  res: may be NULL; set if 0 is returned. */
int carry_write(uint64_t node, struct file *f, const struct change *c, struct carry_result *res);

/* Registered by flush: the I/O of an application or a peer begins / ends. */
void carry_on_activity(void (*begin)(void), void (*end)(void));

/* ---- for steps.c and carry_serve.c: a peer's request begins / ends ---- */
void carry_activity_begin(void);
void carry_activity_end(void);

#endif
