/* ring.c - the ring of a view: the hash of a chunk or a file -> its place -> the nodes of its order.
 *
 * A place, 64 bits, belongs to two slots.  Each member of the view has an arrival time at each slot
 * (slots.c).  The member that is the first to arrive at one of the two slots owns the place (or is its home);
 * the member after it is next.  A member that leaves drops out of the orders, a member that joins is put into
 * them, and nothing else moves: when the owner leaves, next owns the place.
 *
 *      table    first[]   for each slot: the first member to arrive, and roughly its time
 *               second[]  for each slot: the second member
 *
 * So a look-up reads two entries of 16 bits that do not wait for each other, whatever the number of nodes.
 * If both entries have the same time, the exact times are computed.  The members after the second, and the
 * orders of a view that has no table yet or any more, are also computed, from the times of all members.
 *
 * Why is it not a consistent-hash ring with virtual nodes, as in HVAC and FT-Cache (Lee et al.,
 * "Fault-Tolerant Deep Learning Cache with Hash Ring")?  From test/bench/ring_sim.c, with 1,024 nodes
 * of which one fails (docs/placement.md):
 *
 *                                    this    ring of 100    ring of 1,000 points per node
 *      share of hashes, max/mean     1.04    1.36           1.11
 *                       min/mean     0.96    0.71           0.90
 *      receivers, against chance     0.96    0.20           0.72
 *      look-up                       18 ns   24 ns          100 ns and more
 *      table                         8 MiB   2.6 MiB        24 MiB
 */
#include "placement/ring/ring.h"

#include "transport/jobs.h"
#include "transport/lock.h"
#include "transport/view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE      (2u << 20)
#define LEVEL_BITS_MAX 8
/* How many times are computed (about 20 ns each) before a view gets a table. */
#define TABLE_AFTER 200000

/* An entry of first is level << member_bits | member; a later visit has no lower level.  An entry of second
 * is the member. */
struct table {
    _Atomic uint16_t first[SLOTS], second[SLOTS];
};

struct ring {
    const struct view *view;
    struct ring *next; /* ring_of's list */
    struct slots *slots;
    uint32_t nids, member_bits;
    uint64_t *ids;
    _Atomic uint64_t worked_out; /* times of members that were computed because there is no table */
    struct table *_Atomic table; /* NULL: not made yet, or given to a newer ring */
};

/* ---- lookup ---- */

/* The finaliser of MurmurHash3 (Appleby, public domain). */
static uint64_t scatter(uint64_t h)
{
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdu;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 33;
}

uint64_t ring_place(struct fid fid, uint64_t index)
{
    return scatter(scatter(fid.hi + 0x9e3779b97f4a7c15u) ^ fid.lo ^ index * 0xd6e8feb86659fd93u);
}

static uint32_t entry(const _Atomic uint16_t *slots, uint32_t slot)
{
    return atomic_load_explicit(&slots[slot], memory_order_acquire);
}

/* Which of two members arrives earlier at its slot.  The entries may be a newer ring's, and name members
 * that this ring does not have: then any answer is good (look_up). */
static uint32_t earlier(const struct ring *r, uint32_t m, uint32_t slot, uint32_t m2,
                        uint32_t slot2)
{
    if (MAX(m, m2) >= r->nids)
        return 0;
    return slots_visit(r->slots, m, slot) < slots_visit(r->slots, m2, slot2) ? m : m2;
}

static uint32_t member_in(const struct ring *r, uint32_t entry)
{
    return entry & ((1u << r->member_bits) - 1);
}

static uint32_t look_up_first(const struct ring *r, const struct table *t, uint64_t place)
{
    uint32_t slot = slot_at_place(place, 0), slot2 = slot_at_place(place, 1);
    uint32_t e = entry(t->first, slot), e2 = entry(t->first, slot2);
    if (__builtin_expect((e ^ e2) >> r->member_bits || e == e2, 1))
        return member_in(r, MIN(e, e2));
    return earlier(r, member_in(r, e), slot, member_in(r, e2), slot2);
}

