/* pfs_write.c - writing back: between pfs_write_begin and pfs_write_end (or _abort) one run of the
 * flush counts as a user of the file's writable descriptor (pfs_borrow_fd), so that it is not closed.
 *
 * The policy lets one run at a time work on a file, and a borrowed descriptor keeps its number: the
 * calls between use the descriptor without a lock, so that a writer at idle priority never holds one of
 * ours.
 */
#include "placement/pfs/pfs.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_file.h"
#include "placement/pfs/pfs_int.h"
#include "placement/pfs/pfs_moves.h"
#include "placement/pfs/pfs_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define ZEROS       (1 << 20)
#define IN_VAIN_MAX 64 /* searches, one after the other */

/* One call's result, EINTR to be tried again by the caller. */
#define PFS_CALL(err, call)                                                                        \
    do {                                                                                           \
        uint64_t ticket_ = pfs_call_begin();                                                       \
        (err) = (call) < 0 ? -errno : 0;                                                           \
        pfs_call_end(ticket_);                                                                     \
    } while ((err) == -EINTR)

/* Opens for writing the file that at (O_PATH) refers to; without the right to write, u+w is added
 * meanwhile. */
static int open_writable(struct file *f, int at, int *fd)
{
    int got = pfs_reopen(at, O_RDWR);
    if (got == -EACCES)
        got = pfs_reopen(at, O_WRONLY);
    if (got == -EACCES) {
        int err = pfs_mode_begin(f, at, true);
        if (err)
            return err == -EPERM ? -EACCES : err; /* not our file */
        got = pfs_reopen(at, O_RDWR);
        if (got == -EACCES)
            got = pfs_reopen(at, O_WRONLY);
        if (got < 0)
            pfs_mode_end(f, at);
    }
    if (got < 0)
        return got;
    posix_fadvise(got, 0, 0, POSIX_FADV_RANDOM);
    *fd = got;
    return 0;
}

/* By what is open of it for reading: it may have names that this node does not know. */
static int reach_by_descriptor(struct file *f, int *at, struct statx *stx)
{
    int fd;
    if (pfs_borrow_fd(f, false, &fd))
        return -ENOENT;
    int err = pfs_statx_fd(fd, stx);
    if (!err && !stx->stx_nlink)
        err = -ENOENT;
    if (!err)
        *at = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (!err && *at < 0)
        err = -errno;
    pfs_return_fd(f);
    return err;
}

/* Its name is not where it was, and no move of a directory explains it: another node may have removed one of several
 * names.  A search reads a directory: when many were in vain, the files were removed, and that is what is told. */
static int reach_near(struct file *f, int *at, struct statx *stx)
{
    static _Atomic unsigned in_vain;
    if (in_vain >= IN_VAIN_MAX)
        return -ENOENT;
    int err = pfs_find_near(f, stx);
    in_vain = err ? in_vain + 1 : 0;
    return err ? -ENOENT : pfs_find_file(f, at, stx);
}

/* *at: O_PATH, or as it was opened. */
static int reach(struct file *f, int *at, struct statx *stx)
{
    int err = pfs_find_file(f, at, stx);
    if (err != -ENOENT && err != -ESTALE)
        return err;
    if (!reach_by_descriptor(f, at, stx))
        return 0;
    return !pfs_was_removed(f) && !reach_near(f, at, stx) ? 0 : err;
}

static int open_by_path(struct file *f, struct statx *stx)
{
    int at, fd;
    int err = reach(f, &at, stx);
    if (err)
        return err;
    err = open_writable(f, at, &fd);
    close(at);
    if (!err)
        pfs_install(f, fd, true);
    return err;
}

static void end(struct file *f)
{
    pfs_mode_end(f, pfs_of(f)->fd);
}

/* What open_by_path opened was dropped again. */
static void end_by_path(struct file *f)
{
    struct statx stx;
    int at = -1;
    if (pfs_find_file(f, &at, &stx))
        at = -1;
    pfs_mode_end(f, at);
    if (at >= 0)
        close(at);
}

/* Is the descriptor in use still good?  0; -EIDRM: the file has no name any more; -ESTALE: the PFS has
 * forgotten it. */
