/* dir.c - listing directories.
 *
 * Offsets are the PFS's cookies.  So seekdir works, and a directory may have any size: only the PFS's own
 * position is stored.  A listing stays in the kernel's cache as long as the
 * directory's ctime is the same.
 *
 * readdirplus: the entries that fit into the answer are collected, each is looked at, the homes are asked
 * in batches, then the entries become inodes.  An entry that could not be looked at, or whose home
 * did not answer, is given by name only: the kernel looks it up when a program needs its attributes.
 *
 * One thread at a time uses the PFS directory of a handle (busy).  If the PFS hung at opendir, the PFS
 * directory is opened later.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/attr.h"
#include "fs/attr_last.h"
#include "fs/attr_look.h"
#include "fs/entry.h"
#include "fs/known.h"
#include "fs/looks.h"
#include "fs/names.h"
#include "fs/ops.h"
#include "fs/xattr.h"
#include "placement/claims/claim.h"
#include "placement/pfs/pfs_dir.h"
#include "transport/marks.h"

#define HOMES_AT_ONCE 512  /* claim_where_many's most */
#define AGAIN_MS      1000 /* the kernel asks again at once */

struct dir_handle {
    struct lock lock; /* RANK_LEAF: refs, busy */
    pthread_cond_t idle;
    unsigned refs; /* the kernel's until RELEASEDIR, and each request's */
    bool busy;
    struct pfs_dir *dir; /* of the thread that is busy; NULL = not opened yet */
};

/* ---- the handle ---- */

static struct dir_handle *handle_new(struct pfs_dir *dir)
{
    struct dir_handle *h = xcalloc(1, sizeof(*h));
    lock_init(&h->lock, RANK_LEAF);
    lock_cond_init(&h->idle);
    h->refs = 1;
    h->dir = dir;
    return h;
}

static void handle_ref(struct dir_handle *h)
{
    lock_take(&h->lock);
    h->refs++;
    lock_drop(&h->lock);
}

static void handle_put(struct dir_handle *h)
{
    lock_take(&h->lock);
    bool last = --h->refs == 0;
    lock_drop(&h->lock);
    if (!last)
        return;
    if (h->dir)
        pfs_closedir(h->dir);
    pthread_cond_destroy(&h->idle);
    lock_destroy(&h->lock);
    free(h);
}

/* From now on h->dir is this thread's, and open. */
static int handle_begin(struct dir_handle *h, struct inode *i)
{
    lock_take(&h->lock);
    while (h->busy)
        lock_wait(&h->lock, &h->idle, 0);
    h->busy = true;
    lock_drop(&h->lock);
    return h->dir ? 0 : pfs_opendir(i->node, true, &h->dir);
}

static void handle_end(struct dir_handle *h)
{
    lock_take(&h->lock);
    h->busy = false;
    pthread_cond_signal(&h->idle);
    lock_drop(&h->lock);
}

static struct dir_handle *dir_of(const struct fuse_file_info *fi)
{
    return (struct dir_handle *)(uintptr_t)fi->fh;
}

/* ---- opendir: is the kernel's listing still right? ---- */

/* The kernel's listing may stay if the directory has not changed since the listing was begun, and had
 * not just been changed then: a change in the same tick of the PFS's clock would leave no trace.  The ctime
 * decides, because tar and rsync set mtime back. */
static bool listing_is_right(const struct inode *i, const struct version *now)
{
    return i->listed_ctime_ns && i->listed_ctime_ns == now->ctime_ns &&
           !version_racy(now, i->listed_at_ns);
}

/* True: the kernel took the answer. */
static bool reply_opendir(struct request *r, struct pfs_dir *dir, bool keep)
{
    struct fuse_file_info fi = r->fi;
    struct dir_handle *h = handle_new(dir);
    fi.fh = (uintptr_t)h;
    fi.cache_readdir = 1;
    fi.keep_cache = keep;
    bool taken = request_take(r) && fuse_reply_open(r->req, &fi) != -ENOENT;
    if (!taken)
        handle_put(h);
    return taken;
}

/* At the first ESTALE the kernel looks the name up again, if there is one: another directory may be
 * there now.  If it comes back with this one, a process has it as its working directory. */
