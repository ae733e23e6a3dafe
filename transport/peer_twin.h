/* peer_twin.h - does a live daemon with this node's own id answer at an address? (peer_twin.c) */
#ifndef EDDY_TRANSPORT_PEER_TWIN_H
#define EDDY_TRANSPORT_PEER_TWIN_H

#include <stdbool.h>
#include <stdint.h>

/* -ENOTUNIQ: it does.  -ECONNREFUSED, -EACCES, -EPROTO: nothing or something else is there.  Another error: it is
 * not known.  id: this node's.  Takes 5 s at most.  Not in the network thread; one caller at a time. */
int peer_find_twin(uint64_t id, const char *addr);
/* For peer_conn.c: takes the error of a hello that is that question's; false: it is another one's.  Network
 * thread. */
bool peer_twin_failed(const void *arg, int err);

#endif
