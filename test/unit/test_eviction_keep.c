/* Which chunks leave first, as nodes say what they keep (placement/store/eviction.h). */
#include <check.h>
#include <pthread.h>

#include "placement/store/eviction.c"
#include "suite.h"

/* ---- the world around eviction.c: records in an array ---- */

#define CHUNKS 200

static struct chunk_record records[CHUNKS];

struct chunk_record *state_chunk_at(uint32_t no)
{
    return no == SLOT_NONE ? NULL : &records[no];
}

static uint64_t gone[CHUNKS];
static unsigned ngone;

static bool leaves(struct fid fid, uint64_t index, bool now)
{
    (void)fid;
    (void)now;
    eviction_remove(&records[index]);
    gone[ngone++] = index;
    return true;
}

static _Atomic unsigned told;

static void on_few(void)
{
    told++;
}

static void begin(void)
{
    eviction_start();
    eviction_on_victim(leaves, leaves);
    eviction_on_short(on_few);
    ngone = told = 0;
    for (uint32_t i = 0; i < CHUNKS; i++)
        records[i] = (struct chunk_record){.index = i, .self = i, .lru_next = SLOT_OFF_LIST, .lru_prev = SLOT_OFF_LIST};
}

static void add(uint64_t from, uint64_t n, bool kept)
{
    for (uint64_t i = from; i < from + n; i++)
        eviction_add(&records[i], kept);
}

/* ---- tests ---- */

START_TEST(what_another_keeps_leaves_first)
{
    begin();
    add(0, 10, true);
    add(10, 2, false);
    eviction_keep(&records[5], KEEP_NOT);
    ck_assert(eviction_one(true, false));
    ck_assert(eviction_one(true, false));
    ck_assert(eviction_one(true, false));
    ck_assert_uint_eq(gone[0], 5);
    ck_assert_uint_ge(gone[1], 10);
    ck_assert_uint_ge(gone[2], 10);
}
END_TEST

START_TEST(what_is_kept_for_its_owner_leaves_as_owned_chunks)
{
    begin();
    add(0, 2, true);
    add(10, 20, false);
    eviction_keep(&records[10], KEEP_FOR_OWNER);
    for (unsigned i = 0; i < 19; i++)
        ck_assert(eviction_one(true, false) && gone[i] > 10);
    ck_assert(eviction_one(true, false));
    ck_assert_uint_le(gone[19], 1); /* it was there before */
}
END_TEST

START_TEST(no_more_than_the_part_is_kept_for_others)
{
    begin();
    add(0, 100, false);
    unsigned n = 0;
    while (n < 100 && eviction_may_keep(30))
        eviction_keep(&records[n++], KEEP_FOR_OWNER);
    ck_assert_uint_eq(n, 30);
    ck_assert(!eviction_may_keep(0));
    eviction_remove(&records[0]); /* dirty, say: not kept for anybody any more */
    eviction_keep(&records[1], KEEP_NOT);
    eviction_keep(&records[2], KEEP_OWNED);
    ck_assert(eviction_may_keep(30));
    while (n < 100 && eviction_may_keep(100))
        eviction_keep(&records[n++], KEEP_FOR_OWNER);
    ck_assert_uint_eq(leaving.kind[REPLICAS].others.n + leaving.kind[REPLICAS].fresh.n, KEEP_STOCK); /* something must be able to leave */
}
END_TEST

START_TEST(a_round_is_due_when_few_replicas_are_left)
{
    struct chunk_name next[KEEP_ASKED];
    begin();
    add(0, 100, true);
    add(100, KEEP_STOCK + 1, false);
    ck_assert_uint_eq(eviction_next_kept(next), 0);
    ck_assert(eviction_one(true, false));
    ck_assert_uint_eq(told, 0);
    ck_assert(eviction_one(true, false));
    ck_assert_uint_eq(told, 0);
    ck_assert(eviction_one(true, false));
    ck_assert_uint_eq(told, 1);
    unsigned n = eviction_next_kept(next);
    ck_assert_uint_eq(n, KEEP_ASKED); /* the first of both lists, each once */
    ck_assert_uint_eq(next[0].index, 0);
    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; k < i; k++)
            ck_assert_uint_ne(next[i].index, next[k].index);
}
END_TEST

