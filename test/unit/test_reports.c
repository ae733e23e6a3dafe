/* test_reports.c - what a node tells each member when it adopts a view, piece by piece. */
#include "placement/claims/claim_own.h"
#include "placement/claims/locks_own.h"
#include "placement/claims/look.h"
#include "placement/claims/reports.h"
#include "placement/ring/ring.h"
#include "transport/view.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "suite.h"

#define NODES     5
#define CLAIMS    30000
#define MANY      3000000
#define PIECE_MAX (256u << 10) /* bytes */

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
    look_start();
    own_adopted(1);
    for (uint64_t i = 0; i < CLAIMS; i++)
        own_add(nth(i), 1, i + 1, 0);
}

static void end(void)
{
    own_stop();
    locks_own_stop();
    look_stop();
}

static void lock_file(uint64_t i, uint64_t owner)
{
    struct held_lock l = {.node = 1, .incarnation = 1, .owner = owner, .type = HELD_WRITE};
    locks_own_apply(nth(i), &l);
}

static struct msg *piece(const void *report, uint64_t to, uint32_t number)
{
    struct msg *m = msg_new(MSG_ADOPTED);
    m->adopted.piece = number;
    reports_fill(report, to, m);
    return m;
}

/* As it comes out at the other end; m is freed. */
static struct msg *sent(struct msg *m)
{
    struct msg *back;
    void *wire;
    size_t len;
    ck_assert_int_eq(msg_encode(m, &wire, &len), 0);
    ck_assert_uint_le(len, PIECE_MAX);
    ck_assert_int_eq(msg_decode(wire, len, &back, NULL), 0);
    free(wire);
    msg_free(m);
    return back;
}

START_TEST(each_member_is_told_of_its_own_files)
{
    bool *told = xcalloc(CLAIMS, sizeof(*told));
    uint32_t n = 0, nlocks = 0;
    for (uint64_t i = 0; i < CLAIMS; i += 3)
        lock_file(i, i + 1);
    void *report = reports_make(&view, false);
    for (uint64_t to = 1; to <= NODES; to++) {
        bool more = true;
        for (uint32_t number = 0; more; number++) {
            struct msg *m = sent(piece(report, to, number));
            for (uint32_t i = 0; i < m->adopted.claims.n; i++) {
                const struct item_claim *c = &m->adopted.claims.v[i];
                ck_assert_uint_eq(view_home(&view, c->fid), to);
                ck_assert(fid_eq(c->fid, nth(c->fid.lo)) && c->number == c->fid.lo + 1);
                ck_assert(!told[c->fid.lo]);
                told[c->fid.lo] = true;
                n++;
            }
            for (uint32_t i = 0; i < m->adopted.locks.n; i++, nlocks++) {
                ck_assert_uint_eq(view_home(&view, m->adopted.locks.v[i].fid), to);
                ck_assert_uint_eq(m->adopted.locks.v[i].owner, m->adopted.locks.v[i].fid.lo + 1);
            }
            more = m->adopted.more;
            msg_free(m);
        }
    }
    ck_assert_uint_eq(n, CLAIMS);
    ck_assert_uint_eq(nlocks, CLAIMS / 3);
    reports_free(report);
    free(told);
}
END_TEST

START_TEST(a_piece_is_bounded_and_the_same_each_time)
{
    void *report = reports_make(&view, false);
    struct msg *once = piece(report, 2, 0), *first = sent(piece(report, 2, 0));
    ck_assert(first->adopted.more);
    ck_assert_uint_eq(first->adopted.claims.n, MSG_PIECE_ITEMS);
    own_remove(nth(7));
    own_add(nth(CLAIMS), 1, CLAIMS + 1, 0);
    struct msg *again = piece(report, 2, 0);
    ck_assert_uint_eq(again->adopted.claims.n, once->adopted.claims.n);
    ck_assert_mem_eq(again->adopted.claims.v, once->adopted.claims.v,
                     once->adopted.claims.n * sizeof(*once->adopted.claims.v));
    msg_free(again);
    msg_free(once);
    msg_free(first);
    reports_free(report);
}
END_TEST

START_TEST(a_piece_that_is_just_full_is_the_last_one)
{
    end();
    own_start();
    locks_own_start();
    look_start();
    own_adopted(1);
    uint64_t i = 0;
    for (uint32_t n = 0; n < 2 * MSG_PIECE_ITEMS; i++) {
        if (view_home(&view, nth(i)) != 3)
            continue;
        own_add(nth(i), 1, i + 1, 0);
        n++;
    }
    void *report = reports_make(&view, false);
    struct msg *m[3] = {piece(report, 3, 0), piece(report, 3, 1), piece(report, 3, 2)};
    ck_assert(m[0]->adopted.more && !m[1]->adopted.more && !m[2]->adopted.more);
    ck_assert_uint_eq(m[0]->adopted.claims.n, MSG_PIECE_ITEMS);
    ck_assert_uint_eq(m[1]->adopted.claims.n, MSG_PIECE_ITEMS);
    ck_assert_uint_eq(m[2]->adopted.claims.n, 0);
    for (unsigned k = 0; k < 3; k++)
        msg_free(m[k]);
    reports_free(report);
}
END_TEST

