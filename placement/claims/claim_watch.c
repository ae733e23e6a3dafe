/* claim_watch.c - see claim_watch.h.
 *
 * A claim that was taken up at the start does not know its watchers: the home does, since the nodes have told it
 * what they look at (ADOPTED).  Before the first change such a claim is asked for again, under its own number, and
 * GRANT names them.
 */
#include "placement/claims/claim_watch.h"
#include "placement/claims/claim_int.h"
#include "placement/store/store_lend.h"

#include <errno.h>
#include <stdlib.h>

/* ---- the list ---- */

void watchers_set(struct file_claim *c, const struct watchers *w)
{
    bool some = w->n || w->any;
    if (some && !c->watchers)
        c->watchers = xcalloc(1, sizeof(*c->watchers));
    if (some) {
        *c->watchers = *w;
    } else {
        free(c->watchers);
        c->watchers = NULL;
    }
    unsigned kinds = w->any;
    for (unsigned i = 0; i < w->n; i++)
        kinds |= w->v[i].kinds;
    c->watched = (unsigned char)(kinds & ~LOOKER_OPEN);
}

struct watchers watchers_of(const struct file_claim *c)
{
    return c->watchers ? *c->watchers : (struct watchers){0};
}

struct watchers watchers_granted(const struct body_grant *g)
{
    struct watchers w = {0};
    for (uint32_t i = 0; i < g->watchers.n; i++) {
        const struct item_watcher *in = &g->watchers.v[i];
        if (in->node && w.n < CLAIM_WATCHERS_MAX)
            w.v[w.n++] = (struct claim_watcher){.node = in->node,
                                                .incarnation = in->incarnation,
                                                .kinds = in->left,
                                                .of_bytes = in->left & ~LOOKER_OPEN};
        else
            w.any |= in->left;
    }
    return w;
}

static struct claim_watcher *find(struct watchers *w, uint64_t node)
{
    for (unsigned i = 0; i < w->n; i++)
        if (w->v[i].node == node)
            return &w->v[i];
    return NULL;
}

static bool is_served(struct watchers *w, uint64_t node)
{
    const struct claim_watcher *one = find(w, node);
    return one ? one->of_bytes : w->any & LOOKER_SERVED;
}

void watchers_add_open(struct watchers *w, uint64_t node, uint64_t incarnation)
{
    struct claim_watcher *one = find(w, node);
    if (one)
        one->kinds |= LOOKER_OPEN;
    else if (w->n < CLAIM_WATCHERS_MAX)
        w->v[w->n++] = (struct claim_watcher){.node = node, .incarnation = incarnation, .kinds = LOOKER_OPEN};
    else
        w->any |= LOOKER_OPEN;
}

bool claim_watched(struct file *f)
{
    struct file_claim *c = claim_if(f);
    return c && c->watched;
}

bool claim_watched_bytes(struct file *f)
{
    struct file_claim *c = claim_if(f);
    return c && c->watched & LOOKER_SERVED;
}

unsigned claim_watchers(struct file *f, struct claim_watcher out[CLAIM_WATCHERS_MAX], unsigned *any)
{
    struct file_claim *c = claim_if(f);
    struct watchers w = {0};
    if (c) {
        lock_take(&c->lock);
        w = watchers_of(c);
        lock_drop(&c->lock);
    }
    for (unsigned i = 0; i < w.n; i++)
        out[i] = w.v[i];
    *any = w.any;
    return w.n;
}

bool claim_is_watcher(struct file *f, uint64_t node)
{
    struct file_claim *c = claim_if(f);
    if (!c || !c->watched)
        return false;
    lock_take(&c->lock);
    bool is = c->watchers && is_served(c->watchers, node);
    lock_drop(&c->lock);
    return is;
}

static _Atomic unsigned entered; /* watchers */

/* Its entry; a new one has nothing left.  NULL: there is no room. */
static struct claim_watcher *entry_of(struct watchers *w, uint64_t node, uint64_t incarnation)
{
    struct claim_watcher *old = find(w, node);
    if (!old && w->n == CLAIM_WATCHERS_MAX)
        return NULL;
    struct claim_watcher *to = old ? old : &w->v[w->n++];
    if (!old || old->incarnation != incarnation)
        *to = (struct claim_watcher){.node = node, .incarnation = incarnation};
    return to;
}

/* Has opened the file; also if it is one already.  What any member may have left, it may have, too.  False: there is
 * no room. */
static bool add(struct watchers *w, uint64_t node, uint64_t incarnation, unsigned kinds, bool of_bytes)
{
    unsigned before = find(w, node) ? 0 : w->any;
    struct claim_watcher *to = entry_of(w, node, incarnation);
    if (!to)
        return false;
    to->kinds |= kinds | before;
    of_bytes |= (before & LOOKER_SERVED) != 0;
    to->of_bytes |= of_bytes;
    to->entered = ++entered;
    return true;
}

