/* test_claim_watch.c - which nodes a claimant tells of changes: those that opened the file to append, and until when.  The
 * test is the home. */
#include "placement/claims/claim_int.h"
#include "placement/ring/ring.h"
#include "transport/members_int.h"

#include "pfs_env.h"

static int fake_want(struct file *f, const struct view *v, bool held, struct granted *out);

#define claim_want fake_want
#include "placement/claims/claim_watch.c"

static struct member members[2] = {{.id = 1, .incarnation = 10, .weight = 100},
                                   {.id = 7, .incarnation = 70, .weight = 100}};
static struct view view = {.number = 5, .nmembers = 2, .members = members};
static struct file *f;
static struct claim_watcher list[CLAIM_WATCHERS_MAX];
static unsigned any;

/* Names node 8; and node 7 opens the file meanwhile. */
static int fake_want(struct file *file, const struct view *v, bool held, struct granted *out)
{
    (void)held;
    claim_watch_appends(file, 7, 70);
    *out = (struct granted){
        .body = {.where = AT_GRANTED},
        .watchers = {.n = 1, .v = {{.node = 8, .incarnation = 80, .kinds = LOOKER_CACHED, .of_bytes = true}}},
        .view = v->number};
    return 0;
}

static void begin(void)
{
    env_make();
    env_open_store();
    env_open_pfs();
    members_st.cfg.self.id = 1;
    members_now.adopted = &view;
    ck_assert_int_eq(file_get((struct fid){1, 2}, "a", &f), 0);
    claim_of(f)->state = CLAIM_HELD;
}

static void end(void)
{
    file_put(f);
    pfs_close();
    store_close(false);
    env_remove();
}

START_TEST(a_node_that_appends_is_a_watcher_of_the_size_alone)
{
    claim_of(f)->writers = 1;
    claim_watch_appends(f, 7, 70);
    ck_assert(claim_watched(f));
    ck_assert_uint_eq(claim_watchers(f, list, &any), 1);
    ck_assert_uint_eq(list[0].kinds, LOOKER_APPENDS);
    ck_assert(!claim_is_watcher(f, 7));
    ck_assert(!claim_watch_begin(f, 7, 70)); /* the writer may be the kernel */
    claim_of(f)->writers = 0;
    ck_assert(claim_watch_begin(f, 7, 70));
    ck_assert(claim_is_watcher(f, 7));
    ck_assert_uint_eq(claim_watchers(f, list, &any), 1);
    ck_assert_uint_eq(list[0].kinds, LOOKER_APPENDS | LOOKER_CACHED | LOOKER_OPEN);
}
END_TEST

START_TEST(of_those_that_append_no_more_than_have_room_are_told)
{
    for (uint64_t n = 1; n <= CLAIM_WATCHERS_MAX + 1; n++)
        claim_watch_appends(f, 100 + n, 1);
    ck_assert_uint_eq(claim_watchers(f, list, &any), CLAIM_WATCHERS_MAX);
    ck_assert(!any);
}
END_TEST

START_TEST(a_node_that_opens_while_it_is_told_stays_a_watcher)
{
    claim_watch_appends(f, 7, 70);
    claim_watchers(f, list, &any);
    unsigned told = list[0].entered;
    claim_watch_appends(f, 7, 70);
    claim_watcher_left(f, 7, 0, told);
    ck_assert_uint_eq(claim_watchers(f, list, &any), 1);
    claim_watcher_left(f, 7, 0, list[0].entered);
    ck_assert(!claim_watched(f));
}
END_TEST

START_TEST(a_node_that_opens_while_the_home_is_asked_stays_a_watcher)
{
    claim_of(f)->watchers_unknown = true;
    ck_assert_int_eq(claim_know_watchers(f, boot_ms() + 1000), 0);
    ck_assert_uint_eq(claim_watchers(f, list, &any), 2);
    ck_assert_uint_eq(list[0].node, 8);
    ck_assert_uint_eq(list[1].node, 7);
    ck_assert_uint_eq(list[1].kinds, LOOKER_APPENDS);
}
END_TEST

static void any_member_may_have(unsigned kinds)
{
    watchers_set(claim_of(f), &(struct watchers){.any = kinds});
}

START_TEST(one_of_any_members_that_opens_may_still_have_what_they_may_have)
{
    any_member_may_have(LOOKER_PASSTHROUGH);
    claim_watch_appends(f, 7, 70);
    ck_assert_uint_eq(claim_watchers(f, list, &any), 1);
    ck_assert_uint_eq(list[0].kinds, LOOKER_PASSTHROUGH | LOOKER_APPENDS);
    ck_assert(claim_is_watcher(f, 7));
    any_member_may_have(LOOKER_APPENDS);
    ck_assert(claim_watch_begin(f, 7, 70));
    ck_assert_uint_eq(claim_watchers(f, list, &any), 1);
    ck_assert_uint_eq(list[0].kinds, LOOKER_APPENDS | LOOKER_CACHED | LOOKER_OPEN);
}
END_TEST

START_TEST(one_of_any_members_that_answers_has_what_it_says)
{
    any_member_may_have(LOOKER_PASSTHROUGH | LOOKER_CACHED);
    claim_watcher_left(f, 7, LOOKER_CACHED, 0);
    ck_assert_uint_eq(claim_watchers(f, list, &any), 1);
    ck_assert_uint_eq(list[0].kinds, LOOKER_CACHED);
    ck_assert(claim_is_watcher(f, 7));
    claim_watchers_asked(f);
    ck_assert_uint_eq(claim_watchers(f, list, &any), 1);
    ck_assert(!any);
}
END_TEST

/* Its pin is refused: this node leaves. */
START_TEST(a_node_that_is_not_counted_any_more_is_told_of_a_drop_alone)
{
    claim_of(f)->drop_told = true;
    claim_watch_open(f, 7, 70);
    ck_assert_uint_eq(claim_watchers(f, list, &any), 1);
    ck_assert_uint_eq(list[0].kinds, LOOKER_OPEN);
    ck_assert(!claim_watched(f));
    ck_assert(!claim_of(f)->drop_told); /* others were, before */
}
END_TEST

START_TEST(no_node_watches_what_is_not_claimed_here)
{
    claim_of(f)->state = CLAIM_NONE;
    claim_watch_appends(f, 7, 70);
    claim_watch_open(f, 7, 70);
    ck_assert(!claim_watched(f));
    ck_assert_uint_eq(claim_watchers(f, list, &any), 0);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("watchers");
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, a_node_that_appends_is_a_watcher_of_the_size_alone);
    tcase_add_test(t, of_those_that_append_no_more_than_have_room_are_told);
    tcase_add_test(t, a_node_that_opens_while_it_is_told_stays_a_watcher);
    tcase_add_test(t, a_node_that_opens_while_the_home_is_asked_stays_a_watcher);
    tcase_add_test(t, one_of_any_members_that_opens_may_still_have_what_they_may_have);
    tcase_add_test(t, one_of_any_members_that_answers_has_what_it_says);
    tcase_add_test(t, a_node_that_is_not_counted_any_more_is_told_of_a_drop_alone);
    tcase_add_test(t, no_node_watches_what_is_not_claimed_here);
    return run_case("claim watch", t);
}
