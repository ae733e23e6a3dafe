/* moves_unlink.c - unlink and rmdir. */
#include <errno.h>
#include <stdlib.h>

#include "fs/links.h"
#include "fs/moves_int.h"
#include "fs/names.h"
#include "fs/ops.h"
#include "placement/foresight/foresight.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"

#define LOOKS 8 /* tries to remove a name while other files with several names take it */

static void unlinked(struct request *r)
{
    if (request_take(r))
        fuse_reply_err(r->req, 0);
}

/* What is done before a file loses a name. */
struct removing {
    struct statx was;
    int held;          /* of pfs_unlink */
    int seen;          /* of going_hold */
    struct file *kept; /* of going_keep */
    struct name_goes goes;
};

/* Removes the name on the PFS, if it leads to this file.  Others that have it open are told first, and if it has other
 * names, it is cared for. */
static int unlink_file(struct request *r, const struct fid *fid, bool several, struct removing *v)
{
    *v = (struct removing){.held = -1, .seen = -1};
    bool known = fid->hi || fid->lo;
    if (known)
        name_goes_begin(&v->goes, fid, 1);
    v->kept = going_keep(r->inode, r->name);
    if (several) {
        struct pfs_node *node = pfs_child(r->inode->node, r->name);
        links_before_removal(*fid, node);
        pfs_unref(node);
    }
    int err = known ? going_hold(r->inode, r->name, *fid, &v->goes, &v->seen, &v->was) : 0;
    if (err == -EAGAIN)
        err = -EMLINK;
    if (!err)
        err = pfs_unlink(r->inode->node, r->name, fid, several, request_cred(r), &v->was, &v->held);
    if (err) {
        pfs_unlink_done(v->seen);
        going_keep_end(v->kept, NULL);
        name_goes_end(&v->goes);
    }
    return err;
}

/* What this node knows by this name may not be what the name leads to. */
static int unlink_on_pfs(struct request *r, struct removing *v)
{
    struct fid fid;
    bool several = links_are_known(r->inode, r->name, &fid);
    int err = -EMLINK;
    for (unsigned tries = 0; err == -EMLINK && tries < LOOKS; tries++) {
        err = unlink_file(r, &fid, several, v);
        if (err == -EMLINK) {
            fid = fid_of(&v->was);
            several = v->was.stx_nlink > 1;
        }
    }
    return err;
}

static void hint_ends(const struct request *r, const struct statx *was)
{
    if (!foresight_any())
        return;
    char *path = moves_name_path(r->inode, r->name);
    foresight_removed(path, fid_of(was));
    free(path);
}

/* If no other node is to be told, the answer comes before the file's data is dropped, where its inode number cannot become a
 * new file's: while a descriptor of it is open, the PFS does not use the number again. */
static void unlink_fn(struct request *r)
{
    struct removing v;
    int err = unlink_on_pfs(r, &v);
    if (err) {
        request_err(r, err);
        return;
    }
    struct going g = going_of(&v.was, &v.goes, v.held < 0 ? v.seen : v.held);
    going_name(&g, r->inode, r->name, &v.was);
    going_open(&g, &v.was);
    struct file *held = g.last && g.f && pfs_keep_number(g.f) ? file_ref(g.f) : NULL;
    bool tells = v.kept || going_must_tell(&g, &v.was);
    if (!tells && (held || v.held >= 0))
        unlinked(r);
    going_data(&g);
    going_others_same(&v.was);
    if (!tells)
        unlinked(r);
    if (held) {
        pfs_unhold_number(held);
        file_put_removed(held);
    }
    pfs_unlink_done(v.held);
    pfs_unlink_done(v.seen);
    going_tell(&g, &v.was, r->inode, r->name);
    unlinked(r);
    hint_ends(r, &v.was);
    going_keep_end(v.kept, g.last ? &v.was : NULL);
    name_goes_end(&v.goes);
    request_done(r);
}

static void rmdir_fn(struct request *r)
{
    int err = pfs_rmdir(r->inode->node, r->name, request_cred(r));
    struct inode *i = err ? NULL : inode_child(r->inode, r->name);
    if (i) {
        struct pfs_node *node = pfs_child(r->inode->node, r->name);
        inode_lost_name(i, node);
        inode_gone(i);
        pfs_gone(node);
        pfs_unref(node);
        inode_put(i);
    }
    request_err(r, err);
}

static void start_with_name(fuse_req_t req, fuse_ino_t parent, const char *name,
                            void (*fn)(struct request *r))
{
    struct request *r = request_new(req, parent);
    if (!r)
        return;
    int err = names_take(r->name, r->inode, name);
    if (err)
        request_err(r, err);
    else
        request_start(r, pool_names, fn);
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    start_with_name(req, parent, name, unlink_fn);
}

static void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    start_with_name(req, parent, name, rmdir_fn);
}

void unlink_ops(struct fuse_lowlevel_ops *ops)
{
    ops->unlink = op_unlink;
    ops->rmdir = op_rmdir;
}
