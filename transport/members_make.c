/* members_make.c - which node makes the next view, and when (docs/protocol.md, rules 1 and 2).
 *
 * At each tick a member looks at suspected, joining and leaving nodes.  A node outside looks for members, or
 * begins a new view.
 */
#include "transport/loop.h"
#include "transport/members_int.h"
#include "transport/members_ping.h"
#include "transport/peer.h"
#include "transport/session.h"
#include "transport/view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOIN_COLLECT 500  /* ms: how long joins are collected (rule 2a) */
#define KEEPER_FIRST 2000 /* ms: how long the keeper may take to leave out dead nodes */

/* ---- making a view (rules 1, 2) ---- */

struct change {
    uint64_t id, incarnation;
};
struct make_job {
    const struct view *base; /* NULL: none yet */
    struct change *out, *left, *in;
    struct change gone; /* absent, and forgotten; id 0: none */
    uint32_t nout, nleft, nin;
    int err;
};

static bool listed(const struct change *c, uint32_t n, uint64_t id)
{
    for (uint32_t i = 0; i < n; i++)
        if (c[i].id == id)
            return true;
    return false;
}

static int by_member(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static int by_absent(const void *a, const void *b)
{
    const struct absent *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static bool is_gone(const struct make_job *j, const struct absent *a)
{
    return j->gone.id == a->id && j->gone.incarnation == a->incarnation;
}

/* Members of the base that stay; those in `out` become absent. */
static void carry_members(const struct make_job *j, struct view *v)
{
    for (uint32_t i = 0; j->base && i < j->base->nmembers; i++) {
        const struct member *m = &j->base->members[i];
        if (listed(j->in, j->nin, m->id) || listed(j->left, j->nleft, m->id))
            continue;
        if (!listed(j->out, j->nout, m->id)) {
            v->members[v->nmembers++] = *m;
            continue;
        }
        struct absent *a = &v->absents[v->nabsent++];
        a->id = m->id;
        a->incarnation = m->incarnation;
        memcpy(a->name, m->name, sizeof(a->name));
    }
    for (uint32_t i = 0; j->base && i < j->base->nabsent; i++)
        if (!listed(j->in, j->nin, j->base->absents[i].id) && !is_gone(j, &j->base->absents[i]))
            v->absents[v->nabsent++] = j->base->absents[i];
}

/* The member's address is the one that it wrote into nodes/.  Only the newcomers' files are read: at the
 * start of a large session many views follow each other. */
static int find_newcomer(struct change c, struct member *out)
{
    if (c.id == members_st.cfg.self.id) {
        *out = members_st.cfg.self;
        return 0;
    }
    int err = session_read_node(c.id, out);
    return !err && out->incarnation != c.incarnation ? -ENOENT : err;
}

/* A newcomer whose file cannot be read is left out this time.  So it stays what it was: absent, or its older
 * incarnation a member. */
static void add_newcomers(struct make_job *j, struct view *v)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < j->nin; i++) {
        if (find_newcomer(j->in[i], &v->members[v->nmembers]))
            continue;
        v->nmembers++;
        j->in[n++] = j->in[i];
    }
    j->nin = n;
}

static int make_view(struct make_job *j)
{
    uint32_t nbase = j->base ? j->base->nmembers : 0, nabsent = j->base ? j->base->nabsent : 0;
    struct view *v = xcalloc(1, sizeof(*v));
    uint64_t newest;
    int err = session_newest(&newest);
    v->number = (j->base ? j->base->number : 0) + 1;
    v->members = xcalloc(nbase + j->nin + 1, sizeof(*v->members));
    v->absents = xcalloc(nabsent + nbase + 1, sizeof(*v->absents));
    if (!err && newest != v->number - 1)
        err = -EEXIST;
    if (!err && j->base && j->base->closed)
        err = -ESTALE;
    if (!err)
        add_newcomers(j, v);
    if (!err && !(j->nin + j->nout + j->nleft) && !j->gone.id)
        err = -ENOENT; /* nothing would change */
    if (!err)
        carry_members(j, v);
    qsort(v->members, v->nmembers, sizeof(*v->members), by_member);
    qsort(v->absents, v->nabsent, sizeof(*v->absents), by_absent);
    if (!err)
        err = session_make_view(v);
    view_free(v);
    return err;
}

static void tell_all(const struct view *v)
{
    for (uint32_t i = 0; v && i < v->nmembers; i++) {
        if (v->members[i].id == members_st.cfg.self.id)
            continue;
        struct msg *m = msg_new(MSG_NOTE);
        m->note.newest = v->number + 1;
        peer_send(v->members[i].id, m);
    }
}

