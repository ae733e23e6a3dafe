/* claim_free.c - FREE: tells the home that a claim is given back, or that requests up to a number
 * have no claim.
 *
 * It is repeated until it is answered or the view changes: then ADOPTED has told it.  If this node is the
 * home, no message is needed.
 */
#include "placement/claims/claim_int.h"

#include "placement/claims/home.h"
#include "placement/ring/ring.h"
#include "transport/loop.h"
#include "transport/peer.h"
#include "transport/view.h"

#include <errno.h>
#include <stdlib.h>

struct freeing {
    struct fid fid;
    uint64_t inc, number, view;
    bool known;
    struct version version;
    struct told told;
    enum look look; /* of this node itself */
    uint64_t look_number;
    struct watchers watchers;
};

static void freed(void *arg, int err, struct msg *reply, bool *keep);

/* list: room for all watchers; it must stay as long as the body. */
static struct body_free body_of(const struct freeing *j, struct item_watcher *list)
{
    struct body_free b = {.fid = j->fid,
                          .number_inc = j->inc,
                          .number = j->number,
                          .known = j->known,
                          .version = j->version,
                          .told = j->told,
                          .look = (uint8_t)j->look,
                          .look_number = j->look_number,
                          .watchers = {.v = list}};
    for (unsigned i = 0; i < j->watchers.n; i++) {
        const struct claim_watcher *w = &j->watchers.v[i];
        list[b.watchers.n++] = (struct item_watcher){w->node, w->incarnation, (uint8_t)w->kinds};
    }
    if (j->watchers.any)
        list[b.watchers.n++] = (struct item_watcher){.left = (uint8_t)j->watchers.any};
    return b;
}

/* Network thread. */
static void send_free(void *arg)
{
    struct freeing *j = arg;
    struct item_watcher list[CLAIM_WATCHERS_MAX + 1];
    const struct view *v = members_view();
    if (!v || (j->view && v->number != j->view)) {
        free(j);
        return;
    }
    j->view = v->number;
    struct msg *m = msg_new(MSG_FREE);
    m->free = body_of(j, list);
    peer_request(view_home(v, j->fid), m, T_PING, NULL, 0, freed, j);
}

static void freed(void *arg, int err, struct msg *reply, bool *keep)
{
    struct freeing *j = arg;
    (void)reply;
    (void)keep;
    if (!err || err == -ECANCELED) {
        free(j);
        return;
    }
    home_later(send_free, free, j);
}

static bool free_here(const struct freeing *j)
{
    const struct view *view = members_view();
    struct item_watcher list[CLAIM_WATCHERS_MAX + 1];
    if (!view || view_home(view, j->fid) != members_self())
        return false;
    struct body_free f = body_of(j, list);
    return home_free_here(view->number, &f);
}

/* After the claim was cleared: an open that still found it here is counted.  The kernel may have attributes that
 * this node gave it as the claimant; also if it has not got the claim now, but had it just before, for a FREE of then
 * may come later than this one. */
static enum look own_look(struct fid fid)
{
    return look_is_open(fid) ? LOOK_OPEN : LOOK_STAT;
}

void claim_tell_free(struct fid fid, uint64_t inc, uint64_t number, const struct version *v,
                     const struct told *told, const struct watchers *had)
{
    struct freeing j = {.fid = fid, .inc = inc, .number = number, .known = v != NULL};
    if (v) {
        j.version = *v;
        j.told = *told;
    }
    if (had)
        j.watchers = *had;
    j.look = own_look(fid);
    j.look_number = look_number();
    if (free_here(&j))
        return;
    struct freeing *later = xmalloc(sizeof(*later));
    *later = j;
    loop_post(send_free, later);
}
