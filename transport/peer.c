/* peer.c - requests and replies: ids, deadlines of silence, start and stop.
 *
 * A request's life (what came in: peer_in.c):
 *
 *   peer_request --> WAITING --a reply with bulk data begins--> RECEIVING --all of it is here--> callback
 *                       |                                           |
 *                       |-- reply without bulk data:                '-- silence, broken connection:
 *                       |     callback                                    the endpoint is closed by force;
 *                       '-- silence, broken connection, cancelled:        callback with an error when UCX
 *                             callback with an error                      does not use the buffer any more
 *
 * Messages to this node itself take the same way without UCX: they are encoded, posted and decoded, and
 * their bulk data is handed over.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "transport/lock.h"
#include "transport/loop.h"
#include "transport/peer_in.h"
#include "transport/peer_int.h"
#include "transport/ucx_peer.h"
#include "transport/waits.h"

#define TICK_MS       50    /* deadlines are kept to within this */
#define STUCK_MS      15000 /* ms: then a transfer is given up if nothing of its peer moves */
#define REQUEST_SLOTS 4096  /* ids are consecutive: chains stay short */

TAILQ_HEAD(pending_list, pending);

static struct {
    _Atomic uint64_t id, incarnation, view, next_request;
    _Atomic bool running;
    void (*_Atomic on_down)(uint64_t id, uint64_t incarnation, int err);

    /* network thread */
    struct pending_list all;
    struct pending *slots[REQUEST_SLOTS];
    struct loop_timer *tick;
    bool ticking;
} net;

/* ---- messages out ---- */

void send_free(struct send *s)
{
    if (s->data && s->free_data)
        s->free_data(s->free_arg, s->data);
    free(s->joined);
    free(s->frame);
    free(s);
}

/* Encodes m and takes its data; frees m in any case. */
static int send_make(uint64_t to, struct msg *m, struct send **out)
{
    struct send *s = NULL;
    void *frame;
    size_t len;
    if (!m->head.view)
        m->head.view = atomic_load(&net.view);
    m->head.sender = atomic_load(&net.id);
    m->head.incarnation = atomic_load(&net.incarnation);
    if (!m->data)
        m->head.data_len = 0;
    int err = msg_encode(m, &frame, &len);
    if (!err) {
        s = xcalloc(1, sizeof(*s));
        *s = (struct send){.to = to,
                           .frame = frame,
                           .frame_len = len,
                           .data = m->data,
                           .data_len = m->head.data_len,
                           .free_data = m->free_data,
                           .free_arg = m->free_arg};
        m->data = NULL;
    }
    msg_free(m);
    *out = s;
    return err;
}

/* ---- pending requests ---- */

static struct pending **slot(uint64_t id)
{
    return &net.slots[id % REQUEST_SLOTS];
}

struct pending *pending_find(uint64_t id)
{
    struct pending *p = *slot(id);
    while (p && p->id != id)
        p = p->next_in_slot;
    return p;
}

static void pending_add(struct pending *p)
{
    p->next_in_slot = *slot(p->id);
    *slot(p->id) = p;
    TAILQ_INSERT_TAIL(&net.all, p, link);
    p->deadline_ms = boot_ms() + p->silence_ms;
    tick_arm();
}

static void pending_remove(struct pending *p)
{
    struct pending **at = slot(p->id);
    while (*at != p)
        at = &(*at)->next_in_slot;
    *at = p->next_in_slot;
    TAILQ_REMOVE(&net.all, p, link);
}

/* The callback, once; p is out of the tables.  reply may be NULL. */
static void pending_tell(struct pending *p, int err, struct msg *reply)
{
    bool keep = false;
    p->fn(p->arg, err, reply, &keep);
    if (reply && !keep)
        msg_free(reply);
    free(p);
}

void pending_end(struct pending *p, int err, struct msg *reply)
{
    pending_remove(p);
    pending_tell(p, err, reply);
}

/* Ends a request that waits for an answer at once, and one that is being received when UCX does not use its
 * buffer any more.  True if p is out of the tables and in `ended`. */
