/* test_members_adopt.c - ADOPTED and farewells in pieces: what is sent, what is taken, and what becomes
 * of it when a piece is lost, comes twice, or the view changes in between.  The test is the network,
 * the other nodes, and what is told. */
#include "transport/loop.h"
#include "transport/members_int.h"
#include "transport/members_ping.h"
#include "transport/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the network ---- */

#define OUT_MAX 16

struct out {
    uint64_t to;
    struct msg *m;
    peer_reply_fn fn;
    void *arg;
};

static struct {
    struct out out[OUT_MAX]; /* requests without an answer yet */
    unsigned n;
    enum msg_type reply; /* the last one; an error: ERROR and its status */
    uint32_t piece;
    int status;
    unsigned leave_steps;
} net;

static uint64_t fake_request(uint64_t id, struct msg *m, uint32_t silence_ms, void *recv_buf,
                             size_t recv_len, peer_reply_fn fn, void *arg)
{
    (void)silence_ms, (void)recv_buf, (void)recv_len;
    if (net.n == OUT_MAX)
        die("too many requests");
    net.out[net.n++] = (struct out){id, m, fn, arg};
    return net.n;
}

static void fake_reply(const struct msg *to, struct msg *r)
{
    (void)to;
    net.reply = r->head.type;
    net.piece = net.reply == MSG_NEXT_PIECE ? r->next_piece.piece : 0;
    msg_free(r);
}

static void fake_reply_error(const struct msg *to, int err)
{
    (void)to;
    net.reply = MSG_ERROR;
    net.status = err;
}

static void fake_leave_step(void)
{
    net.leave_steps++;
}

static void fake_want_read(void)
{
}

static void fake_doubt(uint64_t id)
{
    (void)id;
}

static const struct view *fake_view_number(uint64_t n);

#define members_view_number fake_view_number
#define peer_request       fake_request
#define peer_reply         fake_reply
#define peer_reply_error   fake_reply_error
#define members_leave_step fake_leave_step
#define members_want_read  fake_want_read
#define members_doubt      fake_doubt
#include "transport/members_adopt.c"
#include "transport/view.h"
#undef members_view_number
#undef peer_request
#undef peer_reply
#undef peer_reply_error
#undef members_leave_step
#undef members_want_read
#undef members_doubt

#include "suite.h"

/* ---- what is told: a number of pieces, the same for all ---- */

static struct {
    uint32_t pieces; /* of this node's reports */
    unsigned made, freed;
    unsigned heard[4], all; /* pieces, by node; members_ops.all_adopted */
    uint32_t wrong;         /* pieces that came in another order */
} told;

static void *report_make(const struct view *v, bool farewell)
{
    (void)v;
    (void)farewell;
    told.made++;
    return xcalloc(1, 1);
}

static void report_fill(const void *report, uint64_t to, struct msg *m)
{
    (void)report;
    (void)to;
    m->adopted.more = m->adopted.piece + 1 < told.pieces;
}

static void report_free(void *report)
{
    free(report);
    told.freed++;
}

static void heard_adopted(const struct view *v, uint64_t from, const struct msg *m)
{
    (void)v;
    told.wrong += m->adopted.piece != told.heard[from];
    told.heard[from]++;
}

static void on_all(const struct view *v)
{
    (void)v;
    told.all++;
}

static void on_view(const struct view *v)
{
    (void)v;
    memset(told.heard, 0, sizeof(told.heard));
}

/* ---- the nodes: this one is 1; 2 and 3 ---- */

static struct member nodes[3] = {{.id = 1, .incarnation = 1, .name = "a"},
                                 {.id = 2, .incarnation = 1, .name = "b"},
                                 {.id = 3, .incarnation = 1, .name = "c"}};
static struct view view5 = {.number = 5, .nmembers = 3, .members = nodes},
                   view6 = {.number = 6, .nmembers = 3, .members = nodes},
                   view6_of_two = {.number = 6, .nmembers = 2, .members = nodes},
                   view6_of_others = {.number = 6, .nmembers = 2, .members = nodes + 1},
                   view7 = {.number = 7, .nmembers = 3, .members = nodes};
