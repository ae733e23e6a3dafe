/* rows.c - see rows.h.
 *
 * Rows are found by a hash of the chunk; each bucket is a list.  All rows are on one list, too, in the order in which they
 * were last asked for: its first one is used again when there are as many as there may be.
 */
#include "placement/chunks/rows.h"

#include <stdlib.h>
#include <sys/queue.h>

#define LOADS      1024
#define SENT_LATE 4096 /* of which half count half after that */

struct place {
    uint64_t node;             /* 0: free */
    uint64_t fed_ms[ROW_FEEDS]; /* when it was last given nodes to feed; 0: never */
    unsigned steps;            /* from the owner: it is getting the chunk; 0: it said that it has it */
};

struct row {
    struct chunk_key key;
    TAILQ_ENTRY(row) by_use;
    SLIST_ENTRY(row) in_bucket;
    struct place owner; /* whose row this is; its node is not used */
    uint64_t caretaker;    /* of a chunk that the owner has let go; else 0 */
    unsigned n, room;
    struct place *place;
};

SLIST_HEAD(bucket, row);
struct rows {
    unsigned max, nodes, n, buckets;
    uint32_t sent[LOADS]; /* askers, by the hash of the node; now and then halved */
    unsigned nsent;
    TAILQ_HEAD(, row) by_use; /* longest ago first */
    struct bucket bucket[];
};

struct rows *rows_new(unsigned max, unsigned nodes)
{
    unsigned buckets = 1;
    while (buckets < max)
        buckets *= 2;
    struct rows *r = xcalloc(1, sizeof(*r) + buckets * sizeof(r->bucket[0]));
    r->max = max;
    r->nodes = nodes;
    r->buckets = buckets;
    TAILQ_INIT(&r->by_use);
    return r;
}

void rows_free(struct rows *r)
{
    if (!r)
        return;
    for (struct row *w = TAILQ_FIRST(&r->by_use), *next; w; w = next) {
        next = TAILQ_NEXT(w, by_use);
        free(w->place);
        free(w);
    }
    free(r);
}

unsigned rows_count(const struct rows *r)
{
    return r->n;
}

unsigned rows_group(uint64_t node, unsigned nodes)
{
    unsigned groups = 1;
    while (groups < GROUPS_MAX && (groups + 1) * (groups + 1) <= nodes)
        groups++;
    uint64_t h = node * 0x9e3779b97f4a7c15u;
    return (unsigned)(h >> 32) % groups;
}

/* ---- a chunk's row ---- */

static struct bucket *bucket_of(struct rows *r, const struct chunk_key *key)
{
    return &r->bucket[chunk_key_hash(key) & (r->buckets - 1)];
}

static struct row *find(const struct rows *r, const struct chunk_key *key)
{
    struct row *w;
    SLIST_FOREACH(w, bucket_of((struct rows *)r, key), in_bucket)
        if (chunk_key_eq(&w->key, key))
            return w;
    return NULL;
}

/* Memory for a new row: that of the one not asked for longest, if there are as many as there may be. */
static struct row *take_memory(struct rows *r)
{
    struct row *w = TAILQ_FIRST(&r->by_use);
    if (r->n < r->max) {
        r->n++;
        return xcalloc(1, sizeof(*w));
    }
    TAILQ_REMOVE(&r->by_use, w, by_use);
    SLIST_REMOVE(bucket_of(r, &w->key), w, row, in_bucket);
    free(w->place);
    *w = (struct row){0};
    return w;
}

static struct row *used(struct rows *r, const struct chunk_key *key)
{
    struct row *w = find(r, key);
    if (w) {
        TAILQ_REMOVE(&r->by_use, w, by_use);
    } else {
        w = take_memory(r);
        w->key = *key;
        SLIST_INSERT_HEAD(bucket_of(r, key), w, in_bucket);
    }
    TAILQ_INSERT_TAIL(&r->by_use, w, by_use);
    return w;
}

/* ---- a row's places ---- */