static void free_make(struct make_job *j)
{
    free(j->out);
    free(j->left);
    free(j->in);
    free(j);
}

static void make_done(void *arg)
{
    static _Atomic uint64_t said;
    struct make_job *j = arg;
    members_st.making = false;
    if (!j->err) {
        tell_all(j->base);
        for (uint32_t i = 0; i < j->nin; i++)
            if (j->in[i].id != members_st.cfg.self.id)
                members_node_of(j->in[i].id, 0)->wants_in = false;
    } else if (j->err != -EEXIST && j->nleft) {
        members_st.leaves_since_ms = boot_ms(); /* a node that leaves does not ask again */
    }
    if (j->err == -ESTALE)
        members_session_is_over();
    else if (j->err && j->err != -EEXIST && log_every(&said, 60000)) {
        log_warn("a new view cannot be written to the session directory: %s", strerror(-j->err));
        snprintf(members_st.join_problem, sizeof(members_st.join_problem),
                 "the session directory cannot be written: %s", strerror(-j->err));
    }
    free_make(j);
    members_want_read(); /* also when another node was first: its view counts */
}

static void make_job(void *arg)
{
    struct make_job *j = arg;
    j->err = make_view(j);
    loop_post(make_done, j);
}

static struct make_job *new_make(const struct view *base)
{
    struct make_job *j = xcalloc(1, sizeof(*j));
    uint32_t n = 1;
    for (struct node *x = members_st.nodes; x; x = x->next)
        n++;
    n += base ? base->nmembers : 0;
    j->base = base;
    j->out = xcalloc(n, sizeof(*j->out));
    j->left = xcalloc(n, sizeof(*j->left));
    j->in = xcalloc(n, sizeof(*j->in));
    return j;
}

static void make(struct make_job *j)
{
    members_st.making = true;
    members_st.joins_since_ms = members_st.leaves_since_ms = 0;
    pool_submit(pool_session, make_job, j);
}

/* ---- a member's proposals ---- */

/* The fewer members a side reaches, the longer it leaves the view to the others.  So if no side has more than
 * half, and all fell silent at once, the largest side is first. */
static uint64_t minor_wait(uint32_t reached, uint32_t members)
{
    return T_MINOR + (uint64_t)(members - 2 * reached) * (T_MINOR / 2) / members;
}

/* Rule 2(b): this side has more than half of the view, or no view was made for T_minor and more. */
static bool may_leave_out(uint64_t t)
{
    uint32_t members = members_st.view->nmembers;
    uint32_t reached = 0, unclear = 0;
    for (uint32_t i = 0; i < members; i++) {
        const struct member *m = &members_st.view->members[i];
        if (m->id == members_st.cfg.self.id) {
            reached++;
            continue;
        }
        if (members_superseded(m))
            continue;
        struct node *n = members_node_of(m->id, m->incarnation);
        if (members_alive(n, t))
            reached++;
        else if (!n->suspected)
            unclear++, members_probe(n, t);
        else if (!members_dead(n, t) && members_dead_in(n, t, T_TRIES))
            unclear++;
    }
    /* Those that fell silent together leave together. */
    if (unclear && t - members_st.dead_since_ms < T_TRIES)
        return false;
    return 2 * reached > members || t - members_st.dead_since_ms >= minor_wait(reached, members);
}

static bool any_dead(uint64_t t)
{
    for (uint32_t i = 0; i < members_st.view->nmembers; i++) {
        const struct member *m = &members_st.view->members[i];
        if (m->id != members_st.cfg.self.id &&
            (members_superseded(m) || members_dead(members_node_of(m->id, m->incarnation), t)))
            return true;
    }
    return false;
}

/* The members that are to leave or to join. */
static struct make_job *changes(uint64_t t, bool dead)
{
    struct make_job *j = new_make(members_st.view);
    for (struct node *n = members_st.nodes; n; n = n->next) {
        const struct member *m = view_member(members_st.view, n->id);
        bool same = m && m->incarnation == n->incarnation; /* not: superseded, m is dead */
        struct change c = {n->id, n->incarnation};
        if (n->id == members_st.cfg.self.id)
            continue;
        if (same && n->leaves)
            j->left[j->nleft++] = c;
        else if (!same && n->wants_in && members_alive(n, t))
            j->in[j->nin++] = c;
        else if (m && dead && (!same || members_dead(n, t)))
            j->out[j->nout++] = c;
    }
    return j;
}

