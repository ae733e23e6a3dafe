/* rescue.c - what a dead daemon left, copied to another directory than the one it belongs to.
 *
 * Nothing is replaced there, and nothing changes here.  The user looks at the copies, and then removes the
 * cache directory, or flushes it after all.  Bytes that only the PFS has are read from the PFS
 * while it has the file as it was.  A copy in which such bytes, or parts that other nodes have, are missing is named
 * NAME.eddy-incomplete-NODE.  So is what a power loss left in doubt: some of it may be missing, or older.
 */
#include "flush/copy_aside.h"
#include "flush/flush_recover.h"
#include "flush/piece.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_new.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* ---- what a power loss left in doubt ---- */

/* Its bytes from off to end. */
static int copy_bytes(int fd, struct pfs_new *to, char *buf, uint64_t off, uint64_t end)
{
    while (off < end) {
        ssize_t n = pread(fd, buf, (size_t)MIN(end - off, (uint64_t)PIECE), (off_t)off);
        int err = n < 0 ? -errno : n ? pfs_new_write(to, buf, (size_t)n, off) : -EIO;
        if (err)
            return err;
        off += (uint64_t)n;
    }
    return 0;
}

static int copy_descriptor(int fd, struct pfs_new *to, uint64_t size)
{
    char *buf = xmalloc(PIECE);
    off_t at = 0, end = 0;
    int err = 0;
    while (!err && (uint64_t)end < size) {
        at = lseek(fd, end, SEEK_DATA);
        end = at < 0 ? at : lseek(fd, at, SEEK_HOLE);
        err = end < 0 ? -errno : copy_bytes(fd, to, buf, (uint64_t)at, MIN((uint64_t)end, size));
    }
    free(buf);
    return err == -ENXIO ? 0 : err; /* no data behind `end` */
}

static int rescue_bytes(const struct rescue *r, struct fid fid, const char *path, char **made)
{
    struct pfs_new to;
    struct pfs_new_attr attr = {0};
    char suffix[300];
    int fd = store_suspect_open(fid, &attr.size, &attr.mtime_ns);
    if (fd < 0 && fd != -ENOENT)
        return fd;
    snprintf(suffix, sizeof(suffix), ".eddy-incomplete-%s", r->node);
    int err = pfs_new_begin(&to, r->rootfd, path, r->node, fid, true);
    if (!err && fd >= 0 && (err = copy_descriptor(fd, &to, attr.size)))
        pfs_new_abort(&to);
    if (!err)
        err = pfs_new_end(&to, &attr, suffix, true, made);
    if (fd >= 0)
        close(fd);
    return err;
}

static int rescue_suspect(void *arg, struct fid fid, const char *path, uint64_t bytes, enum unflushed_why why)
{
    const struct rescue *r = arg;
    struct flush_copy c = {.path = path, .missing = bytes, .suspect = why == UNFLUSHED_SUSPECT};
    char *made = NULL;
    c.err = rescue_bytes(r, fid, path, &made);
    c.made = made;
    r->cb(r->arg, &c);
    free(made);
    return 0;
}

int flush_copy_to(int rootfd, const char *node, bool origin, void (*cb)(void *arg, const struct flush_copy *c), void *arg)
{
    struct rescue r = {rootfd, node, origin, cb, arg};
    int err = store_each_claimed(rescue_one, &r);
    return err ? err : store_each_suspect(rescue_suspect, &r);
}
