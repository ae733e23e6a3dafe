/* moves_gone.c - a file loses a name, by unlink or by a rename over it: what becomes of its inode, its data and its claim. */
#include <errno.h>
#include <stdlib.h>

#include "fs/attr_last.h"
#include "fs/attr_look.h"
#include "fs/known.h"
#include "fs/links.h"
#include "fs/moves_int.h"
#include "fs/same.h"
#include "placement/claims/claim.h"
#include "placement/claims/claim_give.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_moves.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"
#include "placement/store/store_version.h"

/* The last name of a regular file is gone: nothing of it is flushed any more.  If the file is open and its
 * data is here, it can be read and written until the last close (the store does that).  If it is open and its
 * data is another node's, that stays as it is (data_removed).  True: it is open here. */
static bool file_gone(const struct going *g)
{
    /* Another node may have linked it between the PFS's stat and its unlink: unflushed data is not
     * given up for that. */
    if (g->ours && g->names < 0 && pfs_has_a_name(g->f)) {
        store_set_leaving(g->f->fid, false);
        return false;
    }
    file_set_unlinked(g->f, true);
    bool open = !pfs_open_ends(g->f);
    if (g->ours || !open)
        claim_unlinked(g->f);
    return open;
}

static bool is_ours(const struct statx *stx)
{
    return S_ISREG(stx->stx_mode) && claim_is_here(fid_of(stx));
}

/* May what is not flushed of it be given up, here or by who hears of it, for want of a descriptor of its own? */
static bool needs_descriptor(struct fid fid, const struct name_goes *goes)
{
    if (!claim_is_here(fid))
        return !name_goes_unclaimed(goes);
    struct file *f = file_find(fid);
    bool needs = f && !pfs_is_open(f);
    if (f)
        file_put(f);
    return needs;
}

int going_hold(struct inode *dir, const char *name, struct fid fid, const struct name_goes *goes, int *held, struct statx *now)
{
    *held = -1;
    if (!needs_descriptor(fid, goes))
        return 0;
    int fd = pfs_hold_name(dir->node, name, now);
    if (fd == -ENOENT)
        return fd;
    if (fd == -EINVAL || (fd >= 0 && !fid_eq(fid_of(now), fid))) {
        pfs_unlink_done(fd);
        return -EAGAIN;
    }
    *held = fd < 0 ? -1 : fd;
    return 0;
}

struct going going_of(const struct statx *was, const struct name_goes *goes, int held)
{
    struct file *f = S_ISREG(was->stx_mode) ? file_find(fid_of(was)) : NULL;
    return (struct going){.ours = is_ours(was), .f = f, .goes = goes, .names = held < 0 ? -1 : pfs_held_names(held)};
}

char *moves_name_path(struct inode *dir, const char *name)
{
    struct pfs_node *node = pfs_child(dir->node, name);
    char *path = pfs_path(node);
    pfs_unref(node);
    return path;
}

/* The path hint of an unflushed file that lost this name. */
static void path_of_another_name(struct inode *i, struct file *f)
{
    char *path = pfs_path(i->node);
    file_set_path(f, path);
    free(path);
}

void going_name(struct going *g, struct inode *dir, const char *name, const struct statx *was)
{
    struct pfs_node *node = pfs_child(dir->node, name);
    struct inode *i = inode_known(fid_of(was));
    g->last = S_ISDIR(was->stx_mode) || (was->stx_nlink <= 1 && g->names <= 0);
    if (i) {
        bool another = inode_lost_name(i, node);
        attr_touched(i); /* before the answer: its link count has changed */
        if (g->last)
            inode_gone(i);
        else
            g->other = another && S_ISREG(was->stx_mode);
        if (g->other && g->f)
            path_of_another_name(i, g->f);
        inode_put(i);
    }
    pfs_gone(node);
    pfs_unref(node);
}

void going_open(const struct going *g, const struct statx *was)
{
    struct statx stx;
    if (!g->last || !g->f || !pfs_is_open(g->f) || pfs_file_stat(g->f, &stx))
        return;
    if (!stx.stx_nlink)
        file_set_unlinked(g->f, true);
    struct version before = version_of(was), now = version_of(&stx);
    if (now.size == before.size && now.mtime_ns == before.mtime_ns)
        store_same_data(g->f, &before, &now);
}

bool going_must_tell(const struct going *g, const struct statx *was)
{
    return S_ISREG(was->stx_mode) && !g->ours && (g->last || g->other) && !name_goes_unclaimed(g->goes);
}

void going_data(struct going *g)
{
    bool open = g->last && g->f && file_gone(g);
    if (g->f && g->names > 0) /* another node has just renamed it, and says where it is */
        store_set_leaving(g->f->fid, false);
    g->tell = !g->ours && (g->last || g->other);
    g->open = g->last && g->tell && open ? file_ref(g->f) : NULL;
    if (g->f)
        file_put_removed(g->f);
}

struct file *going_keep(struct inode *dir, const char *name)
{
    struct file *f = known_before_removal(dir, name);
    bool kept = f && data_keep(f, false);
    if (f && !kept)
        file_put(f);
    return kept ? f : NULL;
}

void going_keep_end(struct file *kept, const struct statx *removed)
{
    if (!kept)
        return;
    if (!removed || !fid_eq(kept->fid, fid_of(removed)))
        data_keep_end(kept);
    file_put_removed(kept);
}

/* ---- others are told ---- */

bool moves_tell(const struct name_goes *goes, const struct statx *stx, const char *path)
{
    struct location loc;
    struct fid fid = fid_of(stx);
    if (!S_ISREG(stx->stx_mode) || is_ours(stx) || name_goes_unclaimed(goes))
        return true;
    if (claim_where(fid, LOOK_NONE, &loc))
        return false;
    return loc.where == WHERE_NODE ? !claim_named(fid, loc.node, path) : loc.where != WHERE_LOST;
}

/* As links_other_path, after the removal. */
static char *other_path(struct fid fid)
{
    struct inode *i = inode_known(fid);
    char *path = links_other_path(i, NULL);
    inode_put(i);
    return path;
}

void going_tell(struct going *g, const struct statx *was, struct inode *dir, const char *name)
{
    if (g->open) {
        data_removed(g->open);
        file_put_removed(g->open);
    } else if (g->tell && g->last) {
        char *path = moves_name_path(dir, name);
        if (!moves_tell(g->goes, was, NULL))
            moves_log_gone(fid_of(was), path, false);
        free(path);
    } else if (g->tell) {
        char *path = other_path(fid_of(was));
        if (path)
            moves_tell(g->goes, was, path);
        free(path);
    }
}

void going_others_same(const struct statx *was)
{
    struct inode *i = was->stx_nlink > 1 ? inode_known(fid_of(was)) : NULL;
    struct statx now;
    struct same same;
    same_begin(&same, was);
    if (i && same.on && !attr_stat(i, &now))
        same_end(&same, &now);
    inode_put(i);
}
