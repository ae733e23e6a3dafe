/* pfs_dir.c - reading a directory of the PFS: getdents64 into a buffer of our own, positions are
 * the PFS's cookies.
 *
 * The kernel lets one thread at a time read a directory handle, so there is no lock here.
 */
#include "placement/pfs/pfs.h"
#include "placement/pfs/pfs_dir.h"
#include "placement/pfs/pfs_int.h"
#include "placement/pfs/pfs_node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#define DIR_BUFFER (64 << 10)

struct pfs_dir {
    int fd;
    bool is_root; /* leaves the hidden name out */
    int64_t next; /* cookie of the entry at `at` */
    int64_t last; /* cookie of the entry that was given last, at `last_at`: a caller that had no
                     room for it asks again */
    size_t last_at;
    bool at_end;       /* the last getdents said so, and `next` is behind all entries */
    size_t at, filled; /* in buffer */
    char buffer[DIR_BUFFER] __attribute__((aligned(8)));
};

struct dirent64_raw { /* struct linux_dirent64 */
    uint64_t d_ino;
    int64_t d_off;
    unsigned short d_reclen;
    unsigned char d_type;
    char d_name[];
};

/* By parent and name, not by "." below its own descriptor, because reading a directory does not need the
 * right to search it. */
static int op_open(int fd, struct pfs_op *op)
{
    int dir = pfs_open_beneath(fd, op->name, O_RDONLY | O_DIRECTORY, 0);
    if (dir < 0)
        return op->check_fid && (dir == -ENOENT || dir == -ENOTDIR || dir == -ELOOP) ? -ESTALE
                                                                                     : dir;
    struct statx stx;
    int err = pfs_statx_fd(dir, &stx);
    if (!err && op->check_fid && !fid_eq(fid_of(&stx), op->fid))
        err = -ESTALE;
    if (err) {
        close(dir);
        return err;
    }
    op->fd_out = dir;
    return 0;
}

int pfs_opendir(struct pfs_node *n, bool renamed, struct pfs_dir **out)
{
    char name[NAME_BYTES] = "";
    struct pfs_op op = {.name = name};
    op.check_fid = pfs_fid_known(n, &op.fid);
    bool is_root = n == pfs_root();
    struct pfs_node *parent = is_root ? pfs_ref(n) : pfs_parent_of(n, name);
    if (!parent && !pfs_has_fd(n))
        return -ESTALE;
    if (!parent) /* without a name, but a process has it as its working directory */
        parent = pfs_ref(n);
    int err = pfs_run(parent, NULL, op_open, &op);
    if (err == -ESTALE && renamed && parent != n && pfs_is_there(n)) {
        name[0] = '\0';
        err = pfs_run(n, NULL, op_open, &op);
    }
    pfs_unref(parent);
    if (err)
        return err;
    struct pfs_dir *d = xmalloc(sizeof(*d));
    d->fd = op.fd_out;
    d->is_root = is_root;
    d->next = d->last = 0;
    d->at_end = false;
    d->at = d->filled = d->last_at = 0;
    *out = d;
    return 0;
}

static int seek_to(struct pfs_dir *d, int64_t offset)
{
    d->at = d->filled = d->last_at = 0;
    d->at_end = false;
    d->next = d->last = offset;
    return lseek(d->fd, offset, SEEK_SET) < 0 ? -errno : 0;
}

static int fill(struct pfs_dir *d)
{
    if (d->at_end)
        return -ENODATA;
    uint64_t ticket = pfs_call_begin();
    count(pfs_name_ops, 1);
    long n = syscall(SYS_getdents64, d->fd, d->buffer, sizeof(d->buffer));
    int err = n < 0 ? -errno : 0;
    pfs_call_end(ticket);
    d->at = 0;
    d->filled = n > 0 ? (size_t)n : 0;
    if (err == -ENOENT) /* the directory was removed: it has no entries */
        n = err = 0;
    if (n == 0 && !err) {
        d->at_end = true;
        err = -ENODATA;
    }
    return err;
}

static bool left_out(const struct pfs_dir *d, const char *name)
{
    return d->is_root && pfs_hidden && strcmp(name, pfs_hidden) == 0;
}

int pfs_readdir(struct pfs_dir *d, int64_t offset, struct pfs_dirent *e)
{
    if (offset != d->next) {
        int err = 0;
        if (offset == d->last && d->last_at < d->at) {
            d->at = d->last_at;
            d->next = offset;
        } else {
            err = seek_to(d, offset);
        }
        if (err)
            return err;
    }
    for (;;) {
        if (d->at >= d->filled) {
            int err = fill(d);
            if (err)
                return err;
        }
        const struct dirent64_raw *r = (const void *)(d->buffer + d->at);
        d->last = d->next;
        d->last_at = d->at;
        d->at += r->d_reclen;
        d->next = r->d_off;
        if (left_out(d, r->d_name))
            continue;
        *e = (struct pfs_dirent){r->d_name, r->d_ino, r->d_type, r->d_off};
        return 0;
    }
}

int pfs_stat_at(struct pfs_dir *d, const char *name, struct statx *stx)
{
    if (left_out(d, name))
        return -ENOENT;
    return pfs_statx_at(d->fd, name, stx);
}

static bool is_absent(int fd, const char *attribute)
{
    char proc[PROC_FD];
    uint64_t ticket = pfs_call_begin();
    count(pfs_name_ops, 1);
    bool absent = getxattr(pfs_proc_fd(fd, proc), attribute, NULL, 0) < 0 && errno == ENODATA;
    pfs_call_end(ticket);
    return absent;
}

unsigned pfs_absent_at(struct pfs_dir *d, const char *name, struct fid fid,
                       const char *const *attributes, unsigned n, unsigned wanted)
{
    struct statx stx;
    unsigned absent = 0;
    int fd = pfs_open_beneath(d->fd, name, O_PATH, 0);
    bool right = fd >= 0 && !pfs_statx_fd(fd, &stx) && fid_eq(fid_of(&stx), fid);
    for (unsigned k = 0; right && k < n; k++)
        if (wanted & 1u << k && is_absent(fd, attributes[k]))
            absent |= 1u << k;
    if (fd >= 0)
        close(fd);
    return absent;
}

int pfs_fsyncdir(struct pfs_dir *d)
{
    uint64_t ticket = pfs_call_begin();
    count(pfs_name_ops, 1);
    int err = fsync(d->fd) < 0 ? -errno : 0;
    pfs_call_end(ticket);
    return err == -EINVAL ? 0 : err; /* file systems without fsync of directories */
}

void pfs_closedir(struct pfs_dir *d)
{
    close(d->fd);
    free(d);
}
