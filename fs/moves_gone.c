/* moves_gone.c - a file loses a name, by unlink or by a rename over it: what becomes of its inode, its data and its claim. */
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
#include "placement/pfs/pfs_node.h"
#include "placement/store/store_version.h"

/* The last name of a regular file is gone: nothing of it is flushed any more.  If the file is open and its
 * data is here, it can be read and written until the last close (the store does that).  If it is open and its
 * data is another node's, that stays as it is (data_removed).  True: it is open here. */
static bool file_gone(struct file *f, bool ours)
{
    /* Another node may have linked it between the PFS's stat and its unlink: unflushed data is not
     * given up for that. */
    if (ours && pfs_has_a_name(f)) {
        store_set_leaving(f->fid, false);
        return false;
    }
    file_set_unlinked(f, true);
    bool open = !pfs_open_ends(f);
    if (ours || !open)
        claim_unlinked(f);
    return open;
}

static bool is_ours(const struct statx *stx)
{
    return S_ISREG(stx->stx_mode) && claim_is_here(fid_of(stx));
}

struct going going_of(const struct statx *was, const struct name_goes *goes)
{
    struct file *f = S_ISREG(was->stx_mode) ? file_find(fid_of(was)) : NULL;
    return (struct going){.ours = is_ours(was), .f = f, .goes = goes};
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
    g->last = S_ISDIR(was->stx_mode) || was->stx_nlink <= 1;
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
    bool open = g->last && g->f && file_gone(g->f, g->ours);
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
            moves_log_gone(fid_of(was), path);
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
