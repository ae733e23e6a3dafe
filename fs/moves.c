/* moves.c - operations that remove, move or add names (unlink, rmdir, rename, link), and a file's data.
 *
 * The PFS does it first.  Then this node brings its own records up to date:
 *   - A removed name leaves the inode.  With the last name, the inode gets no new look-ups, and
 *     unflushed data of the file is never flushed (open handles still read and write it).
 *   - A moved name moves in the path tree; a directory moves with all below it.  The path hints
 *     of unflushed files follow.
 *   - The file's ctime changed, its data did not.  This is published (struct same) before the answer, since
 *     the next operation builds on it.
 *   - A directory's move is in the session's log before it is made (move_log.c), for nodes that have unflushed
 *     files below it.
 *   - A claimant at another node is told after the answer.  If the file is open here, and this was its last
 *     name, the claimant is told before the answer: else it could treat the file as lost.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/attr.h"
#include "fs/known.h"
#include "fs/links.h"
#include "fs/move_log.h"
#include "fs/names.h"
#include "fs/ops.h"
#include "placement/claims/claim.h"
#include "placement/claims/claim_give.h"
#include "placement/foresight/foresight.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_moves.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"
#include "placement/store/store_open.h"
#include "placement/store/store_version.h"

#define LOOKS 8 /* tries to remove a name while other files with several names take it */

/* ---- removed names ---- */

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

/* What is known of a file whose name goes. */
struct going {
    bool ours;
    bool last;         /* it was its last name */
    bool other;        /* another name of it was known here */
    bool tell;         /* another node may have its claim, and must be told */
    struct file *f;    /* referenced; NULL: no data of it is here */
    struct file *open; /* referenced, to be told with tell: it is open here */
};

static struct going going_of(const struct statx *was)
{
    struct file *f = S_ISREG(was->stx_mode) ? file_find(fid_of(was)) : NULL;
    return (struct going){.ours = is_ours(was), .f = f};
}

/* Malloc'd. */
static char *name_path(struct inode *dir, const char *name)
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

/* Name `name` of `dir` is gone; *was is the file that it led to, with the attributes from before. */
static void name_gone(struct going *g, struct inode *dir, const char *name, const struct statx *was)
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

/* last: the file has no name from now on.  If it is open here, this is recorded: it has the same data under a
 * new ctime, for a process that opens it again (/proc/self/fd).  This comes before the answer, and no other
 * node is told, because none can open the file. */
static void open_goes_on(const struct going *g, const struct statx *was)
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

static void data_gone(struct going *g)
{
    bool open = g->last && g->f && file_gone(g->f, g->ours);
    g->tell = !g->ours && (g->last || g->other);
    g->open = g->last && g->tell && open ? file_ref(g->f) : NULL;
    if (g->f)
        file_put_removed(g->f);
}

/* To be called before the name is removed.  Its file, referenced, if its claimant at another node was made to
 * keep the claim; or NULL. */
static struct file *keep(struct inode *dir, const char *name)
{
    struct file *f = known_before_removal(dir, name);
    bool kept = f && data_keep(f);
    if (f && !kept)
        file_put(f);
    return kept ? f : NULL;
}

/* removed: the file that lost its last name; NULL: none did. */
static void keep_end(struct file *kept, const struct statx *removed)
{
    if (!kept)
        return;
    if (!removed || !fid_eq(kept->fid, fid_of(removed)))
        data_keep_end(kept);
    file_put_removed(kept);
}

/* Tells a claimant at another node that its file has another path, or none (NULL).  False: it does not hear
 * it, or is away, or is not known. */
static bool tell_claimant(const struct statx *stx, const char *path)
{
    struct location loc;
    struct fid fid = fid_of(stx);
    if (!S_ISREG(stx->stx_mode) || is_ours(stx))
        return true;
    if (claim_where(fid, LOOK_NONE, &loc))
        return false;
    return loc.where == WHERE_NODE ? !claim_named(fid, loc.node, path) : loc.where != WHERE_LOST;
}