START_TEST(what_changes_meanwhile_is_told_to_nobody)
{
    uint32_t told = 0;
    void *report = reports_make(&view, false);
    own_remove(nth(7));
    own_add(nth(CLAIMS), 1, CLAIMS + 1, 0);
    for (uint64_t to = 1; to <= NODES; to++) {
        bool more = true;
        for (uint32_t number = 0; more; number++) {
            struct msg *m = piece(report, to, number);
            for (uint32_t i = 0; i < m->adopted.claims.n; i++)
                ck_assert(!fid_eq(m->adopted.claims.v[i].fid, nth(CLAIMS)));
            told += m->adopted.claims.n;
            more = m->adopted.more;
            msg_free(m);
        }
    }
    reports_free(report);
    ck_assert_uint_eq(told, CLAIMS);
}
END_TEST

/* Those that are open when the report is made, to the home of each, with a number that no LEAVE of before covers. */
START_TEST(each_home_is_told_of_its_open_files)
{
    uint32_t told = 0;
    for (uint64_t i = 0; i < CLAIMS; i++)
        look_opened(nth(i));
    look_opened(nth(7));
    look_closed(nth(7)); /* still open once */
    look_closed(nth(8));
    uint64_t number = look_number();
    void *report = reports_make(&view, false);
    look_closed(nth(9)); /* too late */
    for (uint64_t to = 1; to <= NODES; to++) {
        bool more = true;
        for (uint32_t k = 0; more; k++) {
            struct msg *m = sent(piece(report, to, k));
            ck_assert_uint_gt(m->adopted.look_number, number);
            for (uint32_t i = 0; i < m->adopted.looks.n; i++, told++) {
                ck_assert_uint_eq(view_home(&view, m->adopted.looks.v[i].fid), to);
                ck_assert_uint_ne(m->adopted.looks.v[i].fid.lo, 8);
            }
            more = m->adopted.more;
            msg_free(m);
        }
    }
    ck_assert_uint_eq(told, CLAIMS - 1);
    reports_free(report);
}
END_TEST

START_TEST(a_farewell_has_all_claims)
{
    uint32_t told = 0;
    bool more = true;
    void *report = reports_make(&view, true);
    for (uint32_t number = 0; more; number++) {
        struct msg *m = sent(piece(report, 1 + number % NODES, number));
        told += m->adopted.claims.n;
        more = m->adopted.more;
        msg_free(m);
    }
    ck_assert_uint_eq(told, CLAIMS);
    reports_free(report);
}
END_TEST

static uint64_t peak_mib(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (uint64_t)u.ru_maxrss >> 10;
}

/* One copy of the list, four bytes a file to sort it, and a piece: no more, whoever many are told. */
START_TEST(three_million_claims_cost_one_list_and_a_piece)
{
    for (uint64_t i = CLAIMS; i < MANY; i++)
        own_add(nth(i), 1, i + 1, 0);
    uint64_t before = peak_mib(), told = 0;
    void *report = reports_make(&view, false);
    for (uint64_t to = 1; to <= NODES; to++) {
        bool more = true;
        for (uint32_t number = 0; more; number++) {
            struct msg *m = sent(piece(report, to, number));
            told += m->adopted.claims.n;
            more = m->adopted.more;
            msg_free(m);
        }
    }
    reports_free(report);
    uint64_t grown = peak_mib() - before;
    printf("%u claims in pieces: peak memory %lu MiB\n", MANY, (unsigned long)grown);
    ck_assert_uint_eq(told, MANY);
    uint64_t list = MANY * sizeof(struct item_claim) >> 20, sorting = MANY * 4 >> 20;
    if (!SANITIZED)
        ck_assert_uint_le(grown, list + sorting + 16);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("reports");
    TCase *t = tcase_create("reports");
    tcase_add_checked_fixture(t, begin, end);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, each_member_is_told_of_its_own_files);
    tcase_add_test(t, a_piece_is_bounded_and_the_same_each_time);
    tcase_add_test(t, a_piece_that_is_just_full_is_the_last_one);
    tcase_add_test(t, what_changes_meanwhile_is_told_to_nobody);
    tcase_add_test(t, each_home_is_told_of_its_open_files);
    tcase_add_test(t, a_farewell_has_all_claims);
    tcase_add_test(t, three_million_claims_cost_one_list_and_a_piece);
    suite_add_tcase(s, t);
    return run_suite(s);
}
