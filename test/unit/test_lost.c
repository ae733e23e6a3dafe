/* test_lost.c - the files of nodes that left, by name: as many as are kept, and how many more. */
#include "placement/claims/lost.h"
#include "transport/loop.h"
#include "transport/marks.h"
#include "transport/view.h"

#include "session_env.h"

#define AWAY 9

static void begin(void)
{
    make_top();
    open_job();
    ck_assert_int_eq(pools_start(), 0);
}

static void end(void)
{
    pools_stop();
    lost_stop();
    remove_top();
}

static void write_list(uint32_t n)
{
    struct dirty_name *names = xcalloc(n + 1, sizeof(*names));
    for (uint32_t i = 0; i < n; i++)
        names[i] = (struct dirty_name){.fid = {1, i + 1}, .path = "directory/file"};
    ck_assert_int_eq(session_write_dirty(AWAY, names, n), 0);
    free(names);
}

static int count_one(void *arg, const struct lost_file *l)
{
    ck_assert_uint_eq(l->node, AWAY);
    ++*(uint32_t *)arg;
    return 0;
}

static uint32_t named(void)
{
    uint32_t n = 0;
    lost_each(count_one, &n);
    return n;
}

/* It is read in the background. */
static void look_until(uint32_t n)
{
    struct absent gone = {.id = AWAY, .incarnation = 1};
    struct view v = {.number = 2, .nabsent = 1, .absents = &gone};
    uint64_t end_ms = boot_ms() + 60000;
    lost_look(&v);
    while (named() != n && boot_ms() < end_ms)
        usleep(1000);
    ck_assert_uint_eq(named(), n);
}

START_TEST(all_are_named)
{
    write_list(1000);
    look_until(1000);
    ck_assert_uint_eq(lost_left_out(), 0);
}
END_TEST

START_TEST(what_is_too_much_to_be_named_is_counted)
{
    write_list(LOST_FILES_MAX + 123);
    look_until(LOST_FILES_MAX);
    ck_assert_uint_eq(lost_left_out(), 123);
    lost_look(&(struct view){.number = 3}); /* it is back */
    ck_assert_uint_eq(named(), 0);
    ck_assert_uint_eq(lost_left_out(), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("lost");
    TCase *t = add_case(s, "lost", begin, end, 120);
    tcase_add_test(t, all_are_named);
    tcase_add_test(t, what_is_too_much_to_be_named_is_counted);
    return run_suite(s);
}
