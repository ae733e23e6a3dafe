/* test_peer_failures.c - nodes that stop, die, come back, or do not belong here. */
#include "peer_nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "transport/peer_int.h"
#include "transport/view.h"

/* Large reads and writes are under way when it stops: their buffers are ours again only after a
 * forced close. */
static void stop_amid_transfers(struct node *n)
{
    struct gate g;
    static struct ask a[FLIGHT];
    must_read(OTHER, MIB, true);
    gate_init(&g);
    for (unsigned i = 0; i < FLIGHT; i++) {
        if (i % 2)
            ask_write(&a[i], &g, OTHER, i, 4 * MIB, 1000);
        else
            ask_read(&a[i], &g, OTHER, WHAT_BYTES, i, 4 * MIB, true, 1000);
    }
    gate_wait(&g, 3);
    node_pause(n);
    uint64_t t = boot_ms();
    gate_wait(&g, FLIGHT);
    t = boot_ms() - t;
    ck_assert_msg(t < 10000, "after %llu ms", (unsigned long long)t);
    for (unsigned i = 0; i < FLIGHT; i++) {
        /* ECONNREFUSED: asked when the first had already waited its second, on a busy machine */
        ck_assert_msg(!a[i].err || a[i].err == -ETIMEDOUT || a[i].err == -ECONNRESET ||
                          a[i].err == -ECONNREFUSED,
                      "%s", strerror(-a[i].err));
        ck_assert(a[i].err || a[i].bytes_right);
        ask_free(&a[i]);
    }
    kill(n->pid, SIGCONT);
    wait_for(OTHER);
    must_read(OTHER, 4 * MIB, true);
    must_write(OTHER, 4 * MIB);
}

START_TEST(a_stopped_node_ends_requests_with_etimedout)
{
    struct node n = node_start(OTHER, 1);
    stop_amid_transfers(&n);
    node_finish(&n);
}
END_TEST

/* UCX pairs endpoints by their count, so a forced close ends the receives only if both sides have
 * made as many. */
START_TEST(hellos_that_only_the_other_side_saw_succeed_are_made_up_for)
{
    struct node n = node_start(OTHER, 1);
    for (unsigned i = 0; i < 3; i++)
        half_hello(n.member.addr, ME, 1);
    stop_amid_transfers(&n);
    node_finish(&n);
}
END_TEST

static void down_here(void *arg)
{
    peer_down(arg, -ECONNRESET);
}

static void was_made(void *arg)
{
    const struct peer *p = peer_find(OTHER);
    *(bool *)arg = p->rounds == 2 && p->state == PEER_DOWN;
}

START_TEST(hellos_that_only_this_side_saw_succeed_are_made_up_for)
{
    struct node n = node_start(OTHER, 1);
    struct msg *m = msg_new(MSG_FETCH);
    must_read(OTHER, 1, true);
    m->fetch.path = peer_address();
    ck_assert_int_eq(peer_call(OTHER, m, LONG_MS, NULL, 0, NULL), 0);
    struct peer *p = peer_find(OTHER);
    loop_call(down_here, p);
    for (bool made = false; !made; usleep(1000))
        loop_call(was_made, &made);
    stop_amid_transfers(&n);
    node_finish(&n);
}
END_TEST

/* ---- death ---- */

#define DEATHS REPEATS(20)
START_TEST(a_busy_node_is_killed_and_the_survivor_lives)
{
    static struct ask a[2 * FLIGHT];
    for (unsigned round = 1; round <= DEATHS; round++) {
        struct node n = node_start(OTHER, round);
        struct gate g;
        gate_init(&g);
        for (unsigned i = 0; i < FLIGHT; i++) {
            ask_read(&a[2 * i], &g, OTHER, WHAT_BYTES, i, i % 3 ? MIB : 100, true, LONG_MS);
            ask_write(&a[2 * i + 1], &g, OTHER, i, i % 3 ? MIB : 100, LONG_MS);
        }
        gate_wait(&g, (int)(round * 5 % FLIGHT));
        node_kill(&n);
        gate_wait(&g, 2 * FLIGHT);
        for (unsigned i = 0; i < 2 * FLIGHT; i++) {
            ck_assert_msg(!a[i].err || a[i].err == -ECONNRESET || a[i].err == -ECONNREFUSED, "%s",
                          strerror(-a[i].err));
            ck_assert(a[i].err || a[i].bytes_right);
            ask_free(&a[i]);
        }
    }
    struct node n = node_start(OTHER, DEATHS + 1);
    must_read(OTHER, MIB, true);
    node_finish(&n);
}
END_TEST

