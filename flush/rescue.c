/* rescue.c - what a dead daemon left, copied to another directory than the one it belongs to.
 *
 * Nothing is replaced there, and nothing changes here.  The user looks at the copies, and then removes the
 * cache directory, or flushes it after all.  Bytes that only the PFS has are read from the PFS
 * while it has the file as it was.  A copy in which such bytes, or parts that other nodes have, are missing is named
 * NAME.eddy-incomplete-NODE.
 */
#include "flush/copy_aside.h"
#include "flush/flush_recover.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_new.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rescue {
    int rootfd;
    const char *node;
    bool origin;
    void (*cb)(void *arg, const struct flush_copy *c);
    void *arg;
};

struct filled {
    struct copying copying; /* first */
    struct version base;
    char *chunk;
    uint64_t index; /* of the chunk that is in it; UINT64_MAX: none */
    size_t len;
};

static int fill(struct copying *c, uint64_t off, size_t *n)
{
    struct filled *from = (struct filled *)c;
    uint64_t size = store_chunk_size(), index = off / size;
    size_t at = (size_t)(off % size);
    *n = MIN(*n, (size_t)(size - at));
    if (index != from->index) {
        struct pfs_chunk_read r = {.index = index, .version = from->base, .buf = from->chunk};
        from->index = UINT64_MAX;
        if (pfs_read_chunk(c->f, &r, NULL))
            return -ENODATA;
        from->index = index;
        from->len = r.len;
    }
    if (at + *n > from->len)
        return -ENODATA;
    memcpy(c->buf, from->chunk + at, *n);
    return 0;
}

static int copy_out(const struct rescue *r, struct file *f, const struct file_info *info,
                    struct pfs_new *to, uint64_t *missing)
{
    struct filled from = {.copying = {.f = f, .to = to}, .base = info->base, .index = UINT64_MAX};
    if (r->origin && info->base_known && !info->flushing) {
        from.copying.fill = fill;
        from.chunk = xmalloc(store_chunk_size());
    }
    int err = copy_aside(&from.copying);
    *missing = from.copying.missing;
    free(from.chunk);
    return err;
}

static int rescue_file(const struct rescue *r, struct file *f, const char *path, char **made,
                       uint64_t *missing)
{
    struct pfs_new to;
    struct statx like;
    struct file_info info;
    char suffix[300];
    store_info(f, &info);
    bool known = r->origin && !pfs_file_stat(f, &like);
    int err = pfs_new_begin(&to, r->rootfd, path, r->node, f->fid, true);
    if (err)
        return err;
    err = copy_out(r, f, &info, &to, missing);
    if (err) {
        pfs_new_abort(&to);
        return err;
    }
    bool whole = !*missing && !copy_aside_is_part(f);
    snprintf(suffix, sizeof(suffix), ".eddy-%s-%s", whole ? "conflict" : "incomplete", r->node);
    struct pfs_new_attr attr = {info.size, info.mtime_ns, known ? &like : NULL};
    return pfs_new_end(&to, &attr, suffix, !whole, made);
}

static int rescue_one(void *arg, struct file *f)
{
    const struct rescue *r = arg;
    struct file_info info;
    struct flush_copy c = {.part = copy_aside_is_part(f)};
    char *made = NULL, *path = file_path(f);
    store_info(f, &info);
    c.path = path ? path : "?";
    if (info.dirty)
        c.err = path ? rescue_file(r, f, path, &made, &c.missing) : -ENOENT;
    c.made = made;
    if (info.dirty || info.lent)
        r->cb(r->arg, &c);
    free(made);
    free(path);
    return 0;
}

int flush_copy_to(int rootfd, const char *node, bool origin, void (*cb)(void *arg, const struct flush_copy *c), void *arg)
{
    struct rescue r = {rootfd, node, origin, cb, arg};
    return store_each_claimed(rescue_one, &r);
}