/* The first member except the owner: in a slot where the owner is first, that is the slot's second one. */
static uint32_t look_up_second(const struct ring *r, const struct table *t, uint64_t place)
{
    uint32_t owner = look_up_first(r, t, place), slots[2], m[2];
    for (unsigned i = 0; i < 2; i++) {
        slots[i] = slot_at_place(place, i);
        m[i] = member_in(r, entry(t->first, slots[i]));
        if (m[i] == owner)
            m[i] = entry(t->second, slots[i]);
    }
    return earlier(r, m[0], slots[0], m[1], slots[1]);
}

/* A table may be given to a newer ring meanwhile.  That ring's entries are stored, with release,
 * after `table` was cleared: a thread that loads one of them here sees that it was cleared. */
static bool look_up(const struct ring *r, uint64_t place, unsigned n, uint32_t *member)
{
    const struct table *t = atomic_load_explicit(&r->table, memory_order_acquire);
    if (!t || n > 1)
        return false;
    *member = n ? look_up_second(r, t, place) : look_up_first(r, t, place);
    return atomic_load_explicit(&r->table, memory_order_relaxed) == t;
}

static void begin_table(const struct ring *r);

uint64_t ring_node(const struct ring *r, uint64_t place, unsigned n)
{
    uint32_t member;
    if (!r || n >= r->nids || n >= SLOT_ORDER_MAX)
        return 0;
    if (r->nids == 1)
        return r->ids[0];
    if (!look_up(r, place, n, &member)) {
        member = slots_nth(r->slots, place, n);
        if (n < 2)
            begin_table(r);
    }
    return r->ids[member];
}

uint64_t ring_owner(const struct ring *r, struct fid fid, uint64_t index, unsigned n)
{
    return ring_node(r, ring_place(fid, index), n);
}

/* A file's home does not depend on the owner of its first chunk: the load of metadata and that of data are
 * spread independently. */
uint64_t ring_home(const struct ring *r, struct fid fid, unsigned n)
{
    return ring_node(r, ring_place(fid, UINT64_MAX - 1), n);
}

/* ---- making one ---- */

static struct ring *new_without_table(const struct view *v)
{
    struct ring *r = xcalloc(1, sizeof(*r));
    r->view = v;
    r->slots = slots_new(v->members, v->nmembers);
    r->nids = v->nmembers;
    while (1u << r->member_bits < r->nids)
        r->member_bits++;
    r->ids = xcalloc(v->nmembers + 1, sizeof(*r->ids));
    for (uint32_t i = 0; i < v->nmembers; i++)
        r->ids[i] = v->members[i].id;
    return r;
}

/* In large pages if there are some, because look-ups go everywhere in it. */
static struct table *new_table(void)
{
    struct table *t = aligned_alloc(HUGE_PAGE, sizeof(*t));
    _Static_assert(sizeof(*t) % HUGE_PAGE == 0, "aligned_alloc");
    if (!t)
        die("out of memory for the ring's table");
    madvise(t, sizeof(*t), MADV_HUGEPAGE);
    return t;
}

static int by_time(const void *a, const void *b)
{
    visit_t x = *(const visit_t *)a, y = *(const visit_t *)b;
    return (x > y) - (x < y);
}

/* The visit at which each level begins, so that all levels have the same number of visits. */
static uint32_t make_levels(const struct ring *r, const visit_t visits[BLOCK_SLOTS],
                            visit_t levels[1 << LEVEL_BITS_MAX])
{
    uint32_t n = 1u << MIN(16 - r->member_bits, (uint32_t)LEVEL_BITS_MAX);
    visit_t *sorted = xmalloc(BLOCK_SLOTS * sizeof(*sorted));
    memcpy(sorted, visits, BLOCK_SLOTS * sizeof(*sorted));
    qsort(sorted, BLOCK_SLOTS, sizeof(*sorted), by_time);
    for (uint32_t i = 0; i < n; i++)
        levels[i] = i ? sorted[i * (BLOCK_SLOTS / n)] : 0;
    free(sorted);
    return n;
}

static uint32_t level_of(const visit_t *levels, uint32_t n, visit_t v)
{
    uint32_t low = 0;
    for (uint32_t step = n / 2; step; step /= 2)
        if (levels[low + step] <= v)
            low += step;
    return low;
}

