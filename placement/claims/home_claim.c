/* home_claim.c - which node has a file's latest bytes, and which may have the claim: WANT, WHERE, FREE, SAME
 * (docs/protocol.md, rules 8, 9, 11).
 */
#include "placement/claims/home_answer.h"
#include "placement/claims/home_int.h"
#include "placement/ring/ring.h"
#include "transport/peer.h"

#include <errno.h>
#include <string.h>

uint64_t home_blind_claim(const struct record *r, struct fid fid)
{
    return r && !(r->unknown & RECORD_CLAIM_UNKNOWN) ? 0 : collect_blind(home.view, fid);
}

/* Is the first request the second one, or later? */
static bool covers(uint64_t inc, uint64_t number, uint64_t inc2, uint64_t number2)
{
    return inc != inc2 ? inc > inc2 : number >= number2;
}

bool home_is_freed(const struct record *r, uint64_t node, uint64_t inc, uint64_t number)
{
    return r && r->freed_by == node && covers(r->freed_inc, r->freed_number, inc, number);
}

bool home_is_claim(const struct record *r, uint64_t node, uint64_t inc, uint64_t number)
{
    return r->claimant == node && covers(inc, number, r->number_inc, r->number);
}

/* A WANT with a higher number than the one before says that its sender has not got that claim.  One that comes
 * again may be a late copy of one that has been granted: then its sender has the latest bytes. */
static bool has_nothing(const struct record *r, const struct msg *m)
{
    bool again = r->claimant &&
                 covers(r->number_inc, r->number, m->head.incarnation, m->want.number);
    return !m->want.held && (!again || r->granting);
}

static void grant_claim(struct record *r, struct msg *m)
{
    r->granting = has_nothing(r, m);
    r->heard &= r->claimant != 0;
    r->claimant = m->head.sender;
    r->number_inc = m->head.incarnation;
    r->number = m->want.number;
    home_queue(&r->pending, m, home.count + 1);
    home_changed(r);
}

static void want_unclaimed(struct record *r, struct msg *m)
{
    uint64_t blind = home_blind_claim(r, m->want.fid);
    if (blind)
        home_reply_grant(m, AT_LOST, blind);
    else if (home_is_freed(r, m->head.sender, m->head.incarnation, m->want.number))
        home_refuse(m, -ESTALE);
    else
        grant_claim(record_make(m->want.fid), m);
}

static void handle_want(struct msg *m)
{
    if (!home_may_grant(m->head.view, m->want.fid) ||
        !view_has(home.view, m->head.sender, m->head.incarnation)) {
        home_ask_again(m);
        return;
    }
    struct record *r = record_find(m->want.fid);
    if (!r || !r->claimant) {
        want_unclaimed(r, m);
    } else if (!view_member(home.view, r->claimant)) {
        home_reply_grant(m, AT_LOST, r->claimant);
    } else if (r->claimant != m->head.sender) {
        home_reply_grant(m, AT_NODE, r->claimant);
    } else if (home_is_claim(r, m->head.sender, m->head.incarnation, m->want.number)) {
        grant_claim(r, m); /* a new request, or the answer to this one was lost */
    } else {
        home_refuse(m, -ESTALE);
    }
}

/* Alone, nobody is entered: there is nobody else who could change the file.  While a claim is being granted nobody
 * is: the BREAKs are on their way to those that were. */
static bool may_keep(struct fid fid, struct record *r, const struct asker *who)
{
    enum look look = who->look == LOOK_GOES ? LOOK_OPEN : who->look;
    if (who->look == LOOK_NONE || home.view->nmembers == 1)
        return who->look != LOOK_NONE;
    if (r && r->granting) {
        r->opened |= who->look == LOOK_OPEN;
        return false;
    }
    return who->node != LOOKER_ANY && looker_enter(fid, who->node, look, who->number);
}

/* An open that finds what it knows confirmed takes no descriptor.  It is asked to look at the PFS while a name of the file
 * goes, and while a claim is being granted: others were told, and have one. */
static bool needs_descriptor(struct fid fid, const struct record *r, const struct asker *who)
{
    return who->look == LOOK_OPEN && home.view->nmembers > 1 && ((r && r->granting) || looker_name_goes(fid));
}

/* Next's answer is as good as the home's: no grant was given that next does not have.  But it may hear late
 * that a claim was given back, and it does not know versions. */
