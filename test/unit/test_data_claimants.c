/* test_data_claimants.c - a claimant that gave the claim back, leaves, is slow, or dies, while others read
 * and write its file.
 */
#include "nodes_data.h"

#include "placement/claims/claim.h"
#include "placement/claims/claim_life.h"
#include "placement/claims/look.h"
#include "placement/claims/pins.h"
#include "placement/tell.h"

/* As if the claimant had forgotten its pins: it restarted, or thought that the other node had left.
 */
static void order_drop_pins(struct order *o)
{
    (void)o;
    pins_refuse();
    pins_start(pool_waiters);
}

START_TEST(a_writer_goes_on_when_the_claimant_gave_the_claim_back)
{
    size_t len;
    open_on(0, "moves", 0, O_RDWR | O_CREAT);
    open_on(1, "moves", 0, O_RDWR);
    write_on(1, 0, 0, 5000, 6);
    close_on(0, 0);
    struct order o = {0};
    node_run(0, order_drop_pins, &o);
    flush_on(0, "moves");
    ck_assert_uint_eq(claims_on(0), 0);
    write_on(1, 0, 5000, 5000, 6);
    ck_assert_int_eq(where_on(1, 0, NULL), WHERE_HERE);
    assert_read(1, 0, 0, 20000, 10000, 6);
    close_on(1, 0);
    flush_on(1, "moves");
    ck_assert_uint_eq(claims_on(1), 0);
    ck_assert(pfs_hash("moves", &len) == hash_pattern(10000, 6, 0));
}
END_TEST

static void start_carrying(void *arg)
{
    (void)arg;
    carry_start();
}

static void order_leave(struct order *o)
{
    (void)o;
    carry_leave();
}

static void order_stay(struct order *o)
{
    (void)o;
    carry_stop();
    loop_call(start_carrying, NULL);
}

START_TEST(a_writer_takes_over_from_a_claimant_that_leaves)
{
    size_t len;
    struct order o = {0}, w = {.off = 5000, .len = 5000, .b = 15};
    open_on(2, "leaves", 0, O_RDWR | O_CREAT);
    open_on(1, "leaves", 0, O_RDWR);
    write_on(1, 0, 0, 5000, 15);
    close_on(2, 0);
    node_run(2, order_leave, &o);
    node_send(1, order_write, &w); /* waits for the claim */
    usleep(200000);                /* it does by now; if not, the test is only easier */
    flush_on(2, "leaves");
    node_wait(1, &w);
    ck_assert_msg(!w.err, "%s", strerror(-w.err));
    ck_assert_uint_eq(claims_on(2), 0);
    close_on(1, 0);
    flush_on(1, "leaves");
    ck_assert(pfs_hash("leaves", &len) == hash_pattern(10000, 15, 0));
    node_run(2, order_stay, &o);
}
END_TEST

static void order_fsync(struct order *o)
{
    o->err = data_sync(node_handles[o->a].h, false);
}

static pthread_mutex_t heard_lock = PTHREAD_MUTEX_INITIALIZER; /* these two */
static struct told_change heard;
static unsigned changes_heard_of;

static unsigned hear(struct fid fid, const struct told_change *c)
{
    (void)fid;
    pthread_mutex_lock(&heard_lock);
    heard = *c;
    changes_heard_of++;
    pthread_mutex_unlock(&heard_lock);
    return c->size == 3000 ? 0 : LOOKER_APPENDS; /* all is closed then */
}

static void order_hear(struct order *o)
{
    told_on_change(o->a ? hear : NULL);
}

/* out: how many, the last one's size, and its last byte. */
static void order_heard(struct order *o)
{
    pthread_mutex_lock(&heard_lock);
    o->out[0] = changes_heard_of;
    o->out[1] = heard.size;
    o->out[2] = heard.ends ? (uint8_t)heard.last : 256;
    pthread_mutex_unlock(&heard_lock);
}

