/* eviction.c - the lists of chunks that may leave.
 *
 *     new --> fresh ----not new any more----> others
 *                 ^ used: stays there           ^ used: to the end
 *
 * The first of the others leaves next.  A chunk that is not new any more goes to the end of the others; by
 * the early policy (insertion.h), to their beginning.
 *
 * Chunks of which the time of the next read was told are on lists of their own: "never" leaves before all of these, hinted
 * ones after all of these, when foresight has given them up.
 */
#include "placement/store/eviction.h"

#include "placement/store/insertion.h"
#include "placement/store/pages.h"
#include "placement/store/state.h"
#include "placement/store/state_table.h"
#include "transport/hash.h"
#include "transport/lock.h"

struct list {
    uint32_t first, last, n;
};
#define EMPTY ((struct list){SLOT_NONE, SLOT_NONE, 0})

enum { REPLICAS, KEPT, KINDS }; /* in the order in which they leave */

struct kind {
    struct list never, fresh, others;
    struct insertion insertion;
};

static struct {
    struct lock lock; /* RANK_SPACE */
    struct kind kind[KINDS];
    struct list hinted; /* of both kinds */
    uint32_t singlets;  /* listed chunks that are kept for their owners */
} leaving;

void eviction_start(void)
{
    static bool made;
    if (!made)
        lock_init(&leaving.lock, RANK_SPACE);
    made = true;
    for (unsigned i = 0; i < KINDS; i++) {
        leaving.kind[i].never = leaving.kind[i].fresh = leaving.kind[i].others = EMPTY;
        insertion_start(&leaving.kind[i].insertion);
    }
    leaving.hinted = EMPTY;
    leaving.singlets = 0;
}

/* ---- when it was used ---- */

/* The field `touched` of a record tells when the chunk was used, and on which list it is, or will be.  It
 * is changed with the lock, and read without. */
#define FRESH   0x8000u
#define HINTED  0x4000u
#define NEVER   0x2000u
#define SINGLET 0x1000u /* kept for its owner, as the session's last copy */
#define TIMES   (HINTED | NEVER)
#define STAMP   0x0fffu

static uint16_t stamp_now(void)
{
    return (uint16_t)(boot_ms() / 1024 & STAMP);
}

static uint16_t touched(const struct chunk_record *c)
{
    return __atomic_load_n(&c->touched, __ATOMIC_RELAXED);
}

static void set_word(struct chunk_record *c, unsigned word)
{
    __atomic_store_n(&c->touched, (uint16_t)word, __ATOMIC_RELAXED);
}

/* What was told of its next read stays, and for whom it is kept. */
static void set_touched(struct chunk_record *c, uint16_t stamp, bool fresh)
{
    set_word(c, stamp | (fresh ? FRESH : 0) | (touched(c) & (TIMES | SINGLET)));
}

/* ---- a list ---- */

static bool listed(const struct chunk_record *c)
{
    return c->lru_next != SLOT_OFF_LIST;
}

/* The links of its neighbours, or of the list's ends. */
static uint32_t *link_to(struct list *l, const struct chunk_record *c)
{
    return c->lru_prev != SLOT_NONE ? &state_chunk_at(c->lru_prev)->lru_next : &l->first;
}

static uint32_t *link_back(struct list *l, const struct chunk_record *c)
{
    return c->lru_next != SLOT_NONE ? &state_chunk_at(c->lru_next)->lru_prev : &l->last;
}

static void take_out(struct list *l, struct chunk_record *c)
{
    *link_to(l, c) = c->lru_next;
    *link_back(l, c) = c->lru_prev;
    c->lru_next = c->lru_prev = SLOT_OFF_LIST;
    l->n--;
    leaving.singlets -= !!(touched(c) & SINGLET);
}

static void put_between(struct list *l, struct chunk_record *c, uint32_t prev, uint32_t next)
{
    c->lru_prev = prev;
    c->lru_next = next;
    *link_to(l, c) = *link_back(l, c) = c->self;
    l->n++;
    leaving.singlets += !!(touched(c) & SINGLET);
}

static void put_first(struct list *l, struct chunk_record *c)
{
    put_between(l, c, SLOT_NONE, l->first);
}

static void put_last(struct list *l, struct chunk_record *c)
{
    put_between(l, c, l->last, SLOT_NONE);
}

/* ---- of a kind ---- */

static struct kind *kind_of(const struct chunk_record *c)
{
    return &leaving.kind[c->flags & CHUNK_OWNED ? KEPT : REPLICAS];
}

static struct list *list_of(const struct chunk_record *c)
{
    struct kind *k = kind_of(c);
    if (touched(c) & TIMES)
        return touched(c) & HINTED ? &leaving.hinted : &k->never;
    return touched(c) & FRESH ? &k->fresh : &k->others;
}

