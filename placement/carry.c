/* carry.c - the asker's side: another node has the claim, so what it says about the file is right.
 *
 * A read may be sent again as often as needed.  A change may not: after a broken connection or silence this
 * node does not know whether the claimant made the change.  If the change were sent again, it could be made
 * after a later write of another node.
 */
#include "placement/carry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "placement/pfs/pfs_fid.h"
#include "transport/complaint.h"
#include "transport/hash.h"
#include "transport/members.h"
#include "transport/peer.h"
#include "transport/waits.h"

#define WINDOW 4 /* pieces of one read that are under way at once */

/* ---- reading ---- */

struct reading {      /* one window, on the asker's stack */
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t cond;
    unsigned pending;
};

struct piece {
    struct reading *reading;
    uint8_t *buf;
    size_t len, got;
    int err;
    bool unreachable;
    struct body_range range;
};

/* Network thread. */
static void on_range(void *arg, int err, struct msg *reply, bool *keep)
{
    (void)keep;
    struct piece *p = arg;
    struct reading *r = p->reading;
    p->err = err;
    p->unreachable = err && !reply;
    if (!err) {
        p->range = reply->range;
        p->got = reply->head.data_len;
        if (p->got > p->len || (p->got && reply->data != p->buf)) {
            p->err = -EBADMSG;
            count(bad_answers, 1);
        }
    }
    lock_take(&r->lock);
    if (!--r->pending)
        pthread_cond_signal(&r->cond);
    lock_drop(&r->lock);
}

static void ask_piece(uint64_t node, struct fid fid, struct piece *p, uint64_t off)
{
    struct msg *m = msg_new(MSG_READ);
    m->read.fid = fid;
    m->read.offset = off;
    m->read.length = (uint32_t)p->len;
    /* The claimant sends WORKING as long as it must wait. */
    peer_request(node, m, T_SUSPECT, p->buf, p->len, on_range, p);
}

static void wait_all(struct reading *r)
{
    lock_take(&r->lock);
    while (r->pending)
        wait_on(WAIT_NODES, &r->lock, &r->cond, 0);
    lock_drop(&r->lock);
    pthread_cond_destroy(&r->cond);
    lock_destroy(&r->lock);
}

static int check_piece(uint64_t node, const struct piece *p)
{
    if (p->unreachable) {
        members_doubt(node);
        return -EAGAIN;
    }
    if (p->err)
        return p->err == -EBADMSG ? -EAGAIN : p->err;
    if (data_hash(p->buf, p->got) != p->range.hash) {
        count(bad_checksums, 1);
        complain_of_node(members_name(node), "a range with a wrong checksum");
        return -EAGAIN;
    }
    return 0;
}

/* Takes the oldest counter of all pieces: bytes that are cached under it are found stale too early rather
 * than too late. */
static void note_result(struct carry_result *res, const struct body_range *r, bool first)
{
    if (first || (int64_t)(r->counter - res->counter) < 0)
        res->counter = r->counter;
    res->size = r->size;
    res->mtime_ns = r->mtime_ns;
    res->watched = r->watched && (first || res->watched);
}

/* The next pieces, up to WINDOW at once.  *end: the end of the file was reached. */
static int read_window(uint64_t node, struct fid fid, struct carry_range *range, bool *end)
{
    struct piece pieces[WINDOW] = {0};
    const size_t before = range->got, len = range->len - before;
    unsigned n = (unsigned)MIN((len + CARRY_PIECE - 1) / CARRY_PIECE, WINDOW);
    struct reading r = {.pending = n};
    lock_init(&r.lock, RANK_LEAF);
    lock_cond_init(&r.cond);
    for (unsigned i = 0; i < n; i++) {
        size_t at = (size_t)i * CARRY_PIECE;
        pieces[i] = (struct piece){.reading = &r,
                                   .buf = (uint8_t *)range->buf + before + at,
                                   .len = MIN(len - at, CARRY_PIECE)};
        ask_piece(node, fid, &pieces[i], range->off + before + at);
    }
    wait_all(&r);
    for (unsigned i = 0; i < n && !*end; i++) {
        int err = check_piece(node, &pieces[i]);
        if (err)
            return err;
        note_result(&range->result, &pieces[i].range, !before && !i);
        range->got += pieces[i].got;
        *end = pieces[i].got < pieces[i].len;
        range->more = pieces[i].range.more;
    }
    return 0;
}

int carry_read(uint64_t node, struct file *f, struct carry_range *r)
{
    bool end = false;
    int err = 0;
    r->got = 0;
    r->more = false;
    while (!err && !end && r->got < r->len)
        err = read_window(node, f->fid, r, &end);
    return err;
}

/* ---- writing ---- */

static void free_malloced(void *arg, void *data)
{
    (void)arg;
    free(data);
}

/* Copies the bytes of a change: after a time-out the message may still be on its way when the caller has
 * returned. */
static void put_data(struct msg *m, const void *buf, size_t len)
{
    m->data = peer_buffer_try(len);
    m->free_data = m->data ? peer_buffer_free_data : free_malloced;
    if (!m->data)
        m->data = xmalloc(len);
    memcpy(m->data, buf, len);
    m->head.data_len = len;
    m->write.hash = data_hash(m->data, len);
}

static bool harmless_twice(enum carry_op op)
{
    return op == CARRY_SYNC || carry_op_is_pin(op);
}

/* A change that must not be made twice waits longer: the claimant may be only slow. */
static uint32_t patience_with(enum carry_op op)
{
    return harmless_twice(op) ? T_SUSPECT : T_DEAD;
}

static bool was_sent(int err)
{
    return err == -ETIMEDOUT || err == -ECONNRESET; /* peer.h */
}

/* No answer came. */
static int no_answer(uint64_t node, struct file *f, enum carry_op op, int err)
{
    members_doubt(node);
    if (!was_sent(err) || harmless_twice(op))
        return -EAGAIN;
    char text[FID_TEXT];
    log_error(
        "a change was sent to %s and not answered (%s): file %s: whether it was made is not known",
        members_name(node), strerror(-err), fid_text(f->fid, text));
    return -EIO;
}

int carry_write(uint64_t node, struct file *f, const struct change *c, struct carry_result *res)
{
    struct msg *m = msg_new(MSG_WRITE), *reply = NULL;
    m->write.fid = f->fid;
    m->write.op = (uint8_t)c->op;
    m->write.offset = c->off;
    m->write.length = c->len;
    m->write.mode = c->mode;
    m->write.time_ns = c->time_ns;
    if (carry_op_is_write(c->op) && c->len)
        put_data(m, c->buf, c->len);
    int err = peer_call(node, m, patience_with(c->op), NULL, 0, &reply);
    if (err && !reply)
        return no_answer(node, f, c->op, err);
    if (!err && res)
        *res = (struct carry_result){.size = reply->written.size,
                                     .offset = reply->written.offset,
                                     .mtime_ns = reply->written.mtime_ns,
                                     .counter = reply->written.counter};
    msg_free(reply);
    return err == -EBADMSG ? -EAGAIN : err; /* the change arrived damaged and was not made */
}

/* ---- what other rooms register ---- */

static void (*activity_begin)(void), (*activity_end)(void);

void carry_on_activity(void (*begin)(void), void (*end)(void))
{
    activity_begin = begin;
    activity_end = end;
}

void carry_activity_begin(void)
{
    if (activity_begin)
        activity_begin();
}

void carry_activity_end(void)
{
    if (activity_end)
        activity_end();
}
