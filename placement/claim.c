/* claim.c - asking homes and claimants, taking and giving back claims (docs/protocol.md, rules
 * 10-16).
 *
 * A file's claim on this node:
 *
 *     NONE --WANT--> ASKING --GRANT, persisted--> HELD --clean, no writer, cleared on disk--> NONE (+ FREE)
 *               '--AT another node, LOST, deadline--> NONE
 *
 * While it is HELD the claim keeps a reference on struct file, and this node's word is the truth in
 * every view.
 */
#include "placement/claim.h"

#include "placement/claim_own.h"
#include "placement/home.h"
#include "placement/locks.h"
#include "placement/pfs_data.h"
#include "placement/ring.h"
#include "placement/store.h"
#include "transport/loop.h"
#include "transport/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ASK_BATCH 512

static _Atomic uint64_t last_number;

/* Those who wait for a view, or for a home to become ready. */
static struct lock pause_lock;
static pthread_cond_t pause_cond;

static void wait_for_change(unsigned ms)
{
    lock_take(&pause_lock);
    lock_wait(&pause_lock, &pause_cond, ms);
    lock_drop(&pause_lock);
}

static uint64_t next_number(void)
{
    return atomic_fetch_add(&last_number, 1) + 1;
}

static uint64_t home_of(const struct view *v, struct fid fid)
{
    return ring_home(ring_of(v), fid, 0);
}

static bool no_contact(int err)
{
    return err == -ETIMEDOUT || err == -ECONNREFUSED || err == -ECONNRESET;
}

/* ---- our own word ---- */

static void own_word(struct file *f, struct location *out)
{
    struct file_info info;

    store_info(f, &info);
    *out = (struct location){.where = WHERE_HERE,
                             .node = members_self(),
                             .size = info.size,
                             .blocks = info.blocks,
                             .mtime_ns = info.mtime_ns,
                             .ctime_ns = info.ctime_ns,
                             .counter = info.change};
}

bool claim_here(struct fid fid, struct location *out)
{
    struct file *f;

    if (!own_has(fid, NULL, NULL))
        return false;
    f = file_find(fid);
    if (!f)
        return false;
    own_word(f, out);
    file_put(f);
    return true;
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
    struct location *out;
    enum { OPEN, DONE } * state;
    uint64_t *at; /* claimant to ask, 0: ask the home */
};

static struct msg *ask_msg(const struct search *q, const struct sent *s, enum msg_type type)
{
    struct msg *m = msg_new(type);
    struct item_fid_item *items = xcalloc(s->n, sizeof(*items));

    for (unsigned i = 0; i < s->n; i++)
        items[i].fid = q->fids[s->index[i]];
    m->where.fids.n = s->n; /* WHERE and ASK have the same body */
    m->where.fids.v = items;
    m->arena = items;
    return m;
}

/* One message per node that must be asked: homes (WHERE) or claimants (ASK). */
static unsigned sort_out(const struct search *q, const struct view *v, bool claimants,
                         struct sent **out)
{
    struct sent *list = NULL;
    unsigned n = 0;

