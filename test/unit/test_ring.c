/* The ring: a pure function of the members; shares near even; the minimum moves when a node
 * leaves. */
#include "placement/ring.h"

#include <check.h>
#include <stdlib.h>

#define KEYS 40000

static struct view *view_of(unsigned n, uint64_t left_out)
{
    struct view *v = xcalloc(1, sizeof(*v));

    v->members = xcalloc(n, sizeof(*v->members));
    for (unsigned i = 0; i < n; i++)
        if (i + 1 != left_out)
            v->members[v->nmembers++] =
                (struct member){.id = i + 1, .incarnation = 1, .weight = 100};
    return v;
}

static void free_view(struct view *v)
{
    free(v->members);
    free(v);
}

static struct fid key(unsigned i)
{
    return (struct fid){i * 0x9e3779b97f4a7c15u, i};
}

START_TEST(every_chunk_has_an_owner_and_distinct_successors)
{
    struct view *v = view_of(5, 0);
    struct ring *r = ring_new(v, RING_VNODES);

    for (unsigned i = 0; i < 1000; i++) {
        uint64_t a = ring_owner(r, key(i), i, 0), b = ring_owner(r, key(i), i, 1),
                 c = ring_owner(r, key(i), i, 2);

        ck_assert(a >= 1 && a <= 5 && b >= 1 && b <= 5 && c >= 1 && c <= 5);
        ck_assert(a != b && b != c && a != c);
    }
    ck_assert_uint_eq(ring_owner(r, key(1), 0, 5), 0);
    ring_free(r);
    free_view(v);
}
END_TEST

START_TEST(a_ring_without_members_owns_nothing)
{
    struct view v = {.number = 1};
    struct ring *r = ring_new(&v, RING_VNODES);

    ck_assert_uint_eq(ring_owner(r, key(1), 0, 0), 0);
    ck_assert_uint_eq(ring_home(r, key(1), 0), 0);
    ring_free(r);
}
END_TEST

START_TEST(shares_are_near_even_and_follow_the_weight)
{
    struct view *v = view_of(8, 0);
    struct ring *r;
    unsigned n[9] = {0};

    v->members[7].weight = 200;
    r = ring_new(v, 400);
    for (unsigned i = 0; i < KEYS; i++)
        n[ring_owner(r, key(i), 0, 0)]++;
    for (unsigned i = 1; i < 8; i++)
        ck_assert(n[i] > KEYS / 9 * 0.8 && n[i] < KEYS / 9 * 1.2);
    ck_assert(n[8] > KEYS / 9 * 1.6 && n[8] < KEYS / 9 * 2.4);
    ring_free(r);
    free_view(v);
}
END_TEST

START_TEST(a_leaving_node_moves_only_its_own_keys_to_its_next)
{
    struct view *v = view_of(6, 0), *w = view_of(6, 3);
    struct ring *before = ring_new(v, RING_VNODES), *after = ring_new(w, RING_VNODES);

    for (unsigned i = 0; i < KEYS; i++) {
        uint64_t a = ring_owner(before, key(i), 7, 0), b = ring_owner(after, key(i), 7, 0);

        ck_assert_uint_eq(b, a != 3 ? a : ring_owner(before, key(i), 7, 1));
    }
    ring_free(before);
    ring_free(after);
    free_view(v);
    free_view(w);
}
END_TEST

/* The wire and every node depend on it: these may never change. */
START_TEST(placement_is_the_same_for_ever)
{
    struct view *v = view_of(4, 0);
    struct ring *r = ring_new(v, RING_VNODES);
    uint64_t sum = 0;

    for (unsigned i = 0; i < 1000; i++)
        sum = sum * 31 + ring_owner(r, key(i), i, 0) * 5 + ring_home(r, key(i), 0);
    ck_assert_uint_eq(sum, 6682145271788414724u);
    ring_free(r);
    free_view(v);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ring");
    TCase *t = tcase_create("all");
    SRunner *run;
    int failed;

    tcase_add_test(t, every_chunk_has_an_owner_and_distinct_successors);
    tcase_add_test(t, a_ring_without_members_owns_nothing);
    tcase_add_test(t, shares_are_near_even_and_follow_the_weight);
    tcase_add_test(t, a_leaving_node_moves_only_its_own_keys_to_its_next);
    tcase_add_test(t, placement_is_the_same_for_ever);
    suite_add_tcase(s, t);
    run = srunner_create(s);
    srunner_run_all(run, CK_NORMAL);
    failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
