/* test_made.c - which versions of a PFS file are this node's own doing. */
#include "flush/made.h"
#include "placement/store/kernel_io.h"

#include "suite.h"
#include "transport/base.h"

#define S INT64_C(1000000000)

static struct file_info info;
static int64_t ahead_ns; /* the PFS's clock */

static void setup(void)
{
    ahead_ns = 0;
    info = (struct file_info){.size = 5000,
                              .mtime_ns = 70 * S,
                              .ctime_ns = 70 * S,
                              .base = {4000, 50 * S, 51 * S},
                              .base_known = true,
                              .base_end = 4000,
                              .cut = UINT64_MAX,
                              .dirty = true};
}

static enum made made(uint64_t size, int64_t mtime_ns, int64_t ctime_ns)
{
    return made_of(&info, &(struct version){size, mtime_ns, ctime_ns}, ahead_ns);
}

START_TEST(attributes_are_no_bytes)
{
    ck_assert_int_eq(made(4000, 50 * S, 51 * S), MADE_HERE);
    ck_assert_int_eq(made(4000, 50 * S, 99 * S), MADE_HERE);
    ck_assert_int_eq(made(4000, 50 * S + 1, 99 * S), MADE_ELSEWHERE);
    ck_assert_int_eq(made(4001, 50 * S, 51 * S), MADE_ELSEWHERE);
    info.base_known = false;
    ck_assert_int_eq(made(1, 2, 3), MADE_HERE);
}
END_TEST

START_TEST(times_that_the_session_sets)
{
    info.trace.ntold = 1;
    info.trace.told[0] = 20 * S + 123456789;
    ck_assert_int_eq(made(4000, 20 * S + 123456789, 80 * S), MADE_HERE);
    /* as PFSs of coarser times keep it */
    ck_assert_int_eq(made(4000, 20 * S + 123456700, 80 * S), MADE_HERE);
    ck_assert_int_eq(made(4000, 20 * S + 123456000, 80 * S), MADE_HERE);
    ck_assert_int_eq(made(4000, 20 * S + 123000000, 80 * S), MADE_HERE);
    ck_assert_int_eq(made(4000, 20 * S, 80 * S), MADE_HERE);
    ck_assert_int_eq(made(4000, 20 * S + 123456788, 80 * S), MADE_ELSEWHERE);
    ck_assert_int_eq(made(4000, 19 * S, 80 * S), MADE_ELSEWHERE);
    ck_assert_int_eq(made(4001, 20 * S, 80 * S), MADE_ELSEWHERE);
    info.trace.told[1] = -20 * S - 1;
    ck_assert_int_eq(made(4000, -20 * S - 1, 80 * S), MADE_ELSEWHERE);
    info.trace.ntold = 2;
    ck_assert_int_eq(made(4000, -20 * S - 1, 80 * S), MADE_HERE);
    ck_assert_int_eq(made(4000, -21 * S, 80 * S), MADE_HERE); /* before the epoch: rounded down, too */
    ck_assert_int_eq(made(4000, -20 * S, 80 * S), MADE_ELSEWHERE);
    info.trace.ntold = 0;
    ck_assert_int_eq(made(4000, 20 * S, 80 * S), MADE_ELSEWHERE);
    info.mtime_set = true;
    ck_assert_int_eq(made(4000, 70 * S, 80 * S), MADE_HERE);
}
END_TEST

START_TEST(what_a_failed_run_has_left)
{
    info.flushing = true;
    info.trace.kind = TRACE_LEFT;
    info.trace.v = (struct version){4500, 75 * S, 76 * S};
    ck_assert_int_eq(made(4500, 75 * S, 76 * S), MADE_HERE);
    ck_assert_int_eq(made(4500, 75 * S, 90 * S), MADE_HERE);
    ck_assert_int_eq(made(4000, 50 * S, 51 * S), MADE_HERE);
    ck_assert_int_eq(made(4500, 76 * S, 76 * S), MADE_ELSEWHERE);
    ck_assert_int_eq(made(4501, 75 * S, 76 * S), MADE_ELSEWHERE);
    info.trace.ntold = 1;
    info.trace.told[0] = 80 * S;
    ck_assert_int_eq(made(4500, 80 * S, 90 * S), MADE_HERE);
    info.flushing = false; /* the next run has ended: it does not count any more */
    ck_assert_int_eq(made(4500, 75 * S, 76 * S), MADE_ELSEWHERE);
}
END_TEST

