/* pfs_tree.c - names in the tree: objects with parent and name, and with descriptors of
 * directories.
 *
 *     root (fd, always)
 *      +- a          fd 17   <- the nearest ancestor with a descriptor
 *      |   +- b      -
 *      |       +- c  -       opening c: openat2(17, "b/c"), then c's fid is checked
 *      +- f          -       files: opened by parent and name each time, never cached
 *
 * pfs_fds.c decides which descriptors are cached, and pfs_reach.c uses them.  There is one lock
 * (RANK_PFS) for all objects; no PFS call is made under it.
 */
#include "placement/pfs/pfs.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_int.h"
#include "placement/pfs/pfs_node.h"
#include "placement/pfs/pfs_tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

char *pfs_hidden;

struct lock pfs_tree_lock; /* everything below */
static bool tree_ready;
static struct pfs_node *root;
static struct pfs_node **table;
static size_t table_size, table_used;

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
    lock_take(&pfs_tree_lock);
    struct pfs_node *n = child_locked(parent, name);
    lock_drop(&pfs_tree_lock);
    return n;
}

/* A directory that another node has renamed loses its name here, but not its descriptor: processes that work
 * in it go on. */
struct pfs_node *pfs_child_as(struct pfs_node *parent, const char *name, struct fid fid,
                              struct pfs_node **other)
{
    lock_take(&pfs_tree_lock);
    struct pfs_node *n = table_find(parent, name), *taken = NULL;
    if (n && n->known && !fid_eq(n->fid, fid)) {
        table_remove(n);
        n->refs++;
        taken = n;
        n = NULL;
    }
    if (n)
        n->refs++;
    else
        n = child_locked(parent, name);
    n->fid = fid;
    n->known = true;
    lock_drop(&pfs_tree_lock);
    if (other)
        *other = taken;
    else
        pfs_unref(taken);
    return n;
}

struct pfs_node *pfs_ref(struct pfs_node *n)
{
    lock_take(&pfs_tree_lock);
    n->refs++;
    lock_drop(&pfs_tree_lock);
    return n;
}

uint64_t pfs_tag(const struct pfs_node *n)
{
    return n->tag;
}

void pfs_tag_set(struct pfs_node *n, uint64_t tag)
{
    n->tag = tag;
}

void pfs_tag_clear(struct pfs_node *n, uint64_t tag)
{
    atomic_compare_exchange_strong(&n->tag, &tag, 0);
}

uint64_t pfs_child_tag(struct pfs_node *parent, const char *name, uint64_t *seen_ms)
{
    lock_take(&pfs_tree_lock);
    const struct pfs_node *n = table_find(parent, name);
    uint64_t tag = n ? n->tag : 0;
    *seen_ms = n && n->seen ? n->looked_ms : 0;
    lock_drop(&pfs_tree_lock);
    return tag;
}

void pfs_child_seen(struct pfs_node *parent, const char *name, uint64_t tag, uint64_t ms)
{
    lock_take(&pfs_tree_lock);
    struct pfs_node *n = table_find(parent, name);
    if (n && n->tag == tag && ms > n->looked_ms) {
        n->looked_ms = ms;
        n->seen = true;
    }
    lock_drop(&pfs_tree_lock);
}

void pfs_child_told(struct pfs_node *parent, const char *name)
{
    lock_take(&pfs_tree_lock);
    struct pfs_node *n = table_find(parent, name);
    if (n)
        n->seen = false;
    lock_drop(&pfs_tree_lock);
}

void pfs_child_absent(struct pfs_node *parent, const char *name)
{
    lock_take(&pfs_tree_lock);
    struct pfs_node *n = table_find(parent, name);
    if (n) {
        n->looked_ms = boot_ms();
        n->seen = false;
    }
    lock_drop(&pfs_tree_lock);
}

void pfs_unref(struct pfs_node *n)
{
    while (n) {
        lock_take(&pfs_tree_lock);
        if (--n->refs) {
            lock_drop(&pfs_tree_lock);
            return;
        }
        table_remove(n);
        int fd = pfs_fd_take(n);
        lock_drop(&pfs_tree_lock);
        pfs_fd_close(fd);
        struct pfs_node *parent = n->parent;
        free(n->name);
        free(n);
        n = parent; /* its reference to the parent is dropped, too */
    }
}

/* Tree lock held.  Objects that other nodes have renamed may still have such a place here. */
static bool is_at_or_above(const struct pfs_node *n, const struct pfs_node *below)
{
    while (below && below != n)
        below = below->parent;
    return below;
}

