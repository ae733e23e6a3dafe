/* together_sim.c - what the caches of all nodes of a session read from the PFS, in a simulation of many nodes.
 *
 *   together_sim [--nodes N] [--cache CHUNKS] [--odd PERCENT] [--skew S] [--singlets PERCENT]
 *
 *   --nodes     of the session (default 12)
 *   --cache     of each node, in chunks (default 256)
 *   --odd       each second node has room for this part of that only, though it owns as much as others: the rest has unflushed data, say
 *               (default 100)
 *   --skew      0: each chunk is read as often as any other; else how often goes with 1 / rank^S (default 0)
 *   --singlets  how much of a cache may be kept for owners that need their room; 0: owners let nothing go but to the PFS (default 50)
 *
 * All nodes read random chunks of one file, in turns.  A row for each size of the file, as a part of the sum of all
 * caches: the first half of the reads fills the caches, and the second one counts.
 *
 * The code that decides what leaves a node's cache is the daemon's (placement/store/eviction.c, with insertion.c), and
 * so is that which decides which node a reader is sent to and which one is asked to keep a chunk (placement/chunks/rows.c).  Only chunks have
 * no bytes, and messages take no time.
 *
 * Columns: of 100 reads, those that the PFS served; by one pool as large as all caches together that evicts what was used longest ago
 * (LRU); by the same pool if it knew all the future (Belady); by nodes that do not talk to each other.  Then of the session's: hits as a
 * part of Belady's; of 100 reads, those that the node itself served; redirects, and those in vain.
 */
#define boot_ms sim_ms
#include <stdint.h>
static uint64_t sim_now = 1000000;
static uint64_t sim_ms(void)
{
    return sim_now;
}
#include "placement/store/eviction.c"

#include "placement/chunks/keep.h"
#include "placement/chunks/rows.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONE      UINT32_MAX
#define ROWS_MAX  4096
#define TURN_MS   10 /* all nodes read one chunk in that */
#define READS     8  /* for each chunk that the caches hold; half of them count */

static unsigned nodes = 12, cache = 256, odd = 100, singlets = 50;
static double skew;

/* ---- the chunks in the caches ---- */

struct node {
    typeof(leaving) leaving; /* of eviction.c, while it is another node's turn */
    uint32_t n, *slot;       /* by chunk: its record, or NONE */
    struct rows *rows;
    uint64_t quiet; /* nobody is asked to keep anything until then, as nobody did */
};

static struct node *all;
static unsigned chunks; /* of the file */
static uint32_t *unused, n_unused;
static struct chunk_record *records; /* of all nodes */
static unsigned now_at;              /* whose lists eviction.c has */

struct chunk_record *state_chunk_at(uint32_t no)
{
    return no == SLOT_NONE ? NULL : &records[no];
}

static void go_to(unsigned node)
{
    if (node == now_at)
        return;
    all[now_at].leaving = leaving;
    leaving = all[node].leaving;
    now_at = node;
}

/* chunk.c needs a store, but two of its functions do not. */
bool chunk_key_eq(const struct chunk_key *a, const struct chunk_key *b)
{
    return a->index == b->index && fid_eq(a->fid, b->fid) && version_eq(&a->version, &b->version);
}

uint64_t chunk_key_hash(const struct chunk_key *k)
{
    return k->index;
}

static const struct fid file = {1, 2};

static unsigned owner_of(uint32_t chunk)
{
    return (unsigned)(data_hash(&chunk, sizeof(chunk)) % nodes);
}

static bool leaves(struct fid fid, uint64_t index, bool now)
{
    (void)fid;
    (void)now;
    struct node *n = &all[now_at];
    struct chunk_record *c = &records[n->slot[index]];
    eviction_remove(c);
    unused[n_unused++] = c->self;
    n->slot[index] = NONE;
    n->n--;
    unsigned owner = owner_of((uint32_t)index);
    if (owner != now_at)
        rows_gone(all[owner].rows, file, index, now_at + 1);
    else if (singlets)
        rows_owner_gone(all[owner].rows, file, index, sim_now);
    return true;
}

static unsigned room_of(unsigned node)
{
    return node % 2 ? cache * odd / 100 : cache;
}

