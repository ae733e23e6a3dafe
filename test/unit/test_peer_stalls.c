/* test_peer_stalls.c - nodes that fall silent amid transfers, and connections of which one side knows
 * that they ended: nothing waits for them for ever, and they come back whole.
 */
#include "peer_nodes.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "transport/peer_in.h"
#include "transport/peer_int.h"

#define ASKS 16

/* ---- requests to nodes that stop ---- */

static int ended(struct gate *g)
{
    lock_take(&g->lock);
    int n = g->ended;
    lock_drop(&g->lock);
    return n;
}

static void ask_all(struct ask *a, struct gate *g, unsigned n, unsigned nodes)
{
    gate_init(g);
    for (unsigned i = 0; i < n; i++)
        ask_read(&a[i], g, 2 + i % nodes, WHAT_BYTES, i, 4 * MIB, true, 3000);
    gate_wait(g, 2);
}

static void must_have_ended(struct gate *g, struct ask *a, unsigned n, uint64_t since_ms)
{
    uint64_t ms = boot_ms() - since_ms;
    ck_assert_msg(ended(g) == (int)n, "%d of %u requests have ended after %llu ms", ended(g), n,
                  (unsigned long long)ms);
    for (unsigned i = 0; i < n; i++)
        ask_free(&a[i]);
}

static void nothing(void *arg, int err, struct msg *reply, bool *keep)
{
    (void)arg;
    (void)err;
    (void)reply;
    (void)keep;
}

/* As members do with a suspect: what it is sent lies in the kernel, and is no sign of its life. */
START_TEST(a_node_that_stops_and_is_pinged_is_given_up)
{
    static struct ask a[ASKS];
    struct gate g;
    struct node n = node_start(OTHER, 1);
    must_read(OTHER, MIB, true);
    ask_all(a, &g, ASKS, 1);
    node_pause(&n);
    uint64_t t = boot_ms();
    while (ended(&g) < ASKS && boot_ms() < t + 12000) {
        peer_request(OTHER, msg_new(MSG_PING), 1000, NULL, 0, nothing, NULL);
        usleep(500000);
    }
    must_have_ended(&g, a, ASKS, t);
    node_kill(&n);
}
END_TEST

START_TEST(two_nodes_that_stop_at_once_are_both_given_up)
{
    static struct ask a[2 * ASKS];
    struct gate g;
    struct node n[2] = {node_start(2, 1), node_start(3, 1)};
    must_read(2, MIB, true);
    must_read(3, MIB, true);
    ask_all(a, &g, 2 * ASKS, 2);
    node_pause(&n[0]);
    node_pause(&n[1]);
    uint64_t t = boot_ms();
    while (ended(&g) < 2 * ASKS && boot_ms() < t + 20000)
        usleep(100000);
    must_have_ended(&g, a, 2 * ASKS, t);
    node_kill(&n[0]);
    node_kill(&n[1]);
}
END_TEST

/* ---- memory that a node holds that stops ---- */

/* It asks for more than there is room for here, and is stopped when the first of it has come. */
static void memory_comes_back(unsigned reads, unsigned writes)
{
    struct node n = node_start(OTHER, 1);
    must_read(OTHER, MIB, true);
    buffers_start(2 * FLOOD_SIZE);
    asker_pid = n.pid;
    peer_send(OTHER, make_read(WHAT_FLOOD, reads, writes));
    while (asker_pid)
        usleep(1000);
    usleep(500000); /* what can still be done is done */
    void *b = peer_buffer_try(FLOOD_SIZE);
    ck_assert_msg(!b, "it holds no memory");
    uint64_t t = boot_ms();
    while (!(b = peer_buffer_try(FLOOD_SIZE)) && boot_ms() < t + 30000)
        usleep(100000);
    ck_assert_msg(b != NULL, "no memory after %llu ms", (unsigned long long)(boot_ms() - t));
    peer_buffer_free(b);
    node_kill(&n);
}

START_TEST(what_a_node_was_reading_when_it_stopped_is_freed)
{
    memory_comes_back(8, 0);
}
END_TEST

START_TEST(what_a_node_was_writing_when_it_stopped_is_freed)
{
    memory_comes_back(0, 32);
}
END_TEST

START_TEST(what_a_node_has_asked_for_since_does_not_hide_that_it_stopped)
{
    memory_comes_back(8, 32);
}
END_TEST

/* ---- the end of a connection that the other side does not see ---- */

struct unseen {
    struct peer *peer;
    int fds[PEER_CONNS];
    unsigned n;
};

/* The sockets stay open, so that no FIN goes out: as if the network had lost it. */
static void down_unseen(void *arg)
{
    struct unseen *u = arg;
    for (u->n = 0; u->n < u->peer->nconns; u->n++) {
        uv_os_fd_t fd; /* struct hello_conn begins with its uv_tcp_t */
        ck_assert_int_eq(uv_fileno((uv_handle_t *)u->peer->conns[u->n], &fd), 0);
        u->fds[u->n] = dup(fd);
    }
    peer_down(u->peer, -ETIMEDOUT);
}

START_TEST(a_node_that_was_given_up_unseen_is_whole_when_it_is_back)
{
    struct node n = node_start(OTHER, 1);
    must_read(OTHER, 4 * MIB, true);
    struct unseen u = {.peer = peer_find(OTHER)};
    for (unsigned round = 0; round < 3; round++) {
        loop_call(down_unseen, &u);
        wait_for(OTHER);
        ck_assert_int_eq(read_err(OTHER, WHAT_BYTES, 1, 4 * MIB, 3000), 0);
        must_write(OTHER, 4 * MIB);
        for (unsigned i = 0; i < u.n; i++)
            close(u.fds[i]); /* the FIN comes late */
        must_read(OTHER, 4 * MIB, true);
        must_write(OTHER, 4 * MIB);
    }
    node_finish(&n);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("peer_stalls");
    ADD(a_node_that_stops_and_is_pinged_is_given_up);
    ADD(two_nodes_that_stop_at_once_are_both_given_up);
    ADD(what_a_node_was_reading_when_it_stopped_is_freed);
    ADD(what_a_node_was_writing_when_it_stopped_is_freed);
    ADD(what_a_node_has_asked_for_since_does_not_hide_that_it_stopped);
    ADD(a_node_that_was_given_up_unseen_is_whole_when_it_is_back);
    return s;
}

int main(int argc, char **argv)
{
    return tests_main(argc, argv, suite);
}
