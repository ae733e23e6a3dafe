/* home_answer.c - may the home answer a request now, and the answers.
 *
 * A request that it may not answer now gets "ask again".  A grant that next must have first waits in its
 * record until COPIED has come.  Then the home checks once more whether it may grant, since the lease may
 * have ended meanwhile.  A claim then waits for the nodes that look at the file (home_break.c).
 */
#include "placement/claims/home_answer.h"
#include "placement/claims/home_int.h"
#include "placement/ring/ring.h"
#include "transport/peer.h"
#include "transport/view.h"

#include <stdlib.h>

struct home_state home;
struct lock home_lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_HOME};

/* ---- may it answer? ---- */

static bool acts_in(uint64_t view)
{
    return home.view && home.complete && view == home.view->number && members_lease();
}

bool home_may_tell(uint64_t view, struct fid fid)
{
    return acts_in(view) && ring_home(home.ring, fid, 0) == members_self();
}

bool home_may_tell_where(uint64_t view, struct fid fid)
{
    if (home_may_tell(view, fid))
        return true;
    return acts_in(view) && ring_home(home.ring, fid, 1) == members_self() &&
           collect_is_next(ring_home(home.ring, fid, 0), view);
}

bool home_may_grant(uint64_t view, struct fid fid)
{
    if (!home_may_tell(view, fid) || !members_settled())
        return false;
    uint64_t next = ring_home(home.ring, fid, 1);
    const struct member *n = view_member(home.view, next);
    return !n || home.acked[n - home.view->members];
}

/* ---- requests that wait ---- */

void home_refuse(struct msg *m, int err)
{
    peer_reply_error(m, err);
    msg_free(m);
}

void home_ask_again(struct msg *m)
{
    home_refuse(m, -E_ASK_AGAIN);
}

void home_ask_again_list(struct pending **list)
{
    struct pending *p;
    while ((p = *list)) {
        *list = p->next;
        home_ask_again(p->m);
        free(p);
    }
}

void home_queue(struct pending **list, struct msg *m, uint64_t count)
{
    struct pending *p = xcalloc(1, sizeof(*p));
    p->m = m;
    p->count = count;
    while (*list)
        list = &(*list)->next;
    *list = p;
}

/* ---- the answers ---- */

void home_reply_grant(struct msg *m, enum at_where where, uint64_t node)
{
    struct msg *r = msg_new(MSG_GRANT);
    r->grant.where = where;
    r->grant.node = node;
    peer_reply(m, r);
    msg_free(m);
}

void home_reply_granted(struct msg *m, const struct item_watcher *v, uint32_t n)
{
    struct msg *r = msg_new(MSG_GRANT);
    struct hinted h = hint_get(m->want.fid);
    r->grant.where = AT_GRANTED;
    r->grant.node = members_self();
    r->grant.known = h.known;
    r->grant.version = h.version;
    r->grant.told = h.told;
    r->grant.watchers.n = n;
    r->grant.watchers.v = (struct item_watcher *)v; /* copied during the call */
    peer_reply(m, r);
    msg_free(m);
}

void home_reply_locked(struct msg *m, const struct held_lock *found)
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

void home_answer_pending(struct record *r, uint64_t copied)
{
    while (r->pending && r->pending->count <= copied) {
        struct pending *p = r->pending;
        r->pending = p->next;
        if (!home_may_tell(p->m->head.view, r->fid) || !members_settled())
            home_ask_again(p->m);
        else if (p->m->head.type == MSG_WANT)
            home_break(r, p->m);
        else
            home_reply_locked(p->m, NULL);
        free(p);
    }
}
