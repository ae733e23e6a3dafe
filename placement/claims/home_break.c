/* home_break.c - BREAK: before a claim is granted, the nodes that look at the file are told, and what they believe of
 * it ends (docs/protocol.md, "Looking"); and LEAVE, with which they say that they do not look any more.
 *
 *     WANT --> record, COPY, COPIED (home_copy.c) --> BREAK to each looker but the asker --> BROKEN from all --> GRANT
 *
 * A node that does not answer is asked again until it does, or the view is over.  The next view's home knows what
 * its members have open, since they say so (ADOPTED).  It does not know which attributes homes of the view before
 * have let them keep.  So, for as long as these may be kept, it breaks all nodes that were there.
 *
 * WANT comes again if its asker has waited in silence for too long: its answer is that of the BREAKs under way.
 */
#include "placement/claims/home_answer.h"
#include "placement/claims/home_int.h"
#include "placement/claims/lookers.h"
#include "placement/ring/ring.h"
#include "transport/peer.h"

#include <stdlib.h>

/* The BREAKs of one grant. */
struct breaks {
    struct breaks *next, **prev; /* of all that are under way; prev NULL: it is over */
    struct record *r;
    uint64_t view, grant;
    struct msg *m; /* the WANT */
    unsigned users, waiting;
    bool any;  /* they are all members, for the table does not know who */
    struct watching {
        uint32_t n;
        struct item_watcher v[LOOKERS_NAMED + 1];
    } left;
    uint64_t numbers[LOOKERS_NAMED + 1]; /* of left.v: BROKEN.look_number */
};

/* One node of them. */
struct target {
    struct breaks *b;
    struct fid fid;
    uint32_t node; /* index in the view */
    uint64_t id, incarnation;
};

static struct breaks *all;

static uint32_t index_of(uint64_t node)
{
    return (uint32_t)(view_member(home.view, node) - home.view->members);
}

/* ---- the grant ---- */

static void breaks_put(struct breaks *b)
{
    if (!--b->users)
        free(b);
}

/* Takes it out; the requests that are under way still have it. */
static struct msg *take_out(struct breaks *b)
{
    struct msg *m = b->m;
    *b->prev = b->next;
    if (b->next)
        b->next->prev = b->prev;
    b->prev = NULL;
    b->m = NULL;
    b->r->breaks = NULL;
    breaks_put(b);
    return m;
}

void home_break_drop(struct record *r)
{
    r->granting = false;
    if (r->breaks)
        home_ask_again(take_out(r->breaks));
}

/* All have answered: the last look whether this home may still grant. */
static void grant(struct record *r, struct msg *m, const struct watching *left)
{
    if (!home_may_tell(m->head.view, r->fid) || !members_settled()) {
        home_ask_again(m);
        return;
    }
    r->granting = false;
    home_reply_granted(m, left->v, left->n);
}

/* More than can be named are any member. */
static bool add_watcher(struct watching *w, const struct item_watcher *more)
{
    bool named = more->node && w->n < LOOKERS_NAMED;
    if (named || !w->n || w->v[w->n - 1].node)
        w->v[w->n++] = (struct item_watcher){named ? more->node : 0, named ? more->incarnation : 0, 0};
    w->v[w->n - 1].left |= more->left;
    return named;
}

static void add_quiet_one(struct watching *w, uint32_t node, uint64_t asker)
{
    const struct member *m = node == LOOKER_ANY ? NULL : &home.view->members[node];
    bool is = m && m->id == asker;
    for (uint32_t i = 0; i < w->n; i++)
        is |= m && w->v[i].node == m->id;
    if (!is)
        add_watcher(w, &(struct item_watcher){m ? m->id : 0, m ? m->incarnation : 0, LOOKER_OPEN});
}

/* Those that have the file open, and were not told, for they keep nothing. */
static void add_quiet(const struct record *r, uint64_t asker, struct watching *w)
{
    struct looker_found found[LOOKERS_NAMED + 1];
    unsigned n = lookers_of(r->fid, found);
    for (unsigned i = 0; i < n; i++)
        if (found[i].look == LOOK_QUIET)
            add_quiet_one(w, found[i].node, asker);
    if (r->opened)
        add_quiet_one(w, LOOKER_ANY, asker);
}

/* All members have answered: those that are left are known by now.  What the asker has open was in the entry for
 * any node, too. */
static void name_lookers(const struct breaks *b)
{
    struct fid fid = b->r->fid;
    looker_forget(fid, LOOKER_ANY);
    looker_note(fid, index_of(b->m->head.sender), LOOK_OPEN, b->m->want.look_number);
    for (uint32_t i = 0; i < b->left.n; i++)
        looker_note(fid, b->left.v[i].node ? index_of(b->left.v[i].node) : LOOKER_ANY,
                    home_look_of(b->left.v[i].left), b->numbers[i]);
}

static bool is_served(const struct watching *w)
{
    for (uint32_t i = 0; i < w->n; i++)
        if (w->v[i].left & LOOKER_SERVED)
            return true;
    return false;
}

static void end_breaks(struct breaks *b)
{
    struct record *r = b->r;
    struct watching left = b->left;
    if (b->any)
        name_lookers(b);
    if (is_served(&left))
        looker_hush(r->fid);
    add_quiet(r, b->m->head.sender, &left);
    grant(r, take_out(b), &left);
}

/* ---- BROKEN ---- */

static void target_end(void *arg)
{
    struct target *t = arg;
    breaks_put(t->b);
    free(t);
}

static void send_break(struct target *t);

