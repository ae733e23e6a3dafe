/* test_hints.c - queues of hints: what an open and a release make of them, what is bounded, what is left of them. */
#include "placement/foresight/far.h"
#include "placement/foresight/hint_files.h"
#include "placement/foresight/hints.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>

#include "placement/foresight/outdated.h"
#include "placement/foresight/queue_parse.h"
#include "queue_body.h"
#include "suite.h"
#include "transport/base.h"

#define LIMIT (1u << 20)

static struct body b;
static struct queue *q;

static void setup(void)
{
    log_open(NULL, LOG_LEVEL_ERROR, "test");
    hints_init(LIMIT);
    lock_take(&hints_lock);
    q = hints_queue_new();
}

static struct hints_sums sums_now(void)
{
    struct hints_sums s;
    hints_sum(&s);
    return s;
}

static void end_queue(void)
{
    hints_queue_end(q);
    struct hints_sums s = sums_now();
    ck_assert_uint_eq(s.hints + s.admitted + s.ahead + s.absent + s.ahead_bytes + s.kept + s.unflushed + s.memory, 0);
}

static void teardown(void)
{
    hints_end();
    lock_drop(&hints_lock);
}

static int add(struct queue *to)
{
    struct parsed_add a;
    int64_t first;
    ck_assert_int_eq(queue_parse_add(b.bytes, b.len, to->npaths, to->ntargets, &a), 0);
    return hints_add(to, &a, &first);
}

/* n files, each hinted once in each of the epochs, in this order. */
static void add_files(struct queue *to, uint32_t n, uint32_t epochs)
{
    char name[16];
    body_begin(&b, n, n, n * epochs);
    for (uint32_t i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "f%u", i);
        body_path(&b, name);
    }
    for (uint32_t i = 0; i < n; i++)
        body_target(&b, i, 0, 0);
    for (uint32_t i = 0; i < n * epochs; i++)
        body_entry(&b, i % n);
    ck_assert_int_eq(add(to), 0);
}

static struct target *target_of(struct queue *of, uint32_t entry)
{
    return of->target[of->entry[entry]];
}

static struct fid fid_n(uint64_t n)
{
    return (struct fid){n, n};
}

START_TEST(a_path_is_one_file_for_all_queues)
{
    struct queue *other = hints_queue_new();
    add_files(q, 3, 1);
    add_files(other, 3, 2);
    ck_assert_ptr_eq(target_of(q, 1)->file, target_of(other, 4)->file);
    ck_assert_ptr_eq(hints_by_path("f1"), target_of(q, 1)->file);
    ck_assert_ptr_null(hints_by_path("f"));
    hints_queue_end(other);
    ck_assert_ptr_eq(target_of(q, 1)->file->targets, target_of(q, 1));
    end_queue();
    ck_assert_ptr_null(hints_by_path("f1"));
}
END_TEST

START_TEST(files_are_found_by_their_fid_as_long_as_they_have_it)
{
    add_files(q, 2000, 1); /* the tables grow */
    for (uint32_t i = 0; i < 2000; i++)
        hints_set_fid(target_of(q, i)->file, fid_n(i + 1));
    for (uint32_t i = 0; i < 2000; i++)
        ck_assert_ptr_eq(hints_by_fid(fid_n(i + 1)), target_of(q, i)->file);
    hints_set_fid(target_of(q, 5)->file, fid_n(9999));
    ck_assert_ptr_null(hints_by_fid(fid_n(6)));
    end_queue();
    ck_assert_ptr_null(hints_by_fid(fid_n(9999)));
}
END_TEST

/* Epochs: an open is for the first of the target's entries. */
START_TEST(a_target_is_wanted_as_often_as_it_was_hinted)
{
    add_files(q, 2, 3);
    struct target *t = target_of(q, 0);
    for (uint32_t epoch = 0; epoch < 3; epoch++) {
        ck_assert_uint_eq(t->first, 2 * epoch);
        hints_opened(t);
        hints_opened(t); /* a second reader, at the same time */
        ck_assert_uint_eq(q->consumed, epoch);
        hints_done(q, t->first, false);
    }
    ck_assert_uint_eq(t->first, NO_ENTRY);
    ck_assert_uint_eq(q->head, 1);
    hints_opened(t); /* nothing is hinted any more */
    ck_assert_uint_eq(q->consumed, 3);
    end_queue();
}
END_TEST

