/* xattr.c - extended attributes, POSIX ACLs among them: the PFS's, passed through with its errors.
 * A directory's policies have a meaning here (dir_policy.c): only valid values are accepted.
 *
 * A changed ACL changes the mode, and a default ACL decides whether the umask counts: what is remembered of
 * either is dropped.
 *
 * `ls -l` asks for ACLs and security labels of each file.  The answer that a file has none is good as long as
 * its ctime stays, which setting one changes, and as long as the ctime was looked at less than the attribute
 * time-out ago.  Looks at many files (listings, ahead.c) ask each file for what was asked of others there.
 * While the PFS hangs the answer is that there are none, if that is known or can do no harm.
 *
 * QUEUE_XATTR is not the PFS's: it tells where the socket for hints is, and the file's path.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/attr_last.h"
#include "fs/attr_look.h"
#include "fs/dir_policy.h"
#include "fs/known.h"
#include "fs/notify.h"
#include "fs/ops.h"
#include "fs/xattr.h"
#include "fs/same.h"
#include "fs/settings.h"
#include "placement/foresight/foresight.h"
#include "placement/pfs/pfs_dir.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"
#include "transport/marks.h"

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

/* ---- that there is none is known ---- */

static const char *const kinds[XATTR_KINDS] = {
    ACL_PREFIX "access",
    ACL_PREFIX "default",
    "security.selinux",
    "security.capability",
};

static int kind_of(const char *name)
{
    for (int k = 0; k < XATTR_KINDS; k++)
        if (!strcmp(name, kinds[k]))
            return k;
    return -1;
}

/* Is the ctime young?  A second change in the same tick of the PFS's clock would not move it. */
static int64_t sure_ctime(const struct version *v)
{
    return version_racy(v, real_ns() + session_clock_offset_ns()) ? 0 : v->ctime_ns;
}

static void want_of_siblings(struct inode *i, int kind)
{
    struct pfs_node *parent = pfs_parent(i->node);
    struct inode *dir = parent ? inode_of_node(parent) : NULL;
    if (dir) {
        lock_take(&dir->lock);
        dir->xattr_asked_ms[kind] = boot_ms();
        lock_drop(&dir->lock);
    }
    inode_put(dir);
    pfs_unref(parent);
}

unsigned xattr_wanted(struct inode *dir)
{
    uint64_t now = boot_ms();
    unsigned wanted = 0;
    lock_take(&dir->lock);
    for (unsigned k = 0; k < XATTR_KINDS; k++)
        if (dir->xattr_asked_ms[k] && now - dir->xattr_asked_ms[k] < attr_timeout_ms())
            wanted |= 1u << k;
    lock_drop(&dir->lock);
    return wanted;
}

static unsigned known_absent(struct inode *i, int64_t ctime_ns)
{
    unsigned known = 0;
    lock_take(&i->lock);
    for (unsigned k = 0; k < XATTR_KINDS; k++)
        if (i->absent_ctime_ns[k] == ctime_ns)
            known |= 1u << k;
    lock_drop(&i->lock);
    return known;
}

unsigned xattr_look(struct pfs_dir *d, const char *name, const struct statx *stx, unsigned wanted,
                    struct inode *i)
{
    struct version v = version_of(stx);
    if (!wanted || !S_ISREG(stx->stx_mode) || !sure_ctime(&v))
        return 0;
    unsigned known = i ? known_absent(i, v.ctime_ns) & wanted : 0;
    if (known == wanted)
        return known;
    return known | pfs_absent_at(d, name, fid_of(stx), kinds, XATTR_KINDS, wanted & ~known);
}

static void note_absent(struct inode *i, int64_t ctime_ns, unsigned absent)
{
    lock_take(&i->lock);
    for (unsigned k = 0; k < XATTR_KINDS; k++)
        if (absent & 1u << k)
            i->absent_ctime_ns[k] = ctime_ns;
    lock_drop(&i->lock);
}

void xattr_absent(struct inode *i, const struct statx *stx, unsigned absent)
{
    struct version v = version_of(stx);
    if (absent)
        note_absent(i, v.ctime_ns, absent);
}

