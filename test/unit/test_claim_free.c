/* test_claim_free.c - FREE: what the home is told of a node that has no claim of a file any more, and how often.  The
 * test is the network, and the home. */
#include "placement/claims/claim_int.h"
#include "placement/claims/home.h"
#include "placement/ring/ring.h"
#include "transport/loop.h"
#include "transport/members_int.h"
#include "transport/peer.h"

#include <errno.h>
#include <stdlib.h>

#include "suite.h"

static struct {
    unsigned sent;
    struct body_free last; /* with a copy of its list */
    struct item_watcher list[CLAIM_WATCHERS_MAX + 1];
    peer_reply_fn fn;
    void *arg;
    void (*later)(void *arg);
    void *later_arg;
} net;

static uint64_t fake_request(uint64_t id, struct msg *m, uint32_t silence_ms, void *recv_buf,
                             size_t recv_len, peer_reply_fn fn, void *arg)
{
    (void)id, (void)silence_ms, (void)recv_buf, (void)recv_len;
    net.last = m->free;
    for (uint32_t i = 0; i < m->free.watchers.n; i++)
        net.list[i] = m->free.watchers.v[i];
    net.fn = fn;
    net.arg = arg;
    msg_free(m);
    return ++net.sent;
}

static void fake_post(void (*fn)(void *arg), void *arg)
{
    fn(arg);
}

static void fake_later(void (*fn)(void *arg), void (*drop)(void *arg), void *arg)
{
    (void)drop;
    net.later = fn;
    net.later_arg = arg;
}

#define peer_request fake_request
#define loop_post    fake_post
#define home_later   fake_later
#include "placement/claims/claim_free.c"

static struct member members[2] = {{.id = 1, .incarnation = 1, .weight = 100},
                                   {.id = 2, .incarnation = 1, .weight = 100}};
static struct view view = {.number = 5, .nmembers = 2, .members = members},
                   later_view = {.number = 6, .nmembers = 2, .members = members};
static struct fid file; /* 2 is its home */

static void begin(void)
{
    members_st.cfg.self.id = 1;
    members_now.adopted = &view;
    for (file.lo = 1; view_home(&view, file) != 2; file.lo++)
        ;
    look_start();
}

static void end(void)
{
    look_stop();
}

static void answer(int err)
{
    bool keep = false;
    net.fn(net.arg, err, NULL, &keep);
}

/* What its kernel has of it comes from the time when it had the claim. */
START_TEST(who_has_no_claim_any_more_looks_itself)
{
    struct watchers none = {0};
    look_opened(file);
    look_closed(file); /* LEAVE, with the last number so far */
    uint64_t number = look_number();
    claim_tell_free(file, 1, 3, NULL, NULL, &none);
    answer(0);
    ck_assert_uint_eq(net.last.look, LOOK_STAT);
    ck_assert_uint_gt(net.last.look_number, number);
    look_opened(file);
    claim_tell_free(file, 1, 4, NULL, NULL, &none);
    answer(0);
    ck_assert_uint_eq(net.last.look, LOOK_OPEN);
    claim_tell_free(file, 1, 5, NULL, NULL, NULL); /* it was not granted */
    answer(0);
    ck_assert_uint_eq(net.last.look, LOOK_OPEN);
    ck_assert_uint_eq(net.last.watchers.n, 0);
    ck_assert_uint_eq(net.sent, 3);
}
END_TEST

START_TEST(its_watchers_and_what_was_told_go_with_it)
{
    struct watchers had = {
        .any = LOOKER_OPEN, .n = 2, .v = {{7, 70, LOOKER_CACHED}, {8, 80, LOOKER_PASSTHROUGH}}};
    struct version v = {1, 2, 3};
    struct told told = {4, 5};
    claim_tell_free(file, 1, 3, &v, &told, &had);
    answer(0);
    ck_assert(net.last.known && version_eq(&net.last.version, &v));
    ck_assert(net.last.told.mtime_ns == 4 && net.last.told.ctime_ns == 5);
    ck_assert_uint_eq(net.last.watchers.n, 3);
    ck_assert_uint_eq(net.list[1].node, 8);
    ck_assert_uint_eq(net.list[1].incarnation, 80);
    ck_assert_uint_eq(net.list[1].left, LOOKER_PASSTHROUGH);
    ck_assert_uint_eq(net.list[2].node, 0); /* any */
    ck_assert_uint_eq(net.list[2].left, LOOKER_OPEN);
}
END_TEST

START_TEST(it_goes_until_it_is_answered_or_the_view_is_over)
{
    claim_tell_free(file, 1, 3, NULL, NULL, NULL);
    for (unsigned i = 1; i < 4; i++) {
        answer(-ETIMEDOUT);
        net.later(net.later_arg);
        ck_assert_uint_eq(net.sent, 1 + i);
    }
    answer(-ETIMEDOUT);
    members_now.adopted = &later_view;
    net.later(net.later_arg);
    ck_assert_uint_eq(net.sent, 4);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("FREE");
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, who_has_no_claim_any_more_looks_itself);
    tcase_add_test(t, its_watchers_and_what_was_told_go_with_it);
    tcase_add_test(t, it_goes_until_it_is_answered_or_the_view_is_over);
    return run_case("claim_free", t);
}