START_TEST(what_a_run_that_was_cut_off_can_have_made)
{
    info.flushing = true;
    info.trace.kind = TRACE_RUN;
    info.trace.v = (struct version){5000, 70 * S, 80 * S}; /* noted at 80 */
    info.trace.under_way = 1;
    ck_assert_int_eq(made(4000, 79 * S, 79 * S), MADE_HERE);
    ck_assert_int_eq(made(5000, 80 * S, 80 * S), MADE_HERE);
    ck_assert_int_eq(made(5000, 70 * S, 95 * S), MADE_HERE); /* its last step but one: the mtime */
    ck_assert_int_eq(made(5000, 80 * S + 1, 81 * S), MADE_BY_BYTES);
    ck_assert_int_eq(made(3999, 79 * S, 79 * S), MADE_ELSEWHERE);
    ck_assert_int_eq(made(5001, 79 * S, 79 * S), MADE_ELSEWHERE);
    info.ctime_ns = 80 * S - STORE_GRAIN_NS;
    ck_assert_int_eq(made(5000, 80 * S + 1, 81 * S), MADE_BY_BYTES);
    info.ctime_ns++; /* perhaps the kernel's stamp of a later write */
    ck_assert_int_eq(made(5000, 80 * S + 1, 81 * S), MADE_HERE);
    info.ctime_ns = 81 * S; /* written here since: what the run wrote may not be here any more */
    ck_assert_int_eq(made(5000, 80 * S + 1, 81 * S), MADE_HERE);
    info.trace.under_way = 0; /* the daemon lived, and saw the run fail */
    ck_assert_int_eq(made(5000, 80 * S + 1, 81 * S), MADE_BY_BYTES);
    info.trace.under_way = 1;
    info.cut = info.base_end = 100; /* it truncates first */
    ck_assert_int_eq(made(100, 79 * S, 79 * S), MADE_HERE);
    ck_assert_int_eq(made(99, 79 * S, 79 * S), MADE_ELSEWHERE);
    info.size = 100; /* cut off here while it ran */
    ck_assert_int_eq(made(5000, 79 * S, 79 * S), MADE_HERE);
    info.trace.kind = TRACE_ANY;
    ck_assert_int_eq(made(1, 2, 3), MADE_HERE);
}
END_TEST

/* The node's stamps are compared with the node's note, and the PFS's with what its clock said then. */
START_TEST(a_pfs_whose_clock_is_another)
{
    info.flushing = true;
    info.trace = (struct file_trace){.kind = TRACE_RUN, .under_way = 1, .v = {5000, 70 * S, 80 * S}};
    ahead_ns = 3 * S;
    ck_assert_int_eq(made(5000, 83 * S, 83 * S), MADE_HERE);
    ck_assert_int_eq(made(5000, 83 * S + 1, 84 * S), MADE_BY_BYTES);
    info.ctime_ns = 80 * S + 1; /* written here after the note */
    ck_assert_int_eq(made(5000, 83 * S + 1, 84 * S), MADE_HERE);
    info.ctime_ns = 70 * S;
    ahead_ns = -3 * S; /* clients that stamp by their own clock are not behind */
    ck_assert_int_eq(made(5000, 80 * S, 80 * S), MADE_HERE);
    ck_assert_int_eq(made(5000, 80 * S + 1, 80 * S + 1), MADE_BY_BYTES);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("made");
    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_test(t, attributes_are_no_bytes);
    tcase_add_test(t, times_that_the_session_sets);
    tcase_add_test(t, what_a_failed_run_has_left);
    tcase_add_test(t, what_a_run_that_was_cut_off_can_have_made);
    tcase_add_test(t, a_pfs_whose_clock_is_another);
    return run_case("made", t);
}
