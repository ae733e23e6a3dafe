/* find_dirs.c - keeps the directories that were looked up last, each for KEEP_MS, while anything is hinted.
 *
 *     "a/b"   ->  the node of a/b, with its descriptor   used until KEEP_MS after its look-up began
 *
 * A directory that has another path by then, or none, is looked up again: this node's own moves are seen by that at once, those of
 * other nodes within KEEP_MS, as with any name.  A staged file of a directory that was moved meanwhile is found out by its fid.
 */
#include "placement/foresight/find_dirs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "placement/pfs/pfs_names.h"
#include "transport/base.h"
#include "transport/lock.h"

#define KEPT    8    /* the two hands walk a few queues */
#define KEEP_MS 1000 /* as long as a name may be seen as it was */

static struct {
    struct lock lock; /* RANK_PFS_FILE, as it is held around calls about nodes: all below */
    struct kept {
        char *path; /* NULL: the place is free */
        struct pfs_node *node;
        uint64_t since_ms; /* boot_ms, before its look-up */
    } v[KEPT];
} dirs;

void find_dirs_start(void)
{
    static bool made;
    if (!made)
        lock_init(&dirs.lock, RANK_PFS_FILE);
    made = true;
}

static void let_go(struct kept *k)
{
    pfs_unref(k->node);
    free(k->path);
}

/* It is still what it was, and where it was: no directory on the way has moved. */
static bool has_path(struct pfs_node *node, const char *path)
{
    char *now = pfs_path(node);
    bool same = !strcmp(now, path);
    free(now);
    struct pfs_node *at = pfs_ref(node);
    while (same && at != pfs_root()) {
        struct pfs_node *parent = pfs_parent(at);
        pfs_unref(at);
        at = parent;
        same = at;
    }
    pfs_unref(at);
    return same;
}

/* Referenced; NULL: it is not kept. */
static struct pfs_node *kept_dir(const char *path)
{
    uint64_t now = boot_ms();
    struct pfs_node *node = NULL;
    lock_take(&dirs.lock);
    for (unsigned i = 0; i < KEPT && !node; i++) {
        const struct kept *k = &dirs.v[i];
        if (k->path && now - k->since_ms < KEEP_MS && !strcmp(k->path, path))
            node = k->node;
    }
    if (node)
        node = pfs_ref(node);
    lock_drop(&dirs.lock);
    if (node && !has_path(node, path)) {
        pfs_unref(node);
        node = NULL;
    }
    return node;
}

/* In the place of an older look at the same one, or of the one that was looked up first. */
static void keep_dir(const char *path, struct pfs_node *node, uint64_t since_ms)
{
    struct kept new = {xstrdup(path), pfs_ref(node), since_ms}, old;
    lock_take(&dirs.lock);
    unsigned place = 0;
    for (unsigned i = 0; i < KEPT; i++) {
        const struct kept *k = &dirs.v[i];
        bool same = k->path && !strcmp(k->path, new.path);
        if (same || !k->path || (dirs.v[place].path && k->since_ms < dirs.v[place].since_ms))
            place = i;
        if (same)
            break;
    }
    old = dirs.v[place];
    dirs.v[place] = new;
    lock_drop(&dirs.lock);
    let_go(&old);
}

/* *out is referenced also if there is an error. */
static int look_up(const char *path, struct pfs_node **out)
{
    char *copy = xstrdup(path), *rest = copy;
    struct pfs_node *node = pfs_ref(pfs_root());
    int err = 0;
    for (char *name; !err && (name = strsep(&rest, "/"));) {
        struct statx stx;
        err = pfs_lookup(node, name, &stx);
        if (!err && !S_ISDIR(stx.stx_mode))
            err = -ENOTDIR;
        if (err)
            break;
        struct pfs_node *child = pfs_child_as(node, name, fid_of(&stx), NULL);
        pfs_unref(node);
        node = child;
    }
    free(copy);
    *out = node;
    return err;
}

int find_dir(const char *path, bool anew, struct pfs_node **out)
{
    if (!*path) {
        *out = pfs_ref(pfs_root());
        return 0;
    }
    *out = anew ? NULL : kept_dir(path);
    if (*out)
        return 1;
    uint64_t since_ms = boot_ms();
    int err = look_up(path, out);
    if (!err)
        keep_dir(path, *out, since_ms);
    return err;
}

void find_dirs_end(void)
{
    struct kept old[KEPT];
    lock_take(&dirs.lock);
    memcpy(old, dirs.v, sizeof(old));
    memset(dirs.v, 0, sizeof(dirs.v));
    lock_drop(&dirs.lock);
    for (unsigned i = 0; i < KEPT; i++)
        let_go(&old[i]);
}
