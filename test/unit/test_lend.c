/* test_lend.c - nodes that write one file lend each other its parts; what a wrong peer says of them is refused. */
#include "nodes_lend.h"

/* ---- lending ---- */

START_TEST(each_node_writes_its_parts_at_home)
{
    size_t len;
    open_everywhere("parts");
    struct order before = {0}, after = {0};
    node_run(1, order_members, &before);
    write_on(1, 0, 4 * UNIT, 4 * UNIT, 5);
    node_run(1, order_members, &after);
    ck_assert_uint_eq(after.counters.carried_bytes, before.counters.carried_bytes);
    ck_assert_uint_eq(lent_on(0, 4, 4), 4);
    write_on(2, 0, 8 * UNIT, 2 * UNIT + 77, 5);
    write_on(0, 0, 0, 4 * UNIT, 5);
    for (unsigned i = 0; i < N; i++) {
        ck_assert_uint_eq(size_on(i), 10 * UNIT + 77);
        assert_read(i, 0, 0, 20 * UNIT, 10 * UNIT + 77, 5);
    }
    close_everywhere("parts");
    ck_assert(pfs_hash("parts", &len) == hash_pattern(10 * UNIT + 77, 5, 0));
}
END_TEST

/* The claimant is asked some times at first, and then seldom: writes into what is borrowed already count for the distance, too. */
START_TEST(where_a_writer_will_write_next_is_borrowed_ahead)
{
    enum { EACH = 4 };
    open_everywhere("strided");
    for (unsigned i = 0; i < 8; i++)
        write_on(1, 0, i * EACH * UNIT, UNIT, 5);
    for (unsigned i = 0; i < 16; i++) {
        ck_assert_uint_eq(lent_on(0, i * EACH, 1), 1);
        ck_assert_uint_eq(lent_on(0, i * EACH + 1, EACH - 1), 0);
    }
    close_everywhere("strided");
}
END_TEST

START_TEST(a_time_that_the_claimant_sets_holds_until_a_borrower_writes)
{
    open_everywhere("times");
    write_on(1, 0, 0, 2 * UNIT, 14);
    ck_assert_uint_eq(lent_on(0, 0, 2), 2);
    struct order o = {.off = 1000000007};
    node_run(0, order_times, &o);
    ck_assert_int_eq(o.err, 0);
    for (unsigned i = 0; i < N; i++)
        ck_assert_int_eq(mtime_on(i), 1000000007);
    flush_all_on(1);
    ck_assert_int_eq(mtime_on(2), 1000000007);
    write_on(1, 0, 0, 9, 14);
    for (unsigned i = 0; i < N; i++)
        ck_assert_int_gt(mtime_on(i), 1000000007);
    close_everywhere("times");
}
END_TEST

START_TEST(a_truncation_brings_all_back_first)
{
    open_everywhere("cut");
    write_on(1, 0, 0, 4 * UNIT, 7);
    write_on(2, 0, 4 * UNIT, 4 * UNIT, 7);
    truncate_on(1, 0, 5 * UNIT + 3);
    ck_assert_uint_eq(lent_on(0, 0, 8), 0);
    for (unsigned i = 0; i < N; i++) {
        ck_assert_uint_eq(size_on(i), 5 * UNIT + 3);
        assert_read(i, 0, 0, 20 * UNIT, 5 * UNIT + 3, 7);
    }
    close_everywhere("cut");
}
END_TEST

/* Epochs are those of one claim: the next claimant's begin anew. */
START_TEST(what_another_claimant_has_recalled_does_not_keep_the_next_from_lending)
{
    open_everywhere("next");
    open_on(1, "next", 1, O_RDONLY); /* it knows the file all the time */
    write_on(1, 0, 0, 2 * UNIT, 8);
    for (unsigned i = 0; i < 3; i++) {
        write_on(1, 0, 0, 2 * UNIT, 8);
        truncate_on(0, 0, UNIT);
    }
    close_everywhere("next");
    open_on(2, "next", 0, O_RDWR);
    open_on(1, "next", 0, O_RDWR);
    write_on(1, 0, 4 * UNIT, 2 * UNIT, 8);
    ck_assert_uint_eq(lent_on(2, 4, 2), 2);
    assert_read(2, 0, 4 * UNIT, 2 * UNIT, 2 * UNIT, 8);
    close_on(1, 1);
    flush_all_on(1);
    close_on(1, 0);
    until(2, order_nothing_is_lent, "it came back");
    flush_all_on(2);
    close_on(2, 0);
}
END_TEST