START_TEST(what_its_reader_leaves_out_is_consumed)
{
    add_files(q, 2 * LATER_OPENED, 1);
    for (uint32_t i = 1; i < LATER_OPENED; i++)
        hints_opened(target_of(q, i));
    ck_assert_uint_eq(q->consumed, 0);
    hints_opened(target_of(q, LATER_OPENED));
    ck_assert_uint_eq(q->consumed, 1);
    ck_assert_uint_eq(target_of(q, 0)->first, NO_ENTRY);
    ck_assert_uint_eq(q->unopened, LATER_OPENED + 1);
    ck_assert_uint_eq(q->opened_later, 0);
    end_queue();
}
END_TEST

START_TEST(what_is_admitted_is_counted_until_it_is_not)
{
    add_files(q, 3, 1);
    struct target *t = target_of(q, 0);
    hints_admit(t, 1000);
    hints_set_life(t, LIFE_GONE);
    ck_assert(hints_step(t, LIFE_ADMIT) && hints_step(t, LIFE_HERE));
    ck_assert_uint_eq(sums_now().ahead, 1);
    ck_assert_uint_eq(sums_now().ahead_bytes, 1000);
    ck_assert_uint_eq(hints_bytes(target_of(q, 1)), 1000); /* the mean, as its size is not known */
    hints_admit(target_of(q, 1), 0);
    hints_admit(target_of(q, 2), 4000); /* the mean is another one now */
    ck_assert_uint_eq(sums_now().ahead_bytes, 6000);
    ck_assert_uint_eq(sums_now().absent, 2);
    ck_assert_uint_eq(q->absent, 5000);
    hints_done(q, 1, false);
    ck_assert_uint_eq(sums_now().ahead_bytes, 5000);
    ck_assert_uint_eq(q->absent, 4000);
    hints_set_life(target_of(q, 2), LIFE_WRITTEN);
    ck_assert_uint_eq(sums_now().unflushed, 4000);
    hints_step(target_of(q, 2), LIFE_FLUSH_WANTED);
    ck_assert_uint_eq(sums_now().unflushed, 0);
    end_queue();
}
END_TEST

START_TEST(the_store_hears_what_is_kept_and_what_is_not_read_again)
{
    struct hint_news n;
    struct queue *other = hints_queue_new();
    add_files(q, 2, 1);
    add_files(other, 2, 1);
    hints_tell(target_of(q, 0), NEWS_HINTED); /* nobody knows which file that is */
    ck_assert(!hints_next_news(&n));
    hints_set_fid(target_of(q, 0)->file, fid_n(1));
    hints_tell(target_of(q, 0), NEWS_HINTED);
    hints_tell(target_of(other, 0), NEWS_HINTED);
    ck_assert(hints_next_news(&n) && n.time == NEWS_HINTED && fid_eq(n.fid, fid_n(1)));
    ck_assert(hints_next_news(&n) && !hints_next_news(&n));
    hints_done(q, 0, false); /* the other queue still wants it */
    ck_assert(!hints_next_news(&n));
    hints_done(other, 0, false);
    ck_assert(hints_next_news(&n) && n.time == NEWS_NEVER);
    hints_queue_end(other);
    end_queue();
    ck_assert(!hints_next_news(&n));
}
END_TEST

static void news_is(struct fid fid, uint64_t off, uint64_t len, int time)
{
    struct hint_news n;
    ck_assert(hints_next_news(&n));
    ck_assert(fid_eq(n.fid, fid));
    ck_assert_uint_eq(n.off, off);
    ck_assert_uint_eq(n.len, len);
    ck_assert_int_eq((int)n.time, time);
}

static void add_ranges(const uint64_t (*range)[2], uint32_t n)
{
    body_begin(&b, 1, n, n);
    body_path(&b, "ranges");
    for (uint32_t i = 0; i < n; i++)
        body_target(&b, 0, range[i][0], range[i][1]);
    for (uint32_t i = 0; i < n; i++)
        body_entry(&b, i);
    ck_assert_int_eq(add(q), 0);
}

