/* home.c - the home answers: who has a file's latest bytes, who may have the claim, who holds which
 * lock (docs/protocol.md, rules 6-9, 11, 5a).
 *
 * A grant of a claim or a lock goes this way, and never shorter:
 *
 *     WANT/LOCK --> record (stamp + 1) --> COPY to next --> COPIED --> lease still valid? --> GRANT
 *
 * Whatever cannot be answered now (not this view, not complete, not settled, no lease) is answered
 * "ask again": the asker repeats with the same number.  When a view changes all that waits is
 * answered so.
 */
#include "placement/home.h"

#include "placement/record.h"
#include "placement/ring.h"
#include "transport/loop.h"
#include "transport/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS   4096
#define LATER_MS  100
#define SWEEP_MS  10000
#define FORGET_MS 60000 /* an empty record is kept so long, for messages that are late */
#define HINTS     16384
#define KNOWN_LOST                                                                                 \
    3 /* AT.known: there was a version, the home does not have it any more: look at the PFS */

static struct record *table[BUCKETS];
static unsigned nrecords;

static struct {
    const struct view *view; /* adopted; NULL: not acting */
    const struct ring *ring;
    bool complete;
    uint64_t count;   /* last stamp given out in this view */
    bool *acked;      /* by member index: COPIED(view, 0) came, or nothing to copy */
    unsigned waiting; /* blocking locks in all records */
} st;

static struct loop_timer *timer;
static uint64_t due_ms; /* of the timer, 0: not set */
static _Atomic unsigned shown_records, shown_locks, shown_lost;

/* What the PFS has, as the last one who knew said: only a hint, gone with the view. */
static struct hint {
    struct fid fid;
    uint8_t known;
    /* another file's hint, or a version that nobody told, was here: "none" does not mean "nothing
     * changed" */
    bool lost;
    struct version version, same_as;
} * hints;

/* The next tick comes in ms at the latest.  A nearer one stays: a stream of requests must not put
 * it off for ever. */
static void arm(uint64_t ms)
{
    uint64_t at = boot_ms() + ms;

    if (!timer || (due_ms && due_ms <= at))
        return;
    due_ms = at;
    loop_timer_set(timer, ms, 0);
}

/* ---- records ---- */

static struct record **slot_of(struct fid fid)
{
    struct record **p = &table[fid.lo % BUCKETS];

    while (*p && !fid_eq((*p)->fid, fid))
        p = &(*p)->hash_next;
    return p;
}

struct record *record_find(struct fid fid)
{
    return *slot_of(fid);
}

struct record *record_make(struct fid fid)
{
    struct record **p = slot_of(fid);

    if (!*p) {
        *p = xcalloc(1, sizeof(**p));
        (*p)->fid = fid;
        nrecords++;
        arm(SWEEP_MS);
    }
    (*p)->touched_ms = boot_ms();
    return *p;
}

void record_each(void (*fn)(struct record *r, void *arg), void *arg)
{
    for (unsigned b = 0; b < BUCKETS; b++)
        for (struct record *r = table[b]; r; r = r->hash_next)
            fn(r, arg);
}

void record_sweep(bool (*drop)(const struct record *r, void *arg), void *arg)
{
    for (unsigned b = 0; b < BUCKETS; b++) {
        for (struct record **p = &table[b]; *p;) {
            struct record *r = *p;

            if (!drop(r, arg)) {
                p = &r->hash_next;
                continue;
            }
            *p = r->hash_next;
            lock_list_free(&r->locks);
            free(r);
            nrecords--;
        }
    }
}

unsigned record_count(void)
{
    return nrecords;
}

/* ---- hints ---- */

static struct hint *hint_of(struct fid fid)
{
    if (!hints)
        hints = xcalloc(HINTS, sizeof(*hints));
    return &hints[fid.lo % HINTS];
}

/* v NULL: the file was given back, and the version is not known. */
static void hint_set(struct fid fid, const struct version *v)
{
    struct hint *h = hint_of(fid);
    bool lost = h->lost || !v || (h->known && !fid_eq(h->fid, fid));

    if (v && h->known == 2 && fid_eq(h->fid, fid) && version_eq(&h->version, v))
        return; /* given back as it was: what it is the same as still holds */
    *h = (struct hint){.fid = fid, .known = v != NULL, .lost = lost};
    if (v)
        h->version = *v;
}

