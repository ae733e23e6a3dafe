/* test_bring.c - what a node is asked to bring: requests out of bounds are refused; what has come for a stage is counted, bounded,
 * and let go. */
#include "nodes_data.h"

#include "placement/foresight/bring.h"
#include "placement/foresight/foresight.h"
#include "placement/foresight/prefetch.h"
#include "placement/foresight/shares.h"
#include "placement/foresight/stage.h"

#define LIMIT (1u << 20)

/* As fs/daemon/steps.c does. */
static void order_foresight(struct order *o)
{
    (void)o;
    foresight_start(LIMIT);
    stages_start();
}

static void order_id(struct order *o)
{
    o->out[0] = members_self();
}

/* ---- bounds ---- */

/* A BRING with one thing wrong; number 0: nothing. */
static const struct wrong {
    const char *what, *path;
    uint64_t off, len, size;
    uint8_t op, owned;
    uint32_t files;
    bool no_fid;
} wrongs[] = {
    {.what = "nothing"},
    {.what = "no such request", .op = BRING_WHATS},
    {.what = "owned is 2", .owned = 2},
    {.what = "too many files", .files = BRING_FILES + 1},
    {.what = "no fid", .no_fid = true},
    {.what = "an absolute path", .path = "/etc/passwd"},
    {.what = "a path that goes up", .path = "a/../../b"},
    {.what = "no path", .path = ""},
    {.what = "an offset beyond all files", .off = UINT64_C(1) << 63},
    {.what = "an end beyond all files", .off = 1, .len = INT64_MAX},
    {.what = "a size beyond all files", .size = UINT64_C(1) << 63},
};

/* len: which is wrong; a: the node.  err: what it answers; out: items of the answer, and bytes of the first one. */
static void order_bring(struct order *o)
{
    static struct item_wanted v[BRING_FILES + 1];
    const struct wrong *w = &wrongs[o->len];
    struct msg *m = msg_new(MSG_BRING), *reply = NULL;
    uint32_t n = w->files ? w->files : 2;
    for (uint32_t i = 0; i < n; i++)
        v[i] = (struct item_wanted){.fid = {1, i + 1}, .version = {.size = 1000}, .path = "some/file"};
    struct item_wanted *last = &v[n - 1];
    last->path = w->path ? w->path : last->path;
    last->off = w->off;
    last->len = w->len;
    last->version.size = w->size ? w->size : last->version.size;
    if (w->no_fid)
        last->fid = (struct fid){0};
    m->bring.what = w->op;
    m->bring.owned = w->owned;
    m->bring.files.n = n;
    m->bring.files.v = v;
    o->err = peer_call(o->a, m, 3000, NULL, 0, &reply);
    if (!o->err) {
        o->out[0] = reply->brought.files.n;
        o->out[1] = reply->brought.files.v[0].wanted;
        o->out[2] = reply->brought.files.v[0].here;
    }
    msg_free(reply);
}

START_TEST(requests_out_of_bounds_are_refused)
{
    struct order id = {0}, asked = {0}, counted = {0};
    node_run(1, order_id, &id);
    for (unsigned i = 0; i < ARRAY_LEN(wrongs); i++) {
        struct order o = {.a = id.out[0], .len = i};
        node_run(0, order_bring, &o);
        ck_assert_msg(o.err == (i ? -EINVAL : 0), "%s: %s", wrongs[i].what, strerror(-o.err));
        asked = i ? asked : o;
    }
    ck_assert_uint_eq(asked.out[0], 2);
    ck_assert_uint_eq(asked.out[1], 1000);
    ck_assert_uint_eq(asked.out[2], 0);
    node_run(1, order_id, &counted);
    ck_assert_uint_eq(counted.counters.bad_messages, ARRAY_LEN(wrongs) - 1);
}
END_TEST

/* ---- shares ---- */

static struct hints_sums sums_now(void)
{
    struct hints_sums s;
    lock_take(&hints_lock);
    hints_sum(&s);
    lock_drop(&hints_lock);
    return s;
}

static uint32_t keep(uint64_t stage, uint64_t pin_ms, uint32_t n, uint64_t bytes)
{
    uint32_t kept = 0;
    lock_take(&hints_lock);
    struct share *s = share_get(7, stage, pin_ms, false);
    while (s && kept < n && share_keep(s, (struct fid){stage, kept + 1}, 0, bytes))
        kept++;
    lock_drop(&hints_lock);
    return kept;
}

