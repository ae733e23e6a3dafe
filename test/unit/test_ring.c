/* The ring: a pure function of the members and their weights; shares follow the weights; the minimum
 * moves when nodes leave and join; looking up costs the same whatever the number of nodes. */
#include "placement/ring/ring.h"
#include "transport/view.h"

#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "suite.h"

#define KEYS 20000

static const unsigned sizes[] = {1, 2, 8, 40};
#define N_SIZES ((int)(sizeof(sizes) / sizeof(sizes[0])))

/* Nodes 1 to n, but those in left_out. */
static struct view *view_without(unsigned n, const unsigned *left_out, unsigned nout)
{
    struct view *v = xcalloc(1, sizeof(*v));
    v->members = xcalloc(n, sizeof(*v->members));
    for (unsigned i = 1; i <= n; i++) {
        bool out = false;
        for (unsigned j = 0; j < nout; j++)
            out = out || left_out[j] == i;
        if (!out)
            v->members[v->nmembers++] = (struct member){.id = i, .incarnation = 1, .weight = 1000};
    }
    return v;
}

static struct view *view_of(unsigned n)
{
    return view_without(n, NULL, 0);
}

static struct fid key(unsigned i)
{
    return (struct fid){i * 0x9e3779b97f4a7c15u, i};
}

START_TEST(every_chunk_has_an_owner_and_distinct_successors)
{
    unsigned n = sizes[_i];
    struct view *v = view_of(n);
    struct ring *r = ring_new(v);
    for (unsigned i = 0; i < 1000; i++) {
        uint64_t seen = 0;
        for (unsigned k = 0; k < n && k < SLOT_ORDER_MAX; k++) {
            uint64_t id = ring_owner(r, key(i), i, k);
            ck_assert(id >= 1 && id <= n && !(seen >> id & 1));
            seen |= UINT64_C(1) << id;
        }
    }
    ck_assert_uint_eq(ring_owner(r, key(1), 0, n), 0);
    ck_assert_uint_eq(ring_owner(r, key(1), 0, SLOT_ORDER_MAX), 0);
    ring_free(r);
    view_free(v);
}
END_TEST

START_TEST(a_ring_without_members_owns_nothing)
{
    struct view v = {.number = 1};
    struct ring *r = ring_new(&v);
    ck_assert_uint_eq(ring_owner(r, key(1), 0, 0), 0);
    ck_assert_uint_eq(ring_home(r, key(1), 0), 0);
    ring_free(r);
}
END_TEST

START_TEST(the_table_and_the_slots_say_the_same)
{
    unsigned n = sizes[_i];
    struct view *v = view_of(n);
    for (unsigned i = 0; i < n; i++)
        v->members[i].weight = 1 + i * i * i * 1000; /* very uneven */
    struct ring *r = ring_new(v);
    struct slots *s = slots_new(v->members, n);
    for (unsigned i = 0; i < KEYS; i++)
        for (unsigned k = 0; k < 2 && k < n; k++) {
            uint64_t place = ring_place(key(i), 3);
            ck_assert_uint_eq(ring_node(r, place, k), v->members[slots_nth(s, place, k)].id);
        }
    slots_free(s);
    ring_free(r);
    view_free(v);
}
END_TEST

/* Of random places of a view, how many are each member's. */
static void count_owned(const struct view *v, unsigned *n)
{
    struct ring *r = ring_new(v);
    for (unsigned i = 0; i < KEYS; i++)
        n[ring_owner(r, key(i), 0, 0)]++;
    ring_free(r);
}

START_TEST(shares_follow_the_weights)
{
    static const uint32_t weights[][4] = {
        {1, 1, 1, 1}, {1000, 2000, 1000, 4000}, {1, 2, 3, 4}, {WEIGHT_MAX, WEIGHT_MAX, 1, 1}};
    const uint32_t *w = weights[_i];
    unsigned n = 24, hits[25] = {0};
    double sum = 0;
    struct view *v = view_of(n);
    for (unsigned i = 0; i < n; i++)
        sum += v->members[i].weight = w[i % 4];
    count_owned(v, hits);
    for (unsigned i = 0; i < n; i++) {
        double fair = (double)KEYS * w[i % 4] / sum, by_chance = sqrt(fair) + 1;
        ck_assert_msg(fabs(hits[i + 1] - fair) < 5 * by_chance, "%u of %u: %u for %.0f", i, n,
                      hits[i + 1], fair);
    }
    view_free(v);
}
END_TEST

