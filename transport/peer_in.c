/* peer_in.c - incoming messages: is the sender proven, which request does a reply answer, where does the
 * bulk data go, which handler gets the message?
 *
 *   peer_incoming: checks head, sizes, the sender's token
 *        |
 *        |-- the body is payload: received first, into a buffer of those for bodies, or deferred
 *        |   until there is one; then on as below
 *        |-- reply ----> its pending request; bulk data into the asker's memory; callback
 *        +-- request --> a buffer, or deferred until there is one; bulk data into it; handler
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "transport/complaint.h"
#include "transport/loop.h"
#include "transport/peer_in.h"
#include "transport/peer_int.h"
#include "transport/ucx_peer.h"

#define WORKING_MS 1000 /* requests that wait here for a buffer say so */

/* A message, as it came, whose bulk data waits for a buffer, or for this node's end of the connection. */
struct deferred {
    uint64_t from, incarnation;
    void *kept; /* UCX's descriptor */
    size_t len;
    uint64_t said_working_ms;
    uint32_t header_len;
    TAILQ_ENTRY(deferred) link;
    uint8_t header[];
};

/* Bulk data on its way into memory. */
struct landing {
    struct msg *m;    /* a request, or a reply's message */
    uint64_t request; /* a reply: of this pending request */
    uint64_t from;
    uint8_t *whole; /* body (and data) of a message whose body is payload: head, body, data */
    size_t whole_len;
};

static struct {
    peer_handler handlers[MSG_TYPES];
    void (*_Atomic on_heard)(uint64_t id, uint64_t incarnation, uint64_t view);
    /* network thread */
    TAILQ_HEAD(, deferred) deferred; /* the oldest first */
    bool rerunning;                  /* deferred messages are being looked at */
    uint64_t said_working_ms;        /* of the one that is */
} in;

/* ---- what came in: replies ---- */

/* Requests without a reply of their own are answered with a status: ERROR, which may then say 0. */
static uint16_t reply_type(uint16_t request)
{
    switch (request) {
    case MSG_KEEP:
        return MSG_KEPT;
    case MSG_PING:
        return MSG_PONG;
    case MSG_ADOPTED:
        return MSG_ADOPTED_OK;
    case MSG_WANT:
        return MSG_GRANT;
    case MSG_COPY:
        return MSG_COPIED;
    case MSG_WHERE:
        return MSG_AT;
    case MSG_ASK:
        return MSG_HAVE;
    case MSG_FREE:
        return MSG_FREED;
    case MSG_FETCH:
        return MSG_CHUNK;
    case MSG_READ:
        return MSG_RANGE;
    case MSG_WRITE:
        return MSG_WRITTEN;
    case MSG_NAMED:
        return MSG_NAMED_OK;
    case MSG_LOCK:
        return MSG_LOCKED;
    case MSG_FORGET:
        return MSG_FORGOTTEN;
    case MSG_BREAK:
        return MSG_BROKEN;
    case MSG_CHANGED:
        return MSG_CHANGED_OK;
    case MSG_LEND:
        return MSG_LENT;
    case MSG_LOAN:
        return MSG_LOAN_IS;
    case MSG_RETURN:
        return MSG_RETURNED;
    case MSG_BRING:
        return MSG_BROUGHT;
    case MSG_TELL_FIGURES:
        return MSG_FIGURES;
    case MSG_MEMORY:
        return MSG_MEMORY_IS;
    default:
        return MSG_ERROR;
    }
}

static bool reply_fits(const struct pending *p, const struct msg_head *h)
{
    if (h->status > 0 || h->status < -4095)
        return false;
    if (h->type == MSG_NEXT_PIECE)
        return p->type == MSG_ADOPTED || p->type == MSG_COPY;
    if (h->type == MSG_ELSEWHERE)
        return p->type == MSG_FETCH && !h->status;
    return h->type == reply_type(p->type) || (h->type == MSG_ERROR && h->status);
}

static const char *name_of(uint64_t id)
{
    const struct peer *p = peer_find(id);
    return p ? p->name : "?";
}