#define PIECE  4000u
#define PIECES 1500u

/* Appends by position, one piece after the other, in two units and more. */
static void order_grow(struct order *o)
{
    uint8_t buf[PIECE];
    uint64_t off;
    for (uint64_t n = 0; !o->err && n < PIECES; n++) {
        fill_pattern(buf, PIECE, 11, n * PIECE);
        o->err = data_write(node_handles[o->a].h, CARRY_WRITE, buf, PIECE, n * PIECE, &off);
    }
}

/* Reads over the end until the file has its last size.  out: how often the bytes were wrong. */
static void order_follow(struct order *o)
{
    size_t got = 0;
    uint8_t *buf = xmalloc(2 * UNIT), *want = xmalloc(2 * UNIT);
    for (uint64_t end = 0; !o->err && end < (uint64_t)PIECE * PIECES; end += got) {
        uint64_t off = end - MIN(end, UNIT / 2);
        o->err = data_read(node_handles[o->a].h, buf, 2 * UNIT, off, &got);
        fill_pattern(want, got, 11, off);
        o->out[0] += memcmp(buf, want, got) != 0;
        end = off;
    }
    free(buf);
    free(want);
}

START_TEST(a_reader_of_a_file_that_grows_sees_no_zeros)
{
    struct order grow = {0}, follow[N] = {0};
    open_everywhere("grows");
    write_on(1, 0, 0, 2 * UNIT, 11); /* it borrows from now on */
    open_on(1, "grows", 1, O_RDONLY);
    node_send(1, order_grow, &grow);
    for (unsigned i = 0; i < N; i += 2)
        node_send(i, order_follow, &follow[i]);
    node_wait(1, &grow);
    ck_assert_int_eq(grow.err, 0);
    for (unsigned i = 0; i < N; i += 2) {
        node_wait(i, &follow[i]);
        ck_assert_int_eq(follow[i].err, 0);
        ck_assert_msg(!follow[i].out[0], "node %u read wrong bytes %u times", i, (unsigned)follow[i].out[0]);
    }
    close_on(1, 1);
    close_everywhere("grows");
}
END_TEST

/* ---- what a wrong peer says ---- */

static struct msg *ask_wrong(uint64_t node, struct msg *m, int *err)
{
    struct msg *reply = NULL;
    *err = peer_call(node, m, 3000, NULL, 0, &reply);
    return reply;
}

/* out[0..4]: fields of a LEND to node b, of the file of handle a.  out: parts of the answer. */
static void order_lend(struct order *o)
{
    int err;
    struct msg *m = msg_new(MSG_LEND);
    m->lend = (struct body_lend){.fid = file_of_handle(o)->fid,
                                 .first = o->out[0],
                                 .last = o->out[1],
                                 .stride = o->out[2],
                                 .count = (uint32_t)o->out[3]};
    struct msg *reply = ask_wrong(o->b, m, &err);
    o->err = err;
    o->out[0] = err ? 0 : reply->lent.parts.n;
    o->out[1] = !err && reply->lent.parts.n ? reply->lent.parts.v[0].node : 0;
    msg_free(reply);
}

static int try_lend(uint64_t first, uint64_t last, uint64_t stride, uint64_t count, uint64_t *parts)
{
    struct order o = {.b = id_of(0), .out = {first, last, stride, count}};
    node_run(1, order_lend, &o);
    *parts = o.out[0];
    return o.err;
}

