/* members_adopt.c - adopting a view, ADOPTED and its answers (docs/protocol.md, rules 3 and 5). */
#include "transport/members_int.h"

#include "transport/loop.h"
#include "transport/peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ADOPTED(view) that a node sent as it left, kept until that view is adopted. */
struct farewell {
    struct farewell *next;
    struct msg *m;
};
static struct farewell *farewells;

/* ---- adopting (rule 3) ---- */

struct adopted_send {
    uint64_t to, view;
    bool farewell;
    const struct view *contents_for;
};

static void send_adopted(struct adopted_send *s);

static void resend_adopted(void *arg)
{
    struct adopted_send *s = arg;

    if (members_st.view && members_st.view->number == s->view &&
        view_member(members_st.view, s->to))
        send_adopted(s);
    else
        free(s);
}

/* A timer per message to send again would be a crowd: the tick does it. */
static struct resend {
    struct resend *next;
    struct adopted_send *s;
} * resends;

static void adopted_answered(void *arg, int err, struct msg *reply, bool *keep)
{
    struct adopted_send *s = arg;
    struct resend *r;

    (void)reply;
    (void)keep;
    if (members_st.left) {
        free(s);
        return;
    }
    if (!err) {
        if (s->farewell && members_st.view && members_st.view->number == s->view)
            members_node_of(s->to, 0)->owes = false;
        free(s);
        if (members_st.leaving)
            members_leave_step();
        return;
    }
    if (members_no_contact(err))
        members_doubt(s->to);
    r = xcalloc(1, sizeof(*r));
    r->s = s;
    r->next = resends;
    resends = r;
}

void members_resend_all(void)
{
    struct resend *list = resends, *r;

    resends = NULL;
    while ((r = list)) {
        list = r->next;
        resend_adopted(r->s);
        free(r);
    }
}

/* It has adopted the view now. */
static void resend_to(uint64_t id)
{
    for (struct resend **p = &resends, *r; (r = *p);) {
        if (r->s->to != id) {
            p = &r->next;
            continue;
        }
        *p = r->next;
        resend_adopted(r->s);
        free(r);
    }
}

static struct msg *adopted_msg(const struct view *v, uint64_t to, bool farewell)
{
    struct msg *m = msg_new(MSG_ADOPTED);

    m->adopted.view = v->number;
    m->adopted.last = farewell ? members_st.view->number : members_st.last_before;
    m->adopted.settled = farewell ? members_settled() : members_st.prev_settled;
    m->adopted.leaving = farewell;
    members_st.cfg.ops.fill_adopted(v, farewell ? 0 : to, m);
    return m;
}

static void free_lists(struct body_adopted *b)
{
    free(b->nextof.v);
    free(b->blinds.v);
    free(b->claims.v);
    free(b->records.v);
    free(b->locks.v);
}

static void send_adopted(struct adopted_send *s)
{
    struct msg *m = adopted_msg(s->contents_for, s->to, s->farewell);
    struct body_adopted lists = m->adopted;

    peer_request(s->to, m, T_SUSPECT, NULL, 0, adopted_answered, s);
    free_lists(&lists);
}

static void send_to(uint64_t to, const struct view *contents_for, bool farewell)
{
    struct adopted_send *s = xcalloc(1, sizeof(*s));

    *s = (struct adopted_send){to, members_st.view->number, farewell, contents_for};
    send_adopted(s);
}

static bool said_farewell(uint64_t view, uint64_t id)
{
    for (struct farewell *f = farewells; f; f = f->next)
        if (f->m->head.sender == id && f->m->adopted.view == view)
            return true;
    return false;
}

/* Rule 5, the part without waiting: nobody of the view before is missing in v.  Who left cleanly had
 * stopped acting; an older incarnation of a member is dead: the lock on the cache directory lets no
 * two run. */
static bool nobody_missing(const struct view *before, const struct view *v)
{
    for (uint32_t i = 0; i < before->nmembers; i++) {
        const struct member *was = &before->members[i], *is = view_member(v, was->id);

        if (!(is && is->incarnation >= was->incarnation) && !said_farewell(v->number, was->id))
            return false;
    }
    return true;
}

/* ... nor of any view since the first one: who is left out is absent in every view that follows, until
 * it is back or forgotten (which takes longer than W), and who left cleanly had stopped acting.  So a
 * node that was alone and died grants at once when it is back, however many views ago that began. */
static bool nobody_ever_missing(const struct view *v)
{
    return !v->nabsent;
}

static void all_adopted(void)
{
    const struct view *v = members_st.view, *before = members_view_number(v->number - 1);

    if ((members_st.any_settled && before && nobody_missing(before, v)) || nobody_ever_missing(v))
        members_now.settled_at_ms = 0;
    members_st.cfg.ops.all_adopted(members_st.view);
}

static void take_adopted(uint64_t from, const struct msg *m)
{
    const struct member *who = view_member(members_st.view, from);

    if (!who || members_st.heard[who - members_st.view->members])
        return;
    members_st.heard[who - members_st.view->members] = true;
    members_st.any_settled |= m->adopted.settled;
    members_st.cfg.ops.heard_adopted(members_st.view, from, m);
    for (uint32_t i = 0; i < members_st.view->nmembers; i++)
        if (!members_st.heard[i])
            return;
    all_adopted();
}

/* Reports of nodes that left count as a member's for rule 7; older ones are of no use any more. */
static void take_farewells(void)
{
    struct farewell **p = &farewells, *f;

    while ((f = *p)) {
        uint64_t view = f->m->adopted.view;

        if (view == members_st.view->number && !view_member(members_st.view, f->m->head.sender))
            members_st.cfg.ops.heard_adopted(members_st.view, f->m->head.sender, f->m);
        if (view >= members_st.view->number) {
            p = &f->next;
        } else {
            *p = f->next;
            msg_free(f->m);
            free(f);
        }
    }
}

