/* test_look.c - this node's own looks: tickets and the answers under them, open files, LEAVE, and BREAK.  The test is
 * the network and the homes. */
#include "placement/claims/look.h"
#include "placement/ring/ring.h"
#include "transport/loop.h"
#include "transport/members_int.h"
#include "transport/peer.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "gate.h"
#include "suite.h"

/* ---- the network ---- */

#define OUT_MAX 512

static struct {
    pthread_mutex_t mutex; /* BROKEN comes from the pool's threads */
    peer_handler on_break;
    struct {
        uint64_t request;
        int err;
        unsigned left;
    } out[OUT_MAX];
    unsigned n, working;
    unsigned leaves, left_files; /* messages, and files in them */
    struct item_left left[OUT_MAX];
    void (*tick[2])(void *arg); /* of LEAVE, of BREAK */
    unsigned timers;
} net = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void fake_send(uint64_t id, struct msg *m)
{
    ck_assert_uint_eq(m->head.type, MSG_LEAVE);
    net.leaves++;
    for (uint32_t i = 0; i < m->leave.files.n; i++) {
        ck_assert_uint_eq(view_home(members_view(), m->leave.files.v[i].fid), id);
        if (net.left_files < OUT_MAX)
            net.left[net.left_files] = m->leave.files.v[i];
        net.left_files++;
    }
    msg_free(m);
}

static void say(uint64_t request, int err, unsigned left)
{
    pthread_mutex_lock(&net.mutex);
    net.out[net.n].request = request;
    net.out[net.n].err = err;
    net.out[net.n++].left = left;
    pthread_mutex_unlock(&net.mutex);
}

static void fake_reply(const struct msg *to, struct msg *r)
{
    say(to->head.request, 0, r->broken.left);
    msg_free(r);
}

static void fake_reply_error(const struct msg *to, int err)
{
    say(to->head.request, err, 0);
}

static void fake_working(const struct msg *to)
{
    (void)to;
    net.working++;
}

static void fake_handle(enum msg_type type, peer_handler fn)
{
    ck_assert_uint_eq(type, MSG_BREAK);
    net.on_break = fn;
}

static struct loop_timer *fake_timer_new(void (*fn)(void *arg), void *arg)
{
    (void)arg;
    net.tick[net.timers] = fn;
    return (struct loop_timer *)&net.tick[net.timers++];
}

static void fake_timer_set(struct loop_timer *t, uint64_t first_ms, uint64_t repeat_ms)
{
    (void)t, (void)first_ms, (void)repeat_ms;
}

static void fake_timer_free(struct loop_timer *t)
{
    (void)t;
}

static void fake_call(void (*fn)(void *arg), void *arg)
{
    fn(arg);
}

#define peer_send        fake_send
#define peer_reply       fake_reply
#define peer_reply_error fake_reply_error
#define peer_working     fake_working
#define peer_handle      fake_handle
#define loop_timer_new   fake_timer_new
#define loop_timer_set   fake_timer_set
#define loop_timer_free  fake_timer_free
#define loop_call        fake_call
#define loop_post        fake_call
#define tick             leave_tick
#include "placement/claims/look_leave.c"
#undef tick
#include "placement/claims/look_break.c"

/* ---- the nodes: this one is 1; and files by their homes ---- */

static struct member members[2] = {{.id = 1, .incarnation = 1, .weight = 100},
                                   {.id = 2, .incarnation = 1, .weight = 100}};
static struct view alone = {.number = 4, .nmembers = 1, .members = members},
                   view = {.number = 5, .nmembers = 2, .members = members};
static struct fid file, other; /* 2 is their home */

/* The next file from *i on with this home. */
static struct fid file_of(uint64_t home, uint64_t *i)
{
    for (;;) {
        struct fid fid = {*i * 0x9e3779b97f4a7c15u, *i};
        ++*i;
        if (view_home(&view, fid) == home)
            return fid;
    }
}

static void begin_test(void)
{
    uint64_t i = 1;
    members_st.cfg.self.id = 1;
    members_now.adopted = &view;
    members_now.lease_until_ms = UINT64_MAX;
    file = file_of(2, &i);
    other = file_of(2, &i);
    gate_init();
    look_start();
    look_told_start();
}

static void end_test(void)
{
    look_told_stop();
    look_stop();
}

/* ---- tickets ---- */

START_TEST(a_ticket_holds_until_a_break_of_its_file)
{
    struct look_ticket t = look_now(file), o = look_now(other);
    ck_assert(look_holds(file, t));
    look_break(file);
    ck_assert(!look_holds(file, t));
    ck_assert(!look_answer_begin(file, t));
    ck_assert(look_holds(other, o)); /* these two have two slots */
    ck_assert(look_holds(file, look_now(file)));
}
END_TEST