/* The file was renamed.  A claimant that does not hear it, or is away, finds it in the log. */
static void tell_renamed(const struct statx *stx, const char *from, const char *to)
{
    if (!tell_claimant(stx, to))
        move_log_write(stx, from, to, false);
}

/* As links_other_path, after the removal. */
static char *other_path(struct fid fid)
{
    struct inode *i = inode_known(fid);
    char *path = links_other_path(i, NULL);
    inode_put(i);
    return path;
}

/* A claimant that does not hear it finds it in the log, and drops what it has not flushed.  If the file is
 * open here, the log says it at the last close. */
static void tell_gone(struct going *g, const struct statx *was, struct inode *dir, const char *name)
{
    if (g->open) {
        data_removed(g->open);
        file_put_removed(g->open);
    } else if (g->tell && g->last) {
        char *path = name_path(dir, name);
        if (!tell_claimant(was, NULL))
            moves_log_gone(fid_of(was), path);
        free(path);
    } else if (g->tell) {
        char *path = other_path(fid_of(was));
        if (path)
            tell_claimant(was, path);
        free(path);
    }
}

/* A file that lost one of several names has the same data under a new ctime; another name that we know shows
 * it. */
static void other_names_same(const struct statx *was)
{
    struct inode *i = was->stx_nlink > 1 ? inode_known(fid_of(was)) : NULL;
    struct statx now;
    struct same same;
    same_begin(&same, was);
    if (i && same.on && !attr_stat(i, &now))
        same_end(&same, &now);
    inode_put(i);
}

static void unlinked(struct request *r)
{
    if (request_take(r))
        fuse_reply_err(r->req, 0);
}

/* Removes the name on the PFS.  If the file has others, it is cared for first. */
static int unlink_on_pfs(struct request *r, struct statx *was, int *held)
{
    struct fid fid;
    bool several = links_are_known(r->inode, r->name, &fid);
    int err = -EMLINK;
    for (unsigned tries = 0; err == -EMLINK && tries < LOOKS; tries++) {
        if (several) {
            struct pfs_node *node = pfs_child(r->inode->node, r->name);
            links_before_removal(fid, node);
            pfs_unref(node);
        }
        err = pfs_unlink(r->inode->node, r->name, several ? &fid : NULL, request_cred(r), was,
                         held);
        if (err == -EMLINK) {
            fid = fid_of(was);
            several = true;
        }
    }
    return err;
}

/* The answer comes before the file's data is dropped, where its inode number cannot become a new file's:
 * while a descriptor of it is open, the PFS does not use the number again. */
static void unlink_fn(struct request *r)
{
    struct statx was;
    int fd;
    struct file *kept = keep(r->inode, r->name);
    int err = unlink_on_pfs(r, &was, &fd);
    if (err) {
        keep_end(kept, NULL);
        request_err(r, err);
        return;
    }
    struct going g = going_of(&was);
    name_gone(&g, r->inode, r->name, &was);
    open_goes_on(&g, &was);
    struct file *held = g.last && g.f && pfs_keep_number(g.f) ? file_ref(g.f) : NULL;
    if (!kept && (held || fd >= 0))
        unlinked(r);
    data_gone(&g);
    other_names_same(&was);
    if (!kept)
        unlinked(r);
    if (held) {
        pfs_unhold_number(held);
        file_put_removed(held);
    }
    pfs_unlink_done(fd);
    tell_gone(&g, &was, r->inode, r->name);
    unlinked(r);
    keep_end(kept, g.last ? &was : NULL);
    request_done(r);
}

static void rmdir_fn(struct request *r)
{
    int err = pfs_rmdir(r->inode->node, r->name, request_cred(r));
    struct inode *i = err ? NULL : inode_child(r->inode, r->name);
    if (i) {
        struct pfs_node *node = pfs_child(r->inode->node, r->name);
        inode_lost_name(i, node);
        inode_gone(i);
        pfs_gone(node);
        pfs_unref(node);
        inode_put(i);
    }
    request_err(r, err);
}