static const struct view *view6_read = &view6; /* NULL: it is not known */

static const struct view *fake_view_number(uint64_t n)
{
    return n == 5 ? &view5 : n == 6 ? view6_read : n == 7 ? &view7 : NULL;
}

static void begin(void)
{
    ck_assert_int_eq(loop_start(), 0);
    lock_init(&members_now.lock, RANK_LEAF);
    lock_cond_init(&members_now.changed);
    members_st.cfg.self = nodes[0];
    members_st.cfg.ops = (struct members_ops){.report_make = report_make,
                                              .report_fill = report_fill,
                                              .report_free = report_free,
                                              .adopted = on_view,
                                              .heard_adopted = heard_adopted,
                                              .all_adopted = on_all};
    told.pieces = 3;
}

static void adopt(const struct view *v)
{
    members_adopt(v, boot_ms());
}

static struct out *to(uint64_t id)
{
    for (unsigned i = net.n; i; i--)
        if (net.out[i - 1].to == id)
            return &net.out[i - 1];
    ck_abort_msg("nothing is on its way to node %d", (int)id);
    return NULL;
}

static bool is_asked(uint64_t id)
{
    for (unsigned i = 0; i < net.n; i++)
        if (net.out[i].to == id)
            return true;
    return false;
}

static uint32_t piece_to(uint64_t id)
{
    return to(id)->m->adopted.piece;
}

static void answered(uint64_t id, enum msg_type type, uint32_t piece, int err)
{
    struct out *at = to(id), o = *at;
    struct msg *r = msg_new(type);
    bool keep = false;
    *at = net.out[--net.n];
    if (type == MSG_NEXT_PIECE)
        r->next_piece.piece = piece;
    o.fn(o.arg, err, err ? NULL : r, &keep);
    msg_free(r);
    msg_free(o.m);
}

/* Nothing is left: all reports were freed. */
static void end(void)
{
    members_st.left = true;
    while (net.n)
        answered(net.out[0].to, MSG_ADOPTED_OK, 0, -ECONNRESET);
    members_adopt_stop();
    ck_assert_uint_eq(told.freed, told.made);
}

/* A piece comes from a node. */
static void comes(uint64_t from, uint64_t view, uint32_t piece, bool more, uint8_t leaving)
{
    struct msg *m = msg_new(MSG_ADOPTED);
    m->head.sender = from;
    m->head.incarnation = 1;
    m->adopted.view = view;
    m->adopted.piece = piece;
    m->adopted.more = more;
    m->adopted.leaving = leaving;
    members_handle_adopted(m);
}

static void check_answer(enum msg_type type, uint32_t piece)
{
    ck_assert_str_eq(msg_name(net.reply), msg_name(type));
    ck_assert_uint_eq(net.piece, piece);
}

/* ---- telling ---- */

START_TEST(pieces_go_one_after_the_other)
{
    adopt(&view5);
    ck_assert_uint_eq(told.heard[1], 3); /* its own */
    ck_assert_uint_eq(net.n, 2);
    ck_assert_uint_eq(piece_to(2), 0);
    answered(2, MSG_NEXT_PIECE, 1, 0);
    ck_assert_uint_eq(piece_to(2), 1);
    ck_assert_uint_eq(piece_to(3), 0);
    answered(2, MSG_NEXT_PIECE, 2, 0);
    ck_assert_uint_eq(piece_to(2), 2);
    ck_assert(!to(2)->m->adopted.more);
    answered(2, MSG_ADOPTED_OK, 0, 0);
    ck_assert(!is_asked(2));
    ck_assert_uint_eq(told.freed, 0);
    for (uint32_t i = 1; i < 3; i++)
        answered(3, MSG_NEXT_PIECE, i, 0);
    answered(3, MSG_ADOPTED_OK, 0, 0);
    ck_assert_uint_eq(told.made, 1);
    ck_assert_uint_eq(told.freed, 1); /* nobody is to be told any more */
}
END_TEST

