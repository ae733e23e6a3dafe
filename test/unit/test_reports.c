/* test_reports.c - what a node tells each member when it adopts a view. */
#include "placement/claims/claim_own.h"
#include "placement/claims/locks_own.h"
#include "placement/claims/reports.h"
#include "placement/ring/ring.h"

#include <stdlib.h>
#include <string.h>

#include "suite.h"

#define NODES  5
#define CLAIMS 3000

static struct member members[NODES];
static struct view view = {.number = 1, .nmembers = NODES, .members = members};

static struct fid nth(uint64_t i)
{
    return (struct fid){i * 0x9e3779b97f4a7c15u, i};
}

static void begin(void)
{
    for (uint64_t i = 0; i < NODES; i++)
        members[i] = (struct member){.id = i + 1, .incarnation = 1, .weight = 100};
    own_start();
    locks_own_start();
    own_adopted(1);
    for (uint64_t i = 0; i < CLAIMS; i++)
        own_add(nth(i), 1, i + 1, 0);
}

static void end(void)
{
    own_stop();
    locks_own_stop();
}

static struct msg *report(uint64_t to)
{
    struct msg *m = msg_new(MSG_ADOPTED);
    reports_fill(&view, to, m);
    return m;
}

static void drop(struct msg *m)
{
    free(m->adopted.nextof.v);
    free(m->adopted.blinds.v);
    free(m->adopted.claims.v);
    free(m->adopted.records.v);
    free(m->adopted.locks.v);
    msg_free(m);
}

START_TEST(each_member_is_told_of_its_own_files)
{
    uint32_t told = 0;
    reports_begin(&view);
    for (uint64_t to = 1; to <= NODES; to++) {
        struct msg *m = report(to);
        for (uint32_t i = 0; i < m->adopted.claims.n; i++)
            ck_assert_uint_eq(view_home(&view, m->adopted.claims.v[i].fid), to);
        told += m->adopted.claims.n;
        drop(m);
    }
    reports_end();
    ck_assert_uint_eq(told, CLAIMS);
}
END_TEST

START_TEST(at_once_or_one_by_one_they_are_the_same)
{
    for (uint64_t to = 1; to <= NODES; to++) {
        struct msg *alone = report(to), *m;
        reports_begin(&view);
        m = report(to);
        reports_end();
        ck_assert_uint_eq(m->adopted.claims.n, alone->adopted.claims.n);
        ck_assert_int_eq(memcmp(m->adopted.claims.v, alone->adopted.claims.v,
                                m->adopted.claims.n * sizeof(*m->adopted.claims.v)),
                         0);
        drop(alone);
        drop(m);
    }
}
END_TEST

START_TEST(what_changes_meanwhile_is_told_to_nobody)
{
    uint32_t told = 0;
    reports_begin(&view);
    own_remove(nth(7));
    own_add(nth(CLAIMS), 1, CLAIMS + 1, 0);
    for (uint64_t to = 1; to <= NODES; to++) {
        struct msg *m = report(to);
        for (uint32_t i = 0; i < m->adopted.claims.n; i++)
            ck_assert(!fid_eq(m->adopted.claims.v[i].fid, nth(CLAIMS)));
        told += m->adopted.claims.n;
        drop(m);
    }
    reports_end();
    ck_assert_uint_eq(told, CLAIMS);
}
END_TEST

START_TEST(a_farewell_has_all_claims)
{
    struct msg *m;
    reports_begin(&view);
    m = report(0);
    ck_assert_uint_eq(m->adopted.claims.n, CLAIMS);
    drop(m);
    reports_end();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("reports");
    TCase *t = tcase_create("reports");
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, each_member_is_told_of_its_own_files);
    tcase_add_test(t, at_once_or_one_by_one_they_are_the_same);
    tcase_add_test(t, what_changes_meanwhile_is_told_to_nobody);
    tcase_add_test(t, a_farewell_has_all_claims);
    suite_add_tcase(s, t);
    return run_suite(s);
}