    for (unsigned i = 0; i < q->n; i++) {
        uint64_t to = claimants ? q->at[i] : home_of(v, q->fids[i]);
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
        lock_wait(&g.lock, &g.done, 0);
    lock_drop(&g.lock);
    lock_destroy(&g.lock);
    pthread_cond_destroy(&g.done);
}

/* The first answer of a home in a view: it is complete, so all members have adopted the view. */
static struct {
    struct lock lock; /* RANK_LEAF */
    uint64_t view, since_ms;
} settled;

static void note_settled(uint64_t view)
{
    lock_take(&settled.lock);
    if (view > settled.view) {
        settled.view = view;
        settled.since_ms = boot_ms();
    }
    lock_drop(&settled.lock);
}

bool claim_settled(uint64_t view, uint64_t looked_ms)
{
    lock_take(&settled.lock);
    bool yes = view && view == settled.view && looked_ms > settled.since_ms;
    lock_drop(&settled.lock);
    return yes;
}

static void take_at(struct search *q, unsigned i, uint64_t view, const struct item_at *at)
{
    struct location *l = &q->out[i];

    memset(l, 0, sizeof(*l));
    switch (at->where) {
    case AT_PFS:
        l->where = WHERE_PFS;
        l->known = at->known;
        l->version = at->version;
        l->same_as = at->same_as;
        l->view = view;
        q->state[i] = DONE;
        break;
    case AT_LOST:
        l->where = WHERE_LOST;
        l->node = at->node;
        q->state[i] = DONE;
        break;
    case AT_NODE:
        q->at[i] = at->node;
        break;
    }
}

static void take_have(struct search *q, unsigned i, uint64_t node, const struct item_have *have)
{
    q->at[i] = 0;
    if (!have->mine)
        return; /* it gave the claim back, and tells the home so: ask the home again */
    q->out[i] = (struct location){.where = WHERE_NODE,
                                  .node = node,
                                  .size = have->size,
                                  .blocks = have->blocks,
                                  .mtime_ns = have->mtime_ns,
                                  .ctime_ns = have->ctime_ns,
                                  .counter = have->counter};
    q->state[i] = DONE;
}

static void take_answers(struct search *q, struct sent *list, unsigned n, bool claimants)
{
    for (unsigned k = 0; k < n; k++) {
        struct sent *s = &list[k];
        unsigned answers = s->err ? 0 : claimants ? s->reply->have.have.n : s->reply->at.at.n;

        if (no_contact(s->err))
            members_doubt(s->to);
        if (!claimants && answers == s->n)
            note_settled(s->reply->head.view);
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

static unsigned still_open(struct search *q)
{
    unsigned open = 0;

    for (unsigned i = 0; i < q->n; i++) {
        if (q->state[i] == OPEN && claim_here(q->fids[i], &q->out[i]))
            q->state[i] = DONE;
        open += q->state[i] == OPEN;
    }
    return open;
}

static void search_step(struct search *q, const struct view *v)
{
    struct sent *list;
    unsigned n = sort_out(q, v, false, &list);

    ask_all(q, list, n, MSG_WHERE);
    take_answers(q, list, n, false);
    n = sort_out(q, v, true, &list);
    ask_all(q, list, n, MSG_ASK);
    take_answers(q, list, n, true);
}

static int where_until(uint64_t end, const struct fid *fids, unsigned n, struct location *out,
                       int *errs)
{
    static _Atomic uint64_t said;
    struct search q = {fids, MIN(n, ASK_BATCH), out, NULL, NULL};
    unsigned open, wait = 10;
    int err = 0;

    q.state = xcalloc(n + 1, sizeof(*q.state));
    q.at = xcalloc(n + 1, sizeof(*q.at));
    while ((open = still_open(&q)) && boot_ms() < end) {
        const struct view *v = members_view();

        if (v)
            search_step(&q, v);
        open = still_open(&q);
        if (!open)
            break;
        wait_for_change(wait);
        wait = MIN(2 * wait, 200);
    }
    for (unsigned i = 0; i < n; i++) {
        int e = i >= ASK_BATCH ? -EINVAL : q.state[i] == DONE ? 0 : -EIO;

        if (errs)
            errs[i] = e;
        err = err ? err : e;
    }
    if (open && log_every(&said, 10000))
        log_warn("nobody could say within %d s where the latest bytes of %u files are: EIO",
                 T_OPEN / 1000, open);
    free(q.state);
    free(q.at);
    return errs ? 0 : err;
}

int claim_where_many(const struct fid *fids, unsigned n, struct location *out, int *errs)
{
    return where_until(boot_ms() + T_OPEN, fids, n, out, errs);
}

int claim_where(struct fid fid, struct location *out)
{
    return claim_where_many(&fid, 1, out, NULL);
}

/* ---- FREE ---- */

struct freeing {
    struct fid fid;
    uint64_t inc, number, view;
    bool known;
    struct version version;
};

static void freed(void *arg, int err, struct msg *reply, bool *keep);

/* Network thread.  Repeated until answered or the view changes: then ADOPTED has told it. */
static void send_free(void *arg)
{
    struct freeing *j = arg;
    const struct view *v = members_view();
    struct msg *m;

    if (!v || (j->view && v->number != j->view)) {
        free(j);
        return;
    }
    j->view = v->number;
    m = msg_new(MSG_FREE);
    m->free.fid = j->fid;
    m->free.number_inc = j->inc;
    m->free.number = j->number;
    m->free.known = j->known;
    m->free.version = j->version;
    peer_request(home_of(v, j->fid), m, T_PING, NULL, 0, freed, j);
}

static void freed(void *arg, int err, struct msg *reply, bool *keep)
{
    struct freeing *j = arg;

    (void)reply;
    (void)keep;
    if (!err || err == -ECANCELED) {
        free(j);
        return;
    }
    home_later(send_free, free, j);
}

static void tell_free(struct fid fid, uint64_t inc, uint64_t number, const struct version *v)
{
    struct freeing *j = xcalloc(1, sizeof(*j));

    *j = (struct freeing){.fid = fid, .inc = inc, .number = number, .known = v != NULL};
    if (v)
        j->version = *v;
    loop_post(send_free, j);
}

/* ---- opening for writing ---- */

static void set_state(struct file *f, enum claim_state s, unsigned more_writers)
{
    lock_take(&f->claim_lock);
    f->claim = s;
    f->writers += more_writers;
    pthread_cond_broadcast(&f->claim_changed);
    lock_drop(&f->claim_lock);
}

static void say_lost(struct file *f, uint64_t node)
{
    char *path = file_path(f);

    count(lost_opens, 1);
    log_warn(
        "%s: its latest bytes are on node %s, which left the session: EIO until that node is back",
        path, members_name(node));
    free(path);
}

/* Of a removed file nobody is to believe that the PFS has what was here: no version is this one, so
 * who asks looks at the PFS. */
static const struct version removed = {UINT64_MAX, INT64_MAX, INT64_MAX};

static bool file_unlinked(struct file *f)
{
    lock_take(&f->lock);
    bool unlinked = f->unlinked;
    lock_drop(&f->lock);
    return unlinked;
}

/* The claim is in our list; now it goes to disk, with what the PFS has as its base. */
static int keep_grant(struct file *f, const struct version *base, const struct body_grant *g)
{
    struct version v = *base;
    struct statx stx;
    int err = 0;

    /* another node may have flushed between the opener's look at the PFS and the grant */
    if (g->known != 1 || !version_eq(&g->version, base)) {
        err = pfs_file_stat(f, &stx);
        if (!err && !stx.stx_nlink && !file_unlinked(f))
            /* or removed it, and what was not flushed is gone: the opener looks its name up
             * again */
            err = -ESTALE;
        if (!err)
            v = version_of(&stx);
    }
    if (!err) {
        store_set_claim(f, f->number_inc, f->number, &v);
        file_ref(f);
        own_ready(f->fid);
        count(claims_granted, 1);
        return 0;
    }
    own_remove(f->fid);
    tell_free(f->fid, f->number_inc, f->number, NULL);
    return err;
}

/* FREE covered the number: it was a late answer's. */
static void take_new_number(struct file *f)
{
    lock_take(&f->claim_lock);
    f->number = next_number();
    lock_drop(&f->claim_lock);
}

/* One WANT.  0: *out says where; -EAGAIN: once more; else the open's error. */
static int want_once(struct file *f, const struct version *base, const struct view *v, uint64_t end,
                     struct location *out)
{
    uint64_t home = home_of(v, f->fid);
    struct msg *m = msg_new(MSG_WANT), *reply = NULL;
    int err;

    m->want.fid = f->fid;
    m->want.number = f->number;
    err = peer_call(home, m, T_PING, NULL, 0, &reply);
    if (no_contact(err))
        members_doubt(home);
    if (err == -ESTALE)
        take_new_number(f);
    if (err) {
        err = -EAGAIN;
    } else if (reply->grant.where == AT_GRANTED) {
        err = -EAGAIN;
        if (reply->head.view == v->number && own_add(f->fid, f->number_inc, f->number, v->number))
            err = keep_grant(f, base, &reply->grant);
        if (!err)
            own_word(f, out);
    } else if (reply->grant.where == AT_LOST) {
        say_lost(f, reply->grant.node);
        err = -EIO;
    } else {
        struct location l;

        err = where_until(end, &f->fid, 1, &l, NULL);
        if (!err && l.where == WHERE_NODE)
            *out = l;
        else
            err = -EAGAIN;
    }
    if (reply)
        msg_free(reply);
    return err;
}

static int ask_for_claim(struct file *f, const struct version *base, uint64_t end,
                         struct location *out)
{
    unsigned wait = 5;
    int err = -EAGAIN;

    while (boot_ms() < end) {
        const struct view *v = members_view();

        if (v)
            err = want_once(f, base, v, end, out);
        if (err != -EAGAIN)
            return err;
        wait_for_change(wait);
        wait = MIN(2 * wait, 100);
    }
    tell_free(f->fid, f->number_inc, f->number, NULL);
    log_warn("the claim of a file was not granted within %d s: its open for writing fails with EIO",
             T_OPEN / 1000);
    return -EIO;
}

int claim_open_writer(struct file *f, const struct version *base, struct location *out)
{
    uint64_t end = boot_ms() + T_OPEN, t;
    int err;

    lock_take(&f->claim_lock);
    while ((f->claim == CLAIM_ASKING || f->claim == CLAIM_FREEING) && (t = boot_ms()) < end)
        lock_wait(&f->claim_lock, &f->claim_changed, end - t);
    if (f->claim == CLAIM_ASKING || f->claim == CLAIM_FREEING) {
        lock_drop(&f->claim_lock);
        return -EIO; /* those before us waited as long, and said why */
    }
    if (f->claim == CLAIM_HELD) {
        f->writers++;
        lock_drop(&f->claim_lock);
        own_word(f, out);
        return 0;
    }
    f->claim = CLAIM_ASKING;
    f->number_inc = members_incarnation();
    f->number = next_number();
    lock_drop(&f->claim_lock);
    err = ask_for_claim(f, base, end, out);
    if (!err && out->where == WHERE_HERE)
        set_state(f, CLAIM_HELD, 1);
    else
        set_state(f, CLAIM_NONE, 0);
    return err;
}

void claim_close_writer(struct file *f)
{
    bool last;

    lock_take(&f->claim_lock);
    if (!f->writers)
        die("claim: a writer closed that was never counted");
    last = !--f->writers;
    lock_drop(&f->claim_lock);
    if (last)
        claim_give_back(f);
}

void claim_give_back(struct file *f)
{
    struct file_info info;
    uint64_t inc, number;
    bool given = false;

    lock_take(&f->claim_lock);
    if (f->claim == CLAIM_HELD && !f->writers) {
        store_info(f, &info);
        if (!info.dirty && store_clear_claim(f, info.base_known ? &info.base : NULL)) {
            own_remove(f->fid);
            inc = f->number_inc;
            number = f->number;
            f->claim = CLAIM_NONE;
            given = true;
            pthread_cond_broadcast(&f->claim_changed);
        }
    }
    lock_drop(&f->claim_lock);
    if (!given)
        return;
    if (file_unlinked(f))
        tell_free(f->fid, inc, number, &removed);
    else
        tell_free(f->fid, inc, number, info.base_known ? &info.base : NULL);
    file_put(f); /* the claim's own reference: the caller has another one */
}

/* ---- the claimant's side ---- */

int claim_carry_begin(struct file *f)
{
    int err = -ENOENT;

    lock_take(&f->claim_lock);
    if (f->claim == CLAIM_HELD) {
        f->writers++;
        f->last_carried++;
        err = 0;
    }
    lock_drop(&f->claim_lock);
    return err;
}

void claim_carry_end(struct file *f)
{
    claim_close_writer(f);
}

/* "Not mine": requests up to this number hold nothing (a WANT under way is not covered). */
static void say_not_mine(struct fid fid, struct item_have *have)
{
    struct file *f = file_find(fid);

    have->free_inc = members_incarnation();
    have->free_number = last_number;
    if (f) {
        lock_take(&f->claim_lock);
        if (f->claim == CLAIM_ASKING || f->claim == CLAIM_HELD)
            have->free_number = f->number - 1;
        lock_drop(&f->claim_lock);
        file_put(f);
    }
    tell_free(fid, have->free_inc, have->free_number, NULL);
}

static void answer_ask(void *arg)
{
    struct msg *m = arg, *r = msg_new(MSG_HAVE);
    struct item_have *items = xcalloc(m->ask.fids.n + 1, sizeof(*items));

    for (uint32_t i = 0; i < m->ask.fids.n; i++) {
        struct location l;

        if (claim_here(m->ask.fids.v[i].fid, &l))
            items[i] = (struct item_have){.mine = 1,
                                          .size = l.size,
                                          .mtime_ns = l.mtime_ns,
                                          .ctime_ns = l.ctime_ns,
                                          .blocks = l.blocks,
                                          .counter = l.counter};
        else
            say_not_mine(m->ask.fids.v[i].fid, &items[i]);
    }
    r->have.have.n = m->ask.fids.n;
    r->have.have.v = items;
    r->arena = items;
    peer_reply(m, r);
    msg_free(m);
}

static void handle_ask(struct msg *m)
{
    if (m->ask.fids.n > ASK_BATCH) {
        peer_reply_error(m, -EINVAL);
        msg_free(m);
    } else {
        loop_work(answer_ask, NULL, m);
    }
}

/* ---- a file without a name ---- */

/* The descriptor on the PFS goes last: while it is open the PFS does not give the inode's number to
 * a new file, which would have the same fid where the PFS tells no birth time. */
void claim_unlinked(struct file *f)
{
    bool held, open;

    lock_take(&f->lock);
    f->unlinked = true;
    open = f->opens > 0;
    lock_drop(&f->lock);
    store_set_deleted(f);
    claim_give_back(f);
    lock_take(&f->claim_lock);
    held = f->claim != CLAIM_NONE;
    lock_drop(&f->claim_lock);
    if (!open && !held)
        pfs_drop(f);
}

/* ---- names that changed on another node ---- */

/* "Gone" is believed only when the PFS says so too. */
static void check_gone(struct file *f)
{
    struct statx stx;
    int err = pfs_file_stat(f, &stx);

    if ((!err && !stx.stx_nlink) || err == -ENOENT || err == -ESTALE)
        claim_unlinked(f);
}

static void take_name(void *arg)
{
    struct msg *m = arg, *r;
    struct file *f = file_find(m->named.fid);

    if (f && m->named.gone)
        check_gone(f);
    else if (f)
        file_set_path(f, m->named.path);
    if (f)
        file_put(f);
    r = msg_new(MSG_NAMED_OK);
    r->named_ok.done = f != NULL;
    peer_reply(m, r);
    msg_free(m);
}

static void handle_named(struct msg *m)
{
    pool_submit(pool_data, take_name, m);
}

void claim_named(struct fid fid, uint64_t claimant, const char *path)
{
    struct msg *m = msg_new(MSG_NAMED);
    int err;

    m->named.fid = fid;
    m->named.gone = path == NULL;
    m->named.path = path ? path : "";
    err = peer_call(claimant, m, 5000, NULL, 0, NULL);
    if (err)
        log_warn("node %s could not be told the new name of a file that it writes (%s): it finds "
                 "it by its descriptor: %s",
                 members_name(claimant), strerror(-err), path ? path : "(removed)");
}

void claim_publish_same(struct fid fid, const struct version *before, const struct version *after)
{
    const struct view *v = members_view();
    struct msg *m;

    if (!v || version_eq(before, after) || before->size != after->size)
        return;
    m = msg_new(MSG_SAME);
    m->same.fid = fid;
    m->same.before = *before;
    m->same.after = *after;
    peer_send(home_of(v, fid), m);
}

/* ---- start, views, end ---- */

static int take_up(void *arg, struct file *f)
{
    unsigned *n = arg;
    struct file_info info;

    store_info(f, &info);
    if (!info.dirty) {
        store_clear_claim(f, info.base_known ? &info.base : NULL);
        return 0;
    }
    f->number_inc = members_incarnation();
    f->number = next_number();
    store_set_claim(f, f->number_inc, f->number, NULL);
    f->claim = CLAIM_HELD;
    file_ref(f);
    own_add(f->fid, f->number_inc, f->number, 0);
    (*n)++;
    return 0;
}

int claim_recover(void)
{
    unsigned n = 0;
    int err = store_each_claimed(take_up, &n);

    if (n)
        log_info(
            "%u files were not on the PFS when the daemon ended: they are served and flushed now",
            n);
    return err;
}

unsigned claim_held(void)
{
    return own_count();
}

static void give_back_one(struct fid fid, void *arg)
{
    struct file *f = file_find(fid);

    (void)arg;
    if (!f)
        return;
    claim_give_back(f);
    file_put(f);
}

unsigned claim_give_back_all(void)
{
    own_each(give_back_one, NULL);
    return own_count();
}

static void adopted(const struct view *v)
{
    own_adopted(v ? v->number : 0);
    home_adopted(v);
    lock_take(&pause_lock);
    pthread_cond_broadcast(&pause_cond);
    lock_drop(&pause_lock);
}

static void fill_adopted(const struct view *v, uint64_t to, struct msg *m)
{
    home_fill_adopted(v, to, m);
    own_list(v, to, &m->adopted.claims.n, &m->adopted.claims.v);
    locks_fill(v, to, &m->adopted.locks.n, &m->adopted.locks.v);
}

static void all_adopted(const struct view *v)
{
    home_all_adopted(v);
    lock_take(&pause_lock);
    pthread_cond_broadcast(&pause_cond);
    lock_drop(&pause_lock);
}

const struct members_ops claim_members_ops = {
    .fill_adopted = fill_adopted,
    .adopted = adopted,
    .heard_adopted = home_heard_adopted,
    .all_adopted = all_adopted,
};

void claim_start(void)
{
    lock_init(&pause_lock, RANK_LEAF);
    lock_init(&settled.lock, RANK_LEAF);
    lock_cond_init(&pause_cond);
    own_start();
    locks_start();
    peer_handle(MSG_ASK, handle_ask);
    peer_handle(MSG_NAMED, handle_named);
}

static void put_one(struct fid fid, void *arg)
{
    struct file *f = file_find(fid);

    (void)arg;
    if (f) {
        file_put(f);
        file_put(f); /* the claim's own */
    }
}

/* What is still claimed stays so on disk: the next start takes it up. */
void claim_stop(void)
{
    own_each(put_one, NULL);
    locks_stop();
    own_stop();
}
