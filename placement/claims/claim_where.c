/* claim_where.c - where files' latest bytes are: asks homes, and the claimants that they name
 * (docs/protocol.md, rules 8 and 12-14).
 *
 *     ask the home, or next while the home is suspected (WHERE) --AT PFS, LOST--> done
 *          ^         '-------AT a node-----> ask the claimant (ASK) --HAVE--> done
 *          '------------------------ "not mine" ------'
 *
 * Many files are asked for at once, with one message for each node.  Locks: two leaves, each taken alone.
 */
#include "placement/claims/claim.h"
#include "placement/claims/claim_int.h"
#include "placement/claims/claim_settled.h"

#include "placement/claims/claim_own.h"
#include "placement/claims/home.h"
#include "placement/ring/ring.h"
#include "placement/store/store_lend.h"
#include "placement/store/store_read.h"
#include "transport/peer.h"
#include "transport/view.h"
#include "transport/waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- waiting for a view, or for a home to become ready ---- */

static struct lock pause_lock;
static pthread_cond_t pause_cond;

void claim_wait(unsigned ms)
{
    lock_take(&pause_lock);
    lock_wait(&pause_lock, &pause_cond, ms);
    lock_drop(&pause_lock);
}

void claim_wake(void)
{
    lock_take(&pause_lock);
    pthread_cond_broadcast(&pause_cond);
    lock_drop(&pause_lock);
}

/* ---- this node's own answer ---- */

void claim_own_word(struct file *f, struct location *out)
{
    struct look_ticket ticket = look_now(f->fid);
    struct file_info info;
    store_info(f, &info);
    *out = (struct location){.where = WHERE_HERE,
                             .keep = !store_is_shared(f),
                             .ticket = ticket,
                             .node = members_self(),
                             .size = info.size,
                             .blocks = info.blocks,
                             .mtime_ns = info.mtime_ns,
                             .ctime_ns = info.ctime_ns,
                             .stands_ns = info.stands_ns,
                             .counter = info.change,
                             .begun = claim_of(f)->begun};
}

bool claim_is_here(struct fid fid)
{
    return own_has(fid, NULL, NULL);
}

bool claim_here_of(struct file *f, struct location *out)
{
    bool here = claim_is_here(f->fid);
    if (here)
        claim_own_word(f, out);
    return here;
}

struct file *claim_file_here(struct fid fid, struct location *out)
{
    struct file *f = claim_is_here(fid) ? file_find(fid) : NULL;
    if (f)
        claim_own_word(f, out);
    return f;
}

bool claim_here(struct fid fid, struct location *out)
{
    struct file *f = claim_file_here(fid, out);
    if (f)
        file_put(f);
    return f;
}

/* ---- several requests at once ---- */

struct group {
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t done;
    unsigned waiting;
};

struct sent {
    struct group *group;
    uint64_t to;
    unsigned n;
    unsigned index[ASK_BATCH]; /* positions in the caller's arrays */
    int err;
    struct msg *reply;
};

static void group_reply(void *arg, int err, struct msg *reply, bool *keep)
{
    struct sent *s = arg;
    lock_take(&s->group->lock);
    s->err = err;
    if (!err) {
        s->reply = reply;
        *keep = true;
    }
    if (!--s->group->waiting)
        pthread_cond_broadcast(&s->group->done);
    lock_drop(&s->group->lock);
}

/* What claim_where_many knows of its files so far. */
struct search {
    const struct fid *fids;
    unsigned n;
    enum look look;
    struct location *out; /* while a file is OPEN: its ticket alone counts */
    enum { OPEN, DONE } * state;
    uint64_t *at; /* claimant to ask, 0: ask the home */
};

static struct msg *ask_msg(const struct search *q, const struct sent *s, enum msg_type type)
{
    struct msg *m = msg_new(type);
    struct item_fid_item *items = xcalloc(s->n, sizeof(*items));
    for (unsigned i = 0; i < s->n; i++)
        items[i].fid = q->fids[s->index[i]];
    m->arena = items;
    if (type == MSG_ASK) {
        m->ask.look = (uint8_t)(q->look == LOOK_GOES ? LOOK_NONE : q->look);
        m->ask.fids.n = s->n;
        m->ask.fids.v = items;
        return m;
    }
    m->where.look = (uint8_t)q->look;
    m->where.number = look_number();
    m->where.fids.n = s->n;
    m->where.fids.v = items;
    return m;
}

/* The node that is asked where a file is: its home, or next if the home is silent.  Next does not know who has the file
 * open. */
static uint64_t teller(const struct view *v, struct fid fid, enum look look)
{
    uint64_t home = view_home(v, fid);
    if (!home || look == LOOK_GOES || !members_suspected(home))
        return home;
    uint64_t next = ring_home(ring_of(v), fid, 1);
    return next && !members_suspected(next) ? next : home;
}

