/* tell.c - CHANGED: a claimant tells the watchers of a file (tell.h).
 *
 * Each watcher is told by a message of its own.  The last answer ends the telling.
 */
#include "placement/tell.h"

#include <stdlib.h>
#include <string.h>

#include "placement/claims/claim.h"
#include "placement/claims/claim_give.h"
#include "placement/claims/claim_watch.h"
#include "placement/store/shadow.h"
#include "placement/store/store_hit.h"
#include "placement/store/store_read.h"
#include "transport/hash.h"
#include "transport/loop.h"
#include "transport/members.h"
#include "transport/peer.h"
#include "transport/times.h"

#define AGAIN_MS 100 /* from one try to the next */

struct telling {
    struct file *f;
    struct told_change change;
    bool all;              /* all other members are told, too */
    _Atomic unsigned open; /* nodes that have not answered, and the thread that tells them */
    void (*done)(void *arg);
    void *arg;
};

/* One watcher that is told.  Network thread, after the first try. */
struct teller {
    struct teller *next;
    struct telling *of;
    uint64_t node, incarnation;
    bool bytes;       /* it may have passthrough descriptors */
    bool appends;     /* its kernel needs the size */
    unsigned entered; /* as a watcher */
    uint64_t left_ms; /* boot_ms when it was first seen to be out of the view; 0: it was not */
};

/* Network thread. */
static struct {
    struct teller *list; /* to be asked again */
    struct loop_timer *timer;
    bool stopped;
} again;

static void end_one(struct telling *t)
{
    if (--t->open)
        return;
    if (t->all)
        claim_watchers_asked(t->f);
    t->done(t->arg);
    free(t);
}

/* ---- asking again ---- */

/* Then it has dropped what it believed of this node's files (told.c), or has no lease any more. */
static bool is_gone(struct teller *w)
{
    const struct view *v = members_view();
    if (v && view_has(v, w->node, w->incarnation)) {
        w->left_ms = 0;
        return false;
    }
    if (!w->left_ms)
        w->left_ms = boot_ms();
    return boot_ms() - w->left_ms >= T_WAIT + LOOK_STAT_MS;
}

static void send_to(struct teller *w);

static void on_timer(void *arg)
{
    (void)arg;
    struct teller *list = again.list, *next;
    again.list = NULL;
    for (struct teller *w = list; w; w = next) {
        next = w->next;
        send_to(w);
    }
}

static void later(struct teller *w)
{
    __atomic_store_n(&w->of->change.bytes, NULL, __ATOMIC_RELAXED); /* the caller's memory; other watchers are told beside */
    if (!again.timer)
        again.timer = loop_timer_new(on_timer, NULL);
    if (!again.list)
        loop_timer_set(again.timer, AGAIN_MS, 0);
    w->next = again.list;
    again.list = w;
}

/* ---- the order of one file's changes ---- */

static struct lock orders[64]; /* RANK_TELL; by the file */

static struct lock *order_of(const struct file *f)
{
    return &orders[f->fid.lo % ARRAY_LEN(orders)];
}

static void free_malloced(void *arg, void *data)
{
    (void)arg;
    free(data);
}

/* ---- one watcher ---- */

static void answered(void *arg, int err, struct msg *reply, bool *keep)
{
    struct teller *w = arg;
    (void)keep;
    if (!err)
        claim_watcher_left(w->of->f, w->node, reply->changed_ok.left, w->entered);
    else if (members_no_contact(err))
        members_doubt(w->node);
    if (err && is_gone(w)) {
        claim_watcher_left(w->of->f, w->node, 0, w->entered);
        err = 0;
    }
    if (err && !again.stopped) {
        later(w);
        return;
    }
    end_one(w->of);
    free(w);
}

/* The caller's, while it waits; NULL: it did not give them, or somebody is asked again (later). */
static const void *given_bytes(const struct told_change *c)
{
    return __atomic_load_n(&c->bytes, __ATOMIC_RELAXED);
}

/* The change's bytes as they are in the store now: later changes of the same bytes may be in it. */
static void add_bytes(struct msg *m, struct file *f, const struct told_change *c)
{
    uint64_t size = m->changed.size, end = MIN(c->off + c->len, size);
    size_t len = end > c->off ? (size_t)(end - c->off) : 0;
    void *buf = xmalloc(len + 1);
    if (store_read(f, buf, len, c->off) != (ssize_t)len) {
        const void *bytes = given_bytes(c);
        if (!bytes) {
            free(buf);
            return;
        }
        memcpy(buf, bytes, len); /* flushed and evicted already */
    }
    m->data = buf;
    m->free_data = free_malloced;
    m->head.data_len = len;
    m->changed.length = len;
    m->changed.hash = data_hash(buf, len);
}