static bool pending_fail(struct pending *p, int err, struct pending_list *ended)
{
    if (p->receiving) {
        if (!p->failed)
            p->failed = err;
        return false;
    }
    pending_remove(p);
    p->failed = err;
    TAILQ_INSERT_TAIL(ended, p, link);
    return true;
}

static void tell_ended(struct pending_list *ended)
{
    struct pending *p;
    while ((p = TAILQ_FIRST(ended))) {
        TAILQ_REMOVE(ended, p, link);
        pending_tell(p, p->failed, NULL);
    }
}

void requests_fail(struct peer *peer, int err)
{
    struct pending_list ended = TAILQ_HEAD_INITIALIZER(ended);
    struct pending *p, *next;
    incoming_drop(peer->id);
    for (p = TAILQ_FIRST(&net.all); p; p = next) {
        next = TAILQ_NEXT(p, link);
        if (p->to == peer->id)
            pending_fail(p, peer_unqueue(p->to, p->id) ? peer_not_sent(err) : err, &ended);
    }
    peer_queue_drop(peer); /* before a callback asks again */
    tell_ended(&ended);
}

void event_down(uint64_t id, uint64_t incarnation, int err)
{
    void (*fn)(uint64_t, uint64_t, int) = net.on_down;
    if (fn && atomic_load(&net.running))
        fn(id, incarnation, err);
}

/* ---- deadlines ---- */

static void fail_silent_requests(uint64_t now)
{
    struct pending_list ended = TAILQ_HEAD_INITIALIZER(ended);
    struct pending *p, *next;
    struct peer *stuck = NULL; /* ends one of them; more at the next tick */
    for (p = TAILQ_FIRST(&net.all); p; p = next) {
        next = TAILQ_NEXT(p, link);
        if (now < p->deadline_ms || p->failed)
            continue;
        struct peer *peer = peer_find(p->to);
        if (p->receiving && peer && now < peer->last_moved_ms + p->silence_ms)
            continue; /* its turn will come: the peer is not silent */
        if (p->receiving && peer) {
            stuck = peer; /* with its connection all of them end */
            continue;
        }
        bool unsent = peer_unqueue(p->to, p->id);
        pending_fail(p, unsent ? peer_not_sent(-ETIMEDOUT) : -ETIMEDOUT, &ended);
    }
    tell_ended(&ended);
    if (stuck)
        peer_down(stuck, -ETIMEDOUT);
}

static void break_stuck_transfers(uint64_t now)
{
    struct peer *p = now > STUCK_MS ? ucx_stuck_peer(now - STUCK_MS) : NULL;
    if (!p)
        return;
    log_warn("node %s has taken and sent nothing for %u s: its connection is closed", p->name,
             STUCK_MS / 1000);
    peer_down(p, -ETIMEDOUT);
}

static void on_tick(void *arg)
{
    (void)arg;
    uint64_t now = boot_ms();
    if (!ucx_tick() && TAILQ_EMPTY(&net.all) && !incoming_waits() && !ucx_transfers()) {
        loop_timer_stop(net.tick);
        net.ticking = false;
        return;
    }
    fail_silent_requests(now);
    break_stuck_transfers(now);
    incoming_tick(now);
}

void tick_arm(void)
{
    if (net.ticking || !net.tick)
        return;
    net.ticking = true;
    loop_timer_set(net.tick, TICK_MS, TICK_MS);
}

/* ---- requests ---- */

static void fail_posted(void *arg)
{
    struct pending *p = arg;
    int err = p->failed;
    pending_tell(p, err, NULL);
}

static void request_start(void *arg)
{
    struct pending *p = arg;
    struct send *s = p->send;
    int err = p->failed;
    p->send = NULL;
    if (!err && !atomic_load(&net.running))
        err = -ECONNRESET;
    if (!err && p->to == atomic_load(&net.id)) {
        pending_add(p);
        loop_post(incoming_from_here, s);
        return;
    }
    if (!err)
        err = peer_submit(s);
    if (!err) {
        pending_add(p);
        return;
    }
    if (s)
        send_free(s);
    p->failed = err;
    loop_post(fail_posted, p); /* never during the caller's peer_request */
}

