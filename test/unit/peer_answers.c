/* peer_answers.c - what every node answers: by the fid of the request (enum what). */
#include "peer_nodes.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/peer_in.h"
#include "transport/peer_int.h"
#include "transport/ucx_peer.h"
#include "transport/view.h"

static void reply_bytes(struct msg *m)
{
    struct msg *r = msg_new(MSG_RANGE);
    uint32_t n = m->read.length;
    r->range.size = n;
    if (n) {
        r->data = peer_buffer_always(n);
        r->head.data_len = n;
        r->free_data = peer_buffer_free_data;
        fill(r->data, n, m->read.offset);
    }
    peer_reply(m, r);
    msg_free(m);
}

struct work {
    struct msg *m;
    struct loop_timer *timer;
    unsigned left;
};

static void go_on_working(void *arg)
{
    struct work *w = arg;
    if (w->left--) {
        peer_working(w->m);
        return;
    }
    loop_timer_free(w->timer);
    w->m->read.length = 10;
    reply_bytes(w->m);
    free(w);
}

static void asked_back(void *arg, int err, struct msg *reply, bool *keep)
{
    struct msg *m = arg;
    (void)keep;
    if (!err && !is_filled(reply->data, m->read.length, m->read.offset))
        err = -EIO;
    if (err)
        peer_reply_error(m, err);
    else
        peer_reply(m, msg_new(MSG_RANGE));
    msg_free(m);
}

/* Bytes as they are, from the network thread, through the endpoint to node `to`. */
static void send_raw(uint64_t to, const void *frame, size_t len)
{
    struct send *s = xcalloc(1, sizeof(*s));
    *s = (struct send){.to = to, .frame = xmalloc(len), .frame_len = len};
    memcpy(s->frame, frame, len);
    ucx_send(peer_find(to)->ep, s);
}

static void set_le(uint8_t *frame, size_t at, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        frame[at + i] = (uint8_t)(v >> (8 * i));
}

/* One GRANT with our token: as it is, and with one thing wrong in each copy. */
static void send_garbage(uint64_t to)
{
    struct msg *m = msg_new(MSG_WHERE);
    struct fid fids[2] = {{.hi = 1, .lo = 2}, {.hi = 3, .lo = 4}};
    struct item_fid_item items[2] = {{fids[0]}, {fids[1]}};
    void *frame;
    size_t len;
    uint8_t bad[512];
    m->head.sender = OTHER;
    m->head.incarnation = 1;
    m->head.token = peer_find(to)->token_for_us;
    m->where.fids.n = 2;
    m->where.fids.v = items;
    if (msg_encode(m, &frame, &len) || len > sizeof(bad))
        die("no frame");
    msg_free(m);
    const size_t body_len = offsetof(struct msg_head, body_len),
                 data_len = offsetof(struct msg_head, data_len);
    for (unsigned i = 0; i < GARBAGE; i++) {
        size_t n = len;
        memcpy(bad, frame, len);
        switch (i) {
        case 0: /* noise */
            fill(bad, sizeof(bad), 7);
            n = sizeof(bad);
            break;
        case 1: /* a part of a head */
            n = MSG_HEAD_SIZE - 1;
            break;
        case 2:
            set_le(bad, body_len, UINT32_MAX, 4);
            break;
        case 3:
            set_le(bad, data_len, UINT64_MAX, 8);
            break;
        case 4: /* data that does not come */
            set_le(bad, data_len, MSG_DATA_MAX, 8);
            break;
        case 5: /* a list longer than the message */
            set_le(bad, MSG_HEAD_SIZE + 9, UINT32_MAX, 4); /* behind look and number */
            break;
        case 6: /* a body that ends in the list */
            n = len - 8;
            set_le(bad, body_len, n - MSG_HEAD_SIZE, 4);
            break;
        case 7: /* another major version */
            set_le(bad, offsetof(struct msg_head, version), (MSG_MAJOR + 1) << 8, 2);
            break;
        }
        send_raw(to, bad, n);
    }
    free(frame);
}

_Atomic pid_t asker_pid;

static void stop_asker(void)
{
    pid_t pid = atomic_exchange(&asker_pid, 0);
    if (pid)
        kill(pid, SIGSTOP);
}

static void ignored(void *arg, int err, struct msg *reply, bool *keep)
{
    (void)arg;
    (void)err;
    (void)reply;
    (void)keep;
}