static bool looked_up_again(const struct inode *i)
{
    return boot_ms() - i->doubted_ms < AGAIN_MS;
}

static void opendir_fn(struct request *r)
{
    struct inode *i = r->inode;
    struct pfs_dir *dir = NULL;
    struct statx stx;
    int64_t now_ns = real_ns() + session_clock_offset_ns();
    int err = attr_stat(i, &stx);
    if (!err)
        err = pfs_opendir(i->node, looked_up_again(i), &dir);
    if (err) {
        request_err(r, err);
        return;
    }
    struct version v = version_of(&stx);
    lock_take(&i->lock);
    bool keep = listing_is_right(i, &v);
    lock_drop(&i->lock);
    if (reply_opendir(r, dir, keep) && !keep) { /* from here on it begins a new listing */
        lock_take(&i->lock);
        i->listed_ctime_ns = v.ctime_ns;
        i->listed_at_ns = now_ns;
        lock_drop(&i->lock);
    }
    request_done(r);
}

/* While the PFS hangs, and below --immutable: the kernel lists what it has in its cache; for the rest it
 * waits. */
static bool opendir_stalled(struct request *r)
{
    lock_take(&r->inode->lock);
    bool listed = r->inode->listed_ctime_ns;
    lock_drop(&r->inode->lock);
    if (listed)
        reply_opendir(r, NULL, true);
    return listed;
}

static void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct request *r = request_new(req, ino);
    if (!r)
        return;
    r->fi = *fi;
    if (r->inode->fixed && opendir_stalled(r)) {
        request_done(r);
        return;
    }
    request_on_stall(r, opendir_stalled);
    request_start(r, pool_names, opendir_fn);
}

/* ---- readdir ---- */

/* ".." of the mount's root is the root itself, not what is above it on the PFS. */
static uint64_t ino_shown(struct inode *dir, const struct pfs_dirent *e)
{
    if (dir->nodeid != FUSE_ROOT_ID || strcmp(e->name, ".."))
        return e->ino;
    lock_take(&dir->lock);
    uint64_t ino = dir->attr.st_ino;
    lock_drop(&dir->lock);
    return ino;
}

static int list(struct request *r, char *buf, size_t *len)
{
    struct dir_handle *h = r->extra;
    struct pfs_dirent e;
    int64_t off = (int64_t)r->off;
    int err;
    *len = 0;
    while (!(err = pfs_readdir(h->dir, off, &e))) {
        struct stat st = {.st_ino = ino_shown(r->inode, &e), .st_mode = (mode_t)e.type << 12};
        size_t n = fuse_add_direntry(r->req, buf + *len, r->size - *len, e.name, &st, e.next);
        if (n > r->size - *len)
            break;
        *len += n;
        off = e.next;
    }
    /* The entries listed so far are given; the error comes with the next call. */
    return err == -ENODATA || *len ? 0 : err;
}

static void readdir_fn(struct request *r)
{
    struct dir_handle *h = r->extra;
    size_t len = 0;
    char *buf = xmalloc(r->size);
    int err = handle_begin(h, r->inode);
    if (!err)
        err = list(r, buf, &len);
    handle_end(h);
    handle_put(h);
    if (err)
        request_err(r, err);
    else
        request_buf(r, buf, len);
    free(buf);
}

static void start_on_dir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                         struct fuse_file_info *fi, void (*fn)(struct request *r))
{
    struct request *r = request_new(req, ino);
    if (!r)
        return;
    r->size = size;
    r->off = (uint64_t)off;
    r->extra = dir_of(fi);
    handle_ref(r->extra);
    request_start(r, pool_names, fn);
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                       struct fuse_file_info *fi)
{
    start_on_dir(req, ino, size, off, fi, readdir_fn);
}

/* ---- readdirplus ---- */

struct plus_entry {
    char *name;
    struct pfs_dirent e; /* its name is not valid */
    bool looked;         /* stx is what it is */
    bool known;          /* where is its place */
    unsigned absent;     /* extended attributes */
    struct statx stx;
    struct location where;
    struct belief belief;
    struct inode *inode; /* in the answer: one lookup is the kernel's */
};