START_TEST(a_piece_without_an_answer_goes_again)
{
    static const int errors[] = {-ETIMEDOUT, -E_ASK_AGAIN, -ECONNRESET};
    adopt(&view5);
    answered(2, MSG_NEXT_PIECE, 1, 0);
    for (unsigned i = 0; i < ARRAY_LEN(errors); i++) {
        answered(2, MSG_ADOPTED_OK, 0, errors[i]);
        ck_assert(!is_asked(2));
        members_resend_all();
        ck_assert_uint_eq(piece_to(2), 1);
    }
    answered(2, MSG_NEXT_PIECE, 2, 0); /* it had come: only the answer was lost */
    ck_assert_uint_eq(piece_to(2), 2);
}
END_TEST

START_TEST(a_wish_that_makes_no_sense_waits_for_the_tick)
{
    static const uint32_t wishes[] = {0, 2, UINT32_MAX};
    adopt(&view5);
    for (unsigned i = 0; i < ARRAY_LEN(wishes); i++) {
        answered(2, MSG_NEXT_PIECE, wishes[i], 0);
        ck_assert(!is_asked(2)); /* not at once, or it could go on for ever */
        members_resend_all();
        ck_assert_uint_eq(piece_to(2), 0);
    }
    answered(2, MSG_NEXT_PIECE, 1, 0);
    answered(2, MSG_NEXT_PIECE, 2, 0);
    answered(2, MSG_NEXT_PIECE, 3, 0); /* there is none */
    members_resend_all();
    ck_assert_uint_eq(piece_to(2), 2);
}
END_TEST

START_TEST(a_new_view_ends_the_pieces_of_the_older_one)
{
    adopt(&view5);
    answered(2, MSG_NEXT_PIECE, 1, 0);
    struct out *at = to(2), old = *at;
    *at = net.out[--net.n];
    adopt(&view6);
    ck_assert_uint_eq(net.n, 3); /* two of the new one */
    ck_assert_uint_eq(to(2)->m->adopted.view, 6);
    net.out[net.n++] = old;
    answered(2, MSG_NEXT_PIECE, 2, 0); /* of the older one */
    ck_assert_uint_eq(net.n, 3);
    ck_assert_uint_eq(piece_to(2), 0);
}
END_TEST

START_TEST(a_farewell_is_owed_until_its_last_piece_is_there)
{
    struct node *n;
    adopt(&view5);
    while (net.n)
        answered(net.out[0].to, MSG_ADOPTED_OK, 0, 0);
    members_st.leaving = true;
    members_say_farewell(&(struct view){.number = 6, .nmembers = 1, .members = nodes + 1});
    n = members_node_of(2, 1);
    ck_assert_uint_eq(to(2)->m->adopted.leaving, FAREWELL);
    ck_assert_uint_eq(to(2)->m->adopted.view, 6);
    for (uint32_t i = 1; i < 3; i++) {
        answered(2, MSG_NEXT_PIECE, i, 0);
        ck_assert(n->owes);
        ck_assert_uint_eq(net.leave_steps, 0);
    }
    answered(2, MSG_ADOPTED_OK, 0, 0);
    ck_assert(!n->owes);
    ck_assert_uint_eq(net.leave_steps, 1);
}
END_TEST

/* ---- hearing ---- */

START_TEST(a_member_is_heard_when_its_last_piece_has_come_and_not_before)
{
    adopt(&view5);
    comes(2, 5, 0, true, 0);
    check_answer(MSG_NEXT_PIECE, 1);
    comes(2, 5, 0, true, 0); /* comes again */
    check_answer(MSG_NEXT_PIECE, 1);
    comes(2, 5, 2, false, 0); /* the one before is lost */
    check_answer(MSG_NEXT_PIECE, 1);
    comes(3, 5, 0, false, 0);
    check_answer(MSG_ADOPTED_OK, 0);
    ck_assert_uint_eq(told.all, 0);
    comes(2, 5, 1, true, 0);
    check_answer(MSG_NEXT_PIECE, 2);
    ck_assert_uint_eq(told.all, 0);
    comes(2, 5, 2, false, 0);
    check_answer(MSG_ADOPTED_OK, 0);
    ck_assert_uint_eq(told.all, 1);
    comes(2, 5, 1, true, 0); /* late */
    check_answer(MSG_ADOPTED_OK, 0);
    ck_assert_uint_eq(told.all, 1);
    ck_assert_uint_eq(told.heard[2], 3);
    ck_assert_uint_eq(told.heard[3], 1);
    ck_assert_uint_eq(told.wrong, 0);
}
END_TEST