/* known stays 0 only if nobody gave this file back in this view: then what the asker saw of it
 * still holds. */
static void hint_get(struct fid fid, uint8_t *known, struct version *version,
                     struct version *same_as)
{
    const struct hint *h = hint_of(fid);

    if (!h->known || !fid_eq(h->fid, fid)) {
        *known = h->lost ? KNOWN_LOST : 0;
        return;
    }
    *known = h->known;
    *version = h->version;
    *same_as = h->same_as;
}

/* ---- may we answer? ---- */

/* WHERE: complete and under a lease (rule 8). */
static bool may_tell(const struct msg *m, struct fid fid)
{
    return st.view && st.complete && m->head.view == st.view->number && members_lease() &&
           ring_home(st.ring, fid, 0) == members_self();
}

/* Grants: also settled, and next has this view's records (rule 9). */
static bool may_grant(const struct msg *m, struct fid fid)
{
    uint64_t next;
    const struct member *n;

    if (!may_tell(m, fid) || !members_settled())
        return false;
    next = ring_home(st.ring, fid, 1);
    n = view_member(st.view, next);
    return !n || st.acked[n - st.view->members];
}

static void ask_again(struct msg *m)
{
    peer_reply_error(m, -E_ASK_AGAIN);
    msg_free(m);
}

static void ask_again_list(struct pending **list)
{
    struct pending *p;

    while ((p = *list)) {
        *list = p->next;
        ask_again(p->m);
        free(p);
    }
}

static void push(struct pending **list, struct msg *m, uint64_t count)
{
    struct pending *p = xcalloc(1, sizeof(*p));

    p->m = m;
    p->count = count;
    while (*list)
        list = &(*list)->next;
    *list = p;
}

/* An absent node that may have the file's latest bytes, or locks on it; 0: all is known. */
static uint64_t blind_claim(const struct record *r, struct fid fid)
{
    bool told = r && (!r->blind || r->claimant || r->freed_by);

    return told ? 0 : collect_blind(st.view, fid);
}

static uint64_t blind_locks(const struct record *r, struct fid fid)
{
    return r && !r->blind ? 0 : collect_blind(st.view, fid);
}

/* A record that says something of the claim: one of members' locks alone must not look like
 * "unclaimed". */
static bool is_stamp(const struct record *r)
{
    return !r->blind || r->claimant || r->freed_by;
}

/* ---- answering ---- */

static void reply_grant(struct msg *m, enum at_where where, uint64_t node)
{
    struct msg *r = msg_new(MSG_GRANT);

    r->grant.where = where;
    r->grant.node = node;
    if (where == AT_GRANTED) {
        struct version unused;

        hint_get(m->want.fid, &r->grant.known, &r->grant.version, &unused);
    }
    peer_reply(m, r);
    msg_free(m);
}

static void reply_locked(struct msg *m, const struct held_lock *found)
{
    struct msg *r = msg_new(MSG_LOCKED);

    r->locked.type = HELD_NONE;
    if (found) {
        r->locked.type = found->type;
        r->locked.start = found->start;
        r->locked.end = found->end;
        r->locked.pid = found->pid;
        r->locked.node = found->node;
    }
    peer_reply(m, r);
    msg_free(m);
}

/* Next has the record and we still may: the answer goes out. */
static void answer_pending(struct record *r, uint64_t copied)
{
    while (r->pending && r->pending->count <= copied) {
        struct pending *p = r->pending;

        r->pending = p->next;
        if (!may_tell(p->m, r->fid) || !members_settled())
            ask_again(p->m);
        else if (p->m->head.type == MSG_WANT)
            reply_grant(p->m, AT_GRANTED, members_self());
        else
            reply_locked(p->m, NULL);
        free(p);
    }
}

/* ---- COPY, our side ---- */

struct copy {
    struct fid fid;
    uint64_t view, count, to;
    bool first;
};

/* except: a node whose locks are left out, 0: none. */
static void add_lock_items(struct fid fid, const struct held_lock *list, uint64_t except,
                           uint32_t *n, struct item_lock **v)
{
    for (; list; list = list->next) {
        if (list->node == except)
            continue;
        *v = xrealloc(*v, (*n + 1) * sizeof(**v));
        (*v)[(*n)++] = lock_item(fid, list);
    }
}

