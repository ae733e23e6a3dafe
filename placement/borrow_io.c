/* borrow_io.c - reads and writes by applications of this node, of a file that another node has claimed: each part goes
 * where its bytes are, and new parts are borrowed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "placement/borrow_flush.h"
#include "placement/borrow_int.h"
#include "placement/claims/claim.h"
#include "placement/claims/claim_lent.h"
#include "placement/claims/ended.h"
#include "placement/local.h"
#include "placement/owed.h"
#include "placement/store/store_read.h"

#define TRIES 16 /* so often a part is sought anew before the caller asks the home again */

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
        if (!p.number && c->op == CARRY_WRITE && borrow_is_worth_it(b, part.len)) {
            err = borrow_more(f, claimant, part.off, part.len, pattern);
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
