/* claim_forget.c - the asker's side of FORGET: asks the home until it can answer. */
#include "placement/claims/claim_forget.h"
#include "placement/claims/claim_int.h"

#include "placement/ring/ring.h"
#include "transport/peer.h"
#include "transport/view.h"

#include <errno.h>

static int result(const struct body_forgotten *b, uint64_t *node, uint32_t *wait_ms)
{
    *node = b->node;
    *wait_ms = b->wait_ms;
    switch (b->state) {
    case FORGET_NOTHING:
        return -ENODATA;
    case FORGET_WAITS:
        return -EAGAIN;
    case FORGET_PRESENT:
        return -EBUSY;
    default:
        return 0;
    }
}

/* -E_ASK_AGAIN, or no contact: asks once more. */
static int ask_once(struct fid fid, uint64_t *node, uint32_t *wait_ms)
{
    const struct view *v = members_view();
    struct msg *r = NULL;
    if (!v)
        return -E_ASK_AGAIN;
    struct msg *m = msg_new(MSG_FORGET);
    m->forget.fid = fid;
    int err = peer_call(view_home(v, fid), m, T_PING, NULL, 0, &r);
    if (members_no_contact(err)) {
        members_doubt(view_home(v, fid));
        err = -E_ASK_AGAIN;
    }
    if (!err)
        err = result(&r->forgotten, node, wait_ms);
    if (r)
        msg_free(r);
    return err;
}

int claim_forget(struct fid fid, uint64_t *node, uint32_t *wait_ms)
{
    uint64_t end = boot_ms() + T_OPEN;
    int err;
    while ((err = ask_once(fid, node, wait_ms)) == -E_ASK_AGAIN && boot_ms() < end)
        claim_wait(100);
    return err == -E_ASK_AGAIN ? -ETIMEDOUT : err;
}
