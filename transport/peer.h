/* peer.h - sending messages to nodes and receiving theirs, over UCX active messages.
 *
 * Peers are named by node id; addresses come from the view and from nodes/ (peer_know).
 * Connections are made when first needed: hello.c proves both sides on our own TCP port and
 * exchanges UCX worker addresses, peer.c makes endpoints from them.  All state here belongs to the
 * network thread; the functions below may be called from any thread unless they say otherwise, and
 * hand the work over.
 *
 * Facts that decided this (UCX 1.13.1, measured; docs/transport.md): no ucp_listener; active
 * messages only; no ucp_ep_flush but the one by which a new endpoint settles; eager up to 64 KiB,
 * rendezvous above, asked for explicitly; the AM header is kept until its send completes;
 * ucp_request_cancel does nothing for AM, so the only time-out is a forced ep close and buffers stay
 * until each request's own callback fired; ep pointers are reused.
 */
#ifndef EDDY_TRANSPORT_PEER_H
#define EDDY_TRANSPORT_PEER_H

#include "transport/message.h"
#include "transport/session.h"

struct peer_config {
    const char *listen; /* ADDR[:PORT] or NULL */
    uint64_t id, incarnation;
    const char *name;
    uint32_t chunk_size;
    uint64_t memory; /* bound on buffers, bytes */
};

/* UCX settings must be in the environment before exec: sets what the user has not set
 * (peer_env.c; UCX_TLS, UCX_NET_DEVICES for `listen`) and execs argv again, once.
 * Returns 0 when nothing had to change.  Call first thing in main, after parsing options. */
int peer_reexec(const char *listen, char **argv);

/* Opens our port and the UCX worker, in the running loop (loop_start first).  err says what to
 * do. */
int peer_start(const struct peer_config *c, char *err, size_t errlen);
void peer_stop(void);
const char *peer_address(void); /* "ADDR:PORT" that others reach */

/* Tells where node `id` of this incarnation answers.  A newer incarnation replaces an older one,
 * whose connection is closed and whose requests fail with -ECONNRESET. */
void peer_know(const struct member *m);
void peer_forget(uint64_t id);

/* ---- requests ---- */
/* Called once, in the network thread.  err 0: reply is a message of the expected kind (its
 * head.status may still be an error: err is then that status and reply is given too).  -ETIMEDOUT
 * (silence longer than the deadline) and -ECONNRESET (the connection broke) without a reply: it was
 * sent, whether it was acted on is not known.  Any other error without a reply: never sent:
 * -ECONNREFUSED (no connection), or why the hello was refused: -EACCES, -EPROTO, -ENOTSUP.  reply
 * is freed by the caller of the callback afterwards unless the callback sets *keep. */
typedef void (*peer_reply_fn)(void *arg, int err, struct msg *reply, bool *keep);

/* Sends request m (consumed) to node `id`.  silence_ms: how long without an answer or WORKING.
 * If recv_buf is not NULL, the reply's bulk data (<= recv_len, else -EMSGSIZE) lands there and
 * reply->data points to it; recv_buf must stay until the callback.  id may be this node: the
 * handler is called by way of the loop. Returns a request id for peer_cancel.  Lists and strings in
 * m may point to the caller's memory: they are copied during the call (so too in peer_send,
 * peer_reply).  head.view: what the caller set, else that of peer_set_view at the call. */
uint64_t peer_request(uint64_t id, struct msg *m, uint32_t silence_ms, void *recv_buf,
                      size_t recv_len, peer_reply_fn fn, void *arg);
/* The same, waiting: 0 or -errno; *reply (may be NULL) is the caller's to msg_free.  Never in the
 * network thread. */
int peer_call(uint64_t id, struct msg *m, uint32_t silence_ms, void *recv_buf, size_t recv_len,
              struct msg **reply);
/* The caller does not wait any more: the callback comes soon with -ECANCELED, unless the answer is
 * there or its data is already on the way into recv_buf; then with that.  Any thread; an id that
 * has ended is ignored. */
void peer_cancel(uint64_t request);
/* A message that wants no answer (consumed).  Lost if there is no connection and none can be
 * made. */
void peer_send(uint64_t id, struct msg *m);

/* ---- serving ---- */
/* Handler of requests of one type; network thread; owns m; must in the end call peer_reply or
 * peer_reply_error once if m->head.flags has MSG_F_WANTS, from any thread, then msg_free(m).
 * Register before peer_start. */
typedef void (*peer_handler)(struct msg *m);
void peer_handle(enum msg_type type, peer_handler fn);
/* Answers request `to` with r (consumed; its free_data is called when the send has completed, any
 * outcome). */
void peer_reply(const struct msg *to, struct msg *r);
void peer_reply_error(const struct msg *to, int err);
/* Says WORKING once (the asker's silence starts again). */
void peer_working(const struct msg *to);

/* ---- events (network thread): a connection to a node broke or was refused, or it was heard from
 * ---- */
void peer_on_down(void (*fn)(uint64_t id, uint64_t incarnation, int err));
/* Every authenticated message: sender and the view in its head (members reads views/ when it is
 * newer). */
void peer_on_heard(void (*fn)(uint64_t id, uint64_t incarnation, uint64_t view));
/* what goes into heads of messages given to us from now on; any thread */
void peer_set_view(uint64_t view);
/* boot_ms of its last message, 0 = never; network thread */
uint64_t peer_last_heard_ms(uint64_t id);

/* ---- buffers, bounded by --memory ---- */
/* Blocks until there is room (never in the network thread; pool threads).  Freed with
 * peer_buffer_free; size <= 16 MiB. For what this node asks of others.  It leaves an eighth of the
 * memory to those who serve others, or two nodes full of requests to each other would wait for each
 * other. */
void *peer_buffer(size_t size);
/* the same for who answers another node: may use all of it */
void *peer_buffer_serving(size_t size);
void *peer_buffer_try(size_t size); /* NULL when there is no room now */
void peer_buffer_free(void *buf);
/* For struct msg.free_data. */
void peer_buffer_free_data(void *arg, void *data);

#endif