/* The request that this reply ends, with the decoded reply; NULL if there is nothing more to do. */
static struct pending *match_reply(const struct msg_head *h, const void *frame, size_t len,
                                   struct msg **m)
{
    struct pending *p = pending_find(h->request);
    if (!p || p->to != h->sender || p->receiving)
        return NULL; /* too late, or sent twice */
    if (h->type == MSG_WORKING) {
        p->deadline_ms = boot_ms() + p->silence_ms;
        return NULL;
    }
    bool fits = reply_fits(p, h);
    int err = fits ? msg_decode(frame, len, m, NULL) : -EPROTO;
    if (!err)
        return p;
    if (fits)
        count(bad_messages, 1);
    else
        count(bad_answers, 1);
    complain_of_node(name_of(h->sender), "a %s%s as the answer to a %s", fits ? "malformed " : "",
                     msg_name(h->type), msg_name(p->type));
    pending_end(p, err, NULL);
    return NULL;
}

static void reply_landed(void *arg, int err)
{
    struct landing *l = arg;
    struct pending *p = pending_find(l->request);
    struct msg *m = l->m;
    free(l);
    p->receiving = false;
    if (p->failed)
        err = p->failed;
    if (err) {
        msg_free(m);
        pending_end(p, err, NULL);
    } else {
        pending_end(p, m->head.status, m);
    }
}

/* Where the reply's data goes: the asker's memory or our own. */
static int place_reply(struct pending *p, struct msg *m)
{
    if (p->recv_buf && m->head.data_len > p->recv_len) {
        count(bad_answers, 1);
        complain_of_node(name_of(p->to), "%llu bytes as the answer to a %s for %zu",
                         (unsigned long long)m->head.data_len, msg_name(p->type), p->recv_len);
        return -EMSGSIZE;
    }
    if (p->recv_buf) {
        m->data = p->recv_buf;
    } else {
        m->data = peer_buffer_always(m->head.data_len);
        m->free_data = peer_buffer_free_data;
    }
    return 0;
}

static void take_reply(struct peer *from, const struct msg_head *h, const void *frame, size_t len,
                       struct payload *pl)
{
    struct msg *m = NULL;
    struct pending *p = match_reply(h, frame, len, &m);
    if (!p)
        return;
    if (!pl->len) {
        pending_end(p, h->status, m);
        return;
    }
    int err = place_reply(p, m);
    if (err) {
        msg_free(m);
        pending_end(p, err, NULL);
        return;
    }
    struct landing *l = xcalloc(1, sizeof(*l));
    *l = (struct landing){.m = m, .request = p->id, .from = h->sender};
    p->receiving = true;
    p->deadline_ms = boot_ms() + p->silence_ms;
    ucx_receive(from, pl, m->data, reply_landed, l);
}

/* ---- what came in: requests and one-way messages ---- */

static void hand_over(struct msg *m)
{
    in.handlers[m->head.type](m);
}

static void request_landed(void *arg, int err)
{
    struct landing *l = arg;
    struct msg *m = l->m;
    free(l);
    if (err)
        msg_free(m); /* its sender is gone */
    else
        hand_over(m);
}

static void defer(const struct msg_head *h, const void *header, size_t header_len,
                  struct payload *pl)
{
    struct deferred *d = xcalloc(1, sizeof(*d) + header_len);
    d->from = h->sender;
    d->incarnation = h->incarnation;
    d->len = pl->len;
    d->kept = ucx_keep(pl);
    d->said_working_ms = in.rerunning ? in.said_working_ms : boot_ms();
    d->header_len = (uint32_t)header_len;
    memcpy(d->header, header, header_len);
    TAILQ_INSERT_TAIL(&in.deferred, d, link);
    tick_arm();
}

/* NULL: it was deferred, or there is no such message here and its sender was told so. */
static struct msg *decode_request(const struct msg_head *h, const void *frame, size_t len)
{
    struct msg *m = NULL;
    int err = msg_decode(frame, len, &m, NULL);
    if (!err && !in.handlers[m->head.type])
        err = -ENOTSUP;
    if (!err)
        return m;
    msg_free(m);
    if (err == -EPROTO) {
        count(bad_messages, 1);
        complain_of_node(name_of(h->sender), "a malformed %s", msg_name(h->type));
    }
    if (h->flags & MSG_F_WANTS)
        reply_error_head(h, err);
    return NULL;
}