static struct item_record record_item(const struct record *r)
{
    return (struct item_record){r->fid,    r->claimant,   r->number_inc,
                                r->number, r->stamp_view, r->stamp_count};
}

static void send_copy(struct copy *c);
static void copied(void *arg, int err, struct msg *reply, bool *keep);

/* One record with its locks. */
static void send_one_copy(struct copy *c, const struct record *r)
{
    struct msg *m = msg_new(MSG_COPY);
    struct item_record item = record_item(r);
    struct item_fid_item fid = {r->fid};
    struct item_lock *locks;

    m->copy.records.n = 1;
    m->copy.records.v = &item;
    m->copy.locks_of.n = 1;
    m->copy.locks_of.v = &fid;
    add_lock_items(r->fid, r->locks, 0, &m->copy.locks.n, &m->copy.locks.v);
    locks = m->copy.locks.v;
    peer_request(c->to, m, T_PING, NULL, 0, copied, c);
    free(locks);
}

struct batch {
    uint64_t to;
    struct msg *m;
};

static void add_to_batch(struct record *r, void *arg)
{
    struct batch *b = arg;
    struct body_copy *c = &b->m->copy;

    if (!is_stamp(r) || ring_home(st.ring, r->fid, 0) != members_self() ||
        ring_home(st.ring, r->fid, 1) != b->to)
        return;
    c->records.v = xrealloc(c->records.v, (c->records.n + 1) * sizeof(*c->records.v));
    c->records.v[c->records.n++] = record_item(r);
    c->locks_of.v = xrealloc(c->locks_of.v, (c->locks_of.n + 1) * sizeof(*c->locks_of.v));
    c->locks_of.v[c->locks_of.n++] = (struct item_fid_item){r->fid};
    add_lock_items(r->fid, r->locks, 0, &c->locks.n, &c->locks.v);
}

/* Stamp (view, 0): all records whose next is c->to. */
static void send_first_copy(struct copy *c)
{
    struct batch b = {c->to, msg_new(MSG_COPY)};
    struct body_copy lists;

    b.m->copy.first = 1;
    record_each(add_to_batch, &b);
    lists = b.m->copy;
    peer_request(c->to, b.m, T_SUSPECT, NULL, 0, copied, c);
    free(lists.records.v);
    free(lists.locks_of.v);
    free(lists.locks.v);
}

/* Sends it as it is now: a newer count makes the older one needless. */
static void send_copy(struct copy *c)
{
    const struct record *r = c->first ? NULL : record_find(c->fid);

    if (c->first)
        send_first_copy(c);
    else if (r && r->stamp_view == c->view && r->stamp_count == c->count)
        send_one_copy(c, r);
    else
        free(c);
}

static void copy_again(void *arg)
{
    struct copy *c = arg;

    if (st.view && st.view->number == c->view)
        send_copy(c);
    else
        free(c);
}

static void copied(void *arg, int err, struct msg *reply, bool *keep)
{
    struct copy *c = arg;
    const struct member *to;
    struct record *r;

    (void)reply;
    (void)keep;
    if (!st.view || st.view->number != c->view) {
        free(c);
        return;
    }
    if (err) {
        if (err != -E_ASK_AGAIN)
            members_doubt(c->to);
        home_later(copy_again, free, c);
        return;
    }
    to = view_member(st.view, c->to);
    if (c->first && to) {
        st.acked[to - st.view->members] = true;
    } else if (!c->first) {
        r = record_find(c->fid);
        if (r && r->stamp_view == c->view)
            answer_pending(r, c->count);
    }
    free(c);
}

/* The record changed: next gets it, and then what waits for it is answered. */
static void changed(struct record *r)
{
    uint64_t next = ring_home(st.ring, r->fid, 1);
    struct copy *c;

    r->stamp_view = st.view->number;
    r->stamp_count = ++st.count;
    r->touched_ms = boot_ms();
    if (!next || !is_stamp(r)) {
        answer_pending(r, r->stamp_count);
        return;
    }
    c = xcalloc(1, sizeof(*c));
    *c = (struct copy){r->fid, st.view->number, r->stamp_count, next, false};
    send_copy(c);
}

