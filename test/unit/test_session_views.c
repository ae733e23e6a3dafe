/* test_session_views.c - views in the session directory: made once, found, read, swept; their text. */
#include "session_env.h"
#include "suite.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "transport/session.h"
#include "transport/view.h"

/* ---- views ---- */

static void assert_is_our_view(const struct view *v, uint64_t number)
{
    ck_assert_uint_eq(v->number, number);
    ck_assert_uint_eq(v->nmembers, 3);
    ck_assert_uint_eq(v->members[0].id, 1);
    ck_assert_uint_eq(v->members[1].id, 7);
    ck_assert_uint_eq(v->members[2].id, 200);
    ck_assert_uint_eq(v->members[2].incarnation, 601);
    ck_assert_uint_eq(v->members[2].weight, 100);
    ck_assert_str_eq(v->members[2].name, "node200");
    ck_assert_str_eq(v->members[2].addr, "10.0.0.200:40123");
    ck_assert_uint_eq(v->nabsent, 2);
    ck_assert_uint_eq(v->absents[0].id, 3);
    ck_assert_uint_eq(v->absents[1].id, 0xffffffffffffffff);
    ck_assert_uint_eq(v->absents[1].incarnation, 5);
    ck_assert_str_eq(v->absents[0].name, "gone3");
}

START_TEST(view_is_made_found_and_read)
{
    uint64_t number = 99;
    struct view *v;
    open_job();
    ck_assert_int_eq(session_newest(&number), 0);
    ck_assert_uint_eq(number, 0);
    ck_assert_int_eq(session_read_view(1, &v), -ENOENT);
    ck_assert_int_eq(make_view(1), 0);
    ck_assert_int_eq(session_newest(&number), 0);
    ck_assert_uint_eq(number, 1);
    ck_assert_int_eq(session_read_view(1, &v), 0);
    assert_is_our_view(v, 1);
    view_free(v);
    ck_assert_int_eq(access(in_job("views/000001"), R_OK), 0);
    ck_assert_int_eq(count_files(in_job("views"), ""), 1);
}
END_TEST

START_TEST(view_number_is_given_once)
{
    struct member m = member(9);
    struct view other = {.number = 4, .nmembers = 1, .members = &m};
    struct view *v;
    open_job();
    ck_assert_int_eq(make_view(4), 0);
    ck_assert_int_eq(session_make_view(&other), -EEXIST);
    ck_assert_int_eq(session_read_view(4, &v), 0);
    assert_is_our_view(v, 4);
    view_free(v);
    ck_assert_int_eq(count_files(in_job("views"), ".new-"), 0);
}
END_TEST

static int race_for_view(int i)
{
    struct member m = member((uint64_t)i + 1);
    if (open_as("job", CHUNK))
        return 1;
    for (uint64_t k = 1; k <= 5; k++) {
        struct view v = {.number = k, .nmembers = 1, .members = &m}, *read;
        int err = session_make_view(&v);
        if (err && err != -EEXIST)
            return 2;
        if (session_read_view(k, &read))
            return 3;
        if (!err && read->members[0].id != m.id)
            return 4; /* both won */
        view_free(read);
    }
    return 0;
}

START_TEST(one_of_many_makes_the_view_and_all_read_the_same)
{
    in_processes(12, race_for_view);
    open_job();
    ck_assert_int_eq(count_files(in_job("views"), ""), 5);
}
END_TEST

START_TEST(old_views_are_removed_and_stay_removed)
{
    uint64_t number;
    struct view *v;
    open_job();
    for (uint64_t k = 1; k <= 40; k++)
        ck_assert_int_eq(make_view(k), 0);
    ck_assert_int_eq(count_files(in_job("views"), ""), 16);
    ck_assert_int_eq(session_read_view(24, &v), -ENOENT);
    ck_assert_int_eq(session_read_view(25, &v), 0);
    view_free(v);
    /* A maker that slept since view 2 was the newest: its name is free again, but it is not first.
     */
    ck_assert_int_eq(make_view(3), -EEXIST);
    ck_assert_int_eq(session_read_view(3, &v), -ENOENT);
    ck_assert_int_eq(session_newest(&number), 0);
    ck_assert_uint_eq(number, 40);
}
END_TEST

START_TEST(numbers_sort_as_numbers_and_junk_names_are_not_views)
{
    static const char *const junk[] = {"views/7",
                                       "views/0000099",
                                       "views/00099x",
                                       "views/-00099",
                                       "views/000000",
                                       "views/.000098",
                                       "views/99999999999999999999999"};
    uint64_t number;
    open_job();
    for (size_t i = 0; i < ARRAY_LEN(junk); i++)
        write_text(in_job(junk[i]), "x");
    ck_assert_int_eq(session_newest(&number), 0);
    ck_assert_uint_eq(number, 0);
    ck_assert_int_eq(make_view(999999), 0);
    ck_assert_int_eq(make_view(1000000), 0);
    ck_assert_int_eq(session_newest(&number), 0);
    ck_assert_uint_eq(number, 1000000);
}
END_TEST

