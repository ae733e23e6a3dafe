/* test_collect_many.c - rule 7 with as many records as a large session has: they come in pieces, cost what
 * they must and not much more, and take seconds, not minutes. */
#include "placement/claims/home_int.h"
#include "placement/ring/ring.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static void fake_arm(uint64_t ms)
{
    (void)ms;
}

static const struct view *fake_view_number(uint64_t n);

#define home_arm            fake_arm
#define members_view_number fake_view_number
#include "placement/claims/collect_self.c"
#include "placement/claims/collect_report.c"
#include "placement/claims/collect_stamp.c"
#include "placement/claims/collect.c"
#include "placement/claims/record.c"
#include "transport/members_int.h"
#include "transport/view.h"
#undef home_arm
#undef members_view_number

#include "suite.h"

#define MANY 3000000

/* Node 3 had claims on all files, and died with view 1; node 2 was next, or home, of them.  Node 1 is
 * new, and home of half of them. */
static struct member nodes[3] = {{.id = 1, .incarnation = 1, .weight = 100},
                                 {.id = 2, .incarnation = 1, .weight = 100},
                                 {.id = 3, .incarnation = 1, .weight = 100}};
static struct absent gone_one = {.id = 3, .incarnation = 1};
static struct view before = {.number = 1, .nmembers = 2, .members = nodes + 1},
                   now = {.number = 2,
                          .nmembers = 2,
                          .members = nodes,
                          .nabsent = 1,
                          .absents = &gone_one};

static const struct view *fake_view_number(uint64_t n)
{
    return n == 1 ? &before : n == 2 ? &now : NULL;
}

static struct fid nth(uint64_t i)
{
    return (struct fid){i * 0x9e3779b97f4a7c15u, i};
}

/* All pieces of a report of n records, with the files from 0 on. */
static void report_many(uint64_t id, uint32_t n)
{
    static struct item_record records[MSG_PIECE_ITEMS];
    struct item_nextof had[] = {{2, 1}, {3, 1}};
    for (uint32_t at = 0, piece = 0; at < n || !piece; piece++) {
        uint32_t here = MIN(n - at, (uint32_t)MSG_PIECE_ITEMS);
        struct body_adopted b = {.view = 2, .piece = piece, .last = id == 2};
        for (uint32_t i = 0; i < here; i++, at++)
            records[i] = (struct item_record){.fid = nth(at),
                                              .claimant = 3,
                                              .number_inc = 1,
                                              .number = at + 1,
                                              .stamp_view = 1,
                                              .stamp_count = 1};
        b.records.n = here;
        b.records.v = records;
        if (id == 2 && !piece) {
            b.nextof.n = ARRAY_LEN(had);
            b.nextof.v = had;
        }
        collect_report(&now, id, 1, &b);
    }
}

static void collect_all(const struct view *v)
{
    while (!collect_some(v))
        ;
}

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t peak_mib(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (uint64_t)u.ru_maxrss >> 10;
}

START_TEST(pieces_make_one_report)
{
    members_st.cfg.self.id = 1;
    collect_begin(&now);
    report_many(1, 0);
    report_many(2, 3 * MSG_PIECE_ITEMS + 7);
    collect_all(&now);
    uint32_t mine = 0;
    for (uint32_t i = 0; i < 3 * MSG_PIECE_ITEMS + 7; i++) {
        const struct record *r = record_find(nth(i));
        bool is_mine_now = view_home(&now, nth(i)) == 1;
        ck_assert(is_mine_now == (r != NULL));
        if (!r)
            continue;
        mine++;
        ck_assert_uint_eq(r->claimant, 3);
        ck_assert_uint_eq(r->number, i + 1);
        ck_assert_uint_eq(r->stamp_view, 2);
    }
    ck_assert_uint_eq(record_count(), mine);
}
END_TEST

/* The first pieces of a report whose sender's table is full: a part of its buckets, one record in each on
 * the average. */
