/* peer_ucx.c - endpoints, and active messages on them.
 *
 * One active message id for all messages.  AM header = the message's head and body, AM payload =
 * its bulk data; a body that does not fit travels at the front of the payload.  Eager up to 64 KiB
 * of payload, rendezvous above.
 *
 * The life of an endpoint:
 *
 *   ucx_connect      makes it
 *   on_ep_error      UCX calls this at an error, at any point of its work: we only note the error
 *   ucx_disconnect   after progress, when the peer goes down
 *   forced close     also after progress, never inside one of UCX's callbacks, and not before a flush of
 *                    the endpoint has ended
 *
 * The flush begins with the endpoint's first message, or else when the endpoint is to be closed.  Until it
 * has ended, UCX's own messages may wait for the connection, and UCX aborts if that is closed by force
 * (docs/transport.md).  The endpoint's struct lives until the last send, receive and
 * flush has had its own callback: until then UCX may use their buffers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/peer_in.h"
#include "transport/peer_int.h"
#include "transport/ucx_int.h"
#include "transport/ucx_peer.h"

#define EAGER_MAX (64u << 10)
#define SETTLE_MS 3000 /* ms, the longest wait for the flush: the other side may be silent */

struct endpoint {
    ucp_ep_h ep;
    struct peer *peer; /* NULL: disconnected */
    bool failed;
    enum { FRESH, SETTLING, SETTLED } state; /* FRESH: nothing was sent */
    uint64_t left_ms;                        /* boot_ms of ucx_disconnect */
    unsigned ops; /* sends, receives and flushes without a callback yet */
    struct send_list sends;
    TAILQ_HEAD(, receive) receives;
    TAILQ_ENTRY(endpoint) link; /* in live or in leaving */
};
TAILQ_HEAD(endpoint_list, endpoint);

static struct {
    struct endpoint_list live;    /* connected */
    struct endpoint_list leaving; /* to be closed, or closed and waiting for their callbacks */
} endpoints;

static int errno_of(ucs_status_t s)
{
    switch (s) {
    case UCS_OK:
        return 0;
    case UCS_ERR_NO_MEMORY:
        return -ENOMEM;
    case UCS_ERR_MESSAGE_TRUNCATED:
        return -EMSGSIZE;
    default:
        return -ECONNRESET; /* "endpoint timeout" too: UCX calls a reset so */
    }
}

/* ---- endpoints ---- */

void endpoints_start(void)
{
    TAILQ_INIT(&endpoints.live);
    TAILQ_INIT(&endpoints.leaving);
}

static void endpoint_free_if_done(struct endpoint *e)
{
    if (e->peer || e->ep || e->ops)
        return;
    TAILQ_REMOVE(&endpoints.leaving, e, link);
    free(e);
}

static void on_ep_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    struct endpoint *e = arg;
    (void)ep;
    log_debug("endpoint to %s: %s", e->peer ? e->peer->name : "a former peer",
              ucs_status_string(status));
    e->failed = true;
    ucx.failures = true;
}

struct endpoint *ucx_connect(struct peer *p, const void *worker_addr)
{
    struct endpoint *e = xcalloc(1, sizeof(*e));
    TAILQ_INIT(&e->sends);
    TAILQ_INIT(&e->receives);
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address = worker_addr,
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = on_ep_error, .arg = e},
    };
    ucs_status_t s = ucp_ep_create(ucx.worker, &params, &e->ep);
    if (s != UCS_OK) {
        log_warn("no UCX connection to node %s: %s", p->name, ucs_status_string(s));
        free(e);
        return NULL;
    }
    e->peer = p;
    TAILQ_INSERT_TAIL(&endpoints.live, e, link);
    return e;
}

static void on_settled(void *request, ucs_status_t status, void *user_data)
{
    struct endpoint *e = user_data;
    (void)status; /* a failure is the endpoint's */
    ucp_request_free(request);
    e->state = SETTLED;
    e->ops--;
    ucx.settling--;
    ucx.leavers |= !e->peer;
    endpoint_free_if_done(e);
}

static void settle(struct endpoint *e)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send = on_settled,
        .user_data = e,
    };
    ucs_status_ptr_t r = ucp_ep_flush_nbx(e->ep, &param);
    if (!UCS_PTR_IS_PTR(r)) { /* done, or the endpoint has failed */
        e->state = SETTLED;
        return;
    }
    e->state = SETTLING;
    e->ops++;
    ucx.settling++;
}

