/* moves_link.c - link: a file gets one more name. */
#include <errno.h>

#include "fs/attr_last.h"
#include "fs/attr_look.h"
#include "fs/entry.h"
#include "fs/known.h"
#include "fs/names.h"
#include "fs/ops.h"
#include "fs/same.h"
#include "placement/pfs/pfs_names.h"

static int link_file(struct request *r, struct statx *stx)
{
    struct same same;
    /* This also finds another name of the file, if another node has removed one of several. */
    int err = attr_stat(r->inode, stx);
    if (err)
        return err;
    same_begin(&same, stx);
    err = pfs_link(r->inode->node, r->inode2->node, r->name, request_cred(r), stx);
    if (!err)
        same_end(&same, stx);
    return err;
}

static void link_fn(struct request *r)
{
    struct statx stx;
    int err = link_file(r, &stx);
    if (err) {
        request_err(r, err);
        return;
    }
    struct stat st;
    struct belief b;
    struct inode *i = names_found(r->inode2, r->name, &stx);
    err = attr_complete(i, &stx, r->began_ms, &st, &b);
    if (!err)
        attr_remember(i, &st);
    reply_entry(r, i, &st, &b);
}

static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t newparent, const char *newname)
{
    struct request *r = request_new(req, ino);
    if (!r)
        return;
    r->inode2 = inode_get(newparent);
    int err = r->inode2 ? names_take(r->name, r->inode2, newname) : -ESTALE;
    if (!err && S_ISDIR(r->inode->type))
        err = -EPERM;
    if (err)
        request_err(r, err);
    else
        request_start(r, pool_names, link_fn);
}

void link_ops(struct fuse_lowlevel_ops *ops)
{
    ops->link = op_link;
}
