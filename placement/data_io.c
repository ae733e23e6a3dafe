/* data_io.c - reading and changing an open file, wherever data_where.c says its bytes are.
 *
 * The bytes can move to another node at any time.  So each call is a loop: it works where the bytes are.  If
 * the answer shows that they are not there any more, it asks the home and goes on from the byte that was
 * reached, until the call's deadline (struct patience).
 *
 * A read ends even if others write all the time: after a few versions that changed under it, it reads the PFS
 * file as it is, and after a few of these reads that met a change it takes what it got.  A change is made again
 * only if it is certain that it was not made.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "placement/borrow_flush.h"
#include "placement/chunks/proof.h"
#include "placement/chunks/stream.h"
#include "placement/claims/claim.h"
#include "placement/claims/claim_forget.h"
#include "placement/claims/ended.h"
#include "placement/data_int.h"
#include "placement/data_owed.h"
#include "placement/lend.h"
#include "placement/local.h"
#include "placement/pfs/pfs_data.h"
#include "placement/store/store_lend.h"
#include "placement/store/store_read.h"
#include "placement/store/store_write.h"
#include "placement/tell.h"

/* So often a call asks again at once without having got a byte.  After that it pauses before it asks, and a
 * read takes the PFS file as it is. */
#define TRIES 3

/* So often a read takes nothing of the PFS file as it is, since the file changed meanwhile: a node that
 * flushes it writes page by page, and nobody writes what lies in between. */
#define UNSTEADY 8

/* One call that is under way. */
struct asking {
    struct patience patience;
    unsigned tries;
    bool plain; /* read the PFS as it is */
    unsigned unsteady;
};

/* What follows from err: 0: the call tries again; else the call's error. */
static int again(struct data_handle *h, struct asking *a, int err)
{
    bool moved = err == -ESTALE || err == -ENOENT;
    if (!moved && err != -EAGAIN)
        return err;
    if (!moved || a->tries++ >= TRIES) {
        a->plain |= moved;
        err = data_ask_again(h, &a->patience);
        if (err)
            return err;
    }
    return data_relocate(h, &a->patience);
}

static bool counted_here(struct data_handle *h)
{
    lock_take(&h->lock);
    bool counted = h->counted;
    lock_drop(&h->lock);
    return counted;
}

/* ---- reading ---- */

static int read_carried(struct data_handle *h, uint64_t node, struct local_read *r)
{
    struct carry_range range = {.buf = r->buf, .len = r->len, .off = r->off};
    struct borrow_heard heard = {0};
    int err = borrow_read(h->f, node, &range, &heard);
    r->got = range.got;
    r->from.peer += r->got;
    if (!err && heard.claimant)
        data_heard(h, node, &heard.result, false);
    return err;
}

static bool same_version(const struct statx *a, const struct statx *b)
{
    struct version v = version_of(a), w = version_of(b);
    return version_eq(&v, &w);
}

static int read_plain(struct data_handle *h, struct asking *a, struct local_read *r)
{
    struct statx before, after;
    int err = pfs_file_stat(h->f, &before);
    if (!err)
        err = pfs_read(h->f, r->buf, r->len, r->off, &r->got);
    if (!err)
        err = pfs_file_stat(h->f, &after);
    if (!err && !same_version(&before, &after) && a->unsteady++ < UNSTEADY)
        err = -ESTALE;
    r->got = err ? 0 : r->got;
    r->from.pfs += r->got;
    return err;
}

static int read_once(struct data_handle *h, struct asking *a, struct local_read *r)
{
    uint64_t node = 0;
    int err = -ENOENT; /* WHERE_LOST: the node that has the bytes may be back */
    enum where w = data_where(h, &node);
    r->from = (struct fetched){.ahead = stream_ahead(data_stream(h))};
    r->claimed = w == WHERE_HERE;
    r->got = 0;
    if (w == WHERE_NODE) {
        err = read_carried(h, node, r);
    } else if (w == WHERE_PFS && a->plain) {
        err = read_plain(h, a, r);
    } else if (w != WHERE_LOST) {
        err = lend_read_all(h->f, r);
    }
    stream_count(data_stream(h), &r->from);
    return err;
}

