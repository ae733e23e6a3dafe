/* ucx_peer.h - messages over UCX: endpoints, sends, bulk data (peer_ucx.c, ucx_loop.c).  Network thread. */
#ifndef EDDY_TRANSPORT_UCX_PEER_H
#define EDDY_TRANSPORT_UCX_PEER_H

#include "transport/peer_int.h"

/* ---- peer_ucx.c, ucx_loop.c ---- */

/* the library that runs; before ucx_start, too */
bool ucx_is_before(unsigned major, unsigned minor);
bool ucx_has_rdma(void); /* this host (peer_env.c) */
int ucx_start(char *err, size_t errlen);
void ucx_stop(void); /* all endpoints were disconnected */
void ucx_close_handles(void (*done)(void));
const void *ucx_address(size_t *len);
struct endpoint *ucx_connect(struct peer *p, const void *worker_addr); /* NULL: logged */
/* Closes by force.  Sends and receives end with an error, later.  While the endpoint's flush has not ended,
 * they may still succeed. */
void ucx_disconnect(struct endpoint *e);
bool ucx_tick(void); /* true: endpoints are still being closed; call it again later */
void ucx_send(struct endpoint *e, struct send *s); /* s is freed when it was sent or cannot be */
/* A peer with a send or a receive that began before this time and has not ended, while nothing has
 * moved from or to it since; or NULL. */
struct peer *ucx_stuck_peer(uint64_t before_ms);
unsigned ucx_transfers(void); /* sends and receives that have not ended, all endpoints */

/* Bulk data of a message that is being delivered (peer_incoming). */
struct payload {
    void *data; /* eager: the bytes; rendezvous: UCX's descriptor */
    size_t len;
    bool rndv;
    bool taken; /* received or kept */
};
/* Moves all len bytes into buf and calls done, at once or later (never if it is not called during
 * the message's delivery or for a kept descriptor).  from: whose connection it came by. */
typedef void (*ucx_done)(void *arg, int err);
void ucx_receive(struct peer *from, struct payload *pl, void *buf, ucx_done done, void *arg);
void *ucx_keep(struct payload *pl); /* rendezvous only: receive or drop it later */
void ucx_receive_kept(struct peer *from, void *kept, size_t len, void *buf, ucx_done done,
                      void *arg);
void ucx_drop_kept(void *kept);

#endif
