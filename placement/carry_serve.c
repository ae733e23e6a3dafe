/* carry_serve.c - the claimant's side: READ and WRITE of other nodes.
 *
 *   READ    network thread -> libuv's pool: all bytes are in the store -> RANGE
 *                             -> carry pool: fetches what is missing -> RANGE
 *   WRITE   network thread -> carry pool: applies it, fetching pages and making room as needed;
 *                             tells this node's mount -> the watchers -> WRITTEN
 *                             -> lent pool: the same, if all that have borrowed parts of the file are asked first
 *
 * The carry pool is separate from pool_waiters, where applications' requests wait for other claimants: if
 * carried writes waited there, too, two nodes with many writes to each other would wait in a circle.  The
 * carry pool's jobs wait for fetches and flushes only, which wait for no claimant.  Nor for borrowers, which may have to flush all
 * that they hold: 32 fsyncs of lent files would keep every other file of this node waiting.
 */
#include <errno.h>
#include <stdlib.h>

#include "placement/borrow.h"
#include "placement/carry.h"
#include "placement/chunks/chunk.h"
#include "placement/chunks/working.h"
#include "placement/claims/claim.h"
#include "placement/claims/claim_forget.h"
#include "placement/claims/claim_watch.h"
#include "placement/claims/pins.h"
#include "placement/lend.h"
#include "placement/local.h"
#include "placement/tell.h"
#include "placement/store/store_hit.h"
#include "placement/store/store_lend.h"
#include "placement/store/store_read.h"
#include "transport/complaint.h"
#include "transport/hash.h"
#include "transport/loop.h"
#include "transport/members.h"
#include "transport/peer.h"

#define THREADS 32

struct carried {
    struct msg *m;
    struct working working;
    struct file *f; /* referenced, or NULL */
    uint64_t off;   /* WRITE: where the bytes went */
    bool watched;   /* READ: the asker is told of changes that come after it */
    bool more;      /* READ: what follows is lent to another node */
    struct file *loan; /* this node is not the claimant: it has borrowed all of it, and uses the loan */
};

static struct pool *carry_pool, *lent_pool;

static const struct pool_kind pools[] = {{&lent_pool, "carry-lent", THREADS}, {&carry_pool, "carry", THREADS}};

/* carry_leave: it waits for the changes that have begun, so that the last flush writes them, too. */
static struct {
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t none;
    unsigned changes; /* of other nodes, under way here */
    bool begun;
} leave = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF},
           .none = PTHREAD_COND_INITIALIZER};

static void end(struct carried *c)
{
    if (c->loan)
        borrow_use_end(c->f);
    if (c->f)
        file_put(c->f);
    msg_free(c->m);
    free(c);
    carry_activity_end();
}

/* -EAGAIN has a meaning for the asker (carry.h): an error of the disk or the PFS must not look like it. */
static void answer_error(struct carried *c, int err)
{
    working_end(&c->working);
    peer_reply_error(c->m, err == -EAGAIN ? -EIO : err);
    end(c);
}

/* Network thread.  Takes over a request that was found valid. */
static struct carried *begin(struct msg *m)
{
    struct carried *c = xcalloc(1, sizeof(*c));
    c->m = m;
    carry_activity_begin();
    working_begin(&c->working, m);
    return c;
}

/* ---- READ ---- */

/* Takes over the reference to chunk.  info is from before the bytes were read, so that the counter may be too
 * old, but never too new. */
static void answer_range(struct carried *c, struct chunk *chunk, const struct file_info *info)
{
    struct msg *r = msg_new(MSG_RANGE);
    r->range.size = info->size;
    r->range.mtime_ns = info->mtime_ns;
    r->range.counter = info->change;
    r->range.hash = data_hash(chunk->data, chunk->len);
    r->range.watched = c->watched;
    r->range.more = c->more;
    r->data = chunk->data;
    r->head.data_len = chunk->len;
    r->free_data = chunk_free_data;
    r->free_arg = chunk;
    working_end(&c->working);
    peer_reply(c->m, r);
    end(c);
}

