/* borrow_io.c - reads and writes by applications of this node, of a file that another node has claimed: each part goes
 * where its bytes are, and new parts are borrowed.
 *
 * A write that finds nobody in its units asks for them if that is worth a message: it is long, or this node has
 * carried much already.  Small records that several nodes write under locks stay with the claimant.  If the writes of a
 * handle follow each other at one distance, the next places are asked for at once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "placement/borrow_int.h"
#include "placement/claims/claim.h"
#include "placement/claims/claim_lent.h"
#include "placement/claims/ended.h"
#include "placement/lend.h"
#include "placement/local.h"
#include "placement/owed.h"
#include "placement/store/store_read.h"
#include "transport/members.h"
#include "transport/peer.h"

#define CARRIED_MIN  (UINT64_C(1) << 20) /* so much goes to the claimant before short writes borrow */
#define PLACES_MAX   (UINT64_C(16) << 20) /* bytes that are borrowed ahead */
#define KERNEL_MS    500                  /* until the claimant is asked again, at most ... */
#define BUSY_MS      5
#define NOT_MS       5000
#define TRIES        16 /* so often a part is sought anew before the caller asks the home again */

/* ---- LEND ---- */

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

static bool is_worth_it(struct borrow *b, uint64_t len)
{
    lock_take(&b->lock);
    bool enough = b->always || len >= LOAN_UNIT || b->carried >= CARRIED_MIN;
    bool worth = enough && !b->never && !b->is_void && boot_ms() >= b->not_before_ms;
    lock_drop(&b->lock);
    return worth;
}

static int borrow(struct file *f, uint64_t claimant, uint64_t off, uint64_t len, const struct borrow_pattern *p)
{
    struct body_lend body = {.first = off / LOAN_UNIT, .last = (off + len - 1) / LOAN_UNIT};
    look_ahead(p, &body);
    return ask(f, claimant, &body, true, NULL);
}

/* ---- writing ---- */

/* To the caller these would say that the claimant is another node, or out of reach, or has lent it. */
static int own_error(int err)
{
    return err == -ENOENT || err == -EAGAIN || err == -EREMOTE ? -EIO : err;
}

int borrow_use_change(struct file *f, struct file *loan, struct change *c)
{
    int err = own_error(local_change(loan, c));
    return err ? err : borrow_is_void(borrow_of(f)) ? -ENOENT : 0;
}

/* -EREMOTE: it is not this node's any more. */
static int write_own(struct file *f, struct change *c)
{
    int err = borrow_use_change(f, borrow_of(f)->loan, c);
    if (!err)
        count(borrowed_bytes, c->len);
    return err == -ENOENT ? -EREMOTE : err;
}

/* Of this loan the file has at least so much. */
static uint64_t loan_size(struct file *f)
{
    struct file_info info;
    store_info(borrow_of(f)->loan, &info);
    return info.size;
}

/* A borrower's part of a store through a mapping: only what is before the file's end counts, which the claimant knows.  On
 * error the part is not used any more. */
static int store_ends(struct file *f, uint64_t claimant, struct change *part, const struct place *p)
{
    bool mine = p->number == UNIT_MINE;
    if (part->op != CARRY_STORE || (!mine && !p->node))
        return 0;
    uint64_t size = mine ? loan_size(f) : 0;
    int err = size < part->off + part->len ? claim_size(f->fid, claimant, boot_ms() + T_OPEN, &size) : 0;
    if (!err)
        carry_store_ends(part, size);
    else if (mine)
        borrow_use_end(f);
    return err;
}