START_TEST(records_in_the_order_of_a_table_leave_gaps_in_the_index)
{
    enum { RECORDS = 50 * MSG_PIECE_ITEMS, RUN_MAX = 200 };
    static struct item_record records[MSG_PIECE_ITEMS];
    collect_begin(&now);
    for (uint32_t piece = 0; piece < RECORDS / MSG_PIECE_ITEMS; piece++) {
        struct body_adopted b = {.view = 2, .piece = piece, .last = 1};
        for (uint32_t i = 0; i < MSG_PIECE_ITEMS; i++)
            records[i].fid =
                (struct fid){random_u64(), random_u64() << 32 | random_u64() % RECORDS};
        b.records.n = MSG_PIECE_ITEMS;
        b.records.v = records;
        collect_report(&now, 2, 1, &b);
    }
    uint32_t run = 0, longest = 0;
    for (uint32_t i = 0; i < collect_reports->nindex; i++) {
        run = collect_reports->index[i] ? run + 1 : 0;
        longest = MAX(longest, run);
    }
    ck_assert_uint_lt(longest, RUN_MAX);
}
END_TEST

START_TEST(a_view_that_comes_in_the_middle_finds_all_collected)
{
    uint32_t n = 0;
    members_st.cfg.self.id = 1;
    collect_begin(&now);
    report_many(1, 0);
    report_many(2, 10 * FILES_AT_ONCE);
    ck_assert(!collect_some(&now));
    ck_assert_uint_lt(record_count(), 2 * FILES_AT_ONCE);
    ck_assert(!collect_is_next(1, 2));
    collect_begin(&(struct view){.number = 3, .nmembers = 2, .members = nodes});
    ck_assert(collect_is_next(1, 2)); /* it was complete in view 2 */
    for (uint32_t i = 0; i < 10 * FILES_AT_ONCE; i++) {
        const struct record *r = record_find(nth(i));
        ck_assert(!r || (r->claimant == 3 && r->stamp_view == 2));
        n += r != NULL;
    }
    ck_assert_uint_gt(n, 4 * FILES_AT_ONCE);
}
END_TEST

/* What is measured is printed: docs/scale.md has it. */
START_TEST(three_million_records_are_collected)
{
    uint64_t at_first = peak_mib();
    members_st.cfg.self.id = 1;
    collect_begin(&now);
    report_many(1, 0);
    double t = cpu_s();
    report_many(2, MANY);
    double heard = cpu_s() - t;
    uint64_t reported = peak_mib();
    t = cpu_s();
    collect_all(&now);
    double finished = cpu_s() - t;
    uint64_t peak = peak_mib();
    uint32_t mine = record_count();
    printf(
        "%u records heard in %.2f s, %u of them collected in %.2f s; peak memory %lu MiB for the "
        "reports, %lu MiB in all\n",
        MANY, heard, mine, finished, (unsigned long)(reported - at_first),
        (unsigned long)(peak - at_first));
    ck_assert_uint_gt(mine, MANY / 3);
#ifndef __SANITIZE_ADDRESS__
    uint64_t list = (uint64_t)MANY * sizeof(struct item_record) >> 20;
    uint64_t index =
        2 * 8388608ul * sizeof(uint32_t) >> 20; /* the older one, too, while it grows */
    ck_assert_uint_le(reported - at_first, list + index + 16);
    ck_assert_uint_le(peak - at_first,
                      list + index + ((uint64_t)mine * (sizeof(struct record) + 16) >> 20) + 64);
#endif
}
END_TEST

int main(void)
{
    Suite *s = suite_create("collect_many");
    TCase *t = add_case(s, "all", NULL, NULL, 60);
    tcase_add_test(t, pieces_make_one_report);
    tcase_add_test(t, records_in_the_order_of_a_table_leave_gaps_in_the_index);
    tcase_add_test(t, a_view_that_comes_in_the_middle_finds_all_collected);
    tcase_add_test(t, three_million_records_are_collected);
    return run_suite(s);
}