/* By the first visits to all slots: shares of the ring, not of samples. */
START_TEST(shares_of_1024_nodes_are_within_a_tenth)
{
    unsigned n = 1024, *slots = xcalloc(n, sizeof(*slots));
    struct view *v = view_of(n);
    struct slots *s = slots_new(v->members, n);
    static visit_t first[BLOCK_SLOTS], second[BLOCK_SLOTS];
    for (uint32_t b = 0; b < BLOCKS; b++) {
        slots_first_two(s, b, first, second);
        for (uint32_t i = 0; i < BLOCK_SLOTS; i++)
            slots[visit_member(first[i])]++;
    }
    for (unsigned i = 0; i < n; i++)
        ck_assert(slots[i] > SLOTS / n * 0.9 && slots[i] < SLOTS / n * 1.1);
    slots_free(s);
    view_free(v);
    free(slots);
}
END_TEST

/* The order of what is left is as it was, at every place and to every depth. */
static void check_order(const struct ring *before, const struct ring *after, unsigned n,
                        const unsigned *out, unsigned nout)
{
    for (unsigned i = 0; i < KEYS / 4; i++) {
        unsigned k = 0;
        for (unsigned j = 0; j < MIN(n, (unsigned)SLOT_ORDER_MAX); j++) {
            uint64_t id = ring_owner(before, key(i), 7, j);
            bool left = false;
            for (unsigned o = 0; o < nout; o++)
                left = left || out[o] == id;
            if (!left)
                ck_assert_uint_eq(ring_owner(after, key(i), 7, k++), id);
        }
    }
}

START_TEST(who_leaves_drops_out_of_the_orders_and_nothing_else_moves)
{
    static const unsigned out[] = {3, 1, 7};
    static const unsigned n[] = {4, 9, 12};
    for (unsigned nout = 1; nout <= 3; nout += 2) {
        struct view *v = view_of(n[_i]), *w = view_without(n[_i], out, nout);
        struct ring *before = ring_new(v), *after = ring_new(w);
        check_order(before, after, n[_i], out, nout);
        ring_free(before);
        ring_free(after);
        view_free(v);
        view_free(w);
    }
}
END_TEST

/* One that joins with another weight: the mean of the weights changes, and nothing moves but to
 * it. */
START_TEST(who_joins_takes_its_share_and_nothing_else_moves)
{
    unsigned n = sizes[_i], taken = 0;
    struct view *v = view_of(n), *w = view_of(n + 1);
    w->members[n].weight = 3000;
    struct ring *before = ring_new(v), *after = ring_new(w);
    for (unsigned i = 0; i < KEYS; i++) {
        uint64_t id = ring_owner(after, key(i), 7, 0), was = ring_owner(before, key(i), 7, 0);
        if (id == n + 1) {
            taken++;
            ck_assert_uint_eq(ring_owner(after, key(i), 7, 1), was);
        } else {
            ck_assert_uint_eq(id, was);
        }
    }
    double fair = KEYS * 3.0 / (n + 3);
    ck_assert_msg(fabs(taken - fair) < 5 * sqrt(fair), "%u for %.0f", taken, fair);
    ring_free(before);
    ring_free(after);
    view_free(v);
    view_free(w);
}
END_TEST

/* Every node depends on it: where these change, so does the major version of the protocol
 * (docs/wire.md). */
START_TEST(placement_is_the_same_for_ever)
{
    static const struct {
        unsigned n;
        uint64_t sum;
    } golden[] = {{4, 6860142154971733335u}, {100, 13261490692726485092u}};
    struct view *v = view_of(golden[_i].n);
    for (unsigned i = 0; i < v->nmembers; i++)
        v->members[i].weight = 1 + i * 1000;
    struct ring *r = ring_new(v);
    uint64_t sum = 0;
    for (unsigned i = 0; i < 1000; i++)
        for (unsigned k = 0; k < 3; k++)
            sum = sum * 31 + ring_owner(r, key(i), i, k) * 5 + ring_home(r, key(i), k);
    ck_assert_uint_eq(sum, golden[_i].sum);
    ring_free(r);
    view_free(v);
}
END_TEST

