/* shelves.c - see shelves.h.  What is in the memory is written by this node alone; what this node knows of it beside is in its own. */
#include "placement/chunks/shelves.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "placement/pfs/pfs_fid.h"
#include "transport/hash.h"
#include "transport/lock.h"
#include "transport/members.h"

#define BUCKET (SHELF_WAYS * sizeof(struct shelf_entry))
#define ALIGN  4096u

_Static_assert(sizeof(struct shelf_entry) == 256 && sizeof(struct shelf_head) == 64, "both are in other nodes' memory");

#define NONE   UINT32_MAX

struct mine {
    struct chunk_key key;
    bool full, writing, used;
    uint64_t token;
    uint32_t next; /* in its list, if it is full or being written; or NONE */
};

struct shelves {
    struct shelves_shape shape;
    uint8_t *at;
    uint64_t self;
    struct lock lock; /* RANK_LEAF: all below, and the entries */
    struct mine *mine; /* nshelves */
    uint32_t *first;   /* nshelves lists, by a hash of the chunk */
    uint32_t hand, full;
    uint64_t tokens;   /* the last one */
    uint8_t *oldest;   /* of each bucket: the way that is used next */
};

/* ---- where it is ---- */

static size_t stride(size_t chunk)
{
    return (sizeof(struct shelf_head) + chunk + ALIGN - 1) / ALIGN * ALIGN;
}

/* As many buckets as shelves: an owner's directory also has chunks that only other nodes have in shelves. */
bool shelves_shape(uint64_t len, size_t chunk, struct shelves_shape *out)
{
    uint64_t n = len / (stride(chunk) + BUCKET);
    if (len < ALIGN || !n || n > UINT32_MAX / 2)
        return false;
    while (n && (n * BUCKET + ALIGN - 1) / ALIGN * ALIGN + n * stride(chunk) > len)
        n--;
    *out = (struct shelves_shape){.len = len, .chunk = chunk, .nbuckets = (uint32_t)n, .nshelves = (uint32_t)n};
    return n > 0;
}

static uint32_t bucket_of(const struct shelves_shape *s, struct fid fid, uint64_t index)
{
    struct chunk_key key = {.fid = fid, .index = index};
    return (uint32_t)(chunk_key_hash(&key) % s->nbuckets);
}

uint64_t shelves_bucket_at(const struct shelves_shape *s, const struct chunk_key *key)
{
    return bucket_of(s, key->fid, key->index) * BUCKET;
}

uint64_t shelves_shelf_at(const struct shelves_shape *s, uint32_t shelf)
{
    return (s->nbuckets * BUCKET + ALIGN - 1) / ALIGN * ALIGN + shelf * (uint64_t)stride(s->chunk);
}

static uint64_t version_hash(const struct version *v)
{
    const uint64_t all[] = {v->size, (uint64_t)v->mtime_ns, (uint64_t)v->ctime_ns};
    return data_hash(all, sizeof(all));
}

/* ---- another node's ---- */

static uint64_t check_of(const struct shelf_entry *e)
{
    uint64_t hash = data_hash((const uint8_t *)e + sizeof(e->check), sizeof(*e) - sizeof(e->check));
    return hash ? hash : 1;
}

static bool is_of(const struct shelf_entry *e, struct fid fid, uint64_t index)
{
    return e->check && e->index == index && fid_eq(e->fid, fid);
}

int shelves_find(const struct shelves_shape *s, const struct chunk_key *key, shelves_get get, void *arg, struct shelf_entry *out)
{
    struct shelf_entry bucket[SHELF_WAYS];
    int err = get(arg, shelves_bucket_at(s, key), bucket, sizeof(bucket));
    if (err)
        return err;
    for (unsigned i = 0; i < SHELF_WAYS; i++) {
        const struct shelf_entry *e = &bucket[i];
        if (!is_of(e, key->fid, key->index) || e->check != check_of(e))
            continue;
        if (e->version != version_hash(&key->version) || e->len != chunk_key_len(key) || !e->nplaces || e->nplaces > SHELF_PLACES)
            return -ENOENT;
        *out = *e;
        return 0;
    }
    return -ENOENT;
}

