/* test_hello.c - the hello's state machine: who is let in, who is not, and what each side is told.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "transport/hello.h"

#include "suite.h"

static const uint8_t secret[32] = "the secret of this session.....";
static const uint8_t other_secret[32] = "the secret of another session..";

static struct hello_made made_to_b(uint64_t id, uint64_t incarnation)
{
    return id == 2 && incarnation == 22 ? (struct hello_made){3, false} : (struct hello_made){0};
}

static struct hello_made made_to_a(uint64_t id, uint64_t incarnation)
{
    return id == 1 && incarnation == 11 ? (struct hello_made){5, true} : (struct hello_made){0};
}

static const struct hello_self self_a = {.id = 1,
                                         .incarnation = 11,
                                         .name = "a",
                                         .chunk_size = 1 << 20,
                                         .worker_addr = "address of a",
                                         .worker_addr_len = 12,
                                         .settings = "x=1",
                                         .made = made_to_b};
static const struct hello_self self_b = {.id = 2,
                                         .incarnation = 22,
                                         .name = "b",
                                         .chunk_size = 1 << 20,
                                         .worker_addr = "address of b!",
                                         .worker_addr_len = 13,
                                         .settings = "x=1",
                                         .made = made_to_a};

/* ---- a conversation: a connects to b ---- */

struct frame {
    void *p;
    size_t len;
};

struct talk {
    struct hello_proto *a, *b;
    struct frame f[5]; /* f[1] .. f[4] = HELLO1 .. HELLO4 */
    int a_got, b_got;  /* what the last input returned */
};

static struct talk talk_new(const struct hello_self *a, const struct hello_self *b,
                            const uint8_t *a_secret, const uint8_t *b_secret)
{
    struct talk t = {.a = hello_proto_new(true, a, a_secret, "s"),
                     .b = hello_proto_new(false, b, b_secret, "s")};
    ck_assert(t.a && t.b);
    return t;
}

static void talk_free(struct talk *t)
{
    hello_proto_free(t->a);
    hello_proto_free(t->b);
    for (unsigned i = 0; i < 5; i++)
        free(t->f[i].p);
}

/* The frames one after the other up to `last`, each given to the other side; stops where nothing
 * comes. */
static void talk_until(struct talk *t, unsigned last)
{
    ck_assert_int_eq(hello_proto_begin(t->a, &t->f[1].p, &t->f[1].len), 0);
    for (unsigned i = 1; i < last && t->f[i].len; i++) {
        bool to_b = i % 2;
        struct frame none, *answer = i < 4 ? &t->f[i + 1] : &none;
        int got =
            hello_proto_input(to_b ? t->b : t->a, t->f[i].p, t->f[i].len, &answer->p, &answer->len);
        *(to_b ? &t->b_got : &t->a_got) = got;
    }
}

static struct talk talk_whole(const struct hello_self *a, const struct hello_self *b,
                              const uint8_t *a_secret, const uint8_t *b_secret)
{
    struct talk t = talk_new(a, b, a_secret, b_secret);
    talk_until(&t, 5);
    return t;
}

START_TEST(two_nodes_of_a_session_prove_each_other)
{
    struct talk t = talk_whole(&self_a, &self_b, secret, secret);
    ck_assert_int_eq(t.a_got, 1);
    ck_assert_int_eq(t.b_got, 1);
    const struct hello_peer *b = hello_proto_peer(t.a), *a = hello_proto_peer(t.b);
    ck_assert_uint_eq(a->id, 1);
    ck_assert_uint_eq(a->incarnation, 11);
    ck_assert_str_eq(a->name, "a");
    ck_assert_str_eq(b->name, "b");
    ck_assert_uint_eq(b->worker_addr_len, 13);
    ck_assert_mem_eq(b->worker_addr, "address of b!", 13);
    ck_assert_mem_eq(a->worker_addr, "address of a", 12);
    ck_assert_uint_eq(a->token_for_us, b->token_for_them);
    ck_assert_uint_eq(a->token_for_them, b->token_for_us);
    ck_assert_uint_ne(a->token_for_them, 0);
    ck_assert_uint_ne(a->token_for_us, a->token_for_them);
    ck_assert(a->made.rounds == 3 && !a->made.connected);
    ck_assert(b->made.rounds == 5 && b->made.connected);
    ck_assert(a->said.rounds == 5 && a->said.connected);
    ck_assert(b->said.rounds == 3 && !b->said.connected);
    talk_free(&t);
}
END_TEST

