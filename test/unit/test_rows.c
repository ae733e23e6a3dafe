/* The rows of an owner: to which node an asker of a hot chunk is sent (placement/chunks/rows.h). */
#include <check.h>

#include "placement/chunks/rows.c"
#include "suite.h"

/* ---- the world around rows.c: chunk.c needs a store, but two of its functions do not ---- */

bool chunk_key_eq(const struct chunk_key *a, const struct chunk_key *b)
{
    return a->index == b->index && fid_eq(a->fid, b->fid) && version_eq(&a->version, &b->version);
}

uint64_t chunk_key_hash(const struct chunk_key *k)
{
    return k->fid.lo ^ k->index;
}

#define NOW 1000000u

static struct chunk_key chunk(uint64_t index)
{
    return (struct chunk_key){.fid = {1, 2}, .index = index, .version = {.size = 1 << 30}};
}
static const struct chunk_key *const hot = &(const struct chunk_key){.fid = {1, 2}, .version = {.size = 1 << 30}};

static uint64_t ask(struct rows *r, uint64_t node, uint64_t now_ms)
{
    return rows_ask(r, hot, node, now_ms);
}

/* ---- tests ---- */

/* All nodes of a view ask at once: each feeds two at most, and nobody waits for one that came later. */
START_TEST(a_hot_chunk_spreads_as_a_tree)
{
    static const unsigned sizes[] = {4, 8, 128, 1000};
    for (unsigned s = 0; s < 4; s++) {
        unsigned nodes = sizes[s], deepest = 0, fed_by[1001] = {0}, depth[1001] = {0};
        struct rows *r = rows_new(8, nodes);
        for (uint64_t node = 1; node < nodes; node++) {
            uint64_t to = ask(r, node, NOW);
            ck_assert_uint_lt(to, node); /* 0: the owner */
            ck_assert_uint_le(++fed_by[to], ROW_FEEDS);
            depth[node] = depth[to] + 1;
            deepest = MAX(deepest, depth[node]);
        }
        ck_assert_uint_le(rows_places(r, hot), ROW_PLACES);
        unsigned log2 = 0;
        while (1u << log2 < nodes)
            log2++;
        ck_assert_uint_le(deepest, 3 * log2 / 2 + nodes / ROW_PLACES); /* a tree, and no chain */
        rows_free(r);
    }
}
END_TEST

START_TEST(who_comes_later_is_fed_by_the_owner)
{
    struct rows *r = rows_new(8, 8);
    ck_assert_uint_eq(ask(r, 1, NOW), 0);
    ck_assert_uint_eq(ask(r, 2, NOW), 0);
    ck_assert_uint_ne(ask(r, 3, NOW + FED_MS - 1), 0);
    ck_assert_uint_eq(ask(r, 4, NOW + FED_MS), 0);
    rows_free(r);
}
END_TEST

START_TEST(who_asks_again_is_answered_by_the_owner)
{
    struct rows *r = rows_new(8, 8);
    for (uint64_t node = 1; node < 8; node++)
        ask(r, node, NOW);
    for (uint64_t node = 1; node < 8; node++)
        ck_assert_uint_eq(ask(r, node, NOW), 0);
    ck_assert_uint_eq(rows_places(r, hot), 7);
    rows_free(r);
}
END_TEST

START_TEST(a_place_that_had_nothing_is_none_any_more)
{
    struct rows *r = rows_new(8, 8);
    ask(r, 1, NOW);
    ask(r, 2, NOW);
    uint64_t to = ask(r, 3, NOW);
    ck_assert(to == 1 || to == 2);
    rows_failed(r, hot, 3, to, NOW);
    ck_assert_uint_eq(rows_places(r, hot), 2); /* the other one, and 3 */
    for (uint64_t node = 4; node < 8; node++)
        ck_assert_uint_ne(ask(r, node, NOW), to);
    rows_free(r);
}
END_TEST