/* The ctime of a fresh look; 0: there was none. */
static int64_t fresh_ctime(struct inode *i, struct version *v)
{
    lock_take(&i->lock);
    const struct data_known *k = &i->known;
    bool fresh = k->looked_ms && k->looked_ms > i->touched_ms &&
                 boot_ms() - k->looked_ms < attr_timeout_ms();
    *v = k->version;
    lock_drop(&i->lock);
    return fresh ? v->ctime_ns : 0;
}

/* Answers without the PFS: there is none. */
static bool is_known_absent(struct inode *i, const char *name)
{
    struct version v;
    int kind = S_ISREG(i->type) ? kind_of(name) : -1;
    int64_t ctime_ns = kind < 0 ? 0 : fresh_ctime(i, &v);
    return ctime_ns && known_absent(i, ctime_ns) & 1u << kind;
}

/* ---- without the PFS, while it hangs ---- */

/* Which of no_acl_ctime_ns name is: the first kinds; -1: no ACL. */
static int acl_kind(const char *name)
{
    int kind = kind_of(name);
    return kind < 2 ? kind : -1;
}

/* A file's ctime as it is told does not show all changes of its attributes. */
static int64_t attr_ctime_ns(const struct inode *i)
{
    if (i->known.version.ctime_ns)
        return i->known.version.ctime_ns;
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

/* An ACL may take rights away that the mode's bits give.  So the answer is that there is none only where that
 * is known.  A label that the kernel or `ls` asks for only gives rights. */
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

/* Before the first write the kernel asks whether it must remove capabilities.  A file that this
 * node created less than the attribute time-out ago, and gave none since, has none. */
static bool is_new_without(struct inode *i, const char *name)
{
    if (strcmp(name, "security.capability"))
        return false;
    lock_take(&i->lock);
    bool is_new = i->born_ms > i->touched_ms && boot_ms() - i->born_ms < attr_timeout_ms();
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
    if (err == -ESTALE && attr_is_held(r->inode))
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

/* Uses the ctime from before the PFS is asked: if one is set meanwhile, the ctime changes. */
static int get_and_note(struct request *r, size_t *out)
{
    struct version v;
    int kind = S_ISREG(r->inode->type) ? kind_of(r->name) : -1;
    int64_t ctime_ns = kind >= 0 && fresh_ctime(r->inode, &v) ? sure_ctime(&v) : 0;
    if (kind >= 0)
        want_of_siblings(r->inode, kind);
    int err = get_op(r, out);
    if (err == -ENODATA && ctime_ns)
        note_absent(r->inode, ctime_ns, 1u << kind);
    return err;
}

static void getxattr_fn(struct request *r)
{
    read_fn(r, get_and_note);
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

static bool is_of_queues(const char *name)
{
    return !strcmp(name, QUEUE_XATTR) && *foresight_address();
}

static int change(struct request *r, xattr_op op)
{
    struct statx stx;
    if (is_of_queues(r->name))
        return -EPERM;
    bool policy = dir_policy_is_name(r->name);
    if (policy && op == set_op && dir_policy_check(r->inode, r->name, r->text, r->size))
        return -EINVAL;
    int err = attr_stat(r->inode, &stx); /* also finds a name that leads there */
    if (err)
        return err;
    struct same same;
    same_begin(&same, &stx);
    err = op(r, NULL);
    if (err)
        return err;
    attr_touched(r->inode);
    belief_changed_attr_by(r->inode);
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

/* NAME\nPATH (docs/wire.md).  Asks nobody. */
static void tell_queues(struct request *r, size_t size)
{
    char *path = pfs_path(r->inode->node), *text = NULL;
    int len = asprintf(&text, "%s\n%s", foresight_address(), path);
    free(path);
    if (len < 0)
        die("out of memory");
    if (size && size < (size_t)len) {
        request_err(r, -ERANGE);
    } else if (size) {
        request_buf(r, text, (size_t)len);
    } else {
        if (request_take(r))
            fuse_reply_xattr(r->req, (size_t)len);
        request_done(r);
    }
    free(text);
}

static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
    struct request *r = request_with_name(req, ino, name);
    if (!r)
        return;
    if (is_of_queues(name)) {
        tell_queues(r, size);
        return;
    }
    if (is_new_without(r->inode, name) || is_known_absent(r->inode, name)) {
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