static void assert_heard(uint64_t n, uint64_t size)
{
    struct order o = {0}, last = size ? read_on(2, 0, size - 1, 1) : (struct order){.out = {[4] = 256}};
    node_run(1, order_heard, &o);
    ck_assert_uint_eq(o.out[0], n);
    ck_assert_uint_eq(o.out[1], size);
    ck_assert_uint_eq(o.out[2], last.out[4]);
}

/* Its kernel counts the place of the next append by the size. */
START_TEST(who_appends_is_told_each_size_before_the_change_returns)
{
    struct order o = {.a = 1};
    open_on(2, "sizes", 0, O_RDWR | O_CREAT);
    open_on(1, "sizes", 0, O_WRONLY | O_APPEND);
    node_run(1, order_hear, &o);
    write_on(2, 0, 0, 5000, 16);
    assert_heard(1, 5000);
    write_on(2, 0, 0, 10, 16); /* not at the end */
    assert_heard(2, 5000);
    truncate_on(2, 0, 0);
    assert_heard(3, 0);
    ck_assert_uint_eq(append_on(1, 0, 10, 16, 0), 0); /* its own it knows */
    write_on(2, 0, 10, 2990, 16);
    assert_heard(4, 3000);
    write_on(2, 0, 3000, 1, 16); /* it has nothing open any more, as it has said */
    assert_heard(4, 3000);
    close_on(1, 0);
    open_on(1, "sizes", 0, O_WRONLY | O_APPEND);
    write_on(2, 0, 3001, 1, 16);
    assert_heard(5, 3002);
    o.a = 0;
    node_run(1, order_hear, &o);
    close_on(1, 0);
    close_on(2, 0);
    flush_everywhere("sizes");
}
END_TEST

static void order_is_covered(struct order *o)
{
    struct data_handle *h = node_handles[o->a].h;
    lock_take(&h->f->lock);
    o->out[0] = h->f->rec->covered.check != 0;
    lock_drop(&h->f->lock);
}

static _Atomic bool change_begun, change_done;

static unsigned change_slowly(struct fid fid, const struct told_change *c)
{
    (void)fid;
    (void)c;
    change_begun = true;
    usleep(500000);
    change_done = true;
    return 0;
}

static void order_change_slowly(struct order *o)
{
    change_begun = change_done = false;
    told_on_change(o->a ? change_slowly : NULL);
}

static void order_has_begun(struct order *o)
{
    o->out[0] = change_begun;
}

static void order_leave_at_end(struct order *o)
{
    carry_leave();
    o->out[0] = change_done;
}

/* The last flush is to have it. */
START_TEST(who_leaves_waits_for_changes_that_have_begun)
{
    struct order o = {.a = 1}, w = {.len = 5000, .b = 16};
    open_on(2, "begun", 0, O_RDWR | O_CREAT);
    open_on(1, "begun", 0, O_RDWR);
    close_on(2, 0);
    node_run(2, order_change_slowly, &o);
    node_send(1, order_write, &w);
    node_until(2, order_has_begun, &o, "the carried write begins");
    node_run(2, order_leave_at_end, &o);
    ck_assert_msg(o.out[0], "it leaves while a write is under way");
    node_wait(1, &w);
    ck_assert_msg(!w.err, "%s", strerror(-w.err));
    o.a = 0;
    node_run(2, order_change_slowly, &o);
    flush_everywhere("begun");
    close_on(1, 0);
    node_run(2, order_stay, &o);
}
END_TEST

/* "Not mine" would mean that it is on the PFS. */
START_TEST(an_fsync_reaches_a_claimant_that_leaves)
{
    struct order o = {0};
    open_on(2, "synced", 0, O_RDWR | O_CREAT);
    open_on(1, "synced", 0, O_RDWR);
    write_on(1, 0, 0, 5000, 15);
    node_run(2, order_leave, &o);
    node_run(2, order_is_covered, &o);
    ck_assert_uint_eq(o.out[0], 0);
    node_run(1, order_fsync, &o);
    ck_assert_msg(!o.err, "%s", strerror(-o.err));
    node_run(2, order_is_covered, &o);
    ck_assert_msg(o.out[0], "nothing was made durable where the bytes are");
    close_on(1, 0);
    close_on(2, 0);
    flush_on(2, "synced");
    node_run(2, order_stay, &o);
}
END_TEST