/* The last byte of a file of this size; false: it is not here any more. */
static bool read_last(struct file *f, const struct told_change *c, uint64_t size, char *last)
{
    if (size && store_read(f, last, 1, size - 1) == 1)
        return true;
    const char *bytes = c->what == TOLD_BYTES && c->len && c->off + c->len == size ? given_bytes(c) : NULL;
    if (bytes)
        *last = bytes[c->len - 1];
    return bytes;
}

/* With the file's order. */
static void send_in_order(struct teller *w)
{
    struct file *f = w->of->f;
    const struct told_change *c = &w->of->change;
    struct file_info info;
    struct msg *m = msg_new(MSG_CHANGED);
    store_info(f, &info);
    m->changed.fid = f->fid;
    m->changed.what = (uint8_t)c->what;
    m->changed.offset = c->off;
    m->changed.length = c->len;
    m->changed.size = info.size;
    char last;
    m->changed.ends = w->appends && read_last(f, c, info.size, &last);
    if (m->changed.ends)
        m->changed.last = (uint8_t)last;
    if (w->bytes && c->what == TOLD_BYTES)
        add_bytes(m, f, c);
    peer_request(w->node, m, T_SUSPECT, NULL, 0, answered, w);
}

static void send_to(struct teller *w)
{
    struct lock *order = order_of(w->of->f);
    count(changes_told, 1);
    lock_take(order);
    send_in_order(w);
    lock_drop(order);
}

/* ---- all of them ---- */

/* A node that wrote by a direct descriptor knows of its own change; but its passthrough descriptors need the bytes. */
static bool is_told(const struct claim_watcher *w, uint64_t but)
{
    return w->node != members_self() && w->kinds & ~LOOKER_OPEN &&
           (w->node != but || w->kinds & LOOKER_PASSTHROUGH);
}

bool tell_must(struct file *f, uint64_t but)
{
    struct claim_watcher list[CLAIM_WATCHERS_MAX];
    unsigned any = 0;
    unsigned n = claim_watched(f) ? claim_watchers(f, list, &any) : 0;
    while (n && !is_told(&list[n - 1], but))
        n--;
    return n || any & ~LOOKER_OPEN || shadow_is(f);
}

static void tell_one(struct telling *t, const struct claim_watcher *to, uint64_t but)
{
    bool drop = t->change.what == TOLD_DROP && to->node != members_self();
    if (!drop && !is_told(to, but))
        return;
    struct teller *w = xcalloc(1, sizeof(*w));
    *w = (struct teller){.of = t,
                         .node = to->node,
                         .incarnation = to->incarnation,
                         .bytes = to->kinds & LOOKER_PASSTHROUGH,
                         .appends = to->kinds & LOOKER_APPENDS,
                         .entered = to->entered};
    t->open++;
    send_to(w);
}

static bool is_listed(const struct claim_watcher *list, unsigned n, uint64_t node)
{
    for (unsigned k = 0; k < n; k++)
        if (list[k].node == node)
            return true;
    return false;
}

/* Those that are not named.  Also the one that made the change: what it has left is known only when it says so. */
static void tell_any(struct telling *t, unsigned any, const struct claim_watcher *list, unsigned n)
{
    const struct view *v = members_view();
    for (unsigned k = 0; v && k < v->nmembers; k++) {
        struct claim_watcher other = {.node = v->members[k].id,
                                      .incarnation = v->members[k].incarnation,
                                      .kinds = any | (any & LOOKER_SERVED ? LOOKER_APPENDS : 0)};
        if (!is_listed(list, n, other.node))
            tell_one(t, &other, 0);
    }
    t->all = v != NULL;
}

void tell_all(struct file *f, const struct told_change *c, uint64_t but, void (*done)(void *arg), void *arg)
{
    struct claim_watcher list[CLAIM_WATCHERS_MAX];
    struct telling *t = xcalloc(1, sizeof(*t));
    *t = (struct telling){.f = f, .change = *c, .open = 1, .done = done, .arg = arg};
    bool drop = c->what == TOLD_DROP;
    unsigned any = 0, n = claim_watched(f) || drop ? claim_watchers(f, list, &any) : 0;
    for (unsigned k = 0; k < n; k++)
        tell_one(t, &list[k], but);
    if (any & ~LOOKER_OPEN || (any && drop))
        tell_any(t, any, list, n);
    end_one(t);
}

/* ---- changes ---- */

