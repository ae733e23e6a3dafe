/* members_leave.c - leaving cleanly (docs/protocol.md, rule 18): farewells to all members, then a view
 * without this node. */
#include "transport/loop.h"
#include "transport/members_int.h"
#include "transport/members_ping.h"
#include "transport/peer.h"
#include "transport/view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- leaving (rule 18) ---- */

/* The caller frees it and its members; its absent nodes are those of v. */
static struct view *without_self(const struct view *v)
{
    struct view *w = xcalloc(1, sizeof(*w));
    w->number = v->number + 1;
    w->members = xcalloc(v->nmembers, sizeof(*w->members));
    for (uint32_t i = 0; i < v->nmembers; i++)
        if (v->members[i].id != members_st.cfg.self.id)
            w->members[w->nmembers++] = v->members[i];
    w->absents = v->absents;
    w->nabsent = v->nabsent;
    return w;
}

static void told(void *arg, int err, struct msg *reply, bool *keep)
{
    (void)arg;
    (void)reply;
    (void)keep;
    if (err)
        members_st.told = 0; /* again at the next tick, maybe to another one */
    members_want_read();
}

static void tell(const struct member *k)
{
    struct msg *m = msg_new(MSG_ADOPTED);
    m->adopted.view = members_st.view->number + 1;
    m->adopted.leaving = TAKE_ME_OUT;
    members_st.told = k->id;
    peer_request(k->id, m, T_SUSPECT, NULL, 0, told, NULL);
}

static void send_farewells(void)
{
    static uint64_t sent_for;
    const struct view *v = members_st.view;
    if (sent_for == v->number || v->nmembers < 2)
        return;
    sent_for = v->number;
    struct view *w = without_self(v);
    members_say_farewell(w);
    free(w->members);
    free(w);
}

/* All that live have the farewell. */
static bool farewells_heard(void)
{
    for (const struct node *n = members_st.nodes; n; n = n->next)
        if (n->owes && !n->suspected)
            return false;
    return true;
}

/* The first member that stays makes the view without this node.  If all leave, the first of all makes it. */
static const struct member *who_makes_it(void)
{
    const struct member *first = NULL;
    for (uint32_t i = 0; i < members_st.view->nmembers; i++) {
        const struct member *m = &members_st.view->members[i];
        const struct node *n = NULL;
        if (members_superseded(m))
            continue;
        if (m->id != members_st.cfg.self.id)
            n = members_node_of(m->id, m->incarnation);
        if (n && n->suspected)
            continue;
        if (n && !n->parting)
            return m;
        if (!first)
            first = m;
    }
    return first;
}

/* All nodes leave, and this one is the first.  The others get a moment to say that they are ready,
 * too. */
static void make_the_end(uint64_t t)
{
    if (!members_st.leaves_since_ms) {
        members_st.leaves_since_ms = t;
        members_tick_in(LEAVE_COLLECT);
    }
    if (members_st.view->nmembers == 1 || t - members_st.leaves_since_ms >= LEAVE_COLLECT)
        members_make_without_leavers();
}

/* The next step: farewells to all members, then the view without this node. */
void members_leave_step(void)
{
    uint64_t t = boot_ms();
    if (!members_st.view || members_st.left || members_st.making)
        return;
    send_farewells();
    if (!farewells_heard())
        return;
    const struct member *k = who_makes_it();
    if (k->id == members_st.cfg.self.id)
        make_the_end(t);
    else if (members_st.told != k->id)
        tell(k);
    else if (t - members_st.last_read_ms >= 200)
        members_want_read();
}

static void begin_leave(void *arg)
{
    (void)arg;
    members_st.leaving = true;
    members_now.leaving = true;
    if (!members_st.view)
        members_st.left = true;
    else
        members_leave_step();
}

int members_leave(unsigned timeout_ms)
{
    uint64_t end = boot_ms() + timeout_ms;
    int err = 0;
    loop_call(begin_leave, NULL);
    lock_take(&members_now.lock);
    while (!members_st.left && !err) {
        uint64_t t = boot_ms();
        if (t >= end)
            err = -ETIMEDOUT;
        else
            lock_wait(&members_now.lock, &members_now.changed, MIN(end - t, 100));
    }
    lock_drop(&members_now.lock);
    return err;
}
