/* test_tell.c - whom a claimant tells of a change, where it does not know its watchers by name.  The test is the
 * watchers. */
#include "placement/claims/claim_int.h"
#include "transport/members_int.h"
#include "transport/peer.h"

#include "pfs_env.h"

static uint64_t fake_request(uint64_t id, struct msg *m, uint32_t silence_ms, void *recv_buf, size_t recv_len,
                             peer_reply_fn fn, void *arg);

#define peer_request fake_request
#include "placement/tell.c"

static struct member members[3] = {{.id = 1, .incarnation = 10, .weight = 100},
                                   {.id = 7, .incarnation = 70, .weight = 100},
                                   {.id = 8, .incarnation = 80, .weight = 100}};
static struct view view = {.number = 5, .nmembers = 3, .members = members};
static struct file *f;
static unsigned asked; /* nodes, as bits */
static bool ended;
static struct {
    peer_reply_fn fn;
    void *arg;
} answers[9]; /* of nodes 7 and 8 */

static uint64_t fake_request(uint64_t id, struct msg *m, uint32_t silence_ms, void *recv_buf, size_t recv_len,
                             peer_reply_fn fn, void *arg)
{
    (void)silence_ms, (void)recv_buf, (void)recv_len;
    asked |= 1u << id;
    answers[id].fn = fn;
    answers[id].arg = arg;
    msg_free(m);
    return 1;
}

/* It has these descriptors left. */
static void answer(uint64_t node, unsigned left)
{
    struct msg reply = {.changed_ok.left = (uint8_t)left};
    bool keep = false;
    if (asked & 1u << node)
        answers[node].fn(answers[node].arg, 0, &reply, &keep);
}

static void begin(void)
{
    env_make();
    env_open_store();
    env_open_pfs();
    members_st.cfg.self.id = 1;
    members_now.adopted = &view;
    tell_start();
    ck_assert_int_eq(file_get((struct fid){1, 2}, "a", &f), 0);
    claim_of(f)->state = CLAIM_HELD;
}

static void end(void)
{
    watchers_set(claim_of(f), &(struct watchers){0});
    file_put(f);
    pfs_close();
    store_close(false);
    env_remove();
}

static void end_tell(void *arg)
{
    (void)arg;
    ended = true;
}

static void tell(const struct watchers *w, enum told_what what, uint64_t but)
{
    asked = 0;
    ended = false;
    watchers_set(claim_of(f), w);
    tell_all(f, &(struct told_change){.what = what}, but, end_tell, NULL);
    answer(8, 0);
    answer(7, LOOKER_CACHED);
    ck_assert(ended);
}

START_TEST(who_wrote_is_told_too_where_any_member_may_be_a_watcher)
{
    struct claim_watcher list[CLAIM_WATCHERS_MAX];
    unsigned any;
    tell(&(struct watchers){.any = LOOKER_CACHED}, TOLD_ATTR, 7);
    ck_assert_uint_eq(asked, 1u << 7 | 1u << 8);
    ck_assert_uint_eq(claim_watchers(f, list, &any), 1);
    ck_assert_uint_eq(list[0].node, 7);
    ck_assert(!any && claim_is_watcher(f, 7));
}
END_TEST

START_TEST(who_wrote_and_is_named_knows_it)
{
    struct watchers w = {.n = 2, .v = {{7, 70, LOOKER_CACHED, true, 1}, {8, 80, LOOKER_CACHED, true, 2}}};
    tell(&w, TOLD_ATTR, 7);
    ck_assert_uint_eq(asked, 1u << 8);
    w.v[0].kinds |= LOOKER_PASSTHROUGH;
    tell(&w, TOLD_ATTR, 7);
    ck_assert_uint_eq(asked, 1u << 7 | 1u << 8);
}
END_TEST

START_TEST(who_only_has_it_open_is_told_of_its_end_alone)
{
    struct watchers w = {.n = 1, .v = {{7, 70, LOOKER_OPEN, false, 1}}};
    tell(&w, TOLD_ATTR, 0);
    ck_assert_uint_eq(asked, 0);
    tell(&w, TOLD_DROP, 0);
    ck_assert_uint_eq(asked, 1u << 7);
    tell(&(struct watchers){.any = LOOKER_OPEN}, TOLD_ATTR, 0);
    ck_assert_uint_eq(asked, 0);
    tell(&(struct watchers){.any = LOOKER_OPEN}, TOLD_DROP, 0);
    ck_assert_uint_eq(asked, 1u << 7 | 1u << 8);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("tell");
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, who_wrote_is_told_too_where_any_member_may_be_a_watcher);
    tcase_add_test(t, who_wrote_and_is_named_knows_it);
    tcase_add_test(t, who_only_has_it_open_is_told_of_its_end_alone);
    return run_case("tell", t);
}