static int write_part(struct file *f, uint64_t claimant, struct change *part, const struct place *p,
                      struct borrow_heard *heard)
{
    struct borrow *b = borrow_of(f);
    int err = 0;
    if (p->number == UNIT_MINE) {
        if (part->len)
            err = write_own(f, part);
        borrow_use_end(f);
        return err;
    }
    if (!part->len)
        return 0;
    uint64_t departures = ended_departures();
    err = carry_write(p->node ? p->node : claimant, f, part, p->node ? NULL : &heard->result);
    if (!err) {
        count(carried_bytes, part->len);
        heard->carried = true;
        if (p->node)
            owed_note(part->owed, p->node, borrow_incarnation(p->node), departures);
    }
    if (!err && !p->node) {
        heard->claimant = true;
        lock_take(&b->lock);
        b->carried += part->len;
        lock_drop(&b->lock);
    }
    return err;
}

/* The part is not where it was thought to be, or that node is out of reach and may have given it back before.  0: it may be
 * known now. */
static int seek_part(struct file *f, uint64_t claimant, const struct place *p, uint64_t off, int err)
{
    struct borrow *b = borrow_of(f);
    if (err != -EREMOTE && !(p->node && (err == -ENOENT || err == -EAGAIN)))
        return err;
    borrow_unknown(b, p, off);
    int heard = borrow_learn(f, claimant, off, p->len, err == -ENOENT);
    if (heard || err != -EAGAIN)
        return heard;
    struct place now = borrow_place(b, off, p->len);
    if (now.number == UNIT_MINE)
        borrow_use_end(f);
    return now.node == p->node ? -EAGAIN : 0;
}

/* As borrow_place.  What is this node's is used only where that is known.  -errno: nobody says so now. */
static int place(struct file *f, uint64_t off, uint64_t len, struct place *p)
{
    struct borrow *b = borrow_of(f);
    int err = borrow_may_use(f);
    *p = err ? (struct place){0} : borrow_place(b, off, len);
    return err;
}

/* All of it is used from now on; false: not all is borrowed here, or it is not known; now: without waiting. */
static bool use_own(struct file *f, uint64_t off, uint64_t len, bool now)
{
    struct borrow *b = borrow_if(f);
    struct place p = {0};
    if (!b || !len || !b->loan || (now && !borrow_is_known(b)))
        return false;
    if (now)
        p = borrow_place_now(b, off, len);
    else if (place(f, off, len, &p))
        return false;
    if (p.number == UNIT_MINE && p.len < len)
        borrow_use_end(f);
    return p.number == UNIT_MINE && p.len == len;
}

int borrow_change_own(struct file *f, struct change *c)
{
    if ((c->op != CARRY_WRITE && c->op != CARRY_STORE) || !use_own(f, c->off, c->len, false))
        return -EREMOTE;
    struct change own = *c;
    bool ends = c->op == CARRY_STORE && loan_size(f) < c->off + c->len; /* perhaps: the claimant must be asked */
    int err = ends ? -EREMOTE : write_own(f, &own);
    borrow_use_end(f);
    c->off_out = c->off;
    return err;
}

int borrow_write_own_now(struct file *f, struct change *c)
{
    if (!use_own(f, c->off, c->len, true))
        return -EAGAIN;
    struct borrow *b = borrow_of(f);
    int err = local_change_now(b->loan, c);
    if (!err && borrow_is_void(b))
        err = -EAGAIN; /* it does not count */
    borrow_use_end(f);
    if (!err)
        count(borrowed_bytes, c->len);
    return err == -ENOENT || err == -EREMOTE ? -EAGAIN : err;
}

int borrow_change(struct file *f, uint64_t claimant, struct change *c, const struct borrow_pattern *pattern,
                  struct borrow_heard *heard)
{
    struct borrow *b = borrow_of(f);
    unsigned tries = 0;
    for (uint64_t done = 0; done < c->len;) {
        struct change part = *c;
        part.buf = (const uint8_t *)c->buf + done;
        part.off += done;
        part.len -= done;
        struct place p;
        int err = place(f, part.off, part.len, &p);
        if (err)
            return err;
        if (!p.number && c->op == CARRY_WRITE && is_worth_it(b, part.len)) {
            err = borrow(f, claimant, part.off, part.len, pattern);
            if (err)
                return err;
            if ((err = place(f, part.off, part.len, &p)))
                return err;
        }
        part.len = p.len;
        err = store_ends(f, claimant, &part, &p);
        if (err)
            return err;
        err = write_part(f, claimant, &part, &p, heard);
        if (!err) {
            done += p.len;
            continue;
        }
        err = tries++ < TRIES ? seek_part(f, claimant, &p, part.off, err) : -EAGAIN;
        if (err)
            return err;
    }
    c->off_out = c->off;
    return 0;
}

