/* test_insertion.c - which policy is taken, and what it hits, on traces of uses: a cache as eviction.c
 * keeps one, of names only. */
#include "placement/store/insertion.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"

#define CACHE 1000
#define NAMES 100000

/* ---- a cache of names ---- */

enum { ABSENT, FRESH, OTHER };

/* Rings that are long enough never to come round; what leaves the middle of one stays as a hole. */
struct line {
    int first, end, n;
    uint32_t name[2 * 4 * NAMES];
};

static struct {
    bool chooses; /* else by use, whatever the trials say */
    struct insertion insertion;
    int state[NAMES], place[NAMES];
    struct line fresh, others;
    unsigned hits, uses;
} cache;

#define HOLE UINT32_MAX

static void line_clear(struct line *l)
{
    l->first = l->end = 4 * NAMES;
    l->n = 0;
}

static void take(struct line *l, uint32_t name)
{
    l->name[cache.place[name]] = HOLE;
    l->n--;
    while (l->first < l->end && l->name[l->first] == HOLE)
        l->first++;
}

static void put(struct line *l, uint32_t name, bool first)
{
    cache.place[name] = first ? --l->first : l->end++;
    ck_assert_int_ge(l->first, 0);
    ck_assert_int_lt(l->end, 8 * NAMES);
    l->name[cache.place[name]] = name;
    l->n++;
}

static void make_room(void)
{
    insertion_full(&cache.insertion, CACHE);
    struct line *l = cache.others.n ? &cache.others : &cache.fresh;
    uint32_t name = l->name[l->first];
    take(l, name);
    cache.state[name] = ABSENT;
}

static uint64_t key_of(uint32_t name)
{
    uint64_t k = (name + 1) * UINT64_C(0x9e3779b97f4a7c15);
    return (k ^ k >> 29) * UINT64_C(0xbf58476d1ce4e5b9) >> 7;
}

static void use(uint32_t name)
{
    insertion_use(&cache.insertion, key_of(name));
    cache.uses++;
    cache.hits += cache.state[name] != ABSENT;
    if (cache.state[name] == OTHER) {
        take(&cache.others, name);
        put(&cache.others, name, false);
    }
    if (cache.state[name] != ABSENT)
        return;
    if (cache.fresh.n + cache.others.n == CACHE)
        make_room();
    put(&cache.fresh, name, false);
    cache.state[name] = FRESH;
    while (cache.fresh.n > (int)insertion_fresh(CACHE)) {
        uint32_t old = cache.fresh.name[cache.fresh.first];
        take(&cache.fresh, old);
        put(&cache.others, old, insertion_is_first(&cache.insertion) && cache.chooses);
        cache.state[old] = OTHER;
    }
}

static void start(bool chooses)
{
    memset(cache.state, 0, sizeof(cache.state));
    line_clear(&cache.fresh);
    line_clear(&cache.others);
    insertion_start(&cache.insertion);
    cache.chooses = chooses;
    cache.hits = cache.uses = 0;
    srandom(7);
}

/* ---- traces ---- */

static void epochs(uint32_t files, unsigned n)
{
    uint32_t *order = calloc(files, sizeof(*order));
    for (uint32_t i = 0; i < files; i++)
        order[i] = i;
    while (n--) {
        for (uint32_t i = files - 1; i; i--) {
            uint32_t other = (uint32_t)random() % (i + 1), was = order[i];
            order[i] = order[other];
            order[other] = was;
        }
        for (uint32_t i = 0; i < files; i++)
            use(order[i]);
    }
    free(order);
}

static void loops(uint32_t from, uint32_t files, unsigned n)
{
    while (n--)
        for (uint32_t i = 0; i < files; i++)
            use(from + i);
}

static void any_of(uint32_t from, uint32_t files, unsigned n)
{
    while (n--)
        use(from + (uint32_t)random() % files);
}

static void twice_the_cache(void)
{
    epochs(2 * CACHE, 12);
}
static void a_little_more(void)
{
    epochs(CACHE * 5 / 4, 12);
}
static void four_times(void)
{
    epochs(4 * CACHE, 8);
}
static void loop(void)
{
    loops(0, CACHE * 3 / 2, 12);
}

static void one_set_after_another(void)
{
    for (uint32_t set = 0; set < 10; set++)
        any_of(set * CACHE, CACHE * 8 / 10, 6000);
}

static void each_set_twice(void)
{
    for (uint32_t set = 0; set < 20; set++)
        loops(set * CACHE, CACHE * 8 / 10, 2);
}

static void all_fit(void)
{
    epochs(CACHE, 5);
}

/* ---- */

/* Per mille. */
static unsigned hits(void (*trace)(void), bool chooses)
{
    start(chooses);
    trace();
    return 1000 * cache.hits / cache.uses;
}

