/* pfs_tree.c - names in the tree: objects that know parent and name, and keep directories'
 * descriptors.
 *
 *     root (fd, always)
 *      +- a          fd 17   <- the nearest ancestor with a descriptor
 *      |   +- b      -
 *      |       +- c  -       opening c: openat2(17, "b/c"), then c's fid is checked
 *      +- f          -       files: opened by parent and name each time, never kept
 *
 * Only directories' descriptors are kept, in an LRU of at most max_fds: every operation on a name
 * needs its parent.  A kept O_PATH descriptor of a file would make an NFS client rename the file to
 * .nfsXXXX when it is unlinked.  A kept descriptor is right as long as it lives, whatever happens
 * to the directory's name.
 *
 * One lock (RANK_PFS) for all objects; no PFS call is made under it: a descriptor in use is counted
 * (users) and closed by its last user when it was dropped meanwhile.
 */
#include "placement/pfs_int.h"

#include "transport/lock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

struct pfs_node {
    struct pfs_node *parent; /* referenced; NULL: the root */
    char *name;
    unsigned refs;
    bool named; /* in the hash table: parent/name leads here as far as we know */
    bool known; /* fid is what it must be */
    bool drop;  /* the last user closes fd */
    struct fid fid;
    int fd; /* O_PATH, -1: none */
    unsigned users;
    struct pfs_node *hash_next;
    struct pfs_node *lru_next, *lru_prev; /* when fd >= 0, but for the root */
};

char *pfs_hidden;

static struct lock tree; /* everything below */
static bool tree_ready;
static struct pfs_node *root;
static struct pfs_node **table;
static size_t table_size, table_used;
static struct pfs_node lru = {.lru_next = &lru, .lru_prev = &lru}; /* next: used last */
static unsigned nfds, max_nfds;

/* ---- the hash table, tree lock held ---- */

static size_t slot_of(const struct pfs_node *parent, const char *name)
{
    return XXH3_64bits_withSeed(name, strlen(name), (uintptr_t)parent) & (table_size - 1);
}

static void table_put(struct pfs_node *n)
{
    size_t slot = slot_of(n->parent, n->name);
    n->hash_next = table[slot];
    table[slot] = n;
    n->named = true;
    table_used++;
}

static void table_grow(void)
{
    struct pfs_node **old = table;
    size_t old_size = table_size;
    table_size = old_size ? old_size * 2 : 1024;
    table = xcalloc(table_size, sizeof(struct pfs_node *));
    table_used = 0;
    for (size_t i = 0; i < old_size; i++)
        for (struct pfs_node *n = old[i], *next; n; n = next) {
            next = n->hash_next;
            table_put(n);
        }
    free(old);
}

static struct pfs_node *table_find(const struct pfs_node *parent, const char *name)
{
    for (struct pfs_node *n = table[slot_of(parent, name)]; n; n = n->hash_next)
        if (n->parent == parent && strcmp(n->name, name) == 0)
            return n;
    return NULL;
}

static void table_remove(struct pfs_node *n)
{
    if (!n->named)
        return;
    struct pfs_node **p = &table[slot_of(n->parent, n->name)];
    while (*p != n)
        p = &(*p)->hash_next;
    *p = n->hash_next;
    n->named = false;
    table_used--;
}

/* ---- descriptors, tree lock held ---- */

static void lru_remove(struct pfs_node *n)
{
    n->lru_prev->lru_next = n->lru_next;
    n->lru_next->lru_prev = n->lru_prev;
    n->lru_next = n->lru_prev = NULL;
    nfds--;
}

static void lru_add(struct pfs_node *n)
{
    n->lru_next = lru.lru_next;
    n->lru_prev = &lru;
    lru.lru_next->lru_prev = n;
    lru.lru_next = n;
    nfds++;
}

/* Takes the descriptor away from the node; the caller closes what is returned without the lock. */
static int take_fd(struct pfs_node *n)
{
    int fd = n->fd;
    if (fd < 0 || n == root)
        return -1;
    if (n->users) {
        n->drop = true;
        return -1;
    }
    lru_remove(n);
    n->fd = -1;
    n->drop = false;
    return fd;
}