static void fill_table(const struct ring *r, struct table *t)
{
    visit_t(*both)[BLOCK_SLOTS] = xmalloc(2 * sizeof(*both)), levels[1 << LEVEL_BITS_MAX];
    uint32_t nlevels = 0;
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        uint32_t i = slot % BLOCK_SLOTS;
        if (!i)
            slots_first_two(r->slots, slot / BLOCK_SLOTS, both[0], both[1]);
        if (!slot)
            nlevels = make_levels(r, both[0], levels);
        uint32_t level = level_of(levels, nlevels, both[0][i]);
        atomic_store_explicit(&t->first[slot],
                              (uint16_t)(level << r->member_bits | visit_member(both[0][i])),
                              memory_order_release);
        atomic_store_explicit(&t->second[slot], (uint16_t)visit_member(both[1][i]),
                              memory_order_release);
    }
    free(both);
}

struct ring *ring_new(const struct view *v)
{
    struct ring *r = new_without_table(v);
    if (r->nids > 1) {
        struct table *t = new_table();
        fill_table(r, t);
        r->table = t;
    }
    return r;
}

void ring_free(struct ring *r)
{
    if (!r)
        return;
    slots_free(r->slots);
    free(r->ids);
    free(r->table);
    free(r);
}

size_t ring_bytes(const struct ring *r)
{
    return sizeof(*r) + (r->nids + 1) * sizeof(*r->ids) + slots_bytes(r->slots) +
           (r->table ? sizeof(struct table) : 0);
}

bool ring_has_table(const struct ring *r)
{
    return atomic_load(&r->table);
}

/* ---- the ring of a view: made once, found in a short list, newest first ---- */

static struct ring *_Atomic rings;
static pthread_mutex_t rings_mutex = PTHREAD_MUTEX_INITIALIZER;

static _Atomic uint64_t newest; /* view that there is a ring of */

/* There are two tables, for the rings of two views, the newest last.  A ring without a table
 * is only slower. */
static struct {
    struct table *table;
    struct ring *ring;
} tables[2];
static pthread_mutex_t tables_mutex = PTHREAD_MUTEX_INITIALIZER;

/* It takes some tenths of a second at 1,024 nodes, so no request waits for it. */
static void *make_table(void *arg)
{
    struct ring *r = arg;
    pthread_mutex_lock(&tables_mutex);
    if (r->view->number == newest) { /* else another thread makes that of a newer view */
        struct table *t = tables[0].table ? tables[0].table : new_table();
        if (tables[0].ring)
            tables[0].ring->table = NULL;
        fill_table(r, t);
        r->table = t;
        tables[0] = tables[1];
        tables[1].table = t;
        tables[1].ring = r;
    }
    pthread_mutex_unlock(&tables_mutex);
    return NULL;
}

/* Counts the computed times, and begins the making of the table when they are enough.  Views that are soon
 * gone, and nodes that do nothing, never have one. */
static void begin_table(const struct ring *r)
{
    struct ring *ring = (struct ring *)r; /* none is made const */
    uint64_t before = atomic_fetch_add_explicit(&ring->worked_out, r->nids, memory_order_relaxed);
    if (before >= TABLE_AFTER || before + r->nids < TABLE_AFTER || r->nids == 1)
        return;
    pthread_t thread;
    int err = thread_start(&thread, make_table, ring, "ring table");
    if (err)
        log_warn("the ring's table is not made: %s: look-ups in view %" PRIu64 " are slower",
                 strerror(-err), r->view->number);
    else
        pthread_detach(thread);
}

static const struct ring *find(const struct view *v)
{
    for (const struct ring *r = rings; r; r = r->next)
        if (r->view == v)
            return r;
    return NULL;
}

const struct ring *ring_of(const struct view *v)
{
    if (!v)
        return NULL;
    const struct ring *found = find(v);
    if (found)
        return found;
    pthread_mutex_lock(&rings_mutex);
    found = find(v);
    if (!found) {
        struct ring *r = new_without_table(v);
        r->next = rings;
        rings = r;
        newest = MAX(newest, v->number);
        found = r;
    }
    pthread_mutex_unlock(&rings_mutex);
    return found;
}