START_TEST(leftovers_of_dead_makers_are_swept)
{
    struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    open_job();
    write_text(in_job("views/.new-dead"), "x");
    write_text(in_job("views/.new-living"), "x");
    ck_assert_int_eq(utimensat(AT_FDCWD, in_job("views/.new-dead"), old, 0), 0);
    ck_assert_int_eq(make_view(1), 0);
    ck_assert_int_eq(access(in_job("views/.new-dead"), F_OK), -1);
    ck_assert_int_eq(access(in_job("views/.new-living"), F_OK), 0);
}
END_TEST

START_TEST(view_file_of_another_number_or_kind_is_refused)
{
    struct view *v;
    open_job();
    ck_assert_int_eq(make_view(1), 0);
    ck_assert_int_eq(link(in_job("views/000001"), in_job("views/000002")), 0);
    ck_assert_int_eq(session_read_view(2, &v), -EPROTO);
    ck_assert_int_eq(mkdir(in_job("views/000003"), 0700), 0);
    ck_assert_int_eq(session_read_view(3, &v), -EPROTO);
    ck_assert_int_eq(symlink("000001", in_job("views/000004")), 0);
    ck_assert_int_eq(session_read_view(4, &v), -EPROTO);
    write_text(in_job("views/000005"), "");
    ck_assert_int_eq(truncate(in_job("views/000005"), (off_t)1 << 40), 0);
    ck_assert_int_eq(session_read_view(5, &v), -EPROTO);
}
END_TEST

START_TEST(view_that_readers_would_refuse_is_not_written)
{
    struct member unsorted[] = {member(7), member(1)}, nameless = member(1);
    struct view v = {.number = 1, .nmembers = 2, .members = unsorted};
    open_job();
    ck_assert_int_eq(session_make_view(&v), -EINVAL);
    nameless.name[0] = 0;
    v = (struct view){.number = 1, .nmembers = 1, .members = &nameless};
    ck_assert_int_eq(session_make_view(&v), -EINVAL);
    v.nmembers = 0;
    v.number = 0;
    ck_assert_int_eq(session_make_view(&v), -EINVAL);
    ck_assert_int_eq(count_files(in_job("views"), ""), 0);
    v.number = 1; /* the last one out writes an empty view */
    ck_assert_int_eq(session_make_view(&v), 0);
}
END_TEST

START_TEST(view_age_starts_again_with_a_touch)
{
    uint64_t ms;
    struct timespec past[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = time(NULL) - 100}};
    open_job();
    ck_assert_int_eq(session_view_age_ms(1, &ms), -ENOENT);
    ck_assert_int_eq(session_touch_view(1), -ENOENT);
    ck_assert_int_eq(make_view(1), 0);
    ck_assert_int_eq(session_view_age_ms(1, &ms), 0);
    ck_assert_uint_lt(ms, 20000);
    ck_assert_int_eq(utimensat(AT_FDCWD, in_job("views/000001"), past, 0), 0);
    ck_assert_int_eq(session_view_age_ms(1, &ms), 0);
    ck_assert_uint_ge(ms, 98000);
    ck_assert_uint_lt(ms, 130000);
    ck_assert_int_eq(session_touch_view(1), 0);
    ck_assert_int_eq(session_view_age_ms(1, &ms), 0);
    ck_assert_uint_lt(ms, 20000);
    ck_assert_int_eq(count_files(in_job("views"), ".new-"), 0);
}
END_TEST

/* ---- the text of views ---- */

#define HEAD(n, m, a) "eddyfs view 1\nnumber " n "\nmembers " m "\nabsent " a "\n"
#define M1            "member 0000000000000001 4 100 10.0.0.1:1 one\n"
#define M2            "member 0000000000000002 4 100 [::1]:65535 two\n"
#define A3            "absent 0000000000000003 9 three\n"

START_TEST(view_text_is_as_documented)
{
    static const char text[] = HEAD("12", "2", "1") M1 M2 A3 "end\n";
    struct view *v;
    size_t len;
    ck_assert_int_eq(view_parse(text, sizeof(text) - 1, &v), 0);
    ck_assert_uint_eq(v->number, 12);
    ck_assert_str_eq(v->members[1].addr, "[::1]:65535");
    ck_assert_str_eq(v->absents[0].name, "three");
    char *again = view_print(v, &len);
    ck_assert_uint_eq(len, sizeof(text) - 1);
    ck_assert_str_eq(again, text);
    free(again);
    view_free(v);
}
END_TEST