/* Each side makes as many as it takes, and never fewer than it has: so both get to the same pair, and
 * what is in use is kept only where the other side has it, too, or will make it. */
START_TEST(both_sides_find_the_same_pair_of_endpoints)
{
    for (unsigned i = 0; i < 256; i++) {
        struct hello_made a = {i & 7, i & 8}, b = {i >> 4 & 7, i & 128};
        uint32_t n = hello_pair_number(&a, &b), more = MAX(a.rounds, b.rounds);
        if ((a.connected && !a.rounds) || (b.connected && !b.rounds))
            continue;
        ck_assert_uint_eq(hello_pair_number(&b, &a), n);
        bool kept = n == more;
        ck_assert(kept || n == more + 1);
        if (a.connected && b.connected)
            ck_assert(kept == (a.rounds == b.rounds));
        else if (a.connected || b.connected)
            ck_assert(kept == (a.connected ? a.rounds == b.rounds + 1 : b.rounds == a.rounds + 1));
        else
            ck_assert(!kept);
    }
}
END_TEST

START_TEST(the_connector_knows_the_peer_after_hello2_and_not_before)
{
    struct talk t = talk_new(&self_a, &self_b, secret, secret);
    talk_until(&t, 2);
    ck_assert_ptr_null(hello_proto_peer(t.a));
    ck_assert_ptr_null(hello_proto_peer(t.b));
    ck_assert_int_eq(hello_proto_input(t.a, t.f[2].p, t.f[2].len, &t.f[3].p, &t.f[3].len), 0);
    ck_assert_ptr_nonnull(hello_proto_peer(t.a));
    ck_assert_ptr_null(hello_proto_peer(t.b));
    talk_free(&t);
}
END_TEST

START_TEST(bytes_may_come_one_by_one_and_too_many)
{
    struct talk t = talk_new(&self_a, &self_b, secret, secret);
    void *none;
    size_t n;
    talk_until(&t, 1);
    for (size_t i = 0; i < t.f[1].len; i++) {
        free(t.f[2].p);
        ck_assert_int_eq(hello_proto_input(t.b, (uint8_t *)t.f[1].p + i, 1, &t.f[2].p, &t.f[2].len),
                         0);
        ck_assert_int_eq(t.f[2].len > 0, i == t.f[1].len - 1);
    }
    ck_assert_int_eq(hello_proto_input(t.a, t.f[2].p, t.f[2].len, &t.f[3].p, &t.f[3].len), 0);
    ck_assert_int_eq(hello_proto_input(t.b, t.f[3].p, t.f[3].len, &t.f[4].p, &t.f[4].len), 1);
    t.f[4].p = realloc(t.f[4].p, t.f[4].len + 100);
    memset((uint8_t *)t.f[4].p + t.f[4].len, 0xff, 100);
    ck_assert_int_eq(hello_proto_input(t.a, t.f[4].p, t.f[4].len + 100, &none, &n), 1);
    ck_assert_uint_eq(n, 0);
    ck_assert_int_eq(hello_proto_input(t.a, "more", 4, &none, &n), 1);
    talk_free(&t);
}
END_TEST

/* ---- who does not know the secret ---- */

START_TEST(a_connector_with_another_secret_closes_and_learns_nothing)
{
    struct talk t = talk_whole(&self_a, &self_b, other_secret, secret);
    ck_assert_int_eq(t.a_got, -EACCES);
    ck_assert_uint_eq(t.f[3].len, 0);
    ck_assert_ptr_null(hello_proto_peer(t.a));
    talk_free(&t);
}
END_TEST

/* It would not go on as ours does: so b is given a HELLO3 made with another secret. */
START_TEST(an_acceptor_tells_nothing_to_who_cannot_prove_himself)
{
    struct talk t = talk_new(&self_a, &self_b, secret, secret),
                stranger = talk_new(&self_a, &self_b, other_secret, other_secret);
    talk_until(&t, 2);
    talk_until(&stranger, 3);
    ck_assert_int_eq(
        hello_proto_input(t.b, stranger.f[3].p, stranger.f[3].len, &t.f[4].p, &t.f[4].len),
        -EACCES);
    ck_assert_uint_eq(t.f[4].len, 0);
    ck_assert_ptr_null(hello_proto_peer(t.b));
    talk_free(&t);
    talk_free(&stranger);
}
END_TEST