/* ---- what it costs ---- */

static double best_ns(const struct ring *r)
{
    double best = INFINITY;
    for (unsigned round = 0; round < 20; round++) {
        struct timespec a, b;
        uint64_t last = 0;
        clock_gettime(CLOCK_MONOTONIC, &a);
        for (unsigned i = 0; i < KEYS; i++) /* each waits for the one before */
            last = ring_owner(r, key(i + !last), 0, 0);
        clock_gettime(CLOCK_MONOTONIC, &b);
        ck_assert(last);
        best = fmin(best,
                    ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / KEYS);
    }
    return best;
}

/* The entries are the same ones; the nodes' ids may be in a slower cache. */
START_TEST(a_lookup_costs_the_same_on_10_nodes_and_on_1000)
{
    struct view *v = view_of(10), *w = view_of(1000);
    struct ring *few = ring_new(v), *many = ring_new(w);
    double few_ns = best_ns(few), many_ns = best_ns(many);
    ck_assert_msg(many_ns < 4 * few_ns + 20, "%.0f ns, %.0f ns", few_ns, many_ns);
    ring_free(few);
    ring_free(many);
    view_free(v);
    view_free(w);
}
END_TEST

/* ---- the rings of views ---- */

#define CHANGES 5

static struct view *changes[CHANGES];
static _Atomic bool ended;

/* Looks up in rings whose tables are made, and taken, meanwhile. */
static void *look_up_often(void *arg)
{
    struct ring *right[2] = {ring_new(changes[0]), ring_new(changes[1])};
    uint64_t n = (uint64_t)(uintptr_t)arg;
    for (unsigned i = 0; !ended || i < KEYS; i++, n++)
        for (unsigned k = 0; k < 2; k++)
            ck_assert_uint_eq(ring_owner(ring_of(changes[n % 2]), key(i), 0, k),
                              ring_owner(right[n % 2], key(i), 0, k));
    ring_free(right[0]);
    ring_free(right[1]);
    return NULL;
}

static void begin_view(unsigned i)
{
    changes[i] = view_of(20 + i);
    changes[i]->number = i + 1;
    const struct ring *r = ring_of(changes[i]);
    ck_assert_ptr_eq(ring_of(changes[i]), r);
    ck_assert(!ring_has_table(r));
    while (!ring_has_table(r)) /* a thread makes it when it was used enough */
        ck_assert_uint_eq(ring_owner(r, key(1), 0, 0), ring_owner(r, key(1), 0, 0));
}

START_TEST(rings_of_older_views_are_right_while_newer_ones_take_their_tables)
{
    pthread_t threads[2];
    begin_view(0);
    begin_view(1);
    for (uintptr_t i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, look_up_often, (void *)i);
    for (unsigned i = 2; i < CHANGES; i++)
        begin_view(i);
    ended = true;
    for (unsigned i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < CHANGES; i++)
        ck_assert_int_eq(ring_has_table(ring_of(changes[i])), i + 2 >= CHANGES);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, every_chunk_has_an_owner_and_distinct_successors, 0, N_SIZES);
    tcase_add_test(t, a_ring_without_members_owns_nothing);
    tcase_add_loop_test(t, the_table_and_the_slots_say_the_same, 0, N_SIZES);
    tcase_add_loop_test(t, shares_follow_the_weights, 0, 4);
    tcase_add_test(t, shares_of_1024_nodes_are_within_a_tenth);
    tcase_add_loop_test(t, who_leaves_drops_out_of_the_orders_and_nothing_else_moves, 0, 3);
    tcase_add_loop_test(t, who_joins_takes_its_share_and_nothing_else_moves, 0, N_SIZES);
    tcase_add_loop_test(t, placement_is_the_same_for_ever, 0, 2);
    tcase_add_test(t, a_lookup_costs_the_same_on_10_nodes_and_on_1000);
    tcase_add_test(t, rings_of_older_views_are_right_while_newer_ones_take_their_tables);
    return run_case("ring", t);
}
