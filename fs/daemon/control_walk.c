/* control_walk.c - walks files and directories on the PFS (control_walk.h). */
#include "fs/daemon/control_walk.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/looks.h"
#include "placement/pfs/pfs_dir.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"
#include "transport/lock.h"

#define BATCH 512 /* claim_where_many's */

struct found {
    char *name; /* in the walk's directory, or the path if there is none */
    struct statx stx;
    int err;
};

struct directory {
    struct pfs_node *node;
    struct directory *next;
};

struct walk {
    const struct walk_calls *calls;
    struct directory *todo;  /* not read yet */
    struct pfs_node *at;     /* the one that is being read; NULL: the paths of the request */
    struct pfs_dir *listing; /* of `at` */
    struct found v[BATCH];
    unsigned n;
    struct lock lock; /* RANK_LEAF: looked */
    pthread_cond_t done;
    bool looked;
};

static bool goes_on(struct walk *w)
{
    return w->calls->goes_on(w->calls->arg);
}

/* ---- what the tool is told ---- */

void walk_say(struct walk_said *s, json_t *line)
{
    s->gone |= control_say(s->c, line) != 0;
}

void walk_say_failed(struct walk_said *s, const char *path, const char *why)
{
    if (s->failed++ >= CONTROL_FILES_MAX)
        return;
    json_t *line = json_object(), *file = json_object();
    control_put_text(file, "path", path);
    control_put_text(file, "error", why);
    json_object_set_new(line, "file", file);
    walk_say(s, line);
}

static void say_link(struct walk_said *s, const char *path)
{
    json_t *line = json_object();
    control_put_text(line, "link", path);
    walk_say(s, line);
}

/* ---- a batch ---- */

static char *path_of(const struct walk *w, const struct found *f)
{
    if (!w->at)
        return xstrdup(f->name);
    char *dir = pfs_path(w->at), *path;
    if (asprintf(&path, "%s%s%s", dir, *dir ? "/" : "", f->name) < 0)
        die("out of memory for a path");
    free(dir);
    return path;
}

static void look(void *arg, unsigned k)
{
    struct walk *w = arg;
    struct found *f = &w->v[k];
    f->err =
        w->at ? pfs_stat_at(w->listing, f->name, &f->stx) : control_find_file(f->name, &f->stx);
}

static void looked(void *arg)
{
    struct walk *w = arg;
    lock_take(&w->lock);
    w->looked = true;
    pthread_cond_signal(&w->done);
    lock_drop(&w->lock);
}

static void look_at_all(struct walk *w)
{
    w->looked = false;
    looks_run(w->n, look, looked, w);
    lock_take(&w->lock);
    while (!w->looked)
        lock_wait(&w->lock, &w->done, 0);
    lock_drop(&w->lock);
}

static void add_directory(struct walk *w, const struct found *f)
{
    struct statx stx;
    struct pfs_node *node;
    if (w->at)
        node = pfs_child_as(w->at, f->name, fid_of(&f->stx), NULL);
    else if (control_find(f->name, &stx, &node))
        return; /* it has gone meanwhile */
    struct directory *d = xmalloc(sizeof(*d));
    *d = (struct directory){node, w->todo};
    w->todo = d;
}

/* What is no regular file; false: it is one. */
static bool is_settled(struct walk *w, const struct found *f)
{
    if (f->err == -ENOENT && w->at)
        return true; /* it was removed after the directory was read */
    if (!f->err && S_ISREG(f->stx.stx_mode))
        return false;
    char *path = path_of(w, f);
    if (f->err)
        walk_say_failed(w->calls->said, path, strerror(-f->err));
    else if (S_ISDIR(f->stx.stx_mode))
        add_directory(w, f);
    else if (S_ISLNK(f->stx.stx_mode))
        say_link(w->calls->said, path);
    free(path);
    return true;
}

static void settle_file(struct walk *w, const struct found *f, const struct location *at, int err)
{
    char *path = path_of(w, f), why[512];
    if (err) {
        walk_say_failed(
            w->calls->said, path,
            "which node has its latest bytes cannot be found out now: try again in a few seconds");
    } else if (at->where == WHERE_LOST) {
        snprintf(why, sizeof(why),
                 "its latest bytes are on node %s, which has left: start eddyfs there again, or "
                 "give them "
                 "up with \"eddy forget\"",
                 members_name(at->node));
        walk_say_failed(w->calls->said, path, why);
    } else {
        w->calls->file(w->calls->arg, path, &f->stx, at);
    }
    free(path);
}

