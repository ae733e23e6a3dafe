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

#include "placement/borrow.h"
#include "placement/claims/claim.h"
#include "placement/claims/claim_lent.h"
#include "placement/claims/claim_watch.h"
#include "placement/loan.h"
#include "placement/pfs/pfs_data.h"
#include "placement/store/store_lend.h"
#include "placement/store/store_read.h"
#include "placement/tell.h"
#include "transport/loop.h"
#include "transport/members.h"
#include "transport/peer.h"
#include "transport/view.h"

#define AGAIN_MS 20 /* before a borrower is asked again; doubled up to 500 */
#define PULLS    16 /* rounds; while borrowers make the file longer in each of them, the last one counts */

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
    uint64_t from; /* HELD */
    uint64_t inc;  /* of the daemon that has answered */
    struct body_loan_is is;
    struct item_lent *parts; /* malloc'd; NULL: no answer */
};

/* How long borrowers are asked, in which epoch; *away: which has not answered. */
struct until {
    uint64_t end_ms, epoch, *away;
};

static struct item_lent *copy_parts(const struct body_loan_is *is)
{
    size_t n = MIN(is->parts.n, LEND_MAX);
    struct item_lent *parts = xcalloc(n + 1, sizeof(*parts));
    if (n)
        memcpy(parts, is->parts.v, n * sizeof(*parts));
    return parts;
}