/* Registered at each node's start. */
static int slow_sync(struct file *f)
{
    (void)f;
    sleep(5); /* longer than an asker waits in silence */
    return 0;
}

static void order_sync_pfs(struct order *o)
{
    struct data_handle *h = node_handles[o->a].h;
    struct change c = {.op = CARRY_SYNC, .mode = 1};
    o->err = carry_write(h->where.node, h->f, &c, NULL);
}

START_TEST(a_claimant_that_works_long_is_waited_for)
{
    struct order o = {0};
    open_on(0, "slow", 0, O_RDWR | O_CREAT);
    write_on(0, 0, 0, 100, 8);
    open_on(1, "slow", 0, O_RDWR);
    node_run(1, order_sync_pfs, &o);
    ck_assert_msg(!o.err, "%s", strerror(-o.err));
    close_on(0, 0);
    close_on(1, 0);
    flush_on(0, "slow");
}
END_TEST

static void order_no_claims(struct order *o)
{
    o->out[0] = !claim_held();
}

static void order_one_claim(struct order *o)
{
    o->out[0] = claim_held() == 1;
}

START_TEST(the_pins_of_a_dead_node_go)
{
    struct order o = {0};
    open_on(0, "pinned", 0, O_RDWR | O_CREAT);
    write_on(0, 0, 0, 100, 9);
    open_on(2, "pinned", 0, O_RDWR);
    close_on(0, 0);
    flush_on(0, "pinned");
    node_run(0, order_one_claim, &o);
    ck_assert_uint_eq(o.out[0], 1);
    node_kill(2);
    node_until(0, order_no_claims, &o, "the dead node's pin is dropped");
}
END_TEST

START_TEST(a_dead_claimant_means_an_error_and_no_wrong_byte)
{
    open_on(0, "lost", 0, O_RDWR | O_CREAT);
    write_on(0, 0, 0, 100000, 10);
    open_on(1, "lost", 0, O_RDONLY);
    open_on(1, "lost", 1, O_RDWR);
    assert_read(1, 0, 0, 1000, 1000, 10);
    node_kill(0);
    struct order o = read_on(1, 0, 50000, 1000);
    ck_assert_int_eq(o.err, -EIO);
    ck_assert_uint_le(o.out[2], 15000);
    ck_assert_int_eq(try_write(1, 1, 0, 100, 1), -EIO);
    ck_assert_int_eq(try_open(1, "lost", 2, O_RDONLY), -EIO);
    close_on(1, 0);
    close_on(1, 1);
}
END_TEST

static void begin(void)
{
    nodes_begin(3, 1u << 30);
}

int main(int argc, char **argv)
{
    if (node_is(argc, argv)) {
        local_on_need(&(struct local_needs){.make_room = flush_for_room, .sync_pfs = slow_sync});
        return node_main(argc, argv);
    }
    TCase *t = nodes_case("claimants", begin);
    tcase_add_test(t, a_writer_goes_on_when_the_claimant_gave_the_claim_back);
    tcase_add_test(t, a_writer_takes_over_from_a_claimant_that_leaves);
    tcase_add_test(t, who_appends_is_told_each_size_before_the_change_returns);
    tcase_add_test(t, who_leaves_waits_for_changes_that_have_begun);
    tcase_add_test(t, an_fsync_reaches_a_claimant_that_leaves);
    tcase_add_test(t, a_claimant_that_works_long_is_waited_for);
    tcase_add_test(t, the_pins_of_a_dead_node_go); /* the last two end nodes */
    tcase_add_test(t, a_dead_claimant_means_an_error_and_no_wrong_byte);
    return run_case("data, claimants", t);
}