START_TEST(news_say_who_has_it_and_who_let_it_go)
{
    struct rows *r = rows_new(8, 1); /* one group */
    ask(r, 1, NOW);
    ask(r, 2, NOW);
    rows_has(r, hot, 2);
    ck_assert_uint_eq(ask(r, 3, NOW), 2); /* and not 1, which is getting it */
    rows_gone(r, hot->fid, hot->index, 1);
    rows_gone(r, hot->fid, hot->index, 3);
    ck_assert_uint_eq(rows_places(r, hot), 1);
    ck_assert_uint_eq(ask(r, 4, NOW), 2);
    rows_has(r, &(struct chunk_key){.fid = {7, 7}}, 1); /* of a chunk without a row, or of no place: nothing */
    rows_has(r, hot, 9);
    ck_assert_uint_eq(rows_count(r), 1);
    rows_free(r);
}
END_TEST

/* Two nodes of each group have it: who comes goes to its own group. */
START_TEST(the_own_group_comes_first)
{
    unsigned nodes = 16, n_of[4] = {0};
    struct rows *r = rows_new(8, nodes);
    for (uint64_t node = 1; node < 1000; node++)
        if (rows_group(node, nodes) < 4 && n_of[rows_group(node, nodes)]++ < 2) {
            ck_assert_uint_eq(ask(r, node, NOW + node * FED_MS), 0); /* so nobody was sent anywhere yet */
            rows_has(r, hot, node);
        }
    for (unsigned g = 0; g < 4; g++)
        ck_assert_uint_gt(n_of[g], 100);
    uint64_t later = NOW + 2000 * FED_MS;
    unsigned seen = 0;
    for (uint64_t node = 2000; seen < 4; node++) {
        uint64_t to = ask(r, node, later);
        if (to)
            ck_assert_uint_eq(rows_group(to, nodes), rows_group(node, nodes));
        seen++;
    }
    rows_free(r);
}
END_TEST

/* Whoever asks first for each of many chunks need not feed more than the others. */
START_TEST(all_feed_alike)
{
    unsigned fed_by[8] = {0};
    struct rows *r = rows_new(1000, 1);
    for (uint64_t i = 0; i < 600; i++)
        for (uint64_t node = 1; node < 8; node++) {
            struct chunk_key key = chunk(i);
            fed_by[rows_ask(r, &key, node, NOW + i)]++;
        }
    for (uint64_t node = 1; node < 7; node++) /* the last one never has it for another */
        ck_assert_uint_le(fed_by[node], 600);
    rows_free(r);
}
END_TEST

START_TEST(rows_are_bounded_and_the_oldest_goes)
{
    struct rows *r = rows_new(4, 8);
    for (uint64_t i = 0; i < 100; i++) {
        struct chunk_key key = chunk(i);
        rows_ask(r, &key, 1, NOW);
        rows_ask(r, hot, 2 + i % 3, NOW); /* used all the time */
        ck_assert_uint_le(rows_count(r), 4);
    }
    ck_assert_uint_gt(rows_places(r, hot), 0);
    ck_assert_uint_eq(rows_places(r, &(struct chunk_key){.fid = {1, 2}, .index = 3, .version = hot->version}), 0);
    rows_free(r);
}
END_TEST

/* Once the owner has let its copy go, nobody is answered by it, until the caretaker has let it go, too. */
START_TEST(who_keeps_it_feeds_in_the_owners_place)
{
    struct rows *r = rows_new(8, 8);
    ck_assert_uint_eq(ask(r, 1, NOW), 0);
    ck_assert_uint_eq(rows_holder(r, hot, NOW), 0); /* it is getting it */
    rows_has(r, hot, 1);
    ck_assert_uint_eq(rows_holder(r, hot, NOW), 1);
    ck_assert_uint_eq(rows_caretaker(r, hot), 0);
    rows_set_caretaker(r, hot, 1);
    ck_assert_uint_eq(rows_caretaker(r, hot), 1);
    ck_assert_uint_eq(rows_caretaker(r, &(struct chunk_key){.fid = {1, 2}}), 1); /* of any version */
    ck_assert_uint_eq(rows_caretaker(r, &(struct chunk_key){.fid = {1, 2}, .version = {.size = 5}}), 0);
    for (uint64_t node = 2; node < 8; node++)
        ck_assert_uint_ne(ask(r, node, NOW + node * FED_MS), 0);
    ck_assert_uint_ne(ask(r, 3, NOW + 100 * FED_MS), 3); /* it asks again */
    rows_gone(r, hot->fid, hot->index, 1);
    ck_assert_uint_eq(rows_caretaker(r, hot), 0);
    ck_assert_uint_eq(ask(r, 9, NOW + 200 * FED_MS), 0);
    rows_free(r);
}
END_TEST