static void start_with_name(fuse_req_t req, fuse_ino_t parent, const char *name,
                            void (*fn)(struct request *r))
{
    struct request *r = request_new(req, parent);
    if (!r)
        return;
    int err = names_take(r->name, r->inode, name);
    if (err)
        request_err(r, err);
    else
        request_start(r, pool_names, fn);
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    start_with_name(req, parent, name, unlink_fn);
}

static void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    start_with_name(req, parent, name, rmdir_fn);
}

/* ---- rename ---- */

/* One of the two names of a rename, and what was there before it. */
struct side {
    struct inode *dir;
    const char *name;
    bool there;
    struct statx was;
    struct file *kept; /* of keep; will be replaced */
};

static int side_look(struct side *s)
{
    int err = pfs_lookup(s->dir->node, s->name, &s->was);
    s->there = !err;
    return err;
}

/* The path of a file that was below one path, and is below another one now. */
struct path_move {
    const char *from, *to;
};

struct path_moves {
    struct path_move move[2];
    unsigned n;
};

/* Malloc'd; NULL: it was not below. */
static char *moved_path(const struct path_move *m, const char *path)
{
    size_t len = strlen(m->from);
    char *moved;
    if (strncmp(path, m->from, len) || path[len] != '/')
        return NULL;
    if (asprintf(&moved, "%s%s", m->to, path + len) < 0)
        die("out of memory");
    return moved;
}

/* Changes a path by one move at most: if two directories changed places, the second move would undo the
 * first. */
static int move_path(void *arg, struct file *f)
{
    const struct path_moves *moves = arg;
    char *path = file_path(f), *moved = NULL;
    for (unsigned n = 0; n < moves->n && !moved; n++)
        moved = moved_path(&moves->move[n], path);
    if (moved)
        file_set_path(f, moved);
    free(moved);
    free(path);
    return 0;
}

/* The path hint of a file that moved; for a directory, the move of all paths below it. */
static void path_follows(const struct statx *stx, const char *from, const char *to,
                         struct path_moves *moves)
{
    if (S_ISDIR(stx->stx_mode))
        moves->move[moves->n++] = (struct path_move){from, to};
    struct file *f = S_ISREG(stx->stx_mode) ? file_find(fid_of(stx)) : NULL;
    if (!f)
        return;
    file_set_path(f, to);
    file_put(f);
}

/* The path hints of what moved, and of unflushed files below it. */
static void paths_follow(const struct side *from, const struct side *to, const char *from_path,
                         const char *to_path, bool exchange)
{
    struct path_moves moves = {.n = 0};
    path_follows(&from->was, from_path, to_path, &moves);
    if (exchange)
        path_follows(&to->was, to_path, from_path, &moves);
    int err = moves.n ? store_each_claimed(move_path, &moves) : 0;
    if (err)
        log_warn("paths of unflushed files do not follow a rename: %s: %s", from_path,
                 strerror(-err));
}