static void settle_files(struct walk *w, const unsigned *which, unsigned n)
{
    struct fid fids[BATCH];
    int errs[BATCH];
    struct location *at = xcalloc(n + 1, sizeof(*at));
    for (unsigned i = 0; i < n; i++)
        fids[i] = fid_of(&w->v[which[i]].stx);
    if (n)
        claim_where_many(fids, n, LOOK_NONE, at, errs);
    for (unsigned i = 0; i < n; i++)
        settle_file(w, &w->v[which[i]], &at[i], errs[i]);
    free(at);
}

static void settle_batch(struct walk *w)
{
    unsigned files[BATCH], n = 0;
    look_at_all(w);
    for (unsigned k = 0; k < w->n; k++)
        if (!is_settled(w, &w->v[k]))
            files[n++] = k;
    settle_files(w, files, n);
    while (w->n)
        free(w->v[--w->n].name);
}

static void add_name(struct walk *w, char *name)
{
    w->v[w->n++] = (struct found){.name = name};
    if (w->n == BATCH)
        settle_batch(w);
}

/* ---- directories ---- */

static bool is_entry(const struct pfs_dirent *e)
{
    bool may = e->type == DT_REG || e->type == DT_DIR || e->type == DT_LNK || e->type == DT_UNKNOWN;
    return may && strcmp(e->name, ".") && strcmp(e->name, "..");
}

static int read_entries(struct walk *w)
{
    struct pfs_dirent e;
    int err = 0;
    for (int64_t next = 0; goes_on(w) && !(err = pfs_readdir(w->listing, next, &e)); next = e.next)
        if (is_entry(&e))
            add_name(w, xstrdup(e.name));
    settle_batch(w);
    return err == -ENODATA ? 0 : err;
}

static void read_directory(struct walk *w, struct pfs_node *node)
{
    w->at = node;
    int err = pfs_opendir(node, false, &w->listing);
    if (!err) {
        err = read_entries(w);
        pfs_closedir(w->listing);
    }
    if (err && err != -ENOENT && err != -ESTALE) { /* it has gone meanwhile */
        char *path = pfs_path(node);
        walk_say_failed(w->calls->said, path, strerror(-err));
        free(path);
    }
    w->at = NULL;
}

static void read_directories(struct walk *w)
{
    while (w->todo) {
        struct directory *d = w->todo;
        w->todo = d->next;
        if (goes_on(w))
            read_directory(w, d->node);
        pfs_unref(d->node);
        free(d);
    }
}

/* ---- the whole ---- */

static void add_paths(struct walk *w, const struct walk_paths *p)
{
    for (size_t i = 0; i < p->n && goes_on(w); i++)
        add_name(w, xstrdup(p->v[i]));
    settle_batch(w);
}

void walk_all(const struct walk_paths *p, const struct walk_calls *calls)
{
    struct walk *w = xcalloc(1, sizeof(*w));
    w->calls = calls;
    lock_init(&w->lock, RANK_LEAF);
    lock_cond_init(&w->done);
    add_paths(w, p);
    read_directories(w);
    pthread_cond_destroy(&w->done);
    lock_destroy(&w->lock);
    free(w);
}

/* ---- the paths of a request ---- */

/* False: it is no list of paths. */
static bool take_paths(struct walk_paths *p, const json_t *line)
{
    const json_t *list = json_object_get(line, "paths"), *item;
    size_t i;
    if (!json_is_array(list))
        return false;
    json_array_foreach(list, i, item)
    {
        const char *text = json_string_value(item);
        char *path = text ? control_unescape(text) : NULL;
        if (!path)
            return false;
        if (p->n == p->size) {
            p->size = MAX(2 * p->size, (size_t)64);
            p->v = xrealloc(p->v, p->size * sizeof(*p->v));
        }
        p->v[p->n++] = path;
    }
    return true;
}

bool walk_take_paths(struct connection *c, const json_t *line, size_t most, struct walk_paths *p)
{
    bool more = json_is_true(json_object_get(line, "more"));
    if (!take_paths(p, line))
        return false;
    while (more && p->n <= most) {
        json_t *next = control_next(c);
        bool good = take_paths(p, next);
        more = json_is_true(json_object_get(next, "more"));
        json_decref(next);
        if (!good)
            return false;
    }
    return p->n <= most;
}

void walk_paths_free(struct walk_paths *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->v[i]);
    free(p->v);
}
