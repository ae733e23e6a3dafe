/* insertion.c - two policies tried on a sample of the chunks. */
#include "placement/store/insertion.h"

#include <string.h>

#define SAMPLE      128 /* chunks in a trial, at least, if the cache has as many; half of TRIAL_MAX */
#define WORTH_WHILE 64 /* chunks: in a smaller cache, by use */
#define FRESH_PART  16
#define FRESH_MIN   16 /* as many as are read ahead of one reader */
#define STAYS       32 /* early: one new chunk of so many is the last to leave */
#define HIT         1024
#define REMEMBERED  512 /* uses of the sample: older ones fade */
#define CLEAR       2   /* hits: so far must a policy be ahead to count, or behind to count no more */

uint32_t insertion_fresh(uint32_t cached)
{
    uint32_t part = cached / FRESH_PART;
    return cached < WORTH_WHILE || part > FRESH_MIN ? part : FRESH_MIN;
}

static bool is_first(bool early, uint32_t *came)
{
    return early && ++*came % STAYS;
}

bool insertion_is_first(struct insertion *in)
{
    return is_first(in->is_early, &in->came);
}

/* ---- a trial ---- */

/* The place of a key, or n. */
static uint32_t place_of(const uint64_t *keys, uint32_t n, uint64_t key)
{
    uint32_t i = 0;
    while (i < n && keys[i] != key)
        i++;
    return i;
}

static uint64_t take_out(uint64_t *keys, uint32_t *n, uint32_t i)
{
    uint64_t key = keys[i];
    memmove(keys + i, keys + i + 1, (--*n - i) * sizeof(*keys));
    return key;
}

static void put_in(uint64_t *keys, uint32_t *n, uint32_t i, uint64_t key)
{
    memmove(keys + i + 1, keys + i, ((*n)++ - i) * sizeof(*keys));
    keys[i] = key;
}

static void make_room(struct trial *t, uint32_t size, uint32_t fresh)
{
    while (t->nfresh && t->nfresh >= fresh) {
        uint64_t key = take_out(t->fresh, &t->nfresh, 0);
        put_in(t->key, &t->n, is_first(t->early, &t->came) ? 0 : t->n, key);
    }
    while (t->n + t->nfresh >= size)
        take_out(t->n ? t->key : t->fresh, t->n ? &t->n : &t->nfresh, 0);
}

/* Was it there? */
static bool trial_use(struct trial *t, uint64_t key, uint32_t size, uint32_t fresh)
{
    if (place_of(t->fresh, t->nfresh, key) < t->nfresh)
        return true;
    uint32_t i = place_of(t->key, t->n, key);
    if (i < t->n) {
        take_out(t->key, &t->n, i);
        put_in(t->key, &t->n, t->n, key);
        return true;
    }
    make_room(t, size, fresh);
    put_in(t->fresh, &t->nfresh, t->nfresh, key);
    return false;
}

/* ---- which one counts ---- */

static void begin_trials(struct insertion *in, uint32_t cached)
{
    in->cached = cached;
    in->one_in = cached > SAMPLE ? cached / SAMPLE : 1;
    in->by_use = (struct trial){.early = false};
    in->early = (struct trial){.early = true};
}

void insertion_start(struct insertion *in)
{
    memset(in, 0, sizeof(*in));
}

void insertion_full(struct insertion *in, uint32_t cached)
{
    if (cached < WORTH_WHILE)
        insertion_start(in);
    else if (!in->cached || cached / 2 > in->cached || cached < in->cached / 2)
        begin_trials(in, cached); /* a sample of another size; the policy that counts stays */
}

void insertion_use(struct insertion *in, uint64_t key)
{
    if (!in->cached || key % in->one_in)
        return;
    uint32_t size = in->cached / in->one_in, fresh = insertion_fresh(in->cached) / in->one_in;
    fresh = fresh ? fresh : 1;
    int by_use = trial_use(&in->by_use, key, size, fresh);
    int early = trial_use(&in->early, key, size, fresh);
    in->lead += (early - by_use) * HIT - in->lead / REMEMBERED;
    int32_t ahead = in->lead / HIT;
    in->is_early = in->is_early ? ahead > -CLEAR : ahead >= CLEAR;
}
