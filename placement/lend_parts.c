/* lend_parts.c - LEND: a node gets those of the parts that it asks for that nobody has written yet, and hears who has the
 * others.
 */
#include <errno.h>

#include "placement/borrow.h"
#include "placement/claims/claim.h"
#include "placement/claims/claim_forget.h"
#include "placement/claims/claim_lent.h"
#include "placement/claims/claim_watch.h"
#include "placement/lend_int.h"
#include "placement/store/store_read.h"
#include "placement/tell.h"
#include "transport/peer.h"

static _Atomic bool leaving;

void lend_set_leaving(bool is)
{
    leaving = is;
}

struct lending_to {
    const struct msg *m;
    struct file *f;
    struct msg *r;
    struct item_lent *parts;
    uint32_t n;
};

static void add_part(struct lending_to *l, uint64_t first, uint64_t last, uint64_t node)
{
    if (node && l->n < LEND_MAX)
        l->parts[l->n++] = (struct item_lent){first, last, node};
}

/* Who has what of the units that were named. */
static void add_parts(struct lending_to *l, uint64_t first, uint64_t last)
{
    for (uint64_t unit = first, until; unit <= last; unit = until + 1) {
        uint64_t node = store_lent_to(l->f, unit, last, &until);
        add_part(l, unit, until, node);
        if (until >= last)
            break;
    }
}

/* Of a file that is shared: no watcher comes from now on (claim_watch_begin). */
static bool is_watched(struct file *f)
{
    struct claim_watcher some[CLAIM_WATCHERS_MAX];
    unsigned any, n = claim_watchers(f, some, &any);
    for (unsigned i = 0; i < n; i++)
        any |= some[i].kinds;
    return any & ~LOOKER_OPEN;
}

/* Do other nodes' kernels keep pages, or count places?  A watcher from before the claim was granted may have opened the file otherwise
 * since: it is asked. */
static bool others_keep(struct file *f)
{
    if (is_watched(f))
        tell_changed(f, &(struct change){.op = CARRY_TIMES}, 0);
    return is_watched(f);
}

/* The kernels of the other nodes keep nothing of a file that has no watchers; this node's own is asked.  Not while any appends:
 * it counts the places by the size, which a borrower may make larger and nobody tells. */
static enum lend_why share(struct file *f)
{
    static const struct told_change nothing = {.what = TOLD_ATTR};
    if (borrow_is_refused(f))
        return LEND_NOT;
    if (store_is_lent(f))
        return store_share_begin(f) ? LEND_NOT : LEND_ALL;
    int err = store_share_begin(f);
    if (err == -EAGAIN && !local_sync_pfs(f)) /* what the kernel wrote before it closed */
        err = store_share_begin(f);
    if (err)
        return err == -EIDRM ? LEND_NOT : LEND_KERNEL;
    if (others_keep(f) || told_here(f->fid, &nothing) & ~LOOKER_OPEN) {
        store_share_end(f);
        return LEND_KERNEL;
    }
    return LEND_ALL;
}

static enum lend_why why_of(int err)
{
    return !err ? LEND_ALL : err == -EAGAIN || err == -EBUSY ? LEND_BUSY : LEND_NOT;
}

/* All in one epoch, though parts are taken back meanwhile.  What is being recalled is named, too: its borrower may have
 * given it back already, and this is of an earlier epoch then. */
static void list_places(struct lending_to *l, uint64_t *epoch)
{
    const struct body_lend *b = &l->m->lend;
    uint64_t present;
    do {
        present = store_lend_epoch(l->f);
        *epoch = store_lent_epoch(l->f);
        l->n = 0;
        for (uint64_t i = 0; i <= b->count; i++)
            add_parts(l, b->first + i * b->stride, b->last + i * b->stride);
    } while (store_lend_epoch(l->f) != present);
}

static enum lend_why lend_places(struct lending_to *l)
{
    const struct body_lend *b = &l->m->lend;
    int err = 0;
    bool flushed = false;
    for (uint64_t i = 0; !err && i <= b->count; i++) {
        uint64_t at = i * b->stride;
        struct lend_node to = {l->m->head.sender, l->m->head.incarnation};
        err = store_lend(l->f, to, b->first + at, b->last + at);
        if (err == -EBUSY && !flushed && !local_sync_pfs(l->f)) {
            flushed = true;
            err = 0;
            i--;
        }
    }
    return why_of(err);
}

static enum lend_why lend(struct lending_to *l)
{
    enum lend_why why = leaving ? LEND_BUSY : share(l->f);
    if (why != LEND_ALL)
        return why;
    why = lend_places(l);
    claim_other_wrote(l->f); /* or is about to, and perhaps not a byte of it comes here */
    store_share_end(l->f);
    return why;
}

static void answer_lend(struct lending_to *l)
{
    struct body_lent *to = &l->r->lent;
    struct file_info info;
    claim_id(l->f, &to->number_inc, &to->number);
    if (l->m->lend.ask == LEND_WANT)
        to->why = (uint8_t)lend(l);
    if (file_is_unlinked(l->f))
        to->why = LEND_GONE;
    list_places(l, &to->epoch);
    store_info(l->f, &info);
    to->base_end = info.base_end;
    to->parts.v = l->parts;
    to->parts.n = l->n;
    l->r->arena = l->parts;
}

static int prepare(struct file *f, const struct msg *m)
{
    const struct body_lend *b = &m->lend;
    uint64_t until;
    if (claim_is_forgotten(f)) /* what was lent under it is void */
        return -ENOENT;
    int err = lend_know_node(f, (struct lend_node){m->head.sender, m->head.incarnation});
    if (!err)
        err = lend_take_of_gone(f);
    uint64_t node = b->ask == LEND_DOUBT && !err ? store_lent_to(f, b->first, b->first, &until) : 0;
    return node ? lend_recall_from(f, node) : err;
}

static int serve_lend(const struct msg *m, struct msg **reply)
{
    struct lending_to l = {.m = m, .f = file_find(m->lend.fid)};
    int err = l.f ? claim_change_begin(l.f, boot_ms() + T_OPEN) : -ENOENT;
    if (!err && (err = prepare(l.f, m)))
        claim_carry_end(l.f);
    if (!err) {
        l.r = *reply = msg_new(MSG_LENT);
        l.parts = xcalloc(LEND_MAX, sizeof(*l.parts));
        answer_lend(&l);
        claim_carry_end(l.f);
    }
    if (l.f)
        file_put(l.f);
    return err;
}

static bool is_sound(const struct msg *m)
{
    const struct body_lend *b = &m->lend;
    const uint64_t most = INT64_MAX / LOAN_UNIT;
    return m->head.flags & MSG_F_WANTS && b->ask <= LEND_DOUBT && b->first <= b->last &&
           b->last <= most && b->last - b->first < LEND_MAX && b->count < LEND_MAX &&
           b->stride <= most / LEND_MAX &&
           (!b->count ||
            (b->stride > b->last - b->first && b->last + b->count * b->stride <= most)) &&
           (b->last - b->first + 1) * (b->count + 1) <= LEND_MAX;
}

void lend_on_lend(struct msg *m)
{
    if (is_sound(m))
        loan_serve(m->lend.ask == LEND_DOUBT ? loan_doubt : loan_lend, serve_lend, m);
    else
        peer_refuse(m);
}