void ucx_disconnect(struct endpoint *e)
{
    e->peer = NULL;
    e->left_ms = boot_ms();
    TAILQ_REMOVE(&endpoints.live, e, link);
    TAILQ_INSERT_TAIL(&endpoints.leaving, e, link);
    ucx.leavers = true;
}

/* May it be closed by force now? */
static bool has_settled(struct endpoint *e)
{
    if (e->state == FRESH && !e->failed)
        settle(e);
    return e->failed || e->state == SETTLED || boot_ms() >= e->left_ms + SETTLE_MS;
}

void endpoints_close_leavers(void)
{
    ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                 .flags = UCP_EP_CLOSE_FLAG_FORCE};
    struct endpoint *e, *next;
    ucx.leavers = false;
    for (e = TAILQ_FIRST(&endpoints.leaving); e; e = next) {
        next = TAILQ_NEXT(e, link);
        if (!e->ep)
            continue;
        if (!has_settled(e)) {
            tick_arm();
            continue;
        }
        ucs_status_ptr_t r = ucp_ep_close_nbx(e->ep, &force);
        if (UCS_PTR_IS_PTR(r)) /* its end does not matter; the ends of the sends and receives do */
            ucp_request_free(r);
        e->ep = NULL;
        endpoint_free_if_done(e);
    }
}

/* When a peer goes down, any callback may run, so the list is searched again each time. */
void endpoints_report_failures(void)
{
    struct endpoint *e;
    ucx.failures = false;
    do {
        TAILQ_FOREACH(e, &endpoints.live, link)
        {
            if (e->failed)
                break;
        }
        if (e)
            peer_down(e->peer, -ECONNRESET);
    } while (e);
}

/* ---- sending ---- */

/* waited: UCX had to wait.  Bytes that UCX accepted at once may still be in a socket's buffer, and say
 * nothing of the peer. */
static void send_done(struct send *s, bool waited)
{
    struct endpoint *e = s->ep;
    TAILQ_REMOVE(&e->sends, s, link);
    e->ops--;
    ucx.sending--;
    if (e->peer && waited)
        e->peer->last_moved_ms = boot_ms();
    send_free(s);
    endpoint_free_if_done(e);
}

static void on_sent(void *request, ucs_status_t status, void *user_data)
{
    (void)status; /* a failure is the endpoint's */
    ucp_request_free(request);
    send_done(user_data, true);
}

/* Which parts are the AM header, and which are payload. */
static void split(struct send *s, size_t *header_len, void **payload, size_t *payload_len)
{
    *header_len = s->frame_len;
    *payload = s->data;
    *payload_len = s->data_len;
    if (s->frame_len <= ucx.inline_max)
        return;
    size_t body_len = s->frame_len - MSG_HEAD_SIZE;
    *header_len = MSG_HEAD_SIZE;
    *payload = (char *)s->frame + MSG_HEAD_SIZE;
    *payload_len = body_len + s->data_len;
    if (s->data_len) {
        s->joined = xmalloc(*payload_len);
        memcpy(s->joined, *payload, body_len);
        memcpy((char *)s->joined + body_len, s->data, s->data_len);
        *payload = s->joined;
    }
}

/* The first message tells UCX that an answer will be needed.  So both sides exchange their endpoints' numbers
 * now, while nothing is in their way.  Else they do so with the first rendezvous, and UCX aborts if an
 * endpoint is closed by force while its half of that exchange still waits to be sent. */
void ucx_send(struct endpoint *e, struct send *s)
{
    size_t header_len, len;
    void *payload;
    split(s, &header_len, &payload, &len);
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_MEMORY_TYPE,
        .flags = len > EAGER_MAX ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER,
        .cb.send = on_sent,
        .user_data = s,
        .memory_type = UCS_MEMORY_TYPE_HOST,
    };
    if (e->state == FRESH)
        param.flags |= UCP_AM_SEND_FLAG_REPLY;
    s->ep = e;
    s->since_ms = boot_ms();
    TAILQ_INSERT_TAIL(&e->sends, s, link);
    e->ops++;
    ucx.sending++;
    count(messages_sent, 1);
    count(served_bytes, s->data_len);
    ucs_status_ptr_t r = ucp_am_send_nbx(e->ep, AM_ID, s->frame, header_len, payload, len, &param);
    if (UCS_PTR_IS_ERR(r)) {
        on_ep_error(e, e->ep, UCS_PTR_STATUS(r));
        send_done(s, false);
        return;
    }
    if (!r)
        send_done(s, false);
    else
        tick_arm();
    if (e->state == FRESH)
        settle(e);
}

