/* data_where.c - where an open file's bytes are.  The home is asked at open, and again when an answer shows
 * that they moved.
 *
 *          read                                        written
 *   HERE   the store; missing pages from their owners  the store: a writer is counted, so this node
 *                                                      keeps the claim
 *   PFS    the store, in the version last asked for    -
 *   NODE   carried from the claimant, nothing is kept  carried there: a pin counts this node's writer
 *   LOST   EIO                                         EIO
 *
 * HERE and PFS differ by the claim alone.  It comes and goes while a handle is open (another open of this
 * node takes it, a flush gives it back).  So the file's claim is looked at at each use.  With PFS, a handle
 * that only reads may have an older version than the newest: close-to-open allows that until the next open.
 *
 * Order of looks: a version that was seen on the PFS counts only if the look came after the home's answer, or
 * if the home names that version.  Otherwise a claimant may have flushed and given the claim back in between.
 *
 * Lock: h->lock (a leaf), held for one look at the handle or one change of it.  `moving` lets one thread ask
 * for all.
 */
#include "placement/claims/claim.h"
#include "placement/claims/claim_give.h"
#include "placement/claims/claim_settled.h"
#include "placement/claims/look.h"
#include "placement/data_believe.h"
#include "placement/data_int.h"
#include "placement/data_owed.h"
#include "placement/data_pin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "placement/chunks/proof.h"
#include "placement/chunks/stream.h"
#include "placement/pfs/pfs_data.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"
#include "transport/waits.h"

#define LOOKS  8 /* so often home and PFS are asked while they contradict what this node holds */

/* ---- the location ---- */

static void note_said(struct file *f, uint64_t size, int64_t mtime_ns)
{
    struct file_data *d = data_of_open(f);
    lock_take(&d->lock);
    d->said.size = size;
    d->said.mtime_ns = mtime_ns;
    lock_drop(&d->lock);
}

void data_said(struct file *f, const struct carry_result *r)
{
    if (data_of_open(f))
        note_said(f, r->size, r->mtime_ns);
}

static void note_told(struct file *f, const struct location *at)
{
    if (at->where == WHERE_NODE)
        note_said(f, at->size, at->mtime_ns);
}

/* Handle locked. */
static void note_where(struct data_handle *h, const struct location *at, bool watched)
{
    h->where = *at;
    h->claimant_inc = at->where == WHERE_NODE ? data_incarnation(at->node) : 0;
    h->watched = watched;
}

static void set_where(struct data_handle *h, const struct location *at)
{
    lock_take(&h->lock);
    note_where(h, at, at->where == WHERE_NODE && at->keep);
    lock_drop(&h->lock);
    note_told(h->f, at);
}

/* ---- opens that are counted at the claimant ---- */

static int pin_writer(struct data_handle *h, struct location *at)
{
    struct carry_result said;
    int err = data_pin_handle(h, at->node, &said);
    if (err)
        return err;
    at->size = said.size;
    at->mtime_ns = said.mtime_ns;
    at->counter = said.counter;
    return 0;
}

/* The view in which this handle was counted last still holds, and so do its pins. */
static bool is_pinned(struct data_handle *h, uint64_t node)
{
    const struct view *v = members_view();
    lock_take(&h->lock);
    bool pinned = h->pinned == node && v && h->pinned_in == v->number;
    lock_drop(&h->lock);
    return pinned;
}

static void note_pinned(struct data_handle *h, const struct view *v)
{
    lock_take(&h->lock);
    h->pinned_in = v ? v->number : 0;
    lock_drop(&h->lock);
}

/* The claimant keeps the bytes until this handle is closed, also if the file loses its last name. */
static int pin_reader(struct data_handle *h, const struct location *at)
{
    const struct view *v = members_view();
    if (at->where != WHERE_NODE || is_pinned(h, at->node))
        return 0;
    int err = data_pin_handle(h, at->node, NULL);
    if (!err)
        note_pinned(h, v);
    return err == -ENOENT ? -EAGAIN : err; /* it has given the claim back */
}

/* Where its bytes are now; it is not counted any more where it was before. */
static void move_reader(struct data_handle *h, const struct location *at)
{
    lock_take(&h->lock);
    uint64_t pinned = h->pinned;
    note_where(h, at, at->where == WHERE_NODE && at->keep);
    h->pinned = at->where == WHERE_NODE ? at->node : 0;
    uint64_t now = h->pinned;
    lock_drop(&h->lock);
    note_told(h->f, at);
    data_pins_moved(h, pinned, now);
}

enum where data_where(struct data_handle *h, uint64_t *node)
{
    if (claim_is_held(h->f))
        return WHERE_HERE;
    lock_take(&h->lock);
    enum where w = h->where.where;
    *node = h->where.node;
    lock_drop(&h->lock);
    return w == WHERE_HERE ? WHERE_PFS : w;
}

