/* peer_nodes.h - what test_peer.c and test_peer_failures.c share: other nodes, and requests whose
 * end can be waited for.
 *
 * The test's process is node 1 (ME).  The others are the same program again, executed with "--node"
 * (never only forked: UCX does not survive that), on 127.0.0.1.  They answer by what the request's
 * fid says (enum what) and leave when their standard input ends.
 *
 *   peer_nodes.c     the nodes
 *   peer_answers.c   what they answer
 *   peer_asks.c      what they are asked
 *   peer_hello.c     a hello spoken by hand
 */
#ifndef EDDY_TEST_PEER_NODES_H
#define EDDY_TEST_PEER_NODES_H

#include <check.h>
#include <pthread.h>
#include <sys/types.h>

#include "transport/hello.h"
#include "transport/lock.h"
#include "transport/loop.h"
#include "transport/peer.h"
#include "transport/view.h"

#include "suite.h"

#define LONG_MS 60000 /* a condition that does not come */
#define MIB     (1u << 20)
#define CHUNK   MIB
#define FLIGHT  64
#define ME      1
#define OTHER   2
#define LISTEN  "127.0.0.1"

enum what {
    WHAT_BYTES,
    WHAT_SILENCE,
    WHAT_WORKING,
    WHAT_ERROR,
    WHAT_ASK_BACK,
    WHAT_BREAK_TOKEN,
    WHAT_SMALL_REPLY,
    WHAT_GARBAGE,    /* GARBAGE messages that are none, then the answer */
    WHAT_WRONG_KIND, /* the answer to another request */
    WHAT_MORE,       /* more bytes than were asked for */
    WHAT_FLOOD       /* so many (length) writes of FLOOD_SIZE to who asks, and reads (offset) */
};
#define GARBAGE    8
#define FLOOD_SIZE (4u * MIB)
#define FLOOD_MAX  64

extern char dir[64]; /* of the session */

/* In the environment: how much memory nodes that begin have for one-sided reads, or "lies" (peer_nodes.c). */
#define MEMORY_ENV "EDDY_TEST_MEMORY"

/* ---- peer_nodes.c ---- */
struct node {
    pid_t pid;
    int in; /* closing it ends the node */
    struct member member;
};
/* The node `id` with these settings, known to nobody yet; node_start: as most tests want it. */
struct node node_spawn(const char *session_dir, uint64_t id, uint64_t incarnation, uint64_t memory,
                       uint32_t chunk);
struct node node_start(uint64_t id, uint64_t incarnation);
/* SIGSTOP, and until all its threads have stopped.  SIGCONT lets it go on. */
void node_pause(const struct node *n);
void node_kill(struct node *n);
void node_finish(struct node *n); /* it must end in order */
void remove_dir(const char *d);
/* A case of its own for each test, so that CK_RUN_CASE=name runs it alone. */
#define ADD(test) add(s, #test, test)
void add(Suite *s, const char *name, const TTest *test);
/* All that main does: argv may be another node's. */
int tests_main(int argc, char **argv, Suite *(*suite)(void));

/* ---- peer_answers.c ---- */
/* Who is stopped when its next read or write has come; then 0. */
extern _Atomic pid_t asker_pid;
void answer_requests(void);
void answer_memory_with_lies(struct msg *m);

/* ---- peer_asks.c ---- */
/* Bytes that can be checked. */
void fill(void *buf, size_t n, uint64_t seed);
bool is_filled(const void *buf, size_t n, uint64_t seed);
struct msg *make_read(enum what what, uint64_t seed, uint32_t length);
struct msg *make_write(uint64_t seed, uint32_t length);

struct gate {
    struct lock lock;
    pthread_cond_t cond;
    int ended, ok, last_err;
};

struct ask {
    struct gate *gate;
    void *buf;
    size_t len;
    uint64_t seed;
    int err;
    int calls; /* must be 1 */
    bool bytes_right;
    uint64_t size;
};
void gate_init(struct gate *g);
void gate_wait(struct gate *g, int ended); /* until so many requests have ended */
/* own: into a buffer of the asker. */
void ask_read(struct ask *a, struct gate *g, uint64_t to, enum what what, uint64_t seed, size_t len,
              bool own, uint32_t silence);
void ask_write(struct ask *a, struct gate *g, uint64_t to, uint64_t seed, size_t len,
               uint32_t silence);
void ask_free(struct ask *a);
void answered(void *arg, int err, struct msg *reply,
              bool *keep); /* of peer_request; arg: the ask */
/* One request that must be answered with the right bytes. */
void must_read(uint64_t to, size_t len, bool own);
void must_write(uint64_t to, size_t len);
int read_err(uint64_t to, enum what what, uint64_t seed, size_t len, uint32_t silence);
/* A connection that was refused may be tried again only after a while: tries until it stands. */
void wait_for(uint64_t to);

/* ---- peer_hello.c ---- */
int connect_from(const char *from, const char *addr);
int connect_to(const char *addr);
void read_frame(int s, uint8_t *buf, size_t *len); /* buf: 4 + HELLO_FRAME_MAX bytes */
/* What a hello's connector sent. */
struct hello_sent {
    uint8_t b[2][4 + HELLO_FRAME_MAX]; /* HELLO1, HELLO3 */
    size_t n[2];
};
/* As this node, to the node at addr: up to HELLO4, whose sender then has an endpoint; we make none.
 * The connection. */
int begin_hello(const char *addr, uint64_t id, uint64_t incarnation, struct hello_sent *sent);
void half_hello(const char *addr, uint64_t id, uint64_t incarnation);

#endif
