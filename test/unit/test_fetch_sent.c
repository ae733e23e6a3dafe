/* An owner sends a reader to another node (placement/chunks/places.h): to one that has the chunk, and to ones that are no good:
 * the bytes are right in any case, and the owner is asked again, once.
 */
#include "fetch_env.h"

#include "placement/chunks/places.h"

/* ---- an owner that sends all to one node ---- */

enum answers { ONCE, ALWAYS };

static struct {
    uint64_t to;
    enum answers answers;
    _Atomic uint64_t any, here, not_at;
} owner_side;

static void send_elsewhere(struct msg *m)
{
    if (m->fetch.way == FETCH_HERE) {
        owner_side.here++;
        owner_side.not_at = m->fetch.not_at;
    } else {
        owner_side.any++;
    }
    if (m->fetch.way == FETCH_HERE && owner_side.answers == ONCE) {
        peer_reply_error(m, -EIO);
    } else {
        struct msg *r = msg_new(MSG_ELSEWHERE);
        r->elsewhere.fid = m->fetch.fid;
        r->elsewhere.index = m->fetch.index;
        r->elsewhere.version = m->fetch.version;
        r->elsewhere.node = owner_side.to;
        peer_reply(m, r);
    }
    msg_free(m);
}

static void say_nothing(struct msg *m)
{
    msg_free(m);
}

static void lie(struct msg *m)
{
    struct msg *r = msg_new(MSG_CHUNK);
    r->chunk.fid = m->fetch.fid;
    r->chunk.index = m->fetch.index;
    r->chunk.version = m->fetch.version;
    r->head.data_len = NODE_CHUNK;
    r->data = peer_buffer_try(NODE_CHUNK);
    memset(r->data, 'x', NODE_CHUNK);
    r->chunk.hash = 12345;
    r->free_data = peer_buffer_free_data;
    peer_reply(m, r);
    msg_free(m);
}

enum { SENDS, SILENT, LIES };
static void set_handler(void *arg)
{
    static const peer_handler all[] = {send_elsewhere, say_nothing, lie};
    peer_handle(MSG_FETCH, all[(uintptr_t)arg]);
}

/* a: SENDS ...; b: to whom; len: enum answers. */
static void order_misbehave(struct order *o)
{
    owner_side.to = o->b;
    owner_side.answers = (enum answers)o->len;
    owner_side.any = owner_side.here = owner_side.not_at = 0;
    loop_call(set_handler, (void *)(uintptr_t)o->a);
}

static void order_asked(struct order *o)
{
    o->out[0] = owner_side.any;
    o->out[1] = owner_side.here;
    o->out[2] = owner_side.not_at;
}

static void start_again(void *arg)
{
    (void)arg;
    fetch_start();
}

static void order_behave(struct order *o)
{
    (void)o;
    fetch_stop();
    loop_call(start_again, NULL);
}

static void behave(unsigned i)
{
    struct order o = {0};
    node_run(i, order_behave, &o);
}

static uint64_t id_of(unsigned i)
{
    struct order m = {0};
    node_run(i, order_members, &m);
    return m.out[2];
}

/* ---- one chunk ---- */

struct sent {
    unsigned owner, next, reader; /* the reader is neither */
    struct order read;
    struct order asked; /* how often the owner was: out[0] any, out[1] here; out[2]: not_at */
    uint64_t in_vain, redirected, pfs, took_ms;
};

static struct counters counters_of(unsigned i)
{
    struct order o = {0};
    node_run(i, order_members, &o);
    return o.counters;
}

/* A file of one chunk is read at the reader, whose owner sends it to node `to` (0: the owner itself; NEXT: next). */
#define NEXT UINT64_MAX
#define SELF (UINT64_MAX - 1)
static struct sent read_one(const char *name, uint64_t seed, uint64_t to, enum answers answers, int next_is, bool next_has)
{
    struct sent s = {0};
    pfs_make(name, NODE_CHUNK, seed);
    s.owner = owner_of(name, 0, 0, NULL);
    s.next = owner_of(name, 0, 1, NULL);
    s.reader = 3 - s.owner - s.next;
    if (next_has) {
        open_on(s.next, name, 1);
        struct order r = read_on(s.next, 1, 0, NODE_CHUNK);
        assert_bytes(&r, NODE_CHUNK, seed);
        until_stored(s.next, 1, 0, NODE_CHUNK);
    }
    struct order o = {.a = SENDS, .b = to == NEXT ? id_of(s.next) : to == SELF ? id_of(s.owner) : to, .len = answers};
    node_run(s.owner, order_misbehave, &o);
    if (next_is != SENDS) {
        o = (struct order){.a = (uint64_t)next_is};
        node_run(s.next, order_misbehave, &o);
    }
    struct counters before = counters_of(s.reader);
    uint64_t pfs = totals().counters.pfs_read_bytes, begun = boot_ms();
    open_on(s.reader, name, 2);
    s.read = read_on(s.reader, 2, 0, NODE_CHUNK);
    s.took_ms = boot_ms() - begun;
    assert_bytes(&s.read, NODE_CHUNK, seed);
    until_stored(s.reader, 2, 0, NODE_CHUNK);
    node_run(s.owner, order_asked, &s.asked);
    struct counters after = counters_of(s.reader);
    s.in_vain = after.redirects_in_vain - before.redirects_in_vain;
    s.redirected = after.redirected_bytes - before.redirected_bytes;
    s.pfs = totals().counters.pfs_read_bytes - pfs;
    close_on(s.reader, 2);
    if (next_has)
        close_on(s.next, 1);
    behave(s.owner);
    if (next_is != SENDS)
        behave(s.next);
    return s;
}

