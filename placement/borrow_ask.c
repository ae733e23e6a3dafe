/* borrow_ask.c - LEND: the claimant is asked for more parts of its file, or which nodes have what.
 *
 * A write that finds nobody in its units asks for them if that is worth a message: it is long, or this node has
 * carried much already.  Small records that several nodes write under locks stay with the claimant.  If the writes of a
 * handle follow each other at one distance, the next places are asked for at once.
 */
#include <errno.h>
#include <stdlib.h>

#include "placement/borrow_int.h"
#include "placement/lend.h"
#include "transport/members.h"
#include "transport/peer.h"

#define CARRIED_MIN  (UINT64_C(1) << 20) /* so much goes to the claimant before short writes borrow */
#define PLACES_MAX   (UINT64_C(16) << 20) /* bytes that are borrowed ahead */
#define KERNEL_MS    500                  /* until the claimant is asked again, at most ... */
#define BUSY_MS      5
#define NOT_MS       5000

/* Of a node that opens the file just now it is not known yet what its kernel keeps: so the first pauses are short. */
static unsigned pause_of(unsigned why, unsigned times)
{
    unsigned kernel = MIN(BUSY_MS << MIN(times, 8u), KERNEL_MS);
    return why == LEND_KERNEL ? kernel : why == LEND_BUSY ? BUSY_MS : why ? NOT_MS : 0;
}

static bool lent_is_sound(const struct body_lent *l)
{
    if (l->parts.n > LEND_MAX)
        return false;
    for (uint32_t i = 0; i < l->parts.n; i++)
        if (!l->parts.v[i].node || l->parts.v[i].first > l->parts.v[i].last || l->parts.v[i].last > INT64_MAX / LOAN_UNIT ||
            l->parts.v[i].last - l->parts.v[i].first >= LEND_MAX)
            return false;
    return l->base_end <= INT64_MAX;
}

/* The first unit in [unit, last] that it does not say to be this node's; last + 1: none. */
static uint64_t not_ours(const struct body_lent *l, uint64_t unit, uint64_t last)
{
    for (uint32_t i = 0; i < l->parts.n && unit <= last;) {
        const struct item_lent *p = &l->parts.v[i];
        bool ours = p->node == members_self() && p->first <= unit && unit <= p->last;
        unit = ours ? p->last + 1 : unit;
        i = ours ? 0 : i + 1; /* in any order */
    }
    return MIN(unit, last + 1);
}

struct heard_units {
    const struct item_lent *v;
    size_t n;
    bool *mine; /* out: all of them are this node's, says the claimant */
};

static bool all_ours(const struct body_lent *l, const struct heard_units *units)
{
    for (size_t i = 0; i < units->n; i++)
        if (not_ours(l, units->v[i].first, units->v[i].last) <= units->v[i].last)
            return false;
    return true;
}

/* enter: what the answer says of the units counts from now on.  units may be NULL. */
static int ask(struct file *f, uint64_t claimant, const struct body_lend *body, bool enter, const struct heard_units *units)
{
    struct msg *m = msg_new(MSG_LEND), *reply = NULL;
    m->lend = *body;
    m->lend.fid = f->fid;
    int err = peer_call(claimant, m, T_SUSPECT, NULL, 0, &reply);
    if (err && !reply) {
        members_doubt(claimant);
        borrow_doubt(f); /* it may have lent something */
        return -EAGAIN;
    }
    if (!err && !lent_is_sound(&reply->lent)) {
        count(bad_answers, 1);
        err = -EAGAIN;
    }
    if (!err) {
        struct borrow *b = borrow_of(f);
        if (enter) {
            borrow_lent(f, claimant, &reply->lent, body);
            borrow_return_unused(f); /* a reader has heard of it, or the last writer has closed meanwhile */
        }
        if (units)
            *units->mine = all_ours(&reply->lent, units);
        lock_take(&b->lock);
        if (reply->lent.why)
            b->not_before_ms = boot_ms() + pause_of(reply->lent.why, b->refused);
        b->refused = reply->lent.why == LEND_KERNEL ? b->refused + 1 : 0;
        b->gone = reply->lent.why == LEND_GONE;
        lock_drop(&b->lock);
    }
    msg_free(reply);
    return err;
}

int borrow_learn(struct file *f, uint64_t claimant, uint64_t off, uint64_t len, bool doubt)
{
    uint64_t first = off / LOAN_UNIT, last = (off + len - 1) / LOAN_UNIT;
    struct body_lend body = {
        .ask = doubt ? LEND_DOUBT : LEND_ASK, .first = first, .last = MIN(MAX(last, first + 255), (uint64_t)INT64_MAX / LOAN_UNIT)};
    body.last = MIN(body.last, body.first + LEND_MAX - 1);
    return ask(f, claimant, &body, true, NULL);
}

int borrow_hear(struct file *f, uint64_t claimant, const struct item_lent *units, size_t n, bool *mine)
{
    struct body_lend body = {.ask = LEND_ASK, .first = units[0].first, .last = units[n - 1].last};
    return ask(f, claimant, &body, false, mine ? &(struct heard_units){units, n, mine} : NULL);
}

/* The handle's writes: do they follow each other at one distance?  One that is made a second time is the same one. */
void borrow_follow(struct borrow_pattern *p, uint64_t off, uint64_t len)
{
    if (off == p->off && len == p->len)
        return;
    uint64_t distance = off - p->off;
    bool same = p->len && off > p->off && distance == p->distance && len == p->len;
    p->runs = same ? MIN(p->runs + 1, 16u) : 0;
    p->distance = off > p->off ? distance : 0;
    p->off = off;
    p->len = len;
}

/* At first one place more, then twice as many each time. */
static void look_ahead(const struct borrow_pattern *p, struct body_lend *body)
{
    uint64_t units = body->last - body->first + 1;
    bool whole = p->distance % LOAN_UNIT == 0, on = p->distance == p->len;
    if (!p->runs || (!whole && !on) || units * LOAN_UNIT > PLACES_MAX)
        return;
    body->stride = whole ? p->distance / LOAN_UNIT : units;
    uint64_t most = MIN(PLACES_MAX / LOAN_UNIT, (uint64_t)LEND_MAX) / units;
    body->count = (uint32_t)MIN(UINT64_C(1) << p->runs, most - (most > 0));
    if (body->stride < units || body->stride > INT64_MAX / LOAN_UNIT / LEND_MAX ||
        body->last + body->count * body->stride > INT64_MAX / LOAN_UNIT)
        body->count = 0;
}

bool borrow_is_worth_it(struct borrow *b, uint64_t len)
{
    lock_take(&b->lock);
    bool enough = b->always || len >= LOAN_UNIT || b->carried >= CARRIED_MIN;
    bool worth = enough && !b->never && !b->is_void && boot_ms() >= b->not_before_ms;
    lock_drop(&b->lock);
    return worth;
}

int borrow_more(struct file *f, uint64_t claimant, uint64_t off, uint64_t len, const struct borrow_pattern *p)
{
    struct body_lend body = {.first = off / LOAN_UNIT, .last = (off + len - 1) / LOAN_UNIT};
    look_ahead(p, &body);
    return ask(f, claimant, &body, true, NULL);
}
