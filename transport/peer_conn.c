/* peer_conn.c - the peers: addresses, the hello, up and down, messages that wait for a connection.
 *
 *              send                     hello ok, or they connected to us
 *   DOWN -----------------> CONNECTING ----------------------------------> UP
 *     ^  <----- failed ---------+                                          |
 *     +---- endpoint failed, last TCP connection ended, forgotten, --------+
 *           newer incarnation, a transfer that is stuck
 *
 * Both sides may connect at once.  Then both TCP connections stay, there is one endpoint, and the peer is
 * down when the last connection ends.  A side that goes down closes all of its TCP connections.  So the
 * other side goes down, too, and both start afresh.  Peers are not freed before the end: there are few ids,
 * and posted calls may name them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/complaint.h"
#include "transport/hello.h"
#include "transport/loop.h"
#include "transport/peer_in.h"
#include "transport/peer_int.h"
#include "transport/peer_twin.h"
#include "transport/ucx_peer.h"
#include "transport/view.h"

#define BUCKETS     1024
#define QUEUED_MAX  4096
#define BACKOFF_MIN 200
#define BACKOFF_MAX 3000
#define CATCH_UP    64 /* at most so many endpoints are made at once to have as many as the peer */

static struct {
    uint64_t id;
    bool stopping;
    struct hello_self self;
    char name[NODE_NAME_MAX + 1];
    char settings[HELLO_SETTINGS_MAX + 1];
    char address[NODE_ADDR_MAX];
    struct peer *buckets[BUCKETS];
} conns;

/* ---- peers by id ---- */

static struct peer **bucket(uint64_t id)
{
    return &conns.buckets[(id ^ id >> 32) % BUCKETS]; /* ids are random */
}

struct peer *peer_find(uint64_t id)
{
    struct peer *p = *bucket(id);
    while (p && p->id != id)
        p = p->next;
    return p;
}

static struct peer *peer_get(uint64_t id)
{
    struct peer *p = peer_find(id);
    if (p)
        return p;
    p = xcalloc(1, sizeof(*p));
    p->id = id;
    TAILQ_INIT(&p->queue);
    strcpy(p->name, "?");
    p->next = *bucket(id);
    *bucket(id) = p;
    return p;
}

/* There is a newer process of this node: the agreements with the older one are void. */
static void set_incarnation(struct peer *p, uint64_t incarnation)
{
    if (p->incarnation == incarnation)
        return;
    if (p->state == PEER_UP)
        peer_down(p, -ECONNRESET);
    p->incarnation = incarnation;
    p->rounds = 0;
    p->ntokens = 0;
    p->backoff_ms = 0;
    p->retry_ms = 0;
}

/* ---- tokens ---- */

static void add_token(struct peer *p, uint64_t token)
{
    for (unsigned i = 0; i < p->ntokens; i++)
        if (p->tokens[i] == token)
            return;
    if (p->ntokens == PEER_TOKENS) {
        memmove(p->tokens, p->tokens + 1, sizeof(p->tokens) - sizeof(p->tokens[0]));
        p->ntokens--;
    }
    p->tokens[p->ntokens++] = token;
}

bool peer_proves(const struct peer *p, uint64_t incarnation, uint64_t token)
{
    bool found = false;
    for (unsigned i = 0; i < p->ntokens; i++)
        found |= p->tokens[i] == token;
    return found && p->incarnation == incarnation;
}

/* ---- messages that wait ---- */

static void transmit(struct peer *p, struct send *s)
{
    /* On the wire the head is little-endian and in the order of struct msg_head, which has no
     * holes. */
    _Static_assert(sizeof(struct msg_head) == MSG_HEAD_SIZE, "struct msg_head has holes");
    uint64_t token = p->token_for_us;
    for (unsigned i = 0; i < 8; i++)
        ((uint8_t *)s->frame)[offsetof(struct msg_head, token) + i] = (uint8_t)(token >> (8 * i));
    ucx_send(p->ep, s);
}