/* ---- reading ---- */

static int read_loan(struct file *f, struct carry_range *part)
{
    struct local_read r = {
        .buf = part->buf, .len = part->len, .off = part->off, .claimed = true, .end_ms = boot_ms() + T_OPEN};
    int err = local_read(borrow_of(f)->loan, &r);
    part->got = r.got;
    return own_error(err);
}

/* This node's own, or another borrower's. */
static int read_borrowed(struct file *f, const struct place *p, struct carry_range *part)
{
    return p->number == UNIT_MINE ? read_loan(f, part) : carry_read(p->node, f, part);
}

/* A borrower has no more bytes: what follows is zeros up to the file's end, which only the claimant knows.  The bytes that
 * have made the file longer meanwhile are no zeros, so they are read after it was asked. */
static int read_tail(struct file *f, uint64_t claimant, const struct place *p, struct carry_range *part)
{
    uint64_t size;
    int err = claim_size(f->fid, claimant, boot_ms() + T_OPEN, &size);
    if (!err)
        err = read_borrowed(f, p, part);
    if (err)
        return err;
    uint64_t end = MIN(part->off + part->len, MAX(size, part->off + part->got));
    memset((char *)part->buf + part->got, 0, (size_t)(end - part->off) - part->got);
    part->got = (size_t)(end - part->off);
    return 0;
}

/* *end: the file ends behind it. */
static int read_from_borrower(struct file *f, uint64_t claimant, struct carry_range *part, const struct place *p,
                              bool *end)
{
    int err = read_borrowed(f, p, part);
    if (!err && part->got < part->len)
        err = read_tail(f, claimant, p, part);
    if (p->number == UNIT_MINE)
        borrow_use_end(f);
    *end = !err && part->got < part->len;
    return err;
}

static int read_from_claimant(struct file *f, uint64_t claimant, struct carry_range *part,
                              struct borrow_heard *heard, bool *end)
{
    int err = carry_read(claimant, f, part);
    if (err)
        return err;
    heard->claimant = true;
    heard->result = part->result;
    *end = part->got < part->len && !part->more;
    return part->got < part->len && part->more ? -EREMOTE : 0;
}

int borrow_read_own(struct file *f, void *buf, size_t len, uint64_t off)
{
    struct carry_range part = {.buf = buf, .len = len, .off = off};
    if (!use_own(f, off, len, false))
        return -EREMOTE;
    int err = read_loan(f, &part);
    borrow_use_end(f);
    return !err && part.got < len ? -EREMOTE : err;
}

int borrow_read(struct file *f, uint64_t claimant, struct carry_range *r, struct borrow_heard *heard)
{
    unsigned tries = 0;
    bool end = false;
    for (r->got = 0; !end && r->got < r->len;) {
        struct carry_range part = {
            .buf = (char *)r->buf + r->got, .off = r->off + r->got, .len = r->len - r->got};
        struct place p;
        int err = place(f, part.off, part.len, &p);
        if (err)
            return err;
        part.len = (size_t)p.len;
        err = p.number == UNIT_MINE || p.node ? read_from_borrower(f, claimant, &part, &p, &end)
                                                  : read_from_claimant(f, claimant, &part, heard, &end);
        r->got += part.got;
        if (part.got)
            tries = 0;
        if (err)
            err = tries++ < TRIES ? seek_part(f, claimant, &p, r->off + r->got, err) : -EAGAIN;
        if (err)
            return err;
    }
    return 0;
}
