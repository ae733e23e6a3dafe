/* links.c - files with several names: one goes, and what was written by it must get to the others.
 *
 * The claimant of a file knows one path, and its record has that.  If this name goes, it needs another:
 *
 *     another name is known on the node that removes it   -> the claimant gets that one first
 *     none is known (since a restart nobody looked at it)  -> what is dirty is flushed first
 *
 * Both come before the removal: so no node's death in between can leave dirty bytes that nothing leads to.
 *
 * And an open for writing by a name that another node has removed or moved must not write to the file by
 * another of its names: the kernel does not say which name it used.  So all known names are looked at where
 * one may be gone.
 */
#include "fs/links.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/move_log.h"
#include "fs/notify.h"
#include "placement/claims/claim.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"
#include "placement/store/store_read.h"

#define NAMES 64 /* of one file that are looked at; more are not known of a file that is not in use */

static bool leads_to(struct pfs_node *n, const struct inode *i)
{
    struct statx now;
    return !pfs_stat(n, &now) && fid_eq(fid_of(&now), i->fid);
}

/* Every change of a file's names moves its ctime. */
static bool may_be_renamed(const struct inode *i, const struct statx *now)
{
    struct file_info info = {.base_known = false};
    struct file *f = file_find_used(i->fid);
    if (f) {
        store_info(f, &info);
        file_put(f);
    }
    return !info.base_known || info.base.ctime_ns != version_of(now).ctime_ns;
}

/* The kernel looks this name up again. */
static void forget_name(struct pfs_node *name)
{
    struct pfs_node *dir_node = pfs_parent(name);
    struct inode *dir = dir_node ? inode_of_node(dir_node) : NULL;
    char *path = pfs_path(name), *slash = strrchr(path, '/');
    if (dir)
        notify_entry(dir->nodeid, slash ? slash + 1 : path);
    inode_put(dir);
    free(path);
    if (dir_node)
        pfs_unref(dir_node);
}

bool links_are_right(struct inode *i, const struct statx *now, bool looked)
{
    struct pfs_node *names[NAMES];
    bool right = true;
    unsigned n = inode_names(i, names, NAMES);
    bool look = n > 1 || !now || (!looked && may_be_renamed(i, now));
    for (unsigned k = 0; k < n; k++) {
        if (look && !leads_to(names[k], i)) {
            inode_lost_name(i, names[k]);
            forget_name(names[k]);
            right = false;
        }
        pfs_unref(names[k]);
    }
    return right;
}

char *links_other_path(struct inode *i, const struct pfs_node *going)
{
    char *path = NULL;
    struct pfs_node *n;
    while (i && !path && (n = inode_other_name(i, going))) {
        if (leads_to(n, i))
            path = pfs_path(n);
        else
            inode_lost_name(i, n);
        pfs_unref(n);
    }
    return path;
}

/* node: the claimant, or 0: this node. */
static bool takes_path(struct file *f, uint64_t node, const char *path)
{
    if (node)
        return !claim_named(f->fid, node, path);
    file_set_path(f, path);
    return true;
}

static void flush_first(struct file *f, const char *going)
{
    int err = data_flush(f);
    struct statx what = {0};
    if (err && !pfs_file_stat(f, &what))
        move_log_write(&what, going, "", false);
    if (err)
        log_warn("%s: the file has other names, which this node does not know, and what was written "
                 "to it could not be flushed before this name goes (%s): until it is flushed, only "
                 "its node's open descriptor leads to it",
                 going, strerror(-err));
}

/* Which node may have bytes that the PFS does not have?  0: this one. */
static bool is_unflushed(struct fid fid, uint64_t *node)
{
    struct location at = {0};
    *node = 0;
    if (claim_is_here(fid))
        return true;
    if (claim_where(fid, LOOK_NONE, &at))
        return true; /* not known: asked again with more patience */
    *node = at.where == WHERE_NODE ? at.node : 0;
    return at.where != WHERE_PFS;
}

void links_before_removal(struct fid fid, struct pfs_node *going)
{
    uint64_t node;
    struct file *f;
    if (!is_unflushed(fid, &node))
        return;
    struct inode *i = inode_known(fid);
    char *path = pfs_path(going), *other = links_other_path(i, going);
    if (!file_get(fid, node ? path : NULL, &f)) {
        if (!other || !takes_path(f, node, other))
            flush_first(f, path);
        file_put(f);
    }
    inode_put(i);
    free(other);
    free(path);
}

void links_forget(struct inode *i)
{
    struct pfs_node *names[NAMES];
    unsigned n = inode_names(i, names, NAMES);
    for (unsigned k = 0; k < n; k++) {
        forget_name(names[k]);
        pfs_unref(names[k]);
    }
}

bool links_are_known(struct inode *dir, const char *name, struct fid *fid)
{
    struct inode *i = inode_child(dir, name);
    bool several = false;
    *fid = (struct fid){0};
    if (i && S_ISREG(i->type)) {
        lock_take(&i->lock);
        several = i->attr_known && i->attr.st_nlink > 1;
        lock_drop(&i->lock);
        *fid = i->fid;
    }
    inode_put(i);
    return several;
}
