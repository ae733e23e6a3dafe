/* ring.h - which node owns a chunk, and which is a file's home: a pure function of the view's members
 * and weights.  A ring is not freed while a view may use it; any thread reads it without a lock.
 *
 * The room owns the rings and the slots (slots.h).  Its locks: two mutexes in ring.c, for the making of rings
 * and of their tables; neither is held together with another lock of the room.  fs/daemon, placement/chunks
 * and placement/claims call it. */
#ifndef EDDY_PLACEMENT_RING_RING_H
#define EDDY_PLACEMENT_RING_RING_H

#include "placement/ring/slots.h"
#include "transport/view.h"

struct ring;
struct ring *ring_new(const struct view *v); /* with its table */
void ring_free(struct ring *r);              /* one that ring_new made */
size_t ring_bytes(const struct ring *r);     /* of memory */
bool ring_has_table(const struct ring *r);

/* A chunk's place, and the n-th node of the order there (n = 0: its owner;
 * n < SLOT_ORDER_MAX).  0 if there is none. */
uint64_t ring_place(struct fid fid, uint64_t index);
uint64_t ring_node(const struct ring *r, uint64_t place, unsigned n);

/* The owner of chunk (fid, index), and the n-th distinct node after it (n = 0: the owner).  0 if
 * there is none.  When the owner leaves, the node after it is the owner. */
uint64_t ring_owner(const struct ring *r, struct fid fid, uint64_t index, unsigned n);
/* The file's home (n = 0) and next (n = 1). 0 when there is none. */
uint64_t ring_home(const struct ring *r, struct fid fid, unsigned n);
/* The ring of a view; made once per view and not freed.  A thread of its own makes its table, when the ring
 * is used enough.  Any thread. */
const struct ring *ring_of(const struct view *v);
/* The file's home in this view. */
static inline uint64_t view_home(const struct view *v, struct fid fid)
{
    return ring_home(ring_of(v), fid, 0);
}

#endif