/* We serve it when it dies: our replies' buffers must be freed (the leak checker looks). */
START_TEST(an_asker_is_killed)
{
    for (unsigned round = 1; round <= REPEATS(5); round++) {
        struct node n = node_start(OTHER, round);
        struct gate g;
        static struct ask a[FLIGHT];
        gate_init(&g);
        for (unsigned i = 0; i < FLIGHT; i++) {
            a[i] = (struct ask){.gate = &g};
            peer_request(OTHER, make_read(WHAT_ASK_BACK, i, 4 * MIB), LONG_MS, NULL, 0, answered,
                         &a[i]);
        }
        gate_wait(&g, 2);
        node_kill(&n);
        gate_wait(&g, FLIGHT);
        for (unsigned i = 0; i < FLIGHT; i++)
            ask_free(&a[i]);
    }
}
END_TEST

static struct gate downs;

static void on_down(uint64_t id, uint64_t incarnation, int err)
{
    (void)id;
    (void)incarnation;
    lock_take(&downs.lock);
    downs.ended++;
    downs.last_err = err;
    pthread_cond_broadcast(&downs.cond);
    lock_drop(&downs.lock);
}

#define SHORT_LIVES REPEATS(100)
#define LETTING_GO  REPEATS(400)
#define MOMENT_US   3000 /* somewhere in it the connection comes about */

static void ask_and_wait_a_moment(struct ask *a, struct gate *g, int i)
{
    static unsigned seed;
    if (!seed)
        seed = (unsigned)getpid();
    ask_read(a, g, OTHER, i % 2 ? WHAT_ASK_BACK : WHAT_BYTES, (uint64_t)i, 100, false, LONG_MS);
    usleep((useconds_t)(rand_r(&seed) % MOMENT_US));
}

/* UCX has things of its own to say on a new connection.  What still waits when the other side dies, or when
 * this one gives it up, must not be the end of who lives. */
START_TEST(a_node_that_dies_while_it_connects_takes_nobody_along)
{
    struct ask a[SHORT_LIVES];
    struct gate g;
    gate_init(&g);
    for (int i = 0; i < SHORT_LIVES; i++) {
        struct node n = node_start(OTHER, (uint64_t)i + 1);
        ask_and_wait_a_moment(&a[i], &g, i);
        node_kill(&n);
    }
    peer_forget(OTHER);
    gate_wait(&g, SHORT_LIVES);
    for (int i = 0; i < SHORT_LIVES; i++)
        ask_free(&a[i]);
    struct node n = node_start(OTHER + 1, 1);
    must_read(OTHER + 1, MIB, true);
    node_finish(&n);
}
END_TEST

START_TEST(who_lets_go_while_it_connects_hurts_nobody)
{
    struct ask a[LETTING_GO];
    struct gate g;
    struct node n = node_start(OTHER, 1);
    gate_init(&g);
    for (int i = 0; i < LETTING_GO; i++) {
        peer_know(&n.member);
        ask_and_wait_a_moment(&a[i], &g, i);
        peer_forget(OTHER);
    }
    gate_wait(&g, LETTING_GO);
    for (int i = 0; i < LETTING_GO; i++)
        ask_free(&a[i]);
    peer_know(&n.member);
    wait_for(OTHER);
    must_read(OTHER, MIB, true);
    node_finish(&n);
}
END_TEST

START_TEST(an_idle_nodes_death_is_told_at_once)
{
    struct node n = node_start(OTHER, 1);
    gate_init(&downs);
    peer_on_down(on_down);
    must_read(OTHER, 1, true);
    uint64_t t = boot_ms();
    node_kill(&n);
    gate_wait(&downs, 1);
    ck_assert_int_eq(downs.last_err, -ECONNRESET);
    ck_assert_uint_lt(boot_ms() - t, 2000);
    ck_assert_int_eq(read_err(OTHER, WHAT_BYTES, 1, 1, LONG_MS), -ECONNREFUSED);
    peer_on_down(NULL);
}
END_TEST

