/* home_copy.c - COPY: next gets what the home has, before a request is answered (docs/protocol.md,
 * rules 7 and 9).
 *
 *     record changed --> stamp + 1 --> COPY to next --> COPIED --> requests that wait for it are answered
 *
 * When the home is complete in a new view each next gets all its records at once, stamped (view,
 * 0).  Requests are sent again until they are answered or the view is over.
 */
#include "placement/claims/home_int.h"

#include "placement/ring/ring.h"
#include "transport/peer.h"

#include <stdlib.h>

/* ---- the home's side ---- */

struct copy {
    struct fid fid;
    uint64_t view, count, to;
    bool first;
};

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
    lock_items_add(r->fid, r->locks, 0, &m->copy.locks.n, &m->copy.locks.v);
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

    if (ring_home(home.ring, r->fid, 0) != members_self() ||
        ring_home(home.ring, r->fid, 1) != b->to)
        return;
    c->records.v = xrealloc(c->records.v, (c->records.n + 1) * sizeof(*c->records.v));
    c->records.v[c->records.n++] = record_item(r);
    c->locks_of.v = xrealloc(c->locks_of.v, (c->locks_of.n + 1) * sizeof(*c->locks_of.v));
    c->locks_of.v[c->locks_of.n++] = (struct item_fid_item){r->fid};
    lock_items_add(r->fid, r->locks, 0, &c->locks.n, &c->locks.v);
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

/* Sends it as it is now: a newer count replaces an older one. */
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

    lock_take(&home_lock);
    if (home.view && home.view->number == c->view)
        send_copy(c);
    else
        free(c);
    lock_drop(&home_lock);
}

static void take_copied(struct copy *c, int err)
{
    const struct member *to;
    struct record *r;

    if (!home.view || home.view->number != c->view) {
        free(c);
        return;
    }
    if (err) {
        if (err != -E_ASK_AGAIN)
            members_doubt(c->to);
        home_later(copy_again, free, c);
        return;
    }
    to = view_member(home.view, c->to);
    if (c->first && to) {
        home.acked[to - home.view->members] = true;
    } else if (!c->first) {
        r = record_find(c->fid);
        if (r && r->stamp_view == c->view)
            home_answer_pending(r, c->count);
    }
    free(c);
}

static void copied(void *arg, int err, struct msg *reply, bool *keep)
{
    (void)reply;
    (void)keep;
    lock_take(&home_lock);
    take_copied(arg, err);
    lock_drop(&home_lock);
}

void home_changed(struct record *r)
{
    uint64_t next = ring_home(home.ring, r->fid, 1);
    struct copy *c;

    r->stamp_view = home.view->number;
    r->stamp_count = ++home.count;
    r->touched_ms = boot_ms();
    if (!next) {
        home_answer_pending(r, r->stamp_count);
        return;
    }
    c = xcalloc(1, sizeof(*c));
    *c = (struct copy){r->fid, home.view->number, r->stamp_count, next, false};
    send_copy(c);
}

void home_copy_all(const struct view *v)
{
    for (uint32_t i = 0; i < v->nmembers; i++) {
        struct copy *c;

        if (v->members[i].id == members_self())
            continue;
        c = xcalloc(1, sizeof(*c));
        *c = (struct copy){.view = v->number, .to = v->members[i].id, .first = true};
        send_copy(c);
    }
}

/* ---- next's side ---- */

static bool newer(const struct item_record *a, const struct record *r)
{
    return a->stamp_view != r->stamp_view ? a->stamp_view > r->stamp_view
                                          : a->stamp_count >= r->stamp_count;
}

static void take_copy(const struct msg *m, const struct item_record *in)
{
    struct record *r;

    if (ring_home(home.ring, in->fid, 0) != m->head.sender ||
        ring_home(home.ring, in->fid, 1) != members_self() || in->stamp_view != home.view->number)
        return;
    r = record_make(in->fid);
    if (!newer(in, r))
        return;
    r->claimant = in->claimant;
    r->number_inc = in->number_inc;
    r->number = in->number;
    r->stamp_view = in->stamp_view;
    r->stamp_count = in->stamp_count;
    r->unknown = in->unknown;
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

    /* leaving: the farewells have said what this node has; a copy accepted now would not be in them */
    if (!home.view || members_leaving() || m->head.view != home.view->number ||
        !view_has(home.view, m->head.sender, m->head.incarnation)) {
        home_ask_again(m);
        return;
    }
    for (uint32_t i = 0; i < m->copy.records.n; i++)
        take_copy(m, &m->copy.records.v[i]);
    if (m->copy.first)
        collect_note_next(m->head.sender, home.view->number);
    r = msg_new(MSG_COPIED);
    r->copied.view = home.view->number;
    peer_reply(m, r);
    msg_free(m);
}

void home_copy_start(void)
{
    home_handle(MSG_COPY, handle_copy);
}
