/* lend.c - see lend.h.
 *
 * The store has which node has which unit (store_lend.h).  It lends under the file's lock, so that a unit belongs to one
 * node at any time.  Whatever needs the whole file stops lending first (store_lend_stop), then recalls.  Each stop begins
 * an epoch: an answer to LEND that a RECALL has overtaken is of an earlier one, and the borrower drops it.
 *
 * A borrower that does not answer is asked again until T_open; then the call that needs it fails with EIO, and has
 * changed nothing.
 */
#include "placement/lend.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "placement/chunks/working.h"
#include "placement/claims/claim.h"
#include "placement/claims/claim_lent.h"
#include "placement/claims/claim_watch.h"
#include "placement/loan.h"
#include "placement/pfs/pfs_data.h"
#include "placement/store/store_lend.h"
#include "placement/store/store_read.h"
#include "placement/tell.h"
#include "transport/complaint.h"
#include "transport/loop.h"
#include "transport/members.h"
#include "transport/peer.h"

#define AGAIN_MS 20 /* before a borrower is asked again; doubled up to 500 */
#define PULLS    8  /* rounds until two agree; while borrowers go on writing, the last one counts */

struct pool *loan_quick, *loan_slow, *loan_asks;

static _Atomic bool leaving;

static void pause_ms(uint64_t ms)
{
    nanosleep(&(struct timespec){.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000}, NULL);
}

/* ---- asking the borrowers ---- */

struct asking {
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t ended;
    unsigned open;
};
struct asked {
    struct asking *of;
    uint64_t node;
    int err;
    bool held;
    uint64_t size;
    int64_t mtime_ns;
};

/* Network thread. */
static void answered(void *arg, int err, struct msg *reply, bool *keep)
{
    struct asked *a = arg;
    (void)keep;
    a->err = err;
    if (!err) {
        a->held = reply->loan_is.held;
        a->size = MIN(reply->loan_is.size, (uint64_t)INT64_MAX);
        a->mtime_ns = reply->loan_is.mtime_ns;
    } else if (!reply) {
        members_doubt(a->node);
        a->err = -EAGAIN;
    }
    lock_take(&a->of->lock);
    if (!--a->of->open)
        pthread_cond_signal(&a->of->ended);
    lock_drop(&a->of->lock);
}

static void send_loan(struct file *f, enum loan_op op, uint64_t epoch, struct asked *a)
{
    struct msg *m = msg_new(MSG_LOAN);
    m->loan.fid = f->fid;
    m->loan.op = (uint8_t)op;
    m->loan.epoch = epoch;
    claim_id(f, &m->loan.number_inc, &m->loan.number);
    peer_request(a->node, m, T_SUSPECT, NULL, 0, answered, a);
}

/* Those of the n that have not answered yet. */
static void ask_once(struct file *f, enum loan_op op, uint64_t epoch, struct asked *list, unsigned n)
{
    struct asking of = {.open = 1};
    lock_init(&of.lock, RANK_LEAF);
    lock_cond_init(&of.ended);
    for (unsigned i = 0; i < n; i++)
        if (list[i].err == -EAGAIN) {
            lock_take(&of.lock);
            of.open++;
            lock_drop(&of.lock);
            list[i].of = &of;
            send_loan(f, op, epoch, &list[i]);
        }
    lock_take(&of.lock);
    of.open--;
    while (of.open)
        lock_wait(&of.lock, &of.ended, 0);
    lock_drop(&of.lock);
    pthread_cond_destroy(&of.ended);
    lock_destroy(&of.lock);
}

/* The first error, or 0; *away: whose. */
static int first_error(const struct asked *list, unsigned n, uint64_t *away)
{
    for (unsigned i = 0; i < n; i++)
        if (list[i].err) {
            *away = list[i].node;
            return list[i].err;
        }
    return 0;
}

/* How long borrowers are asked, in which epoch; *away: which has not answered. */
struct until {
    uint64_t end_ms, epoch, *away;
};

