/* The home's table of records: looked through in parts, each record once. */
#include <check.h>
#include <stdlib.h>

#include "placement/claims/home_int.h"
#include "placement/claims/record.h"

#include "suite.h"

#define RECORDS 20000u

static unsigned armed;

void home_arm(uint64_t ms)
{
    (void)ms;
    armed++;
}

static struct fid fid(unsigned n)
{
    return (struct fid){.hi = n, .lo = n * UINT64_C(0x9e3779b97f4a7c15)};
}

static void fill(void)
{
    for (unsigned n = 0; n < RECORDS; n++)
        record_make(fid(n))->number = 0;
    ck_assert_uint_eq(record_count(), RECORDS);
    ck_assert_uint_gt(armed, 0);
}

static void mark(struct record *r, void *arg)
{
    (void)arg;
    r->number++;
}

static void each_was_seen(unsigned times)
{
    for (unsigned n = 0; n < RECORDS; n++)
        ck_assert_uint_eq(record_find(fid(n))->number, times);
}

START_TEST(parts_of_the_table_are_all_of_it)
{
    unsigned at = 0, parts = 1;
    fill();
    while (record_some(&at, mark, NULL))
        parts++;
    ck_assert_uint_gt(parts, 2);
    each_was_seen(1);
    record_each(mark, NULL);
    each_was_seen(2);
}
END_TEST

static bool odd(const struct record *r, void *arg)
{
    ++*(unsigned *)arg;
    return r->fid.hi % 2;
}

START_TEST(a_sweep_in_parts_asks_of_each_once_and_begins_anew)
{
    unsigned asked = 0, parts = 1, most = 0;
    fill();
    for (unsigned before = 0; !record_sweep_some(odd, &asked); before = asked, parts++)
        most = MAX(most, asked - before);
    ck_assert_uint_gt(parts, 2);
    ck_assert_uint_lt(most, RECORDS / 2);
    ck_assert_uint_eq(asked, RECORDS);
    ck_assert_uint_eq(record_count(), RECORDS / 2);
    for (unsigned n = 0; n < RECORDS; n++)
        ck_assert_int_eq(record_find(fid(n)) == NULL, n % 2);

    asked = 0;
    while (!record_sweep_some(odd, &asked))
        ;
    ck_assert_uint_eq(asked, RECORDS / 2);
}
END_TEST

static bool every(const struct record *r, void *arg)
{
    (void)r;
    (void)arg;
    return true;
}

static void empty(void)
{
    record_sweep(every, NULL);
    ck_assert_uint_eq(record_count(), 0);
}

int main(void)
{
    TCase *t = tcase_create("all");

    tcase_add_checked_fixture(t, NULL, empty);
    tcase_add_test(t, parts_of_the_table_are_all_of_it);
    tcase_add_test(t, a_sweep_in_parts_asks_of_each_once_and_begins_anew);
    return run_case("record", t);
}