static void take_request(struct peer *from, const struct msg_head *h, const void *frame, size_t len,
                         struct payload *pl)
{
    void *buf = NULL;
    struct msg *m;
    if (pl->rndv) {
        if (TAILQ_EMPTY(&in.deferred)) /* first come, first served */
            buf = peer_buffer_try_or_tell(pl->len);
        if (!buf) {
            defer(h, frame, len, pl);
            return;
        }
    }
    m = decode_request(h, frame, len);
    if (!m) {
        peer_buffer_free(buf);
        return;
    }
    if (!pl->len) {
        hand_over(m);
        return;
    }
    m->data = buf ? buf : peer_buffer_always(pl->len);
    m->free_data = peer_buffer_free_data;
    struct landing *l = xcalloc(1, sizeof(*l));
    l->m = m;
    ucx_receive(from, pl, m->data, request_landed, l);
}

/* ---- what came in: any message ---- */

static void take(struct peer *from, const struct msg_head *h, const void *frame, size_t len,
                 struct payload *pl)
{
    if (h->flags & MSG_F_REPLY)
        take_reply(from, h, frame, len, pl);
    else
        take_request(from, h, frame, len, pl);
}

/* All of a message whose body was payload is here: go on as if it had come eagerly. */
static void whole_landed(void *arg, int err)
{
    struct landing *l = arg;
    struct msg_head h;
    struct peer *from = peer_find(l->from);
    if (!err && from && from->state == PEER_UP && !msg_decode_head(l->whole, l->whole_len, &h)) {
        struct payload pl = {.data = l->whole + MSG_HEAD_SIZE + h.body_len, .len = h.data_len};
        take(from, &h, l->whole, MSG_HEAD_SIZE + h.body_len, &pl);
    }
    peer_buffer_free(l->whole);
    free(l);
}

/* It does not wait behind bulk data: what is deferred before it may wait for what it says. */
static void take_whole(struct peer *from, const struct msg_head *h, const void *header,
                       struct payload *pl)
{
    size_t len = MSG_HEAD_SIZE + pl->len;
    void *buf = pl->rndv ? peer_body_try_or_tell(len) : peer_buffer_always(len);
    if (!buf) {
        defer(h, header, MSG_HEAD_SIZE, pl);
        return;
    }
    struct landing *l = xcalloc(1, sizeof(*l));
    l->from = h->sender;
    l->whole_len = len;
    l->whole = buf;
    memcpy(l->whole, header, MSG_HEAD_SIZE);
    ucx_receive(from, pl, l->whole + MSG_HEAD_SIZE, whole_landed, l);
}

static bool sizes_agree(const struct msg_head *h, size_t header_len, size_t payload_len,
                        bool *body_inline)
{
    *body_inline = header_len == MSG_HEAD_SIZE + (size_t)h->body_len;
    if (*body_inline)
        return payload_len == h->data_len;
    return header_len == MSG_HEAD_SIZE && payload_len == h->body_len + h->data_len;
}

/* UCX does not say which node sent it. */
static void refuse_stranger(const char *what)
{
    char more[COMPLAINT_MORE];
    count(bad_messages, 1);
    if (complaint_due("messages of strangers", more))
        log_warn("%s came over UCX: refused%s", what, more);
}

void peer_incoming(const void *header, size_t header_len, struct payload *pl)
{
    struct msg_head h;
    bool body_inline;
    if (msg_decode_head(header, header_len, &h) ||
        !sizes_agree(&h, header_len, pl->len, &body_inline)) {
        refuse_stranger("something that is no message");
        return;
    }
    struct peer *from = peer_find(h.sender);
    if (from && !from->ntokens) { /* it was still on the way when the connection ended */
        count(bad_messages, 1);
        return;
    }
    if (!from || !peer_proves(from, h.incarnation, h.token)) {
        refuse_stranger("a message without proof of its sender");
        return;
    }
    if (!in.rerunning)
        from->last_heard_ms = from->last_moved_ms = boot_ms();
    void (*heard)(uint64_t, uint64_t, uint64_t) = in.on_heard;
    if (heard && !in.rerunning)
        heard(h.sender, h.incarnation, h.view);
    if (from->state == PEER_DOWN)
        return; /* on_heard */
    if (pl->rndv && !from->ep)
        defer(&h, header, header_len, pl); /* it has our proof, its answer is on the way here */
    else if (body_inline)
        take(from, &h, header, header_len, pl);
    else
        take_whole(from, &h, header, pl);
}

