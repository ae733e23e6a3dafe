/* claim_named.c - names of files change while other nodes have their claims: tells the claimant
 * the new name (NAMED), and the home that the data is still the same (SAME).
 */
#include "placement/claims/claim.h"
#include "placement/claims/claim_give.h"
#include "placement/claims/claim_int.h"

#include "placement/pfs/pfs_data.h"
#include "placement/ring/ring.h"
#include "transport/loop.h"
#include "transport/peer.h"
#include "transport/view.h"

#include <errno.h>
#include <string.h>

/* ---- the claimant's side ---- */

/* "Gone" is believed only if the PFS says so, too. */
static void check_gone(struct file *f)
{
    struct statx stx;
    int err = pfs_file_stat(f, &stx);
    if ((!err && !stx.stx_nlink) || err == -ENOENT || err == -ESTALE)
        claim_unlinked(f);
}

static void take_name(void *arg)
{
    struct msg *m = arg;
    struct file *f = file_find(m->named.fid);
    if (f && m->named.gone)
        check_gone(f);
    else if (f)
        file_set_path(f, m->named.path);
    if (f)
        file_put(f);
    struct msg *r = msg_new(MSG_NAMED_OK);
    r->named_ok.done = f != NULL;
    peer_reply(m, r);
    msg_free(m);
}

static void handle_named(struct msg *m)
{
    pool_submit(pool_data, take_name, m);
}

/* ---- the side of the node that changed the name ---- */

int claim_named(struct fid fid, uint64_t claimant, const char *path)
{
    struct msg *m = msg_new(MSG_NAMED);
    m->named.fid = fid;
    m->named.gone = path == NULL;
    m->named.path = path ? path : "";
    int err = peer_call(claimant, m, 5000, NULL, 0, NULL);
    if (err)
        log_warn("node %s did not hear the new name of a file that it writes (%s): it finds the "
                 "file by its descriptor: %s",
                 members_name(claimant), strerror(-err), path ? path : "(removed)");
    return err;
}

void claim_publish_same(struct fid fid, const struct version *before, const struct version *after)
{
    const struct view *v = members_view();
    if (!v || version_eq(before, after) || before->size != after->size)
        return;
    struct msg *m = msg_new(MSG_SAME);
    m->same.fid = fid;
    m->same.before = *before;
    m->same.after = *after;
    peer_send(view_home(v, fid), m);
}

void claim_named_start(void)
{
    peer_handle(MSG_NAMED, handle_named);
}
