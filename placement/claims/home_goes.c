/* home_goes.c - before a name of a file goes, the nodes that have the file open are told (docs/protocol.md, "Looking").
 *
 *     WHERE (LOOK_GOES) --> BREAK to each that has it open, but the asker --> BROKEN from all --> AT
 *
 * Some of them may have opened it without a descriptor on the PFS.  They take one before they answer, since no name may lead
 * to the file afterwards.  Who opens it from now on takes one, too (looker_goes), until the asker has left.
 *
 * While a node has the claim nobody need be told: all others that have the file open were told before the claim was
 * granted, or have opened it since, and have descriptors.
 */
#include "placement/claims/home_answer.h"
#include "placement/claims/home_int.h"
#include "transport/peer.h"

#include <stdlib.h>

/* One WHERE whose BREAKs are under way. */
struct goes {
    struct goes *next, **prev; /* of all; prev NULL: it is over */
    struct msg *m;             /* the WHERE */
    struct asker who;
    unsigned users, waiting;
};

/* One node that is told of one file. */
struct looking {
    struct goes *g;
    struct fid fid;
    uint64_t id, grant;
};

static struct goes *goes_all;

static bool is_claimed(const struct record *r)
{
    return r && r->claimant && !r->granting;
}

static bool is_granting(struct fid fid)
{
    const struct record *r = record_find(fid);
    return r && r->granting;
}

/* Those that have it open, as indexes in the view; out has room for each member.  Answers how many. */
static uint32_t openers(struct fid fid, uint32_t but, uint32_t *out)
{
    struct looker_found found[LOOKERS_NAMED + 1];
    unsigned n = lookers_of(fid, found);
    uint32_t count = 0;
    for (unsigned i = 0; i < n; i++) {
        if (found[i].node == LOOKER_ANY) {
            count = 0;
            for (uint32_t k = 0; k < home.view->nmembers; k++)
                if (k != but)
                    out[count++] = k;
            return count;
        }
        if (found[i].look != LOOK_STAT && found[i].node != but)
            out[count++] = found[i].node;
    }
    return count;
}

bool home_goes_here(struct fid fid, const struct asker *who)
{
    uint32_t room[LOOKERS_NAMED + 1], *others = room;
    if (home.view->nmembers == 1)
        return true;
    if (is_granting(fid))
        return false;
    if (home.view->nmembers > LOOKERS_NAMED)
        others = xmalloc(home.view->nmembers * sizeof(*others));
    bool alone = is_claimed(record_find(fid)) || !openers(fid, who->node, others);
    if (alone)
        looker_goes(fid, who->node, who->number);
    if (others != room)
        free(others);
    return alone;
}

/* ---- BREAK ---- */

static void goes_put(struct goes *g)
{
    if (!--g->users)
        free(g);
}

static struct msg *goes_take_out(struct goes *g)
{
    struct msg *m = g->m;
    *g->prev = g->next;
    if (g->next)
        g->next->prev = g->prev;
    g->prev = NULL;
    g->m = NULL;
    goes_put(g);
    return m;
}

void home_goes_drop(void)
{
    while (goes_all)
        home_ask_again(goes_take_out(goes_all));
}

bool home_goes_working(void)
{
    for (const struct goes *g = goes_all; g; g = g->next)
        peer_working(g->m);
    return goes_all;
}

/* All are told: the answer, if this home may still give one. */
static void end_goes(struct goes *g)
{
    const struct asker who = g->who;
    struct msg *m = goes_take_out(g);
    bool may = true;
    for (uint32_t i = 0; i < m->where.fids.n; i++)
        may &= home_may_tell(m->head.view, m->where.fids.v[i].fid);
    if (may)
        home_reply_where(m, &who);
    else
        home_ask_again(m);
}

static void looking_end(void *arg)
{
    struct looking *t = arg;
    goes_put(t->g);
    free(t);
}

static void send_goes(struct looking *t);

static void goes_again(void *arg)
{
    struct looking *t = arg;
    lock_take(&home_lock);
    if (t->g->prev)
        send_goes(t);
    else
        looking_end(t);
    lock_drop(&home_lock);
}

static void goes_broken(void *arg, int err, struct msg *reply, bool *keep)
{
    struct looking *t = arg;
    (void)reply;
    (void)keep;
    lock_take(&home_lock);
    if (t->g->prev && err) {
        if (members_no_contact(err))
            members_doubt(t->id);
        home_later(goes_again, looking_end, t);
    } else {
        if (t->g->prev && !--t->g->waiting)
            end_goes(t->g);
        looking_end(t);
    }
    lock_drop(&home_lock);
}

static void send_goes(struct looking *t)
{
    struct msg *m = msg_new(MSG_BREAK);
    m->brk.fid = t->fid;
    m->brk.grant = t->grant;
    count(breaks_sent, 1);
    peer_request(t->id, m, T_SUSPECT, NULL, 0, goes_broken, t);
}

/* ---- a name goes ---- */

static void tell(struct goes *g, struct fid fid, const uint32_t *to, uint32_t n)
{
    uint64_t grant = ++home.count;
    g->users += n;
    g->waiting += n;
    for (uint32_t i = 0; i < n; i++) {
        struct looking *t = xcalloc(1, sizeof(*t));
        *t = (struct looking){g, fid, home.view->members[to[i]].id, grant};
        send_goes(t);
    }
}

void home_goes(struct msg *m, const struct asker *who)
{
    for (uint32_t i = 0; i < m->where.fids.n; i++)
        if (is_granting(m->where.fids.v[i].fid)) {
            home_ask_again(m);
            return;
        }
    struct goes *g = xcalloc(1, sizeof(*g));
    *g = (struct goes){.next = goes_all, .prev = &goes_all, .m = m, .who = *who, .users = 1, .waiting = 1};
    if (goes_all)
        goes_all->prev = &g->next;
    goes_all = g;
    uint32_t *to = xmalloc((home.view->nmembers + 1) * sizeof(*to));
    for (uint32_t i = 0; i < m->where.fids.n; i++) {
        struct fid fid = m->where.fids.v[i].fid;
        looker_goes(fid, who->node, who->number);
        if (!is_claimed(record_find(fid)))
            tell(g, fid, to, openers(fid, who->node, to));
    }
    free(to);
    home_arm(T_PING / 2); /* the asker waits in silence for T_PING */
    if (!--g->waiting)
        end_goes(g);
}