/* ---- messages that wait for a buffer ---- */

void peer_buffers_freed(void *unused)
{
    (void)unused;
    if (in.rerunning || !peer_runs())
        return;
    in.rerunning = true;
    TAILQ_HEAD(, deferred) todo = TAILQ_HEAD_INITIALIZER(todo);
    TAILQ_CONCAT(&todo, &in.deferred, link);
    struct deferred *d;
    while ((d = TAILQ_FIRST(&todo))) {
        TAILQ_REMOVE(&todo, d, link);
        in.said_working_ms = d->said_working_ms;
        struct payload pl = {.data = d->kept, .len = d->len, .rndv = true};
        peer_incoming(d->header, d->header_len,
                      &pl); /* may put it back, at the end of in.deferred: the order stays */
        if (!pl.taken)
            ucx_drop_kept(d->kept);
        free(d);
    }
    in.rerunning = false;
}

static void say_working(uint64_t now)
{
    struct deferred *d;
    TAILQ_FOREACH(d, &in.deferred, link)
    {
        struct msg_head h;
        if (now < d->said_working_ms + WORKING_MS ||
            msg_decode_head(d->header, d->header_len, &h) || !(h.flags & MSG_F_WANTS))
            continue;
        d->said_working_ms = now;
        reply_head(&h, msg_new(MSG_WORKING));
    }
}

void incoming_tick(uint64_t now)
{
    if (TAILQ_EMPTY(&in.deferred))
        return;
    peer_buffers_freed(NULL); /* the one in front may have gone with its connection */
    say_working(now);
}

bool incoming_waits(void)
{
    return !TAILQ_EMPTY(&in.deferred);
}

void incoming_drop(uint64_t from)
{
    struct deferred *d, *next;
    for (d = TAILQ_FIRST(&in.deferred); d; d = next) {
        next = TAILQ_NEXT(d, link);
        if (d->from != from)
            continue;
        TAILQ_REMOVE(&in.deferred, d, link);
        ucx_drop_kept(d->kept);
        free(d);
    }
}

/* ---- to this node itself ---- */

static void reply_here(struct send *s, const struct msg_head *h)
{
    struct msg *m = NULL;
    struct pending *p = match_reply(h, s->frame, s->frame_len, &m);
    if (!p)
        return;
    if (s->data && p->recv_buf) {
        if (s->data_len > p->recv_len) {
            msg_free(m);
            pending_end(p, -EMSGSIZE, NULL);
            return;
        }
        memcpy(p->recv_buf, s->data, s->data_len);
        m->data = p->recv_buf;
    } else {
        m->data = s->data;
        m->free_data = s->free_data;
        m->free_arg = s->free_arg;
        s->data = NULL;
    }
    pending_end(p, h->status, m);
}

void incoming_from_here(void *arg)
{
    struct send *s = arg;
    struct msg_head h;
    struct msg *m;
    if (msg_decode_head(s->frame, s->frame_len, &h))
        die("own message cannot be decoded");
    if (!peer_runs()) {
        send_free(s);
        return;
    }
    if (h.flags & MSG_F_REPLY) {
        reply_here(s, &h);
    } else if ((m = decode_request(&h, s->frame, s->frame_len))) {
        m->data = s->data;
        m->free_data = s->free_data;
        m->free_arg = s->free_arg;
        s->data = NULL;
        hand_over(m);
    }
    send_free(s);
}

/* ---- registration, start ---- */

void peer_handle(enum msg_type type, peer_handler fn)
{
    in.handlers[type] = fn;
}

void peer_on_heard(void (*fn)(uint64_t id, uint64_t incarnation, uint64_t view))
{
    in.on_heard = fn;
}

void incoming_start(void)
{
    TAILQ_INIT(&in.deferred);
}
