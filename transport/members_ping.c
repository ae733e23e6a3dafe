/* members_ping.c - which nodes answer: pings, probes, leases (docs/protocol.md, rule 4), suspicion.
 *
 *     ok        --silent for T_SUSPECT, a request unanswered, connection broken--> probing
 *     probing   --an answer--> ok      --two tries without an answer--> suspected: others serve in its place
 *     suspected --any message--> ok    --silent for T_DEAD, or its port refuses--> dead
 *
 * members_make.c leaves dead nodes out of the next view; being dead has no other consequence.  A suspected
 * node is asked once in T_PING, so that it is in use again as soon as it answers. */
#include "transport/loop.h"
#include "transport/members_int.h"
#include "transport/members_ping.h"
#include "transport/peer.h"
#include "transport/view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the nodes ---- */

/* In the network thread, or with members_now.lock held. */
static struct node **bucket(uint64_t id)
{
    return &members_st.by_id[(id ^ id >> 32) % NODE_BUCKETS]; /* ids are random */
}

static struct node *find(uint64_t id)
{
    struct node *n = *bucket(id);
    while (n && n->id != id)
        n = n->next_in_bucket;
    return n;
}

struct node *members_node_of(uint64_t id, uint64_t incarnation)
{
    struct node *n = find(id);
    if (!n) {
        n = xcalloc(1, sizeof(*n));
        n->id = id;
        n->incarnation = incarnation;
        lock_take(&members_now.lock);
        n->next = members_st.nodes;
        members_st.nodes = n;
        n->next_in_bucket = *bucket(id);
        *bucket(id) = n;
        lock_drop(&members_now.lock);
    } else if (incarnation > n->incarnation) {
        n->incarnation = incarnation;
        n->answered_ms = 0;
        n->refused = n->probing = n->suspected = n->pinging = n->wants_in = n->parting = n->leaves =
            n->owes = false;
    }
    return n;
}

static void suspect(struct node *n, bool yes)
{
    if (n->suspected == yes)
        return;
    lock_take(&members_now.lock);
    n->suspected = yes;
    lock_drop(&members_now.lock);
    count(suspicions, yes);
    if (yes && (n->parting || !view_member(members_newest_view(), n->id)))
        log_debug("node %016" PRIx64 " leaves, and does not answer any more", n->id);
    else if (yes)
        log_warn("node %s does not answer: it is suspected: its files are served from elsewhere",
                 members_name(n->id));
    else
        log_info("node %s answers again", members_name(n->id));
}

static void sign_of_life(struct node *n)
{
    n->answered_ms = members_st.contact_ms = boot_ms();
    n->probing = n->refused = false;
    suspect(n, false);
}

bool members_suspected(uint64_t id)
{
    if (id == members_self())
        return false;
    lock_take(&members_now.lock);
    const struct node *n = find(id);
    bool suspected = n && n->suspected;
    lock_drop(&members_now.lock);
    return suspected;
}

bool members_alive(struct node *n, uint64_t t)
{
    return !n->suspected && n->answered_ms && t - n->answered_ms <= T_SUSPECT;
}

bool members_dead_in(const struct node *n, uint64_t t, uint64_t ms)
{
    return n->suspected && (n->refused || t + ms - n->silent_ms >= T_DEAD);
}

bool members_dead(const struct node *n, uint64_t t)
{
    return members_dead_in(n, t, 0);
}

/* Because of the lock on the cache directory, two incarnations never run. */
bool members_superseded(const struct member *m)
{
    if (m->id == members_st.cfg.self.id)
        return m->incarnation != members_st.cfg.self.incarnation;
    return members_node_of(m->id, m->incarnation)->incarnation > m->incarnation;
}

/* The first member that is not suspected and stays. */
const struct member *members_keeper_of(const struct view *v)
{
    for (uint32_t i = 0; v && i < v->nmembers; i++) {
        const struct member *m = &v->members[i];
        if (members_superseded(m))
            continue;
        if (m->id == members_st.cfg.self.id)
            return m;
        const struct node *n = members_node_of(m->id, m->incarnation);
        if (!n->suspected && !n->parting)
            return m;
    }
    return NULL;
}

bool members_keeper_is_self(void)
{
    const struct member *k = members_keeper_of(members_st.view);
    return k && k->id == members_st.cfg.self.id && !members_st.leaving;
}

/* ---- ping, probe, lease (rule 4) ---- */

struct ping {
    struct node *n;
    uint64_t sent_ms, view;
    bool probe;
};

void members_ping_node(struct node *n, bool probe, uint64_t adopted);

void members_lease_from(uint64_t since_ms)
{
    if (since_ms + T_LEASE > members_now.lease_until_ms)
        members_now.lease_until_ms = since_ms + T_LEASE;
}

static void take_pong(struct ping *p, const struct body_pong *b)
{
    if (b->newest > members_now.newest)
        members_want_read();
    else if (members_st.view && p->view == members_st.view->number && b->newest == p->view &&
             p->sent_ms > b->age_ms)
        members_lease_from(p->sent_ms - b->age_ms);
}

