/* shares.c - the shares, a list of them, each an array of files. */
#include "placement/foresight/shares.h"

#include <stdlib.h>

#include "placement/foresight/hints.h"
#include "placement/store/store_hint.h"
#include "transport/base.h"

struct kept {
    struct fid fid;
    uint64_t bytes;
};

struct share {
    struct share *next;
    uint64_t node, stage;
    uint64_t until_ms; /* boot_ms; 0: it is not pinned */
    struct kept *v;
    size_t n, cap;
    uint64_t bytes;
};

static struct share *all; /* the newest first */
static _Atomic size_t nshares;

bool shares_any(void)
{
    return nshares;
}

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

static void set_pin(struct share *s, uint64_t pin_ms)
{
    uint64_t now = boot_ms(), bytes = s->bytes;
    count_bytes(s, -bytes);
    s->until_ms = !pin_ms ? 0 : now + MIN(pin_ms, UINT64_MAX - now);
    count_bytes(s, bytes);
}

static struct share *take(struct share **at);
static void free_share(struct share *s);

/* One of which nothing is left, of a stage whose node died without its end. */
static void forget_empty(void)
{
    for (struct share **at = &all; *at; at = &(*at)->next)
        if (!(*at)->n) {
            free_share(take(at));
            return;
        }
}

struct share *share_get(uint64_t node, uint64_t stage, uint64_t pin_ms)
{
    struct share *s = *find(node, stage);
    if (!s && nshares == SHARES_MAX)
        forget_empty();
    if (!s && nshares == SHARES_MAX)
        return NULL;
    if (!s) {
        s = xcalloc(1, sizeof(*s));
        *s = (struct share){.next = all, .node = node, .stage = stage};
        all = s;
        nshares++;
    }
    set_pin(s, pin_ms);
    return s;
}

bool share_keep(struct share *s, struct fid fid, uint64_t bytes)
{
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 64;
        if (!hints_charge((int64_t)((cap - s->cap) * sizeof(*s->v))))
            return false;
        s->v = xrealloc(s->v, cap * sizeof(*s->v));
        s->cap = cap;
    }
    s->v[s->n++] = (struct kept){fid, bytes};
    count_bytes(s, bytes);
    return true;
}

/* Out of the list; the caller frees it. */
static struct share *take(struct share **at)
{
    struct share *s = *at;
    *at = s->next;
    nshares--;
    count_bytes(s, -s->bytes);
    hints_charge(-(int64_t)(s->cap * sizeof(*s->v)));
    return s;
}

static void free_share(struct share *s)
{
    free(s->v);
    free(s);
}

void shares_end_all(void)
{
    while (all)
        free_share(take(&all));
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

/* Unless a program's hints want it. */
static void tell(struct fid fid, enum eviction_time time)
{
    lock_take(&hints_lock);
    bool hinted = is_hinted(fid);
    lock_drop(&hints_lock);
    if (!hinted)
        store_hint(fid, 0, INT64_MAX, time);
}

static void tell_and_free(struct share *s, enum eviction_time time)
{
    for (size_t i = 0; i < s->n; i++)
        tell(s->v[i].fid, time);
    free_share(s);
}

void share_end(uint64_t node, uint64_t stage)
{
    lock_take(&hints_lock);
    struct share **at = find(node, stage);
    struct share *s = *at ? take(at) : NULL;
    lock_drop(&hints_lock);
    if (s)
        tell_and_free(s, TIME_UNKNOWN);
}

/* One whose pin is over, out of the list; NULL: there is none, and *next_ms is when there is one.
 */
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
    struct kept k = {.bytes = 0};
    bool found = false;
    lock_take(&hints_lock);
    for (struct share *s = all; s && !found; s = s->next) {
        found = s->n && !is_pinned(s);
        if (found) {
            k = s->v[--s->n];
            count_bytes(s, -k.bytes);
        }
    }
    lock_drop(&hints_lock);
    if (found)
        tell(k.fid, TIME_UNKNOWN);
    return found;
}

/* ---- dropping ---- */

static int compare(const void *a, const void *b)
{
    const struct fid *x = a, *y = b;
    return x->hi != y->hi   ? (x->hi < y->hi ? -1 : 1)
           : x->lo != y->lo ? (x->lo < y->lo ? -1 : 1)
                            : 0;
}

static void drop_from(struct share *s, const struct fid *sorted, size_t n)
{
    size_t left = 0;
    for (size_t i = 0; i < s->n; i++)
        if (bsearch(&s->v[i].fid, sorted, n, sizeof(*sorted), compare))
            count_bytes(s, -s->v[i].bytes);
        else
            s->v[left++] = s->v[i];
    s->n = left;
}

static void drop_files(const struct fid *fids, size_t n)
{
    struct fid *sorted = xmalloc(n * sizeof(*sorted));
    for (size_t i = 0; i < n; i++)
        sorted[i] = fids[i];
    qsort(sorted, n, sizeof(*sorted), compare);
    lock_take(&hints_lock);
    for (struct share *s = all; s; s = s->next)
        drop_from(s, sorted, n);
    lock_drop(&hints_lock);
    for (size_t i = 0; i < n; i++)
        tell(sorted[i], TIME_NEVER);
    free(sorted);
}

void shares_drop(const struct fid *fids, size_t n)
{
    struct share *s;
    if (n) {
        drop_files(fids, n);
        return;
    }
    do {
        lock_take(&hints_lock);
        s = all ? take(&all) : NULL;
        lock_drop(&hints_lock);
        if (s)
            tell_and_free(s, TIME_NEVER);
    } while (s);
}