/* Every borrower, until each has answered; *list is malloc'd.  -EIO: one has not. */
static int ask_all(struct file *f, enum loan_op op, struct asked **list, unsigned *n, const struct until *u)
{
    uint64_t wait_ms = AGAIN_MS;
    uint64_t nodes[LEND_MAX];
    *n = MIN(store_borrowers(f, nodes, LEND_MAX), LEND_MAX);
    *list = xcalloc(*n + 1, sizeof(**list));
    for (unsigned i = 0; i < *n; i++)
        (*list)[i] = (struct asked){.node = nodes[i], .err = -EAGAIN};
    for (;;) {
        ask_once(f, op, u->epoch, *list, *n);
        int err = first_error(*list, *n, u->away);
        if (err != -EAGAIN)
            return err;
        if (boot_ms() >= u->end_ms)
            return -EIO;
        pause_ms(wait_ms);
        wait_ms = MIN(2 * wait_ms, UINT64_C(500));
    }
}

static int ask(struct file *f, enum loan_op op)
{
    struct asked *list;
    unsigned n;
    uint64_t away = 0;
    int err = ask_all(f, op, &list, &n, &(struct until){boot_ms() + T_OPEN, 0, &away});
    free(list);
    return err;
}

/* ---- size and mtime ---- */

/* Sizes only grow while parts are lent.  So if two rounds agree, the size was this one in between. */
static int pull(struct file *f, const struct until *u)
{
    uint64_t size = 0;
    int err = 0;
    for (unsigned round = 0; !err && store_is_lent(f) && round < PULLS; round++) {
        struct asked *list;
        struct file_info info;
        unsigned n;
        bool counts = true;
        uint64_t epoch = store_lend_epoch(f);
        err = ask_all(f, LOAN_SIZE, &list, &n, u);
        for (unsigned i = 0; !err && i < n; i++)
            counts &= store_lent_is(f, epoch, list[i].size, list[i].mtime_ns);
        free(list);
        store_info(f, &info);
        if (counts && (n <= 1 || (round && info.size == size)))
            break;
        size = info.size;
    }
    return err;
}

int lend_pull(struct file *f, uint64_t *away)
{
    return pull(f, &(struct until){boot_ms() + T_OPEN, 0, away});
}

/* ---- taking back ---- */

static void say_away(struct file *f, uint64_t node)
{
    static _Atomic uint64_t said;
    if (!log_every(&said, 10000))
        return;
    char *path = file_path(f);
    log_warn("%s: node %s has borrowed parts of it, and does not answer: EIO until it does", path ? path : "?",
             members_name(node));
    free(path);
}

/* What it wrote is on the PFS. */
static int take_back(struct file *f, uint64_t node, uint64_t size, int64_t mtime_ns, uint64_t *epoch)
{
    struct lent_back back = {.size = size, .mtime_ns = mtime_ns};
    do {
        struct statx stx;
        back.looks = store_pfs_looks(f);
        int err = pfs_file_stat(f, &stx);
        if (err)
            return err;
        back.v = version_of(&stx);
    } while (!store_lent_returned(f, node, &back, epoch));
    return 0;
}

/* 0: nothing is lent, until store_lend_go. */
static int recall(struct file *f)
{
    struct asked *list;
    unsigned n;
    uint64_t away = 0, epoch = store_lend_stop(f);
    int err = ask_all(f, LOAN_RECALL, &list, &n, &(struct until){boot_ms() + T_OPEN, epoch, &away}), e;
    for (unsigned i = 0; i < n; i++)
        if (!list[i].err && (e = take_back(f, list[i].node, list[i].size, list[i].mtime_ns, &epoch)))
            err = err ? err : e;
    free(list);
    if (!err && store_is_lent(f))
        err = -EIO;
    if (err) {
        if (away)
            say_away(f, away);
        store_lend_go(f);
    }
    return err;
}

/* ---- changes ---- */

/* Must all be here before it is made?  -errno: it is not known. */
static int needs_all(struct file *f, const struct change *c)
{
    struct file_info info;
    uint64_t away;
    if (!store_is_lent(f))
        return 0;
    switch (c->op) {
    case CARRY_APPEND:
    case CARRY_PUNCH:
        return 1;
    case CARRY_TRUNCATE: {
        int err = lend_pull(f, &away);
        store_info(f, &info);
        return err ? err : c->len < info.size;
    }
    default:
        return 0;
    }
}