/* ---- COPY, next's side ---- */

static bool newer(const struct item_record *a, const struct record *r)
{
    return a->stamp_view != r->stamp_view ? a->stamp_view > r->stamp_view
                                          : a->stamp_count >= r->stamp_count;
}

static void take_copy(const struct msg *m, const struct item_record *in)
{
    struct record *r;

    if (ring_home(st.ring, in->fid, 0) != m->head.sender ||
        ring_home(st.ring, in->fid, 1) != members_self() || in->stamp_view != st.view->number)
        return;
    r = record_make(in->fid);
    if (!newer(in, r))
        return;
    r->claimant = in->claimant;
    r->number_inc = in->number_inc;
    r->number = in->number;
    r->stamp_view = in->stamp_view;
    r->stamp_count = in->stamp_count;
    lock_list_free(&r->locks);
    for (uint32_t i = 0; i < m->copy.locks.n; i++) {
        const struct item_lock *l = &m->copy.locks.v[i];

        if (fid_eq(l->fid, in->fid)) {
            struct held_lock held = lock_of_item(l);
            lock_add(&r->locks, &held);
        }
    }
}

static void handle_copy(struct msg *m)
{
    struct msg *r;

    /* leaving: the farewells say what this node has; a copy taken now would not be in them */
    if (!st.view || members_leaving() || m->head.view != st.view->number ||
        !view_has(st.view, m->head.sender, m->head.incarnation)) {
        ask_again(m);
        return;
    }
    for (uint32_t i = 0; i < m->copy.records.n; i++)
        take_copy(m, &m->copy.records.v[i]);
    if (m->copy.first)
        collect_note_next(m->head.sender, st.view->number);
    r = msg_new(MSG_COPIED);
    r->copied.view = st.view->number;
    peer_reply(m, r);
    msg_free(m);
}

/* ---- claims ---- */

static bool covers(uint64_t inc, uint64_t number, uint64_t inc2, uint64_t number2)
{
    return inc != inc2 ? inc > inc2 : number >= number2;
}

static void grant_claim(struct record *r, struct msg *m)
{
    r->claimant = m->head.sender;
    r->number_inc = m->head.incarnation;
    r->number = m->want.number;
    push(&r->pending, m, st.count + 1);
    changed(r);
}

static void handle_want(struct msg *m)
{
    struct fid fid = m->want.fid;
    struct record *r;
    uint64_t blind;

    if (!may_grant(m, fid)) {
        ask_again(m);
        return;
    }
    r = record_find(fid);
    if (!r || !r->claimant) {
        blind = blind_claim(r, fid);
        if (blind)
            reply_grant(m, AT_LOST, blind);
        else if (r && r->freed_by == m->head.sender &&
                 covers(r->freed_inc, r->freed_number, m->head.incarnation, m->want.number))
            peer_reply_error(m, -ESTALE), msg_free(m);
        else
            grant_claim(record_make(fid), m);
    } else if (!view_member(st.view, r->claimant)) {
        reply_grant(m, AT_LOST, r->claimant);
    } else if (r->claimant != m->head.sender) {
        reply_grant(m, AT_NODE, r->claimant);
    } else if (covers(m->head.incarnation, m->want.number, r->number_inc, r->number)) {
        grant_claim(r, m); /* a new request, or the answer to this one was lost */
    } else {
        peer_reply_error(m, -ESTALE);
        msg_free(m);
    }
}

static void where_is(struct fid fid, struct item_at *at)
{
    const struct record *r = record_find(fid);
    uint64_t blind;

    memset(at, 0, sizeof(*at));
    if (r && r->claimant) {
        at->node = r->claimant;
        at->where = view_member(st.view, r->claimant) ? AT_NODE : AT_LOST;
        return;
    }
    blind = blind_claim(r, fid);
    if (blind) {
        at->where = AT_LOST;
        at->node = blind;
        return;
    }
    at->where = AT_PFS;
    hint_get(fid, &at->known, &at->version, &at->same_as);
}