START_TEST(a_caretaker_that_asks_has_lost_it)
{
    struct rows *r = rows_new(8, 8);
    rows_set_caretaker(r, hot, 1);
    ck_assert_uint_eq(ask(r, 1, NOW), 0);
    ck_assert_uint_eq(rows_caretaker(r, hot), 0);
    rows_set_caretaker(r, hot, 2);
    rows_failed(r, hot, 3, 2, NOW);
    ck_assert_uint_eq(rows_caretaker(r, hot), 0);
    rows_set_caretaker(r, hot, 4);
    rows_set_caretaker(r, hot, 0); /* the owner has taken it back */
    ck_assert_uint_eq(rows_caretaker(r, hot), 0);
    rows_free(r);
}
END_TEST

/* What left the owner's cache before anybody said that it keeps it. */
START_TEST(who_has_what_the_owner_lost_is_asked)
{
    struct rows *r = rows_new(8, 8);
    ask(r, 1, NOW);
    rows_owner_gone(r, hot->fid, hot->index, NOW);
    ck_assert_uint_eq(rows_caretaker(r, hot), 0); /* nobody is known to have it */
    rows_has(r, hot, 1);
    rows_owner_gone(r, hot->fid, hot->index + 1, NOW);
    ck_assert_uint_eq(rows_caretaker(r, hot), 0);
    rows_owner_gone(r, hot->fid, hot->index, NOW);
    ck_assert_uint_eq(rows_caretaker(r, hot), 1);
    ck_assert_uint_eq(ask(r, 2, NOW), 1);
    rows_free(r);
}
END_TEST

/* A flood of calls in no order, of few nodes and chunks: the bounds hold, and nobody is sent to itself. */
START_TEST(nonsense_breaks_no_bound)
{
    struct rows *r = rows_new(16, 64);
    uint64_t draw = 1, now = NOW;
    for (unsigned i = 0; i < 200000; i++) {
        draw = draw * 6364136223846793005u + 1442695040888963407u;
        uint64_t node = 1 + (draw >> 33) % 40, other = 1 + (draw >> 40) % 40;
        struct chunk_key key = chunk((draw >> 50) % 30);
        key.version.mtime_ns = (int64_t)(draw >> 60) % 2;
        now += (draw >> 20) % 50;
        switch ((draw >> 56) % 10) {
        case 8: rows_set_caretaker(r, &key, draw >> 60 ? other : 0); break;
        case 9: rows_owner_gone(r, key.fid, key.index, now); break;
        case 0: rows_failed(r, &key, node, other, now); break;
        case 1: rows_has(r, &key, node); break;
        case 2: rows_gone(r, key.fid, key.index, node); break;
        default: ck_assert_uint_ne(rows_ask(r, &key, node, now), node);
        }
        ck_assert_uint_le(rows_places(r, &key), ROW_PLACES);
        ck_assert_uint_le(rows_count(r), 16);
    }
    rows_free(r);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("all");
    tcase_add_test(t, a_hot_chunk_spreads_as_a_tree);
    tcase_add_test(t, who_comes_later_is_fed_by_the_owner);
    tcase_add_test(t, who_asks_again_is_answered_by_the_owner);
    tcase_add_test(t, a_place_that_had_nothing_is_none_any_more);
    tcase_add_test(t, news_say_who_has_it_and_who_let_it_go);
    tcase_add_test(t, the_own_group_comes_first);
    tcase_add_test(t, all_feed_alike);
    tcase_add_test(t, who_keeps_it_feeds_in_the_owners_place);
    tcase_add_test(t, a_caretaker_that_asks_has_lost_it);
    tcase_add_test(t, who_has_what_the_owner_lost_is_asked);
    tcase_add_test(t, rows_are_bounded_and_the_oldest_goes);
    tcase_add_test(t, nonsense_breaks_no_bound);
    return run_case("rows", t);
}