START_TEST(a_new_view_voids_all_tickets)
{
    struct look_ticket t = look_now(file), o = look_now(other);
    look_adopted();
    ck_assert(!look_holds(file, t) && !look_holds(other, o));
    ck_assert(look_holds(file, look_now(file)));
}
END_TEST

START_TEST(a_ticket_holds_no_longer_than_its_time)
{
    struct look_ticket t = look_now(file);
    ck_assert_uint_le(look_left_ms(t), LOOK_STAT_MS);
    ck_assert_uint_gt(look_left_ms(t), 0);
    t.ms -= LOOK_STAT_MS;
    ck_assert_uint_eq(look_left_ms(t), 0);
    ck_assert(!look_holds(file, t));
    ck_assert(!look_answer_begin(file, t));
}
END_TEST

START_TEST(nothing_is_kept_beyond_the_lease)
{
    struct look_ticket t = look_now(file);
    members_now.lease_until_ms = t.ms + 300;
    ck_assert_uint_le(look_left_ms(t), 300);
    members_now.lease_until_ms = t.ms;
    ck_assert(!look_holds(file, t));
    members_now.adopted = &alone; /* nobody else changes files */
    ck_assert(look_holds(file, t));
    members_now.adopted = NULL;
    ck_assert(!look_holds(file, t));
}
END_TEST

static _Atomic bool broke;

static void *break_it(void *arg)
{
    (void)arg;
    look_break(file);
    broke = true;
    return NULL;
}

/* The ticket of a break that has begun does not hold, so that its beginning shows. */
static pthread_t begin_break(struct look_ticket t)
{
    pthread_t thread;
    broke = false;
    ck_assert_int_eq(pthread_create(&thread, NULL, break_it, NULL), 0);
    while (look_holds(file, t))
        sched_yield();
    return thread;
}

START_TEST(a_break_waits_for_answers_that_were_begun_before_it_and_for_no_others)
{
    struct look_ticket t = look_now(file);
    ck_assert(look_answer_begin(file, t));
    ck_assert(look_answer_begin(file, t));
    pthread_t thread = begin_break(t);
    struct look_ticket later = look_now(file);
    ck_assert(look_answer_begin(file, later));
    look_answer_end(file, t);
    ck_assert(!broke);
    look_answer_end(file, t);
    pthread_join(thread, NULL); /* though `later` is still being given */
    ck_assert(broke);
    look_answer_end(file, later);
}
END_TEST

START_TEST(breaks_of_one_file_wait_each_for_theirs)
{
    struct look_ticket t = look_now(file);
    ck_assert(look_answer_begin(file, t));
    pthread_t first = begin_break(t), second;
    ck_assert_int_eq(pthread_create(&second, NULL, break_it, NULL), 0);
    ck_assert(!broke);
    look_answer_end(file, t);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    ck_assert_uint_eq(look_now(file).breaks, t.breaks + 2);
}
END_TEST

static void *answer_often(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 20000; i++) {
        struct look_ticket t = look_now(file);
        if (look_answer_begin(file, t))
            look_answer_end(file, t);
    }
    return NULL;
}

START_TEST(answers_and_breaks_of_many_threads_end)
{
    pthread_t threads[6];
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, answer_often, NULL), 0);
    for (unsigned i = 4; i < 6; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, break_it, NULL), 0);
    for (unsigned i = 0; i < 1000; i++)
        look_break(file);
    for (unsigned i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    ck_assert(look_holds(file, look_now(file)));
}
END_TEST

/* ---- open files, LEAVE ---- */

START_TEST(the_last_close_says_leave_in_one_message_for_each_home)
{
    uint64_t i = 1, number;
    look_opened(file);
    look_opened(file);
    look_closed(file);
    ck_assert(look_is_open(file));
    leave_tick(NULL);
    ck_assert_uint_eq(net.leaves, 0);
    number = look_number();
    look_closed(file);
    ck_assert(!look_is_open(file));
    for (unsigned n = 0; n < 20; n++) {
        struct fid fid = file_of(1 + n % 2, &i);
        look_opened(fid);
        look_closed(fid);
    }
    leave_tick(NULL);
    ck_assert_uint_eq(net.leaves, 2);
    ck_assert_uint_eq(net.left_files, 21);
    ck_assert(fid_eq(net.left[0].fid, file));
    ck_assert_uint_eq(net.left[0].number, number); /* it covers this WHERE, and none that follows */
    ck_assert_uint_gt(look_number(), net.left[0].number);
    leave_tick(NULL);
    ck_assert_uint_eq(net.leaves, 2);
}
END_TEST

START_TEST(alone_nobody_is_told)
{
    members_now.adopted = &alone;
    look_opened(file);
    look_closed(file);
    leave_tick(NULL);
    ck_assert_uint_eq(net.leaves, 0);
}
END_TEST