static void handle_where(struct msg *m)
{
    struct msg *r;

    for (uint32_t i = 0; i < m->where.fids.n; i++) {
        if (!may_tell(m, m->where.fids.v[i].fid)) {
            ask_again(m);
            return;
        }
    }
    r = msg_new(MSG_AT);
    r->at.at.n = m->where.fids.n;
    r->at.at.v = xcalloc(r->at.at.n + 1, sizeof(*r->at.at.v));
    for (uint32_t i = 0; i < r->at.at.n; i++)
        where_is(m->where.fids.v[i].fid, &r->at.at.v[i]);
    r->arena = r->at.at.v; /* freed with the message */
    peer_reply(m, r);
    msg_free(m);
}

static void handle_free(struct msg *m)
{
    const struct body_free *f = &m->free;
    struct record *r;
    struct msg *done;

    if (!may_tell(m, f->fid)) {
        ask_again(m);
        return;
    }
    r = record_find(f->fid);
    if (r && r->claimant == m->head.sender &&
        covers(f->number_inc, f->number, r->number_inc, r->number)) {
        r->claimant = 0;
        r->freed_by = m->head.sender;
        r->freed_inc = f->number_inc;
        r->freed_number = f->number;
        hint_set(f->fid, f->known ? &f->version : NULL);
        /* a grant that its taker no longer waits for; locks are asked for again */
        ask_again_list(&r->pending);
        changed(r);
    }
    done = msg_new(MSG_FREED);
    done->freed.done = 1;
    peer_reply(m, done);
    msg_free(m);
}

static void handle_same(struct msg *m)
{
    const struct body_same *s = &m->same;
    struct hint *h;

    if (st.view && m->head.view == st.view->number &&
        ring_home(st.ring, s->fid, 0) == members_self() && s->before.size == s->after.size) {
        h = hint_of(s->fid);
        if (!h->known || !fid_eq(h->fid, s->fid))
            *h = (struct hint){.fid = s->fid,
                               .known = 2,
                               .lost = h->lost || h->known,
                               .version = s->after,
                               .same_as = s->before};
        /* else it is late: a newer version was told since */
        else if (version_eq(&h->version, &s->before))
            *h = (struct hint){.fid = s->fid,
                               .known = 2,
                               .lost = h->lost,
                               .version = s->after,
                               .same_as = h->known == 2 ? h->same_as : s->before};
    }
    msg_free(m);
}

/* ---- locks (5a) ---- */

enum { LOCK_SET, LOCK_SET_WAIT, LOCK_UNLOCK, LOCK_TEST, LOCK_CANCEL, LOCK_DROP_OWNER };

static struct held_lock lock_of(const struct msg *m)
{
    const struct body_lock *l = &m->lock;

    return (struct held_lock){.node = m->head.sender,
                              .incarnation = m->head.incarnation,
                              .owner = l->owner,
                              .kind = l->kind,
                              .type = l->type,
                              .start = l->start,
                              .end = l->end,
                              .pid = l->pid};
}

static void wake_waiting(struct record *r);

/* A holder that is in no view any more may still run: nobody gets its locks until it is back (or
 * forgotten). */
static bool held_by_absent(const struct held_lock *l)
{
    static _Atomic uint64_t said;

    if (view_has(st.view, l->node, l->incarnation))
        return false;
    if (log_every(&said, 10000))
        log_warn("a lock is held by node %s, which left the session: who asks for it gets EIO "
                 "until that node is back",
                 members_name(l->node));
    return true;
}

static void grant_lock(struct record *r, struct msg *m, const struct held_lock *want)
{
    lock_apply(&r->locks, want);
    push(&r->pending, m, st.count + 1);
    changed(r);
}

/* flock conversion is not atomic (flock(2)): the old lock goes first, also when the new one must
 * wait. */
static void drop_for_conversion(struct record *r, const struct held_lock *want)
{
    struct held_lock none = *want;

    none.type = HELD_NONE;
    if (want->kind == LOCK_FLOCK && lock_apply(&r->locks, &none))
        changed(r);
}

/* Returns false if it must wait. */
static bool try_lock(struct record *r, struct msg *m, bool wait)
{
    struct held_lock want = lock_of(m);
    const struct held_lock *in_the_way = lock_conflict(r->locks, &want);

    if (!in_the_way) {
        grant_lock(r, m, &want);
        return true;
    }
    if (held_by_absent(in_the_way)) {
        peer_reply_error(m, -EIO);
        msg_free(m);
        return true;
    }
    drop_for_conversion(r, &want);
    if (wait)
        return false;
    peer_reply_error(m, -EAGAIN);
    msg_free(m);
    return true;
}

