/* bench_node.h - for benchmarks: one node of a session "bench" on 127.0.0.1, without a store or a
 * mount: the network thread and its peers only. */
#ifndef EDDY_BENCH_BENCH_NODE_H
#define EDDY_BENCH_BENCH_NODE_H

#include "transport/loop.h"
#include "transport/peer.h"
#include "transport/session.h"

#define BENCH_CHUNK (1u << 20)

/* Messages of this type are handled by fn.  Ends the program if it can not begin. */
static void bench_node_begin(const char *session_dir, uint64_t id, const char *name,
                             enum msg_type type, peer_handler fn)
{
    char err[512] = "";
    struct session_config s = {.dir = session_dir, .name = "bench", .chunk_size = BENCH_CHUNK};
    if (session_open(&s, err, sizeof(err)))
        die("%s", err);
    if (loop_start())
        die("no network thread");
    peer_handle(type, fn);
    struct peer_config c = {
        .listen = "127.0.0.1", .id = id, .incarnation = 1, .name = name, .chunk_size = BENCH_CHUNK};
    if (peer_start(&c, err, sizeof(err)))
        die("%s", err);
}

static void bench_node_end(void)
{
    peer_stop();
    loop_stop();
    session_close();
}

#endif