struct plus {
    struct request *request;
    uint64_t looked_ms; /* boot_ms before the first look */
    unsigned xattrs;    /* wanted */
    struct plus_entry *v;
    size_t n, cap;
};

static bool is_dots(const char *name)
{
    return !strcmp(name, ".") || !strcmp(name, "..");
}

static struct plus_entry *plus_add(struct plus *p)
{
    if (p->n == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 64;
        p->v = xrealloc(p->v, p->cap * sizeof(*p->v));
    }
    return &p->v[p->n++];
}

/* As many entries as fit. */
static int plus_collect(struct request *r, struct plus *p)
{
    struct dir_handle *h = r->extra;
    struct pfs_dirent e;
    int64_t off = (int64_t)r->off;
    size_t room = r->size;
    int err;
    while (!(err = pfs_readdir(h->dir, off, &e))) {
        size_t n = fuse_add_direntry_plus(r->req, NULL, 0, e.name, NULL, 0);
        if (n > room)
            break;
        room -= n;
        off = e.next;
        e.ino = ino_shown(r->inode, &e);
        *plus_add(p) = (struct plus_entry){.name = xstrdup(e.name), .e = e};
    }
    return err == -ENODATA || p->n ? 0 : err;
}

/* Of a file of which parts are lent its borrowers must be asked, too. */
static bool is_known_here(struct fid fid, struct location *where)
{
    return claim_here(fid, where) && where->keep;
}

/* Entries that were removed since, or lead out of the PFS, stay names. */
static void plus_look(void *arg, unsigned n)
{
    struct plus *p = arg;
    struct dir_handle *h = p->request->extra;
    struct plus_entry *e = &p->v[n];
    if (is_dots(e->name))
        return;
    e->looked = !pfs_stat_at(h->dir, e->name, &e->stx);
    e->where.where = WHERE_PFS;
    e->known = e->looked && (!S_ISREG(e->stx.stx_mode) || is_known_here(fid_of(&e->stx), &e->where) ||
                             p->request->inode->fixed);
    if (e->looked)
        e->absent = xattr_look(h->dir, e->name, &e->stx, p->xattrs, NULL);
}

/* The home's answer is in e->where.  If a claimant gave the file back between our look at the PFS
 * and the answer, another look counts. */
static bool plus_answer(struct pfs_dir *dir, struct plus_entry *e, uint64_t looked_ms)
{
    if (e->where.where == WHERE_LOST)
        return false;
    if (!attr_overtaken(&e->stx, &e->where, looked_ms))
        return true;
    struct fid fid = fid_of(&e->stx);
    looked_ms = boot_ms();
    e->looked = !pfs_stat_at(dir, e->name, &e->stx) && fid_eq(fid, fid_of(&e->stx));
    return e->looked && (e->where.known > 2 || !attr_overtaken(&e->stx, &e->where, looked_ms));
}

/* One batch of questions: places of entries at[0..n). */
static void ask_homes(struct pfs_dir *dir, struct plus *p, const size_t *at, unsigned n)
{
    struct fid fids[HOMES_AT_ONCE];
    struct location *where = xcalloc(n, sizeof(*where));
    int errs[HOMES_AT_ONCE];
    for (unsigned k = 0; k < n; k++) {
        fids[k] = fid_of(&p->v[at[k]].stx);
        errs[k] = 0;
    }
    claim_where_many(fids, n, LOOK_STAT, where, errs); /* each has its own error */
    for (unsigned k = 0; k < n; k++) {
        struct plus_entry *e = &p->v[at[k]];
        e->where = where[k];
        e->known = !errs[k] && plus_answer(dir, e, p->looked_ms);
    }
    free(where);
}

static void plus_ask(struct request *r, struct plus *p)
{
    struct dir_handle *h = r->extra;
    size_t at[HOMES_AT_ONCE];
    unsigned n = 0;
    for (size_t k = 0; k < p->n; k++) {
        if (p->v[k].looked && !p->v[k].known)
            at[n++] = k;
        if (n == HOMES_AT_ONCE || (n && k + 1 == p->n)) {
            ask_homes(h->dir, p, at, n);
            n = 0;
        }
    }
}

