/* members_adopt.c - adopting a view, ADOPTED and its answers (docs/protocol.md, rules 3 and 5). */
#include "transport/loop.h"
#include "transport/members_int.h"
#include "transport/members_ping.h"
#include "transport/peer.h"
#include "transport/view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ADOPTED(view) that a node sent as it left.  Its pieces are kept until that view is adopted, and the note
 * that it came until the next view is adopted. */
struct farewell {
    struct farewell *next;
    uint64_t view, from;
    uint32_t heard, npieces, room; /* heard: so many pieces, or HEARD_ALL */
    struct msg **pieces;
};
static struct farewell *farewells;

static struct farewell *farewell_of(uint64_t view, uint64_t from)
{
    struct farewell *f = farewells;
    while (f && (f->view != view || f->from != from))
        f = f->next;
    return f;
}

static void drop_pieces(struct farewell *f)
{
    for (uint32_t i = 0; i < f->npieces; i++)
        msg_free(f->pieces[i]);
    free(f->pieces);
    f->pieces = NULL;
    f->npieces = f->room = 0;
}

/* ---- adopting (rule 3) ---- */

/* The report for all members, kept until the last of them has it or the view is over. */
struct report {
    unsigned users;
    void *contents;
};

struct adopted_send {
    uint64_t to, view;
    bool farewell, last;
    uint32_t piece; /* under way; last: no other one follows */
    struct report *report;
};

static struct report *report_new(const struct view *v, bool farewell)
{
    struct report *r = xcalloc(1, sizeof(*r));
    r->users = 1;
    r->contents = members_st.cfg.ops.report_make(v, farewell);
    return r;
}

static void report_put(struct report *r)
{
    if (--r->users)
        return;
    members_st.cfg.ops.report_free(r->contents);
    free(r);
}

static void send_end(struct adopted_send *s)
{
    report_put(s->report);
    free(s);
}

static void send_adopted(struct adopted_send *s);

static void resend_adopted(void *arg)
{
    struct adopted_send *s = arg;
    if (members_st.view && members_st.view->number == s->view &&
        view_member(members_st.view, s->to))
        send_adopted(s);
    else
        send_end(s);
}

/* The tick sends messages again: a timer for each message would be too many timers. */
static struct resend {
    struct resend *next;
    struct adopted_send *s;
} * resends;

static void resend_later(struct adopted_send *s)
{
    struct resend *r = xcalloc(1, sizeof(*r));
    r->s = s;
    r->next = resends;
    resends = r;
}

/* The member has all pieces. */
static void told_all(struct adopted_send *s)
{
    if (s->farewell && members_st.view && members_st.view->number == s->view)
        members_node_of(s->to, 0)->owes = false;
    send_end(s);
    if (members_st.leaving)
        members_leave_step();
}

/* The next piece is sent at once if the member has taken this one; else it is sent again later. */
static void told_piece(struct adopted_send *s, uint32_t wants)
{
    bool gets_on = wants == s->piece + 1 && !s->last;
    if (wants <= s->piece || gets_on)
        s->piece = wants;
    if (gets_on)
        resend_adopted(s);
    else
        resend_later(s);
}

static void adopted_answered(void *arg, int err, struct msg *reply, bool *keep)
{
    struct adopted_send *s = arg;
    (void)keep;
    if (members_st.left) {
        send_end(s);
    } else if (!err && reply->head.type == MSG_NEXT_PIECE) {
        told_piece(s, reply->next_piece.piece);
    } else if (!err) {
        told_all(s);
    } else {
        if (members_no_contact(err))
            members_doubt(s->to);
        resend_later(s);
    }
}

void members_resend_all(void)
{
    struct resend *list = resends;
    resends = NULL;
    struct resend *r;
    while ((r = list)) {
        list = r->next;
        resend_adopted(r->s);
        free(r);
    }
}

/* Sends again to a node that has adopted the view by now. */
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

static struct msg *adopted_msg(const struct report *r, uint64_t to, bool farewell, uint32_t piece)
{
    struct msg *m = msg_new(MSG_ADOPTED);
    m->adopted.view = members_st.view->number + farewell;
    m->adopted.piece = piece;
    m->adopted.last = farewell ? members_st.view->number : members_st.last_before;
    m->adopted.settled = farewell ? members_settled() : members_st.prev_settled;
    m->adopted.leaving = farewell ? FAREWELL : 0;
    members_st.cfg.ops.report_fill(r->contents, to, m);
    return m;
}