/* The members that are to leave or to join, for the keeper.  Other members act when the keeper did not. */
void members_propose(uint64_t t)
{
    if (members_st.making || members_st.view != members_newest_view() || !members_lease())
        return;
    bool dead = any_dead(t);
    if (!dead)
        members_st.dead_since_ms = 0;
    else if (!members_st.dead_since_ms)
        members_st.dead_since_ms = t;
    bool leaves = members_st.leaves_since_ms && t - members_st.leaves_since_ms >= LEAVE_COLLECT;
    bool joins = members_st.joins_since_ms && t - members_st.joins_since_ms >= JOIN_COLLECT;
    if (!members_keeper_is_self() && !(dead && t - members_st.dead_since_ms >= KEEPER_FIRST))
        return;
    if (dead && !may_leave_out(t))
        dead = false;
    if (!dead && !leaves && !joins)
        return;
    struct make_job *j = changes(t, dead);
    if (j->nout + j->nleft + j->nin)
        make(j);
    else
        free_make(j);
}

/* ---- an absent node is forgotten (rule 17) ---- */

static void forget_here(void *arg)
{
    const struct change *c = arg;
    if (members_st.making || !members_st.view || members_st.view != members_newest_view() ||
        !members_lease())
        return;
    struct make_job *j = new_make(members_st.view);
    j->gone = *c;
    make(j);
}

void members_forget(uint64_t id, uint64_t incarnation)
{
    struct change c = {id, incarnation};
    loop_call(forget_here, &c);
}

/* ---- what a node outside the view does: rules 2(c), (d), (e) ---- */

static void make_alone(const struct view *base)
{
    struct make_job *j = new_make(base);
    for (uint32_t i = 0; base && i < base->nmembers; i++)
        if (base->members[i].id != members_st.cfg.self.id)
            j->out[j->nout++] = (struct change){base->members[i].id, base->members[i].incarnation};
    j->in[j->nin++] = (struct change){members_st.cfg.self.id, members_st.cfg.self.incarnation};
    make(j);
}

/* True: another live node has this node's name: users could not tell the two daemons apart in messages. */
static bool name_taken(const struct view *v)
{
    for (uint32_t i = 0; i < v->nmembers; i++) {
        const struct member *m = &v->members[i];
        if (m->id == members_st.cfg.self.id || strcmp(m->name, members_st.cfg.self.name))
            continue;
        snprintf(members_st.join_problem, sizeof(members_st.join_problem),
                 "another node named %s is in the session (at %s): give this one another name with "
                 "--node",
                 m->name, m->addr);
        return true;
    }
    return false;
}

void members_outside_tick(uint64_t t)
{
    const struct view *v = members_newest_view();
    uint32_t others = 0, answering = 0; /* superseded ones are dead: they do not count */
    if (t - members_st.last_read_ms >= T_PING)
        members_want_read();
    if (!members_st.joining || members_st.making || t < members_st.join_at_ms ||
        !members_st.newest_read_t0)
        return;
    for (uint32_t i = 0; v && i < v->nmembers; i++) {
        if (members_superseded(&v->members[i]))
            continue;
        others++;
        struct node *n = members_node_of(v->members[i].id, v->members[i].incarnation);
        answering += members_alive(n, t);
        if (!n->pinging)
            members_ping_node(n, false, 0);
    }
    if (!others) {
        /* no node is there: it is the first view, or the view has only older incarnations of this node and
         * of others, which are dead */
        make_alone(v);
    } else if (answering == others) {
        const struct member *k = members_keeper_of(v);
        if (k && !name_taken(v))
            members_ping_node(members_node_of(k->id, k->incarnation), false, ASK_TO_JOIN);
    } else if (!answering && members_st.view_age_known && members_st.view_age_ms >= T_STALE) {
        log_warn("no node of view %lu answers and it was not touched for %lu s: this node begins a "
                 "new one",
                 (unsigned long)v->number, (unsigned long)members_st.view_age_ms / 1000);
        make_alone(v);
    } else {
        snprintf(members_st.join_problem, sizeof(members_st.join_problem),
                 "%u of %u nodes of the session answer; it goes on when all do, or when the others "
                 "are taken out of it "
                 "(%u s after the last sign of life)",
                 answering, others, T_STALE / 1000);
    }
}

/* Members that do not answer stay: leaving them out takes more (rule 2b), and the node that starts next does
 * it. */
void members_make_without_leavers(void)
{
    struct make_job *j = new_make(members_st.view);
    j->left[j->nleft++] = (struct change){members_st.cfg.self.id, members_st.cfg.self.incarnation};
    for (struct node *n = members_st.nodes; n; n = n->next)
        if (n->leaves && view_has(members_st.view, n->id, n->incarnation))
            j->left[j->nleft++] = (struct change){n->id, n->incarnation};
    make(j);
}