static unsigned room_of_all(void)
{
    unsigned room = 0;
    for (unsigned i = 0; i < nodes; i++)
        room += room_of(i);
    return room;
}

static bool has(unsigned node, uint32_t chunk)
{
    return all[node].slot[chunk] != NONE;
}

static struct chunk_key key_of_chunk(uint32_t chunk)
{
    return (struct chunk_key){.fid = file, .index = chunk, .version = {.size = 1}};
}

/* As placement/chunks/keep.c: does this node keep it now, in place of another? */
static bool keeps(unsigned node, uint32_t chunk)
{
    bool owned = owner_of(chunk) == node;
    go_to(node);
    if (!has(node, chunk) || !eviction_may_keep(owned ? 100 : singlets))
        return false;
    eviction_keep(&records[all[node].slot[chunk]], owned ? KEEP_OWNED : KEEP_FOR_OWNER);
    return true;
}

static bool ask_to_keep(unsigned node, uint32_t chunk)
{
    unsigned owner = owner_of(chunk);
    struct chunk_key key = key_of_chunk(chunk);
    uint64_t to = owner == node ? rows_holder(all[owner].rows, &key, sim_now) : owner + 1;
    if (!to || !keeps((unsigned)to - 1, chunk))
        return false;
    rows_set_caretaker(all[owner].rows, &key, owner == node ? to : 0);
    go_to(node);
    eviction_keep(&records[all[node].slot[chunk]], KEEP_NOT);
    return true;
}

static bool is_wanted; /* a round of questions is due */

static void wanted(void)
{
    is_wanted = true;
}

static void ask_round(unsigned node)
{
    struct chunk_name next[KEEP_ASKED];
    go_to(node);
    bool any = false;
    unsigned n = singlets ? eviction_next_kept(next) : 0;
    for (unsigned i = 0; i < n; i++)
        any |= ask_to_keep(node, (uint32_t)next[i].index);
    all[node].quiet = any ? 0 : sim_now + KEEP_QUIET_MS;
    go_to(node);
}

static void put_as(unsigned node, uint32_t chunk, bool owned)
{
    struct node *n = &all[node];
    go_to(node);
    while (n->n >= room_of(node))
        eviction_one(true, false);
    if (is_wanted && sim_now >= n->quiet)
        ask_round(node);
    is_wanted = false;
    uint32_t no = unused[--n_unused];
    records[no] = (struct chunk_record){.fid = file, .index = chunk, .self = no, .lru_next = SLOT_OFF_LIST, .lru_prev = SLOT_OFF_LIST};
    n->slot[chunk] = no;
    n->n++;
    eviction_add(&records[no], owned);
}

static void put(unsigned node, uint32_t chunk)
{
    put_as(node, chunk, owner_of(chunk) == node);
}

static void use(unsigned node, uint32_t chunk)
{
    go_to(node);
    eviction_used(&records[all[node].slot[chunk]]);
}

static void begin(void)
{
    eviction_start();
    all = xcalloc(nodes, sizeof(*all));
    records = xcalloc((size_t)nodes * cache, sizeof(*records));
    unused = xmalloc((size_t)nodes * cache * sizeof(*unused));
    for (n_unused = 0; n_unused < nodes * cache; n_unused++)
        unused[n_unused] = n_unused;
    for (unsigned i = 0; i < nodes; i++) {
        all[i].leaving = leaving;
        all[i].slot = xmalloc(chunks * sizeof(uint32_t));
        memset(all[i].slot, 0xff, chunks * sizeof(uint32_t));
        all[i].rows = rows_new(ROWS_MAX, nodes);
    }
    now_at = 0;
}

static void end(void)
{
    for (unsigned i = 0; i < nodes; i++) {
        free(all[i].slot);
        rows_free(all[i].rows);
    }
    free(all);
    free(records);
    free(unused);
}

/* ---- a read ---- */

struct result {
    uint64_t reads, local, pfs, redirects, in_vain;
};

