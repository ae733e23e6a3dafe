/* moves_rename.c - rename. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "fs/known.h"
#include "fs/links.h"
#include "fs/move_log.h"
#include "fs/moves_int.h"
#include "fs/names.h"
#include "fs/ops.h"
#include "fs/same.h"
#include "placement/foresight/foresight.h"
#include "placement/pfs/pfs_moves.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"
#include "placement/store/store_version.h"

#define LOOKS 8 /* tries to rename while other files take the names */

static int side_look(struct side *s)
{
    int err = pfs_lookup(s->dir->node, s->name, &s->was);
    s->there = !err;
    return err;
}

static char *side_path(const struct side *s)
{
    return moves_name_path(s->dir, s->name);
}

/* The file was renamed.  A claimant that does not hear it, or is away, finds it in the log. */
static void tell_renamed(const struct side *s, const char *from, const char *to)
{
    if (!moves_tell(&s->goes, &s->was, to))
        move_log_write(&s->was, from, to, false);
}

/* Each of the two files has the other name now.  The nodes are the same objects under their new
 * names, so nothing need be done for inodes below a renamed directory. */
static void tree_follows(const struct side *from, const struct side *to, bool exchange)
{
    struct pfs_node *a = pfs_child(from->dir->node, from->name);
    struct pfs_node *b = exchange ? pfs_child(to->dir->node, to->name) : NULL;
    pfs_moved(a, to->dir->node, to->name);
    if (b)
        pfs_moved(b, from->dir->node, from->name);
    pfs_unref(a);
    if (b)
        pfs_unref(b);
}

static void moved_is_same(const struct side *was, const struct side *now)
{
    struct statx stx;
    struct same same;
    same_begin(&same, &was->was);
    if (same.on && !pfs_lookup(now->dir->node, now->name, &stx))
        same_end(&same, &stx);
}

/* What this node knew by the new name was moved elsewhere by another node before this rename.  It keeps its
 * descriptor.  The kernel takes it for replaced, and makes nothing in such a directory any more: where it is
 * now, it gets another node id. */
static void moved_before(const struct side *from, const struct side *to)
{
    struct fid fid = fid_of(to->there ? &to->was : &from->was);
    struct pfs_node *other, *node = pfs_child_as(to->dir->node, to->name, fid, &other);
    struct inode *i = other ? inode_of_node(other) : NULL;
    if (i) {
        inode_lost_name(i, other);
        if (S_ISDIR(i->type))
            inode_retire(i);
    }
    inode_put(i);
    if (other)
        pfs_unref(other);
    pfs_unref(node);
}

/* What was renamed is not what was looked at before, as another node has replaced that meanwhile. */
static void see_moved(struct side *from, const struct side *to)
{
    struct statx now;
    uint64_t view;
    if (!moves_are_shared(&view) || name_goes_unclaimed(&from->goes) || pfs_lookup(to->dir->node, to->name, &now) ||
        fid_eq(fid_of(&now), fid_of(&from->was)) || (now.stx_mode ^ from->was.stx_mode) & S_IFMT)
        return;
    name_goes_end(&from->goes);
    from->goes = (struct name_goes){0};
    from->was = now;
}

/* The request is answered.  True: what was replaced has no name any more. */
static bool moved(struct request *r, struct side *from, const struct side *to, bool exchange)
{
    if (!exchange)
        see_moved(from, to);
    char *from_path = side_path(from), *to_path = side_path(to);
    bool replaced = to->there && !exchange;
    struct going g = {0};
    moved_before(from, to);
    if (replaced) {
        g = going_of(&to->was, &to->goes, to->held);
        going_name(&g, to->dir, to->name, &to->was);
        going_open(&g, &to->was);
        going_data(&g);
    }
    from->dir->moves++; /* before the tree: see look() in names.c */
    to->dir->moves++;
    tree_follows(from, to, exchange);
    moves_paths_follow(from, to, from_path, to_path, exchange);
    moved_is_same(from, to);
    if (exchange)
        moved_is_same(to, from);
    if (replaced)
        going_others_same(&to->was);
    going_tell(&g, &to->was, to->dir, to->name);
    tell_renamed(from, from_path, to_path);
    if (exchange)
        tell_renamed(to, to_path, from_path);
    if (request_take(r))
        fuse_reply_err(r->req, 0);
    if (foresight_any()) {
        foresight_removed(from_path, fid_of(&from->was));
        foresight_named(to_path, fid_of(&from->was));
    }
    if (exchange && foresight_any())
        foresight_named(from_path, fid_of(&to->was));
    free(from_path);
    free(to_path);
    return g.last;
}

/* A file that is replaced at its last name is removed. */
static int rename_on_pfs(struct request *r, const struct side *from, const struct side *to)
{
    struct fid fid = fid_of(&to->was);
    bool replaced = to->there && S_ISREG(to->was.stx_mode) &&
                    !(r->flags & (RENAME_EXCHANGE | RENAME_NOREPLACE)) &&
                    !fid_eq(fid, fid_of(&from->was));
    bool last = replaced && to->was.stx_nlink == 1;
    if (replaced && !last) {
        struct pfs_node *node = pfs_child(to->dir->node, to->name);
        links_before_removal(fid, node);
        pfs_unref(node);
    }
    if (last)
        store_set_leaving(fid, true);
    int err = pfs_rename(from->dir->node, from->name, to->dir->node, to->name, (unsigned)r->flags,
                         request_cred(r));
    if (err && last)
        store_set_leaving(fid, false);
    return err;
}

