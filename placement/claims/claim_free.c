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
};

static void freed(void *arg, int err, struct msg *reply, bool *keep);

/* Network thread. */
static void send_free(void *arg)
{
    struct freeing *j = arg;
    const struct view *v = members_view();
    if (!v || (j->view && v->number != j->view)) {
        free(j);
        return;
    }
    j->view = v->number;
    struct msg *m = msg_new(MSG_FREE);
    m->free.fid = j->fid;
    m->free.number_inc = j->inc;
    m->free.number = j->number;
    m->free.known = j->known;
    m->free.version = j->version;
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

static bool free_here(struct fid fid, uint64_t inc, uint64_t number, const struct version *v)
{
    const struct view *view = members_view();
    struct body_free f = {.fid = fid, .number_inc = inc, .number = number, .known = v != NULL};
    if (!view || view_home(view, fid) != members_self())
        return false;
    if (v)
        f.version = *v;
    return home_free_here(view->number, &f);
}

void claim_tell_free(struct fid fid, uint64_t inc, uint64_t number, const struct version *v)
{
    if (free_here(fid, inc, number, v))
        return;
    struct freeing *j = xcalloc(1, sizeof(*j));
    *j = (struct freeing){.fid = fid, .inc = inc, .number = number, .known = v != NULL};
    if (v)
        j->version = *v;
    loop_post(send_free, j);
}