/* One that is too much, or -1. */
static int surplus_fd(void)
{
    if (nfds <= max_nfds)
        return -1;
    for (struct pfs_node *n = lru.lru_prev; n != &lru; n = n->lru_prev)
        if (!n->users)
            return take_fd(n);
    return -1;
}

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

static int end_use(struct pfs_node *n)
{
    n->users--;
    return !n->users && n->drop ? take_fd(n) : -1;
}

/* ---- objects ---- */

static struct pfs_node *node_new(struct pfs_node *parent, const char *name)
{
    struct pfs_node *n = xcalloc(1, sizeof(*n));
    n->parent = parent;
    n->name = xstrdup(name);
    n->refs = 1;
    n->fd = -1;
    if (parent)
        parent->refs++;
    return n;
}

struct pfs_node *pfs_root(void)
{
    return root;
}

static struct pfs_node *child_locked(struct pfs_node *parent, const char *name)
{
    struct pfs_node *n = table_find(parent, name);
    if (n) {
        n->refs++;
        return n;
    }
    if (table_used >= table_size)
        table_grow();
    n = node_new(parent, name);
    table_put(n);
    return n;
}

struct pfs_node *pfs_child(struct pfs_node *parent, const char *name)
{
    lock_take(&tree);
    struct pfs_node *n = child_locked(parent, name);
    lock_drop(&tree);
    return n;
}

struct pfs_node *pfs_child_as(struct pfs_node *parent, const char *name, struct fid fid)
{
    int fd = -1;
    lock_take(&tree);
    struct pfs_node *n = table_find(parent, name);
    if (n && n->known && !fid_eq(n->fid, fid)) {
        table_remove(n);
        fd = take_fd(n);
    }
    n = child_locked(parent, name);
    n->fid = fid;
    n->known = true;
    lock_drop(&tree);
    close_fd(fd);
    return n;
}

struct pfs_node *pfs_ref(struct pfs_node *n)
{
    lock_take(&tree);
    n->refs++;
    lock_drop(&tree);
    return n;
}

void pfs_unref(struct pfs_node *n)
{
    while (n) {
        lock_take(&tree);
        if (--n->refs) {
            lock_drop(&tree);
            return;
        }
        table_remove(n);
        int fd = take_fd(n);
        lock_drop(&tree);
        close_fd(fd);
        struct pfs_node *parent = n->parent;
        free(n->name);
        free(n);
        n = parent; /* its reference to the parent goes too */
    }
}

void pfs_moved(struct pfs_node *n, struct pfs_node *parent, const char *name)
{
    char *copy = xstrdup(name);
    int fd = -1;
    lock_take(&tree);
    struct pfs_node *there = table_find(parent, name), *old_parent = n->parent;
    if (there && there != n) { /* renamed over: it has no name any more */
        table_remove(there);
        fd = take_fd(there);
    }
    table_remove(n);
    char *old_name = n->name;
    parent->refs++;
    n->parent = parent;
    n->name = copy;
    table_put(n);
    lock_drop(&tree);
    close_fd(fd);
    free(old_name);
    pfs_unref(old_parent);
}

/* Path from ancestor `top` (not included) down to n; tree lock held. */
static char *path_from(struct pfs_node *top, struct pfs_node *n)
{
    size_t len = 0;
    for (struct pfs_node *p = n; p != top; p = p->parent)
        len += strlen(p->name) + 1;
    char *path = xmalloc(MAX(len, (size_t)1)), *at = path + len, after = 0;
    *path = 0;
    for (struct pfs_node *p = n; p != top; p = p->parent) {
        size_t l = strlen(p->name);
        *--at = after;
        at -= l;
        memcpy(at, p->name, l);
        after = '/';
    }
    return path;
}

char *pfs_path(struct pfs_node *n)
{
    lock_take(&tree);
    char *path = path_from(root, n);
    lock_drop(&tree);
    return path;
}

