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

static int open_file(const char *path, struct pfs_node *node, struct fid fid, struct found *out)
{
    struct statx stx;
    uint64_t looked_ms = boot_ms();
    int err = file_get(fid, path, &out->f);
    if (err)
        return err;
    err = pfs_open_file(out->f, node, false, NULL, &stx);
    if (!err) {
        err = data_open(out->f, DATA_READS, false, &stx, looked_ms, true, &out->data);
        if (err)
            release(out->f);
    }
    if (err)
        file_put(out->f);
    else
        data_attr(out->data, &out->at);
    return err;
}

int find_hinted(const char *path, struct found *out)
{
    struct statx stx;
    struct pfs_node *node;
    *out = (struct found){0};
    int err = look_up(path, &node, &stx);
    if (!err && !S_ISREG(stx.stx_mode))
        err = -ENOENT;
    if (!err)
        err = open_file(path, node, fid_of(&stx), out);
    pfs_unref(node);
    return err == -ENOTDIR ? -ENOENT : err;
}

void found_end(struct found *w)
{
    data_close(w->data);
    release(w->f);
    claim_closed(w->f);
    file_put(w->f);
}