static void send_again(void *arg)
{
    struct target *t = arg;
    lock_take(&home_lock);
    if (t->b->prev)
        send_break(t);
    else
        target_end(t);
    lock_drop(&home_lock);
}

static void add_left(struct breaks *b, const struct target *t, const struct body_broken *said)
{
    if (add_watcher(&b->left, &(struct item_watcher){t->id, t->incarnation, said->left}))
        b->numbers[b->left.n - 1] = said->look_number;
}

/* What is left stays entered: the GRANT may be lost, and then the next one must name it again. */
static void take_broken(struct target *t, const struct body_broken *said)
{
    if (said->left)
        add_left(t->b, t, said);
    if (!t->b->any)
        looker_forget(t->fid, t->node);
    if (said->left && !t->b->any)
        looker_note(t->fid, t->node, home_look_of(said->left), said->look_number);
    if (!--t->b->waiting)
        end_breaks(t->b);
}

static void broken(void *arg, int err, struct msg *reply, bool *keep)
{
    struct target *t = arg;
    (void)keep;
    lock_take(&home_lock);
    if (t->b->prev && err) {
        if (members_no_contact(err))
            members_doubt(t->id);
        home_later(send_again, target_end, t);
    } else {
        if (t->b->prev)
            take_broken(t, &reply->broken);
        target_end(t);
    }
    lock_drop(&home_lock);
}

static void send_break(struct target *t)
{
    struct msg *m = msg_new(MSG_BREAK);
    m->brk.fid = t->fid;
    m->brk.grant = t->b->grant;
    count(breaks_sent, 1);
    peer_request(t->id, m, T_SUSPECT, NULL, 0, broken, t);
}

/* ---- to whom ---- */

/* As indexes in the view. */
struct targets {
    uint32_t *v, n;
    bool any; /* as in struct breaks */
};

/* Homes of the view before may have let these keep attributes for some time. */
static bool was_there(uint32_t i)
{
    const struct member *m = &home.view->members[i];
    const struct view *before = members_view_number(home.view->number - 1);
    return home.view->number > 1 && (!before || view_has(before, m->id, m->incarnation));
}

static void add_all(struct targets *out, uint64_t but, bool (*which)(uint32_t i))
{
    for (uint32_t i = 0; i < home.view->nmembers; i++)
        if (home.view->members[i].id != but && (!which || which(i)))
            out->v[out->n++] = i;
}

static void add_found(struct targets *out, uint64_t but, const struct looker_found *f)
{
    if (home.view->members[f->node].id == but)
        return;
    for (uint32_t i = 0; i < out->n; i++)
        if (out->v[i] == f->node)
            return;
    out->v[out->n++] = f->node;
}

static struct targets find_targets(struct fid fid, uint64_t but)
{
    struct looker_found found[LOOKERS_NAMED + 1];
    unsigned n = lookers_of(fid, found);
    bool early = boot_ms() - home.complete_ms < LOOKER_STAT_MS;
    struct targets out = {0};
    if (!n && !early) /* as always where nobody else looks */
        return out;
    out.v = xmalloc((home.view->nmembers + 1) * sizeof(*out.v));
    if (n && found[n - 1].node == LOOKER_ANY && found[n - 1].look != LOOK_QUIET) {
        out.any = true;
        add_all(&out, but, NULL);
        return out;
    }
    if (early)
        add_all(&out, but, was_there);
    for (unsigned i = 0; i < n; i++)
        if (found[i].look != LOOK_QUIET)
            add_found(&out, but, &found[i]);
    return out;
}

static void begin_breaks(struct record *r, struct msg *m, const struct targets *to)
{
    struct breaks *b = xcalloc(1, sizeof(*b));
    *b = (struct breaks){.next = all,
                         .prev = &all,
                         .r = r,
                         .view = home.view->number,
                         .grant = ++home.count,
                         .m = m,
                         .users = 1 + to->n,
                         .waiting = to->n,
                         .any = to->any};
    if (all)
        all->prev = &b->next;
    all = b;
    r->breaks = b;
    for (uint32_t i = 0; i < to->n; i++) {
        const struct member *member = &home.view->members[to->v[i]];
        struct target *t = xcalloc(1, sizeof(*t));
        *t = (struct target){b, r->fid, to->v[i], member->id, member->incarnation};
        send_break(t);
    }
    home_arm(T_PING / 2); /* the asker waits in silence for T_PING */
}

void home_break(struct record *r, struct msg *m)
{
    if (r->breaks) {
        struct msg *old = r->breaks->m;
        r->breaks->m = m;
        home_ask_again(old);
        return;
    }
    struct targets to = find_targets(r->fid, m->head.sender);
    if (to.n) {
        begin_breaks(r, m, &to);
    } else {
        struct watching quiet = {0};
        add_quiet(r, m->head.sender, &quiet);
        grant(r, m, &quiet);
    }
    free(to.v);
}

/* ---- time ---- */

bool home_breaks_working(void)
{
    for (const struct breaks *b = all; b; b = b->next)
        peer_working(b->m);
    return all;
}

/* ---- LEAVE ---- */

static void handle_leave(struct msg *m)
{
    const struct member *from = view_member(home.view, m->head.sender);
    if (home.view && m->head.view == home.view->number && from &&
        from->incarnation == m->head.incarnation)
        for (uint32_t i = 0; i < m->leave.files.n; i++)
            looker_leave(m->leave.files.v[i].fid, (uint32_t)(from - home.view->members),
                         m->leave.files.v[i].number);
    msg_free(m);
}

void home_break_start(void)
{
    home_handle(MSG_LEAVE, handle_leave);
}
