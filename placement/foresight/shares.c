/* shares.c - the shares, a list of them; the files of each, the last one first; and all files by their fid. */
#include "placement/foresight/shares.h"

#include <stdlib.h>

#include "placement/foresight/hint_files.h"
#include "placement/foresight/hints.h"
#include "placement/store/store_hint.h"
#include "transport/base.h"

#define BUCKETS_MIN 1024u

struct kept {
    struct kept *next, **prev, *same_bucket; /* of the share; of `files` */
    struct share *share;
    struct fid fid;
    uint64_t off, bytes; /* of a part of the file */
};
#define KEPT_CHARGE                                                                                \
    (sizeof(struct kept) + 16 + sizeof(struct kept *)) /* with its place in `files` */

struct share {
    struct share *next;
    uint64_t node, stage;
    uint64_t until_ms; /* boot_ms; 0: it is not pinned */
    bool owned;        /* only chunks that this node owns */
    struct kept *files;
    uint64_t bytes;
};

static struct share *all; /* the newest first */
static _Atomic size_t nshares;

/* It doubles when there are as many as buckets. */
static struct {
    struct kept **bucket;
    size_t buckets, n;
} files;

bool shares_any(void)
{
    return nshares;
}

/* ---- by fid ---- */

static struct kept **bucket_of(struct fid fid)
{
    return &files.bucket[(fid.lo ^ fid.hi) & (files.buckets - 1)];
}

static void link_file(struct kept *k)
{
    struct kept **b = bucket_of(k->fid);
    k->same_bucket = *b;
    *b = k;
}

static void grow(void)
{
    struct kept **old = files.bucket;
    size_t n = files.buckets;
    files.buckets = n ? 2 * n : BUCKETS_MIN;
    files.bucket = xcalloc(files.buckets, sizeof(*files.bucket));
    for (size_t i = 0; i < n; i++)
        for (struct kept *k = old[i], *next; k; k = next) {
            next = k->same_bucket;
            link_file(k);
        }
    free(old);
}

static void unlink_file(struct kept *k)
{
    struct kept **at = bucket_of(k->fid);
    while (*at != k)
        at = &(*at)->same_bucket;
    *at = k->same_bucket;
    files.n--;
}

static struct kept *find_file(struct fid fid)
{
    struct kept *k = files.buckets ? *bucket_of(fid) : NULL;
    while (k && !fid_eq(k->fid, fid))
        k = k->same_bucket;
    return k;
}

static struct kept *find_part(struct fid fid, uint64_t off)
{
    struct kept *k = find_file(fid);
    while (k && (!fid_eq(k->fid, fid) || k->off != off))
        k = k->same_bucket;
    return k;
}

uint64_t shares_have(struct fid fid, uint64_t off)
{
    const struct kept *k = find_part(fid, off);
    return k ? k->bytes : 0;
}

/* ---- stages that have ended ----
 *
 * What is on its way when a stage ends comes later, and is in no share: nobody would end that. */

#define ENDED_MAX 64u /* the last ones: what is on its way comes soon */

static struct {
    uint64_t node, stage;
} ended[ENDED_MAX];
static unsigned next_ended;

static void note_ended(uint64_t node, uint64_t stage)
{
    ended[next_ended].node = node;
    ended[next_ended].stage = stage;
    next_ended = (next_ended + 1) % ENDED_MAX;
}

static bool has_ended(uint64_t node, uint64_t stage)
{
    for (unsigned i = 0; i < ENDED_MAX; i++)
        if (ended[i].node == node && ended[i].stage == stage)
            return true;
    return false;
}

/* ---- a share ---- */

static struct share **find(uint64_t node, uint64_t stage)
{
    struct share **at = &all;
    while (*at && ((*at)->node != node || (*at)->stage != stage))
        at = &(*at)->next;
    return at;
}

static void count_bytes(struct share *s, uint64_t bytes)
{
    s->bytes += bytes;
    hints_staged(bytes, s->until_ms ? bytes : 0);
}

static bool is_pinned(const struct share *s)
{
    return s->until_ms > boot_ms();
}

enum pinned shares_pin(struct fid fid)
{
    enum pinned most = PINNED_NONE;
    for (const struct kept *k = find_file(fid); k; k = k->same_bucket)
        if (fid_eq(k->fid, fid) && is_pinned(k->share))
            most = MAX(most, k->share->owned ? PINNED_OWNED : PINNED_ALL);
    return most;
}

static void set_pin(struct share *s, uint64_t pin_ms)
{
    uint64_t now = boot_ms(), bytes = s->bytes;
    count_bytes(s, -bytes);
    s->until_ms = !pin_ms ? 0 : now + MIN(pin_ms, UINT64_MAX - now);
    count_bytes(s, bytes);
}

/* Out of the list of shares; its files stay with it, and are found by nobody else. */
static struct share *take(struct share **at)
{
    struct share *s = *at;
    *at = s->next;
    nshares--;
    count_bytes(s, -s->bytes);
    for (struct kept *k = s->files; k; k = k->next) {
        unlink_file(k);
        hints_charge(-(int64_t)KEPT_CHARGE);
    }
    return s;
}

static void free_share(struct share *s)
{
    for (struct kept *k = s->files, *next; k; k = next) {
        next = k->next;
        free(k);
    }
    free(s);
}