static bool has(const struct frame *f, const void *what, size_t len)
{
    return memmem(f->p, f->len, what, len) != NULL;
}

/* All that b has said when it stops: HELLO2, the answer to a HELLO1 that anybody can make. */
START_TEST(a_stranger_is_told_no_way_over_ucx)
{
    struct talk t = talk_new(&self_a, &self_b, other_secret, secret);
    talk_until(&t, 2);
    ck_assert_uint_gt(t.f[2].len, 0);
    ck_assert(!has(&t.f[2], self_b.worker_addr, self_b.worker_addr_len));
    ck_assert(!has(&t.f[1], self_a.worker_addr, self_a.worker_addr_len));
    /* "b", then a byte in place of the address: an empty one a node of major version 3 would not take */
    ck_assert(has(&t.f[2], "\1\0b\1\0", 5));
    talk_free(&t);

    t = talk_whole(&self_a, &self_b, secret, secret);
    uint64_t token = hello_proto_peer(t.b)->token_for_them; /* little-endian, as on the wire */
    ck_assert(!has(&t.f[2], &token, sizeof(token)));
    ck_assert(!has(&t.f[2], self_b.worker_addr, self_b.worker_addr_len));
    ck_assert(has(&t.f[4], &token, sizeof(token))); /* a node is told */
    ck_assert(has(&t.f[4], self_b.worker_addr, self_b.worker_addr_len));
    talk_free(&t);
}
END_TEST

START_TEST(a_node_that_is_refused_is_told_no_way_over_ucx)
{
    struct hello_self a = self_a;
    a.settings = "x=2";
    struct talk t = talk_whole(&a, &self_b, secret, secret);
    ck_assert_uint_gt(t.f[4].len, 0);
    ck_assert(!has(&t.f[4], self_b.worker_addr, self_b.worker_addr_len));
    talk_free(&t);
}
END_TEST

START_TEST(a_replayed_hello_is_refused)
{
    struct talk old = talk_whole(&self_a, &self_b, secret, secret),
                t = talk_new(&self_a, &self_b, secret, secret);
    void *out;
    size_t n;
    /* to the acceptor: HELLO1 is accepted, the answer has a new nonce, so the old proof does not
     * hold */
    ck_assert_int_eq(hello_proto_input(t.b, old.f[1].p, old.f[1].len, &out, &n), 0);
    free(out);
    ck_assert_int_eq(hello_proto_input(t.b, old.f[3].p, old.f[3].len, &out, &n), -EACCES);
    ck_assert_uint_eq(n, 0);
    /* to the connector */
    talk_until(&t, 1);
    ck_assert_int_eq(hello_proto_input(t.a, old.f[2].p, old.f[2].len, &out, &n), -EACCES);
    ck_assert_uint_eq(n, 0);
    talk_free(&old);
    talk_free(&t);
}
END_TEST

/* Who knows no secret plays our own frames back to us. */
START_TEST(a_frame_played_back_to_its_maker_is_refused)
{
    struct talk t = talk_new(&self_a, &self_b, secret, secret);
    void *out;
    size_t n;
    talk_until(&t, 3);
    ck_assert_int_lt(hello_proto_input(t.b, t.f[2].p, t.f[2].len, &out, &n), 0);
    ck_assert_int_lt(hello_proto_input(t.a, t.f[3].p, t.f[3].len, &out, &n), 0);
    ck_assert_ptr_null(hello_proto_peer(t.a));
    ck_assert_ptr_null(hello_proto_peer(t.b));
    talk_free(&t);
}
END_TEST

/* Frame `number` with one bit flipped: whoever takes it, or takes what follows, must not be
 * persuaded. */
static void flip(unsigned number, size_t byte, unsigned bit)
{
    struct talk t = talk_new(&self_a, &self_b, secret, secret);
    talk_until(&t, number);
    ((uint8_t *)t.f[number].p)[byte] ^= (uint8_t)(1u << bit);
    for (unsigned i = number; i <= 4 && t.f[i].len; i++) {
        struct frame none = {0}, *answer = i < 4 ? &t.f[i + 1] : &none;
        int got =
            hello_proto_input(i % 2 ? t.b : t.a, t.f[i].p, t.f[i].len, &answer->p, &answer->len);
        ck_assert_msg(got <= 0, "HELLO%u, bit %u of byte %zu flipped: HELLO%u taken", number, bit,
                      byte, i);
        free(none.p);
        if (got < 0)
            break;
    }
    talk_free(&t);
}