START_TEST(hints_and_uses_do_not_change_who_keeps_it)
{
    begin();
    add(0, 40, false);
    eviction_keep(&records[7], KEEP_FOR_OWNER);
    eviction_set_time(&records[7], TIME_HINTED);
    eviction_set_time(&records[7], TIME_UNKNOWN);
    eviction_used(&records[7]);
    eviction_add(&records[7], true);
    ck_assert_uint_eq(leaving.singlets, 1);
    eviction_remove(&records[7]); /* it is written, say */
    ck_assert_uint_eq(leaving.singlets, 0);
    eviction_remove(&records[7]);
    ck_assert_uint_eq(leaving.singlets, 0);
    ck_assert(!(records[7].flags & CHUNK_OWNED)); /* and when it is clean again, it is a replica, as before */
    eviction_add(&records[7], records[7].flags & CHUNK_OWNED);
    ck_assert_uint_eq(leaving.singlets, 0);
}
END_TEST

/* ---- threads: all records are of one file, as far as its lock goes ---- */

#define STEPS 20000

static pthread_mutex_t file_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic unsigned working;

static bool listed_now(const struct chunk_record *c)
{
    lock_take(&leaving.lock);
    bool is = listed(c);
    lock_drop(&leaving.lock);
    return is;
}

static bool leaves_now(struct fid fid, uint64_t index, bool now)
{
    (void)fid;
    (void)now;
    pthread_mutex_lock(&file_lock);
    bool here = listed_now(&records[index]);
    eviction_remove(&records[index]);
    pthread_mutex_unlock(&file_lock);
    return here;
}

/* Chunks come, and others leave for them. */
static void *bring(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    for (unsigned i = 0; i < STEPS; i++) {
        struct chunk_record *c = &records[rand_r(&seed) % CHUNKS];
        pthread_mutex_lock(&file_lock);
        if (!listed_now(c))
            eviction_add(c, c->index % 3 == 0);
        else
            eviction_used(c);
        pthread_mutex_unlock(&file_lock);
        if (i % 2)
            eviction_one(true, false);
    }
    working--;
    return NULL;
}

static void *keep_some(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    struct chunk_name next[KEEP_ASKED];
    while (working) {
        unsigned r = (unsigned)rand_r(&seed);
        struct chunk_record *c = &records[r % CHUNKS];
        pthread_mutex_lock(&file_lock);
        if (eviction_may_keep(50))
            eviction_keep(c, (enum keep)(r / CHUNKS % 3));
        if (r % 7 == 0)
            eviction_remove(c);
        pthread_mutex_unlock(&file_lock);
        eviction_next_kept(next);
        eviction_on_short(r % 2 ? on_few : NULL);
    }
    return NULL;
}

static unsigned counted_singlets(void)
{
    unsigned n = 0;
    for (unsigned i = 0; i < CHUNKS; i++) {
        bool singlet = touched(&records[i]) & SINGLET;
        ck_assert(!singlet || records[i].flags & CHUNK_OWNED);
        n += singlet && listed(&records[i]);
    }
    return n;
}

START_TEST(threads_bring_keep_and_evict)
{
    pthread_t t[4];
    begin();
    eviction_on_victim(leaves_now, leaves_now);
    working = 2;
    for (uintptr_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, i < 2 ? bring : keep_some, (void *)(i + 1)), 0);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    ck_assert_uint_eq(leaving.singlets, counted_singlets());
    eviction_on_short(NULL);
    while (eviction_one(true, false))
        ;
    ck_assert_uint_eq(leaving.singlets, 0);
    for (unsigned i = 0; i < CHUNKS; i++)
        ck_assert(!listed(&records[i]));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("all");
    tcase_add_test(t, what_another_keeps_leaves_first);
    tcase_add_test(t, what_is_kept_for_its_owner_leaves_as_owned_chunks);
    tcase_add_test(t, no_more_than_the_part_is_kept_for_others);
    tcase_add_test(t, a_round_is_due_when_few_replicas_are_left);
    tcase_add_test(t, hints_and_uses_do_not_change_who_keeps_it);
    tcase_add_test(t, threads_bring_keep_and_evict);
    return run_case("eviction_keep", t);
}