/* A writer that comes later finds the watchers, and is not served by the kernel (fs/handle_mode.c). */
bool claim_watch_begin(struct file *f, uint64_t node, uint64_t incarnation)
{
    struct file_claim *c = claim_of(f);
    lock_take(&c->lock);
    struct watchers w = watchers_of(c);
    bool is = c->state == CLAIM_HELD && is_served(&w, node);
    bool may = c->state == CLAIM_HELD && !c->writers && !c->watchers_unknown && !c->forgotten && !store_is_shared(f);
    if (!is && may && add(&w, node, incarnation, LOOKER_CACHED | LOOKER_OPEN, true)) {
        watchers_set(c, &w);
        is = true;
    }
    lock_drop(&c->lock);
    return is;
}

void claim_watch_appends(struct file *f, uint64_t node, uint64_t incarnation)
{
    struct file_claim *c = claim_of(f);
    lock_take(&c->lock);
    struct watchers w = watchers_of(c);
    if (c->state == CLAIM_HELD && add(&w, node, incarnation, LOOKER_APPENDS, false))
        watchers_set(c, &w);
    lock_drop(&c->lock);
}

void claim_watch_open(struct file *f, uint64_t node, uint64_t incarnation)
{
    struct file_claim *c = claim_of(f);
    lock_take(&c->lock);
    struct watchers w = watchers_of(c);
    if (c->state == CLAIM_HELD) {
        watchers_add_open(&w, node, incarnation);
        watchers_set(c, &w);
        c->drop_told = false;
    }
    lock_drop(&c->lock);
}

static void left(struct watchers *w, uint64_t node, unsigned kinds, unsigned since)
{
    struct claim_watcher *old = find(w, node), *to;
    const struct member *m = members_view() ? view_member(members_view(), node) : NULL;
    if (old && old->entered != since) {
        old->kinds |= kinds;
    } else if (old && kinds) {
        old->kinds = kinds;
        old->of_bytes &= (kinds & ~LOOKER_OPEN) != 0;
    } else if (old) {
        *old = w->v[--w->n];
    } else if (kinds && w->any && m && (to = entry_of(w, node, m->incarnation))) {
        to->kinds = kinds;
        to->of_bytes = kinds & ~LOOKER_OPEN;
    } else if (w->any) {
        w->more |= kinds & ~LOOKER_APPENDS;
    }
}

void claim_watcher_left(struct file *f, uint64_t node, unsigned kinds, unsigned since)
{
    struct file_claim *c = claim_if(f);
    if (!c)
        return;
    lock_take(&c->lock);
    struct watchers w = watchers_of(c);
    left(&w, node, kinds, since);
    watchers_set(c, &w);
    lock_drop(&c->lock);
}

void claim_watchers_asked(struct file *f)
{
    struct file_claim *c = claim_if(f);
    if (!c)
        return;
    lock_take(&c->lock);
    struct watchers w = watchers_of(c);
    w.any = w.more;
    w.more = 0;
    watchers_set(c, &w);
    lock_drop(&c->lock);
}

/* ---- asking for them ---- */

/* 0: *w has them; -EAGAIN: once more. */
static int ask_once(struct file *f, struct watchers *w)
{
    const struct view *v = members_view();
    struct granted g;
    int err = v ? claim_want(f, v, true, &g) : -EAGAIN;
    if (err || g.view != v->number || g.body.where != AT_GRANTED)
        return -EAGAIN;
    *w = g.watchers;
    return 0;
}

static int ask_until(struct file *f, uint64_t end_ms, struct watchers *w)
{
    unsigned wait = 5;
    int err;
    while ((err = ask_once(f, w)) == -EAGAIN && boot_ms() < end_ms) {
        claim_wait(wait);
        wait = MIN(2 * wait, 100);
    }
    return err;
}

/* True: this thread asks. */
static bool begin_asking(struct file_claim *c, uint64_t end_ms)
{
    uint64_t t;
    lock_take(&c->lock);
    while (c->watchers_asked && (t = boot_ms()) < end_ms)
        lock_wait(&c->lock, &c->changed, end_ms - t);
    bool mine = c->watchers_unknown && !c->watchers_asked;
    if (mine)
        c->watchers_asked = true;
    lock_drop(&c->lock);
    return mine;
}

/* w: those that the home has named.  Others have opened the file to append to it since. */
static void end_asking(struct file_claim *c, int err, struct watchers *w)
{
    lock_take(&c->lock);
    c->watchers_asked = false;
    if (!err) {
        struct watchers since = watchers_of(c);
        for (unsigned i = 0; i < since.n; i++)
            add(w, since.v[i].node, since.v[i].incarnation, since.v[i].kinds, false);
        watchers_set(c, w);
        c->watchers_unknown = false;
    }
    pthread_cond_broadcast(&c->changed);
    lock_drop(&c->lock);
}

int claim_know_watchers(struct file *f, uint64_t end_ms)
{
    struct file_claim *c = claim_of(f);
    struct watchers w;
    if (!c->watchers_unknown)
        return 0;
    if (begin_asking(c, end_ms)) {
        int err = ask_until(f, end_ms, &w);
        end_asking(c, err, &w);
        if (err)
            log_warn("the home of a file that was not on the PFS when the daemon ended did not say "
                     "which nodes look at it: it cannot be written now: EIO");
    }
    return c->watchers_unknown ? -EIO : 0;
}