static char *side_path(const struct side *s)
{
    return name_path(s->dir, s->name);
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

static void moved(struct request *r, const struct side *from, const struct side *to, bool exchange)
{
    char *from_path = side_path(from), *to_path = side_path(to);
    bool replaced = to->there && !exchange;
    struct going g = {0};
    moved_before(from, to);
    if (replaced) {
        g = going_of(&to->was);
        name_gone(&g, to->dir, to->name, &to->was);
        open_goes_on(&g, &to->was);
        data_gone(&g);
    }
    from->dir->moves++; /* before the tree: see look() in names.c */
    to->dir->moves++;
    tree_follows(from, to, exchange);
    paths_follow(from, to, from_path, to_path, exchange);
    moved_is_same(from, to);
    if (exchange)
        moved_is_same(to, from);
    if (replaced)
        other_names_same(&to->was);
    if (to->kept)
        tell_gone(&g, &to->was, to->dir, to->name);
    if (request_take(r))
        fuse_reply_err(r->req, 0);
    tell_renamed(&from->was, from_path, to_path);
    if (exchange)
        tell_renamed(&to->was, to_path, from_path);
    if (foresight_any())
        foresight_named(to_path, fid_of(&from->was));
    if (!to->kept)
        tell_gone(&g, &to->was, to->dir, to->name);
    keep_end(to->kept, g.last ? &to->was : NULL);
    free(from_path);
    free(to_path);
    request_done(r);
}

struct longer {
    const char *from;
    size_t grows; /* bytes by which each path below `from` becomes longer */
};

static int stays_short(void *arg, struct file *f)
{
    const struct longer *l = arg;
    char *path = file_path(f);
    size_t len = strlen(l->from);
    bool below = !strncmp(path, l->from, len) && path[len] == '/';
    bool fits = !below || strlen(path) + l->grows <= PATH_BYTES_MAX;
    free(path);
    return fits ? 0 : -ENAMETOOLONG;
}

/* -ENAMETOOLONG: a file that is not flushed yet would get a path that no record can have. */
static int paths_fit(const struct side *from, const struct side *to)
{
    char *from_path = side_path(from);
    size_t from_len = strlen(from_path);
    size_t to_len = pfs_path_len(to->dir->node) + 1 + strlen(to->name);
    int err = 0;
    if (S_ISDIR(from->was.stx_mode) && to_len > from_len)
        err = store_each_claimed(stays_short, &(struct longer){from_path, to_len - from_len});
    else if (S_ISREG(from->was.stx_mode) && to_len > PATH_BYTES_MAX)
        err = -ENAMETOOLONG;
    free(from_path);
    return err;
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

static void rename_fn(struct request *r)
{
    struct side from = {.dir = r->inode, .name = r->name};
    struct side to = {.dir = r->inode2, .name = r->name2};
    bool exchange = r->flags & RENAME_EXCHANGE;
    int err = side_look(&from);
    if (!err)
        err = side_look(&to);
    if (err == -ENOENT && from.there && !exchange)
        err = 0;
    if (!err)
        err = paths_fit(&from, &to);
    if (!err && exchange)
        err = paths_fit(&to, &from);
    if (!err && to.there && !exchange)
        to.kept = keep(to.dir, to.name);
    if (!err)
        err = rename_logged(r, &from, &to);
    /* Two names of one file: rename does nothing, both stay. */
    bool nothing = to.there && fid_eq(fid_of(&from.was), fid_of(&to.was));
    if (err || nothing) {
        keep_end(to.kept, NULL);
        request_err(r, err);
    } else {
        moved(r, &from, &to, exchange);
    }
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

/* ---- link ---- */

static int link_file(struct request *r, struct statx *stx)
{
    struct same same;
    /* This also finds another name of the file, if another node has removed one of several. */
    int err = attr_stat(r->inode, stx);
    if (err)
        return err;
    same_begin(&same, stx);
    err = pfs_link(r->inode->node, r->inode2->node, r->name, request_cred(r), stx);
    if (!err)
        same_end(&same, stx);
    return err;
}

static void link_fn(struct request *r)
{
    struct statx stx;
    int err = link_file(r, &stx);
    if (err) {
        request_err(r, err);
        return;
    }
    struct stat st;
    struct belief b;
    struct inode *i = names_found(r->inode2, r->name, &stx);
    err = attr_complete(i, &stx, r->began_ms, &st, &b);
    if (!err)
        attr_remember(i, &st);
    reply_entry(r, i, &st, &b);
}

static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t newparent, const char *newname)
{
    struct request *r = request_new(req, ino);
    if (!r)
        return;
    r->inode2 = inode_get(newparent);
    int err = r->inode2 ? names_take(r->name, r->inode2, newname) : -ESTALE;
    if (!err && S_ISDIR(r->inode->type))
        err = -EPERM;
    if (err)
        request_err(r, err);
    else
        request_start(r, pool_names, link_fn);
}

void moves_ops(struct fuse_lowlevel_ops *ops)
{
    ops->unlink = op_unlink;
    ops->rmdir = op_rmdir;
    ops->rename = op_rename;
    ops->link = op_link;
}