START_TEST(many_open_files_are_listed_once)
{
    enum { FILES = 20000 };
    bool *seen = xcalloc(FILES, sizeof(*seen));
    struct item_fid_item *v;
    uint32_t n;
    for (uint64_t i = 0; i < FILES; i++) {
        look_opened((struct fid){i * 0x9e3779b97f4a7c15u, i});
        look_opened((struct fid){i * 0x9e3779b97f4a7c15u, i});
    }
    ck_assert_uint_eq(look_open_files(), FILES);
    look_list(false, &n, &v);
    ck_assert_uint_eq(n, FILES);
    for (uint32_t i = 0; i < n; i++) {
        ck_assert(!seen[v[i].fid.lo]);
        seen[v[i].fid.lo] = true;
    }
    free(v);
    free(seen);
}
END_TEST

/* ---- BREAK ---- */

static void come(struct fid fid, uint64_t request, uint64_t grant, uint64_t sender, uint64_t number)
{
    struct msg *m = msg_new(MSG_BREAK);
    m->head.flags = MSG_F_WANTS;
    m->head.sender = sender;
    m->head.incarnation = 1;
    m->head.view = number;
    m->head.request = request;
    m->brk.fid = fid;
    m->brk.grant = grant;
    net.on_break(m);
}

static void wait_for_answers(unsigned n)
{
    for (bool all = false; !all; sched_yield()) {
        pthread_mutex_lock(&net.mutex);
        all = net.n >= n;
        pthread_mutex_unlock(&net.mutex);
    }
}

static _Atomic unsigned calls, inside;

static unsigned end_two(struct fid fid)
{
    calls++;
    if (fid_eq(fid, file)) {
        ck_assert_uint_eq(inside++, 0); /* not twice at once for one file */
        gate_wait(1);
        inside--;
    }
    return fid_eq(fid, file) ? LOOKER_CACHED : 0;
}

START_TEST(a_break_ends_beliefs_and_says_what_is_left)
{
    struct look_ticket t = look_now(file);
    gate_add(1);
    look_on_break(end_two);
    come(file, 1, 7, 2, 5);
    come(other, 2, 8, 2, 5);
    wait_for_answers(2);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(net.out[i].err, 0);
        ck_assert_uint_eq(net.out[i].left, net.out[i].request == 1 ? LOOKER_CACHED : 0);
    }
    ck_assert_uint_eq(calls, 2);
    ck_assert(!look_holds(file, t));
    look_on_break(NULL);
    t = look_now(file);
    come(file, 3, 9, 2, 5); /* nothing is left then, and the ticket is void all the same */
    wait_for_answers(3);
    ck_assert_uint_eq(net.out[2].left, 0);
    ck_assert(!look_holds(file, t));
}
END_TEST

START_TEST(only_the_home_of_this_view_breaks)
{
    uint64_t i = 1;
    struct look_ticket t = look_now(file);
    look_on_break(end_two);
    come(file, 1, 7, 1, 5); /* not its home */
    come(file_of(1, &i), 2, 7, 2, 5);
    come(file, 3, 7, 2, 4); /* of another view */
    come(file, 4, 7, 2, 6);
    come(file, 5, 7, 3, 5); /* no member */
    ck_assert_uint_eq(net.n, 5);
    for (unsigned n = 0; n < 5; n++)
        ck_assert_int_eq(net.out[n].err, -E_ASK_AGAIN);
    members_now.adopted = NULL;
    come(file, 6, 7, 2, 5);
    ck_assert_int_eq(net.out[5].err, -E_ASK_AGAIN);
    members_now.adopted = &view;
    ck_assert(look_holds(file, t));
    ck_assert_uint_eq(calls, 0);
}
END_TEST

static void wait_for_calls(unsigned n)
{
    while (calls < n)
        sched_yield();
}

START_TEST(a_break_that_comes_again_is_the_same_one)
{
    look_on_break(end_two);
    come(file, 1, 7, 2, 5);
    wait_for_calls(1);
    come(file, 2, 7, 2, 5);
    come(file, 3, 7, 2, 5);
    tick(NULL);
    ck_assert_uint_eq(net.working, 1); /* the home hears that this node is at work */
    gate_add(1);
    wait_for_answers(3);
    ck_assert_uint_eq(net.out[0].request, 1); /* nobody waits for it any more */
    ck_assert_int_eq(net.out[0].err, -E_ASK_AGAIN);
    ck_assert_uint_eq(net.out[2].request, 3);
    ck_assert_int_eq(net.out[2].err, 0);
    ck_assert_uint_eq(calls, 1);
    tick(NULL);
    ck_assert_uint_eq(net.working, 1);
}
END_TEST