static void plus_fill(struct request *r, struct plus *p, char *buf, size_t *len)
{
    *len = 0;
    for (size_t n = 0; n < p->n; n++) {
        struct plus_entry *e = &p->v[n];
        struct fuse_entry_param param = {0};
        param.attr.st_ino = e->e.ino;
        param.attr.st_mode = (mode_t)e->e.type << 12;
        if (e->known) {
            struct stat st;
            e->inode = names_found(r->inode, e->name, &e->stx);
            attr_tell(e->inode, &st, &e->stx, &e->where);
            attr_remember_look(e->inode, &st, p->looked_ms);
            xattr_absent(e->inode, &e->stx, e->absent);
            if (S_ISREG(e->stx.stx_mode))
                known_note(e->inode, &e->stx, &e->where, p->looked_ms);
            e->belief = belief_of(e->inode, &e->where);
            belief_grow(e->inode, &e->belief, (uint64_t)st.st_size);
            entry_fill(&param, e->inode, &st, &e->belief);
        }
        *len +=
            fuse_add_direntry_plus(r->req, buf + *len, r->size - *len, e->name, &param, e->e.next);
    }
}

static void plus_free(struct plus *p, bool taken)
{
    for (size_t n = 0; n < p->n; n++) {
        struct plus_entry *e = &p->v[n];
        belief_end(&e->belief);
        if (e->inode && !taken)
            inode_not_given(e->inode);
        inode_put(e->inode);
        free(e->name);
    }
    free(p->v);
    free(p);
}

static void plus_end_use(struct request *r)
{
    handle_end(r->extra);
    handle_put(r->extra);
}

/* All of them were looked at. */
static void plus_looked(void *arg)
{
    struct plus *p = arg;
    struct request *r = p->request;
    size_t len;
    char *buf = xmalloc(r->size);
    plus_ask(r, p);
    plus_end_use(r);
    plus_fill(r, p, buf, &len);
    bool taken = request_take(r) && fuse_reply_buf(r->req, buf, len) != -ENOENT;
    plus_free(p, taken);
    free(buf);
    request_done(r);
}

static void readdirplus_fn(struct request *r)
{
    struct plus *p = xcalloc(1, sizeof(*p));
    *p = (struct plus){.request = r,
                       .looked_ms = boot_ms(),
                       .xattrs = looks_are_slow() ? xattr_wanted(r->inode) : 0};
    int err = handle_begin(r->extra, r->inode);
    if (!err)
        err = plus_collect(r, p);
    if (!err) {
        looks_run((unsigned)p->n, plus_look, plus_looked, p);
        return;
    }
    plus_end_use(r);
    plus_free(p, false);
    request_err(r, err);
}

static void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                           struct fuse_file_info *fi)
{
    start_on_dir(req, ino, size, off, fi, readdirplus_fn);
}

/* ---- releasedir, fsyncdir ---- */

static void releasedir_fn(struct request *r)
{
    handle_put(r->extra);
    request_err(r, 0);
}

static void handle_end_of(void *h)
{
    handle_put(h);
}

static void op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct request *r = request_new(req, ino);
    if (!r) { /* does not happen: the kernel holds the inode while it is open */
        pool_submit(pool_names, handle_end_of, dir_of(fi));
        return;
    }
    r->extra = dir_of(fi);
    request_start(r, pool_names, releasedir_fn);
}

/* The names are on the PFS already: it makes them durable. */
static void fsyncdir_fn(struct request *r)
{
    struct dir_handle *h = r->extra;
    int err = handle_begin(h, r->inode);
    if (!err)
        err = pfs_fsyncdir(h->dir);
    handle_end(h);
    handle_put(h);
    request_err(r, err);
}

static void op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
    (void)datasync;
    start_on_dir(req, ino, 0, 0, fi, fsyncdir_fn);
}

void dir_ops(struct fuse_lowlevel_ops *ops)
{
    ops->opendir = op_opendir;
    ops->readdir = op_readdir;
    ops->readdirplus = op_readdirplus;
    ops->releasedir = op_releasedir;
    ops->fsyncdir = op_fsyncdir;
}