/* Renames on the PFS.  Moves of directories are logged first. */
static int rename_logged(struct request *r, const struct side *from, const struct side *to)
{
    bool exchange = r->flags & RENAME_EXCHANGE;
    if (!S_ISDIR(from->was.stx_mode) && !(exchange && S_ISDIR(to->was.stx_mode)))
        return rename_on_pfs(r, from, to);
    char *from_path = side_path(from), *to_path = side_path(to);
    uint64_t number = move_log_write(&from->was, from_path, to_path, exchange);
    int err = rename_on_pfs(r, from, to);
    if (err)
        move_log_drop(number);
    free(from_path);
    free(to_path);
    return err;
}

/* The files that lose a name, or a place. */
static void names_go(struct side *from, struct side *to)
{
    struct side *all[NAMES_GO] = {from, to};
    struct name_goes goes[NAMES_GO];
    struct fid fids[NAMES_GO];
    unsigned n = 0;
    for (unsigned k = 0; k < NAMES_GO; k++)
        if (all[k]->there && S_ISREG(all[k]->was.stx_mode)) {
            all[n] = all[k];
            fids[n++] = fid_of(&all[k]->was);
        }
    name_goes_begin(goes, fids, n);
    for (unsigned k = 0; k < n; k++)
        all[k]->goes = goes[k];
}

/* What is renamed, and what it replaces. */
static int look_at_both(const struct request *r, struct side *from, struct side *to)
{
    bool exchange = r->flags & RENAME_EXCHANGE;
    *from = (struct side){.dir = r->inode, .name = r->name, .held = -1};
    *to = (struct side){.dir = r->inode2, .name = r->name2, .held = -1};
    int err = side_look(from);
    if (!err)
        err = side_look(to);
    if (err == -ENOENT && from->there && !exchange)
        err = 0;
    if (!err)
        err = moves_paths_fit(from, to);
    if (!err && exchange)
        err = moves_paths_fit(to, from);
    return err;
}

static bool is_same_file(const struct side *from, const struct side *to)
{
    return to->there && fid_eq(fid_of(&from->was), fid_of(&to->was));
}

/* to->held, if it is needed.  False: the new name does not lead any more to what would be replaced, as another node has renamed that. */
static bool hold_replaced(const struct request *r, struct side *to)
{
    struct statx now;
    if (!to->there || r->flags & (RENAME_EXCHANGE | RENAME_NOREPLACE) || !S_ISREG(to->was.stx_mode) || to->was.stx_nlink != 1)
        return true;
    return !going_hold(to->dir, to->name, fid_of(&to->was), &to->goes, &to->held, &now);
}

static void sides_end(struct side *from, struct side *to, const struct statx *removed)
{
    going_keep_end(to->kept, removed);
    pfs_unlink_done(to->held);
    name_goes_end(&from->goes);
    name_goes_end(&to->goes);
}

/* False: the names lead to other files now, and nothing was done.  Else r is answered. */
static bool rename_once(struct request *r, bool last_try)
{
    struct side from, to;
    bool exchange = r->flags & RENAME_EXCHANGE;
    int err = look_at_both(r, &from, &to);
    bool nothing = is_same_file(&from, &to);
    if (!err && !nothing && !(to.there && r->flags & RENAME_NOREPLACE))
        names_go(&from, &to);
    if (!err && to.there && !exchange)
        to.kept = going_keep(to.dir, to.name);
    if (!err && !nothing && !hold_replaced(r, &to) && !last_try) {
        sides_end(&from, &to, NULL);
        return false;
    }
    if (!err)
        err = rename_logged(r, &from, &to);
    /* Two names of one file: rename does nothing, both stay. */
    if (err || nothing) {
        request_err(r, err);
        sides_end(&from, &to, NULL);
    } else {
        bool removes = moved(r, &from, &to, exchange);
        sides_end(&from, &to, removes ? &to.was : NULL);
        request_done(r);
    }
    return true;
}

static void rename_fn(struct request *r)
{
    for (unsigned tries = 1; !rename_once(r, tries == LOOKS); tries++)
        ;
}

static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t newparent,
                      const char *newname, unsigned int flags)
{
    struct request *r = request_new(req, parent);
    if (!r)
        return;
    r->inode2 = inode_get(newparent);
    r->name2 = xmalloc(REQUEST_NAME_MAX);
    r->flags = (int)flags;
    int err = r->inode2 ? 0 : -ESTALE;
    if (!err && flags & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE))
        err = -EINVAL; /* RENAME_WHITEOUT: for overlayfs only */
    if (!err)
        err = names_take(r->name, r->inode, name);
    if (!err)
        err = names_take(r->name2, r->inode2, newname);
    if (err)
        request_err(r, err);
    else
        request_start(r, pool_names, rename_fn);
}

void rename_ops(struct fuse_lowlevel_ops *ops)
{
    ops->rename = op_rename;
}
