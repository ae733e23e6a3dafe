/* hello_proto.c - the hello's state machine: bytes in, bytes out, no sockets.
 *
 *   connector                             acceptor
 *   begin: HELLO1 nonce          ------->     A_WAIT1
 *   C_WAIT2                      <-------     HELLO2 nonce, fields, HMAC
 *     acceptor is proven
 *     HELLO3 fields, way, HMAC   ------->     A_WAIT3
 *   C_WAIT4                                     connector is proven: DONE, or refused
 *     DONE, or refused           <-------     HELLO4 verdict, way, HMAC
 *
 * Until its proof is checked nothing of the other side is looked at but magic, lengths and nonce,
 * and it is told nothing but our own HELLO2: what any reader of the session directory knows, and
 * settings that are the same on all nodes.  The way to us over UCX, which is a token and the
 * worker's address, is told to a proven node only: by the connector in HELLO3, by the acceptor in
 * HELLO4.  A mismatch of versions or chunk sizes is only said after both proofs, so that both sides
 * can log it: the frames here can be read in every major version; new fields are appended before
 * the HMAC and old readers skip them.
 */
#include "transport/hello.h"
#include "transport/view.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC       0x4f4c4c48u /* "HLLO" */
#define NONCE_LEN   32
#define MAC_LEN     32
#define PREFIX_LEN  10 /* magic u32, frame number u16, major u16, minor u16 */
#define ROLE_LEN    16
#define REASON_MAX  1024
#define SESSION_MAX 64

enum state { C_BEGIN, C_WAIT2, C_WAIT4, A_WAIT1, A_WAIT3, DONE, DEAD };

struct hello_proto {
    enum state state;
    struct hello_self self;
    uint8_t secret[32];
    char session[SESSION_MAX + 1];
    uint64_t token;                  /* for them */
    uint8_t nonces[2 * NONCE_LEN];   /* connector's, acceptor's */
    uint8_t in[4 + HELLO_FRAME_MAX]; /* the frame that is coming in */
    size_t in_len;
    uint8_t *frames; /* all frames so far, both ways, with their lengths: what the HMACs cover */
    size_t frames_len;
    bool proven;
    struct hello_peer peer;
    uint8_t worker_addr[HELLO_WORKER_ADDR_MAX];
    uint16_t peer_major;
    uint32_t peer_chunk;
    char peer_settings[HELLO_SETTINGS_MAX + 1];
    char peer_session[SESSION_MAX + 1];
    int mismatch; /* -errno that we found and the peer will find too */
    char reason[REASON_MAX];
};

/* ---- bytes ---- */

struct writer {
    uint8_t b[4 + HELLO_FRAME_MAX];
    size_t n;
};

static void put(struct writer *w, const void *p, size_t n)
{
    if (w->n + n > sizeof(w->b))
        die("hello frame too long");
    memcpy(w->b + w->n, p, n);
    w->n += n;
}

static void put_uint(struct writer *w, uint64_t v, int bytes)
{
    uint8_t b[8];
    for (int i = 0; i < bytes; i++)
        b[i] = (uint8_t)(v >> (8 * i));
    put(w, b, (size_t)bytes);
}

static void put_bytes(struct writer *w, const void *p, size_t n)
{
    put_uint(w, n, 2);
    put(w, p, n);
}

struct reader {
    const uint8_t *p, *end;
    bool bad; /* something was missing or too long; what was read is zero */
};

static uint64_t get_uint(struct reader *r, int bytes)
{
    uint64_t v = 0;
    if (r->bad || r->end - r->p < bytes) {
        r->bad = true;
        return 0;
    }
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)r->p[i] << (8 * i);
    r->p += bytes;
    return v;
}

/* A field that older versions do not send. */
static uint64_t get_added(struct reader *r, int bytes)
{
    return r->p == r->end ? 0 : get_uint(r, bytes);
}

static size_t get_bytes(struct reader *r, void *out, size_t max)
{
    size_t n = get_uint(r, 2);
    if (r->bad || n > max || (size_t)(r->end - r->p) < n) {
        r->bad = true;
        return 0;
    }
    memcpy(out, r->p, n);
    r->p += n;
    return n;
}