void pfs_expect(struct pfs_node *n, struct fid fid)
{
    int fd = -1;
    lock_take(&tree);
    if (n->known && !fid_eq(n->fid, fid))
        fd = take_fd(n);
    n->fid = fid;
    n->known = true;
    lock_drop(&tree);
    close_fd(fd);
}

void pfs_drop_fd(struct pfs_node *n)
{
    if (n == root)
        return;
    lock_take(&tree);
    table_remove(n);
    int fd = take_fd(n);
    lock_drop(&tree);
    close_fd(fd);
}

bool pfs_has_fd(struct pfs_node *n)
{
    lock_take(&tree);
    bool has = n->fd >= 0;
    lock_drop(&tree);
    return has;
}

bool pfs_fid_known(struct pfs_node *n, struct fid *out)
{
    lock_take(&tree);
    bool known = n->known;
    *out = n->fid;
    lock_drop(&tree);
    return known;
}

struct pfs_node *pfs_parent_of(struct pfs_node *n, char name[NAME_BYTES])
{
    struct pfs_node *parent = NULL;
    lock_take(&tree);
    if (n->named && n->parent) {
        parent = n->parent;
        parent->refs++;
        snprintf(name, NAME_BYTES, "%s", n->name);
    }
    lock_drop(&tree);
    return parent;
}

