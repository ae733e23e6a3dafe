/* peer_int.h - what the files of the peer layer share; all of it belongs to the network thread
 * unless said otherwise.
 *
 *   peer.c        requests and replies, deadlines
 *   peer_in.c     incoming messages
 *   peer_conn.c   peers: addresses, hello, up and down, messages that wait for a connection
 *   peer_twin.c   is there another daemon with this node's id?
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

/* ---- peer_env.c ---- */

/* UCX's settings that must be equal on all nodes, as text; cut at len. */
void peer_settings(char *out, size_t len);

/* ---- peer_calls.c ---- */

/* While it is on, this thread's epoll_wait reports only one thing at a time for a socket, and its sends to a
 * connection that has ended report success. */
void calls_are_ucx(bool on);

#endif