/* One message per node that must be asked: homes or nexts (WHERE), or claimants (ASK). */
static unsigned sort_out(const struct search *q, const struct view *v, bool claimants,
                         struct sent **out)
{
    struct sent *list = NULL;
    unsigned n = 0;
    for (unsigned i = 0; i < q->n; i++) {
        uint64_t to = claimants ? q->at[i] : teller(v, q->fids[i], q->look);
        unsigned k = 0;
        if (q->state[i] == DONE || !to || (claimants != (q->at[i] != 0)))
            continue;
        while (k < n && list[k].to != to)
            k++;
        if (k == n) {
            list = xrealloc(list, (n + 1) * sizeof(*list));
            list[n++] = (struct sent){.to = to};
        }
        list[k].index[list[k].n++] = i;
    }
    *out = list;
    return n;
}

static void ask_all(const struct search *q, struct sent *list, unsigned n, enum msg_type type)
{
    struct group g = {.waiting = n};
    lock_init(&g.lock, RANK_LEAF);
    lock_cond_init(&g.done);
    for (unsigned k = 0; k < n; k++) {
        list[k].group = &g;
        peer_request(list[k].to, ask_msg(q, &list[k], type), T_PING, NULL, 0, group_reply,
                     &list[k]);
    }
    lock_take(&g.lock);
    while (g.waiting)
        wait_on(WAIT_NODES, &g.lock, &g.done, 0);
    lock_drop(&g.lock);
    lock_destroy(&g.lock);
    pthread_cond_destroy(&g.done);
}

/* ---- the answers ---- */

/* A home's answer as a location; false: a claimant must be asked.  A home of an older view does not know this
 * node any more, and a BREAK has overtaken the answer: then the ticket does not hold. */
static bool location_of(struct fid fid, uint64_t view, const struct item_at *at,
                        struct look_ticket ticket, struct location *out)
{
    *out = (struct location){.ticket = ticket};
    if (at->where == AT_PFS) {
        out->where = WHERE_PFS;
        out->keep = at->keep && look_holds(fid, ticket);
        out->known = at->known;
        out->version = at->version;
        out->same_as = at->same_as;
        out->told = at->told;
        out->view = view;
    } else if (at->where == AT_LOST) {
        out->where = WHERE_LOST;
        out->node = at->node;
    }
    return at->where != AT_NODE;
}

static void take_at(struct search *q, unsigned i, uint64_t view, const struct item_at *at)
{
    if (location_of(q->fids[i], view, at, q->out[i].ticket, &q->out[i]))
        q->state[i] = DONE;
    else
        q->at[i] = at->node;
}

static void take_have(struct search *q, unsigned i, uint64_t node, const struct item_have *have)
{
    q->at[i] = 0;
    if (have->mine == MINE_VAGUE && have->away) {
        q->out[i] = (struct location){.where = WHERE_LOST, .node = have->away};
        q->state[i] = DONE;
    }
    if (have->mine == MINE_VAGUE)
        return;
    if (!have->mine)
        return; /* it gave the claim back, and tells this to the home: ask the home again */
    struct look_ticket ticket = q->out[i].ticket;
    q->out[i] = (struct location){.where = WHERE_NODE,
                                  .node = node,
                                  .ticket = ticket,
                                  .keep = have->watched && look_holds(q->fids[i], ticket),
                                  .size = have->size,
                                  .blocks = have->blocks,
                                  .mtime_ns = have->mtime_ns,
                                  .ctime_ns = have->ctime_ns,
                                  .stands_ns = have->stands_ns,
                                  .counter = have->counter,
                                  .begun = have->begun};
    q->state[i] = DONE;
}

static void take_answers(struct search *q, struct sent *list, unsigned n, bool claimants)
{
    for (unsigned k = 0; k < n; k++) {
        struct sent *s = &list[k];
        unsigned answers = s->err ? 0 : claimants ? s->reply->have.have.n : s->reply->at.at.n;
        if (members_no_contact(s->err))
            members_doubt(s->to);
        if (!claimants && answers == s->n)
            claim_note_settled(s->reply->head.view);
        for (unsigned a = 0; a < s->n; a++) {
            if (answers != s->n)
                q->at[s->index[a]] = 0;
            else if (claimants)
                take_have(q, s->index[a], s->to, &s->reply->have.have.v[a]);
            else
                take_at(q, s->index[a], s->reply->head.view, &s->reply->at.at.v[a]);
        }
        if (s->reply)
            msg_free(s->reply);
    }
    free(list);
}

/* ---- until all is known ---- */

/* Who wants to tell the size needs the exact one. */
static bool here(struct fid fid, enum look look, uint64_t end_ms, struct location *out)
{
    return look == LOOK_STAT ? claim_here_exactly(fid, end_ms, out) : claim_here(fid, out);
}