static size_t frame_len(unsigned number)
{
    struct talk t = talk_whole(&self_a, &self_b, secret, secret);
    size_t len = t.f[number].len;
    talk_free(&t);
    return len;
}

START_TEST(no_flipped_bit_is_accepted)
{
    unsigned number = (unsigned)_i;
    size_t len = frame_len(number);
    ck_assert_uint_gt(len, 40);
    for (size_t byte = 0; byte < len; byte++)
        for (unsigned bit = 0; bit < 8; bit++)
            flip(number, byte, bit);
}
END_TEST

START_TEST(no_shortened_frame_is_accepted)
{
    unsigned number = (unsigned)_i;
    size_t len = frame_len(number);
    for (size_t cut = 4; cut < len; cut++) {
        struct talk t = talk_new(&self_a, &self_b, secret, secret);
        void *out;
        size_t n;
        talk_until(&t, number);
        uint8_t *p = t.f[number].p;
        int got = hello_proto_input(number % 2 ? t.b : t.a, p, cut, &out, &n);
        ck_assert_int_eq(got, 0); /* more is needed */
        ck_assert_uint_eq(n, 0);
        hello_proto_free(number % 2 ? t.b : t.a);
        *(number % 2 ? &t.b : &t.a) = NULL;
        talk_free(&t);

        t = talk_new(&self_a, &self_b, secret, secret);
        talk_until(&t, number);
        p = t.f[number].p;
        p[0] = (uint8_t)(cut - 4); /* says that it is all */
        p[1] = (uint8_t)((cut - 4) >> 8);
        got = hello_proto_input(number % 2 ? t.b : t.a, p, cut, &out, &n);
        ck_assert_int_lt(got, 0);
        free(out);
        talk_free(&t);
    }
}
END_TEST

START_TEST(garbage_and_oversized_frames_are_refused_at_once)
{
    static const char *const junk[] = {"GET / HTTP/1.1\r\n\r\n", "\xff\xff\xff\xff\xff",
                                       "\x01\x10\0\0xxxx", "\0\0\0\0", "\x05\0\0\0hello"};
    static const size_t len[] = {18, 5, 8, 4, 9};
    for (unsigned i = 0; i < ARRAY_LEN(junk); i++) {
        struct talk t = talk_new(&self_a, &self_b, secret, secret);
        void *out;
        size_t n;
        ck_assert_int_eq(hello_proto_input(t.b, junk[i], len[i], &out, &n), -EPROTO);
        ck_assert_uint_eq(n, 0);
        ck_assert_str_eq(hello_proto_reason(t.b), "not an eddyfs hello");
        ck_assert_int_eq(hello_proto_input(t.b, junk[i], len[i], &out, &n),
                         -EPROTO); /* and stays so */
        talk_free(&t);
    }
}
END_TEST

/* ---- who knows the secret and does not fit ---- */

static void both_refuse_as(int err, const struct hello_self *a, const struct hello_self *b,
                           const char *says)
{
    struct talk t = talk_whole(a, b, secret, secret);
    ck_assert_int_eq(t.a_got, err);
    ck_assert_int_eq(t.b_got, err);
    ck_assert_msg(strstr(hello_proto_reason(t.a), says) != NULL, "%s", hello_proto_reason(t.a));
    ck_assert_msg(strstr(hello_proto_reason(t.b), says) != NULL, "%s", hello_proto_reason(t.b));
    ck_assert_ptr_null(hello_proto_peer(t.a));
    ck_assert_ptr_null(hello_proto_peer(t.b));
    talk_free(&t);
}

static void both_refuse(const struct hello_self *a, const struct hello_self *b, const char *says)
{
    both_refuse_as(-EPROTO, a, b, says);
}

START_TEST(another_chunk_size_is_refused_by_both)
{
    struct hello_self b = self_b;
    b.chunk_size = 4 << 20;
    both_refuse(&self_a, &b, "--chunk-size");
    both_refuse(&b, &self_a, "--chunk-size");
}
END_TEST

START_TEST(another_major_version_is_refused_by_both)
{
    struct hello_self b = self_b;
    b.major = HELLO_MAJOR + 1;
    both_refuse(&self_a, &b, "install the same eddyfs");
    both_refuse(&b, &self_a, "install the same eddyfs");
}
END_TEST

START_TEST(other_settings_are_refused_by_both)
{
    struct hello_self b = self_b;
    b.settings = "x=2";
    both_refuse(&self_a, &b, "have different settings");
}
END_TEST