static int begin_with_fd(struct file *f, int fd, struct statx *stx)
{
    int err = pfs_statx_fd(fd, stx);
    if (!err && stx->stx_nlink == 0 && !fid_is_loan(f->fid)) /* of a loan the claimant needs the bytes */
        err = -EIDRM;
    if (!err) {
        pfs_of(f)->unit = pfs_unit_of(fd, stx->stx_blksize);
        pfs_of(f)->is_program = stx->stx_mode & 0111;
    }
    return err ? err : pfs_mode_begin(f, fd, false);
}

int pfs_write_begin(struct file *f, struct statx *stx)
{
    int fd, err;
    if (pfs_borrow_fd(f, true, &fd) == 0) {
        err = begin_with_fd(f, fd, stx);
        if (!err)
            return 0;
        pfs_return_fd(f);
        if (err != -ESTALE)
            return err;
        /* An open handle would keep the dead descriptor until it is closed, so this replaces it under its
         * number. */
        struct pfs_file *p = pfs_of(f);
        lock_take(&p->lock);
        p->writable = false;
        lock_drop(&p->lock);
    }
    struct statx now; /* after the mode was raised */
    err = open_by_path(f, stx);
    if (err)
        return err;
    err = pfs_borrow_fd(f, true, &fd);
    if (err) {
        end_by_path(f);
        return err;
    }
    err = begin_with_fd(f, fd, &now);
    if (err) {
        end(f);
        pfs_return_fd(f);
    }
    return err;
}

uint64_t pfs_write_unit(struct file *f)
{
    return pfs_of(f)->unit;
}

int pfs_write_fd(int fd, const void *buf, size_t len, uint64_t off)
{
    size_t at = 0;
    int err = 0;
    uint64_t ticket = pfs_call_begin();
    while (at < len && !err) {
        ssize_t n = pwrite(fd, (const char *)buf + at, len - at, (off_t)(off + at));
        if (n > 0)
            at += (size_t)n;
        else if (n == 0)
            err = -EIO;
        else if (errno != EINTR)
            err = -errno;
    }
    pfs_call_end(ticket);
    count(pfs_write_bytes, at);
    return err;
}

/* ---- capabilities ----
 *
 * The PFS removes a program's capabilities at each write, also of root's.  A write by an application has removed them already
 * (pfs_strip_suid); those that are there when the flush writes were given after it. */

#define CAPABILITY "security.capability"

struct capability {
    char value[64];
    ssize_t len;
};

static struct capability capability_of(struct file *f)
{
    struct capability c = {.len = 0};
    if (!pfs_of(f)->is_program)
        return c;
    c.len = fgetxattr(pfs_of(f)->fd, CAPABILITY, c.value, sizeof(c.value));
    count(pfs_name_ops, 1);
    return c;
}

/* It was changed.  Returns err, or why the program has lost its capability. */
static int give_back(struct file *f, const struct capability *c, int err)
{
    if (c->len <= 0)
        return err;
    int lost = fsetxattr(pfs_of(f)->fd, CAPABILITY, c->value, (size_t)c->len, 0) ? -errno : 0;
    count(pfs_name_ops, 1);
    if (lost == -EPERM) { /* a daemon of an ordinary user writes as that user does */
        char *path = file_path(f);
        log_warn("%s: the flush has removed its capabilities: only root's daemon can give them back", path ? path : "?");
        free(path);
        return err;
    }
    return err ? err : lost;
}

int pfs_write(struct file *f, const void *buf, size_t len, uint64_t off)
{
    struct capability c = capability_of(f);
    return give_back(f, &c, pfs_write_fd(pfs_of(f)->fd, buf, len, off));
}

/* Writes zeros where the PFS file has data in [off, end); holes stay holes. */
static int write_zeros(struct file *f, uint64_t off, uint64_t end)
{
    static char zeros[ZEROS]; /* never written; not const: that would be in the program file */
    while (off < end) {
        off_t data = lseek(pfs_of(f)->fd, (off_t)off, SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            return 0;
        if (data > 0 && (uint64_t)data > off) {
            off = (uint64_t)data;
            continue;
        }
        off_t hole = lseek(pfs_of(f)->fd, (off_t)off, SEEK_HOLE);
        uint64_t upto = hole > 0 && (uint64_t)hole > off ? MIN(end, (uint64_t)hole) : end;
        size_t n = (size_t)MIN(upto - off, (uint64_t)ZEROS);
        int err = pfs_write(f, zeros, n, off);
        if (err)
            return err;
        off += n;
    }
    return 0;
}

int pfs_punch(struct file *f, uint64_t off, uint64_t len)
{
    struct statx stx;
    int err = pfs_statx_fd(pfs_of(f)->fd, &stx);
    if (err)
        return err;
    if (off >= stx.stx_size) /* beyond the end nothing needs to be done */
        return 0;
    len = MIN(len, stx.stx_size - off);
    struct capability c = capability_of(f);
    PFS_CALL(err, fallocate(pfs_of(f)->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)off,
                            (off_t)len));
    err = give_back(f, &c, err);
    if (err == -EOPNOTSUPP || err == -ENOSYS || err == -EINVAL)
        return write_zeros(f, off, off + len);
    return err;
}