static void send_all_adopted(const struct view *v)
{
    struct msg *own;

    members_st.cfg.ops.fill_begin(v);
    own = adopted_msg(v, members_st.cfg.self.id, false);
    take_farewells();
    for (uint32_t i = 0; i < v->nmembers && members_st.view == v; i++)
        if (v->members[i].id != members_st.cfg.self.id)
            send_to(v->members[i].id, v, false);
    members_st.cfg.ops.fill_end();
    if (members_st.view == v)
        take_adopted(members_st.cfg.self.id, own);
    free_lists(&own->adopted);
    msg_free(own);
}

/* What nodes told us of their wishes was about the view before. */
static void forget_wishes(const struct view *v)
{
    for (struct node *n = members_st.nodes; n; n = n->next) {
        n->parting = n->leaves = n->owes = false;
        if (view_has(v, n->id, n->incarnation))
            n->wants_in = false;
    }
    members_st.leaves_since_ms = 0;
    members_st.dead_since_ms = 0;
    members_st.told = 0;
}

static void fence(const struct view *v)
{
    if (!members_st.view)
        return;
    log_warn("view %lu does not have this node: it is fenced: its own files go on, other opens "
             "wait until it has joined again",
             (unsigned long)v->number);
    members_st.view = NULL;
    members_now.adopted = NULL;
    members_now.lease_until_ms = 0;
    peer_set_view(0);
    members_st.cfg.ops.adopted(NULL);
    members_st.join_backoff_ms = MIN(MAX(members_st.join_backoff_ms * 2, 1000), JOIN_BACKOFF_MAX);
    if (boot_ms() - members_st.member_since_ms > JOIN_BACKOFF_MAX)
        members_st.join_backoff_ms = 0;
    members_st.join_at_ms = boot_ms() + members_st.join_backoff_ms;
    members_wake();
}

void members_adopt(const struct view *v, uint64_t t0)
{
    if (!view_has(v, members_st.cfg.self.id, members_st.cfg.self.incarnation)) {
        if (members_st.leaving && members_st.view) {
            members_st.left = true;
            members_wake();
        } else {
            fence(v);
        }
        return;
    }
    members_st.prev_settled =
        members_st.view && members_st.view->number == v->number - 1 && members_settled();
    members_st.view = v;
    members_st.any_settled = false;
    free(members_st.heard);
    members_st.heard = xcalloc(v->nmembers, sizeof(*members_st.heard));
    members_st.last_before = members_st.last;
    members_st.last = v->number;
    forget_wishes(v);
    if (!members_st.member_since_ms || !members_now.adopted)
        members_st.member_since_ms = boot_ms();
    members_now.settled_at_ms = members_st.first_seen_ms + T_WAIT;
    members_now.lease_until_ms = t0 + T_LEASE;
    members_now.adopted = v;
    peer_set_view(v->number);
    count(views_adopted, 1);
    log_info("view %lu: %u nodes, %u absent", (unsigned long)v->number, v->nmembers, v->nabsent);
    members_st.cfg.ops.adopted(v);
    send_all_adopted(v);
    members_wake();
    if (members_st.leaving)
        members_leave_step();
}

static void keep_farewell(struct msg *m)
{
    struct farewell *f;

    if (said_farewell(m->adopted.view, m->head.sender)) {
        msg_free(m);
        return;
    }
    f = xcalloc(1, sizeof(*f));
    f->m = m;
    f->next = farewells;
    farewells = f;
}

static void adopted_ok(const struct msg *m)
{
    struct msg *r = msg_new(MSG_ADOPTED_OK);

    r->adopted_ok.view = m->adopted.view;
    peer_reply(m, r);
}

/* Both kinds are about view + 1. */
static void handle_farewell(struct msg *m)
{
    struct node *n = members_node_of(m->head.sender, m->head.incarnation);

    adopted_ok(m);
    n->parting = true;
    if (m->adopted.leaving == FAREWELL) {
        keep_farewell(m);
        return;
    }
    n->leaves = true;
    if (!members_st.leaves_since_ms) {
        members_st.leaves_since_ms = boot_ms();
        members_tick_in(LEAVE_COLLECT);
    }
    msg_free(m);
}

void members_handle_adopted(struct msg *m)
{
    const struct view *v = members_st.view;
    uint64_t view = m->adopted.view, from = m->head.sender;

    if (!view_has(members_newest_view(), from, m->head.incarnation) && view <= members_now.newest) {
        peer_reply_error(m, -EPERM);
    } else if (m->adopted.leaving && v && view == v->number + 1 &&
               view_has(v, from, m->head.incarnation)) {
        handle_farewell(m);
        return;
    } else if (!v || view > v->number) {
        members_want_read();
        peer_reply_error(m, -E_ASK_AGAIN);
    } else if (m->adopted.leaving) {
        /* it is about to see the newer view, and sends another one */
        peer_reply_error(m, -E_ASK_AGAIN);
    } else {
        if (view == v->number && view_has(v, from, m->head.incarnation)) {
            take_adopted(from, m);
            resend_to(from);
        }
        adopted_ok(m);
    }
    msg_free(m);
}

void members_farewell(struct node *to, const struct view *contents_for)
{
    to->owes = true;
    send_to(to->id, contents_for, true);
}

void members_adopt_stop(void)
{
    struct farewell *f;
    struct resend *r;

    while ((f = farewells)) {
        farewells = f->next;
        msg_free(f->m);
        free(f);
    }
    while ((r = resends)) {
        resends = r->next;
        free(r->s);
        free(r);
    }
    free(members_st.heard);
    members_st.heard = NULL;
}