static unsigned still_open(struct search *q, uint64_t end_ms)
{
    unsigned open = 0;
    for (unsigned i = 0; i < q->n; i++) {
        if (q->state[i] == OPEN && here(q->fids[i], q->look, end_ms, &q->out[i]))
            q->state[i] = DONE;
        open += q->state[i] == OPEN;
    }
    return open;
}

/* Answers for files of which this node is the home, or next, if it can. */
static bool told_here(const struct view *v, struct fid fid, enum look look, struct item_at *at)
{
    if (teller(v, fid, look) != members_self() || !home_where_here(v->number, fid, look, at))
        return false;
    claim_note_settled(v->number);
    return true;
}

static void ask_here(struct search *q, const struct view *v)
{
    struct item_at at;
    for (unsigned i = 0; i < q->n; i++)
        if (q->state[i] == OPEN && !q->at[i] && told_here(v, q->fids[i], q->look, &at))
            take_at(q, i, v->number, &at);
}

static void ask_nodes(struct search *q, const struct view *v, bool claimants)
{
    struct sent *list;
    unsigned n = sort_out(q, v, claimants, &list);
    if (!n)
        return;
    ask_all(q, list, n, claimants ? MSG_ASK : MSG_WHERE);
    take_answers(q, list, n, claimants);
}

static void take_tickets(struct search *q)
{
    for (unsigned i = 0; i < q->n; i++)
        if (q->state[i] == OPEN)
            q->out[i].ticket = look_now(q->fids[i]);
}

static void search_step(struct search *q, const struct view *v)
{
    take_tickets(q);
    ask_here(q, v);
    ask_nodes(q, v, false);
    ask_nodes(q, v, true);
}

/* How many are not known when the time is over. */
static unsigned search_until(struct search *q, uint64_t end)
{
    unsigned open, wait = 10;
    while ((open = still_open(q, end))) {
        const struct view *v = members_view();
        if (v)
            search_step(q, v);
        open = still_open(q, end);
        if (!open || boot_ms() >= end)
            break;
        claim_wait(wait);
        wait = MIN(2 * wait, 200);
    }
    return open;
}

static void say_nobody_knows(unsigned n)
{
    static _Atomic uint64_t said;
    if (!log_every(&said, 10000))
        return;
    if (!members_view())
        log_warn("this node is outside the session: no node can say where the latest bytes of %u "
                 "files are: EIO until it has joined again",
                 n);
    else
        log_warn("no node could say within %d s where the latest bytes of %u files are: EIO",
                 T_OPEN / 1000, n);
}

static int ask_until(uint64_t end, const struct fid *fids, unsigned n, enum look look,
                     struct location *out, int *errs)
{
    struct search q = {fids, MIN(n, ASK_BATCH), look, out, NULL, NULL};
    int err = 0;
    q.state = xcalloc(n + 1, sizeof(*q.state));
    q.at = xcalloc(n + 1, sizeof(*q.at));
    unsigned open = search_until(&q, end);
    for (unsigned i = 0; i < n; i++) {
        int e = i >= ASK_BATCH ? -EINVAL : q.state[i] == DONE ? 0 : -EIO;
        if (errs)
            errs[i] = e;
        err = err ? err : e;
    }
    if (open)
        say_nobody_knows(open);
    free(q.state);
    free(q.at);
    return errs ? 0 : err;
}

int claim_where_many(const struct fid *fids, unsigned n, enum look look, struct location *out,
                     int *errs)
{
    return ask_until(boot_ms() + members_patience(), fids, n, look, out, errs);
}

bool claim_told_here(struct fid fid, enum look look, struct location *out)
{
    struct look_ticket ticket = look_now(fid);
    const struct view *v = members_view();
    struct item_at at;
    return v && told_here(v, fid, look, &at) && location_of(fid, v->number, &at, ticket, out);
}

/* Can this node answer, as in a session of one?  Then nothing is prepared for asking others. */
static bool known_here(struct fid fid, enum look look, uint64_t end_ms, struct location *out)
{
    return here(fid, look, end_ms, out) || claim_told_here(fid, look, out);
}

int claim_where_until(struct fid fid, enum look look, uint64_t end_ms, struct location *out)
{
    return known_here(fid, look, end_ms, out) ? 0 : ask_until(end_ms, &fid, 1, look, out, NULL);
}

/* Each look-up of a name calls this. */
int claim_where(struct fid fid, enum look look, struct location *out)
{
    return claim_where_until(fid, look, boot_ms() + members_patience(), out);
}

void claim_where_start(void)
{
    lock_init(&pause_lock, RANK_LEAF);
    lock_cond_init(&pause_cond);
}
