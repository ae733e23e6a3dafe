/* names.c - looking names up and making new ones.
 *
 * Names live on the PFS: every operation goes to it at once and is done when it has answered.  Then
 * the file is looked up among the inodes by its fid, and for a regular file the home is asked which node
 * has the latest bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/ahead.h"
#include "fs/attr_last.h"
#include "fs/attr_look.h"
#include "fs/early.h"
#include "fs/entry.h"
#include "fs/getattr.h"
#include "fs/handle.h"
#include "fs/known.h"
#include "fs/links.h"
#include "fs/looks.h"
#include "fs/names.h"
#include "fs/ops.h"
#include "fs/settings.h"
#include "placement/claims/claim.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"
#include "placement/store/store_version.h"
#include "transport/members.h"

#define DEFAULT_ACL "system.posix_acl_default"
#define LOOKS       8 /* tries at a name, while other names beside it are moved */

/* ---- names ---- */

int names_take(char to[REQUEST_NAME_MAX], const struct inode *parent, const char *name)
{
    size_t len = strlen(name);
    if (len >= REQUEST_NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(to, name, len + 1);
    bool hidden =
        parent->nodeid == FUSE_ROOT_ID && settings.hidden && !strcmp(name, settings.hidden);
    return hidden ? -EPERM : 0;
}

struct inode *names_found(struct inode *parent, const char *name, const struct statx *stx)
{
    struct fid fid = fid_of(stx);
    struct pfs_node *other, *node = pfs_child_as(parent->node, name, fid, &other);
    struct inode *before = other ? inode_of_node(other) : NULL;
    if (before) /* another file was there: another node's doing */
        inode_lost_name(before, other);
    inode_put(before);
    pfs_unref(other);
    struct inode *i = inode_found(node, fid, stx->stx_mode);
    known_set_immutable(i, parent);
    return i;
}

/* ---- lookup, forget ---- */

/* "." and "..": only where a file handle is opened (NFS export). */
static int lookup_dots(struct request *r)
{
    struct statx stx;
    struct pfs_node *node = pfs_ref(r->inode->node);
    if (r->name[1] == '.') { /* walk to the parent: the path without its last name */
        char *path = pfs_path(node), *end = strrchr(path, '/'), *rest = path;
        if (end)
            *end = '\0';
        pfs_unref(node);
        node = pfs_ref(pfs_root());
        for (char *name = end ? strsep(&rest, "/") : NULL; name; name = strsep(&rest, "/")) {
            struct pfs_node *child = pfs_child(node, name);
            pfs_unref(node);
            node = child;
        }
        free(path);
    }
    int err = pfs_stat(node, &stx);
    if (err) {
        pfs_unref(node);
        return err;
    }
    struct inode *i = inode_found(node, fid_of(&stx), stx.stx_mode);
    struct stat st;
    struct belief b;
    err = attr_complete(i, &stx, r->began_ms, &st, &b);
    if (!err)
        attr_remember_look(i, &st, r->began_ms);
    reply_entry(r, i, &st, &b);
    return 0;
}

static void reply_no_entry(struct request *r)
{
    double timeout = known_negative_timeout(r->inode);
    if (timeout <= 0) {
        request_err(r, -ENOENT);
        return;
    }
    struct fuse_entry_param e = {.entry_timeout = timeout};
    if (request_take(r))
        fuse_reply_entry(r->req, &e);
    request_done(r);
}

/* Another node has renamed an unflushed file, or a directory above it: recovery and the flush
 * use the path in its record. */
static void refresh_path(struct inode *i)
{
    struct file *f = S_ISREG(i->type) && claim_is_here(i->fid) ? file_find(i->fid) : NULL;
    if (!f)
        return;
    char *path = pfs_path(i->node), *old = file_path(f);
    if (!old || strcmp(path, old))
        file_set_path(f, path);
    free(path);
    free(old);
    file_put(f);
}

/* Answers with the file that was found or made under r->name.  If its latest bytes are lost, the
 * name is still given, so that it can be unlinked; stat and open fail with EIO. */
static void reply_inode(struct request *r, struct inode *i, struct statx *stx)
{
    struct stat st;
    struct belief b;
    int err = attr_complete(i, stx, r->began_ms, &st, &b);
    if (!err)
        attr_remember_look(i, &st, r->began_ms);
    refresh_path(i);
    reply_entry(r, i, &st, &b);
}

static void reply_found(struct request *r, struct statx *stx)
{
    reply_inode(r, names_found(r->inode, r->name, stx), stx);
}

/* Looks again if this node has moved a name in or out meanwhile, as the kernel does not wait for that.  What
 * was seen before would become a name that leads nowhere. */
static int look(struct inode *dir, const char *name, struct statx *stx)
{
    uint64_t began = boot_ns();
    unsigned moves, looks = 0;
    int err;
    do {
        moves = dir->moves;
        err = pfs_lookup(dir->node, name, stx);
    } while (!err && moves != dir->moves && ++looks < LOOKS);
    looks_took((boot_ns() - began) / 1000);
    return err;
}

/* The same, and opens a file that was found, so that the kernel can open it whatever happens to its name.  If
 * the file is replaced before it is open, the next one is there: that goes on as long as an open may take.  *open:
 * what was opened, for reply_inode (a file that has lost its name by then would be found as another inode), or NULL.
 * If this is the second try of a call, the kernel's open that follows is the last: whatever its kind, it must
 * find nothing in its way. */
static int look_and_open(struct request *r, struct statx *stx, struct inode **open)
{
    uint64_t end_ms = boot_ms() + members_patience();
    bool any_kind = early_is_again(r->pid);
    int err = 0, gone = -ESTALE;
    while (gone == -ESTALE && boot_ms() < end_ms) {
        struct handle *h;
        err = look(r->inode, r->name, stx);
        if (err || !S_ISREG(stx->stx_mode))
            return err;
        struct inode *i = names_found(r->inode, r->name, stx);
        if (any_kind)
            links_are_right(i, stx, true); /* those that are not have left it */
        /* another error is for the kernel's open to find */
        gone = file_open_in_advance(r, i, any_kind, &h);
        if (!gone) {
            early_keep(i, r->pid, h, file_close_handle);
            *open = i;
            return 0;
        }
        inode_forget(i->nodeid, 1); /* names_found counts it once more for the answer */
        inode_put(i);
    }
    return err;
}

static void lookup_fn(struct request *r)
{
    if (!strcmp(r->name, ".") || !strcmp(r->name, "..")) {
        int err = lookup_dots(r);
        if (err)
            request_err(r, err);
        return;
    }
    struct statx stx;
    struct inode *open = NULL;
    int err = early_is_wanted(r->inode, r->pid) ? look_and_open(r, &stx, &open)
                                        : look(r->inode, r->name, &stx);
    if (err == -ENOENT) {
        pfs_child_absent(r->inode->node, r->name);
        reply_no_entry(r);
    } else if (err) {
        request_err(r, err);
    } else if (open) {
        reply_inode(r, open, &stx);
    } else {
        reply_found(r, &stx);
    }
}

static bool lookup_stalled(struct request *r)
{
    struct stat st;
    struct inode *i = inode_child(r->inode, r->name);
    bool known = i && attr_stands(i, &st) && inode_look_again(i);
    if (known) {
        struct fuse_entry_param e;
        struct belief b = i->fixed ? belief_fixed() : belief_none();
        entry_fill(&e, i, &st, &b);
        if (!request_take(r) || fuse_reply_entry(r->req, &e) == -ENOENT)
            inode_not_given(i);
    }
    inode_put(i);
    return known;
}

/* inode_look_again was called. */
static void tell_known(fuse_req_t req, struct inode *i, const struct stat *st, double left,
                       struct belief *b)
{
    struct fuse_entry_param e;
    refresh_path(i);
    entry_fill_known(&e, i, st, left, b);
    if (fuse_reply_entry(req, &e) == -ENOENT)
        inode_not_given(i);
    belief_end(b);
}

static void reply_known(struct request *r, struct inode *i, const struct stat *st, double left,
                        struct belief *b)
{
    belief_grow(i, b, (uint64_t)st->st_size);
    if (request_take(r))
        tell_known(r->req, i, st, left, b);
    else
        inode_forget(i->nodeid, 1);
    inode_put(i);
    request_done(r);
}

/* A look-up of a known name; helped: a look ahead has answered it.  Looks of near.c are for hints: they show no scan of the
 * directory. */
static void asked(struct inode *dir, const struct inode *i, bool helped)
{
    if (!i || !i->near)
        ahead_asked(dir, helped);
    else if (helped)
        count(looks_saved, 1);
}

/* There was a look ahead at the name, but the home is another node. */
static void lookup_ask_home(struct request *r)
{
    struct stat st;
    struct belief b;
    double left, name_left;
    struct inode *now = NULL, *i = ahead_find(r->inode, r->name, &name_left);
    if (i && name_left > 0 && !attr_known(i, &st, &left, &b))
        now = ahead_find(r->inode, r->name, &name_left); /* it may have taken long */
    bool known = now && now == i && name_left > 0 && inode_look_again(i);
    asked(r->inode, i, known);
    inode_put(now);
    if (known) {
        pfs_child_told(r->inode->node, r->name);
        reply_known(r, i, &st, MIN(left, name_left), &b);
        return;
    }
    inode_put(i);
    lookup_fn(r);
}

/* True: answered from a look ahead.  *ahead: there was one, but another node must be asked. */
static bool lookup_here(fuse_req_t req, struct inode *dir, const char *name, bool *ahead)
{
    if (!ahead_may_answer(dir))
        return false;
    struct stat st;
    struct belief b;
    double left, name_left;
    struct inode *i = ahead_find(dir, name, &name_left);
    if (!i)
        return false;
    bool here = name_left > 0 && attr_known_here(i, &st, &left, &b) &&
                !belief_must_grow(i, &b, (uint64_t)st.st_size) && inode_look_again(i);
    if (here) {
        pfs_child_told(dir->node, name);
        tell_known(req, i, &st, MIN(left, name_left), &b);
    }
    *ahead = name_left > 0 && !here;
    if (!*ahead)
        asked(dir, i, here);
    inode_put(i);
    return here;
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    bool ahead = false;
    pid_t task = fuse_req_ctx(req)->pid;
    struct inode *dir = inode_get(parent);
    if (!dir) {
        fuse_reply_err(req, ESTALE);
        return;
    }
    if (!dir->fixed && !early_is_wanted(dir, task) && lookup_here(req, dir, name, &ahead)) {
        inode_put(dir);
        return;
    }
    struct request *r = request_on(req, dir);
    int err = names_take(r->name, dir, name);
    if (err) {
        request_err(r, err == -EPERM ? -ENOENT : err);
        return;
    }
    if (r->inode->fixed && lookup_stalled(r)) {
        request_done(r);
        return;
    }
    request_on_stall(r, lookup_stalled);
    request_start(r, pool_names, ahead ? lookup_ask_home : lookup_fn);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup)
{
    inode_forgotten(ino, nlookup);
    fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
    for (size_t n = 0; n < count; n++)
        inode_forgotten(forgets[n].ino, forgets[n].nlookup);
    fuse_reply_none(req);
}

static void readlink_fn(struct request *r)
{
    char *target;
    int err = pfs_readlink(r->inode->node, &target);
    if (err) {
        request_err(r, err);
        return;
    }
    if (request_take(r))
        fuse_reply_readlink(r->req, target);
    free(target);
    request_done(r);
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
    struct request *r = request_new(req, ino);
    if (r)
        request_start(r, pool_names, readlink_fn);
}

/* ---- making ---- */

/* In a directory with a default ACL the umask does not count: the PFS makes the mode from the ACL.
 * Asked once per attribute time-out and directory. */
static bool has_default_acl(struct inode *dir)
{
    uint64_t now = boot_ms();
    lock_take(&dir->lock);
    bool known = dir->default_acl_ms && now - dir->default_acl_ms < attr_timeout_ms();
    bool has = dir->default_acl;
    lock_drop(&dir->lock);
    if (known)
        return has;

    size_t len = 0;
    has = !pfs_getxattr(dir->node, DEFAULT_ACL, NULL, 0, &len) && len > 0;
    lock_take(&dir->lock);
    dir->default_acl = has;
    dir->default_acl_ms = now;
    lock_drop(&dir->lock);
    return has;
}

static mode_t mode_to_make(struct request *r)
{
    return r->umask && !has_default_acl(r->inode) ? r->mode & ~r->umask : r->mode;
}

static void reply_made(struct request *r, int err, struct statx *stx)
{
    if (err)
        request_err(r, err);
    else
        reply_found(r, stx);
}

static void mkdir_fn(struct request *r)
{
    struct statx stx;
    int err = pfs_mkdir(r->inode->node, r->name, mode_to_make(r), request_cred(r), &stx);
    reply_made(r, err, &stx);
}

static void mknod_fn(struct request *r)
{
    struct statx stx;
    int err = pfs_mknod(r->inode->node, r->name, mode_to_make(r), r->rdev, request_cred(r), &stx);
    reply_made(r, err, &stx);
}

static void symlink_fn(struct request *r)
{
    struct statx stx;
    int err = pfs_symlink(r->text, r->inode->node, r->name, request_cred(r), &stx);
    reply_made(r, err, &stx);
}

/* A request for making `name`: NULL if it was answered already. */
static struct request *request_to_make(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct request *r = request_new(req, parent);
    if (!r)
        return NULL;
    int err = names_take(r->name, r->inode, name);
    if (err) {
        request_err(r, err);
        return NULL;
    }
    return r;
}

static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    struct request *r = request_to_make(req, parent, name);
    if (!r)
        return;
    r->mode = mode;
    request_start(r, pool_names, mkdir_fn);
}