/* The owner answers: from its cache, or, if it is the reader, from who keeps the chunk, or from the PFS. */
static void owner_answers(unsigned owner, uint32_t chunk, struct result *r)
{
    struct chunk_key key = key_of_chunk(chunk);
    uint64_t caretaker = rows_caretaker(all[owner].rows, &key);
    if (has(owner, chunk)) {
        use(owner, chunk);
    } else if (caretaker && has((unsigned)caretaker - 1, chunk)) {
        use((unsigned)caretaker - 1, chunk);
        put_as(owner, chunk, false);
    } else {
        r->pfs++;
        put(owner, chunk);
    }
}

static void from_others(unsigned node, unsigned owner, uint32_t chunk, struct result *r)
{
    struct chunk_key key = key_of_chunk(chunk);
    uint64_t to = rows_ask(all[owner].rows, &key, node + 1, sim_now);
    r->redirects += to != 0;
    if (to && has((unsigned)to - 1, chunk)) {
        use((unsigned)to - 1, chunk);
    } else {
        r->in_vain += to != 0;
        if (to)
            rows_failed(all[owner].rows, &key, node + 1, to, sim_now);
        owner_answers(owner, chunk, r);
    }
    put(node, chunk);
    rows_has(all[owner].rows, &key, node + 1);
}

static void read_one(unsigned node, uint32_t chunk, struct result *r)
{
    unsigned owner = owner_of(chunk);
    r->reads++;
    if (has(node, chunk)) {
        r->local++;
        use(node, chunk);
    } else if (owner == node) {
        owner_answers(node, chunk, r);
    } else {
        from_others(node, owner, chunk, r);
    }
}

static struct result session(const uint32_t *trace, uint32_t n)
{
    struct result r = {0};
    begin();
    for (uint32_t i = 0; i < n; i++) {
        if (i == n / 2)
            r = (struct result){0};
        sim_now += i % nodes ? 0 : TURN_MS;
        read_one(i % nodes, trace[i], &r);
    }
    end();
    return r;
}

/* ---- other caches, for comparison ---- */

/* A cache of so many chunks whose greatest key leaves.  Chunks are in a heap. */
struct heap {
    uint64_t *key;              /* by chunk */
    uint32_t n, *chunk, *place; /* place: by chunk; NONE: not in it */
};

static void set_at(struct heap *h, uint32_t i, uint32_t chunk)
{
    h->chunk[i] = chunk;
    h->place[chunk] = i;
}

static void rise(struct heap *h, uint32_t i)
{
    uint32_t c = h->chunk[i];
    for (; i && h->key[h->chunk[(i - 1) / 2]] < h->key[c]; i = (i - 1) / 2)
        set_at(h, i, h->chunk[(i - 1) / 2]);
    set_at(h, i, c);
}

static void sink(struct heap *h, uint32_t i)
{
    uint32_t c = h->chunk[i];
    for (uint32_t k; (k = 2 * i + 1) < h->n; i = k) {
        k += k + 1 < h->n && h->key[h->chunk[k + 1]] > h->key[h->chunk[k]];
        if (h->key[h->chunk[k]] <= h->key[c])
            break;
        set_at(h, i, h->chunk[k]);
    }
    set_at(h, i, c);
}

static void take_greatest(struct heap *h)
{
    h->place[h->chunk[0]] = NONE;
    if (--h->n) {
        set_at(h, 0, h->chunk[h->n]);
        sink(h, 0);
    }
}

/* Is it there?  It is afterwards, with this key. */
static bool heap_use(struct heap *h, uint32_t chunk, uint64_t key, uint32_t size)
{
    bool hit = h->place[chunk] != NONE;
    if (!hit && h->n == size)
        take_greatest(h);
    if (!hit)
        set_at(h, h->n++, chunk);
    h->key[chunk] = key;
    rise(h, h->place[chunk]);
    sink(h, h->place[chunk]);
    return hit;
}

static struct heap heap_new(uint32_t size)
{
    struct heap h = {xcalloc(chunks, sizeof(uint64_t)), 0, xmalloc((size + 1) * sizeof(uint32_t)), xmalloc(chunks * sizeof(uint32_t))};
    memset(h.place, 0xff, chunks * sizeof(uint32_t));
    return h;
}

static void heap_free(struct heap *h)
{
    free(h->key);
    free(h->chunk);
    free(h->place);
}