/* What is hit, in per mille of the uses, at least, and at most by use. */
static const struct {
    const char *name;
    void (*trace)(void);
    unsigned least, by_use_most;
} better[] = {
    {"epochs over twice the cache", twice_the_cache, 390, 160},
    {"epochs over five quarters of it", a_little_more, 670, 500},
    {"epochs over four times", four_times, 160, 50},
    {"a loop over one and a half", loop, 480, 1},
};

START_TEST(what_is_read_in_turn_stays_in_part)
{
    for (size_t i = 0; i < sizeof(better) / sizeof(*better); i++) {
        unsigned n = hits(better[i].trace, true), by_use = hits(better[i].trace, false);
        ck_assert_msg(n >= better[i].least, "%s: %u hits of 1000", better[i].name, n);
        ck_assert_msg(by_use <= better[i].by_use_most, "%s: %u hits of 1000 by use", better[i].name,
                      by_use);
    }
}
END_TEST

static const struct {
    const char *name;
    void (*trace)(void);
} as_good[] = {
    {"one set after another", one_set_after_another},
    {"each set twice", each_set_twice},
    {"all fit", all_fit},
};

START_TEST(what_goes_on_to_other_files_loses_nothing)
{
    for (size_t i = 0; i < sizeof(as_good) / sizeof(*as_good); i++) {
        unsigned n = hits(as_good[i].trace, true), by_use = hits(as_good[i].trace, false);
        ck_assert_msg(by_use <= n + 10, "%s: %u hits of 1000, %u by use", as_good[i].name, n,
                      by_use);
    }
}
END_TEST

START_TEST(it_changes_its_mind)
{
    start(true);
    epochs(2 * CACHE, 8);
    ck_assert(cache.insertion.is_early);
    cache.hits = cache.uses = 0;
    for (uint32_t set = 0; set < 10; set++)
        any_of(10000 + set * CACHE, CACHE * 8 / 10, 6000);
    ck_assert(!cache.insertion.is_early);
    unsigned n = 1000 * cache.hits / cache.uses, by_use = hits(one_set_after_another, false);
    ck_assert_msg(n + 60 >= by_use, "%u hits of 1000, %u by use", n, by_use);
}
END_TEST

START_TEST(what_is_read_ahead_is_there_when_its_turn_comes)
{
    start(true);
    epochs(2 * CACHE, 6);
    ck_assert(cache.insertion.is_early);
    /* sixteen chunks come, then are used; again and again */
    for (uint32_t at = 20000; at < 21600; at += 16) {
        for (uint32_t i = 0; i < 16; i++)
            use(at + i);
        unsigned before = cache.hits;
        for (uint32_t i = 0; i < 16; i++)
            use(at + i);
        ck_assert_uint_eq(cache.hits - before, 16);
    }
}
END_TEST

START_TEST(a_small_cache_goes_by_use)
{
    static struct insertion in;
    insertion_start(&in);
    for (unsigned n = 0; n < 1000; n++) {
        insertion_full(&in, 63);
        insertion_use(&in, key_of(n % 100));
        ck_assert(!insertion_is_first(&in));
    }
    ck_assert_uint_eq(insertion_fresh(31), 1);
    ck_assert_uint_eq(insertion_fresh(64), 16);
    ck_assert_uint_eq(insertion_fresh(1600), 100);
}
END_TEST

/* The number of chunks that fit changes: smaller ones are cached now, or larger ones. */
START_TEST(the_sample_follows_the_cache)
{
    static struct insertion in;
    insertion_start(&in);
    for (uint32_t cached = 64; cached < 1u << 31; cached += cached / 3) {
        insertion_full(&in, cached);
        for (uint32_t n = 0; n < 2000; n++)
            insertion_use(&in, (key_of(n) >> 32) * in.one_in);
        uint32_t kept = in.by_use.n + in.by_use.nfresh;
        ck_assert_uint_le(kept, TRIAL_MAX);
        ck_assert_uint_eq(kept, in.cached / in.one_in);
        ck_assert_uint_ge(kept, cached < 128 ? 64 : 128 / 2);
        ck_assert_uint_eq(in.early.n + in.early.nfresh, kept);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("insertion");
    tcase_add_test(t, what_is_read_in_turn_stays_in_part);
    tcase_add_test(t, what_goes_on_to_other_files_loses_nothing);
    tcase_add_test(t, it_changes_its_mind);
    tcase_add_test(t, what_is_read_ahead_is_there_when_its_turn_comes);
    tcase_add_test(t, a_small_cache_goes_by_use);
    tcase_add_test(t, the_sample_follows_the_cache);
    return run_case("insertion", t);
}
