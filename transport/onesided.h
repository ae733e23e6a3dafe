/* onesided.h - memory of this node that other nodes read, and theirs, without the other side's processor (UCX's RMA).
 *
 *     first get --> not connected; MEMORY asks --> MEMORY_IS: worker address, key --> three trial gets --> connected
 *                                                                                        '--> refused; asked again later
 *
 * It has a UCX context and a worker of its own, over transports whose gets the other side's processor has no part in, and
 * whose peers may die: over TCP, UCX would emulate gets, and a peer's death would end this process (docs/transport.md).  The trial
 * gets must be quicker than a peer that has to help.
 *
 * Whoever has proved the session's secret may read this memory, and not write it.
 */
#ifndef EDDY_TRANSPORT_ONESIDED_H
#define EDDY_TRANSPORT_ONESIDED_H

#include "transport/base.h"
#include "transport/view.h"

struct onesided_config {
    uint64_t size;          /* bytes */
    const char *transports; /* UCX's names; NULL: ONESIDED_RDMA on hosts with RDMA, else ONESIDED_HOST */
    uint64_t id;            /* of the node */
    bool by_gets;           /* for tests: shared memory, too, is read by UCX's gets, as RDMA is */
};
#define ONESIDED_RDMA "rc,dc,posix"
#define ONESIDED_HOST "posix"

/* Allocates and registers the memory, all zeros; the loop runs, and peer_start follows.  After daemonising.  err says what to do. */
int onesided_start(const struct onesided_config *c, char *err, size_t errlen);
void onesided_stop(void); /* after peer_stop; no call of the others is under way */
/* NULL: there is none, as onesided_start was not called. */
void *onesided_memory(size_t *len);

/* Reads len bytes at `off` of the node's memory into buf.  The order in which they are read is not defined, and the node may write
 * meanwhile.  -ENOTCONN: it is not connected (and is being asked, so a later call may succeed); -EINVAL: its memory is not as
 * long; -ETIMEDOUT, -EIO: it is not connected any more.  buf is not written to after the call.  Blocks for as long as the network
 * needs, ONESIDED_MS at most; any thread but the network thread, with locks down to RANK_POOL. */
int onesided_get(uint64_t node, uint64_t off, void *buf, size_t len);
#define ONESIDED_MS 1000
/* The length of the node's memory; 0: it is not connected, and is being asked. */
uint64_t onesided_len(uint64_t node);

/* Nodes that are not in this view, or only in another incarnation, are disconnected.  Network thread. */
void onesided_adopted(const struct view *v);
unsigned onesided_connected(void); /* nodes, now */
/* Calls fn for each of them. */
void onesided_each(void (*fn)(void *arg, uint64_t node), void *arg);
const char *onesided_transports(void); /* as UCX was told; "" without memory */

#endif