bool data_stays(struct data_handle *h)
{
    if (claim_is_held(h->f))
        return true;
    lock_take(&h->lock);
    bool stays = h->where.keep || h->where.where == WHERE_NODE || h->where.where == WHERE_LOST;
    lock_drop(&h->lock);
    return stays;
}

static void own_word(struct file *f, enum where where, struct location *out)
{
    struct file_info info;
    struct look_ticket ticket = look_now(f->fid);
    store_info(f, &info);
    *out = (struct location){.where = where,
                             .node = where == WHERE_HERE ? members_self() : 0,
                             .size = info.size,
                             .blocks = info.blocks,
                             .mtime_ns = info.mtime_ns,
                             .ctime_ns = info.ctime_ns,
                             .stands_ns = info.stands_ns,
                             .counter = info.change,
                             .known = info.base_known,
                             .version = info.base,
                             .ticket = ticket};
}

void data_attr(struct data_handle *h, struct location *out)
{
    uint64_t node;
    enum where w = data_where(h, &node);
    if (w == WHERE_HERE || w == WHERE_PFS) {
        own_word(h->f, w, out);
        out->keep = data_stays(h);
        return;
    }
    lock_take(&h->lock);
    *out = h->where;
    lock_drop(&h->lock);
}

/* The kernel's cache has this node's own change, too.  If that was the only change since the cache was known
 * to be good, the cache is still good. */
void data_heard(struct data_handle *h, uint64_t node, const struct carry_result *r, bool own_change)
{
    lock_take(&h->lock);
    if (h->where.where == WHERE_NODE && h->where.node == node) {
        h->where.size = r->size;
        h->where.mtime_ns = r->mtime_ns;
        h->where.counter = r->counter;
        h->watched = r->watched;
    }
    if (own_change && h->good.node == node && h->good.counter + 1 == r->counter)
        h->good.counter++;
    lock_drop(&h->lock);
    note_said(h->f, r->size, r->mtime_ns);
}

/* Looks at the PFS for the version.  -ESTALE: the PFS never had it (data_dropped.c).  While a file is being opened, a
 * link count of 0 is enough: the kernel looks the name up again. */
static int fresh_version(struct data_handle *h, const struct location *at, uint64_t end_ms, struct version *v)
{
    struct statx stx;
    if (h->anchored) /* the file may be newer, and removed after the look: only a descriptor leads to it then */
        pfs_open_late(h->f, NULL);
    int err = pfs_file_stat(h->f, &stx);
    if (err)
        return err;
    *v = version_of(&stx);
    if (stx.stx_nlink)
        return 0;
    return h->opening ? -ESTALE : data_check_dropped(h, at, end_ms, v);
}

/* ---- the handle's read-ahead ---- */

/* A file that the kernel reads by itself, or that is not read, needs no stream. */
struct stream *data_stream(struct data_handle *h)
{
    struct stream *s = atomic_load(&h->stream);
    if (s)
        return s;
    struct stream *fresh = stream_new(h->f);
    if (atomic_compare_exchange_strong(&h->stream, &s, fresh))
        return fresh;
    stream_close(fresh); /* another thread was quicker */
    return s;
}

/* ---- what is known without the PFS ----
 *
 * No node of the session has changed the file between the look at the PFS and now if
 *   - the home names a version, and it is the one that was seen: a claimant that gave the file back
 *     since then would have named another one; or
 *   - the home named none then and names none now, both in the same view: no claimant gave the file
 *     back in this view; and what was given back before, to homes of an older view, was on the PFS
 *     when this node looked.
 * Changes by programs outside the session are seen once the look is older than the attribute time-out.
 */

static bool says_same(const struct location *at, const struct version *v)
{
    return data_names_version(at) && version_eq(&at->version, v);
}

struct data_known data_known(const struct version *seen, const struct location *at,
                             uint64_t looked_ms)
{
    bool good = at->where == WHERE_HERE;
    if (at->where == WHERE_PFS)
        good = says_same(at, seen) || (!at->known && claim_settled(at->view, looked_ms));
    return (struct data_known){
        .version = *seen, .view = at->view, .looked_ms = good ? looked_ms : 0};
}

bool data_still_known(const struct data_known *k, const struct location *at)
{
    return at->where == WHERE_PFS &&
           (says_same(at, &k->version) || (!at->known && at->view && at->view == k->view));
}

static bool base_is(struct file *f, const struct version *v)
{
    struct file_info info;
    store_info(f, &info);
    return info.base_known && !info.racy && version_eq(&info.base, v);
}

/* The file was opened without a descriptor, and this node knows no name of it any more, so it cannot look at
 * the PFS.  True: the home's answer shows that there is no newer version.  (A rename has moved its ctime.) */