/* Who repeats a change must know whether it can have been made. */
START_TEST(a_request_that_was_never_sent_is_told_so)
{
    struct node n = node_spawn(dir, OTHER, 1, 0, CHUNK);
    node_pause(&n);
    peer_know(&n.member);
    /* waits for the hello */
    ck_assert_int_eq(read_err(OTHER, WHAT_BYTES, 1, 1, 300), -ECONNREFUSED);
    kill(n.pid, SIGCONT);
    must_read(OTHER, 1, true);
    node_pause(&n);
    ck_assert_int_eq(read_err(OTHER, WHAT_BYTES, 1, 1, 300), -ETIMEDOUT); /* sent */
    kill(n.pid, SIGCONT);
    node_finish(&n);
}
END_TEST

START_TEST(a_newer_incarnation_replaces_an_older_one)
{
    struct node old = node_start(OTHER, 1);
    struct gate g;
    struct ask a;
    gate_init(&g);
    must_read(OTHER, 1, true);
    ask_read(&a, &g, OTHER, WHAT_SILENCE, 0, 1, true, LONG_MS);
    struct node young = node_start(OTHER, 2);
    gate_wait(&g, 1);
    ck_assert_int_eq(a.err, -ECONNRESET);
    must_read(OTHER, MIB, true);
    ask_free(&a);
    node_finish(&old);
    must_read(OTHER, MIB, true);
    node_finish(&young);
}
END_TEST

/* ---- strangers ---- */

START_TEST(garbage_on_the_port_hurts_nobody)
{
    static uint8_t junk[9000];
    int open[100];
    struct node n = node_start(OTHER, 1);
    for (unsigned i = 0; i < 1000; i++) {
        int s = connect_to(peer_address());
        fill(junk, sizeof(junk), i);
        if (i % 4 == 0)
            memset(junk, 0, sizeof(junk));
        if (i % 4 == 1)
            memcpy(junk, "\xff\xff\xff\xff", 4);
        (void)!send(s, junk, i % sizeof(junk), MSG_NOSIGNAL);
        close(s);
    }
    for (unsigned i = 0; i < ARRAY_LEN(open); i++)
        open[i] = connect_to(peer_address()); /* silent, more than are allowed */
    must_read(ME, 1, true);
    /* It connects to us through all that. */
    ck_assert_int_eq(read_err(OTHER, WHAT_SMALL_REPLY, 4, 100, LONG_MS), 0);
    must_read(OTHER, MIB, true);
    for (uint64_t end = boot_ms() + LONG_MS; counted(bad_hellos) < 1000 && boot_ms() < end;)
        usleep(1000);
    ck_assert_uint_ge(counted(bad_hellos), 1000);
    for (unsigned i = 0; i < ARRAY_LEN(open); i++)
        close(open[i]);
    node_finish(&n);
}
END_TEST

/* Who recorded a hello sends the same again. */
START_TEST(a_replayed_hello_is_refused_and_counted)
{
    struct node n = node_start(OTHER, 1);
    static struct hello_sent sent;
    uint8_t in[4 + HELLO_FRAME_MAX];
    size_t len;
    must_read(OTHER, 1, true);
    close(begin_hello(n.member.addr, 5, 1, &sent)); /* a good one, elsewhere */
    uint64_t bad = counted(bad_hellos);
    int s = connect_to(peer_address());
    ck_assert_int_eq(send(s, sent.b[0], sent.n[0], 0), (ssize_t)sent.n[0]);
    read_frame(s, in, &len);
    ck_assert_int_eq(send(s, sent.b[1], sent.n[1], 0), (ssize_t)sent.n[1]);
    ck_assert_int_le(recv(s, in, sizeof(in), 0), 0); /* closed, and nothing was told */
    ck_assert_uint_eq(counted(bad_hellos), bad + 1);
    close(s);
    wait_for(OTHER);
    node_finish(&n);
}
END_TEST