/* Is the file this long? */
static int find_end(struct file *f, uint64_t size)
{
    struct file_info info;
    uint64_t away;
    store_info(f, &info);
    return info.size < size ? lend_pull(f, &away) : 0;
}

/* What borrowers do before it. */
static int before(struct file *f, const struct change *c)
{
    if (!store_is_lent(f))
        return 0;
    if (c->op == CARRY_TIMES) {
        int err = ask(f, LOAN_TIMES);
        if (!err) /* what borrowers have said before does not count any more */
            store_lend_next_epoch(f);
        return err;
    }
    if (c->op == CARRY_STORE) /* what lies behind the end is left out: where is it? */
        return find_end(f, c->off + c->len);
    if (c->op == CARRY_SYNC)
        return ask(f, c->mode == 1 ? LOAN_FLUSH : LOAN_SYNC);
    return 0;
}

int lend_change(struct file *f, struct change *c)
{
    int all = needs_all(f, c);
    if (all < 0)
        return all;
    for (;;) {
        int err = all ? recall(f) : before(f, c);
        if (err)
            return err;
        err = local_change(f, c);
        if (all)
            store_lend_go(f);
        bool positional = c->op == CARRY_WRITE || c->op == CARRY_STORE;
        if (err != -EREMOTE || positional || all)
            return err;
        all = 1; /* lent meanwhile */
    }
}

/* ---- reading ---- */

/* How many of len bytes from off on no other node has; 0: *node has the first. */
static size_t own_len(struct file *f, uint64_t off, size_t len, uint64_t *node)
{
    uint64_t first = off / LOAN_UNIT, last = (off + len - 1) / LOAN_UNIT, until;
    *node = store_lent_to(f, first, last, &until);
    if (*node)
        return 0;
    return until >= last ? len : (size_t)((until + 1) * LOAN_UNIT - off);
}

int lend_read(struct file *f, struct local_read *r, uint64_t *lent_to)
{
    struct local_read part = *r;
    bool pulled = false;
    uint64_t away;
    *lent_to = r->got = 0;
    while (r->got < r->len) {
        part.buf = (uint8_t *)r->buf + r->got;
        part.off = r->off + r->got;
        part.len = own_len(f, part.off, r->len - r->got, lent_to);
        if (!part.len)
            return 0;
        int err = local_read(f, &part);
        r->got += part.got;
        r->from = part.from;
        if (err && err != -EREMOTE)
            return err;
        if (err || part.got == part.len)
            continue; /* lent meanwhile, or the next part */
        if (pulled || !store_is_lent(f))
            return 0;
        err = lend_pull(f, &away); /* the file's end, as far as it is known here */
        if (err)
            return err;
        pulled = true;
    }
    return 0;
}

/* ---- for applications of this node ---- */

/* The next bytes are lent: from their borrower, and zeros where that has none.  0 bytes: it has given them back, or
 * *end: the file ends. */
static int read_lent(struct file *f, struct local_read *r, uint64_t node, bool *end)
{
    struct file_info info;
    struct carry_range part = {.buf = (uint8_t *)r->buf + r->got, .off = r->off + r->got};
    uint64_t first = part.off / LOAN_UNIT, last = (r->off + r->len - 1) / LOAN_UNIT, until, away;
    if (store_lent_to(f, first, last, &until) != node)
        return 0;
    part.len = (size_t)(MIN(r->off + r->len, (until + 1) * LOAN_UNIT) - part.off);
    int err = carry_read(node, f, &part);
    if (err == -ENOENT)
        return 0;
    if (!err && part.got < part.len)
        err = lend_pull(f, &away);
    if (err)
        return err;
    store_info(f, &info);
    uint64_t stop = MIN(part.off + part.len, MAX(info.size, part.off + part.got));
    size_t n = (size_t)(stop - part.off);
    memset((uint8_t *)part.buf + part.got, 0, n - part.got);
    *end = n < part.len;
    r->got += n;
    r->from.peer += n;
    return 0;
}