START_TEST(the_node_that_has_it_serves_it)
{
    struct sent s = read_one("has", 61, NEXT, ONCE, SENDS, true);
    ck_assert_uint_eq(s.asked.out[0], 1);
    ck_assert_uint_eq(s.asked.out[1], 0);
    ck_assert_uint_eq(s.redirected, NODE_CHUNK);
    ck_assert_uint_eq(s.pfs, 0);
}
END_TEST

START_TEST(a_node_without_it_says_so_and_reads_nothing)
{
    struct sent s = read_one("has not", 62, NEXT, ONCE, SENDS, false);
    ck_assert_uint_eq(s.asked.out[0], 1);
    ck_assert_uint_eq(s.asked.out[1], 1);
    ck_assert(s.asked.out[2] == id_of(s.next));
    ck_assert_uint_eq(s.in_vain, 1);
    ck_assert_uint_eq(s.redirected, 0);
    ck_assert_uint_eq(s.pfs, NODE_CHUNK);
}
END_TEST

START_TEST(a_lying_node_is_noticed)
{
    struct sent s = read_one("lies", 63, NEXT, ONCE, LIES, false);
    ck_assert_uint_eq(s.asked.out[1], 1);
    ck_assert_uint_eq(s.in_vain, 1);
}
END_TEST

START_TEST(a_silent_node_costs_seconds_and_no_byte)
{
    struct sent s = read_one("silent", 64, NEXT, ONCE, SILENT, false);
    ck_assert_uint_eq(s.asked.out[1], 1);
    ck_assert_uint_ge(s.took_ms, 2500);
    ck_assert_uint_le(s.took_ms, 12000); /* it is next, too */
}
END_TEST

START_TEST(an_owner_that_sends_to_nobody_is_asked_once_more)
{
    struct sent s = read_one("nobody", 65, 12345, ONCE, SENDS, false);
    ck_assert_uint_eq(s.asked.out[0], 1);
    ck_assert_uint_eq(s.asked.out[1], 1);
    ck_assert_uint_eq(s.asked.out[2], 12345);
}
END_TEST

START_TEST(an_owner_that_sends_to_itself_is_refused)
{
    struct sent s = read_one("itself", 66, SELF, ONCE, SENDS, false);
    ck_assert_uint_eq(s.asked.out[0], 1);
    ck_assert_uint_eq(s.asked.out[1], 0);
    ck_assert_uint_ge(s.read.counters.bad_answers, 1);
}
END_TEST

START_TEST(an_owner_that_sends_again_and_again_is_refused)
{
    struct sent s = read_one("again", 67, NEXT, ALWAYS, SENDS, false);
    ck_assert_uint_eq(s.asked.out[0], 1);
    ck_assert_uint_eq(s.asked.out[1], 1);
    ck_assert_uint_ge(s.read.counters.bad_answers, 1);
}
END_TEST

int main(int argc, char **argv)
{
    if (node_is(argc, argv))
        return node_main(argc, argv);
    TCase *t = three_nodes();
    tcase_add_test(t, the_node_that_has_it_serves_it);
    tcase_add_test(t, a_node_without_it_says_so_and_reads_nothing);
    tcase_add_test(t, a_lying_node_is_noticed);
    tcase_add_test(t, a_silent_node_costs_seconds_and_no_byte);
    tcase_add_test(t, an_owner_that_sends_to_nobody_is_asked_once_more);
    tcase_add_test(t, an_owner_that_sends_to_itself_is_refused);
    tcase_add_test(t, an_owner_that_sends_again_and_again_is_refused);
    return run_case("fetch_sent", t);
}
