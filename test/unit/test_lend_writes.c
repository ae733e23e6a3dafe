/* test_lend_writes.c - how writes and stores go into parts that are lent: at once where nothing is to wait for, and of a mapping up to
 * the file's end.
 */
#include "nodes_lend.h"

static void order_write_now(struct order *o)
{
    uint8_t *buf = xmalloc(o->len);
    uint64_t off;
    fill_pattern(buf, o->len, o->b, o->off);
    o->err = data_write_now(node_handles[o->a].h, CARRY_WRITE, buf, o->len, o->off, &off);
    free(buf);
}

static int try_write_now(unsigned i, uint64_t off, uint64_t len, unsigned seed)
{
    struct order o = {.off = off, .len = len, .b = seed};
    node_run(i, order_write_now, &o);
    return o.err;
}

/* A FUSE worker writes it itself, and no other thread is woken. */
START_TEST(a_write_into_what_is_borrowed_waits_for_nobody)
{
    open_everywhere("now");
    ck_assert_int_eq(try_write_now(1, 0, UNIT, 5), -EAGAIN); /* nothing is borrowed yet */
    write_on(1, 0, 0, 4 * UNIT, 5);
    write_on(2, 0, 4 * UNIT, 4 * UNIT, 5);
    ck_assert_uint_eq(lent_on(0, 0, 8), 8);
    struct order before = {0}, after = {0};
    node_run(1, order_members, &before);
    ck_assert_int_eq(try_write_now(1, UNIT - 7, 2 * UNIT, 6), 0);
    node_run(1, order_members, &after);
    ck_assert_uint_eq(after.counters.borrowed_bytes - before.counters.borrowed_bytes, 2 * UNIT);
    ck_assert_uint_eq(after.counters.written_bytes - before.counters.written_bytes, 2 * UNIT);
    ck_assert_int_eq(try_write_now(1, 3 * UNIT, 2 * UNIT, 6), -EAGAIN); /* half of it is another node's */
    ck_assert_int_eq(try_write_now(1, 9 * UNIT, UNIT, 6), -EAGAIN);     /* nobody's yet */
    for (unsigned i = 0; i < N; i++) {
        assert_read(i, 0, 0, UNIT - 7, UNIT - 7, 5);
        assert_read(i, 0, UNIT - 7, 2 * UNIT, 2 * UNIT, 6);
        assert_read(i, 0, 3 * UNIT - 7, 8 * UNIT, 5 * UNIT + 7, 5);
    }
    close_everywhere("now");
}
END_TEST

START_TEST(a_handle_that_only_reads_writes_nothing_into_what_is_borrowed)
{
    open_everywhere("read only");
    open_on(1, "read only", 1, O_RDONLY);
    write_on(1, 0, 0, 4 * UNIT, 5);
    struct order o = {.a = 1, .len = UNIT, .b = 6};
    node_run(1, order_write_now, &o);
    ck_assert_int_eq(o.err, -EAGAIN);
    assert_read(2, 0, 0, 4 * UNIT, 4 * UNIT, 5);
    close_on(1, 1);
    close_everywhere("read only");
}
END_TEST

/* A STORE leaves out what is behind the end, which a borrower may have moved. */
static void order_store(struct order *o)
{
    uint8_t *buf = xmalloc(o->len);
    uint64_t off;
    fill_pattern(buf, o->len, o->b, o->off);
    o->err = data_write(node_handles[o->a].h, CARRY_STORE, buf, o->len, o->off, &off);
    free(buf);
}

/* ... as a FUSE worker tries it first, which waits for nobody. */
static void order_store_now(struct order *o)
{
    uint8_t *buf = xmalloc(o->len);
    uint64_t off;
    fill_pattern(buf, o->len, o->b, o->off);
    o->err = data_write_now(node_handles[o->a].h, CARRY_STORE, buf, o->len, o->off, &off);
    free(buf);
    if (o->err == -EAGAIN)
        order_store(o);
}

static void store_on(unsigned i, void (*fn)(struct order *o), uint64_t off, uint64_t len, unsigned seed)
{
    struct order o = {.off = off, .len = len, .b = seed};
    node_run(i, fn, &o);
    ck_assert_int_eq(o.err, 0);
}