START_TEST(a_break_of_a_later_grant_is_done_after_the_one_before)
{
    look_on_break(end_two);
    come(file, 1, 7, 2, 5);
    wait_for_calls(1);
    come(file, 2, 9, 2, 5);
    gate_add(1);
    wait_for_answers(2);
    ck_assert_uint_eq(net.out[0].request, 1);
    ck_assert_uint_eq(net.out[1].request, 2);
    ck_assert_int_eq(net.out[1].err, 0);
    ck_assert_uint_eq(calls, 2);
}
END_TEST

static _Atomic unsigned ended[1000], all_ended;

static unsigned end_numbered(struct fid fid)
{
    ended[fid.lo]++;
    all_ended++;
    return 0;
}

START_TEST(all_open_files_end_at_once)
{
    struct look_ticket t = look_now((struct fid){0, 5});
    look_on_break(end_numbered);
    look_end_all(true); /* there are none */
    for (uint64_t i = 0; i < 1000; i++)
        look_opened((struct fid){0, i});
    for (uint64_t i = 0; i < 1000; i += 2)
        look_closed((struct fid){0, i});
    look_end_all(true);
    for (uint64_t i = 0; i < 1000; i++)
        ck_assert_uint_eq(ended[i], i % 2);
    ck_assert(!look_holds((struct fid){0, 5}, t));
    look_end_all(false);
    look_end_all(false);
    while (all_ended < 1500)
        sched_yield();
    for (uint64_t i = 0; i < 1000; i++)
        ck_assert_uint_eq(ended[i], i % 2 * 3);
    ck_assert_uint_eq(net.n, 0); /* nobody asked for it */
}
END_TEST

START_TEST(a_break_that_comes_while_all_end_is_done_after_it)
{
    look_on_break(end_two);
    look_opened(file);
    look_end_all(false);
    wait_for_calls(1);
    come(file, 1, 7, 2, 5);
    come(file, 2, 7, 2, 5);
    ck_assert_uint_eq(net.n, 1); /* the first of the two */
    gate_add(1);
    wait_for_answers(2);
    ck_assert_uint_eq(net.out[1].request, 2);
    ck_assert_int_eq(net.out[1].err, 0);
    ck_assert_uint_eq(calls, 2);
}
END_TEST

static unsigned end_slowly(struct fid fid)
{
    (void)fid;
    usleep(1000); /* a file is opened on the PFS */
    all_ended++;
    return 0;
}

/* Two views that follow each other, each without one more node, and BREAKs of files that are not ended yet. */
START_TEST(breaks_are_answered_while_all_end_twice)
{
    enum { FILES = 900, BREAKS = 300 };
    struct fid files[FILES];
    uint64_t i = 1;
    look_on_break(end_slowly);
    for (unsigned n = 0; n < FILES; n++)
        look_opened(files[n] = file_of(2, &i));
    look_end_all(false);
    look_end_all(false);
    for (unsigned n = 0; n < BREAKS; n++)
        come(files[n * (FILES / BREAKS)], n + 1, n + 1, 2, 5);
    wait_for_answers(BREAKS);
    while (all_ended < 2 * FILES)
        sched_yield();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("look");
    TCase *t = add_case(s, "tickets", begin_test, end_test, 20);
    tcase_add_test(t, a_ticket_holds_until_a_break_of_its_file);
    tcase_add_test(t, a_new_view_voids_all_tickets);
    tcase_add_test(t, a_ticket_holds_no_longer_than_its_time);
    tcase_add_test(t, nothing_is_kept_beyond_the_lease);
    tcase_add_test(t, a_break_waits_for_answers_that_were_begun_before_it_and_for_no_others);
    tcase_add_test(t, breaks_of_one_file_wait_each_for_theirs);
    tcase_add_test(t, answers_and_breaks_of_many_threads_end);
    t = add_case(s, "open files", begin_test, end_test, 20);
    tcase_add_test(t, the_last_close_says_leave_in_one_message_for_each_home);
    tcase_add_test(t, alone_nobody_is_told);
    tcase_add_test(t, many_open_files_are_listed_once);
    t = add_case(s, "BREAK", begin_test, end_test, 20);
    tcase_add_test(t, a_break_ends_beliefs_and_says_what_is_left);
    tcase_add_test(t, only_the_home_of_this_view_breaks);
    tcase_add_test(t, a_break_that_comes_again_is_the_same_one);
    tcase_add_test(t, a_break_of_a_later_grant_is_done_after_the_one_before);
    tcase_add_test(t, all_open_files_end_at_once);
    tcase_add_test(t, a_break_that_comes_while_all_end_is_done_after_it);
    tcase_add_test(t, breaks_are_answered_while_all_end_twice);
    return run_suite(s);
}