bool told_of(const struct change *c, struct told_change *out)
{
    switch (c->op) {
    case CARRY_WRITE:
    case CARRY_APPEND:
    case CARRY_STORE:
        *out = (struct told_change){
            .what = TOLD_BYTES, .off = c->off_out, .len = c->len, .bytes = c->buf};
        return c->len > 0;
    case CARRY_PUNCH:
        *out = (struct told_change){.what = TOLD_ZEROS, .off = c->off, .len = c->len};
        return true;
    case CARRY_TRUNCATE:
        *out = (struct told_change){.what = TOLD_CUT, .size = c->len};
        return true;
    case CARRY_ALLOCATE:
    case CARRY_TIMES:
        *out = (struct told_change){.what = TOLD_ATTR};
        return true;
    default:
        return false;
    }
}

/* As the watchers get it: with the file's order, and the bytes that the store has now. */
static void tell_shadow(struct file *f, const struct told_change *c)
{
    struct told_change now = *c;
    struct file_info info;
    if (!shadow_is(f))
        return;
    void *buf = c->what == TOLD_BYTES ? xmalloc(c->len) : NULL;
    lock_take(order_of(f));
    store_info(f, &info);
    now.size = info.size;
    if (buf) {
        ssize_t n = store_read(f, buf, c->len, c->off);
        now.len = n > 0 ? (uint64_t)n : c->len;
        now.bytes = n > 0 ? buf : c->bytes;
    }
    told_shadow(f, &now);
    lock_drop(order_of(f));
    free(buf);
}

void tell_mount(struct file *f, const struct told_change *c)
{
    struct told_change now = *c;
    struct file_info info;
    tell_shadow(f, c);
    store_info(f, &info);
    now.size = info.size;
    now.ends = read_last(f, c, now.size, &now.last);
    told_here(f->fid, &now);
}

static void put_file(void *f)
{
    file_put(f);
}

static void told(void *f)
{
    loop_work(put_file, NULL, f);
}

static void tell_without_waiting(struct file *f, const struct told_change *c, uint64_t but)
{
    if (claim_watched(f))
        tell_all(f, c, but, told, file_ref(f));
}

struct waiting {
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t cond;
    bool done;
};

static void wake(void *arg)
{
    struct waiting *w = arg;
    lock_take(&w->lock);
    w->done = true;
    pthread_cond_signal(&w->cond);
    lock_drop(&w->lock);
}

static void tell_wait(struct file *f, const struct told_change *c, uint64_t but)
{
    struct waiting w = {0};
    if (!claim_watched(f))
        return;
    lock_init(&w.lock, RANK_LEAF);
    lock_cond_init(&w.cond);
    tell_all(f, c, but, wake, &w);
    lock_take(&w.lock);
    while (!w.done)
        lock_wait(&w.lock, &w.cond, 0);
    lock_drop(&w.lock);
    pthread_cond_destroy(&w.cond);
    lock_destroy(&w.lock);
}

void tell_changed(struct file *f, const struct change *c, uint64_t but)
{
    struct told_change what;
    if (!tell_must(f, but) || !told_of(c, &what))
        return;
    if (!but)
        tell_shadow(f, &what);
    if (c->op == CARRY_STORE)
        tell_without_waiting(f, &what, but);
    else
        tell_wait(f, &what, but);
}

/* ---- the end of a file without a name ---- */

static void end_drop(void *f)
{
    claim_drop_told(f);
    file_put(f);
}

static void drop_is_told(void *f)
{
    loop_work(end_drop, NULL, f);
}

/* A claim that was taken up at the start learns from the home first whom to tell. */
static void begin_drop(void *arg)
{
    struct file *f = arg;
    int err = claim_change_begin(f, boot_ms() + members_patience());
    if (!err)
        claim_carry_end(f);
    else
        log_debug("nodes that have a removed file open are not told: %s", strerror(-err));
    tell_all(f, &(struct told_change){.what = TOLD_DROP}, 0, drop_is_told, f);
}

void tell_drop(struct file *f)
{
    pool_submit(pool_waiters, begin_drop, file_ref(f)); /* it waits for the home */
}

/* ---- start and end ---- */

void tell_start(void)
{
    again.stopped = false;
    for (unsigned n = 0; n < ARRAY_LEN(orders); n++)
        lock_init(&orders[n], RANK_TELL);
}

static void stop(void *arg)
{
    (void)arg;
    again.stopped = true;
    if (again.timer)
        loop_timer_free(again.timer);
    again.timer = NULL;
    for (struct teller *w = again.list, *next; w; w = next) {
        next = w->next;
        end_one(w->of);
        free(w);
    }
    again.list = NULL;
}

void tell_stop(void)
{
    loop_call(stop, NULL);
}