uint64_t peer_request(uint64_t id, struct msg *m, uint32_t silence_ms, void *recv_buf,
                      size_t recv_len, peer_reply_fn fn, void *arg)
{
    struct pending *p = xcalloc(1, sizeof(*p));
    *p = (struct pending){.id = atomic_fetch_add(&net.next_request, 1),
                          .to = id,
                          .type = m->head.type,
                          .silence_ms = silence_ms,
                          .recv_buf = recv_buf,
                          .recv_len = recv_len,
                          .fn = fn,
                          .arg = arg};
    uint64_t request = p->id; /* p may be gone when request_start was posted */
    m->head.flags = MSG_F_WANTS;
    m->head.request = request;
    m->head.deadline_ms = silence_ms;
    m->head.status = 0;
    p->failed = send_make(id, m, &p->send);
    if (p->send)
        p->send->request = request;
    if (loop_is_here())
        request_start(p);
    else
        loop_post(request_start, p);
    return request;
}

static void cancel(void *arg)
{
    uint64_t request = *(uint64_t *)arg;
    struct pending *p = pending_find(request);
    free(arg);
    if (!p || p->receiving)
        return;
    peer_unqueue(p->to, p->id);
    pending_end(p, -ECANCELED, NULL);
}

void peer_cancel(uint64_t request)
{
    uint64_t *copy = xmalloc(sizeof(*copy));
    *copy = request;
    loop_post(cancel, copy);
}

struct call {
    struct lock lock;
    pthread_cond_t cond;
    bool done;
    int err;
    struct msg *reply;
};

static void call_done(void *arg, int err, struct msg *reply, bool *keep)
{
    struct call *c = arg;
    lock_take(&c->lock);
    c->err = err;
    c->reply = reply;
    *keep = true;
    c->done = true;
    pthread_cond_signal(&c->cond);
    lock_drop(&c->lock);
}

int peer_call(uint64_t id, struct msg *m, uint32_t silence_ms, void *recv_buf, size_t recv_len,
              struct msg **reply)
{
    struct call c = {.done = false};
    if (loop_is_here())
        die("peer_call in the network thread");
    lock_assert_none();
    lock_init(&c.lock, RANK_LEAF);
    lock_cond_init(&c.cond);
    peer_request(id, m, silence_ms, recv_buf, recv_len, call_done, &c);
    lock_take(&c.lock);
    while (!c.done)
        wait_on(WAIT_NODES, &c.lock, &c.cond, 0);
    lock_drop(&c.lock);
    pthread_cond_destroy(&c.cond);
    lock_destroy(&c.lock);
    if (reply)
        *reply = c.reply;
    else if (c.reply)
        msg_free(c.reply);
    return c.err;
}

static void send_start(void *arg)
{
    struct send *s = arg;
    if (!atomic_load(&net.running))
        send_free(s);
    else if (s->to == atomic_load(&net.id))
        loop_post(incoming_from_here, s);
    else if (peer_submit(s))
        send_free(s);
}

void peer_send(uint64_t id, struct msg *m)
{
    struct send *s;
    m->head.flags = 0;
    m->head.request = 0;
    m->head.deadline_ms = 0;
    int err = send_make(id, m, &s);
    if (err)
        log_error("a message could not be encoded: %s", strerror(-err));
    else if (loop_is_here())
        send_start(s);
    else
        loop_post(send_start, s);
}

/* ---- replies ---- */

static void reply_start(void *arg)
{
    struct send *s = arg;
    if (!atomic_load(&net.running))
        send_free(s);
    else if (s->to == atomic_load(&net.id))
        loop_post(incoming_from_here, s);
    else
        peer_submit_reply(s);
}