/* One of which nothing is left, of a stage whose node died without its end. */
static void forget_empty(void)
{
    for (struct share **at = &all; *at; at = &(*at)->next)
        if (!(*at)->files) {
            free_share(take(at));
            return;
        }
}

struct share *share_get(uint64_t node, uint64_t stage, uint64_t pin_ms, bool owned)
{
    struct share *s = *find(node, stage);
    if (has_ended(node, stage))
        return NULL;
    if (!s && nshares == SHARES_MAX)
        forget_empty();
    if (!s && nshares == SHARES_MAX)
        return NULL;
    if (!s) {
        s = xcalloc(1, sizeof(*s));
        *s = (struct share){.next = all, .node = node, .stage = stage, .owned = owned};
        all = s;
        nshares++;
    }
    set_pin(s, pin_ms);
    return s;
}

/* Out of its share; with hints_lock.  The caller frees it. */
static void leave(struct kept *k)
{
    *k->prev = k->next;
    if (k->next)
        k->next->prev = k->prev;
    unlink_file(k);
    count_bytes(k->share, -k->bytes);
    hints_charge(-(int64_t)KEPT_CHARGE);
}

/* It is in one share only, so that it counts once: in that which is pinned for longer, else in the newer one. */
static bool is_kept_longer(const struct kept *k, const struct share *s)
{
    return k->share->until_ms && k->share->until_ms >= s->until_ms;
}

bool share_keep(struct share *s, struct fid fid, uint64_t off, uint64_t bytes)
{
    struct kept *k = find_part(fid, off);
    if (k && is_kept_longer(k, s))
        return true;
    if (k)
        leave(k);
    free(k);
    if (!hints_charge(KEPT_CHARGE))
        return false;
    if (files.n++ == files.buckets)
        grow();
    k = xmalloc(sizeof(*k));
    *k = (struct kept){
        .next = s->files, .prev = &s->files, .share = s, .fid = fid, .off = off, .bytes = bytes};
    if (k->next)
        k->next->prev = &k->next;
    s->files = k;
    link_file(k);
    count_bytes(s, bytes);
    return true;
}

void shares_end_all(void)
{
    while (all)
        free_share(take(&all));
    free(files.bucket);
    files.bucket = NULL;
    files.buckets = 0;
}

/* ---- telling the store ---- */

static bool is_hinted(struct fid fid)
{
    const struct hinted *h = hints_by_fid(fid);
    for (const struct target *t = h ? h->targets : NULL; t; t = t->file_next)
        if (t->hinted && t->first != NO_ENTRY)
            return true;
    return false;
}

/* Unless hints, or another share, want it. */
static void tell(struct fid fid, enum eviction_time time)
{
    lock_take(&hints_lock);
    bool wanted = is_hinted(fid) || find_file(fid);
    lock_drop(&hints_lock);
    if (!wanted)
        store_hint(fid, 0, INT64_MAX, time);
}

static void tell_and_free(struct share *s, enum eviction_time time)
{
    for (struct kept *k = s->files; k; k = k->next)
        tell(k->fid, time);
    free_share(s);
}

void share_end(uint64_t node, uint64_t stage)
{
    lock_take(&hints_lock);
    struct share **at = find(node, stage);
    struct share *s = *at ? take(at) : NULL;
    note_ended(node, stage);
    lock_drop(&hints_lock);
    if (s)
        tell_and_free(s, TIME_UNKNOWN);
}

/* One whose pin is over, out of the list; NULL: there is none, and *next_ms is when there is one. */
static struct share *take_expired(uint64_t *next_ms)
{
    *next_ms = 0;
    for (struct share **at = &all; *at; at = &(*at)->next) {
        uint64_t until = (*at)->until_ms;
        if (until && !is_pinned(*at))
            return take(at);
        if (until && until != UINT64_MAX && (!*next_ms || until < *next_ms))
            *next_ms = until;
    }
    return NULL;
}

uint64_t shares_expire(void)
{
    struct share *s;
    uint64_t next_ms;
    do {
        lock_take(&hints_lock);
        s = take_expired(&next_ms);
        lock_drop(&hints_lock);
        if (s)
            tell_and_free(s, TIME_UNKNOWN);
    } while (s);
    return next_ms;
}

bool shares_give_up(void)
{
    struct kept *k = NULL;
    lock_take(&hints_lock);
    for (struct share *s = all; s && !k; s = s->next)
        k = is_pinned(s) ? NULL : s->files;
    if (k)
        leave(k);
    lock_drop(&hints_lock);
    if (k)
        tell(k->fid, TIME_UNKNOWN);
    bool found = k;
    free(k);
    return found;
}

/* ---- dropping ---- */

static void drop_file(struct fid fid)
{
    struct kept *k;
    lock_take(&hints_lock);
    while ((k = find_file(fid))) {
        leave(k);
        free(k);
    }
    lock_drop(&hints_lock);
    tell(fid, TIME_NEVER);
}

void shares_drop(const struct fid *fids, size_t n)
{
    struct share *s = NULL;
    for (size_t i = 0; i < n; i++)
        drop_file(fids[i]);
    do {
        lock_take(&hints_lock);
        s = all && !n ? take(&all) : NULL;
        lock_drop(&hints_lock);
        if (s)
            tell_and_free(s, TIME_NEVER);
    } while (s);
}