static uint32_t count_of(const struct kind *k)
{
    return k->fresh.n + k->others.n;
}

static uint64_t key_of(const struct chunk_record *c)
{
    struct {
        struct fid fid;
        uint64_t index;
    } name = {c->fid, c->index};
    return data_hash(&name, sizeof(name));
}

/* Those that were new long enough join the others. */
static void limit_fresh(struct kind *k)
{
    uint32_t max = insertion_fresh(count_of(k));
    while (k->fresh.n > max) {
        struct chunk_record *c = state_chunk_at(k->fresh.first);
        take_out(&k->fresh, c);
        set_touched(c, touched(c) & STAMP, false);
        if (insertion_is_first(&k->insertion))
            put_first(&k->others, c);
        else
            put_last(&k->others, c);
    }
}

static bool (*hinted_of)(struct fid fid, uint64_t index);

void eviction_on_hinted(bool (*hinted)(struct fid fid, uint64_t index))
{
    hinted_of = hinted;
}

static bool is_hinted(const struct chunk_record *c)
{
    return touched(c) & HINTED || (hinted_of && hinted_of(c->fid, c->index));
}

void eviction_add(struct chunk_record *c, bool owned)
{
    bool hinted = is_hinted(c);
    lock_take(&leaving.lock);
    bool is_new = !listed(c), fresh = is_new || touched(c) & FRESH;
    if (!is_new)
        take_out(list_of(c), c);
    c->flags = (uint16_t)(owned ? c->flags | CHUNK_OWNED : c->flags & ~CHUNK_OWNED);
    if (!owned)
        set_word(c, touched(c) & ~SINGLET);
    if (hinted)
        set_word(c, HINTED | (touched(c) & SINGLET));
    set_touched(c, stamp_now(), fresh);
    put_last(list_of(c), c);
    struct kind *k = kind_of(c);
    if (is_new)
        insertion_use(&k->insertion, key_of(c));
    limit_fresh(k);
    lock_drop(&leaving.lock);
}

void eviction_remove(struct chunk_record *c)
{
    lock_take(&leaving.lock);
    if (listed(c))
        take_out(list_of(c), c);
    if (touched(c) & SINGLET)
        c->flags = (uint16_t)(c->flags & ~CHUNK_OWNED);
    set_word(c, touched(c) & ~SINGLET);
    lock_drop(&leaving.lock);
}

void eviction_used(struct chunk_record *c)
{
    uint16_t now = stamp_now();
    if ((touched(c) & STAMP) == now) /* called often: does not even look at the lists */
        return;
    lock_take(&leaving.lock);
    bool fresh = touched(c) & FRESH;
    if (listed(c)) {
        insertion_use(&kind_of(c)->insertion, key_of(c));
        if (!fresh) {
            take_out(list_of(c), c);
            set_word(c, touched(c) & ~NEVER); /* it was read again */
            put_last(list_of(c), c);
        }
    }
    set_touched(c, now, fresh);
    lock_drop(&leaving.lock);
}

void eviction_set_time(struct chunk_record *c, enum eviction_time t)
{
    lock_take(&leaving.lock);
    bool is_listed = listed(c);
    if (is_listed)
        take_out(list_of(c), c);
    set_word(c, (touched(c) & (STAMP | SINGLET)) | (t == TIME_HINTED ? HINTED : t == TIME_NEVER ? NEVER : 0));
    if (is_listed)
        put_last(list_of(c), c);
    lock_drop(&leaving.lock);
}

/* ---- who keeps it ---- */

void eviction_keep(struct chunk_record *c, enum keep keep)
{
    lock_take(&leaving.lock);
    bool is_listed = listed(c);
    if (is_listed)
        take_out(list_of(c), c);
    c->flags = (uint16_t)(keep == KEEP_NOT ? c->flags & ~CHUNK_OWNED : c->flags | CHUNK_OWNED);
    set_word(c, (touched(c) & (TIMES | STAMP)) | (keep == KEEP_FOR_OWNER ? SINGLET : 0));
    if (is_listed && keep == KEEP_NOT)
        put_first(list_of(c), c);
    else if (is_listed)
        put_last(list_of(c), c);
    lock_drop(&leaving.lock);
}

bool eviction_may_keep(unsigned percent)
{
    lock_take(&leaving.lock);
    const struct kind *replicas = &leaving.kind[REPLICAS];
    uint32_t leave = count_of(replicas) + replicas->never.n,
             all = leave + count_of(&leaving.kind[KEPT]) + leaving.kind[KEPT].never.n + leaving.hinted.n;
    bool may = leave > KEEP_STOCK && (uint64_t)leaving.singlets * 100 < (uint64_t)all * percent;
    lock_drop(&leaving.lock);
    return may;
}