/* -ENOENT would mean "not mine", and the asker would ask again, or make the change again. */
static int told_error(int err)
{
    return err == -ENOENT || err == -ESTALE ? -EIO : err;
}

static void read_waiting(void *arg)
{
    struct carried *c = arg;
    const struct body_read *b = &c->m->read;
    struct chunk *chunk = chunk_new(ROOM_RANGE, MAX(b->length, 1u));
    struct file_info info;
    struct local_read r = {.buf = chunk->data,
                        .len = b->length,
                        .off = b->offset,
                        .claimed = true,
                        .end_ms = boot_ms() + T_OPEN};
    uint64_t lent_to = 0;
    store_info(c->loan ? c->loan : c->f, &info);
    int err = c->loan ? told_error(local_read(c->loan, &r)) : lend_read(c->f, &r, &lent_to);
    chunk->len = r.got;
    c->more = lent_to;
    if (!err && lent_to && !r.got)
        err = -EREMOTE;
    if (!err) {
        answer_range(c, chunk, &info);
        return;
    }
    chunk_put(chunk);
    answer_error(c, err);
}

/* Answers if the store has all the wanted bytes now. */
static bool read_stored(struct carried *c)
{
    const struct body_read *b = &c->m->read;
    struct chunk *chunk = chunk_try(ROOM_RANGE, MAX(b->length, 1u));
    if (!chunk)
        return false;
    struct file_info info;
    store_info(c->f, &info);
    size_t want = b->offset < info.size ? MIN(b->length, info.size - b->offset) : 0;
    bool ends = want < b->length && store_is_lent(c->f); /* perhaps not: a borrower may have written behind it */
    bool ok = !ends && store_read(c->f, chunk->data, want, b->offset) == (ssize_t)want;
    chunk->len = want;
    if (ok)
        answer_range(c, chunk, &info);
    else
        chunk_put(chunk);
    return ok;
}

/* The look comes first: a watcher is told of changes that come after it. */
static bool read_after_look(struct carried *c)
{
    c->watched = claim_is_watcher(c->f, c->m->head.sender);
    return read_stored(c);
}

/* Has this node borrowed all of it?  Then the loan is used until the end.  Waits for a return. */
static bool is_borrowed(struct carried *c, uint64_t off, uint64_t len)
{
    uint64_t all = len;
    c->loan = borrow_use_begin(c->f, off, &len);
    if (c->loan && len < all) {
        borrow_use_end(c->f);
        c->loan = NULL;
    }
    return c->loan;
}

static void read_borrowed(void *arg)
{
    struct carried *c = arg;
    const struct body_read *b = &c->m->read;
    if (is_borrowed(c, b->offset, b->length))
        read_waiting(c);
    else
        answer_error(c, -ENOENT);
}

static void serve_read(void *arg)
{
    struct carried *c = arg;
    const struct body_read *b = &c->m->read;
    c->f = file_find(b->fid);
    if (!c->f)
        answer_error(c, -ENOENT);
    else if (!claim_is_here(b->fid))
        pool_submit(carry_pool, read_borrowed, c);
    else if (!read_after_look(c))
        pool_submit(carry_pool, read_waiting, c);
}

static void on_read(struct msg *m)
{
    const struct body_read *b = &m->read;
    if (!(m->head.flags & MSG_F_WANTS) || b->length > MSG_DATA_MAX ||
        b->offset > INT64_MAX - MSG_DATA_MAX)
        peer_refuse(m);
    else
        loop_work(serve_read, NULL, begin(m));
}

/* ---- WRITE ---- */

