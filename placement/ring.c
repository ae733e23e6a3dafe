/* ring.c - the consistent-hash ring of a view.
 *
 * Each member has RING_VNODES points (per 100 of weight) on a circle of 2^64: the 64-bit words of
 * SHA-256(node id, block number).  A key belongs to the first point at or after it.  As in HVAC and
 * FT-Cache (Lee et al., "Fault-Tolerant Deep Learning Cache with Hash Ring"), a node that leaves
 * gives its keys to the nodes that follow its points, and no other key moves.
 *
 *      first[]   2^bits buckets of the circle -> index of the first point in or after the bucket
 *      points[]  sorted (hash, member)
 *
 * so that a lookup is one table access and a short walk, whatever the number of nodes.
 */
#include "placement/ring.h"

#include "transport/lock.h"

#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

struct point {
    uint64_t hash;
    uint32_t member;
};

struct ring {
    const struct view *view;
    struct ring *next; /* ring_of's list */
    uint64_t *ids;
    uint32_t nids, npoints, bits;
    uint32_t *first;
    struct point *points;
};

static void put64(uint8_t *p, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

static uint64_t get64(const uint8_t *p)
{
    uint64_t v = 0;

    for (int i = 0; i < 8; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static int by_hash(const void *a, const void *b)
{
    const struct point *x = a, *y = b;

    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->member > y->member) - (x->member < y->member);
}

/* Points of one member: four from each digest. */
static uint32_t add_points(struct point *out, uint64_t id, uint32_t member, uint32_t n)
{
    uint8_t in[16], digest[SHA256_DIGEST_LENGTH];

    put64(in, id);
    for (uint32_t i = 0; i < n; i++) {
        if (i % 4 == 0) {
            put64(in + 8, i / 4);
            SHA256(in, sizeof(in), digest);
        }
        out[i] = (struct point){get64(digest + 8 * (i % 4)), member};
    }
    return n;
}

static uint32_t points_of(const struct member *m, unsigned vnodes)
{
    uint64_t n = (uint64_t)vnodes * m->weight / 100;

    return n < 1 ? 1 : n > 100000 ? 100000 : (uint32_t)n;
}

static void index_points(struct ring *r)
{
    uint32_t i = 0;

    r->bits = 4;
    while (r->bits < 24 && (1u << r->bits) < r->npoints * 2)
        r->bits++;
    r->first = xmalloc(sizeof(*r->first) << r->bits);
    for (uint32_t b = 0; b < 1u << r->bits; b++) {
        while (i < r->npoints && r->points[i].hash >> (64 - r->bits) < b)
            i++;
        r->first[b] = i;
    }
}

struct ring *ring_new(const struct view *v, unsigned vnodes)
{
    struct ring *r = xcalloc(1, sizeof(*r));
    uint32_t total = 0;

    for (uint32_t i = 0; i < v->nmembers; i++)
        total += points_of(&v->members[i], vnodes);
    r->view = v;
    r->nids = v->nmembers;
    r->ids = xcalloc(v->nmembers + 1, sizeof(*r->ids));
    r->points = xcalloc(total + 1, sizeof(*r->points));
    for (uint32_t i = 0; i < v->nmembers; i++) {
        r->ids[i] = v->members[i].id;
        r->npoints += add_points(r->points + r->npoints, v->members[i].id, i,
                                 points_of(&v->members[i], vnodes));
    }
    qsort(r->points, r->npoints, sizeof(*r->points), by_hash);
    index_points(r);
    return r;
}

void ring_free(struct ring *r)
{
    if (!r)
        return;
    free(r->ids);
    free(r->first);
    free(r->points);
    free(r);
}

/* The finaliser of MurmurHash3 (Appleby, public domain). */
static uint64_t scatter(uint64_t h)
{
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdu;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 33;
}

static uint64_t mix(struct fid fid, uint64_t index)
{
    return scatter(scatter(fid.hi + 0x9e3779b97f4a7c15u) ^ fid.lo ^ index * 0xd6e8feb86659fd93u);
}

/* The n-th distinct member from key on. */
static uint64_t nth(const struct ring *r, uint64_t key, unsigned n)
{
    uint32_t seen[8], nseen = 0, i;

    if (n >= r->nids || n >= ARRAY_LEN(seen))
        return 0;
    i = r->first[key >> (64 - r->bits)];
    while (i < r->npoints && r->points[i].hash < key)
        i++;
    for (;; i++) {
        uint32_t member = r->points[i % r->npoints].member, s = 0;

        while (s < nseen && seen[s] != member)
            s++;
        if (s < nseen)
            continue;
        if (nseen == n)
            return r->ids[member];
        seen[nseen++] = member;
    }
}

uint64_t ring_owner(const struct ring *r, struct fid fid, uint64_t index, unsigned n)
{
    return r ? nth(r, mix(fid, index), n) : 0;
}

/* A file's home is not tied to the owner of its first chunk: metadata and data load spread
 * apart. */
uint64_t ring_home(const struct ring *r, struct fid fid, unsigned n)
{
    return r ? nth(r, mix(fid, UINT64_MAX - 1), n) : 0;
}

/* ---- the ring of a view: made once, found by walking a short list, newest first ---- */

static struct ring *_Atomic rings;
static pthread_mutex_t rings_mutex = PTHREAD_MUTEX_INITIALIZER;

static const struct ring *find(const struct view *v)
{
    for (const struct ring *r = rings; r; r = r->next)
        if (r->view == v)
            return r;
    return NULL;
}

const struct ring *ring_of(const struct view *v)
{
    const struct ring *found;
    struct ring *r;

    if (!v)
        return NULL;
    found = find(v);
    if (found)
        return found;
    pthread_mutex_lock(&rings_mutex);
    found = find(v);
    if (!found) {
        r = ring_new(v, RING_VNODES);
        r->next = rings;
        rings = r;
        found = r;
    }
    pthread_mutex_unlock(&rings_mutex);
    return found;
}