void peer_queue_drop(struct peer *p)
{
    struct send *s;
    while ((s = TAILQ_FIRST(&p->queue))) {
        TAILQ_REMOVE(&p->queue, s, link);
        send_free(s);
    }
    p->queued = 0;
}

static void queue_flush(struct peer *p)
{
    struct send *s;
    while (p->state == PEER_UP && (s = TAILQ_FIRST(&p->queue))) {
        TAILQ_REMOVE(&p->queue, s, link);
        p->queued--;
        transmit(p, s);
    }
}

int peer_not_sent(int err)
{
    return !err || err == -ETIMEDOUT || err == -ECONNRESET ? -ECONNREFUSED : err;
}

static int connect_to(struct peer *p)
{
    if (!p->addr[0] || boot_ms() < p->retry_ms)
        return peer_not_sent(p->last_err);
    p->state = PEER_CONNECTING;
    if (!p->saying_hello) {
        p->saying_hello = true;
        hello_connect(p->addr, p->id, p);
    }
    return 0;
}

static int enqueue(struct peer *p, struct send *s)
{
    if (p->queued == QUEUED_MAX)
        return -ECONNREFUSED;
    TAILQ_INSERT_TAIL(&p->queue, s, link);
    p->queued++;
    return 0;
}

int peer_submit(struct send *s)
{
    struct peer *p = peer_find(s->to);
    if (!p || conns.stopping)
        return -ECONNREFUSED;
    if (p->state == PEER_UP) {
        transmit(p, s);
        return 0;
    }
    int err = p->state == PEER_DOWN ? connect_to(p) : 0;
    return err ? err : enqueue(p, s);
}

void peer_submit_reply(struct send *s)
{
    struct peer *p = peer_find(s->to);
    if (p && p->incarnation == s->to_incarnation) {
        if (p->state == PEER_UP) {
            transmit(p, s);
            return;
        }
        /* The peer's messages came over UCX before its HELLO4. */
        if (p->state == PEER_CONNECTING && p->ntokens && !enqueue(p, s))
            return;
    }
    send_free(s);
}

bool peer_unqueue(uint64_t id, uint64_t request)
{
    struct peer *p = peer_find(id);
    struct send *s;
    if (!p)
        return false;
    TAILQ_FOREACH(s, &p->queue, link)
    {
        if (s->request == request)
            break;
    }
    if (!s)
        return false;
    TAILQ_REMOVE(&p->queue, s, link);
    p->queued--;
    send_free(s);
    return true;
}

/* ---- up and down ---- */

/* Makes endpoints until the next one is number n.  False: they are too many at once; the next hello goes on.
 * */
static bool catch_up(struct peer *p, const struct hello_peer *theirs, uint32_t n)
{
    for (unsigned i = 0; i < CATCH_UP && p->rounds + 1 < n; i++) {
        struct endpoint *e = ucx_connect(p, theirs->worker_addr);
        if (e)
            ucx_disconnect(e);
        p->rounds++;
    }
    return p->rounds + 1 == n;
}

static bool make_endpoint(struct peer *p, const struct hello_peer *theirs, uint32_t n)
{
    if (p->ep)
        return true;
    if (!catch_up(p, theirs, n))
        return false;
    p->ep = ucx_connect(p, theirs->worker_addr);
    p->rounds++;
    return p->ep != NULL;
}

static void go_up(struct peer *p)
{
    if (p->state != PEER_UP)
        log_debug("connected to node %s", p->name);
    p->state = PEER_UP;
    p->last_err = 0;
    p->backoff_ms = 0;
    p->retry_ms = 0;
    p->last_moved_ms = boot_ms();
    queue_flush(p);
    peer_buffers_freed(NULL); /* messages that came before the endpoint was there */
}