void reply_head(const struct msg_head *to, struct msg *r)
{
    struct send *s;
    uint16_t type = r->head.type;
    r->head.flags = MSG_F_REPLY;
    r->head.request = to->request;
    r->head.deadline_ms = 0;
    int err = send_make(to->sender, r, &s);
    if (err) { /* r is freed: at least reply with an error */
        log_error("a %s could not be encoded: %s", msg_name(type), strerror(-err));
        struct msg *e = msg_new(MSG_ERROR);
        e->head.status = err;
        reply_head(to, e);
        return;
    }
    s->to_incarnation = to->incarnation;
    if (loop_is_here())
        reply_start(s);
    else
        loop_post(reply_start, s);
}

void reply_error_head(const struct msg_head *to, int err)
{
    struct msg *e = msg_new(MSG_ERROR);
    e->head.status = err;
    reply_head(to, e);
}

void peer_reply(const struct msg *to, struct msg *r)
{
    reply_head(&to->head, r);
}

void peer_reply_error(const struct msg *to, int err)
{
    reply_error_head(&to->head, err);
}

void peer_working(const struct msg *to)
{
    reply_head(&to->head, msg_new(MSG_WORKING));
}

/* ---- the rest of the face ---- */

bool peer_runs(void)
{
    return atomic_load(&net.running);
}

void peer_on_down(void (*fn)(uint64_t id, uint64_t incarnation, int err))
{
    net.on_down = fn;
}

void peer_set_view(uint64_t view)
{
    atomic_store(&net.view, view);
}

/* ---- start and stop ---- */

struct start {
    const struct peer_config *config;
    char *err;
    size_t errlen;
    int result;
};

static void nothing(void)
{
}

static void start_here(void *arg)
{
    struct start *s = arg;
    s->result = ucx_start(s->err, s->errlen);
    if (s->result)
        return;
    conns_start(s->config);
    net.tick = loop_timer_new(on_tick, NULL);
    s->result = conns_listen(s->config->listen, s->err, s->errlen);
    if (!s->result) {
        atomic_store(&net.running, true);
        return;
    }
    loop_timer_free(net.tick);
    net.tick = NULL;
    ucx_close_handles(nothing);
}

int peer_start(const struct peer_config *c, char *err, size_t errlen)
{
    struct start s = {.config = c, .err = err, .errlen = errlen};
    TAILQ_INIT(&net.all);
    incoming_start();
    atomic_store(&net.id, c->id);
    atomic_store(&net.incarnation, c->incarnation);
    /* Not guessable from outside, and not that of an earlier run of this node. */
    atomic_store(&net.next_request, random_u64() >> 1 | 1);
    buffers_start(c->memory);
    loop_call(start_here, &s);
    return s.result;
}

static struct {
    struct lock lock;
    pthread_cond_t cond;
    bool done;
} stop;

static void stop_done(void)
{
    lock_take(&stop.lock);
    stop.done = true;
    pthread_cond_signal(&stop.cond);
    lock_drop(&stop.lock);
}

static void stop_handles(void)
{
    ucx_close_handles(stop_done);
}

static void fail_all(void)
{
    struct pending_list ended = TAILQ_HEAD_INITIALIZER(ended);
    struct pending *p, *next;
    for (p = TAILQ_FIRST(&net.all); p; p = next) {
        next = TAILQ_NEXT(p, link);
        pending_fail(p, -ECONNRESET, &ended);
    }
    tell_ended(&ended);
}

static void stop_here(void *arg)
{
    (void)arg;
    atomic_store(&net.running, false);
    conns_disconnect_all();
    fail_all(); /* those to this node itself */
    ucx_stop();
    loop_timer_free(net.tick);
    net.tick = NULL;
    net.ticking = false;
    conns_close_all(stop_handles);
}

void peer_stop(void)
{
    if (!atomic_load(&net.running))
        return;
    lock_init(&stop.lock, RANK_LEAF);
    lock_cond_init(&stop.cond);
    stop.done = false;
    loop_call(stop_here, NULL);
    lock_take(&stop.lock);
    while (!stop.done)
        lock_wait(&stop.lock, &stop.cond, 0);
    lock_drop(&stop.lock);
    pthread_cond_destroy(&stop.cond);
    lock_destroy(&stop.lock);
    conns_stop();
    buffers_stop();
}