static void answer_written(struct carried *c, uint64_t off)
{
    struct file_info info;
    store_info(c->loan ? c->loan : c->f, &info);
    struct msg *r = msg_new(MSG_WRITTEN);
    r->written.size = info.size;
    r->written.offset = off;
    r->written.mtime_ns = info.mtime_ns;
    r->written.counter = info.change;
    working_end(&c->working);
    peer_reply(c->m, r);
    end(c);
}

/* False: this node leaves, and accepts no change any more. */
static bool change_begin(void)
{
    lock_take(&leave.lock);
    bool may = !leave.begun;
    leave.changes += may;
    lock_drop(&leave.lock);
    return may;
}

static void change_end(void)
{
    lock_take(&leave.lock);
    if (!--leave.changes)
        pthread_cond_broadcast(&leave.none);
    lock_drop(&leave.lock);
}

/* A node that leaves still accepts an fsync: with "not mine" the asker would take it that the data is on the
 * PFS, and this node has it until the last flush.  And it recalls what it has lent. */
static bool is_for_leaver(enum carry_op op)
{
    return op == CARRY_SYNC || op == CARRY_GIVE;
}

/* A page that a kernel writes back waits for no grant (protocol.md, rule 24), nor what a recall brings.  Void data never
 * gets to the PFS: -EIO. */
static int begin_op(struct file *f, enum carry_op op, uint64_t end_ms)
{
    if (!is_for_leaver(op) && !change_begin())
        return -ENOENT;
    bool waits_not = is_for_leaver(op) || op == CARRY_STORE;
    int err = waits_not ? claim_carry_begin(f) : claim_change_begin(f, end_ms);
    if (!err && carry_op_is_write(op))
        claim_other_wrote(f);
    if (err && !is_for_leaver(op))
        change_end();
    return err && op == CARRY_SYNC && claim_is_void(f) ? -EIO : err;
}

static void end_op(struct file *f, enum carry_op op)
{
    claim_carry_end(f);
    if (!is_for_leaver(op))
        change_end();
}

static bool goes_into_loan(struct carried *c)
{
    const struct body_write *b = &c->m->write;
    bool may = b->op == CARRY_WRITE || b->op == CARRY_STORE;
    return may && b->length && !claim_is_here(b->fid) && is_borrowed(c, b->offset, b->length);
}

static int apply(struct carried *c, struct change *ch)
{
    const struct body_write *b = &c->m->write;
    *ch = (struct change){.op = b->op,
                          .buf = c->m->data,
                          .len = b->length,
                          .off = b->offset,
                          .mode = b->mode,
                          .time_ns = b->time_ns,
                          .giver = c->m->head.sender,
                          .end_ms = boot_ms() + T_OPEN};
    if (goes_into_loan(c))
        return borrow_use_change(c->f, c->loan, ch);
    int err = begin_op(c->f, ch->op, ch->end_ms);
    if (err)
        return err;
    if (!ch->len && carry_op_is_write(ch->op))
        err = 0;
    else
        err = lend_change(c->f, ch);
    if (err)
        end_op(c->f, ch->op);
    return told_error(err);
}

static bool damaged(const struct msg *m)
{
    if (!m->head.data_len || data_hash(m->data, m->head.data_len) == m->write.hash)
        return false;
    count(bad_checksums, 1);
    complain_of_node(members_name(m->head.sender), "a write with a wrong checksum");
    return true;
}

/* Carry pool: the change is made, and no node believes anything older. */
static void acknowledge(void *arg)
{
    struct carried *c = arg;
    if (!c->loan)
        end_op(c->f, c->m->write.op);
    answer_written(c, c->off);
}

/* Network thread. */
static void told(void *arg)
{
    pool_submit(carry_pool, acknowledge, arg);
}

/* No thread of the pool waits for the watchers: a watcher may have to write a page back first, which is served here. */
static void tell(struct carried *c, const struct change *ch)
{
    struct told_change what;
    c->off = ch->off_out;
    if (c->loan || !told_of(ch, &what)) { /* no kernel keeps anything of a file that is lent */
        acknowledge(c);
        return;
    }
    tell_mount(c->f, &what);
    if (ch->op == CARRY_STORE || !tell_must(c->f, c->m->head.sender)) {
        tell_changed(c->f, ch, c->m->head.sender);
        acknowledge(c);
    } else {
        tell_all(c->f, &what, c->m->head.sender, told, c);
    }
}