/* out: what is counted after each step. */
static void order_shares(struct order *o)
{
    struct fid some[] = {{2, 3}, {2, 1}, {9, 9}};
    bool ok = keep(1, 0, 10, 100) == 10 && keep(2, UINT64_MAX, 5, 1000) == 5;
    struct hints_sums s = sums_now();
    ok &= s.staged == 6000 && s.pinned == 5000 && s.memory > 0;
    for (unsigned i = 0; i < 10; i++)
        ok &= shares_give_up();
    ok &= !shares_give_up(); /* what is pinned stays */
    s = sums_now();
    ok &= s.staged == 5000 && s.pinned == 5000;
    o->out[0] = ok;
    shares_drop(some, ARRAY_LEN(some));
    s = sums_now();
    o->out[1] = s.staged == 3000 && s.pinned == 3000;
    share_end(7, 2);
    share_end(7, 1);
    s = sums_now();
    o->out[2] = !s.staged && !s.pinned && !s.memory && !shares_any();
    o->out[3] = keep(3, 1, 1, 1) == 1;
    while (shares_expire()) /* the millisecond is not over */
        ;
    o->out[3] &= !shares_any();
    o->out[4] = keep(4, 0, UINT32_MAX, 1) <= LIMIT / 88;
    share_end(7, 4);
    s = sums_now();
    o->out[5] = !s.memory;
}

START_TEST(what_has_come_for_a_stage_is_counted_and_bounded)
{
    struct order o = {0};
    node_run(0, order_shares, &o);
    for (unsigned i = 0; i < 6; i++)
        ck_assert_msg(o.out[i], "step %u", i);
}
END_TEST

/* Two shares have one file: it stays as long as one of them has it. */
static void order_two_shares(struct order *o)
{
    struct fid fid = {6, 1};
    bool ok = keep(6, UINT64_MAX, 1, 100) == 1;
    lock_take(&hints_lock);
    struct share *s = share_get(8, 1, 0, false);
    ok &= share_keep(s, fid, 0, 100) && share_keep(s, fid, 4096, 10);
    ok &= shares_have(fid, 0) == 100 && shares_have(fid, 4096) == 10;
    lock_drop(&hints_lock);
    ok &= sums_now().staged == 110;
    share_end(8, 1);
    lock_take(&hints_lock);
    o->out[0] = ok && shares_have(fid, 0) == 100 && !shares_have(fid, 4096);
    lock_drop(&hints_lock);
    shares_drop(&fid, 1);
    lock_take(&hints_lock);
    o->out[1] = !shares_have(fid, 0);
    lock_drop(&hints_lock);
    share_end(7, 6);
    o->out[2] = !sums_now().memory && !sums_now().staged && !sums_now().pinned;
}

START_TEST(a_file_of_two_shares_counts_once_and_stays_for_the_pinned_one)
{
    struct order o = {0};
    node_run(0, order_two_shares, &o);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_msg(o.out[i], "step %u", i);
}
END_TEST

/* So many as there may be: what is empty makes room for another one, and what is not is kept.  Of other stages than those that
 * the checks before have ended. */
static void order_many_shares(struct order *o)
{
    bool ok = true;
    for (uint64_t i = 1; i <= SHARES_MAX; i++)
        ok &= keep(1000 + i, 0, i != 5, 1) == (i != 5);
    o->out[0] = ok && keep(1, 1, 1, 1) == 0 && keep(100000, 0, 1, 1) == 1;
    o->out[1] = keep(100001, 0, 1, 1) == 0;
    shares_drop(NULL, 0);
    o->out[2] = !shares_any() && !sums_now().staged;
}

START_TEST(there_are_only_so_many_shares)
{
    struct order o = {0};
    node_run(0, order_many_shares, &o);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_msg(o.out[i], "step %u", i);
}
END_TEST

static void begin(void)
{
    nodes_begin(2, 64u << 20);
    for (unsigned i = 0; i < 2; i++) {
        struct order o = {0};
        node_run(i, order_foresight, &o);
    }
}

int main(int argc, char **argv)
{
    if (node_is(argc, argv))
        return node_main(argc, argv);
    TCase *t = nodes_case("two nodes", begin);
    tcase_add_test(t, requests_out_of_bounds_are_refused);
    tcase_add_test(t, what_has_come_for_a_stage_is_counted_and_bounded);
    tcase_add_test(t, a_file_of_two_shares_counts_once_and_stays_for_the_pinned_one);
    tcase_add_test(t, there_are_only_so_many_shares);
    return run_case("bring", t);
}