int shelves_read(const struct shelves_shape *s, const struct shelf_entry *e, const struct shelf_place *p, shelves_get get, void *arg, void *buf)
{
    struct shelf_head head;
    if (p->shelf >= s->nshelves || e->len > s->chunk)
        return -EINVAL;
    uint64_t at = shelves_shelf_at(s, p->shelf);
    int err = get(arg, at, &head, sizeof(head));
    if (err)
        return err;
    if (!head.token || head.token != p->token)
        return -ENOENT;
    err = get(arg, at + sizeof(head), buf, e->len);
    if (err)
        return err;
    return data_hash(buf, e->len) == e->hash ? 0 : -EBADMSG;
}

/* ---- this node's shelves ---- */

struct shelves *shelves_new(void *memory, uint64_t len, size_t chunk, uint64_t self)
{
    struct shelves_shape shape;
    if (!shelves_shape(len, chunk, &shape))
        return NULL;
    struct shelves *s = xcalloc(1, sizeof(*s));
    s->shape = shape;
    s->at = memory;
    s->self = self;
    s->mine = xcalloc(shape.nshelves, sizeof(*s->mine));
    s->oldest = xcalloc(shape.nbuckets, 1);
    s->first = xmalloc(shape.nshelves * sizeof(*s->first));
    for (uint32_t i = 0; i < shape.nshelves; i++)
        s->first[i] = NONE;
    s->tokens = real_ns() > 0 ? (uint64_t)real_ns() : 1; /* a daemon that was killed had others */
    lock_init(&s->lock, RANK_LEAF);
    return s;
}

void shelves_free(struct shelves *s)
{
    if (!s)
        return;
    lock_destroy(&s->lock);
    free(s->mine);
    free(s->first);
    free(s->oldest);
    free(s);
}

const struct shelves_shape *shelves_shape_of(const struct shelves *s)
{
    return &s->shape;
}

static struct shelf_head *head_of(const struct shelves *s, uint32_t shelf)
{
    return (struct shelf_head *)(void *)(s->at + shelves_shelf_at(&s->shape, shelf));
}