START_TEST(a_copied_cache_directory_is_refused_by_both)
{
    struct hello_self b = self_b;
    b.id = self_a.id;
    b.settings = "x=2"; /* whatever else differs: this says that the other one lives */
    both_refuse_as(-ENOTUNIQ, &self_a, &b, "cache directory was copied");
}
END_TEST

START_TEST(another_session_with_the_same_secret_is_refused_by_both)
{
    struct talk t = {.a = hello_proto_new(true, &self_a, secret, "s"),
                     .b = hello_proto_new(false, &self_b, secret, "other")};
    talk_until(&t, 5);
    ck_assert_int_eq(t.a_got, -EPROTO);
    ck_assert_int_eq(t.b_got, -EPROTO);
    ck_assert(strstr(hello_proto_reason(t.a), "--session") &&
              strstr(hello_proto_reason(t.b), "--session"));
    talk_free(&t);
}
END_TEST

START_TEST(what_does_not_fit_into_a_frame_is_not_tried)
{
    static char addr[HELLO_WORKER_ADDR_MAX + 1];
    struct hello_self a = self_a;
    a.worker_addr = addr;
    a.worker_addr_len = HELLO_WORKER_ADDR_MAX;
    struct talk t = talk_whole(&a, &self_b, secret, secret);
    ck_assert_int_eq(t.b_got, 1);
    ck_assert_uint_eq(hello_proto_peer(t.b)->worker_addr_len, HELLO_WORKER_ADDR_MAX);
    talk_free(&t);
    a.worker_addr_len++;
    ck_assert_ptr_null(hello_proto_new(true, &a, secret, "s"));
}
END_TEST

/* ---- addresses ---- */

START_TEST(addresses_are_parsed)
{
    static const char *const good[] = {"1.2.3.4", "1.2.3.4:5",       "::1",
                                       "[::1]",   "[fd00::2]:65535", "127.0.0.1:0"};
    static const char *const bad[] = {
        "",
        "host",
        "1.2.3.4:",
        "1.2.3.4:x",
        "1.2.3.4:65536",
        "[::1",
        "[::1]5",
        "[1.2.3.4]",
        "1.2.3",
        "1.2.3.4:-1",
        "[::1]:",
        "1.2.3.4 ",
        "[]:5",
        ":5",
        "::1:2:3:4:5:6:7:8:9",
        "1111111111111111111111111111111111111111111111111111111111111111111111"};
    struct sockaddr_storage sa;
    for (unsigned i = 0; i < ARRAY_LEN(good); i++)
        ck_assert_msg(!hello_parse_addr(good[i], &sa), "%s", good[i]);
    for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
        ck_assert_msg(hello_parse_addr(bad[i], &sa) == -EINVAL, "%s", bad[i]);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("hello");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, two_nodes_of_a_session_prove_each_other);
    tcase_add_test(t, both_sides_find_the_same_pair_of_endpoints);
    tcase_add_test(t, the_connector_knows_the_peer_after_hello2_and_not_before);
    tcase_add_test(t, bytes_may_come_one_by_one_and_too_many);
    tcase_add_test(t, a_connector_with_another_secret_closes_and_learns_nothing);
    tcase_add_test(t, an_acceptor_tells_nothing_to_who_cannot_prove_himself);
    tcase_add_test(t, a_stranger_is_told_no_way_over_ucx);
    tcase_add_test(t, a_node_that_is_refused_is_told_no_way_over_ucx);
    tcase_add_test(t, a_replayed_hello_is_refused);
    tcase_add_test(t, a_frame_played_back_to_its_maker_is_refused);
    tcase_add_loop_test(t, no_flipped_bit_is_accepted, 1, 5);
    tcase_add_loop_test(t, no_shortened_frame_is_accepted, 1, 5);
    tcase_add_test(t, garbage_and_oversized_frames_are_refused_at_once);
    tcase_add_test(t, another_chunk_size_is_refused_by_both);
    tcase_add_test(t, another_major_version_is_refused_by_both);
    tcase_add_test(t, other_settings_are_refused_by_both);
    tcase_add_test(t, a_copied_cache_directory_is_refused_by_both);
    tcase_add_test(t, another_session_with_the_same_secret_is_refused_by_both);
    tcase_add_test(t, what_does_not_fit_into_a_frame_is_not_tried);
    tcase_add_test(t, addresses_are_parsed);
    return run_case("hello", t);
}
