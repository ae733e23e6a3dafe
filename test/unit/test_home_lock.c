/* test_home_lock.c - how many locks a file may have: its record with all of them goes in one message. */
#include "placement/claims/home_answer.h"
#include "placement/claims/home_int.h"
#include "transport/peer.h"

#include <errno.h>
#include <stdlib.h>

/* What became of the last request: 0 granted or done, or -errno. */
static int answer = 1;

static void fake_refuse(struct msg *m, int err)
{
    answer = err;
    msg_free(m);
}

static void fake_ask_again(struct msg *m)
{
    fake_refuse(m, -E_ASK_AGAIN);
}

static void fake_queue(struct pending **list, struct msg *m, uint64_t count)
{
    (void)list;
    (void)count;
    fake_refuse(m, 0);
}

static void fake_reply_locked(struct msg *m, const struct held_lock *found)
{
    (void)found;
    fake_refuse(m, 0);
}

static bool fake_may(uint64_t view, struct fid fid)
{
    (void)view;
    (void)fid;
    return true;
}

static void fake_changed(struct record *r)
{
    (void)r;
}

static void fake_arm(uint64_t ms)
{
    (void)ms;
}

#define home_refuse       fake_refuse
#define home_ask_again    fake_ask_again
#define home_queue        fake_queue
#define home_reply_locked fake_reply_locked
#define home_may_grant    fake_may
#define home_may_tell     fake_may
#define home_changed      fake_changed
#define home_arm          fake_arm
#include "placement/claims/home_lock.c"
#include "placement/claims/record.c"
#include "transport/view.h"
#undef home_refuse
#undef home_ask_again
#undef home_queue
#undef home_reply_locked
#undef home_may_grant
#undef home_may_tell
#undef home_changed
#undef home_arm

#include "suite.h"

static const struct fid fid = {1, 2};
static struct member self = {.id = 1, .incarnation = 1};
static struct view view = {.number = 1, .nmembers = 1, .members = &self};
static uint64_t numbers[1], number;

static void begin(void)
{
    home = (struct home_state){.view = &view, .complete = true, .lock_numbers = numbers};
}

static int ask(enum lock_op op, uint64_t owner, uint64_t start, uint64_t end)
{
    struct msg *m = msg_new(MSG_LOCK);
    m->head.sender = m->head.incarnation = m->head.view = 1;
    m->lock = (struct body_lock){.fid = fid,
                                 .number = ++number,
                                 .op = op,
                                 .type = HELD_WRITE,
                                 .owner = owner,
                                 .start = start,
                                 .end = end};
    answer = 1;
    handle_lock(m);
    return answer;
}

static unsigned locks(void)
{
    unsigned n = 0;
    for (const struct held_lock *l = record_find(fid)->locks; l; l = l->next)
        n++;
    return n;
}

/* As granted: what goes through all of them each time would take minutes. */
static void hold_many(unsigned n)
{
    struct held_lock l = {.node = 1, .incarnation = 1, .type = HELD_WRITE};
    for (l.owner = 1; l.owner <= n; l.owner++) {
        l.start = l.owner * 100;
        l.end = l.start + 50;
        lock_add(&record_make(fid)->locks, &l);
    }
}

START_TEST(one_lock_more_than_a_message_holds_is_refused)
{
    hold_many(LOCKS_MAX - 1);
    ck_assert_int_eq(ask(LOCK_SET, 7000000, 0, 10), 0);
    ck_assert_uint_eq(locks(), LOCKS_MAX);
    ck_assert_int_eq(ask(LOCK_SET, 7000001, 20, 30), -ENOLCK);
    ck_assert_int_eq(ask(LOCK_SET_WAIT, 7000001, 20, 30), -ENOLCK);
    ck_assert_int_eq(ask(LOCK_TEST, 7000001, 20, 30), 0);
    ck_assert_int_eq(ask(LOCK_UNLOCK, 7000000, 0, 10), 0);
    ck_assert_int_eq(ask(LOCK_SET, 7000001, 20, 30), 0);
    ck_assert_uint_eq(locks(), LOCKS_MAX);
}
END_TEST

START_TEST(an_unlock_that_makes_two_of_one_needs_room)
{
    hold_many(LOCKS_MAX);
    ck_assert_int_eq(ask(LOCK_UNLOCK, 1, 110, 120), -ENOLCK);
    ck_assert_int_eq(ask(LOCK_WEAKEN, 1, 110, 120), -ENOLCK);
    ck_assert_uint_eq(locks(), LOCKS_MAX);
    ck_assert_int_eq(ask(LOCK_UNLOCK, 1, 100, 110), 0); /* of one end: it stays one */
    ck_assert_uint_eq(locks(), LOCKS_MAX);
    ck_assert_int_eq(ask(LOCK_DROP_OWNER, 2, 0, 0), 0);
    ck_assert_uint_eq(locks(), LOCKS_MAX - 1);
    ck_assert_int_eq(ask(LOCK_UNLOCK, 1, 120, 130), 0);
    ck_assert_uint_eq(locks(), LOCKS_MAX);
}
END_TEST

/* The record of such a file can go to next. */
START_TEST(a_full_record_fits_into_a_message)
{
    struct msg *m = msg_new(MSG_COPY);
    struct item_lock *items = NULL;
    void *wire;
    size_t len;
    hold_many(LOCKS_MAX);
    lock_items_add(fid, record_find(fid)->locks, 0, &m->copy.locks.n, &items);
    m->copy.locks.v = items;
    ck_assert_int_eq(msg_encode(m, &wire, &len), 0);
    ck_assert_uint_le(len, MSG_BODY_MAX / 2 + (1 << 20));
    free(wire);
    free(items);
    msg_free(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("home_lock");
    TCase *t = add_case(s, "home_lock", begin, NULL, 60);
    tcase_add_test(t, one_lock_more_than_a_message_holds_is_refused);
    tcase_add_test(t, an_unlock_that_makes_two_of_one_needs_room);
    tcase_add_test(t, a_full_record_fits_into_a_message);
    return run_suite(s);
}