/* No borrower knows where the file ends, and its own part may end before. */
START_TEST(what_a_mapping_stores_into_a_borrowed_part_counts_up_to_the_files_end)
{
    open_everywhere("borrowed stores");
    write_on(0, 0, 0, UNIT, 6);
    write_on(1, 0, UNIT, UNIT + 100, 6);
    ck_assert_uint_eq(lent_on(0, 1, 2), 2);
    store_on(0, order_store, 2 * UNIT, 300, 6); /* the file ends after the first 100 of these, ... */
    store_on(1, order_store, 2 * UNIT, 400, 6);
    store_on(2, order_store, 2 * UNIT, 500, 6);
    store_on(2, order_store, 2 * UNIT + 100, 500, 6);
    ck_assert_uint_eq(size_on(0), 2 * UNIT + 100);
    write_on(2, 0, 3 * UNIT, UNIT, 6); /* ... and now behind them all */
    for (unsigned i = 0; i < N; i++) {
        store_on(i, order_store, 2 * UNIT + 1000 * i, 1000, 6);
        assert_read(1, 0, 2 * UNIT + 1000 * i, 1000, 1000, 6);
    }
    ck_assert_uint_eq(size_on(0), 4 * UNIT);
    close_everywhere("borrowed stores");
}
END_TEST

START_TEST(what_a_mapping_of_the_claimant_stores_counts_up_to_the_end_that_borrowers_made)
{
    open_everywhere("own stores");
    write_on(0, 0, 0, 1, 6);
    write_on(1, 0, 3 * UNIT, UNIT, 6);
    store_on(0, order_store_now, 0, 4096, 6);
    assert_read(2, 0, 0, 4096, 4096, 6);
    close_everywhere("own stores");
}
END_TEST

START_TEST(what_a_mapping_stores_counts_up_to_the_end_that_borrowers_made)
{
    open_everywhere("stores");
    write_on(0, 0, 0, 100, 6);
    write_on(1, 0, 3 * UNIT, UNIT, 6);
    for (unsigned i = 0; i < N; i += 2) {
        struct order o = {.off = 4000 * (i + 1), .len = 4000, .b = 6};
        node_run(i, order_store, &o);
        ck_assert_int_eq(o.err, 0);
        assert_read(1, 0, o.off, o.len, o.len, 6);
    }
    close_everywhere("stores");
}
END_TEST

/* A node that knows of no loan has the unit `off`, and the write's time is over when this is found. */
static void order_write_late(struct order *o)
{
    uint8_t byte = 7;
    struct file *f = file_of_handle(o);
    struct change c = {.op = CARRY_WRITE, .buf = &byte, .len = 1, .off = o->off * UNIT, .end_ms = boot_ms()};
    o->err = store_lend(f, (struct lend_node){o->out[0], o->out[1]}, o->off, o->off);
    if (!o->err)
        o->err = lend_change_all(f, &c);
    c.end_ms += 30000;
    if (o->err == -EIO)
        o->err = lend_change_all(f, &c) ? -EBADMSG : -EIO;
}

START_TEST(a_write_that_its_deadline_ends_is_no_success)
{
    open_everywhere("late");
    write_on(1, 0, 0, UNIT, 5);
    struct order who = {0};
    node_run(1, order_members, &who);
    struct order o = {.off = 6, .out = {who.out[2], 1}};
    node_run(0, order_write_late, &o);
    ck_assert_int_eq(o.err, -EIO); /* and then it is made */
    assert_read(2, 0, 0, UNIT, UNIT, 5);
    close_everywhere("late");
}
END_TEST

int main(int argc, char **argv)
{
    if (node_is(argc, argv))
        return node_main(argc, argv);
    TCase *t = nodes_case("three nodes", begin);
    tcase_add_test(t, a_write_into_what_is_borrowed_waits_for_nobody);
    tcase_add_test(t, a_handle_that_only_reads_writes_nothing_into_what_is_borrowed);
    tcase_add_test(t, what_a_mapping_stores_into_a_borrowed_part_counts_up_to_the_files_end);
    tcase_add_test(t, what_a_mapping_of_the_claimant_stores_counts_up_to_the_end_that_borrowers_made);
    tcase_add_test(t, what_a_mapping_stores_counts_up_to_the_end_that_borrowers_made);
    tcase_add_test(t, a_write_that_its_deadline_ends_is_no_success);
    return run_case("lend_writes", t);
}