static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
    struct request *r = request_to_make(req, parent, name);
    if (!r)
        return;
    r->mode = mode;
    r->rdev = rdev;
    request_start(r, pool_names, mknod_fn);
}

static void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
    struct request *r = request_to_make(req, parent, name);
    if (!r)
        return;
    r->text = xstrdup(target);
    request_start(r, pool_names, symlink_fn);
}

/* ---- create ---- */

static bool can_write(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

/* made: of pfs_create; its descriptor is taken over. */
static int open_made(struct request *r, struct inode *i, const struct pfs_made *made,
                     struct handle **h)
{
    struct file *f;
    char *path = pfs_path(i->node);
    int err = file_get(i->fid, path, &f);
    free(path);
    if (err) {
        close(made->fd);
        return err;
    }
    if (made->created)
        err = store_set_reborn(f);
    if (err) {
        close(made->fd);
    } else {
        pfs_adopt_fd(f, made->fd, can_write(made->fd));
        err = file_open_handle(r, i, &made->stx, f, made->created, h);
    }
    file_put(f);
    return err;
}

static void reply_create(struct request *r, struct inode *i, struct statx *stx, struct handle *h)
{
    struct stat st;
    struct belief b;
    struct fuse_entry_param e;
    int err = attr_complete(i, stx, r->began_ms, &st, &b);
    if (!err)
        attr_remember(i, &st);
    entry_fill(&e, i, &st, &b);
    bool taken = request_take(r) && fuse_reply_create(r->req, &e, &r->fi) != -ENOENT;
    belief_end(&b);
    if (!taken) {
        file_close_handle(h);
        inode_not_given(i);
    }
    inode_put(i);
    request_done(r);
}

/* A file with a longer path could not be opened. */
static int check_path(struct inode *dir, const char *name)
{
    return pfs_path_len(dir->node) + 1 + strlen(name) > PATH_BYTES_MAX ? -ENAMETOOLONG : 0;
}

static void create_fn(struct request *r)
{
    struct pfs_made made;
    int err = check_path(r->inode, r->name);
    if (!err)
        err = pfs_create(r->inode->node, r->name, r->fi.flags, mode_to_make(r), request_cred(r),
                         &made);
    if (err) { /* -ESTALE: a link or directory is there now; the kernel looks again */
        request_err(r, err);
        return;
    }
    struct handle *h;
    struct inode *i = names_found(r->inode, r->name, &made.stx);
    if (made.created)
        attr_born(i);
    err = open_made(r, i, &made, &h);
    if (!err) {
        reply_create(r, i, &made.stx, h);
        return;
    }
    inode_forget(i->nodeid, 1);
    inode_put(i);
    request_err(r, err);
}

static void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                      struct fuse_file_info *fi)
{
    struct request *r = request_to_make(req, parent, name);
    if (!r)
        return;
    r->mode = mode;
    r->fi = *fi;
    request_start(r, pool_names, create_fn);
}

/* There is no tmpfile: open(O_TMPFILE) fails with EOPNOTSUPP, as on most PFSs; programs that use it have
 * another way. */
void names_ops(struct fuse_lowlevel_ops *ops)
{
    ops->lookup = op_lookup;
    ops->forget = op_forget;
    ops->forget_multi = op_forget_multi;
    ops->readlink = op_readlink;
    ops->mknod = op_mknod;
    ops->mkdir = op_mkdir;
    ops->symlink = op_symlink;
    ops->create = op_create;
}