unsigned ucx_transfers(void)
{
    return ucx.sending + ucx.receiving;
}

bool ucx_tick(void)
{
    ucx.leavers |= ucx.settling > 0; /* one may have waited long enough */
    return ucx.settling > 0;
}

/* ---- receiving ---- */

struct receive {
    struct endpoint *ep; /* forced close of it ends the receive */
    uint64_t since_ms;
    TAILQ_ENTRY(receive) link; /* in the endpoint's receives */
    size_t len;
    ucx_done done;
    void *arg;
};

static void receive_done(struct receive *r, int err)
{
    struct endpoint *e = r->ep;
    struct receive copy = *r;
    TAILQ_REMOVE(&e->receives, r, link);
    free(r);
    e->ops--;
    ucx.receiving--;
    if (e->peer)
        e->peer->last_moved_ms = boot_ms();
    if (!err)
        count(received_bytes, copy.len);
    copy.done(copy.arg, err);
    endpoint_free_if_done(e);
}

static void on_received(void *request, ucs_status_t status, size_t length, void *user_data)
{
    struct receive *r = user_data;
    ucp_request_free(request);
    receive_done(r, status == UCS_OK && length != r->len ? -EPROTO : errno_of(status));
}

void ucx_receive_kept(struct peer *from, void *desc, size_t len, void *buf, ucx_done done,
                      void *arg)
{
    struct receive *r = xcalloc(1, sizeof(*r));
    *r = (struct receive){
        .ep = from->ep, .since_ms = boot_ms(), .len = len, .done = done, .arg = arg};
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FIELD_MEMORY_TYPE,
        .cb.recv_am = on_received,
        .user_data = r,
        .memory_type = UCS_MEMORY_TYPE_HOST,
    };
    TAILQ_INSERT_TAIL(&from->ep->receives, r, link);
    from->ep->ops++;
    ucx.receiving++;
    tick_arm();
    ucs_status_ptr_t s = ucp_am_recv_data_nbx(ucx.worker, desc, buf, len, &param);
    if (!UCS_PTR_IS_PTR(s)) /* else on_received comes, or has come already */
        receive_done(r, errno_of(UCS_PTR_STATUS(s)));
}

struct peer *ucx_stuck_peer(uint64_t before_ms)
{
    struct endpoint *e;
    TAILQ_FOREACH(e, &endpoints.live, link)
    {
        const struct send *s = TAILQ_FIRST(&e->sends);
        const struct receive *r = TAILQ_FIRST(&e->receives);
        bool old = (s && s->since_ms < before_ms) || (r && r->since_ms < before_ms);
        if (old && e->peer->last_moved_ms < before_ms)
            return e->peer;
    }
    return NULL;
}

void ucx_receive(struct peer *from, struct payload *pl, void *buf, ucx_done done, void *arg)
{
    if (pl->rndv) {
        pl->taken = true;
        ucx_receive_kept(from, pl->data, pl->len, buf, done, arg);
        return;
    }
    memcpy(buf, pl->data, pl->len);
    count(received_bytes, pl->len);
    done(arg, 0);
}

void *ucx_keep(struct payload *pl)
{
    pl->taken = true;
    return pl->data;
}

void ucx_drop_kept(void *desc)
{
    ucp_am_data_release(ucx.worker, desc);
}

ucs_status_t endpoints_on_message(void *arg, const void *header, size_t header_len, void *data,
                                  size_t len, const ucp_am_recv_param_t *param)
{
    (void)arg;
    struct payload pl = {
        .data = data, .len = len, .rndv = param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV};
    count(messages_received, 1);
    peer_incoming(header, header_len, &pl);
    /* OK: UCX tells the sender of unwanted data that it is done */
    return pl.taken ? UCS_INPROGRESS : UCS_OK;
}
