/* scheme.c - eddyfs's placement, and other schemes to compare it with.
 *
 *   slots       eddyfs (placement/ring/ring.c): two of 2^21 slots for a key, by ranks
 *   ring        the plain consistent-hash ring: points for each node; a key belongs to the next point's node
 *   multiprobe  a ring of few points; of 21 hashes of the key, the one counts that is nearest to a
 *               point (Appleton and O'Reilly, "Multi-probe consistent hashing", 2015)
 *   rendezvous  2^21 slots, one for a key; a slot belongs to the node with the earliest of independent
 *               exponential draws
 *
 * A node's weight against the mean of the view gives its points, or the rate of its draws.
 */
#include "test/bench/ring_sim/scheme.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "placement/ring/ring.h"
#include "transport/view.h"

#define PROBES     21 /* the paper's, for 1.05 times the mean at most */
#define DRAWN_BITS 21
#define DRAWN      (1u << DRAWN_BITS)

/* ---- slots ---- */

struct slotted {
    struct ring *ring;
    struct slots *slots;
};

static void *slots_make(const struct view *v, unsigned points)
{
    (void)points;
    struct slotted *t = xmalloc(sizeof(*t));
    *t = (struct slotted){ring_new(v), slots_new(v->members, v->nmembers)};
    return t;
}

static void slots_drop(void *table)
{
    struct slotted *t = table;
    ring_free(t->ring);
    slots_free(t->slots);
    free(t);
}

static uint64_t slots_owner(const void *t, uint64_t place)
{
    return ring_node(((const struct slotted *)t)->ring, place, 0);
}

static int by_time(const void *a, const void *b)
{
    visit_t x = *(const visit_t *)a, y = *(const visit_t *)b;
    return (x > y) - (x < y);
}

/* A slot decides a place if the place's other slots are visited later. */
static void slots_shares(const void *table, double *shares)
{
    const struct slotted *t = table;
    visit_t *first = xmalloc(SLOTS * sizeof(*first)), second[BLOCK_SLOTS];
    for (uint32_t block = 0; block < BLOCKS; block++)
        slots_first_two(t->slots, block, first + block * BLOCK_SLOTS, second);
    qsort(first, SLOTS, sizeof(*first), by_time);
    for (uint32_t i = 0; i < SLOTS; i++)
        shares[visit_member(first[i])] += pow((double)(SLOTS - i) / SLOTS, SLOTS_AT_PLACE) -
                                          pow((double)(SLOTS - i - 1) / SLOTS, SLOTS_AT_PLACE);
    free(first);
}

static size_t slots_memory(const void *t)
{
    return ring_bytes(((const struct slotted *)t)->ring);
}

/* ---- points on a ring ---- */

struct point {
    uint64_t hash;
    uint32_t member;
};

struct points {
    uint64_t *ids;
    uint32_t nids, n, bits;
    uint32_t *first; /* 2^bits parts of the ring: the first point in or after the part */
    struct point *at;
};

static int by_hash(const void *a, const void *b)
{
    const struct point *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->member > y->member) - (x->member < y->member);
}

static uint64_t *ids_of(const struct view *v)
{
    uint64_t *ids = xcalloc(v->nmembers + 1, sizeof(*ids));
    for (uint32_t i = 0; i < v->nmembers; i++)
        ids[i] = v->members[i].id;
    return ids;
}

static double mean_weight(const struct view *v)
{
    double sum = 0;
    for (uint32_t i = 0; i < v->nmembers; i++)
        sum += v->members[i].weight;
    return sum / v->nmembers;
}

static uint32_t points_of(const struct member *m, unsigned points, double mean)
{
    return (uint32_t)MAX(1.0, round(points * m->weight / mean));
}

static void index_points(struct points *p)
{
    uint32_t i = 0;
    for (p->bits = 4; p->bits < 24 && (1u << p->bits) < p->n * 2;)
        p->bits++;
    p->first = xmalloc(sizeof(*p->first) << p->bits);
    for (uint32_t part = 0; part < 1u << p->bits; part++) {
        while (i < p->n && p->at[i].hash >> (64 - p->bits) < part)
            i++;
        p->first[part] = i;
    }
}

static void *points_make(const struct view *v, unsigned points)
{
    struct points *p = xcalloc(1, sizeof(*p));
    double mean = mean_weight(v);
    uint32_t total = 0;
    for (uint32_t i = 0; i < v->nmembers; i++)
        total += points_of(&v->members[i], points, mean);
    p->ids = ids_of(v);
    p->nids = v->nmembers;
    p->at = xcalloc(total, sizeof(*p->at));
    for (uint32_t i = 0; i < v->nmembers; i++) {
        uint32_t n = points_of(&v->members[i], points, mean);
        for (uint64_t j = 0; j < n; j++)
            p->at[p->n++] = (struct point){XXH3_64bits_withSeed(&j, sizeof(j), p->ids[i]), i};
    }
    qsort(p->at, p->n, sizeof(*p->at), by_hash);
    index_points(p);
    return p;
}

static void points_drop(void *t)
{
    struct points *p = t;
    free(p->ids);
    free(p->first);
    free(p->at);
    free(p);
}

static size_t points_bytes(const void *t)
{
    const struct points *p = t;
    return sizeof(*p) + (p->nids + 1) * sizeof(*p->ids) + (sizeof(*p->first) << p->bits) +
           p->n * sizeof(*p->at);
}

static const struct point *point_after(const struct points *p, uint64_t place)
{
    uint32_t i = p->first[place >> (64 - p->bits)];
    while (i < p->n && p->at[i].hash < place)
        i++;
    return &p->at[i < p->n ? i : 0];
}

