/* Locks on one file: conflicts, splitting, joining, conversion; against a byte-by-byte model. */
#include "placement/claims/lock_table.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"

static struct held_lock make(uint64_t owner, uint8_t type, uint64_t start, uint64_t end)
{
    return (struct held_lock){.node = 1,
                              .incarnation = 1,
                              .owner = owner,
                              .kind = LOCK_FCNTL,
                              .type = type,
                              .start = start,
                              .end = end};
}

static unsigned length(const struct held_lock *l)
{
    unsigned n = 0;

    for (; l; l = l->next)
        n++;
    return n;
}

START_TEST(a_late_unlock_leaves_what_was_set_after_it)
{
    struct held_lock *list = NULL, w = make(1, HELD_WRITE, 0, 9), none = make(1, HELD_NONE, 0, 20);

    w.number = 5;
    lock_apply(&list, &w);
    none.number = 4;
    ck_assert(!lock_apply(&list, &none));
    ck_assert_uint_eq(length(list), 1);
    w.start = 5; /* it is joined with what is there, and asked for again */
    w.end = 15;
    w.number = 7;
    lock_apply(&list, &w);
    none.number = 6;
    ck_assert(!lock_apply(&list, &none));
    none.number = 8;
    ck_assert(lock_apply(&list, &none));
    ck_assert_ptr_null(list);
    w.number = 9;
    lock_apply(&list, &w);
    none.number = 0; /* of a list that knows no numbers */
    ck_assert(lock_apply(&list, &none));
    ck_assert_ptr_null(list);
}
END_TEST

START_TEST(a_request_weakens_nothing)
{
    struct held_lock *list = NULL, w = make(1, HELD_WRITE, 3, 5), r = make(1, HELD_READ, 0, 9),
                     other = make(2, HELD_READ, 4, 4);

    lock_apply(&list, &w);
    ck_assert(lock_strengthen(&list, &r));
    ck_assert_ptr_nonnull(lock_conflict(list, &other)); /* the write lock is still there */
    other.start = 0;
    other.end = 2;
    ck_assert_ptr_null(lock_conflict(list, &other));
    other.type = HELD_WRITE;
    ck_assert_ptr_nonnull(lock_conflict(list, &other)); /* and the read lock around it */
    other.start = other.end = 9;
    ck_assert_ptr_nonnull(lock_conflict(list, &other));
    ck_assert_uint_eq(length(list), 3);
    ck_assert(!lock_strengthen(&list, &r));
    ck_assert(lock_weaken(&list, &r)); /* when it is certain */
    ck_assert_uint_eq(length(list), 1);
    w.number = 7;
    ck_assert(lock_strengthen(&list, &w));
    ck_assert_uint_eq(length(list), 3);
    r.number = 6;
    ck_assert(!lock_weaken(&list, &r)); /* older than the write lock */
    r.number = 8;
    ck_assert(lock_weaken(&list, &r));
    ck_assert_uint_eq(length(list), 1);
    lock_list_free(&list);
}
END_TEST

START_TEST(readers_share_and_writers_do_not)
{
    struct held_lock *list = NULL, r1 = make(1, HELD_READ, 0, 9), r2 = make(2, HELD_READ, 5, 20),
                     w = make(3, HELD_WRITE, 9, 9);

    lock_apply(&list, &r1);
    ck_assert_ptr_null(lock_conflict(list, &r2));
    ck_assert_ptr_nonnull(lock_conflict(list, &w));
    w.start = 10;
    w.end = 10;
    ck_assert_ptr_null(lock_conflict(list, &w));
    lock_list_free(&list);
}
END_TEST

START_TEST(the_same_owner_on_another_node_is_another_holder)
{
    struct held_lock *list = NULL, a = make(1, HELD_WRITE, 0, 9), b = a;

    lock_apply(&list, &a);
    b.node = 2;
    ck_assert_ptr_nonnull(lock_conflict(list, &b));
    b = a;
    b.incarnation = 2;
    ck_assert_ptr_nonnull(lock_conflict(list, &b));
    b = a;
    b.kind = LOCK_FLOCK;
    ck_assert_ptr_null(lock_conflict(list, &b));
    lock_list_free(&list);
}
END_TEST