START_TEST(of_ranges_that_overlap_each_is_kept_as_long_as_it_is_wanted)
{
    struct hint_news n;
    add_ranges((const uint64_t[][2]){{0, 100}, {50, 100}, {60, 20}}, 3);
    hints_set_fid(target_of(q, 0)->file, fid_n(7));
    for (uint32_t i = 0; i < 3; i++) {
        hints_tell(target_of(q, i), NEWS_HINTED);
        ck_assert(hints_next_news(&n));
    }
    hints_tell(target_of(q, 2), NEWS_UNKNOWN);
    ck_assert_msg(!hints_next_news(&n), "the others have all of it");
    hints_tell(target_of(q, 0), NEWS_UNKNOWN);
    news_is(fid_n(7), 0, 100, NEWS_UNKNOWN);
    news_is(fid_n(7), 50, 100, NEWS_HINTED);
    ck_assert(!hints_next_news(&n));
    ck_assert(!hints_keep(fid_n(7), 0, 50));
    ck_assert(hints_keep(fid_n(7), 40, 51));
    end_queue();
}
END_TEST

START_TEST(a_file_that_loses_its_name_is_kept_no_more)
{
    struct hint_news n;
    add_files(q, 1, 1);
    struct target *t = target_of(q, 0);
    hints_set_fid(t->file, fid_n(1));
    ck_assert_msg(!hints_next_news(&n), "nothing was kept");
    hints_tell(t, NEWS_HINTED);
    news_is(fid_n(1), 0, INT64_MAX, NEWS_HINTED);
    hints_set_fid(t->file, fid_n(2));
    news_is(fid_n(1), 0, INT64_MAX, NEWS_UNKNOWN);
    ck_assert(!t->hinted);
    ck_assert(!hints_keep(fid_n(1), 0, 1));
    ck_assert(!hints_keep(fid_n(2), 0, 1));
    end_queue();
    ck_assert(!hints_next_news(&n));
}
END_TEST

START_TEST(what_has_left_is_not_ahead_and_has_its_turn_again)
{
    add_files(q, 3, 1);
    for (uint32_t i = 0; i < 3; i++) {
        struct target *t = target_of(q, i);
        hints_set_fid(t->file, fid_n(i + 1));
        hints_admit(t, 1000);
        hints_set_life(t, LIFE_AHEAD);
    }
    q->next = 3;
    outdated_range(fid_n(9), 0, 100);
    ck_assert_uint_eq(q->nahead, 3);
    outdated_range(fid_n(2), 0, 100);
    ck_assert_uint_eq(q->nahead, 2);
    ck_assert_uint_eq(q->nadmitted, 2);
    ck_assert_uint_eq(q->next, 1);
    ck_assert_int_eq(target_of(q, 1)->life, LIFE_GONE);
    end_queue();
}
END_TEST

/* Each epoch names it again. */
START_TEST(what_was_read_is_kept_for_its_next_entry)
{
    struct hint_news n;
    add_files(q, 3, 2);
    struct target *t = target_of(q, 1);
    hints_set_fid(t->file, fid_n(1));
    hints_admit(t, 1000);
    hints_set_life(t, LIFE_AHEAD);
    q->next = 2;
    hints_done(q, 1, false);
    news_is(fid_n(1), 0, INT64_MAX, NEWS_HINTED);
    ck_assert_uint_eq(q->kept, 1000);
    ck_assert_uint_eq(q->ahead, 0);
    ck_assert_uint_eq(far_before(q, NO_ENTRY), 4);
    hints_admit(t, 1000);
    ck_assert_uint_eq(q->kept, 0);
    hints_unadmit(t);
    ck_assert_uint_eq(q->kept, 1000);
    outdated_range(fid_n(1), 0, 100);
    news_is(fid_n(1), 0, INT64_MAX, NEWS_UNKNOWN);
    ck_assert_uint_eq(q->kept, 0);
    ck_assert_uint_eq(far_before(q, NO_ENTRY), NO_ENTRY);
    hints_opened(t);
    hints_done(q, 4, false); /* read without being admitted; and not again */
    ck_assert(hints_next_news(&n) && n.time == NEWS_NEVER);
    ck_assert_uint_eq(q->kept, 0);
    end_queue();
}
END_TEST