static void send_adopted(struct adopted_send *s)
{
    struct msg *m = adopted_msg(s->report, s->to, s->farewell, s->piece);
    s->last = !m->adopted.more;
    peer_request(s->to, m, T_SUSPECT, NULL, 0, adopted_answered, s);
}

static void send_to(uint64_t to, struct report *r, bool farewell)
{
    struct adopted_send *s = xcalloc(1, sizeof(*s));
    *s = (struct adopted_send){
        .to = to, .view = members_st.view->number, .farewell = farewell, .report = r};
    r->users++;
    send_adopted(s);
}

static bool said_farewell(uint64_t view, uint64_t id)
{
    const struct farewell *f = farewell_of(view, id);
    return f && f->heard == HEARD_ALL;
}

/* Rule 5, the part without waiting: no node of the view before is missing in v.  A node that left cleanly had
 * stopped acting.  An older incarnation of a member is dead: because of the lock on the cache directory, two
 * incarnations never run. */
static bool nobody_missing(const struct view *before, const struct view *v)
{
    for (uint32_t i = 0; i < before->nmembers; i++) {
        const struct member *was = &before->members[i], *is = view_member(v, was->id);
        if (!(is && is->incarnation >= was->incarnation) && !said_farewell(v->number, was->id))
            return false;
    }
    return true;
}

/* True: no node of any view since the first one is missing.  A node that is left out of a view is absent in
 * every view that follows, until it is back or forgotten (which takes longer than W).  A node that left
 * cleanly had stopped acting.  So a node that was alone and died grants at once when it is back, however
 * many views ago that began. */
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

/* Pieces come in their order, each after the answer to the one before: any other piece is a copy of one that
 * was taken.  Returns how many are taken now, or HEARD_ALL. */
static uint32_t next_piece(uint32_t heard, const struct msg *m)
{
    return m->adopted.more ? heard + 1 : HEARD_ALL;
}

static uint32_t take_adopted(uint64_t from, const struct msg *m)
{
    const struct member *who = view_member(members_st.view, from);
    uint32_t *heard = who ? &members_st.heard[who - members_st.view->members] : NULL;
    if (!heard || *heard != m->adopted.piece)
        return heard ? *heard : 0;
    members_st.any_settled |= m->adopted.settled;
    members_st.cfg.ops.heard_adopted(members_st.view, from, m);
    *heard = next_piece(*heard, m);
    if (*heard == HEARD_ALL)
        members_st.unheard--;
    return *heard;
}

/* Reports of nodes that left count as a member's for rule 7, if they are whole; older ones are of no
 * use any more. */
static void take_farewells(void)
{
    struct farewell **p = &farewells;
    struct farewell *f;
    while ((f = *p)) {
        bool now = f->view == members_st.view->number && f->heard == HEARD_ALL;
        for (uint32_t i = 0; now && i < f->npieces; i++)
            if (!view_member(members_st.view, f->from))
                members_st.cfg.ops.heard_adopted(members_st.view, f->from, f->pieces[i]);
        if (f->view <= members_st.view->number)
            drop_pieces(f);
        if (now || f->view > members_st.view->number) {
            p = &f->next;
        } else {
            *p = f->next;
            free(f);
        }
    }
}

static void take_own(const struct report *r)
{
    uint64_t self = members_st.cfg.self.id;
    for (uint32_t heard = 0; heard != HEARD_ALL;) {
        struct msg *own = adopted_msg(r, self, false, heard);
        heard = take_adopted(self, own);
        msg_free(own);
    }
}

static void send_all_adopted(const struct view *v)
{
    struct report *r = report_new(v, false);
    take_farewells();
    for (uint32_t i = 0; i < v->nmembers && members_st.view == v; i++)
        if (v->members[i].id != members_st.cfg.self.id)
            send_to(v->members[i].id, r, false);
    if (members_st.view == v) {
        take_own(r);
        if (!members_st.unheard)
            all_adopted();
    }
    report_put(r);
}

void members_say_farewell(const struct view *w)
{
    struct report *r = report_new(w, true);
    for (uint32_t i = 0; i < w->nmembers; i++) {
        const struct member *m = &w->members[i];
        if (members_superseded(m))
            continue;
        members_node_of(m->id, m->incarnation)->owes = true;
        send_to(m->id, r, true);
    }
    report_put(r);
}

/* Forgets what nodes have asked for: their requests were about the view before. */
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