static void flood(uint64_t to, unsigned reads, unsigned writes)
{
    static char buf[FLOOD_MAX][FLOOD_SIZE];
    for (unsigned i = 0; i < writes; i++)
        peer_request(to, make_write(i, FLOOD_SIZE), LONG_MS, NULL, 0, ignored, NULL);
    for (unsigned i = 0; i < reads; i++)
        peer_request(to, make_read(WHAT_BYTES, i, FLOOD_SIZE), LONG_MS, buf[i % FLOOD_MAX],
                     FLOOD_SIZE, ignored, NULL);
}

static void handle_read(struct msg *m)
{
    stop_asker();
    switch ((enum what)m->read.fid.hi) {
    case WHAT_BYTES:
        reply_bytes(m);
        return;
    case WHAT_SILENCE:
        msg_free(m);
        return;
    case WHAT_ERROR:
        peer_reply_error(m, -ENOENT);
        msg_free(m);
        return;
    case WHAT_WORKING: {
        struct work *w = xcalloc(1, sizeof(*w));
        w->m = m;
        w->left = (unsigned)m->read.offset;
        w->timer = loop_timer_new(go_on_working, w);
        loop_timer_set(w->timer, 100, 100);
        return;
    }
    case WHAT_ASK_BACK:
        peer_request(m->head.sender, make_read(WHAT_BYTES, m->read.offset, m->read.length), LONG_MS,
                     NULL, 0, asked_back, m);
        return;
    case WHAT_BREAK_TOKEN:
        peer_find(m->head.sender)->token_for_us ^= 1;
        reply_bytes(m);
        return;
    case WHAT_SMALL_REPLY:
        m->read.length = 100;
        reply_bytes(m);
        return;
    case WHAT_GARBAGE:
        send_garbage(m->head.sender);
        reply_bytes(m);
        return;
    case WHAT_WRONG_KIND:
        peer_reply(m, msg_new(MSG_GRANT));
        msg_free(m);
        return;
    case WHAT_MORE:
        m->read.length += 1;
        reply_bytes(m);
        return;
    case WHAT_FLOOD:
        flood(m->head.sender, (unsigned)m->read.offset, m->read.length);
        msg_free(m);
        return;
    }
    peer_reply_error(m, -EINVAL);
    msg_free(m);
}

static char half_hello_to[NODE_ADDR_MAX];

static void half_hello_now(uint64_t id, uint64_t incarnation, int err)
{
    (void)id;
    (void)incarnation;
    (void)err;
    peer_on_down(NULL);
    half_hello(half_hello_to, OTHER, 1);
}

/* "When our connection ends, say half a hello to this address." */
static void handle_fetch(struct msg *m)
{
    snprintf(half_hello_to, sizeof(half_hello_to), "%s", m->fetch.path);
    peer_on_down(half_hello_now);
    peer_reply(m, msg_new(MSG_CHUNK));
    msg_free(m);
}

static void check_write(void *arg)
{
    struct msg *m = arg;
    stop_asker();
    if (m->write.offset == 999)
        usleep(20000); /* a slow disk */
    struct msg *r = msg_new(MSG_WRITTEN);
    r->written.size = m->head.data_len;
    if (m->head.data_len != m->write.length ||
        !is_filled(m->data, m->head.data_len, m->write.offset))
        r->head.status = -EIO;
    peer_reply(m, r);
    msg_free(m);
}

static void handle_write(struct msg *m)
{
    loop_work(check_write, NULL, m);
}

static void handle_adopted(struct msg *m)
{
    struct msg *r = msg_new(MSG_ADOPTED_OK);
    for (uint32_t i = 0; i < m->adopted.claims.n; i++)
        if (m->adopted.claims.v[i].number == i)
            r->adopted_ok.view++;
    peer_reply(m, r);
    msg_free(m);
}

void answer_requests(void)
{
    peer_handle(MSG_READ, handle_read);
    peer_handle(MSG_WRITE, handle_write);
    peer_handle(MSG_ADOPTED, handle_adopted);
    peer_handle(MSG_FETCH, handle_fetch);
}

static void free_lie(void *arg, void *data)
{
    (void)arg;
    free(data);
}

/* Each time another one: no address; more bytes than came; memory beyond the end of all; too short; a key that is none. */
void answer_memory_with_lies(struct msg *m)
{
    static unsigned n;
    struct msg *r = msg_new(MSG_MEMORY_IS);
    struct body_memory_is all[] = {
        {4096, MIB, 0, 100}, {4096, MIB, 4000, 4000}, {UINT64_MAX - 10, MIB, 50, 50}, {4096, 1, 50, 50}, {4096, MIB, 50, UINT32_MAX}};
    r->memory_is = all[n++ % ARRAY_LEN(all)];
    r->data = calloc(1, 100);
    r->head.data_len = 100;
    r->free_data = free_lie;
    peer_reply(m, r);
    msg_free(m);
}