bool data_is_behind(struct data_handle *h)
{
    return (h->drops_seen != data_drops(h->f) || !data_stays(h)) && !counted_here(h);
}

static int catch_up(struct data_handle *h, struct patience *p)
{
    uint64_t drops = data_drops(h->f);
    int err = data_is_behind(h) ? data_relocate(h, p) : 0;
    if (!err)
        h->drops_seen = drops;
    return err;
}

int data_read(struct data_handle *h, void *buf, size_t len, uint64_t off, size_t *got)
{
    struct asking a = {.patience = data_patience()};
    *got = 0;
    if (!borrow_read_own(h->f, buf, len, off)) {
        *got = len;
        return 0;
    }
    int err = catch_up(h, &a.patience);
    if (!err)
        stream_saw(data_stream(h), off, len);
    for (bool done = false; !err && !done;) {
        struct local_read r = {.buf = (uint8_t *)buf + *got,
                            .len = len - *got,
                            .off = off + *got,
                            .end_ms = a.patience.end_ms};
        err = read_once(h, &a, &r);
        *got += r.got;
        if (r.got)
            a.tries = 0;
        done = !err;
        if (err)
            err = again(h, &a, err);
    }
    return err;
}

/* 1: this read may have the bytes of *hit, although other reads were given bytes that were not proved at
 * *then.  Else as data_read_begin. */
static int prove(struct file *f, const struct proofs *then, const struct store_hit *hit, bool wait)
{
    int err = proofs_stand(f, then, &hit->base, wait);
    return !err ? 1 : err == -EAGAIN ? err : 0;
}

int data_read_begin(struct data_handle *h, uint64_t off, size_t len, bool wait,
                    struct store_hit *hit)
{
    uint64_t node;
    enum where w = data_where(h, &node);
    if ((w != WHERE_HERE && w != WHERE_PFS) || data_is_behind(h))
        return 0;
    struct proofs then = w == WHERE_PFS ? proofs_now(h->f) : (struct proofs){0};
    if (!store_read_begin(h->f, off, len, hit))
        return 0;
    /* the kernel takes a short answer for the end of the file */
    int begun = hit->len < len && !hit->ends ? 0 : prove(h->f, &then, hit, wait);
    if (begun != 1) {
        store_read_end(hit);
        return begun;
    }
    struct stream *s = data_stream(h);
    stream_saw(s, off, len);
    stream_count(s, &(struct fetched){.local = hit->len});
    return 1;
}

/* ---- changing ---- */

/* The claimant has acknowledged a change; or a borrower has, whose loan is void without the claim. */
static void owes(struct data_handle *h, uint64_t node, uint64_t departures)
{
    lock_take(&h->lock);
    uint64_t inc = h->where.where == WHERE_NODE && h->where.node == node ? h->claimant_inc : 0;
    lock_drop(&h->lock);
    owed_note_claimant(&h->owed, node, inc, departures);
}

static int change_carried(struct data_handle *h, uint64_t node, struct change *c)
{
    struct carry_result r = {0};
    uint64_t departures = ended_departures();
    int err = carry_write(node, h->f, c, &r);
    if (err)
        return err;
    if (c->op != CARRY_SYNC)
        owes(h, node, departures);
    c->off_out = r.offset;
    data_heard(h, node, &r, true);
    if (carry_op_is_write(c->op))
        count(carried_bytes, c->len);
    return 0;
}

static struct borrow_pattern follow(struct data_handle *h, const struct change *c)
{
    lock_take(&h->lock);
    borrow_follow(&h->pattern, c->off, c->len);
    struct borrow_pattern pattern = h->pattern;
    lock_drop(&h->lock);
    return pattern;
}