START_TEST(a_lend_out_of_bounds_lends_nothing)
{
    const uint64_t most = INT64_MAX / UNIT;
    static const uint64_t bad[][4] = {
        {5, 4, 0, 0},                          /* none */
        {0, LEND_MAX, 0, 0},                   /* too many units, */
        {0, 63, 64, 64},                       /* also together */
        {0, 0, 1, LEND_MAX},                   /* too many places */
        {0, 0, 1, UINT32_MAX},
        {0, 3, 3, 2},                          /* they overlap */
        {0, 3, 0, 2},
        {0, 0, UINT64_MAX / 2, 2},             /* beyond all ends */
        {0, 0, INT64_MAX / UNIT / 2, 3},
        {UINT64_MAX - 1, UINT64_MAX, 0, 0},
        {INT64_MAX / UNIT, INT64_MAX / UNIT + 1, 0, 0},
    };
    uint64_t parts;
    open_everywhere("bounds");
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        ck_assert_msg(try_lend(bad[i][0], bad[i][1], bad[i][2], bad[i][3], &parts) == -EINVAL, "LEND %zu", i);
    struct order o = {0};
    node_run(0, order_lent, &o);
    ck_assert_uint_eq(o.out[1] + o.out[2], 0);
    ck_assert_int_eq(try_lend(most, most, 0, 0, &parts), 0); /* the last unit of the largest file */
    ck_assert_uint_eq(parts, 1);
    ck_assert_int_eq(try_lend(0, 63, 64, 63, &parts), 0);
    ck_assert_uint_eq(parts, 64);
    truncate_on(0, 0, UNIT); /* node 1 knows nothing of it, and would return nothing */
    truncate_on(0, 0, 0);
    close_everywhere("bounds");
}
END_TEST

/* out: a RETURN with that size and mtime to node b; len: what is added to the claim's number, off: its incarnation. */
static void order_return(struct order *o)
{
    int err;
    struct msg *m = msg_new(MSG_RETURN);
    m->ret = (struct body_ret){.fid = file_of_handle(o)->fid,
                                  .number_inc = o->off,
                                  .number = o->len,
                                  .began = o->out[2],
                                  .size = o->out[0],
                                  .mtime_ns = (int64_t)o->out[1]};
    struct msg *reply = ask_wrong(o->b, m, &err);
    o->err = err;
    msg_free(reply);
}

static void order_claim(struct order *o)
{
    o->err = claim_id(file_of_handle(o), &o->out[0], &o->out[1]) ? 0 : -ENOENT;
}

static int try_return(unsigned from, uint64_t inc, uint64_t number, uint64_t size)
{
    struct order o = {.b = id_of(0), .off = inc, .len = number, .out = {size, INT64_MAX, from == 1 ? 0 : LENT_ANY}};
    node_run(from, order_return, &o);
    return o.err;
}

START_TEST(a_return_of_what_is_not_lent_changes_nothing)
{
    struct order claim = {0};
    open_everywhere("returns");
    write_on(1, 0, 0, 2 * UNIT, 9);
    node_run(0, order_claim, &claim);
    ck_assert_int_eq(claim.err, 0);
    ck_assert_int_eq(try_return(1, claim.out[0], claim.out[1], UINT64_MAX), -EINVAL);
    ck_assert_int_eq(try_return(1, claim.out[0], claim.out[1] + 1, UNIT), 0); /* of another claim */
    ck_assert_int_eq(try_return(1, claim.out[0] + 1, claim.out[1], UNIT), 0);
    ck_assert_int_eq(try_return(2, claim.out[0], claim.out[1], 99 * UNIT), 0); /* of another node */
    ck_assert_int_eq(try_return(1, claim.out[0], claim.out[1], 99 * UNIT), 0); /* of an earlier loan */
    ck_assert_uint_eq(lent_on(0, 0, 2), 2);
    ck_assert_uint_eq(size_on(0), 2 * UNIT);
    assert_read(0, 0, 0, 9 * UNIT, 2 * UNIT, 9);
    close_everywhere("returns");
}
END_TEST