int pfs_name_check(struct pfs_node *parent, const char *name, int hidden)
{
    size_t len = strlen(name);
    if (len >= NAME_BYTES)
        return -ENAMETOOLONG;
    if (!len || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return -EINVAL;
    return parent == root && pfs_hidden && strcmp(name, pfs_hidden) == 0 ? hidden : 0;
}

/* ---- holding a node's descriptor ---- */

/* The nearest of n and its ancestors that has a descriptor, in use from now on; NULL: one on the
 * way has lost its name. *path leads from it to n. */
static struct pfs_node *nearest(struct pfs_node *n, int *fd, char **path)
{
    struct pfs_node *a = n;
    lock_take(&tree);
    while (a && (a->fd < 0 || a->drop))
        a = a->named ? a->parent : NULL;
    if (a) {
        a->users++;
        a->refs++; /* n may be moved away from it */
        *fd = a->fd;
        *path = a == n ? NULL : path_from(a, n);
        if (a != root) { /* to the front */
            lru_remove(a);
            lru_add(a);
        }
    }
    lock_drop(&tree);
    return a;
}

static void leave(struct pfs_node *n)
{
    lock_take(&tree);
    int fd = end_use(n);
    lock_drop(&tree);
    close_fd(fd);
    pfs_unref(n);
}

/* A directory's new descriptor becomes the node's, unless another thread was quicker. */
static void keep_fd(struct pfs_node *n, int fd, struct pfs_hold *h)
{
    int surplus = -1, spare = -1;
    lock_take(&tree);
    if (n->fd < 0 && n->named) {
        n->fd = fd;
        n->users++;
        n->refs++;
        lru_add(n);
        surplus = surplus_fd();
        *h = (struct pfs_hold){n, fd};
    } else if (n->fd >= 0 && !n->drop) {
        n->users++;
        n->refs++;
        spare = fd;
        *h = (struct pfs_hold){n, n->fd};
    } else {
        *h = (struct pfs_hold){NULL, fd};
    }
    lock_drop(&tree);
    close_fd(surplus);
    close_fd(spare);
}

/* The object is known to have been there: the tree has changed, the kernel must look again. */
static int stale(bool known, int err)
{
    return known && (err == -ENOENT || err == -ENOTDIR || err == -ELOOP) ? -ESTALE : err;
}

static int open_node(struct pfs_node *n, int from, const char *path, struct pfs_hold *h)
{
    struct fid want;
    bool known = pfs_fid_known(n, &want);
    int fd = pfs_open_beneath(from, path, O_PATH, 0);
    if (fd < 0)
        return stale(known, fd);
    struct statx stx;
    int err = pfs_statx_fd(fd, &stx);
    if (!err && known && !fid_eq(fid_of(&stx), want))
        err = -ESTALE;
    if (err)
        close(fd);
    else if (S_ISDIR(stx.stx_mode))
        keep_fd(n, fd, h);
    else
        *h = (struct pfs_hold){NULL, fd};
    return err;
}

int pfs_hold(struct pfs_node *n, struct pfs_hold *h)
{
    int fd;
    char *path;
    struct pfs_node *a = nearest(n, &fd, &path);
    if (!a)
        return -ESTALE;
    if (a == n) {
        *h = (struct pfs_hold){n, fd};
        return 0;
    }
    int err = open_node(n, fd, path, h);
    leave(a);
    free(path);
    return err;
}

void pfs_unhold(struct pfs_hold *h)
{
    if (h->n)
        leave(h->n);
    else
        close(h->fd);
}

/* After ESTALE: this node and its ancestors are opened anew by path. */
static void forget_fds(struct pfs_node *n)
{
    n = pfs_ref(n);
    while (n) {
        lock_take(&tree);
        int fd = take_fd(n);
        struct pfs_node *parent = n->parent;
        if (parent)
            parent->refs++;
        lock_drop(&tree);
        close_fd(fd);
        pfs_unref(n);
        n = parent;
    }
}

static int run_once(struct pfs_node *n, const struct cred *c, pfs_op_fn fn, struct pfs_op *op)
{
    struct pfs_hold h;
    int err = pfs_hold(n, &h);
    if (err)
        return err;
    err = pfs_cred_take(c);
    if (!err) {
        uint64_t ticket = pfs_call_begin();
        err = fn(h.fd, op);
        pfs_call_end(ticket);
        pfs_cred_back(c);
    }
    pfs_unhold(&h);
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

/* ---- the root ---- */

int pfs_open(const char *dir, const char *hidden, unsigned max_fds, char *err, size_t errlen)
{
    int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        int e = -errno;
        snprintf(err, errlen, "%s: %s%s", dir, strerror(-e),
                 e == -ENOTDIR ? ": give a directory of the parallel file system" : "");
        return e;
    }
    struct statx stx;
    int e = pfs_statx_fd(fd, &stx);
    int probe = e ? -1 : pfs_open_beneath(fd, "", O_RDONLY | O_DIRECTORY, 0);
    if (!e && probe < 0)
        e = probe;
    close_fd(probe);
    if (e) {
        snprintf(err, errlen, "%s: %s%s", dir, strerror(-e),
                 e == -ENOSYS ? ": eddyfs needs Linux 5.6 or newer (openat2)" : "");
        close(fd);
        return e;
    }
    if (!tree_ready) {
        lock_init(&tree, RANK_PFS);
        tree_ready = true;
    }
    pfs_cred_start();
    max_nfds = max_fds;
    pfs_hidden = hidden ? xstrdup(hidden) : NULL;
    table_grow();
    root = node_new(NULL, "");
    root->fd = fd;
    root->fid = fid_of(&stx);
    root->known = true;
    return 0;
}

/* The descriptors go.  Objects that somebody still refers to stay, without a name. */
void pfs_close(void)
{
    if (!root)
        return;
    pfs_data_stop();
    lock_take(&tree);
    while (lru.lru_next != &lru) {
        struct pfs_node *n = lru.lru_next;
        lru_remove(n);
        close(n->fd);
        n->fd = -1;
        n->drop = false;
    }
    for (size_t i = 0; i < table_size; i++)
        while (table[i])
            table_remove(table[i]);
    close(root->fd);
    root->fd = -1;
    free(table);
    table = NULL;
    table_size = table_used = 0;
    free(pfs_hidden);
    pfs_hidden = NULL;
    struct pfs_node *r = root;
    root = NULL;
    lock_drop(&tree);
    pfs_unref(r);
}

int pfs_root_fd(void)
{
    return root ? root->fd : -1;
}