static uint32_t replicas_now(void)
{
    const struct kind *k = &leaving.kind[REPLICAS];
    return count_of(k) + k->never.n;
}

uint32_t eviction_replicas(void)
{
    lock_take(&leaving.lock);
    uint32_t n = replicas_now();
    lock_drop(&leaving.lock);
    return n;
}

static bool is_short(void)
{
    return replicas_now() < KEEP_STOCK;
}

static unsigned first_of(const struct list *l, struct chunk_name *out, unsigned max)
{
    unsigned n = 0;
    for (struct chunk_record *c = state_chunk_at(l->first); c && n < max; c = state_chunk_at(c->lru_next))
        out[n++] = (struct chunk_name){c->fid, c->index};
    return n;
}

unsigned eviction_next_kept(struct chunk_name out[KEEP_ASKED])
{
    unsigned n = 0;
    lock_take(&leaving.lock);
    const struct kind *kept = &leaving.kind[KEPT];
    if (is_short()) {
        n = first_of(&kept->others, out, KEEP_STOCK);
        n += first_of(&kept->fresh, out + n, KEEP_STOCK);
    }
    lock_drop(&leaving.lock);
    return n;
}

static void (*_Atomic on_short)(void);

void eviction_on_short(void (*fn)(void))
{
    on_short = fn;
}

static void tell_if_short(void)
{
    void (*fn)(void) = on_short;
    lock_take(&leaving.lock);
    bool tell = fn && is_short();
    lock_drop(&leaving.lock);
    if (tell)
        fn();
}

/* ---- leaving ---- */

/* The next chunk to try.  It goes to the end of its list, so that another thread tries another chunk. */
static bool next_victim(struct list *l, struct chunk_name *v)
{
    lock_take(&leaving.lock);
    struct chunk_record *c = state_chunk_at(l->first);
    if (c) {
        *v = (struct chunk_name){c->fid, c->index};
        take_out(l, c);
        put_last(l, c);
    }
    lock_drop(&leaving.lock);
    return c;
}

static evict_fn evict_chunk_of, evict_file_of;

void eviction_on_victim(evict_fn chunk, evict_fn file)
{
    evict_chunk_of = chunk;
    evict_file_of = file;
}

static bool evict_of(struct list *l, evict_fn evict, bool now)
{
    struct chunk_name v;
    lock_take(&leaving.lock);
    uint32_t tries = l->n;
    lock_drop(&leaving.lock);
    while (tries-- && next_victim(l, &v))
        if (evict(v.fid, v.index, now))
            return true;
    return false;
}

static bool (*owner_of_chunk)(struct fid fid, uint64_t index);

void eviction_on_owner(bool (*is_owner)(struct fid fid, uint64_t index))
{
    owner_of_chunk = is_owner;
}

bool eviction_is_owner(struct fid fid, uint64_t index)
{
    return owner_of_chunk && owner_of_chunk(fid, index);
}

static void (*_Atomic on_left)(struct fid fid, uint64_t index);

void eviction_on_left(void (*left)(struct fid fid, uint64_t index))
{
    on_left = left;
}

void eviction_tell_left(struct fid fid, uint64_t index)
{
    void (*fn)(struct fid fid, uint64_t index) = on_left;
    if (fn)
        fn(fid, index);
}

static bool (*farthest_of_all)(bool ahead);

void eviction_on_farthest(bool (*farthest)(bool ahead))
{
    farthest_of_all = farthest;
}

static bool evict_of_all(evict_fn evict, bool now)
{
    tell_if_short();
    for (struct kind *k = leaving.kind; k < leaving.kind + KINDS; k++)
        if (evict_of(&k->never, evict, now))
            return true;
    for (struct kind *k = leaving.kind; k < leaving.kind + KINDS; k++) {
        lock_take(&leaving.lock);
        insertion_full(&k->insertion, count_of(k));
        lock_drop(&leaving.lock);
        if (evict_of(&k->others, evict, now) || evict_of(&k->fresh, evict, now))
            return true;
    }
    return false;
}

bool eviction_one(bool now, bool ahead)
{
    bool gone;
    do
        gone = evict_of_all(evict_chunk_of, now);
    while (!gone && farthest_of_all && farthest_of_all(ahead));
    return gone;
}

bool eviction_one_file(bool now)
{
    bool gone;
    do
        gone = evict_of_all(evict_file_of, now);
    while (!gone && farthest_of_all && farthest_of_all(true));
    return gone;
}
