/* test_locks_full.c - an unlock that the home refuses because the file has too many locks: the lock stays as it
 * is, and what its owner asks for next is sent.  The test is the network, and the home. */
#include "placement/claims/home.h"
#include "transport/loop.h"
#include "transport/members_int.h"
#include "transport/peer.h"

#include <errno.h>
#include <stdlib.h>

static struct {
    uint32_t requests;
    struct body_lock lock; /* of the last one */
    peer_reply_fn fn;
    void *arg;
} net;

static uint64_t fake_request(uint64_t id, struct msg *m, uint32_t silence_ms, void *recv_buf,
                             size_t recv_len, peer_reply_fn fn, void *arg)
{
    (void)id, (void)silence_ms, (void)recv_buf, (void)recv_len;
    net.lock = m->lock;
    net.fn = fn;
    net.arg = arg;
    msg_free(m);
    return ++net.requests;
}

static void fake_later(void (*fn)(void *arg), void (*drop)(void *arg), void *arg)
{
    (void)fn, (void)drop, (void)arg;
}

static void fake_post(void (*fn)(void *arg), void *arg)
{
    fn(arg);
}

#define peer_request fake_request
#define home_later   fake_later
#define loop_post    fake_post
#include "placement/claims/locks.c"
#undef peer_request
#undef home_later
#undef loop_post

#include "suite.h"

static const struct fid fid = {1, 2};
static struct member self = {.id = 1, .incarnation = 1, .weight = 100};
static const struct view view = {.number = 5, .nmembers = 1, .members = &self};

static void begin(void)
{
    members_st.cfg.self = self;
    members_now.adopted = &view;
    locks_start();
}

static void end(void)
{
    locks_stop();
}

/* What an asker was told; 1: nothing yet. */
static int told[4];

static void note(void *arg, int err, const struct lock_ask *found)
{
    (void)found;
    *(int *)arg = err;
}

static int *ask(unsigned n, short type, uint64_t start, uint64_t last)
{
    struct lock_ask a = {.fid = fid, .type = type, .owner = 7, .start = start, .end = last};
    told[n] = 1;
    lock_request(&a, false, note, &told[n]);
    return &told[n];
}

static void answer_it(int err)
{
    struct msg *r = msg_new(MSG_LOCKED);
    bool keep = false;
    r->head.view = view.number;
    net.fn(net.arg, err, err ? NULL : r, &keep);
    msg_free(r);
}

/* Is [start, last] held with this type, as one lock? */
static bool holds(uint8_t type, uint64_t start, uint64_t last)
{
    struct item_lock *v = NULL;
    uint32_t n = 0;
    bool found = false;
    locks_fill(&n, &v);
    for (uint32_t i = 0; i < n; i++)
        found |= v[i].type == type && v[i].start == start && v[i].end == last;
    free(v);
    return found;
}

START_TEST(an_unlock_without_room_leaves_the_lock_and_lets_the_next_one_go)
{
    int *set = ask(0, F_WRLCK, 100, 200);
    answer_it(0);
    ck_assert_int_eq(*set, 0);
    int *middle = ask(1, F_UNLCK, 110, 120), *all = ask(2, F_UNLCK, 0, 1000);
    ck_assert_uint_eq(net.lock.start, 110); /* the other one is parked */
    answer_it(-ENOLCK);
    ck_assert_int_eq(*middle, -ENOLCK);
    ck_assert_uint_eq(net.requests, 3);
    ck_assert_uint_eq(net.lock.start, 0);
    answer_it(0);
    ck_assert_int_eq(*all, 0);
    ck_assert(!lock_owner_has_any(fid, 7));
}
END_TEST

START_TEST(what_the_home_keeps_is_on_the_list_of_the_next_view)
{
    ask(0, F_WRLCK, 100, 200);
    answer_it(0);
    ask(1, F_UNLCK, 110, 120);
    ck_assert(!holds(HELD_WRITE, 100, 200));
    answer_it(-ENOLCK);
    ck_assert(holds(HELD_WRITE, 100, 200));
    lock_drop_owner(fid, false, 7, NULL, NULL);
    ck_assert_uint_eq(net.lock.op, LOCK_DROP_OWNER);
    answer_it(0);
}
END_TEST

START_TEST(a_lock_that_is_weakened_without_room_is_weaker_here_alone)
{
    ask(0, F_WRLCK, 100, 200);
    answer_it(0);
    int *weak = ask(1, F_RDLCK, 110, 120);
    answer_it(0);
    ck_assert_uint_eq(net.lock.op, LOCK_WEAKEN);
    answer_it(-ENOLCK);
    ck_assert_int_eq(*weak, 0);
    ck_assert(holds(HELD_READ, 110, 120));
    ask(2, F_UNLCK, 0, 1000);
    ck_assert_uint_eq(net.lock.op, LOCK_UNLOCK);
    answer_it(0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("locks_full");
    TCase *t = add_case(s, "locks_full", begin, end, 60);
    tcase_add_test(t, an_unlock_without_room_leaves_the_lock_and_lets_the_next_one_go);
    tcase_add_test(t, what_the_home_keeps_is_on_the_list_of_the_next_view);
    tcase_add_test(t, a_lock_that_is_weakened_without_room_is_weaker_here_alone);
    return run_suite(s);
}
