/* pfs_reach.c - runs operations on a node's descriptor: the cached one, or one that is opened from the
 * nearest ancestor that has one (pfs_tree.c has the drawing).
 *
 * An opened file is checked against the fid that the node must have.  -ESTALE: the tree has changed behind
 * our back.  Then the operation is tried once more: descriptors that lead nowhere are opened again by path.
 * After that the kernel looks the name up again.
 *
 * The tree's lock is taken for each step alone, and never held during a PFS call.
 */
#include "placement/pfs/pfs.h"
#include "placement/pfs/pfs_int.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"
#include "placement/pfs/pfs_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- using a node's descriptor ---- */

/* The nearest of n and its ancestors that has a descriptor, in use from now on; NULL: one on the
 * way has lost its name. *path leads from it to n. */
static struct pfs_node *nearest(struct pfs_node *n, int *fd, char **path)
{
    struct pfs_node *a = n;
    lock_take(&pfs_tree_lock);
    while (a && (a->fd < 0 || a->drop))
        a = a->named ? a->parent : NULL;
    if (a) {
        pfs_fd_used(a);
        a->refs++; /* n may be moved away from it */
        *fd = a->fd;
        *path = a == n ? NULL : pfs_path_from(a, n);
    }
    lock_drop(&pfs_tree_lock);
    return a;
}

static void leave(struct pfs_node *n)
{
    lock_take(&pfs_tree_lock);
    int fd = pfs_fd_end_use(n);
    bool last = n->refs == 1;
    if (!last)
        n->refs--;
    lock_drop(&pfs_tree_lock);
    pfs_fd_close(fd);
    if (last)
        pfs_unref(n);
}

/* A directory's new descriptor becomes the node's, unless another thread was first. */
static void keep_fd(struct pfs_node *n, int fd, struct pfs_reach *h)
{
    int surplus = -1, spare = -1;
    lock_take(&pfs_tree_lock);
    if (n->fd < 0 && n->named) {
        pfs_fd_keep(n, fd);
        n->users++;
        n->refs++;
        surplus = pfs_fd_surplus();
        *h = (struct pfs_reach){n, fd};
    } else if (n->fd >= 0 && !n->drop) {
        n->users++;
        n->refs++;
        spare = fd;
        *h = (struct pfs_reach){n, n->fd};
    } else {
        *h = (struct pfs_reach){NULL, fd};
    }
    lock_drop(&pfs_tree_lock);
    pfs_fd_close(surplus);
    pfs_fd_close(spare);
}

/* The file was there before, so the tree has changed, and the kernel must look again. */
static int stale(bool known, int err)
{
    return known && (err == -ENOENT || err == -ENOTDIR || err == -ELOOP) ? -ESTALE : err;
}

/* is_file: pfs_reach_file. */
static int open_node(struct pfs_node *n, int from, const char *path, bool is_file,
                     struct pfs_reach *h)
{
    struct fid want;
    bool known = pfs_fid_known(n, &want);
    int fd = pfs_open_beneath(from, path, O_PATH, 0);
    if (fd < 0)
        return stale(known, fd);
    struct statx stx;
    int err = is_file ? pfs_type_fd(fd, &stx) : pfs_statx_fd(fd, &stx);
    if (!err && (is_file ? !S_ISREG(stx.stx_mode) : known && !fid_eq(fid_of(&stx), want)))
        err = -ESTALE;
    if (err)
        close(fd);
    else if (S_ISDIR(stx.stx_mode))
        keep_fd(n, fd, h);
    else
        *h = (struct pfs_reach){NULL, fd};
    return err;
}

static int hold(struct pfs_node *n, bool is_file, struct pfs_reach *h)
{
    int fd;
    char *path;
    struct pfs_node *a = nearest(n, &fd, &path);
    if (!a)
        return -ESTALE;
    if (a == n) {
        *h = (struct pfs_reach){n, fd};
        return 0;
    }
    int err = open_node(n, fd, path, is_file, h);
    leave(a);
    free(path);
    return err;
}

int pfs_reach(struct pfs_node *n, struct pfs_reach *h)
{
    return hold(n, false, h);
}

int pfs_reach_file(struct pfs_node *n, struct pfs_reach *h)
{
    return hold(n, true, h);
}

void pfs_leave(struct pfs_reach *h)
{
    if (h->n)
        leave(h->n);
    else
        close(h->fd);
}

/* ---- running an operation ---- */

bool pfs_is_there(struct pfs_node *n)
{
    int fd = -1;
    struct fid want;
    struct statx stx;
    lock_take(&pfs_tree_lock);
    if (n->fd >= 0 && !n->drop && n->known) {
        pfs_fd_used(n);
        n->refs++;
        fd = n->fd;
        want = n->fid;
    }
    lock_drop(&pfs_tree_lock);
    if (fd < 0)
        return false;
    bool there = !pfs_statx_fd(fd, &stx) && stx.stx_nlink && fid_eq(fid_of(&stx), want);
    leave(n);
    return there;
}

/* After ESTALE: if a descriptor leads nowhere, this node and its ancestors are opened again by path, as far
 * as there is one. */
static void forget_fds(struct pfs_node *n)
{
    n = pfs_ref(n);
    while (n) {
        bool keep = pfs_is_there(n);
        lock_take(&pfs_tree_lock);
        int fd = n->named && !keep ? pfs_fd_take(n) : -1;
        struct pfs_node *parent = n->parent;
        if (parent)
            parent->refs++;
        lock_drop(&pfs_tree_lock);
        pfs_fd_close(fd);
        pfs_unref(n);
        n = parent;
    }
}

int pfs_run_on(int fd, const struct cred *c, pfs_op_fn fn, struct pfs_op *op)
{
    int err = pfs_cred_take(c);
    if (err)
        return err;
    uint64_t ticket = pfs_call_begin();
    err = fn(fd, op);
    pfs_call_end(ticket);
    pfs_cred_back(c);
    return err;
}

static int run_once(struct pfs_node *n, const struct cred *c, pfs_op_fn fn, struct pfs_op *op)
{
    struct pfs_reach h;
    int err = pfs_reach(n, &h);
    if (err)
        return err;
    err = pfs_run_on(h.fd, c, fn, op);
    pfs_leave(&h);
    return err;
}

int pfs_run(struct pfs_node *n, const struct cred *c, pfs_op_fn fn, struct pfs_op *op)
{
    int err = run_once(n, c, fn, op);
    if (err == -ESTALE) {
        forget_fds(n);
        err = run_once(n, c, fn, op);
    }
    return err;
}
