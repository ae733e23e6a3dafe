/* ring.h - which node owns a chunk, which is a file's home: a consistent-hash ring, a pure function
 * of the view's members and weights.  Never freed while a view may use it; read without a lock, any
 * thread. */
#ifndef EDDY_PLACEMENT_RING_H
#define EDDY_PLACEMENT_RING_H

#include "transport/session.h"

#define RING_VNODES 100

struct ring;
struct ring *ring_new(const struct view *v, unsigned vnodes); /* vnodes per 100 of weight */
void ring_free(struct ring *r);
/* Owner of chunk (fid, index), and the n-th distinct node after it (n = 0: the owner).  0 when
 * there is none. */
uint64_t ring_owner(const struct ring *r, struct fid fid, uint64_t index, unsigned n);
/* The file's home (n = 0) and next (n = 1). 0 when there is none. */
uint64_t ring_home(const struct ring *r, struct fid fid, unsigned n);
/* The ring of a view; made once per view and kept. Any thread. */
const struct ring *ring_of(const struct view *v);
/* The file's home in this view. */
static inline uint64_t view_home(const struct view *v, struct fid fid)
{
    return ring_home(ring_of(v), fid, 0);
}

#endif