static uint64_t ring_point_owner(const void *t, uint64_t place)
{
    const struct points *p = t;
    return p->ids[point_after(p, place)->member];
}

/* The part of the ring before point i. */
static double gap(const struct points *p, uint32_t i)
{
    return ldexp((double)(p->at[i].hash - p->at[i ? i - 1 : p->n - 1].hash), -64);
}

static void ring_shares(const void *t, double *shares)
{
    const struct points *p = t;
    for (uint32_t i = 0; i < p->n; i++)
        shares[p->at[i].member] += gap(p, i);
}

/* ---- multiprobe: points as above ---- */

static uint64_t probe(uint64_t place, uint64_t i)
{
    uint64_t h = (place ^ place >> 29) * (2 * i + 0x9e3779b97f4a7c15u);
    h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
    return h ^ h >> 32;
}

static uint64_t multiprobe_owner(const void *t, uint64_t place)
{
    const struct points *p = t;
    const struct point *nearest = NULL;
    uint64_t distance = UINT64_MAX;
    for (unsigned i = 0; i < PROBES; i++) {
        uint64_t at = probe(place, i);
        const struct point *next = point_after(p, at);
        if (next->hash - at <= distance) {
            distance = next->hash - at;
            nearest = next;
        }
    }
    return p->ids[nearest->member];
}

struct part {
    double gap;
    uint32_t member;
};

static int by_gap(const void *a, const void *b)
{
    double x = ((const struct part *)a)->gap, y = ((const struct part *)b)->gap;
    return (x > y) - (x < y);
}

/* For probes of even distribution.  The distance of the nearest probe from a point is d with density PROBES
 * (1 - F)^(PROBES - 1) for each gap longer than d.  F is the part of the ring that is not farther than d from
 * a point.  Between two lengths of gaps F is a line, whose slope is the number of longer gaps. */
static void multiprobe_shares(const void *t, double *shares)
{
    const struct points *p = t;
    struct part *parts = xcalloc(p->n, sizeof(*parts));
    double part_of_one = 0, rest = 1, longest = 0; /* rest: 1 - F */
    for (uint32_t i = 0; i < p->n; i++)
        parts[i] = (struct part){gap(p, i), p->at[i].member};
    qsort(parts, p->n, sizeof(*parts), by_gap);
    for (uint32_t i = 0; i < p->n; i++) {
        double slope = p->n - i, next = MAX(rest - slope * (parts[i].gap - longest), 0);
        part_of_one += (pow(rest, PROBES) - pow(next, PROBES)) / slope;
        shares[parts[i].member] += part_of_one;
        longest = parts[i].gap;
        rest = next;
    }
    free(parts);
}

/* ---- rendezvous by draws ---- */

struct drawn {
    uint64_t *ids;
    uint32_t nids;
    uint16_t first[DRAWN];
};

/* A uniform draw between 0 and 1. */
static double draw(uint64_t id, uint64_t slot)
{
    uint64_t h = (id + slot * 0x9e3779b97f4a7c15u);
    h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
    h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
    return ldexp((double)(h >> 11) + 0.5, -53);
}

static uint16_t earliest(const struct view *v, const double *rates, uint32_t slot)
{
    double best = INFINITY;
    uint16_t member = 0;
    for (uint32_t i = 0; i < v->nmembers; i++) {
        double x = draw(v->members[i].id, slot);
        if (1 - x >= best * rates[i]) /* -ln x is more */
            continue;
        double time = -log(x) / rates[i];
        if (time < best) {
            best = time;
            member = (uint16_t)i;
        }
    }
    return member;
}

static void *drawn_make(const struct view *v, unsigned points)
{
    (void)points;
    struct drawn *d = xcalloc(1, sizeof(*d));
    double *rates = xcalloc(v->nmembers, sizeof(*rates));
    d->ids = ids_of(v);
    d->nids = v->nmembers;
    for (uint32_t i = 0; i < v->nmembers; i++)
        rates[i] = v->members[i].weight;
    for (uint32_t slot = 0; slot < DRAWN; slot++)
        d->first[slot] = earliest(v, rates, slot);
    free(rates);
    return d;
}

static void drawn_drop(void *t)
{
    struct drawn *d = t;
    free(d->ids);
    free(d);
}

static uint64_t drawn_owner(const void *t, uint64_t place)
{
    const struct drawn *d = t;
    return d->ids[d->first[place >> (64 - DRAWN_BITS)]];
}

static void drawn_shares(const void *t, double *shares)
{
    const struct drawn *d = t;
    for (uint32_t slot = 0; slot < DRAWN; slot++)
        shares[d->first[slot]] += 1.0 / DRAWN;
}

static size_t drawn_bytes(const void *t)
{
    const struct drawn *d = t;
    return sizeof(*d) + (d->nids + 1) * sizeof(*d->ids);
}

/* ---- all of them ---- */

const struct scheme schemes[] = {
    {"slots", false, false, slots_make, slots_drop, slots_owner, slots_shares, slots_memory},
    {"ring", true, false, points_make, points_drop, ring_point_owner, ring_shares, points_bytes},
    {"multiprobe", true, false, points_make, points_drop, multiprobe_owner, multiprobe_shares,
     points_bytes},
    {"rendezvous", false, true, drawn_make, drawn_drop, drawn_owner, drawn_shares, drawn_bytes},
};
const unsigned nschemes = ARRAY_LEN(schemes);

const struct scheme *scheme_named(const char *name, size_t len)
{
    for (unsigned i = 0; i < nschemes; i++)
        if (strlen(schemes[i].name) == len && !strncmp(schemes[i].name, name, len))
            return &schemes[i];
    return NULL;
}