/* off: op, len: epoch: a LOAN to node b, with the number of this node's claim, or of none.  out: held. */
static void order_loan(struct order *o)
{
    int err;
    struct msg *m = msg_new(MSG_LOAN);
    m->loan = (struct body_loan){.fid = file_of_handle(o)->fid, .op = (uint8_t)o->off, .number = 4711, .epoch = o->len};
    claim_id(file_of_handle(o), &m->loan.number_inc, &m->loan.number);
    struct msg *reply = ask_wrong(o->b, m, &err);
    o->err = err;
    o->out[0] = !err && reply->loan_is.held;
    msg_free(reply);
}

static struct order try_loan(uint64_t op, uint64_t epoch)
{
    struct order o = {.b = id_of(1), .off = op, .len = epoch};
    node_run(2, order_loan, &o);
    return o;
}

START_TEST(only_the_lender_recalls)
{
    open_everywhere("recalls");
    ck_assert_int_eq(try_loan(0, 0).err, -EINVAL);
    ck_assert_int_eq(try_loan(LOAN_OPS + 1, 0).err, -EINVAL);
    ck_assert_int_eq(try_loan(255, 0).err, -EINVAL);
    ck_assert_int_eq(try_loan(LOAN_RECALL, UINT64_MAX).err, 0); /* nothing is borrowed yet */
    write_on(1, 0, 0, 2 * UNIT, 10);
    ck_assert_uint_eq(lent_on(0, 0, 2), 2);
    for (uint64_t op = LOAN_SIZE; op <= LOAN_RECALL; op++) {
        struct order o = try_loan(op, UINT64_MAX);
        ck_assert_int_eq(o.err, 0);
        ck_assert_uint_eq(o.out[0], 0);
    }
    assert_read(0, 0, 0, 9 * UNIT, 2 * UNIT, 10);
    write_on(1, 0, 2 * UNIT, 2 * UNIT, 10);
    ck_assert_uint_eq(lent_on(0, 0, 4), 4);
    assert_read(2, 0, 0, 9 * UNIT, 4 * UNIT, 10);
    close_everywhere("recalls");
}
END_TEST

/* The claimant hears nothing of what comes of its RECALL, as if the answer was lost. */
START_TEST(what_was_recalled_is_back_though_the_answer_is_lost)
{
    open_everywhere("lost");
    write_on(1, 0, 0, 3 * UNIT + 9, 12);
    ck_assert_uint_eq(lent_on(0, 0, 4), 4);
    struct order o = {.b = id_of(1), .off = LOAN_RECALL};
    node_run(0, order_loan, &o);
    ck_assert_int_eq(o.err, 0);
    ck_assert_uint_eq(lent_on(0, 0, 4), 0);
    ck_assert_uint_eq(size_on(0), 3 * UNIT + 9);
    write_on(1, 0, UNIT + 5, UNIT, 13); /* the rest of the pages is on the PFS */
    assert_read(1, 0, 0, UNIT + 5, UNIT + 5, 12);
    assert_read(2, 0, UNIT + 5, UNIT, UNIT, 13);
    assert_read(1, 0, 2 * UNIT + 5, 2 * UNIT, UNIT + 4, 12);
    close_everywhere("lost");
}
END_TEST

int main(int argc, char **argv)
{
    if (node_is(argc, argv))
        return node_main(argc, argv);
    TCase *t = nodes_case("three nodes", begin);
    tcase_add_test(t, each_node_writes_its_parts_at_home);
    tcase_add_test(t, where_a_writer_will_write_next_is_borrowed_ahead);
    tcase_add_test(t, a_time_that_the_claimant_sets_holds_until_a_borrower_writes);
    tcase_add_test(t, a_truncation_brings_all_back_first);
    tcase_add_test(t, what_another_claimant_has_recalled_does_not_keep_the_next_from_lending);
    tcase_add_test(t, a_reader_of_a_file_that_grows_sees_no_zeros);
    tcase_add_test(t, a_lend_out_of_bounds_lends_nothing);
    tcase_add_test(t, a_return_of_what_is_not_lent_changes_nothing);
    tcase_add_test(t, only_the_lender_recalls);
    tcase_add_test(t, what_was_recalled_is_back_though_the_answer_is_lost);
    return run_case("lend", t);
}