static bool nothing_newer(struct data_handle *h, const struct location *at)
{
    const struct version *v = &h->known.version;
    bool same = data_still_known(&h->known, at) ||
                (at->known == 2 && version_is_same(v, &at->version, &at->same_as));
    return h->anchored && same && base_is(h->f, v);
}

/* ---- the store's version only moves on ----
 *
 * Several opens may look at the PFS and ask the home at the same time.  One that is late must not replace
 * the version that another open has found since: then a reader would get older bytes, or an earlier end,
 * after newer ones.  So an open notes the store's version before its look, and replaces only this version. */

/* True: another open has found a newer version than v.  A change time only grows. */
static bool is_overtaken(const struct file_info *now, const struct version *v)
{
    return now->base_known && !version_eq(&now->base, v) && now->base.ctime_ns > v->ctime_ns;
}

static int move_version(struct file *f, const struct version *v, const struct file_info *before,
                        const struct version *same_as)
{
    return store_follow_version(f, v, before->base_known ? &before->base : NULL, same_as);
}

/* ---- patience ---- */

struct patience data_patience(void)
{
    return (struct patience){.end_ms = boot_ms() + members_patience(), .wait_ms = 1};
}

int data_ask_again(struct data_handle *h, struct patience *p)
{
    uint64_t now = boot_ms();
    if (now >= p->end_ms)
        return -EIO;
    lock_take(&h->lock);
    wait_on(WAIT_NODES, &h->lock, &h->moved, MIN(p->wait_ms, p->end_ms - now));
    lock_drop(&h->lock);
    p->wait_ms = MIN(2 * p->wait_ms, 500u);
    return 0;
}

/* ---- readers ---- */

/* True: no node of the session has changed the file between the look that saw this version and the home's
 * answer. */
static bool is_current(struct data_handle *h, const struct location *at, const struct version *seen)
{
    if (at->known)
        return version_eq(seen, &at->version);
    return claim_look_counts(at, h->looked_ms);
}

/* Gives the store's pages the version that counts.  seen: the PFS's version at h->looked_ms, before the home
 * was asked, or NULL.  before: the store's state before the home was asked.  -EBUSY: this node has got the
 * claim meanwhile; -EAGAIN: another open has moved the store's version. */
static int follow_version(struct data_handle *h, const struct location *at, const struct version *seen,
                          const struct file_info *before, uint64_t end_ms)
{
    struct version v;
    bool good = seen && !is_overtaken(before, seen) && is_current(h, at, seen);
    uint64_t doubts = proofs_before_look(h->f);
    int err = 0;
    if (good)
        v = *seen;
    else
        err = fresh_version(h, at, end_ms, &v);
    if ((err == -ENOENT || err == -ESTALE) && nothing_newer(h, at)) {
        proofs_looked(h->f, doubts);
        return 0;
    }
    if (err)
        return err == -ENOENT && h->anchored ? -ESTALE : err;
    bool named = says_same(at, &v),
         same = named && at->known == 2;
    /* the store drops racy pages, and the kernel must drop its own: the version does not tell old from new */
    if (before->racy) {
        lock_take(&h->lock);
        h->unlike = unlike_u64() | 1;
        lock_drop(&h->lock);
    }
    err = move_version(h->f, &v, before, same ? &at->same_as : NULL);
    if (!err && named)
        store_tell(h->f, &v, &at->told);
    if (!err && !good)
        proofs_looked(h->f, doubts);
    return err == -ESTALE ? -EAGAIN : err;
}

int data_locate_reader(struct data_handle *h, const struct version *seen, struct patience *p)
{
    for (unsigned i = 0; i < LOOKS;) {
        struct location at = {0};
        struct file_info before;
        store_info(h->f, &before);
        int err = claim_where_until(h->f->fid, LOOK_OPEN, p->end_ms, &at);
        if (err)
            return err;
        if (at.where == WHERE_PFS)
            err = follow_version(h, &at, seen, &before, p->end_ms);
        if (!err)
            err = pin_reader(h, &at);
        if (!err) {
            move_reader(h, &at);
            return at.where == WHERE_LOST ? -EIO : 0;
        }
        if (err == -EAGAIN)
            err = data_ask_again(h, p);
        else if (err == -EBUSY && ++i)
            err = 0;
        if (err)
            return err;
        seen = NULL;
    }
    char *path = file_path(h->f);
    log_error("the home says that a file is on the PFS, but this node has data of it that is not: "
              "%s: EIO",
              path ? path : "?");
    free(path);
    return -EIO;
}

/* This node has the claim and a descriptor: nothing can be newer than its own bytes. */
static bool is_own(struct file *f, struct location *at)
{
    return pfs_has_descriptor(f) && claim_here_of(f, at);
}