static void wake_waiting(struct record *r)
{
    for (struct pending **p = &r->waiting; *p;) {
        struct pending *w = *p;

        if (!try_lock(r, w->m, true)) {
            p = &w->next;
            continue;
        }
        *p = w->next;
        free(w);
        st.waiting--;
    }
}

static void unlock(struct record *r, const struct msg *m)
{
    struct held_lock none = lock_of(m);

    none.type = HELD_NONE;
    if (m->lock.op == LOCK_DROP_OWNER) {
        none.start = 0;
        none.end = UINT64_MAX;
    }
    if (!lock_apply(&r->locks, &none))
        return;
    changed(r);
    wake_waiting(r);
}

/* All with its number: a request may be here twice, when its sender heard nothing for a while. */
static void cancel(struct record *r, const struct msg *m)
{
    for (struct pending **p = &r->waiting; *p;) {
        struct pending *w = *p;

        if (w->m->head.sender != m->head.sender || w->m->head.incarnation != m->head.incarnation ||
            w->m->lock.number != m->lock.number) {
            p = &w->next;
            continue;
        }
        *p = w->next;
        peer_reply_error(w->m, -EINTR);
        msg_free(w->m);
        free(w);
        st.waiting--;
    }
}

static void ask_lock(struct msg *m)
{
    struct record *r = record_make(m->lock.fid);
    struct held_lock want = lock_of(m);
    bool wait = m->lock.op == LOCK_SET_WAIT;

    if (m->lock.op == LOCK_TEST) {
        reply_locked(m, lock_conflict(r->locks, &want));
    } else if (!try_lock(r, m, wait)) {
        push(&r->waiting, m, 0);
        st.waiting++;
        arm(T_PING);
    }
    wake_waiting(r); /* a conversion may have let others in */
}

static void handle_lock(struct msg *m)
{
    const struct body_lock *l = &m->lock;
    bool asks = l->op == LOCK_SET || l->op == LOCK_SET_WAIT || l->op == LOCK_TEST;
    struct record *r;

    if (l->kind > LOCK_FLOCK || l->type > HELD_NONE || l->start > l->end ||
        l->op > LOCK_DROP_OWNER || (asks && l->type == HELD_NONE)) {
        peer_reply_error(m, -EINVAL);
        msg_free(m);
    } else if (asks ? !may_grant(m, l->fid) : !may_tell(m, l->fid)) {
        ask_again(m);
    } else if (asks && blind_locks(record_find(l->fid), l->fid)) {
        peer_reply_error(m, -EIO);
        msg_free(m);
    } else if (asks) {
        ask_lock(m);
    } else {
        r = record_find(l->fid);
        if (r && l->op == LOCK_CANCEL)
            cancel(r, m);
        else if (r)
            unlock(r, m);
        reply_locked(m, NULL);
    }
}

/* ---- time ---- */

/* What is to be tried again at the next tick. */
static struct later {
    struct later *next;
    void (*fn)(void *arg), (*drop)(void *arg);
    void *arg;
} * laters, **laters_end = &laters;

void home_later(void (*fn)(void *arg), void (*drop)(void *arg), void *arg)
{
    struct later *l;

    if (!timer) { /* after home_stop */
        if (drop)
            drop(arg);
        return;
    }
    l = xcalloc(1, sizeof(*l));
    l->fn = fn;
    l->drop = drop;
    l->arg = arg;
    *laters_end = l; /* in order: locks are asked for again in the order they came */
    laters_end = &l->next;
    arm(LATER_MS);
}

static void run_laters(void)
{
    struct later *list = laters, *l;

    laters = NULL;
    laters_end = &laters;
    while ((l = list)) {
        list = l->next;
        l->fn(l->arg);
        free(l);
    }
}

static void say_working(struct record *r, void *arg)
{
    (void)arg;
    for (struct pending *p = r->waiting; p; p = p->next)
        peer_working(p->m);
}

static bool forgettable(const struct record *r, void *arg)
{
    const uint64_t *t = arg;

    return record_empty(r) && *t - r->touched_ms > FORGET_MS &&
           !(st.view && collect_blind(st.view, r->fid));
}