static int change_borrowed(struct data_handle *h, uint64_t node, struct change *c)
{
    struct borrow_heard heard = {0};
    struct borrow_pattern pattern = follow(h, c);
    uint64_t departures = ended_departures();
    int err = borrow_change(h->f, node, c, &pattern, &heard);
    if (heard.carried) /* also of a change that has failed later */
        owes(h, node, departures);
    if (!err && heard.claimant)
        data_heard(h, node, &heard.result, true);
    return err;
}

static int change_here(struct file *f, struct change *c)
{
    int err = lend_change_all(f, c);
    if (!err)
        tell_changed(f, c, 0);
    return err == -ENOENT || err == -ESTALE ? -EIO : err; /* of a look at the PFS when a borrower's part came back */
}

/* Only a handle that is counted here uses this node's claim, because then the claim stays.  A handle that is
 * counted at another node, or nowhere any more, asks first. */
static int change_within(struct data_handle *h, struct change *c, const struct patience *p)
{
    struct asking a = {.patience = *p};
    c->end_ms = p->end_ms;
    int own = borrow_change_own(h->f, c);
    if (own != -EREMOTE) {
        follow(h, c); /* so that it is known where the next one will be when what is borrowed ends */
        return own;
    }
    for (;;) {
        uint64_t node = 0;
        int err;
        c->owed = &h->owed;
        if (counted_here(h))
            return change_here(h->f, c);
        if (data_where(h, &node) != WHERE_NODE)
            err = -ENOENT;
        else if (c->len && (c->op == CARRY_WRITE || c->op == CARRY_STORE))
            err = change_borrowed(h, node, c);
        else
            err = change_carried(h, node, c);
        if (!err)
            return 0;
        err = again(h, &a, err);
        if (err)
            return err;
    }
}

static int change(struct data_handle *h, struct change *c)
{
    struct patience p = data_patience();
    return change_within(h, c, &p);
}

/* This node has the claim. */
static int change_here_now(struct data_handle *h, struct change *c)
{
    if (tell_must(h->f, 0))
        return -EAGAIN;
    if (c->op == CARRY_STORE && store_is_lent(h->f)) /* what lies behind the end is left out: borrowers are asked where it is */
        return -EAGAIN;
    return local_change_now(h->f, c);
}

static int change_borrowed_now(struct data_handle *h, struct change *c)
{
    int err = h->writes && c->op == CARRY_WRITE ? borrow_write_own_now(h->f, c) : -EAGAIN;
    if (!err)
        follow(h, c);
    return err;
}

int data_write_now(struct data_handle *h, enum carry_op op, const void *buf, size_t len,
                   uint64_t off, uint64_t *off_out)
{
    struct change c = {.op = op, .buf = buf, .len = len, .off = off};
    if (len > (16u << 20))
        return -EAGAIN;
    int err = counted_here(h) ? change_here_now(h, &c) : change_borrowed_now(h, &c);
    if (err)
        return err == -EREMOTE ? -EAGAIN : err;
    count(written_bytes, len);
    *off_out = c.off_out;
    return 0;
}

int data_write(struct data_handle *h, enum carry_op op, const void *buf, size_t len, uint64_t off,
               uint64_t *off_out)
{
    *off_out = off;
    if (!h->writes)
        return -EBADF;
    for (size_t done = 0; done < len;) {
        size_t n = MIN(len - done, CARRY_PIECE);
        struct change c = {
            .op = op, .buf = (const uint8_t *)buf + done, .len = n, .off = off + done};
        int err = change(h, &c);
        if (err)
            return err;
        if (!done)
            *off_out = c.off_out;
        count(written_bytes, n);
        done += n;
    }
    return 0;
}

int data_cut(struct data_handle *h, uint64_t size, const struct patience *p)
{
    struct change c = {.op = CARRY_TRUNCATE, .len = size};
    if (!h->writes)
        return -EBADF;
    return size > INT64_MAX ? -EFBIG : change_within(h, &c, p);
}

int data_truncate(struct data_handle *h, uint64_t size)
{
    struct patience p = data_patience();
    return data_cut(h, size, &p);
}