void home_where_is(struct fid fid, const struct asker *who, struct item_at *at)
{
    struct record *r = record_find(fid);
    bool as_next = ring_home(home.ring, fid, 0) != members_self();
    if (as_next && r && r->stamp_view != home.view->number)
        r = NULL; /* of an older view: in this one the home had none */
    memset(at, 0, sizeof(*at));
    if (r && r->claimant && !r->granting) {
        at->node = r->claimant;
        at->where = view_member(home.view, r->claimant) ? AT_NODE : AT_LOST;
        return;
    }
    uint64_t blind = home_blind_claim(r, fid);
    if (blind) {
        at->where = AT_LOST;
        at->node = blind;
        return;
    }
    struct hinted h = as_next || needs_descriptor(fid, r, who) ? (struct hinted){.known = KNOWN_LOST}
                                                               : hint_get(fid);
    *at = (struct item_at){.where = AT_PFS,
                           .known = h.known,
                           .version = h.version,
                           .same_as = h.same_as,
                           .told = h.told,
                           .keep = may_keep(fid, r, who)};
}

/* What is no look is none. */
static struct asker asker_of(const struct msg *m)
{
    const struct member *from = view_member(home.view, m->head.sender);
    bool is = from && from->incarnation == m->head.incarnation;
    bool is_look = m->where.look <= LOOK_OPEN || (is && m->where.look == LOOK_GOES);
    return (struct asker){.node = is ? (uint32_t)(from - home.view->members) : LOOKER_ANY,
                          .look = is_look ? m->where.look : LOOK_NONE,
                          .number = m->where.number};
}

void home_reply_where(struct msg *m, const struct asker *who)
{
    struct msg *r = msg_new(MSG_AT);
    r->at.at.n = m->where.fids.n;
    r->at.at.v = xcalloc(r->at.at.n + 1, sizeof(*r->at.at.v));
    for (uint32_t i = 0; i < r->at.at.n; i++)
        home_where_is(m->where.fids.v[i].fid, who, &r->at.at.v[i]);
    r->arena = r->at.at.v; /* freed with the message */
    peer_reply(m, r);
    msg_free(m);
}

static void handle_where(struct msg *m)
{
    const struct asker who = asker_of(m);
    for (uint32_t i = 0; i < m->where.fids.n; i++) {
        struct fid fid = m->where.fids.v[i].fid;
        if (who.look == LOOK_GOES ? !home_may_tell(m->head.view, fid) : !home_may_tell_where(m->head.view, fid)) {
            home_ask_again(m);
            return;
        }
    }
    if (who.look == LOOK_GOES)
        home_goes(m, &who);
    else
        home_reply_where(m, &who);
}

static void enter(struct fid fid, uint64_t node, enum look look, uint64_t number)
{
    const struct member *m = view_member(home.view, node);
    if (m)
        looker_note(fid, (uint32_t)(m - home.view->members), look, number);
}

/* What the claimant and its watchers still believe; in the same step nobody has the claim any more.  The home has
 * entries of watchers already, but for a view in which the table was full. */
static void enter_rest(uint64_t node, const struct body_free *f)
{
    if (home.view->nmembers == 1)
        return;
    if (f->look == LOOK_STAT || f->look == LOOK_OPEN)
        enter(f->fid, node, f->look, f->look_number);
    for (uint32_t i = 0; i < f->watchers.n; i++) {
        const struct item_watcher *w = &f->watchers.v[i];
        if (w->node)
            enter(f->fid, w->node, home_look_of(w->left), 0);
        else
            looker_note(f->fid, LOOKER_ANY, home_look_of(w->left), 0);
    }
}

void home_take_free(uint64_t node, const struct body_free *f)
{
    struct record *r = record_find(f->fid);
    if (!r || r->claimant != node || !covers(f->number_inc, f->number, r->number_inc, r->number))
        return;
    home_break_drop(r);
    r->claimant = 0;
    r->opened = false;
    r->freed_by = node;
    r->freed_inc = f->number_inc;
    r->freed_number = f->number;
    hint_set(f->fid, f->known ? &f->version : NULL, &f->told);
    enter_rest(node, f);
    /* a grant for which no open waits any more; locks are asked for again */
    home_ask_again_list(&r->pending);
    home_changed(r);
}

static void handle_free(struct msg *m)
{
    if (!home_may_tell(m->head.view, m->free.fid)) {
        home_ask_again(m);
        return;
    }
    home_take_free(m->head.sender, &m->free);
    struct msg *done = msg_new(MSG_FREED);
    done->freed.done = 1;
    peer_reply(m, done);
    msg_free(m);
}

static void handle_same(struct msg *m)
{
    const struct body_same *s = &m->same;
    if (home.view && m->head.view == home.view->number &&
        ring_home(home.ring, s->fid, 0) == members_self() && s->before.size == s->after.size)
        hint_same(s);
    msg_free(m);
}

void home_claim_start(void)
{
    home_handle(MSG_WANT, handle_want);
    home_handle(MSG_WHERE, handle_where);
    home_handle(MSG_FREE, handle_free);
    home_handle(MSG_SAME, handle_same);
}