START_TEST(what_is_dirty_or_staged_is_not_counted_as_kept)
{
    add_files(q, 2, 1);
    struct target *t = target_of(q, 0);
    hints_set_fid(t->file, fid_n(1));
    t->bytes = 1000;
    hints_set_life(t, LIFE_WRITTEN);
    hints_tell(t, NEWS_HINTED);
    ck_assert_uint_eq(q->kept, 0);
    hints_step(t, LIFE_FLUSH);
    ck_assert_uint_eq(q->kept, 1000);
    hints_tell(t, NEWS_UNKNOWN);
    ck_assert_uint_eq(q->kept, 0);
    q->staged = true;
    hints_tell(t, NEWS_HINTED);
    ck_assert_uint_eq(q->kept, 0);
    ck_assert_uint_eq(far_before(q, NO_ENTRY), 0);
    end_queue();
}
END_TEST

/* Against a look at each entry, while some are given up, and some are read. */
START_TEST(the_farthest_that_is_kept_is_found_in_a_long_queue)
{
    enum { FILES = 1000 };
    add_files(q, FILES, 3);
    for (uint32_t i = 0; i < FILES; i++)
        hints_set_fid(target_of(q, i)->file, fid_n(i + 1));
    uint32_t rnd = 1;
    for (unsigned round = 0; round < 20000; round++) {
        rnd = rnd * 1103515245 + 12345;
        struct target *t = target_of(q, rnd >> 8 & 1023 ? (rnd >> 8) % FILES : 63);
        hints_tell(t, rnd >> 28 & 1 && t->first != NO_ENTRY ? NEWS_HINTED : NEWS_UNKNOWN);
        if (round % 7 == 0)
            hints_done(q, q->head < q->n ? q->head : 0, false);
        uint32_t end = round % 3 ? NO_ENTRY : (rnd >> 4) % q->n, i = MIN(end, q->n);
        while (i > q->head && !(target_of(q, i - 1)->hinted && target_of(q, i - 1)->first == i - 1))
            i--;
        ck_assert_uint_eq(far_before(q, end), i > q->head ? i - 1 : NO_ENTRY);
    }
    end_queue();
    for (struct hint_news n; hints_next_news(&n);)
        ;
}
END_TEST

START_TEST(what_is_ready_ends_at_the_first_that_is_not_here)
{
    add_files(q, 6, 1);
    const enum life life[6] = {LIFE_AHEAD, LIFE_INIT, LIFE_WRITTEN, LIFE_AHEAD, LIFE_GONE, LIFE_AHEAD};
    for (uint32_t i = 0; i < 6; i++)
        hints_set_life(target_of(q, i), life[i]);
    ck_assert_uint_eq(hints_ready(q), 3);
    hints_done(q, 2, false);
    ck_assert_uint_eq(hints_ready(q), 2);
    hints_set_life(target_of(q, 0), LIFE_READING);
    ck_assert_uint_eq(hints_ready(q), 0);
    hints_done(q, 0, false);
    ck_assert_uint_eq(hints_ready(q), 1);
    end_queue();
}
END_TEST

START_TEST(what_changes_elsewhere_is_not_ahead_and_leaves_first)
{
    struct hint_news n;
    add_files(q, 1, 1);
    struct target *t = target_of(q, 0);
    hints_set_fid(t->file, fid_n(1));
    hints_admit(t, 1000);
    hints_set_life(t, LIFE_AHEAD);
    hints_tell(t, NEWS_HINTED);
    ck_assert(hints_next_news(&n));
    t->file->looked_at = true;
    ck_assert(outdated_file(t->file));
    news_is(fid_n(1), 0, INT64_MAX, NEWS_NEVER);
    ck_assert_uint_eq(q->nahead, 0);
    ck_assert_int_eq(t->life, LIFE_GONE);
    ck_assert(hints_lacks(t));
    ck_assert(!outdated_file(t->file));
    end_queue();
    ck_assert_msg(!hints_next_news(&n), "its look had ended");
}
END_TEST