int lend_read_all(struct file *f, struct local_read *r)
{
    struct local_read part = *r;
    bool end = false;
    r->got = 0;
    for (;;) {
        uint64_t node = 0;
        part.buf = (uint8_t *)r->buf + r->got;
        part.off = r->off + r->got;
        part.len = r->len - r->got;
        if (!part.len)
            return 0;
        int err = lend_read(f, &part, &node);
        r->got += part.got;
        r->from = part.from;
        if (err || !node)
            return err;
        size_t before = r->got;
        err = read_lent(f, r, node, &end);
        part.from = r->from;
        if (err || end)
            return err;
        if (r->got == before && boot_ms() >= r->end_ms)
            return -EIO;
    }
}

/* The borrowers' parts go to them. */
int lend_change_all(struct file *f, struct change *c)
{
    int err = lend_change(f, c);
    if (err != -EREMOTE)
        return err;
    for (uint64_t done = 0; done < c->len;) {
        struct change part = *c;
        uint64_t at = c->off + done, until;
        uint64_t node = store_lent_to(f, at / LOAN_UNIT, (c->off + c->len - 1) / LOAN_UNIT, &until);
        part.buf = (const uint8_t *)c->buf + done;
        part.off = at;
        part.len = MIN(c->len - done, (until + 1) * LOAN_UNIT - at);
        err = node ? carry_write(node, f, &part, NULL) : lend_change(f, &part);
        bool moved = err == -EREMOTE || (node && err == -ENOENT);
        if (moved && boot_ms() < c->end_ms)
            continue;
        if (err)
            return err == -EAGAIN || moved ? -EIO : err;
        done += part.len;
    }
    c->off_out = c->off;
    return 0;
}

/* ---- LEND ---- */

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

/* The kernels of the other nodes keep nothing of a file that has no watchers; this node's own is asked. */
static enum lend_why share(struct file *f)
{
    static const struct told_change nothing = {.what = TOLD_ATTR};
    if (store_is_lent(f))
        return store_share_begin(f) ? LEND_NOT : LEND_ALL;
    if (claim_watched(f))
        return LEND_KERNEL;
    int err = store_share_begin(f);
    if (err == -EAGAIN && !local_sync_pfs(f)) /* what the kernel wrote before it closed */
        err = store_share_begin(f);
    if (err)
        return err == -EIDRM ? LEND_NOT : LEND_KERNEL;
    if (told_here(f->fid, &nothing) & (LOOKER_CACHED | LOOKER_PASSTHROUGH)) {
        store_share_end(f);
        return LEND_KERNEL;
    }
    return LEND_ALL;
}

static enum lend_why why_of(int err)
{
    return !err ? LEND_ALL : err == -EAGAIN || err == -EBUSY ? LEND_BUSY : LEND_NOT;
}

/* All in one epoch, though parts are taken back meanwhile. */
static void list_places(struct lending_to *l, uint64_t *epoch)
{
    const struct body_lend *b = &l->m->lend;
    do {
        *epoch = store_lend_epoch(l->f);
        l->n = 0;
        for (uint64_t i = 0; i <= b->count; i++)
            add_parts(l, b->first + i * b->stride, b->last + i * b->stride);
    } while (store_lend_epoch(l->f) != *epoch);
}

