/* slots.c - rendezvous hashing over slots, by ranks.
 *
 * Rendezvous hashing (Thaler and Ravishankar, 1998) gives each member a random time for each key; the member
 * with the earliest time has the key.  If the times have an exponential distribution whose rate is the
 * member's weight, the member's part of the keys is its part of the weights.  Here members arrive at slots,
 * and a key's place belongs to two slots; a member's time for the key is the earlier one of its two.
 *
 * Times are not drawn one by one.  A member visits the slots of a block in an order of its own, a
 * keyed permutation.  It arrives at the first slot at the mean time of the first of BLOCK_SLOTS
 * exponential draws, at the second slot at the mean time of the second draw, and so on:
 *
 *      slot                 0    1    2    3    4    5    6    7
 *      member a comes at    .7   2.1  .3   .1   1.4  .2   1.0  .5
 *      member b comes at    .2   .9   2.0  .4   .6   1.3  .1   .7
 *      a place of slots 1 and 3:       a at .1, b at .4
 *
 * So every member has as many early and as many late times as any other, and shares vary less
 * than by chance.  And this can be computed in both directions: from a slot to a member's time
 * (slots_nth), and from a member to the slots that it visits in the course of time, until every slot has had
 * two visitors (slots_first_two).  The latter takes 12 to 15 visits for each slot, however many members
 * there are, instead of one for each member.
 *
 * Why two slots?  When a node fails, its keys of one slot go to one node, unless their other slot has another
 * node that is earlier.  So more nodes share the load.  With one slot for each key
 * this takes 2.5 times the slots; with three a look-up costs more.
 *
 * The permutation is a Feistel network of four rounds (Luby and Rackoff, 1988) whose round functions
 * hash the block and half of the place in it with the member's key.
 */
#include "placement/ring/slots.h"
#include "transport/view.h"

#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS    4
#define HALF_BITS (BLOCK_BITS / 2)
#define HALF      (1u << HALF_BITS)

/* A rank in a member's order has a fraction, so that members seldom arrive at the same time. */
#define FRACTION_BITS 10
/* The times of the ranks are linear between knots. */
#define KNOTS      64
#define KNOT_BITS  (BLOCK_BITS + FRACTION_BITS - 6)
#define TIME_BITS  40 /* 1 << TIME_BITS: the mean time of a member of weight 1, before scaling */
#define SCALE_BITS 43 /* every knot is below 1 << SCALE_BITS */

struct key {
    uint64_t factor[ROUNDS], summand[ROUNDS];
    uint64_t scale; /* 2^64 / weight */
};

struct slots {
    uint32_t n;
    struct key *keys;
    uint64_t knots[KNOTS + 1];
};