int pfs_truncate(struct file *f, uint64_t size)
{
    int err;
    struct capability c = capability_of(f);
    PFS_CALL(err, ftruncate(pfs_of(f)->fd, (off_t)size));
    return give_back(f, &c, err);
}

int pfs_make_longer(struct file *f, uint64_t size)
{
    int err;
    struct capability c = capability_of(f);
    PFS_CALL(err, fallocate(pfs_of(f)->fd, 0, (off_t)size - 1, 1));
    err = give_back(f, &c, err);
    return err == -ENOSYS || err == -EINVAL ? -EOPNOTSUPP : err;
}

/* fsync, and the error that close would return: some file systems return EDQUOT or EIO only there.  Closing a
 * duplicate reaches the same code. */
int pfs_sync(struct file *f)
{
    int err;
    PFS_CALL(err, fsync(pfs_of(f)->fd));
    if (err)
        return err;
    int dup = fcntl(pfs_of(f)->fd, F_DUPFD_CLOEXEC, 0);
    if (dup < 0)
        return -errno;
    uint64_t ticket = pfs_call_begin();
    err = close(dup) < 0 && errno != EINTR ? -errno : 0;
    pfs_call_end(ticket);
    posix_fadvise(pfs_of(f)->fd, 0, 0, POSIX_FADV_DONTNEED);
    return err;
}

/* After the last use of the descriptor in this run. */
static void let_go(struct file *f)
{
    pfs_return_fd(f);
    pfs_keep(f);
}

int pfs_write_end(struct file *f, int64_t mtime_ns, struct statx *stx)
{
    struct timespec ts[2] = {{.tv_nsec = UTIME_OMIT}, time_of_ns(mtime_ns)};
    int err;
    PFS_CALL(err, futimens(pfs_of(f)->fd, ts));
    if (err == -EPERM ||
        err == -EACCES) /* another user's file: the flush's own mtime is published */
        err = 0;
    end(f);
    if (!err)
        err = pfs_statx_fd(pfs_of(f)->fd, stx);
    let_go(f);
    return err;
}

void pfs_write_abort(struct file *f)
{
    end(f);
    let_go(f);
}

/* ---- setuid, setgid, capabilities ---- */

static int strip_fd(int fd, mode_t bits)
{
    struct statx stx;
    int err = pfs_statx_fd(fd, &stx);
    if (err)
        return err;
    mode_t drop = stx.stx_mode & bits & (S_ISUID | S_ISGID);
    char proc[PROC_FD];
    pfs_proc_fd(fd, proc);
    if (drop)
        PFS_CALL(err, chmod(proc, (stx.stx_mode & 07777) & ~drop));
    if (err == -EPERM) /* another user's file: it loses them on the PFS when the bytes get there */
        err = 0;
    if (!err && removexattr(proc, CAPABILITY) < 0 && errno != ENODATA &&
        errno != EOPNOTSUPP && errno != EPERM)
        err = -errno;
    count(pfs_name_ops, 1);
    return err;
}

int pfs_strip_suid(struct file *f, mode_t bits)
{
    int fd, at = -1, err = 0;
    bool borrowed = pfs_borrow_fd(f, false, &fd) == 0;
    if (!borrowed) {
        struct statx stx;
        err = pfs_find_file(f, &at, &stx);
        fd = at;
    }
    if (err)
        return err;
    struct mode_entry *e = pfs_mode_take(fid_real(f->fid));
    err = strip_fd(fd, bits);
    if (!err)
        pfs_mode_changed(e, fd, false);
    pfs_mode_drop(e);
    if (borrowed)
        pfs_return_fd(f);
    else
        close(at);
    return err;
}