START_TEST(a_new_view_begins_with_no_piece)
{
    adopt(&view5);
    comes(2, 5, 0, true, 0);
    comes(2, 5, 1, true, 0);
    adopt(&view6);
    comes(2, 6, 2, false, 0);
    check_answer(MSG_NEXT_PIECE, 0);
    ck_assert_uint_eq(told.heard[2], 0);
    comes(2, 5, 2, false, 0); /* of the older one: it is over */
    check_answer(MSG_ADOPTED_OK, 0);
    ck_assert_uint_eq(told.heard[2], 0);
}
END_TEST

START_TEST(a_farewell_counts_when_it_is_whole)
{
    adopt(&view5);
    for (uint32_t i = 0; i < 3; i++) {
        comes(3, 6, i, i < 2, FAREWELL);
        check_answer(i < 2 ? MSG_NEXT_PIECE : MSG_ADOPTED_OK, i < 2 ? i + 1 : 0);
        comes(3, 6, i, i < 2, FAREWELL); /* again */
        check_answer(i < 2 ? MSG_NEXT_PIECE : MSG_ADOPTED_OK, i < 2 ? i + 1 : 0);
    }
    ck_assert_uint_eq(told.heard[3], 0); /* not before the view is adopted */
    adopt(&view6_of_two);
    ck_assert_uint_eq(told.heard[3], 3);
    ck_assert_uint_eq(told.wrong, 0);
    ck_assert(said_farewell(6, 3));
}
END_TEST

START_TEST(a_farewell_that_was_cut_off_counts_as_none)
{
    adopt(&view5);
    comes(3, 6, 0, true, FAREWELL);
    comes(3, 6, 1, true, FAREWELL);
    adopt(&view6_of_two);
    ck_assert_uint_eq(told.heard[3], 0);
    ck_assert(!said_farewell(6, 3));
    ck_assert_ptr_null(farewells);
}
END_TEST

/* ---- views that were missed ---- */

static const struct view *now; /* what members_ops.adopted was told last */

static void on_now(const struct view *v)
{
    now = v;
    memset(told.heard, 0, sizeof(told.heard));
}

START_TEST(who_was_left_out_of_a_view_that_it_missed_comes_from_outside)
{
    static const struct view *const sixes[] = {&view6_of_others, NULL, &view6};
    members_st.cfg.ops.adopted = on_now;
    for (unsigned i = 0; i < 3; i++) {
        view6_read = sixes[i];
        members_st.view = NULL;
        adopt(&view5);
        ck_assert_ptr_eq(now, &view5);
        adopt(&view7);
        ck_assert_ptr_eq(now, i == 2 ? &view7 : NULL);
        adopt(&view7); /* the next read, from outside */
        ck_assert_ptr_eq(now, &view7);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("members_adopt");
    TCase *t = add_case(s, "telling", begin, end, 30);
    tcase_add_test(t, pieces_go_one_after_the_other);
    tcase_add_test(t, a_piece_without_an_answer_goes_again);
    tcase_add_test(t, a_wish_that_makes_no_sense_waits_for_the_tick);
    tcase_add_test(t, a_new_view_ends_the_pieces_of_the_older_one);
    tcase_add_test(t, a_farewell_is_owed_until_its_last_piece_is_there);
    t = add_case(s, "hearing", begin, end, 30);
    tcase_add_test(t, a_member_is_heard_when_its_last_piece_has_come_and_not_before);
    tcase_add_test(t, a_new_view_begins_with_no_piece);
    tcase_add_test(t, a_farewell_counts_when_it_is_whole);
    tcase_add_test(t, a_farewell_that_was_cut_off_counts_as_none);
    t = add_case(s, "adopting", begin, end, 30);
    tcase_add_test(t, who_was_left_out_of_a_view_that_it_missed_comes_from_outside);
    return run_suite(s);
}