static uint64_t get64(const uint8_t *p)
{
    uint64_t v = 0;
    for (int i = 0; i < 8; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static void put64(uint8_t *p, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

/* The 64-bit words of SHA-256(id, 0) and SHA-256(id, 1). */
static struct key key_of(const struct member *m)
{
    struct key k;
    uint8_t in[16], digest[2 * SHA256_DIGEST_LENGTH];
    put64(in, m->id);
    for (unsigned i = 0; i < 2; i++) {
        put64(in + 8, i);
        SHA256(in, sizeof(in), digest + i * SHA256_DIGEST_LENGTH);
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        k.factor[i] = get64(digest + 16 * i) | 1;
        k.summand[i] = get64(digest + 16 * i + 8);
    }
    k.scale = UINT64_MAX / MAX(m->weight, 1u);
    return k;
}

/* -ln(1 - x) at x = i / KNOTS, as sums of the mean times between visits, 1 / (slots not
 * visited yet) (Renyi, 1953).  All visits of a part count as its middle one. */
static void make_knots(uint64_t knots[KNOTS + 1])
{
    const uint64_t part = BLOCK_SLOTS / KNOTS;
    knots[0] = 0;
    for (uint64_t i = 0; i < KNOTS; i++)
        knots[i + 1] =
            knots[i] + ((2 * part) << TIME_BITS) / (2 * (BLOCK_SLOTS - i * part) - part + 1);
}

struct slots *slots_new(const struct member *members, uint32_t n)
{
    struct slots *s = xcalloc(1, sizeof(*s));
    s->n = n;
    s->keys = xcalloc(n ? n : 1, sizeof(*s->keys));
    for (uint32_t i = 0; i < n; i++)
        s->keys[i] = key_of(&members[i]);
    make_knots(s->knots);
    return s;
}

void slots_free(struct slots *s)
{
    if (s)
        free(s->keys);
    free(s);
}

size_t slots_bytes(const struct slots *s)
{
    return sizeof(*s) + s->n * sizeof(*s->keys);
}

/* ---- a member's order of a block's slots, and its times ---- */

static uint64_t mixed(uint64_t h)
{
    return (h ^ h >> 32) * 0xd6e8feb86659fd93u;
}

static uint32_t round_of(const struct key *k, unsigned i, uint32_t block, uint32_t half)
{
    uint64_t h = k->summand[i] + k->factor[i] * (block << HALF_BITS | half);
    return (uint32_t)(mixed(h) >> (64 - HALF_BITS));
}

/* The slot of the block that the member visits at this rank of its order. */
static uint32_t slot_at(const struct key *k, uint32_t block, uint32_t rank)
{
    uint32_t left = rank >> HALF_BITS, right = rank & (HALF - 1);
    for (unsigned i = 0; i < ROUNDS; i += 2) {
        left ^= round_of(k, i, block, right);
        right ^= round_of(k, i + 1, block, left);
    }
    return left << HALF_BITS | right;
}

static uint32_t rank_of(const struct key *k, uint32_t block, uint32_t slot)
{
    uint32_t left = slot >> HALF_BITS, right = slot & (HALF - 1);
    for (unsigned i = ROUNDS; i > 0; i -= 2) {
        right ^= round_of(k, i - 1, block, left);
        left ^= round_of(k, i - 2, block, right);
    }
    return left << HALF_BITS | right;
}

/* What is added to the member's ranks in this block. */
static uint32_t fraction_of(const struct key *k, uint32_t block)
{
    uint64_t h = mixed(k->summand[0] + k->factor[1] * (block + 1));
    return (uint32_t)(mixed(h) >> (64 - FRACTION_BITS));
}

/* 13 significant bits of t and their position, in 18 bits; a lower t never gives a higher number. */
static uint32_t rounded(uint64_t t)
{
    unsigned shift = t >> 13 ? 51 - (unsigned)__builtin_clzll(t) : 0;
    return (shift << 12) + (uint32_t)(t >> shift);
}

/* The time of the member's visit at this rank, rounded. */
static uint32_t time_of(const struct slots *s, const struct key *k, uint32_t rank,
                        uint32_t fraction)
{
    uint32_t at = rank << FRACTION_BITS | fraction, i = at >> KNOT_BITS;
    uint64_t part = s->knots[i + 1] - s->knots[i];
    uint64_t t = s->knots[i] + (part * (at & ((1u << KNOT_BITS) - 1)) >> KNOT_BITS);
    return rounded((uint64_t)((unsigned __int128)t * k->scale >> SCALE_BITS));
}

/* ---- the order at a place ---- */

visit_t slots_visit(const struct slots *s, uint32_t m, uint32_t slot)
{
    const struct key *k = &s->keys[m];
    uint32_t block = slot >> BLOCK_BITS;
    uint32_t rank = rank_of(k, block, slot & (BLOCK_SLOTS - 1));
    return time_of(s, k, rank, fraction_of(k, block)) << VISIT_MEMBER_BITS | m;
}

uint32_t slots_nth(const struct slots *s, uint64_t place, unsigned n)
{
    visit_t order[SLOT_ORDER_MAX];
    uint32_t known = 0;
    for (uint32_t m = 0; m < s->n; m++) {
        visit_t v = VISIT_NONE;
        for (unsigned i = 0; i < SLOTS_AT_PLACE; i++)
            v = MIN(v, slots_visit(s, m, slot_at_place(place, i)));
        if (known > n && v > order[n])
            continue;
        uint32_t i = known > n ? n : known++;
        for (; i > 0 && order[i - 1] > v; i--)
            order[i] = order[i - 1];
        order[i] = v;
    }
    return visit_member(order[n]);
}

/* ---- the first two visits to the slots of a block ---- */

struct round_trip {
    const struct slots *s;
    uint32_t block, until;   /* the time up to which all visits are made */
    visit_t *first, *second; /* of the block's slots */
    uint32_t missing;        /* visits that none was made in place of yet */
    uint16_t *ranks;         /* by member: its next rank */
};

static void visit(struct round_trip *r, uint32_t slot, visit_t v)
{
    visit_t *first = &r->first[slot], *second = &r->second[slot];
    if (v > *second)
        return;
    r->missing -= *second == VISIT_NONE;
    *second = MAX(v, *first);
    *first = MIN(v, *first);
}

/* Makes the member's visits up to that time. */
static void go_on(struct round_trip *r, uint32_t m)
{
    const struct key *k = &r->s->keys[m];
    uint32_t fraction = fraction_of(k, r->block), rank = r->ranks[m];
    for (; rank < BLOCK_SLOTS; rank++) {
        uint32_t t = time_of(r->s, k, rank, fraction);
        if (t > r->until)
            break;
        visit(r, slot_at(k, r->block, rank), t << VISIT_MEMBER_BITS | m);
    }
    r->ranks[m] = (uint16_t)rank;
}

/* The time in which all members together make four visits for each slot. */
static uint64_t first_stretch(const struct slots *s)
{
    unsigned __int128 rates = 0; /* of visits, 2^64 / scale each */
    for (uint32_t m = 0; m < s->n; m++)
        rates += UINT64_MAX / s->keys[m].scale;
    return (uint64_t)(((unsigned __int128)4 << (64 + TIME_BITS - SCALE_BITS)) / rates);
}

void slots_first_two(const struct slots *s, uint32_t block, visit_t first[BLOCK_SLOTS],
                     visit_t second[BLOCK_SLOTS])
{
    struct round_trip r = {.s = s, .block = block, .first = first, .second = second};
    uint64_t until = 0, stretch = s->n ? first_stretch(s) : 0;
    memset(first, 0xff, BLOCK_SLOTS * sizeof(*first)); /* VISIT_NONE */
    memset(second, 0xff, BLOCK_SLOTS * sizeof(*second));
    r.missing = MIN(s->n, 2u) * BLOCK_SLOTS;
    r.ranks = xcalloc(s->n + 1, sizeof(*r.ranks));
    /* A member that arrives after `until` is later than the two that have arrived.  The stretches of time
     * grow, so that few of them are needed for members of very little weight. */
    while (r.missing) {
        uint64_t more = MAX(stretch, until / 4);
        until = until > UINT64_MAX - more ? UINT64_MAX : until + more;
        r.until = rounded(until);
        for (uint32_t m = 0; m < s->n; m++)
            go_on(&r, m);
    }
    free(r.ranks);
}