static unsigned fed(const struct place *p, uint64_t now_ms)
{
    unsigned n = 0;
    for (unsigned i = 0; i < ROW_FEEDS; i++)
        n += p->fed_ms[i] && now_ms - p->fed_ms[i] < FED_MS;
    return n;
}

/* It feeds one more, in place of the one given to it longest ago. */
static void feed(struct place *p, uint64_t now_ms)
{
    unsigned at = 0;
    for (unsigned i = 1; i < ROW_FEEDS; i++)
        if (p->fed_ms[i] < p->fed_ms[at])
            at = i;
    p->fed_ms[at] = now_ms;
}

static struct place *place_of(struct row *w, uint64_t node)
{
    for (unsigned i = 0; i < w->n; i++)
        if (w->place[i].node == node)
            return &w->place[i];
    return NULL;
}

static void drop(struct row *w, uint64_t node)
{
    struct place *p = place_of(w, node);
    if (p)
        *p = w->place[--w->n];
    if (w->caretaker == node)
        w->caretaker = 0;
}

static struct place *new_place(struct row *w)
{
    if (w->n == ROW_PLACES)
        return NULL;
    if (w->n == w->room) {
        w->room = w->room ? w->room * 2 : 4;
        w->place = xrealloc(w->place, w->room * sizeof(*w->place));
    }
    return &w->place[w->n++];
}

/* Enters a node that is getting the chunk, if there is room, or a place that cannot feed now. */
static void enter(struct row *w, uint64_t node, unsigned steps, uint64_t now_ms)
{
    struct place *p = new_place(w);
    for (unsigned i = 0; !p && i < w->n; i++)
        if (fed(&w->place[i], now_ms) == ROW_FEEDS && w->place[i].node != w->caretaker)
            p = &w->place[i];
    if (p)
        *p = (struct place){.node = node, .steps = steps};
}

/* ---- how much each node was given to send ---- */

static uint32_t *load_of(struct rows *r, uint64_t node)
{
    return &r->sent[(node * 0x9e3779b97f4a7c15u) >> 54];
}

static void count_sent(struct rows *r, uint64_t node)
{
    ++*load_of(r, node);
    if (++r->nsent < SENT_LATE)
        return;
    for (unsigned i = 0; i < LOADS; i++)
        r->sent[i] /= 2;
    r->nsent /= 2;
}

/* ---- which place ---- */

/* Steps until the next one that it feeds has the chunk. */
static unsigned steps_by(const struct place *p, uint64_t now_ms)
{
    return p->steps + fed(p, now_ms) + 1;
}

static bool can_feed(const struct place *p, uint64_t now_ms)
{
    return fed(p, now_ms) < ROW_FEEDS;
}

/* The least that one of the places that can feed was given of late. */
static uint32_t least_load(struct rows *r, const struct row *w, uint64_t now_ms)
{
    uint32_t least = UINT32_MAX;
    for (unsigned i = 0; i < w->n; i++)
        if (can_feed(&w->place[i], now_ms))
            least = MIN(least, *load_of(r, w->place[i].node));
    return least;
}

static struct place *best(struct rows *r, struct row *w, uint64_t node, uint64_t now_ms)
{
    uint32_t load = least_load(r, w, now_ms);
    unsigned group = rows_group(node, r->nodes);
    uint64_t least = UINT64_MAX;
    struct place *p = NULL;
    for (unsigned i = 0; i < w->n; i++) {
        struct place *q = &w->place[i];
        bool other = rows_group(q->node, r->nodes) != group;
        uint64_t its = ((uint64_t)steps_by(q, now_ms) + (*load_of(r, q->node) - load)) * 2 + other;
        if (can_feed(q, now_ms) && its < least) {
            p = q;
            least = its;
        }
    }
    return p;
}

/* Of a chunk that the owner does not have: the caretaker, which has it for certain, unless it feeds enough already.  Never the
 * asker, which may be a place that has let its copy go. */