void peer_down(struct peer *p, int err)
{
    bool was_up = p->state == PEER_UP;
    uint64_t incarnation = p->incarnation;
    if (p->state == PEER_DOWN)
        return;
    p->state = PEER_DOWN;
    p->last_err = err;
    p->ntokens = 0;
    if (p->ep)
        ucx_disconnect(p->ep);
    p->ep = NULL;
    while (p->nconns)
        hello_close(p->conns[--p->nconns]);
    if (was_up && !conns.stopping) {
        count(peer_failures, 1);
        log_info("connection to node %s ended: %s", p->name, strerror(-err));
    }
    requests_fail(p, err);
    event_down(p->id, incarnation, err);
}

/* ---- what hello.c tells ---- */

static bool is_outdated(const struct peer *p, const struct hello_peer *h)
{
    if (h->incarnation >= p->incarnation)
        return false;
    log_info("node %s answered with incarnation %llu, known is %llu: connection closed", h->name,
             (unsigned long long)h->incarnation, (unsigned long long)p->incarnation);
    return true;
}

/* More endpoints were made since the hello's numbers: by another connection, or because the peer went down.
 * */
static void close_outrun(struct hello_conn *c, struct peer *p)
{
    hello_close(c);
    if (!p->nconns && !p->saying_hello && p->state == PEER_CONNECTING)
        peer_down(p, -ECONNRESET);
}

static void on_known(const struct hello_peer *h, void *arg)
{
    struct peer *p = arg;
    if (is_outdated(p, h))
        return;
    set_incarnation(p, h->incarnation);
    if (p->state != PEER_UP)
        p->state = PEER_CONNECTING; /* set_incarnation or the end of another connection may have
                                       taken it down */
    add_token(p, h->token_for_them);
}

static void on_ok(struct hello_conn *c, const struct hello_peer *h, void *arg)
{
    struct peer *p = peer_get(h->id);
    if (arg)
        p->saying_hello = false;
    if (conns.stopping || is_outdated(p, h)) {
        hello_close(c);
        if (arg && p->state == PEER_CONNECTING)
            peer_down(p, -ECONNRESET);
        return;
    }
    set_incarnation(p, h->incarnation);
    if (p->nconns == PEER_CONNS)
        peer_down(p, -ECONNRESET); /* it gave up connections whose end we have not seen */
    uint32_t n = hello_pair_number(&h->said, &h->made);
    if (p->rounds > n || (p->rounds == n && !p->ep)) {
        close_outrun(c, p);
        return;
    }
    if (p->ep && p->rounds < n)
        peer_down(p, -ECONNRESET);
    snprintf(p->name, sizeof(p->name), "%s", h->name);
    if (p->state == PEER_DOWN)
        p->state = PEER_CONNECTING;
    p->conns[p->nconns++] = c;
    add_token(p, h->token_for_them);
    p->token_for_us = h->token_for_us;
    if (make_endpoint(p, h, n))
        go_up(p);
    else
        peer_down(p, -ECONNRESET);
}

static void on_closed(struct hello_conn *c, uint64_t id, uint64_t incarnation)
{
    struct peer *p = peer_find(id);
    (void)incarnation;
    for (unsigned i = 0; p && i < p->nconns; i++) {
        if (p->conns[i] != c)
            continue;
        p->conns[i] = p->conns[--p->nconns];
        if (!p->nconns)
            peer_down(p, -ECONNRESET);
        return;
    }
}

/* A node that was connected before has most likely ended, and the others notice that. */
static void complain_unreachable(const struct peer *p, int err)
{
    char who[NODE_ADDR_MAX + 16], more[COMPLAINT_MORE];
    const char *hint = err == -ECONNREFUSED ? "no daemon listens there: it has ended, or it is behind another address"
                       : err == -ECONNRESET ? "the connection ended: its log may say why"
                                            : "does a firewall let TCP through between the nodes?";
    snprintf(who, sizeof(who), "reach %s", p->addr);
    if (!p->rounds && complaint_due(who, more))
        log_warn("node %s cannot be reached at %s: %s%s: %s (--listen says which address a node has)", p->name, p->addr,
                 strerror(-err), more, hint);
}