/* Network thread. */
static void answered(void *arg, int err, struct msg *reply, bool *keep)
{
    struct asked *a = arg;
    (void)keep;
    a->err = err;
    if (!err) {
        a->is = reply->loan_is;
        a->inc = reply->head.incarnation;
        a->is.size = MIN(a->is.size, (uint64_t)INT64_MAX);
        a->is.parts.v = NULL;
        a->parts = copy_parts(&reply->loan_is);
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
    m->loan.from = a->from;
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

static void free_asked(struct asked *list, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        free(list[i].parts);
    free(list);
}

/* It left in order, so that all it had is on the PFS, or was forgotten: nothing is to be expected of it. */
static bool is_out(uint64_t node)
{
    const struct view *v = members_view();
    return v && !view_member(v, node) && !view_absent(v, node);
}

static bool is_absent(uint64_t node)
{
    const struct view *v = members_view();
    return v && view_absent(v, node);
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

/* Until each has answered.  -EIO: one has not. */
static int ask_until(struct file *f, enum loan_op op, struct asked *list, unsigned n, const struct until *u)
{
    for (uint64_t wait_ms = AGAIN_MS;; wait_ms = MIN(2 * wait_ms, UINT64_C(500))) {
        ask_once(f, op, u->epoch, list, n);
        for (unsigned i = 0; i < n; i++)
            if (list[i].err == -EAGAIN && is_out(list[i].node)) {
                list[i].err = 0;
                list[i].is = (struct body_loan_is){.mtime_ns = INT64_MIN};
            }
        int err = first_error(list, n, u->away);
        if (err != -EAGAIN)
            return err;
        if (boot_ms() >= u->end_ms || (op == LOAN_SIZE && is_absent(*u->away)))
            return -EIO;
        pause_ms(wait_ms);
    }
}

/* Every borrower; *list is to be given to free_asked. */
static int ask_all(struct file *f, enum loan_op op, struct asked **list, unsigned *n, const struct until *u)
{
    uint64_t nodes[LEND_MAX];
    *n = MIN(store_borrowers(f, nodes, LEND_MAX), LEND_MAX);
    *list = xcalloc(*n + 1, sizeof(**list));
    for (unsigned i = 0; i < *n; i++)
        (*list)[i] = (struct asked){.node = nodes[i], .err = -EAGAIN};
    return ask_until(f, op, *list, *n, u);
}

static int ask(struct file *f, enum loan_op op)
{
    struct asked *list;
    unsigned n;
    uint64_t away = 0;
    int err = ask_all(f, op, &list, &n, &(struct until){boot_ms() + T_OPEN, 0, &away});
    free_asked(list, n);
    return err;
}

/* ---- what a daemon before this one has lent ----
 *
 * The store's record says that something is lent, and not what.  Every member is asked; while a node is absent, which may
 * have borrowed, it is not known. */

static struct {
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t ended;
    bool asking; /* one file at a time */
} learning = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}, .ended = PTHREAD_COND_INITIALIZER};

/* All members but this node.  -EAGAIN: some node is away. */
static int members_to_ask(struct asked **list, unsigned *n, uint64_t *away)
{
    const struct view *v = members_view();
    *n = 0;
    *list = NULL;
    if (!v || v->nabsent) {
        *away = v ? v->absents[0].id : members_self();
        return -EAGAIN;
    }
    *list = xcalloc(v->nmembers + 1, sizeof(**list));
    for (uint32_t i = 0; i < v->nmembers; i++)
        if (v->members[i].id != members_self())
            (*list)[(*n)++] = (struct asked){.node = v->members[i].id, .err = -EAGAIN};
    return 0;
}

/* -EBADMSG: it is none. */
static int held_part(const struct asked *a, uint32_t i, struct lend_units *out)
{
    const struct item_lent *p = &a->parts[i];
    *out = (struct lend_units){p->first, p->last};
    return p->first < a->from || p->first > p->last || p->last > INT64_MAX / LOAN_UNIT || p->last - p->first >= LEND_MAX
               ? -EBADMSG
               : 0;
}

/* It has more than it has said. */
static bool goes_on(const struct asked *a)
{
    return a->is.more && a->is.parts.n;
}

/* False: it has more than it has said. */
static bool take_held(struct file *f, struct asked *a, int *err)
{
    for (uint32_t i = 0; a->parts && i < MIN(a->is.parts.n, LEND_MAX) && !*err; i++) {
        struct lend_units part;
        *err = held_part(a, i, &part);
        if (!*err)
            *err = store_lent_found(f, (struct lend_node){a->node, a->inc}, part.first, part.last);
        a->from = part.last + 1;
    }
    if (a->is.held)
        store_lent_is(f, store_lend_epoch(f), a->is.size, a->is.mtime_ns); /* nothing is taken back before it is known */
    free(a->parts);
    a->parts = NULL;
    return !goes_on(a);
}

static int ask_what_is_held(struct file *f, struct asked *list, unsigned n, const struct until *u)
{
    bool more = true;
    int err = 0;
    while (!err && more) {
        more = false;
        err = ask_until(f, LOAN_HELD, list, n, u);
        for (unsigned i = 0; !err && i < n; i++)
            if (list[i].parts && !take_held(f, &list[i], &err)) {
                list[i].err = -EAGAIN;
                more = true;
            }
    }
    return err;
}

/* Of a file that has no name and no descriptor any more: what it was, since nothing of it is flushed. */
static int look_at_pfs(struct file *f, struct version *v)
{
    struct statx stx;
    int err = pfs_file_stat(f, &stx);
    if (!err) {
        *v = version_of(&stx);
    } else if (file_is_unlinked(f)) {
        struct file_info info;
        store_info(f, &info);
        *v = info.base;
        err = 0;
    }
    return err;
}

static int learn(struct file *f, const struct until *u)
{
    struct asked *list;
    struct version v;
    unsigned n;
    store_lent_lost(f);
    struct until held = {u->end_ms, store_lend_next_epoch(f), u->away};
    int err = members_to_ask(&list, &n, u->away);
    if (!err)
        err = ask_what_is_held(f, list, n, &held);
    if (!err)
        err = look_at_pfs(f, &v);
    if (!err)
        store_lent_known(f, &v);
    free_asked(list, n);
    return err;
}

static void begin_learning(void)
{
    lock_take(&learning.lock);
    while (learning.asking)
        lock_wait(&learning.lock, &learning.ended, 0);
    learning.asking = true;
    lock_drop(&learning.lock);
}

static void end_learning(void)
{
    lock_take(&learning.lock);
    learning.asking = false;
    pthread_cond_broadcast(&learning.ended);
    lock_drop(&learning.lock);
}

/* 0: what is lent is known. */
static int know(struct file *f, const struct until *u)
{
    int err = 0;
    if (!store_is_lent(f) || store_lent_is_known(f))
        return 0;
    begin_learning();
    for (uint64_t wait_ms = AGAIN_MS; !store_lent_is_known(f); wait_ms = MIN(2 * wait_ms, UINT64_C(500))) {
        err = learn(f, u);
        if (err && (err != -EAGAIN || boot_ms() >= u->end_ms))
            break;
        if (err)
            pause_ms(wait_ms);
    }
    end_learning();
    return err == -EAGAIN ? -EIO : err;
}

static int know_soon(struct file *f)
{
    uint64_t away;
    return know(f, &(struct until){boot_ms() + T_OPEN, 0, &away});
}

/* ---- a borrower's daemon was started again ----
 *
 * It has what was dirty, and not what it had flushed, though the latter is on the PFS in any case.  So it is asked, and the
 * PFS is looked at, before anything is said to it of what it had. */

struct holding {
    struct lend_units *parts;
    size_t n, room;
};

static int add_held(struct holding *h, struct asked *a)
{
    int err = 0;
    for (uint32_t i = 0; i < MIN(a->is.parts.n, LEND_MAX) && !err; i++) {
        if (h->n == h->room) {
            h->room = MAX(2 * h->room, (size_t)16);
            h->parts = xrealloc(h->parts, h->room * sizeof(*h->parts));
        }
        err = held_part(a, i, &h->parts[h->n]);
        a->from = h->parts[h->n++].last + 1;
    }
    free(a->parts);
    a->parts = NULL;
    return err;
}

/* What one daemon holds: all of it is of this one, or it is asked from the beginning. */
static int ask_holder(struct file *f, struct asked *a, struct holding *h, const struct until *u)
{
    uint64_t inc = 0;
    int err = 0;
    a->from = h->n = 0;
    for (bool more = true; !err && more; more = goes_on(a)) {
        a->err = -EAGAIN;
        err = ask_until(f, LOAN_HELD, a, 1, u);
        if (!err && inc && a->inc != inc)
            err = -EAGAIN;
        inc = a->inc;
        if (!err && a->parts)
            err = add_held(h, a);
    }
    return err;
}

/* -EAGAIN: something else was taken back or flushed meanwhile. */
static int renew_once(struct file *f, struct asked *a, struct holding *h, const struct until *u)
{
    struct until held = {u->end_ms, store_lend_next_epoch(f), u->away};
    int err = ask_holder(f, a, h, &held);
    struct lent_back back = {.looks = store_pfs_looks(f), .began = LENT_ANY, .inc = a->inc, .mtime_ns = INT64_MIN};
    if (!err)
        err = look_at_pfs(f, &back.v);
    if (err)
        return err;
    if (a->is.held) {
        back.size = a->is.size;
        back.mtime_ns = a->is.mtime_ns;
    }
    return store_lent_held(f, a->node, held.epoch, h->parts, h->n, &back, &err) ? err : -EAGAIN;
}

/* Does what is lent to the node belong to another incarnation of it? */
static bool is_renewed(struct file *f, uint64_t node, uint64_t inc)
{
    uint64_t lent_to = inc ? store_borrower_inc(f, node) : 0;
    return lent_to && lent_to != inc;
}

/* The node was heard in this incarnation.  0: what is lent to it is known. */
static int renew(struct file *f, uint64_t node, uint64_t inc, const struct until *u)
{
    int err = 0;
    if (!is_renewed(f, node, inc))
        return 0;
    struct asked a = {.node = node};
    struct holding h = {0};
    begin_learning();
    for (uint64_t wait_ms = AGAIN_MS; is_renewed(f, node, inc); wait_ms = MIN(2 * wait_ms, UINT64_C(500))) {
        err = renew_once(f, &a, &h, u);
        free(a.parts);
        a.parts = NULL;
        if (err && (err != -EAGAIN || boot_ms() >= u->end_ms))
            break;
        if (err)
            pause_ms(wait_ms);
        else if (a.inc != inc)
            break; /* this one is not the last any more, or it was heard late */
    }
    end_learning();
    free(h.parts);
    return err == -EAGAIN ? -EIO : err;
}

/* ---- size and mtime ---- */

static uint64_t size_here(struct file *f)
{
    struct file_info info;
    store_info(f, &info);
    return info.size;
}

/* Sizes only grow while parts are lent and no epoch begins.  So if no borrower says more than was known before all were
 * asked, that was the size when they were.  It is told, and not what has come in meanwhile: without the rest of that, the
 * file was perhaps never so long.  What the only borrower says is the size, if nothing else has come in.
 * *agree: *size was the file's. */
static int one_round(struct file *f, const struct until *u, uint64_t *size, bool *agree)
{
    struct asked *list;
    unsigned n;
    bool counts = true;
    uint64_t said = 0, epoch = store_lend_epoch(f);
    *size = size_here(f);
    int err = ask_all(f, LOAN_SIZE, &list, &n, u);
    bool alone = n == 1 && store_borrowers(f, NULL, 0) == 1 && size_here(f) == *size;
    for (unsigned i = 0; !err && i < n; i++)
        err = renew(f, list[i].node, list[i].inc, u);
    for (unsigned i = 0; !err && i < n; i++) {
        counts &= store_lent_is(f, epoch, list[i].is.size, list[i].is.mtime_ns);
        said = MAX(said, list[i].is.size);
    }
    free_asked(list, n);
    *agree = !err && counts && (said <= *size || alone);
    *size = MAX(*size, said);
    return err;
}

static int pull(struct file *f, const struct until *u, uint64_t *size)
{
    int err = know(f, u);
    *size = size_here(f);
    bool agree = !store_is_lent(f);
    for (unsigned round = 0; !err && !agree && round < PULLS; round++) {
        err = one_round(f, u, size, &agree);
        if (!store_is_lent(f))
            break;
    }
    if (!agree)
        *size = size_here(f);
    return err;
}

int lend_pull(struct file *f, uint64_t *away)
{
    uint64_t size;
    return pull(f, &(struct until){boot_ms() + T_OPEN, 0, away}, &size);
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

/* What the node wrote is on the PFS.  *b: what RETURN says. */
static int take_back(struct file *f, uint64_t node, struct lent_back *b, uint64_t *epoch)
{
    do {
        b->looks = store_pfs_looks(f);
        int err = look_at_pfs(f, &b->v);
        if (err)
            return err;
    } while (!store_lent_returned(f, node, b, epoch));
    return 0;
}

/* The node says that it has nothing.  What it had it has returned before; or it never got the answer to its LEND. */
static int take_rest(struct file *f, uint64_t node)
{
    uint64_t epoch;
    struct lent_back back = {.began = LENT_ANY, .mtime_ns = INT64_MIN};
    return store_borrower_inc(f, node) ? take_back(f, node, &back, &epoch) : 0;
}

/* 0: nothing is lent, until store_lend_go. */
static int recall(struct file *f)
{
    struct asked *list;
    unsigned n;
    int err = know_soon(f), e;
    if (err)
        return err;
    uint64_t away = 0, epoch = store_lend_stop(f);
    err = ask_all(f, LOAN_RECALL, &list, &n, &(struct until){boot_ms() + T_OPEN, epoch, &away});
    for (unsigned i = 0; i < n; i++)
        if (!list[i].err && (e = take_rest(f, list[i].node)))
            err = err ? err : e;
    free_asked(list, n);
    if (!err && store_is_lent(f))
        err = -EIO;
    if (err) {
        if (away)
            say_away(f, away);
        store_lend_go(f);
    }
    return err;
}

/* The node says "not mine" of what is lent to it: an answer to its LEND was lost, or its cache.  It takes nothing of it
 * any more for its own. */
static int recall_from(struct file *f, uint64_t node)
{
    uint64_t away, epoch = store_lend_stop(f);
    struct asked a = {.node = node, .err = -EAGAIN};
    int err = ask_until(f, LOAN_RECALL, &a, 1, &(struct until){boot_ms() + T_OPEN, epoch, &away});
    if (!err)
        err = take_rest(f, node);
    free(a.parts);
    store_lend_go(f);
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
    int all = know_soon(f);
    if (!all)
        all = needs_all(f, c);
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
    int known = know_soon(f);
    if (known)
        return known;
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
    if (!err && part.got < part.len)
        err = lend_pull(f, &away);
    store_info(f, &info);
    if (!err && part.got < part.len) /* what has made it longer meanwhile is no zeros */
        err = carry_read(node, f, &part);
    if (err == -ENOENT)
        return recall_from(f, node);
    if (err)
        return err;
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
        if (node && err == -ENOENT && (err = recall_from(f, node)))
            return err;
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

/* Of a file that is shared: no watcher comes from now on (claim_watch_begin). */
static bool is_watched(struct file *f)
{
    struct claim_watcher some[CLAIM_WATCHERS_MAX];
    unsigned any, n = claim_watchers(f, some, &any);
    for (unsigned i = 0; i < n; i++)
        any |= some[i].kinds;
    return any & ~LOOKER_OPEN;
}

/* The kernels of the other nodes keep nothing of a file that has no watchers; this node's own is asked. */
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
    if (is_watched(f) || told_here(f->fid, &nothing) & (LOOKER_CACHED | LOOKER_PASSTHROUGH)) {
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
    uint64_t until, away;
    int err = know_soon(f);
    if (!err)
        err = renew(f, m->head.sender, m->head.incarnation, &(struct until){boot_ms() + T_OPEN, 0, &away});
    uint64_t node = b->ask == LEND_DOUBT && !err ? store_lent_to(f, b->first, b->first, &until) : 0;
    return node ? recall_from(f, node) : err;
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

static bool lend_is_sound(const struct msg *m)
{
    const struct body_lend *b = &m->lend;
    const uint64_t most = INT64_MAX / LOAN_UNIT;
    return m->head.flags & MSG_F_WANTS && b->ask <= LEND_DOUBT && b->first <= b->last && b->last <= most && b->last - b->first < LEND_MAX &&
           b->count < LEND_MAX && b->stride <= most / LEND_MAX &&
           (!b->count || (b->stride > b->last - b->first && b->last + b->count * b->stride <= most)) &&
           (b->last - b->first + 1) * (b->count + 1) <= LEND_MAX;
}

/* Network thread. */
static void on_lend(struct msg *m)
{
    if (lend_is_sound(m))
        loan_serve(m->lend.ask == LEND_DOUBT ? loan_doubt : loan_lend, serve_lend, m);
    else
        peer_refuse(m);
}

/* ---- RETURN ---- */

struct asking_job {
    struct file *f;
    struct lend_node node;
};

static void asking_job(void *arg)
{
    struct asking_job *j = arg;
    uint64_t away;
    if (!know_soon(j->f))
        renew(j->f, j->node.id, j->node.inc, &(struct until){boot_ms() + T_OPEN, 0, &away});
    file_put(j->f);
    free(j);
}

/* RETURN comes again.  What its sender holds is asked before that, and not meanwhile: it could not say. */
static void ask_before_return(struct file *f, struct lend_node node)
{
    lock_take(&learning.lock);
    bool busy = learning.asking;
    lock_drop(&learning.lock);
    if (busy)
        return;
    struct asking_job *j = xcalloc(1, sizeof(*j));
    *j = (struct asking_job){file_ref(f), node};
    pool_submit(loan_lend, asking_job, j);
}

/* Not this claim's: nothing is lent under it any more. */
static int returned(struct file *f, const struct msg *m, uint64_t *epoch)
{
    uint64_t inc, number;
    struct lend_node from = {m->head.sender, m->head.incarnation};
    if (!claim_id(f, &inc, &number) || inc != m->ret.number_inc || number != m->ret.number)
        return 0;
    if (!store_lent_is_known(f) || is_renewed(f, from.id, from.inc)) {
        ask_before_return(f, from);
        return -EIO;
    }
    struct lent_back back = {
        .size = m->ret.size, .mtime_ns = m->ret.mtime_ns, .began = m->ret.began, .inc = from.inc};
    int err = take_back(f, from.id, &back, epoch);
    return err == -EAGAIN || err == -ENOENT ? -EIO : err;
}

static int serve_return(const struct msg *m, struct msg **reply)
{
    struct file *f = file_find(m->ret.fid);
    uint64_t epoch = 0;
    int err = 0;
    if (f && !claim_carry_begin(f)) {
        err = returned(f, m, &epoch);
        claim_carry_end(f);
    }
    if (f)
        file_put(f);
    if (err)
        return err;
    *reply = msg_new(MSG_RETURNED);
    (*reply)->returned.epoch = epoch;
    return 0;
}

/* Network thread. */
static void on_return(struct msg *m)
{
    if (m->head.flags & MSG_F_WANTS && m->ret.size <= INT64_MAX)
        loan_serve(loan_back, serve_return, m);
    else
        peer_refuse(m);
}

/* ---- start and end ---- */

static int own_word(struct file *f, uint64_t end_ms, uint64_t *away, uint64_t *size)
{
    int err = pull(f, &(struct until){end_ms, 0, away}, size);
    if (err)
        say_away(f, *away);
    return err;
}

void lend_start(void)
{
    leaving = false;
    claim_on_lent(own_word);
    peer_handle(MSG_LEND, on_lend);
    peer_handle(MSG_RETURN, on_return);
}

static void leave_one(void *arg, struct file *f)
{
    int *failed = arg, err = store_is_lent(f) ? recall(f) : 0;
    if (err)
        *failed = err;
}

int lend_leave(void)
{
    int err = 0;
    leaving = true;
    claim_each(leave_one, &err);
    return err;
}

/* ---- for `eddy status` ---- */

struct telling {
    loan_status_fn *fn;
    void *arg;
};

static void tell_one(void *arg, struct file *f)
{
    const struct telling *t = arg;
    uint64_t nodes[LEND_MAX];
    if (!store_is_lent(f))
        return;
    char *path = file_path(f);
    unsigned n = MIN(store_borrowers(f, nodes, LEND_MAX), LEND_MAX);
    for (unsigned i = 0; i < n; i++)
        t->fn(t->arg, &(struct loan_status){path ? path : "?", nodes[i], store_lent_units(f, nodes[i]) * LOAN_UNIT});
    if (!store_lent_is_known(f))
        t->fn(t->arg, &(struct loan_status){.path = path ? path : "?"});
    free(path);
}

void lend_each(loan_status_fn *fn, void *arg)
{
    claim_each(tell_one, &(struct telling){fn, arg});
}

void lend_stop(void)
{
    claim_on_lent(NULL);
}