static void serve_change(struct carried *c)
{
    struct change ch;
    int err = damaged(c->m) ? -EBADMSG : apply(c, &ch);
    if (err)
        answer_error(c, err);
    else
        tell(c, &ch);
}

static void serve_pin(struct carried *c)
{
    const struct msg *m = c->m;
    struct pin_id id = {.node = m->head.sender,
                        .incarnation = m->head.incarnation,
                        .number = m->write.offset};
    int err = 0;
    if (m->write.op == CARRY_UNPIN)
        pin_drop(&id, c->f);
    else
        err = pin_add(&id, m->write.op == CARRY_PIN_WRITER, c->f);
    if (!err && m->write.op == CARRY_PIN_WRITER && m->write.mode) { /* before it hears the size */
        claim_watch_appends(c->f, id.node, id.incarnation);
        lend_append_begins(c->f);
    }
    if (err)
        answer_error(c, err);
    else
        answer_written(c, 0);
}

static void serve_found(void *arg)
{
    struct carried *c = arg;
    if (carry_op_is_pin(c->m->write.op))
        serve_pin(c);
    else
        serve_change(c);
}

/* Those that lend_change and lend_append_begins ask of borrowers, but for SIZE, which waits for no disk. */
static bool waits_for_borrowers(const struct carried *c)
{
    const struct body_write *b = &c->m->write;
    bool positional = b->op == CARRY_WRITE || b->op == CARRY_STORE || b->op == CARRY_GIVE;
    bool pin = carry_op_is_pin(b->op), appends = b->op == CARRY_PIN_WRITER && b->mode;
    return (pin ? appends : !positional) && store_is_lent(c->f);
}

static void serve_write(void *arg)
{
    struct carried *c = arg;
    c->f = file_find(c->m->write.fid);
    if (!c->f)
        answer_error(c, -ENOENT);
    else if (waits_for_borrowers(c))
        pool_submit(lent_pool, serve_found, c);
    else
        serve_found(c);
}

static bool write_is_sound(const struct msg *m)
{
    const struct body_write *b = &m->write;
    bool bulk = carry_op_is_write(b->op), pin = carry_op_is_pin(b->op);
    if (!(m->head.flags & MSG_F_WANTS) || b->op < CARRY_WRITE || b->op > CARRY_OPS)
        return false;
    if (bulk ? b->length != m->head.data_len : m->head.data_len != 0)
        return false;
    return pin || (b->offset <= INT64_MAX && b->length <= INT64_MAX - b->offset);
}

static void on_write(struct msg *m)
{
    if (write_is_sound(m))
        pool_submit(carry_pool, serve_write, begin(m));
    else
        peer_refuse(m);
}

void carry_leave(void)
{
    lock_take(&leave.lock);
    leave.begun = true;
    while (leave.changes)
        lock_wait(&leave.lock, &leave.none, 0);
    lock_drop(&leave.lock);
    borrow_leave();
    lend_leave();
    pins_refuse();
}

/* ---- start and end ---- */

void carry_start(void)
{
    tell_start();
    told_start();
    leave.begun = false;
    pools_new(pools, ARRAY_LEN(pools));
    pins_start(carry_pool);
    loan_start();
    lend_start();
    borrow_start();
    peer_handle(MSG_READ, on_read);
    peer_handle(MSG_WRITE, on_write);
}

void carry_stop(void)
{
    tell_stop();
    pins_stop();
    borrow_stop();
    pools_free(pools, ARRAY_LEN(pools));
    lend_stop();
    loan_stop();
    told_stop();
    working_stop();
}