static void on_failed(void *arg, int err)
{
    if (peer_twin_failed(arg, err))
        return;
    struct peer *p = arg;
    p->saying_hello = false;
    if (p->state == PEER_CONNECTING)
        complain_unreachable(p, err);
    if (p->state != PEER_CONNECTING)
        return; /* the other side reached us meanwhile */
    p->backoff_ms = p->backoff_ms ? MIN(p->backoff_ms * 2, (unsigned)BACKOFF_MAX) : BACKOFF_MIN;
    p->retry_ms = boot_ms() + p->backoff_ms;
    peer_down(p, err);
}

static struct hello_made made_to(uint64_t id, uint64_t incarnation)
{
    struct peer *p = peer_find(id);
    bool known = p && p->incarnation == incarnation;
    return known ? (struct hello_made){p->rounds, p->ep} : (struct hello_made){0};
}

static const struct hello_ops ops = {
    .known = on_known, .ok = on_ok, .closed = on_closed, .failed = on_failed};

/* ---- addresses ---- */

static void know(void *arg)
{
    struct member *m = arg;
    if (m->id != conns.id && !conns.stopping) {
        struct peer *p = peer_get(m->id);
        if (m->incarnation >= p->incarnation) {
            set_incarnation(p, m->incarnation);
            snprintf(p->name, sizeof(p->name), "%s", m->name);
            if (strcmp(p->addr, m->addr)) {
                snprintf(p->addr, sizeof(p->addr), "%s", m->addr);
                p->retry_ms = 0;
            }
        }
    }
    free(m);
}

void peer_know(const struct member *m)
{
    struct member *copy = xmalloc(sizeof(*copy));
    *copy = *m;
    if (loop_is_here())
        know(copy);
    else
        loop_post(know, copy);
}

static void forget(void *arg)
{
    struct peer *p = peer_find(*(uint64_t *)arg);
    free(arg);
    if (!p)
        return;
    p->addr[0] = 0;
    peer_down(p, -ECONNRESET);
}

void peer_forget(uint64_t id)
{
    uint64_t *copy = xmalloc(sizeof(*copy));
    *copy = id;
    if (loop_is_here())
        forget(copy);
    else
        loop_post(forget, copy);
}

uint64_t peer_last_heard_ms(uint64_t id)
{
    struct peer *p = peer_find(id);
    return p ? p->last_heard_ms : 0;
}

const char *peer_address(void)
{
    return conns.address;
}

/* ---- start and stop ---- */

void conns_start(const struct peer_config *c)
{
    memset(&conns, 0, sizeof(conns));
    conns.id = c->id;
    snprintf(conns.name, sizeof(conns.name), "%s", c->name);
    peer_settings(conns.settings, sizeof(conns.settings));
    conns.self = (struct hello_self){
        .id = c->id,
        .incarnation = c->incarnation,
        .name = conns.name,
        .chunk_size = c->chunk_size,
        .settings = conns.settings,
        .made = made_to,
    };
}

int conns_listen(const char *listen, char *err, size_t errlen)
{
    conns.self.worker_addr = ucx_address(&conns.self.worker_addr_len);
    if (conns.self.worker_addr_len > HELLO_WORKER_ADDR_MAX) {
        snprintf(err, errlen, "UCX's address has %zu bytes: name fewer devices in UCX_NET_DEVICES",
                 conns.self.worker_addr_len);
        return -EMSGSIZE;
    }
    return hello_listen(listen, &conns.self, &ops, conns.address, err, errlen);
}

void conns_disconnect_all(void)
{
    conns.stopping = true;
    for (unsigned i = 0; i < BUCKETS; i++)
        for (struct peer *p = conns.buckets[i]; p; p = p->next)
            peer_down(p, -ECONNRESET);
}

void conns_close_all(void (*done)(void))
{
    hello_stop(done);
}

void conns_stop(void)
{
    for (unsigned i = 0; i < BUCKETS; i++) {
        struct peer *p, *next;
        for (p = conns.buckets[i]; p; p = next) {
            next = p->next;
            free(p);
        }
        conns.buckets[i] = NULL;
    }
}