int data_locate_known(struct data_handle *h, const struct data_known *k, bool fixed,
                      const struct patience *p)
{
    struct location at = {.where = WHERE_PFS, .keep = fixed};
    int err = 0;
    if (!is_own(h->f, &at)) {
        h->anchored = !fixed && store_anchor(h->f, &k->version, &h->anchored_bytes);
        if (!fixed && !h->anchored)
            return -EAGAIN;
        if (!fixed)
            err = claim_where_until(h->f->fid, LOOK_OPEN, p->end_ms, &at);
        /* another open may have found another version while this one asked */
        if (!err && ((!fixed && !data_still_known(k, &at)) || !base_is(h->f, &k->version)))
            err = -EAGAIN;
    }
    h->known = (struct data_known){.version = k->version, .view = at.view};
    set_where(h, &at);
    return err;
}

/* ---- writers ---- */

void data_move_writer(struct data_handle *h, const struct location *at)
{
    data_owed_moves(h, at);
    lock_take(&h->lock);
    uint64_t pinned = h->pinned;
    bool counted = h->counted;
    note_where(h, at, false); /* it writes: the claimant has a writer */
    h->counted = at->where == WHERE_HERE;
    h->pinned = at->where == WHERE_NODE ? at->node : 0;
    uint64_t now = h->pinned;
    bool borrows = now && h->writes && !h->borrows;
    h->borrows |= borrows;
    lock_drop(&h->lock);
    note_told(h->f, at);
    if (borrows)
        borrow_opened(h->f);
    if (counted)
        claim_close_writer(h->f);
    data_pins_moved(h, pinned, now);
}

/* Tries once to get the claim for this node, or a pin at the claimant.  -ENOENT, -EAGAIN: the claimant gave
 * the claim back, or is out of reach, or the store's version has moved. */
static int claim_or_pin(struct data_handle *h, const struct version *v,
                        const struct file_info *before, uint64_t end_ms)
{
    struct location at = {0};
    struct claim_seen seen = {v, h->looked_ms, h->opening};
    /* clean pages of an older version must not become part of the claim; -EBUSY: this node has the claim
     * already, with its own base */
    int err = move_version(h->f, v, before, NULL);
    if (err == -ESTALE)
        return -EAGAIN;
    if (!err || err == -EBUSY)
        err = claim_open_writer(h->f, &seen, end_ms, &at);
    if (!err && at.where == WHERE_NODE)
        err = pin_writer(h, &at);
    if (!err)
        data_move_writer(h, &at);
    return err;
}

int data_locate_writer(struct data_handle *h, const struct version *seen, struct patience *p)
{
    struct version v;
    struct file_info before;
    for (;;) {
        int err = 0;
        store_info(h->f, &before);
        if (seen && !is_overtaken(&before, seen)) {
            v = *seen;
        } else {
            h->looked_ms = boot_ms();
            err = fresh_version(h, NULL, p->end_ms, &v);
        }
        if (!err)
            err = claim_or_pin(h, &v, &before, p->end_ms);
        if (err == -ENOENT || err == -EAGAIN)
            err = data_ask_again(h, p);
        else
            return err;
        if (err)
            return err;
        seen = NULL;
    }
}

/* True: this handle's writer is still counted at the claimant. */
static bool still_there(struct data_handle *h, uint64_t end_ms)
{
    struct location at = {0};
    lock_take(&h->lock);
    bool counted = h->counted;
    uint64_t pinned = h->pinned;
    lock_drop(&h->lock);
    if (counted)
        return true;
    if (!pinned || claim_where_until(h->f->fid, LOOK_OPEN, end_ms, &at) || at.where != WHERE_NODE ||
        at.node != pinned || data_pin_handle(h, pinned, NULL))
        return false;
    set_where(h, &at);
    return true;
}

/* ---- asking again ---- */

/* 1: the caller asks, and then calls end_move.  0: another thread has asked while this one waited.  -EIO: the
 * deadline came first. */
static int begin_move(struct data_handle *h, uint64_t end_ms)
{
    uint64_t now = 0;
    lock_take(&h->lock);
    bool mine = !h->moving;
    while (!mine && h->moving && (now = boot_ms()) < end_ms)
        wait_on(WAIT_NODES, &h->lock, &h->moved, end_ms - now);
    int err = !mine && h->moving ? -EIO : mine;
    h->moving |= mine;
    lock_drop(&h->lock);
    return err;
}

static void end_move(struct data_handle *h)
{
    lock_take(&h->lock);
    h->moving = false;
    pthread_cond_broadcast(&h->moved);
    lock_drop(&h->lock);
}

int data_relocate(struct data_handle *h, struct patience *p)
{
    int err = begin_move(h, p->end_ms);
    if (err <= 0)
        return err;
    err = 0;
    if (!h->writes)
        err = data_locate_reader(h, NULL, p);
    else if (!still_there(h, p->end_ms))
        err = data_locate_writer(h, NULL, p);
    end_move(h);
    return err;
}