void pfs_moved(struct pfs_node *n, struct pfs_node *parent, const char *name)
{
    char *copy = xstrdup(name);
    int fd = -1;
    lock_take(&pfs_tree_lock);
    if (is_at_or_above(n, parent)) {
        table_remove(n);
        lock_drop(&pfs_tree_lock);
        free(copy);
        return;
    }
    struct pfs_node *there = table_find(parent, name), *old_parent = n->parent;
    if (there && there != n) { /* replaced by a rename: it has no name any more */
        table_remove(there);
        fd = pfs_fd_take(there);
    }
    table_remove(n);
    char *old_name = n->name;
    parent->refs++;
    n->parent = parent;
    n->name = copy;
    table_put(n);
    lock_drop(&pfs_tree_lock);
    pfs_fd_close(fd);
    free(old_name);
    pfs_unref(old_parent);
}

/* Of its path from `top`, with a slash or the end behind each name. */
static size_t path_bytes(struct pfs_node *top, struct pfs_node *n)
{
    size_t len = 0;
    for (struct pfs_node *p = n; p != top; p = p->parent)
        len += strlen(p->name) + 1;
    return len;
}

char *pfs_path_from(struct pfs_node *top, struct pfs_node *n)
{
    size_t len = path_bytes(top, n);
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
    lock_take(&pfs_tree_lock);
    char *path = pfs_path_from(root, n);
    lock_drop(&pfs_tree_lock);
    return path;
}

size_t pfs_path_len(struct pfs_node *n)
{
    lock_take(&pfs_tree_lock);
    size_t bytes = path_bytes(root, n);
    lock_drop(&pfs_tree_lock);
    return bytes ? bytes - 1 : 0;
}

void pfs_expect(struct pfs_node *n, struct fid fid)
{
    int fd = -1;
    lock_take(&pfs_tree_lock);
    if (n->known && !fid_eq(n->fid, fid))
        fd = pfs_fd_take(n);
    n->fid = fid;
    n->known = true;
    lock_drop(&pfs_tree_lock);
    pfs_fd_close(fd);
}

void pfs_gone(struct pfs_node *n)
{
    if (n == root)
        return;
    lock_take(&pfs_tree_lock);
    table_remove(n);
    int fd = pfs_fd_take(n);
    lock_drop(&pfs_tree_lock);
    pfs_fd_close(fd);
}

bool pfs_has_fd(struct pfs_node *n)
{
    lock_take(&pfs_tree_lock);
    bool has = n->fd >= 0;
    lock_drop(&pfs_tree_lock);
    return has;
}

bool pfs_fid_known(struct pfs_node *n, struct fid *out)
{
    lock_take(&pfs_tree_lock);
    bool known = n->known;
    *out = n->fid;
    lock_drop(&pfs_tree_lock);
    return known;
}

struct pfs_node *pfs_directory(struct pfs_node *n)
{
    lock_take(&pfs_tree_lock);
    struct pfs_node *parent = n->parent;
    if (parent)
        parent->refs++;
    lock_drop(&pfs_tree_lock);
    return parent;
}

struct pfs_node *pfs_parent(struct pfs_node *n)
{
    lock_take(&pfs_tree_lock);
    struct pfs_node *parent = n->named ? n->parent : NULL;
    if (parent)
        parent->refs++;
    lock_drop(&pfs_tree_lock);
    return parent;
}

struct pfs_node *pfs_parent_of(struct pfs_node *n, char name[NAME_BYTES])
{
    struct pfs_node *parent = NULL;
    lock_take(&pfs_tree_lock);
    if (n->named && n->parent) {
        parent = n->parent;
        parent->refs++;
        size_t len = strnlen(n->name, NAME_BYTES - 1);
        memcpy(name, n->name, len);
        name[len] = '\0';
    }
    lock_drop(&pfs_tree_lock);
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
    pfs_fd_close(probe);
    if (e) {
        snprintf(err, errlen, "%s: %s%s", dir, strerror(-e),
                 e == -ENOSYS ? ": eddyfs needs Linux 5.6 or newer (openat2)" : "");
        close(fd);
        return e;
    }
    if (!tree_ready) {
        lock_init(&pfs_tree_lock, RANK_PFS);
        tree_ready = true;
    }
    pfs_cred_start();
    pfs_fds_limit(max_fds);
    pfs_hidden = hidden ? xstrdup(hidden) : NULL;
    table_grow();
    root = node_new(NULL, "");
    root->fd = fd;
    root->fid = fid_of(&stx);
    root->known = true;
    return 0;
}

/* Closes the descriptors.  Objects with references stay, without a name. */
void pfs_close(void)
{
    if (!root)
        return;
    pfs_data_stop();
    lock_take(&pfs_tree_lock);
    pfs_fds_close();
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
    lock_drop(&pfs_tree_lock);
    pfs_unref(r);
}

int pfs_root_fd(void)
{
    return root ? root->fd : -1;
}
