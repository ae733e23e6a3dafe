/* xattr.c - extended attributes, POSIX ACLs among them: the PFS's, passed through with its errors.
 * One has a meaning here, a directory's flush policy (dir_policy.c): it is given sound values only.
 *
 * A changed ACL changes the mode, and a default ACL whether the umask counts: what is remembered of
 * either is dropped.
 *
 * `ls -l` asks for ACLs and security labels; while the PFS hangs it is told that there are none,
 * where that is known or can do no harm.
 */
#include "fs/fs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "placement/pfs_data.h"

#define ACL_PREFIX "system.posix_acl_"

/* The PFS's op on the inode by a name that leads to it. */
typedef int (*xattr_op)(struct request *r, size_t *out);

static int get_op(struct request *r, size_t *out)
{
    return pfs_getxattr(r->inode->node, r->name, r->text, r->size, out);
}

static int list_op(struct request *r, size_t *out)
{
    return pfs_listxattr(r->inode->node, r->text, r->size, out);
}

static int set_op(struct request *r, size_t *out)
{
    (void)out;
    return pfs_setxattr(r->inode->node, r->name, r->text, r->size, r->flags, request_cred(r));
}

static int remove_op(struct request *r, size_t *out)
{
    (void)out;
    return pfs_removexattr(r->inode->node, r->name, request_cred(r));
}

/* Once more by another name when this one leads nowhere any more. */
static int run(struct request *r, xattr_op op, size_t *out)
{
    int err = op(r, out);
    if (err != -ESTALE)
        return err;
    struct statx stx;
    int found = attr_stat(r->inode, &stx);
    return found ? found : op(r, out);
}

/* ---- without the PFS ---- */

/* Which of no_acl_ctime_ns name is; -1: no ACL. */
static int acl_kind(const char *name)
{
    if (!strcmp(name, ACL_PREFIX "access"))
        return 0;
    return strcmp(name, ACL_PREFIX "default") ? -1 : 1;
}

static int64_t attr_ctime_ns(const struct inode *i)
{
    return ns_of_time(i->attr.st_ctim.tv_sec, i->attr.st_ctim.tv_nsec);
}

static void remember_none(struct request *r)
{
    int kind = acl_kind(r->name);
    struct inode *i = r->inode;
    if (kind < 0)
        return;
    lock_take(&i->lock);
    i->no_acl_ctime_ns[kind] = i->attr_known ? attr_ctime_ns(i) : 0;
    lock_drop(&i->lock);
}

/* An ACL takes rights away from the mode's bits, so it is called absent only where it is known to
 * be; a label that the kernel or `ls` asks for only gives some. */
static bool is_none(struct request *r)
{
    int kind = acl_kind(r->name);
    struct inode *i = r->inode;
    if (kind < 0)
        return !strncmp(r->name, "security.", strlen("security."));
    lock_take(&i->lock);
    bool none = i->attr_known && i->no_acl_ctime_ns[kind] == attr_ctime_ns(i);
    lock_drop(&i->lock);
    return none;
}

/* The kernel asks before the first write whether it must take capabilities away.  A file that this
 * node created less than the attribute time-out ago, and gave nothing since, has none. */
static bool is_new_without(struct inode *i, const char *name)
{
    if (strcmp(name, "security.capability"))
        return false;
    uint64_t timeout_ms = (uint64_t)(settings.attr_timeout * 1000);
    lock_take(&i->lock);
    bool is_new = i->born_ms > i->touched_ms && boot_ms() - i->born_ms < timeout_ms;
    lock_drop(&i->lock);
    return is_new;
}

static bool getxattr_stalled(struct request *r)
{
    if (!is_none(r) || !request_take(r))
        return false;
    fuse_reply_err(r->req, ENODATA);
    return true;
}

/* ---- reading ---- */

/* Size 0 asks for the size only. */
static void read_fn(struct request *r, xattr_op op)
{
    size_t out = 0;
    if (r->size)
        r->text = xmalloc(r->size);
    int err = run(r, op, &out);
    /* Without a name the PFS cannot be asked; the kernel asks for ACLs. */
    if (err == -ESTALE && r->inode->gone)
        err = op == list_op ? 0 : -ENODATA;
    else if (err == -ENODATA)
        remember_none(r);
    if (err) {
        request_err(r, err);
    } else if (r->size) {
        request_buf(r, r->text, out);
    } else {
        if (request_take(r))
            fuse_reply_xattr(r->req, out);
        request_done(r);
    }
}

static void getxattr_fn(struct request *r)
{
    read_fn(r, get_op);
}

static void listxattr_fn(struct request *r)
{
    read_fn(r, list_op);
}

/* ---- changing ---- */

static void acl_changed(struct inode *i)
{
    lock_take(&i->lock);
    i->default_acl_ms = 0;
    lock_drop(&i->lock);
    notify_attr_now(i->nodeid);
}

static int change(struct request *r, xattr_op op)
{
    struct statx stx;
    bool policy = dir_policy_is_name(r->name);
    if (policy && op == set_op && dir_policy_check(r->inode, r->text, r->size))
        return -EINVAL;
    int err = attr_stat(r->inode, &stx); /* also finds a name that leads there */
    if (err)
        return err;
    struct same same;
    same_begin(&same, &stx);
    err = op(r, NULL);
    if (err)
        return err;
    if (!strncmp(r->name, ACL_PREFIX, strlen(ACL_PREFIX)))
        acl_changed(r->inode);
    if (policy)
        dir_policy_changed(r->inode);
    if (same.on && !attr_stat(r->inode, &stx))
        same_end(&same, &stx);
    return 0;
}

static void setxattr_fn(struct request *r)
{
    request_err(r, change(r, set_op));
}

static void removexattr_fn(struct request *r)
{
    request_err(r, change(r, remove_op));
}

/* ---- operations ---- */

static struct request *request_with_name(fuse_req_t req, fuse_ino_t ino, const char *name)
{
    struct request *r = request_new(req, ino);
    if (!r)
        return NULL;
    size_t len = strlen(name);
    if (len >= REQUEST_NAME_MAX) {
        request_err(r, -ERANGE);
        return NULL;
    }
    memcpy(r->name, name, len + 1);
    return r;
}

static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
    struct request *r = request_with_name(req, ino, name);
    if (!r)
        return;
    if (is_new_without(r->inode, name)) {
        request_err(r, -ENODATA);
        return;
    }
    r->size = size;
    request_on_stall(r, getxattr_stalled);
    request_start(r, pool_names, getxattr_fn);
}

static void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
    struct request *r = request_new(req, ino);
    if (!r)
        return;
    r->size = size;
    request_start(r, pool_names, listxattr_fn);
}

static void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
                        size_t size, int flags)
{
    struct request *r = request_with_name(req, ino, name);
    if (!r)
        return;
    r->text = xmalloc(size);
    memcpy(r->text, value, size);
    r->size = size;
    r->flags = flags;
    request_start(r, pool_names, setxattr_fn);
}

static void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
    struct request *r = request_with_name(req, ino, name);
    if (r)
        request_start(r, pool_names, removexattr_fn);
}

void xattr_ops(struct fuse_lowlevel_ops *ops)
{
    ops->getxattr = op_getxattr;
    ops->listxattr = op_listxattr;
    ops->setxattr = op_setxattr;
    ops->removexattr = op_removexattr;
}
