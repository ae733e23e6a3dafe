/* test_queue_parse.c - what a client sends to add hints: what is right is taken as it was meant, the rest is refused. */
#include "placement/foresight/queue_parse.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "queue_body.h"
#include "suite.h"

static struct body b;
static struct parsed_add a;

static int parse(uint32_t paths, uint32_t targets)
{
    /* in memory of just that size: a sanitizer finds a look beyond it */
    uint8_t *copy = malloc(b.len ? b.len : 1);
    memcpy(copy, b.bytes, b.len);
    int err = queue_parse_add(copy, b.len, paths, targets, &a);
    free(copy);
    return err;
}

static void one_of(const char *path, uint32_t path_number, uint64_t off, uint64_t len, uint32_t entry)
{
    body_begin(&b, 1, 1, 1);
    body_path(&b, path);
    body_target(&b, path_number, off, len);
    body_entry(&b, entry);
}

START_TEST(what_is_right_is_read_as_it_was_meant)
{
    size_t len;
    body_begin(&b, 2, 1, 3);
    body_path(&b, "a");
    body_path(&b, "dir/b");
    body_target(&b, 4, 10, 20);
    body_entry(&b, 7);
    body_entry(&b, 0);
    body_entry(&b, 7);
    ck_assert_int_eq(queue_parse_add(b.bytes, b.len, 3, 7, &a), 0);
    const uint8_t *at = a.paths;
    ck_assert(!memcmp(queue_next_path(&at, &len), "a", 1) && len == 1);
    ck_assert(!memcmp(queue_next_path(&at, &len), "dir/b", 5) && len == 5);
    ck_assert_ptr_eq(at, a.targets);
    struct queue_target t = queue_target_at(&a, 0);
    ck_assert(t.path == 4 && t.off == 10 && t.len == 20);
    ck_assert_uint_eq(queue_entry_at(&a, 0), 7);
    ck_assert_uint_eq(queue_entry_at(&a, 1), 0);
}
END_TEST

START_TEST(paths_that_lead_out_or_are_not_plain_are_refused)
{
    static const char *const bad[] = {"", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b"};
    static const char *const good[] = {"a", "...", ".a", "a..", "a/b/c"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        one_of(bad[i], 0, 0, 0, 0);
        ck_assert_msg(parse(0, 0) == -EPROTO, "%s", bad[i]);
    }
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        one_of(good[i], 0, 0, 0, 0);
        ck_assert_msg(!parse(0, 0), "%s", good[i]);
    }
    one_of("ab", 0, 0, 0, 0);
    b.bytes[sizeof(struct queue_add) + 3] = '\0';
    ck_assert_int_eq(parse(0, 0), -EPROTO);
}
END_TEST

START_TEST(numbers_and_ranges_that_do_not_exist_are_refused)
{
    one_of("a", 1, 0, 0, 0);
    ck_assert_int_eq(parse(0, 0), -EPROTO);
    one_of("a", 0, 0, 0, 1);
    ck_assert_int_eq(parse(0, 0), -EPROTO);
    one_of("a", 0, INT64_MAX, 0, 0);
    ck_assert_int_eq(parse(0, 0), 0);
    one_of("a", 0, INT64_MAX, 1, 0);
    ck_assert_int_eq(parse(0, 0), -EPROTO);
    one_of("a", 0, 1, INT64_MAX, 0);
    ck_assert_int_eq(parse(0, 0), -EPROTO);
    one_of("a", 0, UINT64_MAX, 0, 0);
    ck_assert_int_eq(parse(0, 0), -EPROTO);
    one_of("a", 0, 0, 0, 0);
    ck_assert_int_eq(parse(UINT32_MAX, 0), -EPROTO);
    body_begin(&b, 0, 0, 0);
    ck_assert_int_eq(parse(0, 0), -EPROTO);
}
END_TEST

START_TEST(no_length_but_the_right_one_is_taken)
{
    one_of("path", 0, 0, 0, 0);
    size_t whole = b.len;
    for (b.len = 0; b.len < whole; b.len++)
        ck_assert_int_eq(parse(0, 0), -EPROTO);
    ck_assert_int_eq(parse(0, 0), 0);
    b.len++;
    ck_assert_int_eq(parse(0, 0), -EPROTO);
    for (unsigned i = 0; i < 3; i++) { /* counts that are far too large */
        one_of("path", 0, 0, 0, 0);
        memset(b.bytes + 4 * i, 0xff, 4);
        ck_assert_int_eq(parse(0, 0), -EPROTO);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("queue_parse");
    tcase_add_test(t, what_is_right_is_read_as_it_was_meant);
    tcase_add_test(t, paths_that_lead_out_or_are_not_plain_are_refused);
    tcase_add_test(t, numbers_and_ranges_that_do_not_exist_are_refused);
    tcase_add_test(t, no_length_but_the_right_one_is_taken);
    return run_case("queue_parse", t);
}
