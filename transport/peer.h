/* peer.h - sending messages to nodes and receiving theirs, over UCX active messages.
 *
 * Peers are named by node id; addresses come from the view and from nodes/ (peer_know).
 * Connections are made when first needed: hello.c proves both sides on our own TCP port and
 * exchanges UCX worker addresses, peer.c makes endpoints from them.  All state here belongs to the
 * network thread.  Any thread may call the functions below, unless they say otherwise; they hand the work
 * over to the network thread.
 *
 * How UCX is used, after measuring 1.13.1 (docs/transport.md): no ucp_listener; active
 * messages only; one ucp_ep_flush for each new endpoint, and no other; eager up to 64 KiB,
 * rendezvous above, asked for explicitly.  The AM header stays until its send completes.
 * ucp_request_cancel does nothing for AM, so a forced close of the endpoint is the only time-out, and buffers
 * stay until each request's own callback was called.  UCX uses ep pointers again.
 */
#ifndef EDDY_TRANSPORT_PEER_H
#define EDDY_TRANSPORT_PEER_H

#include "transport/message.h"
#include "transport/view.h"

struct peer_config {
    const char *listen; /* ADDR[:PORT] or NULL */
    uint64_t id, incarnation;
    const char *name;
    uint32_t chunk_size;
    uint64_t memory; /* bound on buffers, bytes */
};

/* UCX's settings must be in the environment before exec.  Sets those that the user has not set
 * (peer_env.c; UCX_TLS, UCX_NET_DEVICES for `listen`) and execs argv again, once.
 * Returns 0 if nothing had to change.  Call it first in main, after parsing options. */
int peer_reexec(const char *listen, char **argv);

/* Opens our port and the UCX worker, in the running loop (loop_start first).  err says what to
 * do. */
int peer_start(const struct peer_config *c, char *err, size_t errlen);
void peer_stop(void);
const char *peer_address(void); /* "ADDR:PORT" that others reach */

/* Sets the address of node `id` in this incarnation.  A newer incarnation replaces an older one: the older
 * one's connection is closed, and its requests fail with -ECONNRESET. */
void peer_know(const struct member *m);
void peer_forget(uint64_t id);

/* ---- requests ---- */
/* Called once, in the network thread.
 * err 0: reply is a message of the expected kind.
 * An error with a reply: err is the reply's head.status.
 * -ETIMEDOUT (silence longer than the deadline) or -ECONNRESET (the connection broke) without a reply: the
 *   request was sent; it is not known whether the peer acted on it.
 * Another error without a reply: the request was never sent.  -ECONNREFUSED: no connection; -EACCES,
 *   -EPROTO, -ENOTSUP: why the hello was refused.
 * The caller of the callback frees reply afterwards, unless the callback sets *keep. */
typedef void (*peer_reply_fn)(void *arg, int err, struct msg *reply, bool *keep);

/* Sends request m (consumed) to node `id`.  silence_ms: how long it waits without an answer or WORKING.
 * If recv_buf is not NULL, the reply's bulk data (<= recv_len, else -EMSGSIZE) is received there and
 * reply->data points to it; recv_buf must stay until the callback.  id may be this node: then the
 * loop calls the handler.  Returns a request id for peer_cancel.  Lists and strings in
 * m may point to the caller's memory: they are copied during the call (also in peer_send and
 * peer_reply).  head.view is what the caller set, else what peer_set_view has set before the call. */
uint64_t peer_request(uint64_t id, struct msg *m, uint32_t silence_ms, void *recv_buf,
                      size_t recv_len, peer_reply_fn fn, void *arg);
/* The same, waiting: 0 or -errno; *reply (may be NULL) is the caller's to msg_free.  Never in the
 * network thread. */
int peer_call(uint64_t id, struct msg *m, uint32_t silence_ms, void *recv_buf, size_t recv_len,
              struct msg **reply);
/* The caller does not wait any more.  The callback comes soon with -ECANCELED.  If the answer is
 * already here, or its data is on the way into recv_buf, it comes with the answer.  Any thread; the id of a
 * request that has ended is ignored. */
void peer_cancel(uint64_t request);
/* Sends a message that needs no answer (consumed).  It is lost if there is no connection and none can be
 * made. */
void peer_send(uint64_t id, struct msg *m);

/* ---- serving ---- */
/* The handler of requests of one type.  It runs in the network thread and owns m.  If m->head.flags has
 * MSG_F_WANTS, it must in the end call peer_reply or peer_reply_error once, from any thread.  Then it calls
 * msg_free(m).  Register it before peer_start. */
typedef void (*peer_handler)(struct msg *m);
void peer_handle(enum msg_type type, peer_handler fn);
/* Answers request `to` with r (consumed; its free_data is called when the send has ended, whatever its
 * result). */
void peer_reply(const struct msg *to, struct msg *r);
void peer_reply_error(const struct msg *to, int err);
/* For a handler: what m says is out of bounds.  It is counted, logged (once a minute and sender), and answered with
 * -EINVAL if it wants an answer.  Frees m. */
void peer_refuse(struct msg *m);
/* Says WORKING once (the asker's silence starts again). */
void peer_working(const struct msg *to);

/* ---- events (network thread): a connection to a node broke or was refused, or it was heard from
 * ---- */
void peer_on_down(void (*fn)(uint64_t id, uint64_t incarnation, int err));
/* Every authenticated message: sender and the view in its head (members reads views/ when it is
 * newer). */
void peer_on_heard(void (*fn)(uint64_t id, uint64_t incarnation, uint64_t view));
/* sets the view in the heads of the messages that follow; any thread */
void peer_set_view(uint64_t view);
/* boot_ms of its last message, 0 = never; network thread */
uint64_t peer_last_heard_ms(uint64_t id);

/* ---- buffers, bounded by --memory ---- */
/* A buffer for data that this node asks of others.  Blocks until there is room: pool threads only.  Freed
 * with peer_buffer_free; size <= 16 MiB.  Such buffers leave an eighth of the memory to answers; otherwise
 * two nodes with many requests to each other would wait for each other. */
void *peer_buffer(size_t size);
/* the same for a thread that answers another node: may use all of the memory */
void *peer_buffer_serving(size_t size);
void *peer_buffer_try(size_t size); /* NULL when there is no room now */
void peer_buffer_free(void *buf);
/* For struct msg.free_data. */
void peer_buffer_free_data(void *arg, void *data);

#endif