static void fence(uint64_t number)
{
    if (!members_st.view)
        return;
    log_warn("view %lu does not have this node: it is fenced: its own files go on, other opens "
             "wait until it has joined again",
             (unsigned long)number);
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

/* The number of a view between the adopted one and v that does not have this node, or is not known any more: then it
 * may not.  0: none. */
static uint64_t left_out_by(const struct view *v)
{
    uint64_t n = members_st.view ? members_st.view->number + 1 : v->number;
    for (; n < v->number; n++) {
        const struct view *w = members_view_number(n);
        if (!w || !view_has(w, members_st.cfg.self.id, members_st.cfg.self.incarnation))
            return n;
    }
    return 0;
}

void members_adopt(const struct view *v, uint64_t t0)
{
    if (!view_has(v, members_st.cfg.self.id, members_st.cfg.self.incarnation)) {
        if (members_st.leaving && members_st.view) {
            members_st.left = true;
            members_wake();
        } else {
            fence(v->number);
        }
        return;
    }
    uint64_t without = left_out_by(v);
    /* Nobody told this node of anything meanwhile: it comes from outside, as any other. */
    if (without) {
        fence(without);
        members_want_read();
        return;
    }
    members_st.prev_settled =
        members_st.view && members_st.view->number == v->number - 1 && members_settled();
    members_st.view = v;
    members_st.any_settled = false;
    free(members_st.heard);
    members_st.heard = xcalloc(v->nmembers, sizeof(*members_st.heard));
    members_st.unheard = v->nmembers;
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

/* As take_adopted; keeps m or frees it. */
static uint32_t keep_farewell(struct msg *m)
{
    struct farewell *f = farewell_of(m->adopted.view, m->head.sender);
    if (!f) {
        f = xcalloc(1, sizeof(*f));
        f->view = m->adopted.view;
        f->from = m->head.sender;
        f->next = farewells;
        farewells = f;
    }
    if (f->heard != m->adopted.piece) {
        msg_free(m);
        return f->heard;
    }
    if (f->npieces == f->room) {
        f->room = MAX(2 * f->room, 4u);
        f->pieces = xrealloc(f->pieces, f->room * sizeof(*f->pieces));
    }
    f->heard = next_piece(f->heard, m);
    f->pieces[f->npieces++] = m;
    return f->heard;
}

/* heard: so many of its pieces are here, or HEARD_ALL. */
static void answer(const struct msg_head *to, uint64_t view, uint32_t heard)
{
    struct msg asked = {.head = *to};
    struct msg *r = msg_new(heard == HEARD_ALL ? MSG_ADOPTED_OK : MSG_NEXT_PIECE);
    if (heard == HEARD_ALL) {
        r->adopted_ok.view = view;
    } else {
        r->next_piece.view = view;
        r->next_piece.piece = heard;
    }
    peer_reply(&asked, r);
}

/* Both kinds are about view + 1. */
static void handle_farewell(struct msg *m)
{
    struct msg_head head = m->head;
    uint64_t view = m->adopted.view;
    struct node *n = members_node_of(head.sender, head.incarnation);
    n->parting = true;
    if (m->adopted.leaving == FAREWELL) {
        answer(&head, view, keep_farewell(m));
        return;
    }
    answer(&head, view, HEARD_ALL);
    n->leaves = true;
    if (!members_st.leaves_since_ms) {
        members_st.leaves_since_ms = boot_ms();
        members_tick_in(LEAVE_COLLECT);
    }
    msg_free(m);
}

/* A piece from a member.  The answer goes first: what follows the last piece takes its time. */
static void handle_report(const struct msg *m)
{
    uint64_t from = m->head.sender;
    bool was_unheard = members_st.unheard;
    answer(&m->head, m->adopted.view, take_adopted(from, m));
    resend_to(from);
    if (was_unheard && !members_st.unheard)
        all_adopted();
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
        /* the sender is about to see the newer view, and then sends another one */
        peer_reply_error(m, -E_ASK_AGAIN);
    } else if (view == v->number && view_has(v, from, m->head.incarnation)) {
        handle_report(m);
    } else {
        answer(&m->head, view, HEARD_ALL); /* of an older view: it is over */
    }
    msg_free(m);
}

void members_adopt_stop(void)
{
    struct farewell *f;
    while ((f = farewells)) {
        farewells = f->next;
        drop_pieces(f);
        free(f);
    }
    struct resend *r;
    while ((r = resends)) {
        resends = r->next;
        send_end(r->s);
        free(r);
    }
    free(members_st.heard);
    members_st.heard = NULL;
}