static void get_text(struct reader *r, char *out, size_t max)
{
    size_t n = get_bytes(r, out, max);
    out[n] = 0;
    if (memchr(out, 0, n))
        r->bad = true;
}

static int fail(struct hello_proto *h, int err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int fail(struct hello_proto *h, int err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(h->reason, sizeof(h->reason), fmt, ap);
    va_end(ap);
    h->state = DEAD;
    return err;
}

/* ---- frames out ---- */

static void frame_begin(const struct hello_proto *h, struct writer *w, int number)
{
    w->n = 0;
    put_uint(w, 0, 4); /* the length, set by frame_end */
    put_uint(w, MAGIC, 4);
    put_uint(w, (uint64_t)number, 2);
    put_uint(w, h->self.major ? h->self.major : HELLO_MAJOR, 2);
    put_uint(w, HELLO_MINOR, 2);
}

static void remember(struct hello_proto *h, const void *frame, size_t n)
{
    h->frames = xrealloc(h->frames, h->frames_len + n);
    memcpy(h->frames + h->frames_len, frame, n);
    h->frames_len += n;
}

/* HMAC(secret, role || nonces || frames so far || this frame without its HMAC).  The role is that of the
 * frame's maker, and differs per frame, so that no frame can be sent back to its maker. */
static void make_mac(const struct hello_proto *h, int number, const void *frame, size_t n,
                     uint8_t mac[MAC_LEN])
{
    char role[ROLE_LEN + 1];
    snprintf(role, sizeof(role), "eddyfs hello %d %c", number, number == 3 ? 'c' : 'a');
    size_t len = ROLE_LEN + sizeof(h->nonces) + h->frames_len + n;
    uint8_t *all = xmalloc(len), *p = all;
    memset(p, 0, ROLE_LEN);
    memcpy(p, role, strlen(role));
    memcpy(p += ROLE_LEN, h->nonces, sizeof(h->nonces));
    p += sizeof(h->nonces);
    if (h->frames_len)
        memcpy(p, h->frames, h->frames_len);
    memcpy(p + h->frames_len, frame, n);
    unsigned mac_len = MAC_LEN;
    if (!HMAC(EVP_sha256(), h->secret, sizeof(h->secret), all, len, mac, &mac_len) ||
        mac_len != MAC_LEN)
        die("libcrypto cannot make an HMAC-SHA256");
    free(all);
}

/* Sets the length, adds the HMAC if wanted, and appends the frame to *out. */
static void frame_end(struct hello_proto *h, struct writer *w, int number, bool with_mac,
                      void **out, size_t *out_len)
{
    uint32_t len = (uint32_t)(w->n - 4 + (with_mac ? MAC_LEN : 0));
    for (int i = 0; i < 4; i++)
        w->b[i] = (uint8_t)(len >> (8 * i));
    if (with_mac) {
        uint8_t mac[MAC_LEN];
        make_mac(h, number, w->b, w->n, mac);
        put(w, mac, sizeof(mac));
    }
    remember(h, w->b, w->n);
    *out = xrealloc(*out, *out_len + w->n);
    memcpy((uint8_t *)*out + *out_len, w->b, w->n);
    *out_len += w->n;
}

/* Stands in HELLO2 where HELLO3 has an address: a node of major version 3 takes no empty one, and
 * would not get as far as to say that the versions differ. */
static const uint8_t no_addr[1];

/* In HELLO2 the acceptor does not know the connector yet, so it sends this in HELLO4. */
static struct hello_made own_made(const struct hello_proto *h)
{
    bool known = h->self.made && h->proven;
    return known ? h->self.made(h->peer.id, h->peer.incarnation) : (struct hello_made){0};
}

/* HELLO2 goes to a stranger: it has neither token nor address. */
static void put_fields(struct hello_proto *h, struct writer *w)
{
    h->peer.said = own_made(h);
    put_uint(w, h->self.id, 8);
    put_uint(w, h->self.incarnation, 8);
    put_uint(w, h->self.chunk_size, 4);
    put_uint(w, h->proven ? h->token : 0, 8);
    put_uint(w, h->peer.said.rounds, 4);
    put_bytes(w, h->session, strlen(h->session));
    put_bytes(w, h->self.name, strlen(h->self.name));
    if (h->proven)
        put_bytes(w, h->self.worker_addr, h->self.worker_addr_len);
    else
        put_bytes(w, no_addr, sizeof(no_addr));
    put_bytes(w, h->self.settings, strlen(h->self.settings));
    put_uint(w, h->peer.said.connected, 1);
}

static void send_verdict(struct hello_proto *h, int err, void **out, size_t *out_len)
{
    struct writer w;
    h->peer.said = own_made(h);
    frame_begin(h, &w, 4);
    put_uint(&w, (uint32_t)-err, 4);
    put_uint(&w, h->peer.said.rounds, 4);
    put_bytes(&w, h->reason, err ? strlen(h->reason) : 0);
    put_uint(&w, h->peer.said.connected, 1);
    if (!err) {
        put_uint(&w, h->token, 8);
        put_bytes(&w, h->self.worker_addr, h->self.worker_addr_len);
    }
    frame_end(h, &w, 4, true, out, out_len);
}

/* ---- frames in: r is behind the prefix and ends before the HMAC ---- */

/* The verdict is the same on both sides, whichever looks first.  The text has both values and what to do. */
static int find_mismatch(struct hello_proto *h)
{
    unsigned major = h->self.major ? h->self.major : HELLO_MAJOR;
    char a[16], b[16];
    if (h->peer.id == h->self.id) {
        snprintf(h->reason, sizeof(h->reason),
                 "nodes %s and %s have the same node id: a cache directory was copied; give one of "
                 "them an empty --cache-dir",
                 h->self.name, h->peer.name);
        return -ENOTUNIQ;
    }
    if (h->peer_major != major)
        snprintf(h->reason, sizeof(h->reason),
                 "nodes %s and %s speak protocol versions %u and %u: install the same eddyfs on "
                 "all nodes of the session",
                 h->self.name, h->peer.name, major, h->peer_major);
    else if (strcmp(h->peer_session, h->session))
        snprintf(h->reason, sizeof(h->reason),
                 "nodes %s and %s are of sessions %s and %s: start them with one --session",
                 h->self.name, h->peer.name, h->session, h->peer_session);
    else if (h->peer_chunk != h->self.chunk_size)
        snprintf(h->reason, sizeof(h->reason),
                 "nodes %s and %s have chunk sizes %s and %s: start all nodes of the session with "
                 "the same --chunk-size",
                 h->self.name, h->peer.name, size_format(h->self.chunk_size, a, sizeof(a)),
                 size_format(h->peer_chunk, b, sizeof(b)));
    else if (strcmp(h->peer_settings, h->self.settings))
        snprintf(
            h->reason, sizeof(h->reason),
            "nodes %s and %s have different settings (%s and %s): make them the same on all nodes",
            h->self.name, h->peer.name, h->self.settings, h->peer_settings);
    else
        return 0;
    return -EPROTO;
}

static void get_addr(struct hello_proto *h, struct reader *r)
{
    h->peer.worker_addr = h->worker_addr;
    h->peer.worker_addr_len = get_bytes(r, h->worker_addr, sizeof(h->worker_addr));
    if (!h->peer.worker_addr_len)
        r->bad = true;
}

static int get_fields(struct hello_proto *h, struct reader *r)
{
    struct hello_peer *p = &h->peer;
    p->id = get_uint(r, 8);
    p->incarnation = get_uint(r, 8);
    h->peer_chunk = (uint32_t)get_uint(r, 4);
    p->token_for_us = get_uint(r, 8);
    p->made.rounds = (uint32_t)get_uint(r, 4);
    get_text(r, h->peer_session, SESSION_MAX);
    get_text(r, p->name, NODE_NAME_MAX);
    get_addr(h, r);
    get_text(r, h->peer_settings, HELLO_SETTINGS_MAX);
    p->made.connected = get_added(r, 1);
    p->token_for_them = h->token;
    if (r->bad || !name_is_plain(p->name) || !name_is_plain(h->peer_session))
        return fail(h, -EPROTO, "malformed hello of a node that knows the secret");
    h->proven = true;
    h->mismatch = find_mismatch(h);
    return 0;
}

static int take_hello1(struct hello_proto *h, struct reader *r, void **out, size_t *out_len)
{
    if (r->end - r->p < NONCE_LEN)
        return fail(h, -EPROTO, "not an eddyfs hello");
    memcpy(h->nonces, r->p, NONCE_LEN);
    remember(h, h->in, h->in_len);
    struct writer w;
    frame_begin(h, &w, 2);
    put(&w, h->nonces + NONCE_LEN, NONCE_LEN);
    put_fields(h, &w);
    frame_end(h, &w, 2, true, out, out_len);
    h->state = A_WAIT3;
    return 0;
}

static int take_hello2(struct hello_proto *h, struct reader *r, void **out, size_t *out_len)
{
    r->p += NONCE_LEN; /* there, and copied: open_frame */
    int err = get_fields(h, r);
    if (err)
        return err;
    remember(h, h->in, h->in_len);
    struct writer w;
    frame_begin(h, &w, 3);
    put_fields(h, &w);
    frame_end(h, &w, 3, true, out, out_len);
    h->state =
        C_WAIT4; /* also when something does not match: the other side shall know and log it too */
    return 0;
}

static int take_hello3(struct hello_proto *h, struct reader *r, void **out, size_t *out_len)
{
    int err = get_fields(h, r);
    if (err)
        return err;
    remember(h, h->in, h->in_len);
    send_verdict(h, h->mismatch, out, out_len);
    h->state = h->mismatch ? DEAD : DONE;
    return h->mismatch ? h->mismatch : 1;
}

static int take_hello4(struct hello_proto *h, struct reader *r)
{
    uint32_t err = (uint32_t)get_uint(r, 4);
    struct hello_made made = {.rounds = (uint32_t)get_uint(r, 4)};
    char reason[REASON_MAX];
    get_text(r, reason, sizeof(reason) - 1);
    made.connected = get_added(r, 1);
    if (h->mismatch) { /* our own words for it */
        h->state = DEAD;
        return h->mismatch;
    }
    if (!err) {
        h->peer.token_for_us = get_uint(r, 8);
        get_addr(h, r);
    }
    if (r->bad)
        return fail(h, -EPROTO, "malformed verdict of node %s", h->peer.name);
    if (err)
        return fail(h, err == EPROTO ? -EPROTO : -EACCES, "node %s refused: %s", h->peer.name,
                    reason);
    h->peer.made = made;
    h->state = DONE;
    return 1;
}

/* Checks prefix and HMAC of the frame in h->in; sets r to what is between. */
static int open_frame(struct hello_proto *h, int number, struct reader *r)
{
    *r = (struct reader){.p = h->in + 4, .end = h->in + h->in_len};
    uint32_t magic = (uint32_t)get_uint(r, 4);
    uint32_t got = (uint32_t)get_uint(r, 2);
    h->peer_major = (uint16_t)get_uint(r, 2);
    get_uint(r, 2); /* the minor version: nothing depends on it */
    if (r->bad || magic != MAGIC || got != (uint32_t)number)
        return fail(h, -EPROTO, "not an eddyfs hello");
    if (number == 1)
        return 0;
    size_t nonce = number == 2 ? NONCE_LEN : 0;
    if ((size_t)(r->end - r->p) < nonce + MAC_LEN)
        return fail(h, -EPROTO, "not an eddyfs hello");
    if (number == 2)
        memcpy(h->nonces + NONCE_LEN, r->p, NONCE_LEN);
    uint8_t mac[MAC_LEN];
    r->end -= MAC_LEN;
    make_mac(h, number, h->in, h->in_len - MAC_LEN, mac);
    if (CRYPTO_memcmp(mac, r->end, MAC_LEN))
        return fail(h, -EACCES, "it does not know the session's secret: is it of another session?");
    return 0;
}

static int take_frame(struct hello_proto *h, void **out, size_t *out_len)
{
    static const int expected[] = {[C_WAIT2] = 2, [C_WAIT4] = 4, [A_WAIT1] = 1, [A_WAIT3] = 3};
    struct reader r;
    int err = open_frame(h, expected[h->state], &r);
    if (err)
        return err;
    switch (h->state) {
    case A_WAIT1:
        return take_hello1(h, &r, out, out_len);
    case C_WAIT2:
        return take_hello2(h, &r, out, out_len);
    case A_WAIT3:
        return take_hello3(h, &r, out, out_len);
    default:
        return take_hello4(h, &r);
    }
}

/* ---- the face ---- */

uint32_t hello_pair_number(const struct hello_made *a, const struct hello_made *b)
{
    if (a->connected && b->rounds + !b->connected == a->rounds)
        return a->rounds;
    if (b->connected && a->rounds + !a->connected == b->rounds)
        return b->rounds;
    return MAX(a->rounds, b->rounds) + 1;
}

struct hello_proto *hello_proto_new(bool connector, const struct hello_self *self,
                                    const uint8_t secret[32], const char *session)
{
    if (strlen(session) > SESSION_MAX || strlen(self->name) > NODE_NAME_MAX ||
        self->worker_addr_len > HELLO_WORKER_ADDR_MAX)
        return NULL;
    if (self->settings && strlen(self->settings) > HELLO_SETTINGS_MAX)
        return NULL;
    struct hello_proto *h = xcalloc(1, sizeof(*h));
    h->state = connector ? C_BEGIN : A_WAIT1;
    h->self = *self;
    if (!self->settings)
        h->self.settings = "";
    memcpy(h->secret, secret, sizeof(h->secret));
    strcpy(h->session, session);
    do
        h->token = random_u64();
    while (!h->token);
    if (random_bytes(h->nonces + (connector ? 0 : NONCE_LEN), NONCE_LEN))
        die("no random source");
    return h;
}

void hello_proto_free(struct hello_proto *h)
{
    if (!h)
        return;
    OPENSSL_cleanse(h->secret, sizeof(h->secret));
    free(h->frames);
    free(h);
}

int hello_proto_begin(struct hello_proto *h, void **out, size_t *out_len)
{
    *out = NULL;
    *out_len = 0;
    if (h->state != C_BEGIN)
        return -EINVAL;
    struct writer w;
    frame_begin(h, &w, 1);
    put(&w, h->nonces, NONCE_LEN);
    frame_end(h, &w, 1, false, out, out_len);
    h->state = C_WAIT2;
    return 0;
}

/* Moves bytes into h->in until one frame is whole.  1: it is; 0: not yet. */
static int fill(struct hello_proto *h, const uint8_t **p, size_t *len)
{
    for (;;) {
        size_t want = 4;
        if (h->in_len >= 4) {
            uint32_t n = h->in[0] | (uint32_t)h->in[1] << 8 | (uint32_t)h->in[2] << 16 |
                         (uint32_t)h->in[3] << 24;
            if (n < PREFIX_LEN || n > HELLO_FRAME_MAX)
                return fail(h, -EPROTO, "not an eddyfs hello");
            want += n;
            if (h->in_len == want)
                return 1;
        }
        size_t n = MIN(want - h->in_len, *len);
        if (!n)
            return 0;
        memcpy(h->in + h->in_len, *p, n);
        h->in_len += n;
        *p += n;
        *len -= n;
    }
}

int hello_proto_input(struct hello_proto *h, const void *buf, size_t len, void **out,
                      size_t *out_len)
{
    const uint8_t *p = buf;
    *out = NULL;
    *out_len = 0;
    while (h->state != DONE) {
        if (h->state == DEAD || h->state == C_BEGIN)
            return -EPROTO;
        int got = fill(h, &p, &len);
        if (got <= 0)
            return got;
        got = take_frame(h, out, out_len);
        h->in_len = 0;
        if (got)
            return got;
    }
    return 1;
}

const struct hello_peer *hello_proto_peer(const struct hello_proto *h)
{
    return h->proven && h->state != DEAD && !h->mismatch ? &h->peer : NULL;
}

const char *hello_proto_reason(const struct hello_proto *h)
{
    return h->reason;
}