/* next[i]: when the chunk of trace[i] is read next. */
static uint64_t *next_reads(const uint32_t *trace, uint32_t n)
{
    uint64_t *next = xmalloc(n * sizeof(*next)), *seen = xmalloc(chunks * sizeof(*seen));
    for (uint32_t c = 0; c < chunks; c++)
        seen[c] = UINT64_MAX;
    for (uint32_t i = n; i-- > 0;) {
        next[i] = seen[trace[i]];
        seen[trace[i]] = i;
    }
    free(seen);
    return next;
}

/* Misses of the second half.  next: Belady's; NULL: LRU.  step, first: only every step-th read, from first on. */
static uint64_t misses_of(const uint32_t *trace, uint32_t n, uint32_t size, const uint64_t *next, unsigned first, unsigned step)
{
    struct heap h = heap_new(size);
    uint64_t misses = 0;
    for (uint32_t i = first; i < n; i += step)
        misses += !heap_use(&h, trace[i], next ? next[i] : UINT64_MAX - i, size) && i >= n / 2;
    heap_free(&h);
    return misses;
}

static uint64_t misses_alone(const uint32_t *trace, uint32_t n)
{
    uint64_t misses = 0;
    for (unsigned i = 0; i < nodes; i++)
        misses += misses_of(trace, n, room_of(i), NULL, i, nodes);
    return misses;
}

/* ---- what is read ---- */

static double draw(void)
{
    return drand48();
}

static uint32_t *make_trace(uint32_t n)
{
    uint32_t *trace = xmalloc(n * sizeof(*trace));
    double *sum = xmalloc(chunks * sizeof(*sum)), total = 0;
    for (uint32_t c = 0; c < chunks; c++)
        sum[c] = total += pow(c + 1, -skew);
    srand48(1);
    for (uint32_t i = 0; i < n; i++) {
        double at = draw() * total;
        uint32_t low = 0, high = chunks - 1;
        while (low < high) {
            uint32_t mid = (low + high) / 2;
            if (sum[mid] < at)
                low = mid + 1;
            else
                high = mid;
        }
        trace[i] = low;
    }
    free(sum);
    return trace;
}

static double percent(uint64_t part, uint64_t whole)
{
    return 100.0 * (double)part / (double)whole;
}

static void row(double part)
{
    chunks = (unsigned)(part * room_of_all());
    uint32_t n = room_of_all() * READS;
    uint32_t *trace = make_trace(n);
    struct result r = session(trace, n);
    uint64_t *next = next_reads(trace, n), half = n - n / 2;
    uint64_t best = misses_of(trace, n, room_of_all(), next, 0, 1);
    printf("| %.1f | %.2f | %.2f | %.2f | %.2f | %.3f | %.1f | %.1f | %.2f |\n", part, percent(r.pfs, r.reads),
           percent(misses_of(trace, n, room_of_all(), NULL, 0, 1), half), percent(best, half), percent(misses_alone(trace, n), half),
           (double)(r.reads - r.pfs) / (double)(half - best), percent(r.local, r.reads), percent(r.redirects, r.reads),
           percent(r.in_vain, r.reads));
    free(next);
    free(trace);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"nodes", 1, NULL, 'n'}, {"cache", 1, NULL, 'c'}, {"odd", 1, NULL, 'o'}, {"skew", 1, NULL, 's'}, {"singlets", 1, NULL, 'k'}, {0}};
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (o == 'n')
            nodes = (unsigned)atoi(optarg);
        else if (o == 'c')
            cache = (unsigned)atoi(optarg);
        else if (o == 'o')
            odd = (unsigned)atoi(optarg);
        else if (o == 'k')
            singlets = (unsigned)atoi(optarg);
        else if (o == 's')
            skew = atof(optarg);
        else
            return 2;
    }
    eviction_on_victim(leaves, leaves);
    eviction_on_short(wanted);
    printf("%u nodes of %u chunks, each second one %u %%, skew %.2f, singlets %u %%\n", nodes, cache, odd, skew, singlets);
    printf("| file | PFS | LRU | Belady | alone | of Belady | local | redirects | in vain |\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
    for (unsigned i = 0; i < 6; i++)
        row((double[]){0.1, 0.3, 0.5, 0.7, 0.9, 1.2}[i]);
    return 0;
}