int data_fallocate(struct data_handle *h, int mode, uint64_t off, uint64_t len)
{
    const int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    struct change c = {.op = mode == punch ? CARRY_PUNCH : CARRY_ALLOCATE,
                       .len = len,
                       .off = off,
                       .mode = (unsigned)mode};
    if (!h->writes)
        return -EBADF;
    if (mode != 0 && mode != FALLOC_FL_KEEP_SIZE && mode != punch)
        return -EOPNOTSUPP;
    return off > INT64_MAX || len > INT64_MAX - off ? -EFBIG : change(h, &c);
}

/* ---- the rest ---- */

static int seek_all_data(uint64_t size, uint64_t off, bool hole, uint64_t *out)
{
    if (off >= size)
        return -ENXIO;
    *out = hole ? size : off;
    return 0;
}

/* True: the PFS does not have what was written here, as this node has the claim, or the file was removed
 * before it was flushed.  The claim of a removed file goes back to the home, but its bytes stay in the store
 * while it is open. */
static bool only_here(struct file *f, enum where w)
{
    struct file_info info;
    if (w != WHERE_PFS)
        return w == WHERE_HERE;
    store_info(f, &info);
    return info.deleted;
}

int data_seek(struct data_handle *h, uint64_t off, bool hole, uint64_t *out)
{
    uint64_t node;
    struct location at;
    struct patience p = data_patience();
    int err = catch_up(h, &p);
    if (err)
        return err;
    enum where w = data_where(h, &node);
    if (only_here(h->f, w)) {
        if (!store_is_lent(h->f))
            return store_seek(h->f, off, hole, out);
        err = lend_pull(h->f, &node);
        if (err)
            return err;
        data_attr(h, &at);
        return seek_all_data(at.size, off, hole, out);
    }
    if (w == WHERE_NODE) { /* another open of this node may have changed the size at the claimant */
        err = data_relocate(h, &p);
        if (err)
            return err;
    }
    err = w == WHERE_PFS ? pfs_file_seek(h->f, off, hole, out) : -EOPNOTSUPP;
    /* the file has neither a descriptor nor a name any more */
    bool lost = h->anchored && (err == -ENOENT || err == -ESTALE);
    if (err != -EOPNOTSUPP && err != -EINVAL && !lost)
        return err;
    data_attr(h, &at);
    return seek_all_data(at.size, off, hole, out);
}

/* An fsync also comes by handles that only read, or are not counted: it needs the claim only while it runs.
 * If there is no claim any more, the file was flushed meanwhile and is on the PFS; but void data, which is
 * still here, is not. */
static int sync_once(struct data_handle *h, struct change *c)
{
    uint64_t node = 0;
    int err = borrow_may_use(h->f); /* void: data_given_up says so */
    if (err)
        return err;
    if (counted_here(h))
        return lend_change(h->f, c);
    switch (data_where(h, &node)) {
    case WHERE_HERE:
        if (claim_carry_begin(h->f))
            return claim_is_forgotten(h->f) ? local_change(h->f, c) : 0;
        err = lend_change(h->f, c);
        claim_carry_end(h->f);
        return err;
    case WHERE_NODE:
        err = change_carried(h, node, c);
        return err == -ENOENT ? 0 : err;
    case WHERE_PFS:
        return 0;
    default:
        return -EIO;
    }
}

/* The node that had the claim when this handle asked last may have left the session. */
int data_sync(struct data_handle *h, bool pfs)
{
    struct asking a = {.patience = data_patience()};
    struct change c = {.op = CARRY_SYNC, .mode = pfs, .end_ms = a.patience.end_ms};
    uint64_t notes = owed_notes(&h->owed);
    int err = catch_up(h, &a.patience); /* another node may have begun to write it since this handle asked */
    while (!err && (err = sync_once(h, &c)) == -EAGAIN)
        err = again(h, &a, err);
    return data_owed_settle(h, notes, err);
}