static enum lend_why lend_places(struct lending_to *l)
{
    const struct body_lend *b = &l->m->lend;
    int err = 0;
    bool flushed = false;
    for (uint64_t i = 0; !err && i <= b->count; i++) {
        uint64_t at = i * b->stride;
        err = store_lend(l->f, l->m->head.sender, b->first + at, b->last + at);
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
    store_share_end(l->f);
    return why;
}

static void answer_lend(struct lending_to *l)
{
    struct body_lent *to = &l->r->lent;
    struct file_info info;
    claim_id(l->f, &to->number_inc, &to->number);
    if (!l->m->lend.ask)
        to->why = (uint8_t)lend(l);
    list_places(l, &to->epoch);
    store_info(l->f, &info);
    to->base_end = info.base_end;
    to->parts.v = l->parts;
    to->parts.n = l->n;
    l->r->arena = l->parts;
}

struct job {
    struct msg *m;
    struct working working;
};

static void serve_lend(void *arg)
{
    struct job *j = arg;
    struct lending_to l = {.m = j->m, .f = file_find(j->m->lend.fid)};
    int err = l.f ? claim_change_begin(l.f, boot_ms() + T_OPEN) : -ENOENT;
    if (!err) {
        l.r = msg_new(MSG_LENT);
        l.parts = xcalloc(LEND_MAX, sizeof(*l.parts));
        answer_lend(&l);
        claim_carry_end(l.f);
    }
    if (l.f)
        file_put(l.f);
    working_end(&j->working);
    if (err)
        peer_reply_error(j->m, err);
    else
        peer_reply(j->m, l.r);
    msg_free(j->m);
    free(j);
}

static bool lend_is_sound(const struct msg *m)
{
    const struct body_lend *b = &m->lend;
    const uint64_t most = INT64_MAX / LOAN_UNIT;
    return m->head.flags & MSG_F_WANTS && b->first <= b->last && b->last <= most && b->last - b->first < LEND_MAX &&
           b->count < LEND_MAX && b->stride <= most / LEND_MAX &&
           (!b->count || (b->stride > b->last - b->first && b->last + b->count * b->stride <= most)) &&
           (b->last - b->first + 1) * (b->count + 1) <= LEND_MAX;
}

static void refuse(struct msg *m)
{
    count(bad_messages, 1);
    complain_of_node(members_name(m->head.sender), "a %s out of bounds", msg_name(m->head.type));
    if (m->head.flags & MSG_F_WANTS)
        peer_reply_error(m, -EINVAL);
    msg_free(m);
}

static void submit(struct pool *p, void (*fn)(void *arg), struct msg *m)
{
    struct job *j = xcalloc(1, sizeof(*j));
    j->m = m;
    working_begin(&j->working, m);
    pool_submit(p, fn, j);
}

/* Network thread. */
static void on_lend(struct msg *m)
{
    if (lend_is_sound(m))
        submit(m->lend.ask ? loan_quick : loan_slow, serve_lend, m);
    else
        refuse(m);
}

/* ---- RETURN ---- */

/* Not this claim's: nothing is lent under it any more. */
static int returned(struct file *f, const struct msg *m, uint64_t *epoch)
{
    uint64_t inc, number;
    if (!claim_id(f, &inc, &number) || inc != m->ret.number_inc || number != m->ret.number)
        return 0;
    int err = take_back(f, m->head.sender, m->ret.size, m->ret.mtime_ns, epoch);
    return err == -EAGAIN || err == -ENOENT ? -EIO : err;
}

static void serve_return(void *arg)
{
    struct job *j = arg;
    struct file *f = file_find(j->m->ret.fid);
    uint64_t epoch = 0;
    int err = 0;
    if (f && !claim_carry_begin(f)) {
        err = returned(f, j->m, &epoch);
        claim_carry_end(f);
    }
    if (f)
        file_put(f);
    working_end(&j->working);
    if (err) {
        peer_reply_error(j->m, err);
    } else {
        struct msg *r = msg_new(MSG_RETURNED);
        r->returned.epoch = epoch;
        peer_reply(j->m, r);
    }
    msg_free(j->m);
    free(j);
}

/* Network thread. */
static void on_return(struct msg *m)
{
    if (m->head.flags & MSG_F_WANTS && m->ret.size <= INT64_MAX)
        submit(loan_slow, serve_return, m);
    else
        refuse(m);
}

/* ---- start and end ---- */

static int own_word(struct file *f, uint64_t end_ms, uint64_t *away)
{
    int err = pull(f, &(struct until){end_ms, 0, away});
    if (err)
        say_away(f, *away);
    return err;
}

void lend_start(void)
{
    leaving = false;
    loan_quick = pool_new("loan", 32);
    loan_slow = pool_new("loan-pfs", 32);
    loan_asks = pool_new("loan-asks", 16);
    claim_on_lent(own_word);
    peer_handle(MSG_LEND, on_lend);
    peer_handle(MSG_RETURN, on_return);
}

static _Atomic int leave_err;

static void leave_one(struct file *f)
{
    int err = store_is_lent(f) ? recall(f) : 0;
    if (err)
        leave_err = err;
}

int lend_leave(void)
{
    leave_err = 0;
    leaving = true;
    claim_each(leave_one);
    return leave_err;
}

void lend_stop(void)
{
    claim_on_lent(NULL);
    pool_free(loan_asks);
    pool_free(loan_slow);
    pool_free(loan_quick);
    loan_asks = loan_slow = loan_quick = NULL;
}
