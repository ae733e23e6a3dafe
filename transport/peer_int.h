/* peer_int.h - what the files of the peer layer share; all of it belongs to the network thread
 * unless said otherwise.
 *
 *   peer.c        requests and replies, deadlines
 *   peer_in.c     incoming messages
 *   peer_conn.c   peers: addresses, hello, up and down, messages that wait for a connection
 *   peer_ucx.c    endpoints, active messages
 *   ucx_loop.c    the UCX worker in the loop
 *   peer_env.c    UCX's settings before exec
 *   peer_calls.c  epoll_wait, send, sendmsg for UCX
 *   buffers.c     bounded memory
 */
#ifndef EDDY_TRANSPORT_PEER_INT_H
#define EDDY_TRANSPORT_PEER_INT_H

#include <sys/queue.h>

#include "transport/peer.h"

struct endpoint;   /* peer_ucx.c: one UCX endpoint; never reused */
struct hello_conn; /* hello.h */

#define PEER_CONNS  4
#define PEER_TOKENS 8

/* ---- a message on its way out: encoded when it was given to us, in the caller's thread ---- */

struct send {
    uint64_t to, to_incarnation; /* 0: any incarnation */
    void *frame;                 /* head and body */
    size_t frame_len;
    void *data;
    size_t data_len;
    void (*free_data)(void *arg, void *data);
    void *free_arg;
    void *joined;     /* body and data in one piece, where both must be payload */
    uint64_t request; /* the pending request that it carries, or 0: replies and one-way messages */
    uint64_t since_ms;
    struct endpoint *ep;
    TAILQ_ENTRY(send) link; /* peer->queue, then the endpoint's sends */
};
TAILQ_HEAD(send_list, send);

void send_free(struct send *s); /* any thread */

/* ---- peers ---- */

enum peer_state { PEER_DOWN, PEER_CONNECTING, PEER_UP };

struct peer {
    uint64_t id, incarnation; /* incarnation 0: not known yet */
    char name[NODE_NAME_MAX + 1];
    char addr[NODE_ADDR_MAX]; /* "" = not known: it can only come to us */
    enum peer_state state;
    bool saying_hello;                    /* hello_connect is under way */
    struct hello_conn *conns[PEER_CONNS]; /* UP: both sides may have connected at once; down when
                                             the last one ends */
    unsigned nconns;
    uint64_t tokens[PEER_TOKENS]; /* that we gave them; any of these proves them */
    unsigned ntokens;
    uint64_t token_for_us;
    struct endpoint *ep;    /* UP */
    uint32_t rounds;        /* endpoints made to this incarnation so far (hello.h) */
    struct send_list queue; /* CONNECTING */
    unsigned queued;
    uint64_t last_heard_ms;
    uint64_t last_moved_ms; /* anything came, or a transfer ended that had to wait: not silent */
    uint64_t retry_ms;      /* no hello before this time */
    unsigned backoff_ms;
    int last_err;
    struct peer *next; /* hash chain */
};

void conns_start(const struct peer_config *c);
void conns_stop(void); /* after ucx_stop: frees the peers */
int conns_listen(const char *listen, char *err, size_t errlen);
void conns_close_all(void (*done)(void));
void conns_disconnect_all(void);     /* every peer goes down */
struct peer *peer_find(uint64_t id); /* NULL if never heard of */
bool peer_proves(const struct peer *p, uint64_t incarnation, uint64_t token);
/* Sends s, or queues it and connects; -errno if it cannot be sent: then s is still the caller's. */
int peer_submit(struct send *s);
/* Sends a reply or WORKING, but only over a connection that is up; else s is freed. */
void peer_submit_reply(struct send *s);
/* Frees a request that still waits for a connection.  True if there was one; it was never sent. */
bool peer_unqueue(uint64_t id, uint64_t request);
void peer_queue_drop(struct peer *p);
int peer_not_sent(int err); /* the error for a request that was never sent because of err */
void peer_down(struct peer *p, int err);

/* ---- peer.c ---- */

/* A request without an answer yet. */
struct pending {
    uint64_t id, to;
    uint16_t type; /* of the request */
    uint32_t silence_ms;
    uint64_t deadline_ms;
    void *recv_buf;
    size_t recv_len;
    peer_reply_fn fn;
    void *arg;
    struct send *send; /* until it was submitted */
    bool receiving;
    int failed; /* receiving: to be told when UCX is done with the buffer */
    struct pending *next_in_slot;
    TAILQ_ENTRY(pending) link; /* in net.all, or in a local list of those that end now */
};
struct pending *pending_find(uint64_t id);
void pending_end(struct pending *p, int err, struct msg *reply); /* calls back and frees p */
void reply_head(const struct msg_head *to, struct msg *r);       /* peer_reply, by head */
void reply_error_head(const struct msg_head *to, int err);
bool peer_runs(void); /* between peer_start and peer_stop; any thread */

void tick_arm(void); /* starts watching the deadlines */
/* The connection to p broke, or was never up: all requests that wait for it end. */
void requests_fail(struct peer *p, int err);
void event_down(uint64_t id, uint64_t incarnation, int err);

/* ---- peer_ucx.c, ucx_loop.c ---- */

/* the library that runs; before ucx_start, too */
bool ucx_is_before(unsigned major, unsigned minor);
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

/* ---- peer_in.c ---- */

void incoming_start(void);
/* Every active message; called by peer_ucx.c. */
void peer_incoming(const void *header, size_t header_len, struct payload *pl);
void incoming_from_here(void *send); /* a message to this node itself; frees it */
bool incoming_waits(void);           /* are there messages that wait for a buffer? */
void incoming_tick(uint64_t now);
void incoming_drop(uint64_t from); /* those of this node */

/* ---- peer_env.c ---- */

/* UCX's settings that must be equal on all nodes, as text; cut at len. */
void peer_settings(char *out, size_t len);

/* ---- peer_calls.c ---- */

/* While it is on, this thread's epoll_wait reports only one thing at a time for a socket, and its sends to a
 * connection that has ended report success. */
void calls_are_ucx(bool on);

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
