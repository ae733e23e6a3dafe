/* peer_in.h - messages that come in (peer_in.c), and the memory for their bytes (buffers.c). */
#ifndef EDDY_TRANSPORT_PEER_IN_H
#define EDDY_TRANSPORT_PEER_IN_H

#include "transport/ucx_peer.h"

/* ---- peer_in.c ---- */

void incoming_start(void);
/* Every active message; called by peer_ucx.c. */
void peer_incoming(const void *header, size_t header_len, struct payload *pl);
void incoming_from_here(void *send); /* a message to this node itself; frees it */
bool incoming_waits(void);           /* are there messages that wait for a buffer? */
void incoming_tick(uint64_t now);
void incoming_drop(uint64_t from); /* those of this node */

/* ---- buffers.c ---- */

void buffers_start(uint64_t memory);
void buffers_stop(void);
void *peer_buffer_always(
    size_t size); /* also beyond the bound: answers without a place, small eager data */
/* NULL: there is no room; peer_buffers_freed is called when something was freed. */
void *peer_buffer_try_or_tell(size_t size);
/* The same for a message whose body does not lie beside its head: out of what is kept for these. */
void *peer_body_try_or_tell(size_t size);
void peer_buffers_freed(void *unused); /* peer_in.c */

#endif