/* Other nodes' gets see what was stored before it no later than what is stored behind it. */
static void gets_order(void)
{
#ifndef __SANITIZE_THREAD__ /* it knows no fences, and takes a thread's order as it stands */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static void set_token(struct shelves *s, uint32_t shelf, uint64_t token)
{
    __atomic_store_n(&head_of(s, shelf)->token, token, __ATOMIC_RELEASE);
    gets_order();
}

/* ---- with the lock ---- */

static uint32_t *list_of(const struct shelves *s, struct fid fid, uint64_t index)
{
    struct chunk_key key = {.fid = fid, .index = index};
    return &s->first[chunk_key_hash(&key) % s->shape.nshelves];
}

static uint32_t shelf_of(const struct shelves *s, struct fid fid, uint64_t index)
{
    uint32_t i = *list_of(s, fid, index);
    while (i != NONE && !(s->mine[i].key.index == index && fid_eq(s->mine[i].key.fid, fid)))
        i = s->mine[i].next;
    return i;
}

static void enlist(struct shelves *s, uint32_t i)
{
    uint32_t *list = list_of(s, s->mine[i].key.fid, s->mine[i].key.index);
    s->mine[i].next = *list;
    *list = i;
}

static void unlist(struct shelves *s, uint32_t i)
{
    uint32_t *at = list_of(s, s->mine[i].key.fid, s->mine[i].key.index);
    while (*at != i)
        at = &s->mine[*at].next;
    *at = s->mine[i].next;
}

/* A free one, or one that was not used since the hand came by; NONE: all are being written. */
static uint32_t choose(struct shelves *s)
{
    for (uint64_t n = 0; n < 2ull * s->shape.nshelves; n++) {
        uint32_t i = s->hand;
        struct mine *m = &s->mine[i];
        s->hand = (s->hand + 1) % s->shape.nshelves;
        if (!m->writing && !m->used)
            return i;
        if (!m->writing)
            m->used = false;
    }
    return NONE;
}

static void leave(struct shelves *s, struct fid fid, uint64_t index, uint64_t node);

/* The shelf is being written from now on. */
static void begin(struct shelves *s, uint32_t i, const struct chunk_key *key)
{
    struct mine *m = &s->mine[i];
    if (m->full) {
        leave(s, m->key.fid, m->key.index, s->self);
        unlist(s, i);
        s->full--;
    }
    *m = (struct mine){.key = *key, .writing = true, .token = ++s->tokens};
    enlist(s, i);
    set_token(s, i, 0);
}

/* False: the chunk was dropped meanwhile. */
static bool end(struct shelves *s, uint32_t i, uint64_t token)
{
    struct mine *m = &s->mine[i];
    m->writing = false;
    m->full = m->token == token;
    if (!m->full) {
        unlist(s, i);
        return false;
    }
    s->full++;
    set_token(s, i, token);
    return true;
}

bool shelves_put(struct shelves *s, const struct chunk_key *key, const void *bytes, size_t len, struct shelf_place *place, bool *had,
               struct chunk_key *gone)
{
    lock_take(&s->lock);
    uint32_t i = shelf_of(s, key->fid, key->index) != NONE || len > s->shape.chunk ? NONE : choose(s);
    if (i == NONE) {
        lock_drop(&s->lock);
        return false;
    }
    *had = s->mine[i].full;
    *gone = s->mine[i].key;
    begin(s, i, key);
    uint64_t token = s->mine[i].token;
    lock_drop(&s->lock);
    memcpy((uint8_t *)head_of(s, i) + sizeof(struct shelf_head), bytes, len);
    lock_take(&s->lock);
    bool full = end(s, i, token);
    lock_drop(&s->lock);
    *place = (struct shelf_place){.node = s->self, .token = token, .shelf = i};
    return full;
}

void shelves_used(struct shelves *s, const struct chunk_key *key)
{
    lock_take(&s->lock);
    uint32_t i = shelf_of(s, key->fid, key->index);
    if (i != NONE)
        s->mine[i].used = true;
    lock_drop(&s->lock);
}

bool shelves_drop(struct shelves *s, struct fid fid, uint64_t index)
{
    lock_take(&s->lock);
    uint32_t i = shelf_of(s, fid, index);
    if (i != NONE) {
        struct mine *m = &s->mine[i];
        leave(s, fid, index, s->self);
        set_token(s, i, 0);
        if (m->full) {
            unlist(s, i);
            s->full--;
        }
        m->token = 0;
        m->full = m->used = false;
    }
    lock_drop(&s->lock);
    return i != NONE;
}

unsigned shelves_in_use(struct shelves *s)
{
    lock_take(&s->lock);
    unsigned n = s->full;
    lock_drop(&s->lock);
    return n;
}

/* ---- this node's directory: with the lock ---- */

static struct shelf_entry *bucket_at(const struct shelves *s, uint32_t bucket)
{
    return (struct shelf_entry *)(void *)(s->at + bucket * BUCKET);
}

static struct shelf_entry *entry_of(const struct shelves *s, struct fid fid, uint64_t index)
{
    struct shelf_entry *e = bucket_at(s, bucket_of(&s->shape, fid, index));
    for (unsigned i = 0; i < SHELF_WAYS; i++)
        if (is_of(&e[i], fid, index))
            return &e[i];
    return NULL;
}

/* An entry with half of its bytes has a wrong hash, in whatever order they are read. */
static void set_entry(struct shelf_entry *at, struct shelf_entry e)
{
    __atomic_store_n(&at->check, 0, __ATOMIC_RELEASE);
    gets_order();
    if (!e.nplaces)
        return;
    e.check = 0;
    *at = e;
    __atomic_store_n(&at->check, check_of(&e), __ATOMIC_RELEASE);
}

/* A copy; all zeros if another process has written into it: on one host the memory may be writable for it (docs/transport.md). */
static struct shelf_entry read_entry(const struct shelf_entry *at)
{
    struct shelf_entry e = *at;
    return e.nplaces <= SHELF_PLACES && e.check == check_of(&e) ? e : (struct shelf_entry){0};
}

static void leave(struct shelves *s, struct fid fid, uint64_t index, uint64_t node)
{
    struct shelf_entry *at = entry_of(s, fid, index);
    struct shelf_entry e = at ? read_entry(at) : (struct shelf_entry){0};
    for (uint32_t i = 0; i < e.nplaces; i++)
        if (e.place[i].node == node) {
            e.place[i] = e.place[--e.nplaces];
            set_entry(at, e);
            return;
        }
}

void shelves_leave(struct shelves *s, struct fid fid, uint64_t index, uint64_t node)
{
    lock_take(&s->lock);
    leave(s, fid, index, node);
    lock_drop(&s->lock);
}

static void keep_members(struct shelf_entry *at, const struct view *v)
{
    struct shelf_entry e = read_entry(at);
    uint32_t had = e.nplaces;
    for (uint32_t i = 0; i < e.nplaces;)
        if (v && view_member(v, e.place[i].node))
            i++;
        else
            e.place[i] = e.place[--e.nplaces];
    if (e.nplaces != had || !had)
        set_entry(at, e);
}

void shelves_keep_members(struct shelves *s, const struct view *v)
{
    lock_take(&s->lock);
    for (uint32_t b = 0; b < s->shape.nbuckets; b++)
        for (unsigned i = 0; i < SHELF_WAYS; i++)
            if (bucket_at(s, b)[i].check)
                keep_members(&bucket_at(s, b)[i], v);
    lock_drop(&s->lock);
}

void shelves_strike(struct shelves *s, struct fid fid, uint64_t index)
{
    lock_take(&s->lock);
    struct shelf_entry *at = entry_of(s, fid, index);
    if (at)
        set_entry(at, (struct shelf_entry){0});
    lock_drop(&s->lock);
}

static struct shelf_entry *entry_for(struct shelves *s, const struct chunk_key *key)
{
    uint32_t b = bucket_of(&s->shape, key->fid, key->index);
    struct shelf_entry *e = bucket_at(s, b), *old = entry_of(s, key->fid, key->index);
    if (old)
        return old;
    for (unsigned i = 0; i < SHELF_WAYS; i++)
        if (!e[i].check)
            return &e[i];
    s->oldest[b] = (uint8_t)((s->oldest[b] + 1) % SHELF_WAYS);
    return &e[s->oldest[b]];
}

/* Adds or replaces the place of its node. */
static bool add_place(struct shelf_entry *e, const struct shelf_place *place)
{
    uint32_t i = 0;
    while (i < e->nplaces && e->place[i].node != place->node)
        i++;
    if (i >= SHELF_PLACES)
        return false;
    e->place[i] = *place;
    e->nplaces = MAX(e->nplaces, i + 1);
    return true;
}

static bool enter(struct shelf_entry *at, const struct chunk_key *key, uint64_t hash, size_t len, const struct shelf_place *place)
{
    struct shelf_entry e = read_entry(at);
    uint64_t version = version_hash(&key->version);
    if (!is_of(&e, key->fid, key->index) || e.version != version)
        e = (struct shelf_entry){.fid = key->fid, .index = key->index, .version = version, .hash = hash, .len = (uint32_t)len};
    bool entered = e.hash == hash && e.len == len && add_place(&e, place);
    if (entered)
        set_entry(at, e);
    return entered;
}

bool shelves_enter(struct shelves *s, const struct chunk_key *key, uint64_t hash, size_t len, const struct shelf_place *place)
{
    lock_take(&s->lock);
    bool entered = enter(entry_for(s, key), key, hash, len, place);
    lock_drop(&s->lock);
    return entered;
}

bool shelves_join(struct shelves *s, const struct chunk_key *key, uint64_t hash, size_t len, const struct shelf_place *place)
{
    lock_take(&s->lock);
    struct shelf_entry *at = entry_of(s, key->fid, key->index);
    bool joined = at && at->version == version_hash(&key->version) && enter(at, key, hash, len, place);
    lock_drop(&s->lock);
    return joined;
}

unsigned shelves_places(struct shelves *s, const struct chunk_key *key)
{
    lock_take(&s->lock);
    const struct shelf_entry *e = entry_of(s, key->fid, key->index);
    unsigned n = e && e->version == version_hash(&key->version) ? e->nplaces : 0;
    lock_drop(&s->lock);
    return n;
}
