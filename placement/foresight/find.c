/* find.c - looks a path up on the PFS, and opens what is there for reading. */
#include "placement/foresight/find.h"
#include "placement/foresight/find_dirs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "placement/claims/claim_forget.h"
#include "placement/claims/claim_settled.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"

/* Where the PFS knows no birth times, a look does not tell a file from the one that had its number before. */
static struct data_known known_of(const struct statx *stx, uint64_t looked_ms)
{
    const struct view *v = members_view();
    struct data_known k = {.version = version_of(stx)};
    if (stx->stx_mask & STATX_BTIME)
        k.looked_ms = looked_ms;
    if (v && claim_settled(v->number, looked_ms)) /* what its homes say later is of after the look */
        k.view = v->number;
    return k;
}

static int look_up(struct pfs_node *dir, const char *name, struct found *out)
{
    struct statx stx;
    uint64_t looked_ms = boot_ms();
    int err = pfs_lookup(dir, name, &stx);
    if (!err && !S_ISREG(stx.stx_mode))
        err = -ENOENT;
    if (err)
        return err;
    out->fid = fid_of(&stx);
    out->known = known_of(&stx, looked_ms);
    out->node = pfs_child_as(dir, name, out->fid, NULL);
    return 0;
}

/* The open finds out whether the name leads to it, so it is not looked at before.  A file that is open here already would be found
 * by its descriptor, whatever its name is: of that nothing is guessed. */
static bool may_guess(const struct fid *guess)
{
    struct file *f = guess ? file_find_used(*guess) : NULL;
    bool has = f && pfs_has_descriptor(f);
    if (f)
        file_put(f);
    return guess && !has;
}

/* 1: there is an error, but the directory was found as it was a moment ago. */
static int find_in(const char *dir_path, const char *name, bool anew, const struct fid *guess, struct found *out)
{
    struct pfs_node *dir;
    int kept = find_dir(dir_path, anew, &dir), err = MIN(kept, 0);
    *out = (struct found){0};
    if (!err && kept && may_guess(guess)) /* not the first file: its look opens the directory, for those that follow */
        *out = (struct found){.node = pfs_child(dir, name), .fid = *guess, .guessed = true};
    else if (!err)
        err = look_up(dir, name, out);
    pfs_unref(dir);
    return err && kept == 1 ? 1 : err;
}

int find_hinted(const char *path, const struct fid *guess, struct found *out)
{
    char *dir = xstrdup(path), *slash = strrchr(dir, '/');
    const char *name = slash ? path + (slash - dir) + 1 : path;
    *(slash ? slash : dir) = 0;
    int err = find_in(dir, name, false, guess, out);
    if (err == 1)
        err = find_in(dir, name, true, guess, out);
    free(dir);
    return err == -ENOTDIR ? -ENOENT : err;
}

bool found_is_elsewhere(const struct found *w)
{
    struct location at;
    return !claim_where(w->fid, LOOK_NONE, &at) && (at.where == WHERE_NODE || at.where == WHERE_LOST);
}

/* If all of it is here, as it was when it was looked up. */
static int open_known(struct found *w)
{
    pfs_open_known(w->f);
    int err = data_open_known(w->f, &w->known, false, &w->data);
    if (err)
        data_release(w->f);
    return err;
}

static int open_on_pfs(struct found *w)
{
    struct statx stx;
    uint64_t looked_ms = boot_ms();
    int err = pfs_open_file(w->f, w->node, false, NULL, &stx);
    if (err)
        return err;
    err = data_open(w->f, DATA_READS, false, &stx, looked_ms, true, &w->data);
    if (err)
        data_release(w->f);
    return err;
}

int found_open(const char *path, struct found *w)
{
    int err = file_get(w->fid, path, &w->f);
    if (err)
        return err;
    err = w->known.looked_ms && !file_is_unlinked(w->f) ? open_known(w) : -EAGAIN;
    if (err)
        err = open_on_pfs(w);
    if (err) {
        file_put(w->f);
        w->f = NULL;
        return err;
    }
    data_attr(w->data, &w->at);
    return 0;
}

void found_end(struct found *w)
{
    if (w->f) {
        data_close(w->data);
        data_release(w->f);
        claim_closed(w->f);
        file_put(w->f);
    }
    pfs_unref(w->node);
}