/* The connection is there to tell of a death, and is not read for anything else. */
START_TEST(garbage_after_a_good_hello_hurts_nobody)
{
    static uint8_t junk[1 << 16];
    struct node n = node_start(OTHER, 1);
    int s = begin_hello(n.member.addr, 5, 1, NULL);
    fill(junk, sizeof(junk), 1);
    for (unsigned i = 0; i < 50; i++)
        ck_assert_int_eq(send(s, junk, sizeof(junk), MSG_NOSIGNAL), sizeof(junk));
    must_read(OTHER, MIB, true);
    close(s);
    must_read(OTHER, MIB, true);
    node_finish(&n);
}
END_TEST

static void flood(const char *addr, unsigned i, unsigned addresses, int *s)
{
    char from[32];
    snprintf(from, sizeof(from), "127.0.1.%u", 1 + i % addresses);
    *s = connect_from(from, addr);
}

#define FLOOD 200

static void others_get_in(unsigned addresses)
{
    int open[FLOOD];
    struct node n = node_start(OTHER, 1);
    for (unsigned i = 0; i < FLOOD; i++)
        flood(n.member.addr, i, addresses, &open[i]);
    must_read(OTHER, 1, true);
    for (unsigned i = 0; i < FLOOD; i++)
        close(open[i]);
    must_read(OTHER, MIB, true);
    node_finish(&n);
}

START_TEST(a_flood_from_one_address_leaves_others_in)
{
    uint64_t t = boot_ms();
    others_get_in(1);
    ck_assert_uint_lt(boot_ms() - t, 4000); /* nobody waits for the end of 5 s */
}
END_TEST

START_TEST(a_flood_from_many_addresses_leaves_others_in)
{
    others_get_in(FLOOD);
}
END_TEST

START_TEST(a_node_with_another_secret_is_refused)
{
    char other[] = "/tmp/eddy-test-peer-XXXXXX";
    ck_assert(mkdtemp(other) != NULL);
    struct node n = node_spawn(other, OTHER, 1, 0, CHUNK);
    peer_know(&n.member);
    ck_assert_int_eq(read_err(OTHER, WHAT_BYTES, 1, 1, LONG_MS), -EACCES);
    ck_assert_uint_eq(counted(bad_nodes), 1);
    node_finish(&n);
    remove_dir(other);
}
END_TEST

START_TEST(a_node_with_another_chunk_size_is_refused)
{
    struct node n = node_spawn(dir, OTHER, 1, 0, 2 * CHUNK);
    peer_know(&n.member);
    ck_assert_int_eq(read_err(OTHER, WHAT_BYTES, 1, 1, LONG_MS), -EPROTO);
    node_finish(&n);
}
END_TEST

START_TEST(another_node_at_the_address_is_not_taken_for_it)
{
    struct node n = node_spawn(dir, OTHER, 1, 0, CHUNK);
    struct member wrong = n.member;
    wrong.id = 77;
    peer_know(&wrong);
    ck_assert_int_eq(read_err(77, WHAT_BYTES, 1, 1, LONG_MS), -ECONNREFUSED);
    ck_assert_int_eq(read_err(78, WHAT_BYTES, 1, 1, LONG_MS), -ECONNREFUSED); /* never heard of */
    peer_know(&n.member);
    must_read(OTHER, 1, true);
    node_finish(&n);
}
END_TEST

START_TEST(a_wrong_token_is_dropped)
{
    struct node n = node_start(OTHER, 1);
    must_read(OTHER, 1, true);
    uint64_t bad = counted(bad_messages);
    ck_assert_int_eq(read_err(OTHER, WHAT_BREAK_TOKEN, 1, 2 * MIB, 1000), -ETIMEDOUT);
    ck_assert_uint_eq(counted(bad_messages), bad + 1);
    node_finish(&n);
}
END_TEST

static unsigned lines_with(const char *path, const char *text)
{
    char line[1024];
    unsigned n = 0;
    FILE *f = fopen(path, "r");
    ck_assert(f != NULL);
    while (fgets(line, sizeof(line), f))
        n += strstr(line, text) != NULL;
    fclose(f);
    return n;
}