static void ponged(void *arg, int err, struct msg *reply, bool *keep)
{
    struct ping *p = arg;
    struct node *n = p->n;
    (void)keep;
    if (members_st.left) { /* members_stop may have freed n */
        free(p);
        return;
    }
    n->pinging = false;
    if (!err && reply->head.incarnation == n->incarnation) {
        sign_of_life(n);
        take_pong(p, &reply->pong);
    } else if (p->probe && n->probing) {
        /* two tries, one directly after the other, before it is suspected */
        if (++n->tries < 2) {
            members_ping_node(n, true, members_st.view ? members_st.view->number : 0);
        } else {
            n->probing = false;
            suspect(n, true);
            loop_post(members_tick, NULL);
        }
    }
    free(p);
}

void members_ping_node(struct node *n, bool probe, uint64_t adopted)
{
    struct msg *m = msg_new(MSG_PING);
    struct ping *p = xcalloc(1, sizeof(*p));
    *p = (struct ping){n, boot_ms(), members_st.view ? members_st.view->number : 0, probe};
    n->pinging = true;
    m->ping.adopted = adopted;
    count(pings_sent, 1);
    peer_request(n->id, m, T_PING, NULL, 0, ponged, p);
}

/* A node that was not asked has not been silent.  A node that becomes keeper, or was stopped, has not heard
 * from most others for long. */
void members_probe(struct node *n, uint64_t since_ms)
{
    uint64_t t = boot_ms();
    if (n->probing || n->suspected)
        return;
    n->probing = true;
    n->silent_ms = MAX(since_ms, t - MIN(t, T_SUSPECT + T_PING));
    n->tries = 0;
    members_ping_node(n, true, members_st.view ? members_st.view->number : 0);
}

static void doubt_here(void *arg)
{
    uint64_t *id = arg;
    const struct member *m = view_member(members_st.view, *id);
    if (m && *id != members_st.cfg.self.id)
        members_probe(members_node_of(m->id, m->incarnation), boot_ms());
    free(id);
}

void members_doubt(uint64_t id)
{
    uint64_t *copy = xmalloc(sizeof(*copy));
    *copy = id;
    loop_post(doubt_here, copy);
}

void members_handle_ping(struct msg *m)
{
    struct node *n = members_node_of(m->head.sender, m->head.incarnation);
    struct msg *r = msg_new(MSG_PONG);
    uint64_t t = boot_ms(), age = t - members_st.newest_read_t0;
    if (m->head.incarnation == n->incarnation) {
        sign_of_life(n);
        if (m->ping.adopted == ASK_TO_JOIN &&
            !view_has(members_newest_view(), n->id, n->incarnation)) {
            n->wants_in = true;
            if (!members_st.joins_since_ms)
                /* at each asking: the view may have been made without it */
                members_st.joins_since_ms = t;
        }
    }
    r->pong.age_ms = !members_st.newest_read_t0 || age > UINT32_MAX ? UINT32_MAX : (uint32_t)age;
    r->pong.newest = members_now.newest;
    count(pings_sent, 1);
    peer_reply(m, r);
    msg_free(m);
}

void members_handle_note(struct msg *m)
{
    if (m->note.newest > members_now.newest)
        members_want_read();
    msg_free(m);
}

void members_heard(uint64_t id, uint64_t incarnation, uint64_t view)
{
    struct node *n = members_node_of(id, incarnation);
    if (n->incarnation == incarnation)
        sign_of_life(n);
    if (view > members_now.newest)
        members_want_read();
}

void members_went_down(uint64_t id, uint64_t incarnation, int err)
{
    if (!view_has(members_st.view, id, incarnation))
        return;
    struct node *n = members_node_of(id, incarnation);
    if (n->incarnation != incarnation)
        return;
    if (err == -ECONNREFUSED)
        n->refused = true;
    members_probe(n, boot_ms());
}

static void probe_if_silent(struct node *n, uint64_t since_ms, uint64_t t)
{
    if (t - since_ms > T_SUSPECT)
        members_probe(n, since_ms);
}

/* A node that suspects another one asks it itself: no third node would say that it is back. */
static void ping_suspects(void)
{
    for (struct node *n = members_st.nodes; n; n = n->next)
        if (n->suspected && !n->pinging && view_has(members_st.view, n->id, n->incarnation))
            members_ping_node(n, false, members_st.view->number);
}

void members_ping_round(uint64_t t)
{
    const struct member *k = members_keeper_of(members_st.view);
    ping_suspects();
    if (k && k->id != members_st.cfg.self.id) {
        struct node *n = members_node_of(k->id, k->incarnation);
        if (!n->pinging)
            members_ping_node(n, false, members_st.view->number);
        probe_if_silent(n, MAX(n->answered_ms, members_st.first_seen_ms), t);
        return;
    }
    for (uint32_t i = 0; i < members_st.view->nmembers; i++) {
        if (members_st.view->members[i].id == members_st.cfg.self.id)
            continue;
        struct node *n = members_node_of(members_st.view->members[i].id,
                                         members_st.view->members[i].incarnation);
        probe_if_silent(
            n, MAX(n->answered_ms, MAX(members_st.member_since_ms, members_st.first_seen_ms)), t);
    }
}