START_TEST(a_file_is_looked_at_as_long_as_any_queue_has_it_admitted)
{
    struct hint_news n;
    struct queue *other = hints_queue_new();
    add_files(q, 1, 1);
    add_files(other, 1, 1);
    hints_set_fid(target_of(q, 0)->file, fid_n(1));
    hints_admit(target_of(q, 0), 10);
    hints_admit(target_of(other, 0), 10);
    target_of(q, 0)->file->looked_at = true;
    hints_queue_end(other);
    ck_assert(!hints_next_news(&n));
    end_queue();
    ck_assert(hints_next_news(&n));
    ck_assert_int_eq((int)n.time, NEWS_NOT_LOOKED_AT);
    ck_assert(fid_eq(n.fid, fid_n(1)));
}
END_TEST

START_TEST(memory_is_bounded_and_all_or_nothing_is_added)
{
    uint32_t n = 0;
    add_files(q, 1, 1);
    body_begin(&b, 0, 0, 10000);
    for (uint32_t i = 0; i < 10000; i++)
        body_entry(&b, 0);
    while (!add(q))
        n++;
    ck_assert_uint_ge(n, 4); /* an entry takes 9 bytes and a bit, and half as many are made in advance */
    ck_assert_uint_eq(q->n, 10000 * n + 1);
    ck_assert_uint_le(sums_now().memory, LIMIT);
    ck_assert_int_eq(add(q), -ENOBUFS);
    end_queue();
    q = hints_queue_new();
    add_files(q, 10, 1); /* there is room again */
    end_queue();
}
END_TEST

START_TEST(a_queue_that_has_ended_stays_until_the_prefetcher_has_left_it)
{
    add_files(q, 1, 1);
    struct target *t = target_of(q, 0);
    hints_admit(t, 10);
    t->busy = true;
    q->busy = 1;
    hints_queue_end(q);
    ck_assert_uint_eq(sums_now().ahead_bytes, 0);
    ck_assert_uint_gt(sums_now().memory, 0);
    ck_assert_str_eq(t->file->path, "f0");
    hints_queue_left(q);
    ck_assert_uint_eq(sums_now().memory, 0);
}
END_TEST

START_TEST(distance_is_bytes_before_over_the_readers_rate)
{
    add_files(q, 100, 1);
    ck_assert_uint_eq(hints_before(q, 0), 0);
    hints_admit(target_of(q, 0), 1 << 20);
    ck_assert_uint_eq(hints_before(q, 10), 10u << 20);
    q->begun_ms = boot_ms() - 1000;
    hints_done(q, 0, false);
    ck_assert_uint_eq(hints_before(q, 11), 10u << 20);
    uint64_t ms = hints_distance(q, 11); /* 1 MiB a second */
    ck_assert(ms > 9000 && ms < 20000);
    end_queue();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("hints");
    TCase *t = add_case(s, "hints", setup, teardown, 30);
    tcase_add_test(t, a_path_is_one_file_for_all_queues);
    tcase_add_test(t, files_are_found_by_their_fid_as_long_as_they_have_it);
    tcase_add_test(t, a_target_is_wanted_as_often_as_it_was_hinted);
    tcase_add_test(t, what_its_reader_leaves_out_is_consumed);
    tcase_add_test(t, what_is_admitted_is_counted_until_it_is_not);
    tcase_add_test(t, the_store_hears_what_is_kept_and_what_is_not_read_again);
    tcase_add_test(t, of_ranges_that_overlap_each_is_kept_as_long_as_it_is_wanted);
    tcase_add_test(t, a_file_that_loses_its_name_is_kept_no_more);
    tcase_add_test(t, what_has_left_is_not_ahead_and_has_its_turn_again);
    tcase_add_test(t, what_was_read_is_kept_for_its_next_entry);
    tcase_add_test(t, what_is_dirty_or_staged_is_not_counted_as_kept);
    tcase_add_test(t, the_farthest_that_is_kept_is_found_in_a_long_queue);
    tcase_add_test(t, what_is_ready_ends_at_the_first_that_is_not_here);
    tcase_add_test(t, what_changes_elsewhere_is_not_ahead_and_leaves_first);
    tcase_add_test(t, a_file_is_looked_at_as_long_as_any_queue_has_it_admitted);
    tcase_add_test(t, memory_is_bounded_and_all_or_nothing_is_added);
    tcase_add_test(t, a_queue_that_has_ended_stays_until_the_prefetcher_has_left_it);
    tcase_add_test(t, distance_is_bytes_before_over_the_readers_rate);
    return run_suite(s);
}