START_TEST(unlocking_the_middle_leaves_two)
{
    struct held_lock *list = NULL, w = make(1, HELD_WRITE, 0, UINT64_MAX),
                     none = make(1, HELD_NONE, 100, 199);

    lock_apply(&list, &w);
    ck_assert(lock_apply(&list, &none));
    ck_assert_uint_eq(length(list), 2);
    none = make(2, HELD_WRITE, 150, 150);
    ck_assert_ptr_null(lock_conflict(list, &none));
    none.start = none.end = 99;
    ck_assert_ptr_nonnull(lock_conflict(list, &none));
    none.start = none.end = 200;
    ck_assert_ptr_nonnull(lock_conflict(list, &none));
    none.start = 0;
    ck_assert_uint_eq(lock_conflict(list, &none)->start, 0); /* F_GETLK names the first */
    lock_list_free(&list);
}
END_TEST

START_TEST(neighbours_of_one_type_join)
{
    struct held_lock *list = NULL, a = make(1, HELD_READ, 0, 9), b = make(1, HELD_READ, 20, 29),
                     c = make(1, HELD_READ, 10, 19);

    lock_apply(&list, &a);
    lock_apply(&list, &b);
    ck_assert_uint_eq(length(list), 2);
    lock_apply(&list, &c);
    ck_assert_uint_eq(length(list), 1);
    ck_assert_uint_eq(list->start, 0);
    ck_assert_uint_eq(list->end, 29);
    ck_assert(!lock_apply(&list, &c));
    lock_list_free(&list);
}
END_TEST

/* What each byte is for each of two owners, by the table; true: one is named twice. */
static bool look_at(const struct held_lock *list, uint8_t seen[2][24])
{
    bool twice = false;

    memset(seen, HELD_NONE, 2 * 24);
    for (const struct held_lock *h = list; h; h = h->next)
        for (uint64_t b = h->start; b <= h->end; b++) {
            twice |= seen[h->owner][b] != HELD_NONE;
            seen[h->owner][b] = h->type;
        }
    return twice;
}

/* Two owners on 24 bytes: what each byte is, by the table and by an array. */
START_TEST(random_locks_are_those_of_the_model)
{
    struct held_lock *list = NULL;
    uint8_t model[2][24];

    srand(7);
    for (int o = 0; o < 2; o++)
        for (int b = 0; b < 24; b++)
            model[o][b] = HELD_NONE;
    for (int step = 0; step < 20000; step++) {
        int o = rand() % 2;
        struct held_lock l = make(o, rand() % 3, rand() % 24, 0);
        bool conflict = false;

        l.end = l.start + rand() % (24 - l.start);
        for (uint64_t b = l.start; b <= l.end; b++)
            conflict |= l.type != HELD_NONE && model[!o][b] != HELD_NONE &&
                        (l.type == HELD_WRITE || model[!o][b] == HELD_WRITE);
        ck_assert_int_eq(l.type != HELD_NONE && lock_conflict(list, &l) != NULL, conflict);
        if (conflict)
            continue;
        lock_apply(&list, &l);
        for (uint64_t b = l.start; b <= l.end; b++)
            model[o][b] = l.type;
        uint8_t seen[2][24];
        bool twice = look_at(list, seen);
        ck_assert(!twice);
        ck_assert_mem_eq(seen, model, sizeof(model));
    }
    lock_list_free(&list);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("all");

    tcase_add_test(t, a_request_weakens_nothing);
    tcase_add_test(t, a_late_unlock_leaves_what_was_set_after_it);
    tcase_add_test(t, readers_share_and_writers_do_not);
    tcase_add_test(t, the_same_owner_on_another_node_is_another_holder);
    tcase_add_test(t, unlocking_the_middle_leaves_two);
    tcase_add_test(t, neighbours_of_one_type_join);
    tcase_add_test(t, random_locks_are_those_of_the_model);
    return run_case("lock_table", t);
}
