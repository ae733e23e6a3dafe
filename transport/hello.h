/* hello.h - two nodes prove to each other that they know the session's secret, on our own TCP port.
 *
 * Before anything else is parsed.  Frames: u32 length (<= 4096), bytes:
 *
 *   HELLO1   connector   {magic, major, minor, nonce}
 *   HELLO2   acceptor    {magic, major, minor, nonce, fields, HMAC}
 *   HELLO3   connector   {fields, way, HMAC}
 *   HELLO4   acceptor    {ok, way, HMAC | refused, reason, HMAC}
 *
 * The fields are: session name, node id, incarnation, name, chunk size, settings.  The way is a token for the
 * other side and the UCX worker's address: only a node that has proved itself is told it.  The HMAC is
 * HMAC-SHA256(secret, role || both nonces || all frames so far).  A replayed hello fails on the nonce.  A
 * hello may take 5 s in all, and there are at most 64 unproven connections at a time.  Network thread only.
 * Afterwards the TCP connection stays open and silent: its reset shows a peer's death at once.
 *
 * The connector has the acceptor's proof after HELLO2, the acceptor has the connector's after HELLO3.  Each
 * may send from the moment at which it knows that the other accepted its proof.  Each must accept messages
 * from the moment at which the other may send.  hello_proto.c is the state machine, hello.c the sockets
 * around it, hello_addr.c the addresses; docs/transport.md has the bytes.
 */
#ifndef EDDY_TRANSPORT_HELLO_H
#define EDDY_TRANSPORT_HELLO_H

#include "transport/base.h"
#include "transport/view.h"

#define HELLO_WORKER_ADDR_MAX 2048
#define HELLO_FRAME_MAX       4096
#define HELLO_SETTINGS_MAX    255
#define HELLO_MAJOR           5 /* other major versions are refused */
#define HELLO_MINOR           0 /* other minor versions interoperate */

/* UCX pairs the nth endpoint that one side has made with the nth of the other. */
struct hello_made {
    uint32_t rounds; /* so many, so far */
    bool connected;  /* and the last one is in use now */
};

/* Unpaired endpoints carry messages, but no bulk data, and a forced close of one does not end the
 * receives of the other.  The pair that a connection uses follows only from what both sides said in its
 * hello (r endpoints made, the last one in use or not), in any order:
 *
 *     in use, r      in use, r           r: both connected at once, and this hello is the later one
 *     in use, r      none, r - 1         r: two hellos crossed, and one side has made it by the other hello
 *     any other pair                     max + 1: also after a hello that only one side saw succeed, or if
 *                                        one side went down and the end of its connections has not
 *                                        come yet */
uint32_t hello_pair_number(const struct hello_made *a, const struct hello_made *b);

struct hello_self {
    uint64_t id, incarnation;
    const char *name;
    uint32_t chunk_size;
    const void *worker_addr;
    size_t worker_addr_len;
    /* <= HELLO_SETTINGS_MAX: what must be equal on all nodes besides (UCX's segment sizes); shown
     * to people */
    const char *settings;
    /* The UCX endpoints to this incarnation of `id`; NULL: none. */
    struct hello_made (*made)(uint64_t id, uint64_t incarnation);
    uint16_t major; /* 0: HELLO_MAJOR; tests play another version */
};

struct hello_peer {
    uint64_t id, incarnation;
    char name[NODE_NAME_MAX + 1];
    uint64_t token_for_them; /* they put it into the heads of what they send us */
    uint64_t token_for_us;   /* we put it into ours; known when ok is called, like worker_addr */
    struct hello_made made, said; /* by them to us, and by us to them, as it was said in this hello;
                                     known when ok is called */
    const void *worker_addr;
    size_t worker_addr_len;
};

struct hello_conn; /* one TCP connection */

/* known: for an outgoing connection: the peer is proven, and our proof was sent to it.  From now on it may
 *   send messages with token_for_them (they may come over UCX before its HELLO4 comes here); ok or failed
 *   follows.
 * ok: the peer is proven and accepted our proof (worker_addr is valid during the call only).  The connection
 *   now belongs to the callee, which ends it with hello_close.
 * closed: a proven connection ended (not called after hello_close).
 * failed: an outgoing connection was not proven.  err: -ECONNREFUSED (nothing listens there, or another node
 *   than the expected one), -EACCES (refused or wrong secret), -EPROTO (version or chunk size), -ENOTUNIQ (a
 *   node of the session with this node's own id), -ETIMEDOUT, or the error of connect(). */
struct hello_ops {
    void (*known)(const struct hello_peer *p, void *arg);
    /* arg: of hello_connect, NULL if accepted */
    void (*ok)(struct hello_conn *c, const struct hello_peer *p, void *arg);
    void (*closed)(struct hello_conn *c, uint64_t id, uint64_t incarnation);
    void (*failed)(void *arg, int err);
};

/* Listens on ADDR[:PORT] (NULL: the host's first non-loopback address, else loopback).  addr_out:
 * NODE_ADDR_MAX. */
int hello_listen(const char *listen, const struct hello_self *self, const struct hello_ops *ops,
                 char *addr_out, char *err, size_t errlen);
/* ok or failed is called with the result, never during this call. */
void hello_connect(const char *addr, uint64_t expected_id, void *arg);
void hello_close(struct hello_conn *c);
/* Closes everything without calling closed or failed.  Calls done (may be NULL) when the loop has closed all
 * handles. */
void hello_stop(void (*done)(void));

/* "1.2.3.4", "1.2.3.4:5", "::1", "[::1]", "[::1]:5"; also for peer_reexec.  -EINVAL. */
struct sockaddr_storage;
int hello_parse_addr(const char *text, struct sockaddr_storage *out);
/* The address that `listen` means (NULL: see hello_listen).  -EINVAL. */
int hello_listen_addr(const char *listen, struct sockaddr_storage *out);
bool hello_addr_is_wildcard(const struct sockaddr_storage *a);
/* NODE_ADDR_MAX */
void hello_print_addr(const struct sockaddr_storage *a, bool with_port, char *out, size_t len);

/* The state machine without sockets, for the unit test and the fuzzer. */
struct hello_proto;
struct hello_proto *hello_proto_new(bool connector, const struct hello_self *self,
                                    const uint8_t secret[32], const char *session);
void hello_proto_free(struct hello_proto *h);
/* Takes received bytes; appends what must be sent to *out (malloc'd, caller frees; may be NULL/0).
 * 0: more is needed; 1: proven, hello_proto_peer is valid; -errno: close (reason text in
 * hello_proto_reason), after sending *out, which may hold the refusal.  Bytes behind the last frame
 * are ignored. */
int hello_proto_input(struct hello_proto *h, const void *buf, size_t len, void **out,
                      size_t *out_len);
/* connector's first frame */
int hello_proto_begin(struct hello_proto *h, void **out, size_t *out_len);
/* NULL until the peer is proven */
const struct hello_peer *hello_proto_peer(const struct hello_proto *h);
const char *hello_proto_reason(const struct hello_proto *h);

#endif