static const char *const bad_views[] = {
    "",
    "eddyfs view 2\nnumber 1\nmembers 0\nabsent 0\nend\n",
    HEAD("0", "0", "0") "end\n",
    HEAD("9223372036854775808", "0", "0") "end\n",
    HEAD("18446744073709551617", "0", "0") "end\n",
    HEAD("1", "0", "0") "end",
    HEAD("1", "0", "0") "end\n\n",
    HEAD("1", "0", "0") M1 "end\n",
    HEAD("1", "1", "0") "end\n",
    HEAD("1", "2", "0") M1 "end\n",
    HEAD("1", "2", "0") M2 M1 "end\n",
    HEAD("1", "2", "0") M1 M1 "end\n",
    HEAD("1", "1", "2") M1 A3 A3 "end\n",
    HEAD("1", "16384", "0") M1 "end\n",
    HEAD("1", "16385", "0") M1 "end\n",
    HEAD("1", "4294967297", "0") M1 "end\n",
    HEAD("1", "-1", "0") M1 "end\n",
    HEAD("1", "1", "0") "member 000000000000001 4 100 a:1 one\nend\n",
    HEAD("1", "1", "0") "member 000000000000000g 4 100 a:1 one\nend\n",
    HEAD("1", "1", "0") "member 0000000000000001 4 0 a:1 one\nend\n",
    HEAD("1", "1", "0") "member 0000000000000001 4 1073741825 a:1 one\nend\n",
    HEAD("1", "1", "0") "member 0000000000000001 4 100 a:1 \nend\n",
    HEAD("1", "1", "0") "member 0000000000000001 4 100  one\nend\n",
    HEAD("1", "1", "0") "member 0000000000000001 4 100 a:1 ../one\nend\n",
    HEAD("1", "1", "0") "member 0000000000000001 4 100 a:1 one two\nend\n",
    HEAD("1", "1", "0") "member 0000000000000001 18446744073709551616 100 a:1 one\nend\n",
    HEAD("1", "1",
         "0") "member 0000000000000001 4 100 a:1 "
              "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\nend\n", /* 65 */
    HEAD(
        "1", "1",
        "0") "member 0000000000000001 4 100 "
             "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa one\nend\n", /* 64 */
    HEAD("1", "1", "1") M1 "absent 0000000000000001 4 one\nend\n",
};

START_TEST(malformed_view_text_is_refused)
{
    struct view *v;
    size_t len = strlen(bad_views[_i]);
    char *copy =
        malloc(len + 1); /* exactly as long, so that a memory checker sees a byte too many */
    memcpy(copy, bad_views[_i], len);
    ck_assert_msg(view_parse(copy, len, &v) == -EPROTO, "%s", bad_views[_i]);
    free(copy);
}
END_TEST

START_TEST(view_text_cut_anywhere_is_refused)
{
    static const char text[] = HEAD("12", "2", "1") M1 M2 A3 "end\n";
    for (size_t len = 0; len < sizeof(text) - 1; len++) {
        struct view *v;
        char *copy = malloc(len + 1);
        memcpy(copy, text, len);
        ck_assert_int_eq(view_parse(copy, len, &v), -EPROTO);
        free(copy);
    }
}
END_TEST

START_TEST(largest_view_fits)
{
    uint32_t n = SESSION_MAX_MEMBERS;
    struct view v = {.number = INT64_MAX, .nmembers = n, .nabsent = n}, *back;
    v.members = calloc(n, sizeof(*v.members));
    v.absents = calloc(n, sizeof(*v.absents));
    for (uint32_t i = 0; i < n; i++) {
        struct member *m = &v.members[i];
        struct absent *a = &v.absents[i];
        m->id = 2 * i;
        a->id = 2 * i + 1;
        m->incarnation = a->incarnation = UINT64_MAX;
        m->weight = WEIGHT_MAX;
        memset(m->name, 'n', NODE_NAME_MAX);
        memset(a->name, 'n', NODE_NAME_MAX);
        memset(m->addr, 'a', NODE_ADDR_MAX - 1);
    }
    open_job();
    ck_assert_int_eq(session_make_view(&v), 0);
    ck_assert_int_eq(session_read_view(INT64_MAX, &back), 0);
    ck_assert_uint_eq(back->nmembers, n);
    ck_assert_mem_eq(back->members, v.members, n * sizeof(*v.members));
    ck_assert_mem_eq(back->absents, v.absents, n * sizeof(*v.absents));
    view_free(back);
    free(v.members);
    free(v.absents);
}
END_TEST

static void add_file_tests(TCase *t)
{
    tcase_add_test(t, view_is_made_found_and_read);
    tcase_add_test(t, view_number_is_given_once);
    tcase_add_test(t, one_of_many_makes_the_view_and_all_read_the_same);
    tcase_add_test(t, old_views_are_removed_and_stay_removed);
    tcase_add_test(t, numbers_sort_as_numbers_and_junk_names_are_not_views);
    tcase_add_test(t, leftovers_of_dead_makers_are_swept);
    tcase_add_test(t, view_file_of_another_number_or_kind_is_refused);
    tcase_add_test(t, view_that_readers_would_refuse_is_not_written);
    tcase_add_test(t, view_age_starts_again_with_a_touch);
}

static void add_text_tests(TCase *t)
{
    tcase_add_test(t, view_text_is_as_documented);
    tcase_add_loop_test(t, malformed_view_text_is_refused, 0, ARRAY_LEN(bad_views));
    tcase_add_test(t, view_text_cut_anywhere_is_refused);
    tcase_add_test(t, largest_view_fits);
}

int main(void)
{
    Suite *s = suite_create("session_views");
    add_file_tests(new_case(s, "views"));
    add_text_tests(new_case(s, "the text of views"));
    return run_suite(s);
}