/* From a node that has proved itself: refused one by one, counted, a line a minute. */
START_TEST(garbage_from_a_proven_node_is_refused)
{
    char path[128];
    struct node n = node_start(OTHER, 1);
    snprintf(path, sizeof(path), "%s/log", dir);
    ck_assert_int_eq(log_open(path, LOG_LEVEL_WARN, "me"), 0);
    for (unsigned round = 1; round <= 3; round++) {
        uint64_t bad = counted(bad_messages);
        ck_assert_int_eq(read_err(OTHER, WHAT_GARBAGE, round, MIB, LONG_MS), 0);
        ck_assert_uint_eq(counted(bad_messages), bad + GARBAGE);
    }
    ck_assert_uint_eq(lines_with(path, "node n2.1: a malformed WHERE: refused"), 1);
    ck_assert_uint_eq(lines_with(path, "refused"),
                      2); /* and one of those nobody can be named for */
    must_write(OTHER, 4 * MIB);
    node_finish(&n);
}
END_TEST

START_TEST(wrong_answers_are_refused)
{
    struct node n = node_start(OTHER, 1);
    ck_assert_int_eq(read_err(OTHER, WHAT_WRONG_KIND, 1, 100, LONG_MS), -EPROTO);
    ck_assert_int_eq(read_err(OTHER, WHAT_MORE, 1, 100, LONG_MS), -EMSGSIZE);
    ck_assert_int_eq(read_err(OTHER, WHAT_MORE, 1, MIB, LONG_MS), -EMSGSIZE);
    ck_assert_uint_eq(counted(bad_answers), 3);
    must_read(OTHER, MIB, true);
    node_finish(&n);
}
END_TEST

/* Stops in the middle of transfers both ways, with requests to itself too. */
START_TEST(a_busy_node_stops_cleanly)
{
    struct node n = node_start(OTHER, 1);
    struct gate g;
    static struct ask a[3 * FLIGHT];
    gate_init(&g);
    must_read(OTHER, 1, true);
    for (unsigned i = 0; i < FLIGHT; i++) {
        ask_read(&a[3 * i], &g, OTHER, WHAT_BYTES, i, 4 * MIB, true, LONG_MS);
        ask_write(&a[3 * i + 1], &g, OTHER, i, MIB, LONG_MS);
        ask_write(&a[3 * i + 2], &g, ME, 999, 1000, LONG_MS);
    }
    gate_wait(&g, 5);
    peer_stop();
    ck_assert_int_eq(g.ended, 3 * FLIGHT);
    for (unsigned i = 0; i < 3 * FLIGHT; i++)
        ask_free(&a[i]);
    node_finish(&n);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("peer_failures");
    ADD(a_stopped_node_ends_requests_with_etimedout);
    ADD(hellos_that_only_the_other_side_saw_succeed_are_made_up_for);
    ADD(hellos_that_only_this_side_saw_succeed_are_made_up_for);
    ADD(a_busy_node_is_killed_and_the_survivor_lives);
    ADD(an_asker_is_killed);
    ADD(a_node_that_dies_while_it_connects_takes_nobody_along);
    ADD(who_lets_go_while_it_connects_hurts_nobody);
    ADD(an_idle_nodes_death_is_told_at_once);
    ADD(a_request_that_was_never_sent_is_told_so);
    ADD(a_newer_incarnation_replaces_an_older_one);
    ADD(garbage_on_the_port_hurts_nobody);
    ADD(a_replayed_hello_is_refused_and_counted);
    ADD(garbage_after_a_good_hello_hurts_nobody);
    ADD(a_flood_from_one_address_leaves_others_in);
    ADD(a_flood_from_many_addresses_leaves_others_in);
    ADD(garbage_from_a_proven_node_is_refused);
    ADD(wrong_answers_are_refused);
    ADD(a_node_with_another_secret_is_refused);
    ADD(a_node_with_another_chunk_size_is_refused);
    ADD(another_node_at_the_address_is_not_taken_for_it);
    ADD(a_wrong_token_is_dropped);
    ADD(a_busy_node_stops_cleanly);
    return s;
}

int main(int argc, char **argv)
{
    return tests_main(argc, argv, suite);
}
