/* pfs_read.c - reading a file's bytes on the PFS: chunks of one version, plain ranges, where data and
 * holes are.  It uses the file's descriptor if there is one, else its path.
 */
#include "placement/pfs/pfs.h"

#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_file.h"
#include "placement/pfs/pfs_int.h"
#include "placement/store/store_open.h"
#include "transport/marks.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

void pfs_note_seen(struct file *f, const struct version *v)
{
    struct pfs_file *p = pfs_of(f);
    lock_take(&p->lock);
    p->seen = *v;
    lock_drop(&p->lock);
}

bool pfs_is_seen(struct file *f, const struct version *v)
{
    struct pfs_file *p = pfs_of(f);
    lock_take(&p->lock);
    bool seen = version_eq(&p->seen, v);
    lock_drop(&p->lock);
    return seen;
}

static int read_full(int fd, void *buf, size_t len, uint64_t off, size_t *got)
{
    size_t at = 0;
    int err = 0;
    uint64_t ticket = pfs_call_begin();
    while (at < len) {
        ssize_t n = pread(fd, (char *)buf + at, len - at, (off_t)(off + at));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            err = -errno;
        if (n <= 0)
            break;
        at += (size_t)n;
    }
    pfs_call_end(ticket);
    count(pfs_read_bytes, at);
    *got = at;
    return err;
}

/* The bytes go to the store, so a second copy in the PFS client's cache is not needed. */
static void drop_copy(int fd, uint64_t off, size_t len)
{
    posix_fadvise(fd, (off_t)off, (off_t)len, POSIX_FADV_DONTNEED);
}

int pfs_read_full(int fd, void *buf, size_t len, uint64_t off, size_t *got)
{
    int err = read_full(fd, buf, len, off, got);
    drop_copy(fd, off, *got);
    return err;
}

static int version_now(int fd, struct version *now)
{
    struct statx stx;
    int err = pfs_statx_fd(fd, &stx);
    if (!err)
        *now = version_of(&stx);
    return err;
}

static void tell_unproven(struct pfs_unproven *u, const struct pfs_chunk_read *r)
{
    if (!u || u->told)
        return;
    u->told = true;
    u->here(u->arg, r);
}

/* The look after the read shows that the bytes are of r->version, and of no version in between: ctime only
 * grows.  The look before makes a PFS client drop the pages that it may have of an older version; so it is
 * necessary once for each version. */
int pfs_read_version(int fd, bool seen, struct pfs_chunk_read *r, struct pfs_unproven *u)
{
    struct version now = r->version;
    int err = seen ? 0 : version_now(fd, &now);
    if (err)
        return err;
    r->racy = version_racy(&r->version, real_ns() + session_clock_offset_ns());
    size_t chunk = store_chunk_size(), want = 0, got = 0;
    uint64_t off = r->index * chunk;
    if (version_eq(&now, &r->version)) {
        want = off < r->version.size ? (size_t)MIN(chunk, r->version.size - off) : 0;
        err = read_full(fd, r->buf, want, off, &got);
        r->len = got;
        if (!err && got == want)
            tell_unproven(u, r);
        drop_copy(fd, off, got);
        if (!err)
            err = version_now(fd, &now);
    }
    if (err)
        return err;
    if (!version_eq(&now, &r->version)) {
        r->version = now;
        return -ESTALE;
    }
    return got == want ? 0
                       : -EIO; /* shorter than it says it is, and unchanged: the PFS is broken */
}

/* If the proof fails, the next read begins with a look, so that it finds another version before it gives its
 * bytes to the reader. */
int pfs_read_chunk(struct file *f, struct pfs_chunk_read *r, struct pfs_unproven *u)
{
    int fd;
    if (pfs_borrow_fd(f, false, &fd) == 0) {
        struct version want = r->version;
        int err = pfs_read_version(fd, pfs_is_seen(f, &want), r, u);
        pfs_return_fd(f);
        if (!err || (u && u->told))
            pfs_note_seen(f, err ? &(struct version){0} : &r->version);
        if (u && u->told)
            return err;
        /* EBADF: the descriptor can only write.  ESTALE without a new version: the PFS has forgotten the
         * descriptor. */
        if (err != -EBADF && !(err == -ESTALE && version_eq(&want, &r->version)))
            return err;
    }
    char *path = file_path(f);
    if (!path)
        return -ESTALE;
    int err = pfs_read_chunk_at(f->fid, path, r);
    free(path);
    return err;
}

static int read_by_path(struct file *f, void *buf, size_t len, uint64_t off, size_t *got)
{
    struct statx stx;
    int fd;
    int err = pfs_open_hint(f, O_RDONLY, &fd, &stx);
    if (err)
        return err;
    err = pfs_read_full(fd, buf, len, off, got);
    pfs_close_fd(fd);
    return err;
}

int pfs_read(struct file *f, void *buf, size_t len, uint64_t off, size_t *got)
{
    int fd;
    if (pfs_borrow_fd(f, false, &fd) == 0) {
        int err = pfs_read_full(fd, buf, len, off, got);
        pfs_return_fd(f);
        if (err != -EBADF && err != -ESTALE)
            return err;
    }
    return read_by_path(f, buf, len, off, got);
}

static int seek_fd(int fd, uint64_t off, bool hole, uint64_t *out)
{
    uint64_t ticket = pfs_call_begin();
    off_t at = lseek(fd, (off_t)off, hole ? SEEK_HOLE : SEEK_DATA);
    int err = at < 0 ? -errno : 0;
    pfs_call_end(ticket);
    if (!err)
        *out = (uint64_t)at;
    return err;
}

int pfs_file_seek(struct file *f, uint64_t off, bool hole, uint64_t *out)
{
    int fd;
    if (pfs_borrow_fd(f, false, &fd) == 0) {
        int err = seek_fd(fd, off, hole, out);
        pfs_return_fd(f);
        return err;
    }
    struct statx stx;
    int err = pfs_open_hint(f, O_RDONLY, &fd, &stx);
    if (err)
        return err;
    err = seek_fd(fd, off, hole, out);
    pfs_close_fd(fd);
    return err;
}