static struct place *by_caretaker(struct rows *r, struct row *w, uint64_t node, uint64_t now_ms)
{
    struct place *c = place_of(w, w->caretaker), *p = NULL;
    if (!place_of(w, node) && (!c || !can_feed(c, now_ms)))
        p = best(r, w, node, now_ms);
    return p ? p : c;
}

uint64_t rows_ask(struct rows *r, const struct chunk_key *key, uint64_t node, uint64_t now_ms)
{
    struct row *w = used(r, key);
    if (w->caretaker == node)
        w->caretaker = 0; /* it asks, so it has lost it */
    bool again = place_of(w, node);
    struct place *p = w->caretaker ? by_caretaker(r, w, node, now_ms) :
        again || fed(&w->owner, now_ms) < ROW_FEEDS ? NULL : best(r, w, node, now_ms);
    uint64_t to = p ? p->node : 0;
    p = p ? p : &w->owner;
    unsigned steps = steps_by(p, now_ms);
    feed(p, now_ms);
    if (to)
        count_sent(r, to);
    if (again)
        place_of(w, node)->steps = steps;
    else
        enter(w, node, steps, now_ms);
    return to;
}

void rows_failed(struct rows *r, const struct chunk_key *key, uint64_t node, uint64_t not_at, uint64_t now_ms)
{
    struct row *w = used(r, key);
    drop(w, not_at);
    feed(&w->owner, now_ms);
    if (!place_of(w, node))
        enter(w, node, 1, now_ms);
}

void rows_has(struct rows *r, const struct chunk_key *key, uint64_t node)
{
    struct row *w = find(r, key);
    struct place *p = w ? place_of(w, node) : NULL;
    if (p)
        p->steps = 0;
}

void rows_gone(struct rows *r, struct fid fid, uint64_t index, uint64_t node)
{
    struct chunk_key any = {.fid = fid, .index = index}; /* the hash has no version */
    struct row *w;
    SLIST_FOREACH(w, bucket_of(r, &any), in_bucket)
        if (fid_eq(w->key.fid, fid) && w->key.index == index)
            drop(w, node);
}

static uint64_t holder(const struct row *w, uint64_t now_ms)
{
    const struct place *least = NULL;
    for (unsigned i = 0; i < w->n; i++) {
        const struct place *p = &w->place[i];
        if (!p->steps && (!least || fed(p, now_ms) < fed(least, now_ms)))
            least = p;
    }
    return least ? least->node : 0;
}

uint64_t rows_holder(const struct rows *r, const struct chunk_key *key, uint64_t now_ms)
{
    const struct row *w = find(r, key);
    return w ? holder(w, now_ms) : 0;
}

void rows_owner_gone(struct rows *r, struct fid fid, uint64_t index, uint64_t now_ms)
{
    struct chunk_key any = {.fid = fid, .index = index};
    struct row *w;
    SLIST_FOREACH(w, bucket_of(r, &any), in_bucket)
        if (!w->caretaker && fid_eq(w->key.fid, fid) && w->key.index == index)
            w->caretaker = holder(w, now_ms);
}

void rows_set_caretaker(struct rows *r, const struct chunk_key *key, uint64_t node)
{
    struct row *w = node ? used(r, key) : find(r, key);
    if (!w)
        return;
    struct place *p = node ? place_of(w, node) : NULL;
    if (node && !p)
        p = new_place(w);
    if (node && !p)
        p = &w->place[0]; /* any one makes room */
    if (p)
        *p = (struct place){.node = node};
    w->caretaker = node;
}

uint64_t rows_caretaker(const struct rows *r, const struct chunk_key *key)
{
    static const struct version any;
    struct row *w;
    SLIST_FOREACH(w, bucket_of((struct rows *)r, key), in_bucket)
        if (w->caretaker && fid_eq(w->key.fid, key->fid) && w->key.index == key->index &&
            (version_eq(&key->version, &any) || version_eq(&key->version, &w->key.version)))
            return w->caretaker;
    return 0;
}

unsigned rows_places(const struct rows *r, const struct chunk_key *key)
{
    const struct row *w = find(r, key);
    return w ? w->n : 0;
}