static void show(struct record *r, void *arg)
{
    unsigned *n = arg; /* locks, lost */

    for (const struct held_lock *l = r->locks; l; l = l->next)
        n[0]++;
    n[1] += r->claimant && st.view && !view_member(st.view, r->claimant);
}

static void tick(void *arg)
{
    uint64_t t = boot_ms();
    unsigned n[2] = {0, 0};

    (void)arg;
    due_ms = 0;
    run_laters();
    if (st.waiting)
        record_each(say_working, NULL);
    record_sweep(forgettable, &t);
    record_each(show, n);
    shown_records = nrecords;
    shown_locks = n[0];
    shown_lost = n[1];
    if (st.waiting)
        arm(T_PING);
    else if (nrecords)
        arm(SWEEP_MS);
}

void home_status(struct home_status *out)
{
    *out = (struct home_status){shown_records, shown_locks, shown_lost};
}

/* ---- views ---- */

static void let_go(struct record *r, void *arg)
{
    (void)arg;
    ask_again_list(&r->pending);
    ask_again_list(&r->waiting);
}

void home_adopted(const struct view *v)
{
    record_each(let_go, NULL);
    st.waiting = 0;
    st.complete = false;
    st.count = 0;
    st.view = v;
    st.ring = ring_of(v);
    free(st.acked);
    st.acked = v ? xcalloc(v->nmembers + 1, sizeof(*st.acked)) : NULL;
    free(hints);
    hints = NULL;
    collect_begin(v);
}

struct fill {
    const struct ring *ring;
    uint64_t to;
    struct body_adopted *b;
};

static void fill_one(struct record *r, void *arg)
{
    struct fill *f = arg;

    if (!is_stamp(r) || (f->to && ring_home(f->ring, r->fid, 0) != f->to))
        return;
    f->b->records.v = xrealloc(f->b->records.v, (f->b->records.n + 1) * sizeof(*f->b->records.v));
    f->b->records.v[f->b->records.n++] = record_item(r);
    /* Of its own locks a node's own list speaks (locks_fill), not what it once had as home or
     * next. */
    add_lock_items(r->fid, r->locks, members_self(), &f->b->locks.n, &f->b->locks.v);
}

void home_fill_adopted(const struct view *v, uint64_t to, struct msg *m)
{
    struct fill f = {ring_of(v), to, &m->adopted};

    collect_fill(v, &m->adopted);
    record_each(fill_one, &f);
}

void home_heard_adopted(const struct view *v, uint64_t from, const struct msg *m)
{
    uint64_t incarnation = from == members_self() ? members_incarnation() : m->head.incarnation;

    collect_report(v, from, incarnation, &m->adopted);
}

void home_all_adopted(const struct view *v)
{
    collect_finish(v);
    st.complete = true;
    arm(T_PING);
    for (uint32_t i = 0; i < v->nmembers; i++) {
        struct copy *c;

        if (v->members[i].id == members_self())
            continue;
        c = xcalloc(1, sizeof(*c));
        *c = (struct copy){.view = v->number, .to = v->members[i].id, .first = true};
        send_copy(c);
    }
}

static void make_timer(void *arg)
{
    (void)arg;
    timer = loop_timer_new(tick, NULL);
}

void home_start(void)
{
    loop_call(make_timer, NULL);
    peer_handle(MSG_WANT, handle_want);
    peer_handle(MSG_WHERE, handle_where);
    peer_handle(MSG_FREE, handle_free);
    peer_handle(MSG_COPY, handle_copy);
    peer_handle(MSG_LOCK, handle_lock);
    peer_handle(MSG_SAME, handle_same);
}

static bool all(const struct record *r, void *arg)
{
    (void)r;
    (void)arg;
    return true;
}

static void stop_here(void *arg)
{
    struct later *l;

    (void)arg;
    record_each(let_go, NULL);
    record_sweep(all, NULL);
    while ((l = laters)) {
        laters = l->next;
        if (l->drop)
            l->drop(l->arg);
        free(l);
    }
    laters_end = &laters;
    loop_timer_free(timer);
    timer = NULL;
    due_ms = 0;
    free(st.acked);
    st.acked = NULL;
    free(hints);
    hints = NULL;
    collect_stop();
}

void home_stop(void)
{
    loop_call(stop_here, NULL);
}
