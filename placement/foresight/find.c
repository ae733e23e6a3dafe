/* find.c - looks a path up on the PFS, and opens what is there for reading. */
#include "placement/foresight/find.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "placement/claims/claim_forget.h"
#include "placement/claims/claim_give.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"

/* *out is referenced also if there is an error. */
static int look_up(const char *path, struct pfs_node **out, struct statx *stx)
{
    char *copy = xstrdup(path), *rest = copy;
    struct pfs_node *node = pfs_ref(pfs_root());
    int err = 0;
    for (char *name; !err && (name = strsep(&rest, "/"));) {
        err = pfs_lookup(node, name, stx);
        if (err)
            break;
        struct pfs_node *child = pfs_child_as(node, name, fid_of(stx), NULL);
        pfs_unref(node);
        node = child;
    }
    free(copy);
    *out = node;
    return err;
}

/* As a handle of the mount does (fs/handle.c). */
static void release(struct file *f)
{
    bool held = file_is_unlinked(f) && pfs_keep_number(f);
    data_release(f);
    if (file_is_unlinked(f) && pfs_open_ends(f))
        claim_unlinked(f);
    if (held)
        pfs_unhold_number(f);
}

int find_hinted(const char *path, struct found *out)
{
    struct statx stx;
    *out = (struct found){0};
    int err = look_up(path, &out->node, &stx);
    if (!err && !S_ISREG(stx.stx_mode))
        err = -ENOENT;
    if (!err)
        out->fid = fid_of(&stx);
    return err == -ENOTDIR ? -ENOENT : err;
}

bool found_is_elsewhere(const struct found *w)
{
    struct location at;
    return !claim_where(w->fid, LOOK_NONE, &at) && (at.where == WHERE_NODE || at.where == WHERE_LOST);
}

int found_open(const char *path, struct found *w)
{
    struct statx stx;
    uint64_t looked_ms = boot_ms();
    int err = file_get(w->fid, path, &w->f);
    if (err)
        return err;
    err = pfs_open_file(w->f, w->node, false, NULL, &stx);
    if (!err) {
        err = data_open(w->f, DATA_READS, false, &stx, looked_ms, true, &w->data);
        if (err)
            release(w->f);
    }
    if (err)
        file_put(w->f);
    else
        data_attr(w->data, &w->at);
    if (err)
        w->f = NULL;
    return err;
}

void found_end(struct found *w)
{
    if (w->f) {
        data_close(w->data);
        release(w->f);
        claim_closed(w->f);
        file_put(w->f);
    }
    pfs_unref(w->node);
}
