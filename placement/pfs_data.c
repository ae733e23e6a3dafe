/* pfs_data.c - the PFS descriptor of a file: opened, shared, kept, dropped; and reading by it.
 *
 * One descriptor per struct file, shared by all its open handles and by the flush: pread and pwrite
 * need no position.  Calls pin it (pfs_pins), so that nobody closes it under them; a writable one
 * replaces one that can only read by dup3, which keeps the number valid for calls that are under
 * way.
 *
 * When the last handle closes, a dirty file keeps its descriptor: a file without owner-write
 * permission could not be opened for writing again, and a renamed one not found.  Kept ones are in
 * a list, oldest first, at most a quarter of RLIMIT_NOFILE; beyond, the oldest are closed and made
 * anew by path when they are flushed.
 *
 * Locks: f->lock for the file's fields, kept.lock (RANK_PFS, inside) for the list.  A kept file is
 * referenced.
 */
#include "placement/pfs_int.h"

#include "placement/store.h"
#include "transport/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    struct lock lock;
    struct file *first, **last;
    unsigned n;
} kept = {.last = &kept.first};
static pthread_once_t kept_once = PTHREAD_ONCE_INIT;

static void kept_init(void)
{
    lock_init(&kept.lock, RANK_PFS);
}

/* ---- pins ---- */

int pfs_pin(struct file *f, bool write, int *fd)
{
    int err = -ENOENT;
    lock_take(&f->lock);
    if (f->pfs_fd >= 0 && (!write || f->pfs_fd_writable)) {
        f->pfs_pins++;
        *fd = f->pfs_fd;
        err = 0;
    }
    lock_drop(&f->lock);
    return err;
}

/* Takes the descriptor out, f->lock held; the caller closes it without the lock. */
static int take_fd(struct file *f)
{
    int fd = f->pfs_fd;
    f->pfs_fd = -1;
    f->pfs_fd_writable = f->pfs_drop_wanted = false;
    return fd;
}

static void close_fd(int fd)
{
    if (fd < 0)
        return;
    uint64_t ticket = pfs_call_begin();
    close(fd);
    pfs_call_end(ticket);
}

void pfs_unpin(struct file *f)
{
    int fd = -1;
    lock_take(&f->lock);
    if (!--f->pfs_pins && f->pfs_drop_wanted)
        fd = take_fd(f);
    lock_drop(&f->lock);
    close_fd(fd);
}

void pfs_install(struct file *f, int fd, bool writable)
{
    bool swap = false;
    lock_take(&f->lock);
    f->pfs_drop_wanted = false;
    if (f->pfs_fd < 0) {
        f->pfs_fd = fd;
        f->pfs_fd_writable = writable;
        fd = -1;
    } else if (writable && !f->pfs_fd_writable) {
        f->pfs_pins++;
        swap = true;
    }
    int old = f->pfs_fd;
    lock_drop(&f->lock);
    if (swap) {
        /* Calls under way keep the old open file until they return; closing it may wait for the
         * PFS. */
        if (dup3(fd, old, O_CLOEXEC) < 0)
            die("dup3: %s", strerror(errno));
        lock_take(&f->lock);
        f->pfs_fd_writable = true;
        lock_drop(&f->lock);
        pfs_unpin(f);
    }
    close_fd(fd);
}

/* ---- kept descriptors ---- */

static unsigned the_budget;
static pthread_once_t budget_once = PTHREAD_ONCE_INIT;

static void find_budget(void)
{
    struct rlimit r;
    bool limited = !getrlimit(RLIMIT_NOFILE, &r) && r.rlim_cur != RLIM_INFINITY;
    the_budget = 1u << 18;
    if (limited)
        the_budget = (unsigned)MIN(r.rlim_cur / 4, (rlim_t)the_budget);
}

/* The limit is raised once, before the first file is opened. */
static unsigned budget(void)
{
    pthread_once(&budget_once, find_budget);
    return the_budget;
}

static void list_remove(struct file *f)
{
    *f->kept_prev = f->kept_next;
    if (f->kept_next)
        f->kept_next->kept_prev = f->kept_prev;
    else
        kept.last = f->kept_prev;
    f->kept_next = NULL;
    f->kept_prev = NULL;
    kept.n--;
}

/* Takes f off the list: true if it was on it; its reference is the caller's now. */
static bool unkeep(struct file *f)
{
    pthread_once(&kept_once, kept_init);
    lock_take(&kept.lock);
    bool was = f->kept_prev != NULL;
    if (was)
        list_remove(f);
    lock_drop(&kept.lock);
    return was;
}

/* Closes f's descriptor unless somebody has the file open again. */
static void close_if_unused(struct file *f)
{
    int fd = -1;
    lock_take(&f->lock);
    if (!f->opens && f->pfs_fd >= 0) {
        if (f->pfs_pins)
            f->pfs_drop_wanted = true;
        else
            fd = take_fd(f);
    }
    lock_drop(&f->lock);
    close_fd(fd);
}

void pfs_keep(struct file *f)
{
    pthread_once(&kept_once, kept_init);
    struct file *over = NULL;
    file_ref(f);
    bool on = false;
    lock_take(&f->lock);
    lock_take(&kept.lock);
    if (!f->opens && f->pfs_fd >= 0 && !f->kept_prev) {
        f->kept_next = NULL;
        f->kept_prev = kept.last;
        *kept.last = f;
        kept.last = &f->kept_next;
        kept.n++;
        on = true;
        if (kept.n > budget()) {
            over = kept.first;
            list_remove(over);
        }
    }
    lock_drop(&kept.lock);
    lock_drop(&f->lock);
    if (!on)
        file_put(f);
    if (over) {
        close_if_unused(over);
        file_put(over);
    }
}

void pfs_drop(struct file *f)
{
    bool was_kept = unkeep(f);
    close_if_unused(f);
    if (was_kept)
        file_put(f);
}

/* ---- opening ---- */

int pfs_find_path(struct fid fid, const char *path, int *fd, struct statx *stx)
{
    if (!pfs_path_ok(path))
        return -ESTALE;
    int at = pfs_open_beneath(pfs_root_fd(), path, O_PATH, 0);
    if (at == -ENOTDIR || at == -ELOOP)
        return -ENOENT;
    if (at < 0)
        return at;
    int err = pfs_statx_fd(at, stx);
    if (!err && (!S_ISREG(stx->stx_mode) || !fid_eq(fid_of(stx), fid)))
        err = -ESTALE;
    if (err)
        close(at);
    else
        *fd = at;
    return err;
}

/* Found first, opened then: opening what a path leads to now could wait (a FIFO) or do something (a
 * device). */
static int open_path_once(struct fid fid, const char *path, int flags, int *fd, struct statx *stx)
{
    int at;
    int err = pfs_find_path(fid, path, &at, stx);
    if (err)
        return err;
    int got = pfs_reopen(at, flags);
    close(at);
    if (got < 0)
        return got;
    posix_fadvise(got, 0, 0, POSIX_FADV_RANDOM);
    *fd = got;
    return 0;
}

int pfs_open_path(struct fid fid, const char *path, int flags, int *fd, struct statx *stx)
{
    int err = open_path_once(fid, path, flags, fd, stx);
    return err == -ESTALE ? open_path_once(fid, path, flags, fd, stx) : err;
}

static void count_open(struct file *f)
{
    lock_take(&f->lock);
    f->opens++;
    f->pfs_drop_wanted = false;
    lock_drop(&f->lock);
    if (unkeep(f))
        file_put(f);
}

void pfs_adopt_fd(struct file *f, int fd, bool writable)
{
    count_open(f);
    pfs_install(f, fd, writable);
}

/* Opens what the node's descriptor refers to, as the caller: his permissions on the file are
 * checked again. */
static int open_node(struct pfs_node *n, bool write, const struct cred *c, int *fd)
{
    struct pfs_hold h;
    int err = pfs_hold(n, &h);
    if (err)
        return err;
    err = pfs_cred_take(c);
    if (!err) {
        int got = pfs_reopen(h.fd, write ? O_RDWR : O_RDONLY);
        if (got == -EACCES && write)
            got = pfs_reopen(h.fd, O_WRONLY);
        pfs_cred_back(c);
        err = got < 0 ? got : 0;
        *fd = got;
    }
    pfs_unhold(&h);
    if (!err)
        posix_fadvise(*fd, 0, 0, POSIX_FADV_RANDOM);
    return err;
}

/* A descriptor that does it already is used: the kernel has checked the permissions of this open.
 */
static bool has_fd(struct file *f, bool write)
{
    lock_take(&f->lock);
    bool has = f->pfs_fd >= 0 && (!write || f->pfs_fd_writable);
    lock_drop(&f->lock);
    return has;
}

static int open_fresh(struct file *f, struct pfs_node *n, bool write, const struct cred *c)
{
    int fd;
    int err = open_node(n, write, c, &fd);
    if (err == -ESTALE)
        err = open_node(n, write, c, &fd);
    if (err)
        return err;
    struct fid got;
    err = fid_of_fd(fd, &got);
    if (!err && !fid_eq(got, f->fid))
        err = -ESTALE;
    if (err)
        close_fd(fd);
    else
        pfs_install(f, fd, write);
    return err;
}

void pfs_open_known(struct file *f)
{
    count_open(f);
}

bool pfs_hold_number(struct file *f)
{
    int fd;
    return !pfs_pin(f, false, &fd);
}

void pfs_unhold_number(struct file *f)
{
    pfs_unpin(f);
}

bool pfs_has_descriptor(struct file *f)
{
    return has_fd(f, false);
}

static void note_seen(struct file *f, const struct version *v)
{
    lock_take(&f->lock);
    f->pfs_seen = *v;
    lock_drop(&f->lock);
}

static bool is_seen(struct file *f, const struct version *v)
{
    lock_take(&f->lock);
    bool seen = version_eq(&f->pfs_seen, v);
    lock_drop(&f->lock);
    return seen;
}

static int open_by_path(struct file *f)
{
    struct statx stx;
    int fd;
    char *path = file_path(f);
    int err = pfs_open_path(f->fid, path, O_RDONLY, &fd, &stx);
    free(path);
    if (err)
        return err;
    struct version v = version_of(&stx);
    note_seen(f, &v);
    pfs_install(f, fd, false);
    return 0;
}

int pfs_open_late(struct file *f, struct pfs_node *n)
{
    if (has_fd(f, false))
        return 0;
    return n ? open_fresh(f, n, false, NULL) : open_by_path(f);
}

static bool is_unlinked(struct file *f)
{
    lock_take(&f->lock);
    bool unlinked = f->unlinked;
    lock_drop(&f->lock);
    return unlinked;
}

int pfs_open_file(struct file *f, struct pfs_node *n, bool write, const struct cred *c,
                  struct statx *stx)
{
    count_open(f); /* first: what is there stays */
    int err = 0;
    if (c || !has_fd(f, write)) {
        err = open_fresh(f, n, write, c);
        if (err == -ESTALE && has_fd(f, write)) /* unlinked, and still open */
            err = 0;
    }
    if (!err)
        err = pfs_file_stat(f, stx);
    if (!err && stx->stx_nlink && is_unlinked(f))
        store_set_reborn(f);
    if (err)
        pfs_release(f);
    return err;
}

static bool is_dirty(struct file *f)
{
    struct file_info info;
    store_info(f, &info);
    return info.dirty;
}

void pfs_release(struct file *f)
{
    lock_take(&f->lock);
    bool last = !--f->opens;
    bool unlinked = f->unlinked;
    lock_drop(&f->lock);
    if (!last)
        return;
    if (!unlinked && is_dirty(f))
        pfs_keep(f);
    else
        pfs_drop(f);
}

/* ---- stat ---- */

static int stat_by_path(struct file *f, struct statx *stx)
{
    char *path = file_path(f);
    if (!path)
        return -ENOENT;
    int fd;
    int err = pfs_find_path(f->fid, path, &fd, stx);
    if (!err)
        close(fd);
    free(path);
    return err;
}

static int stat_file(struct file *f, struct statx *stx)
{
    int fd;
    if (pfs_pin(f, false, &fd) == 0) {
        int err = pfs_statx_fd(fd, stx);
        pfs_unpin(f);
        if (err != -ESTALE)
            return err;
    }
    return stat_by_path(f, stx);
}

int pfs_file_stat(struct file *f, struct statx *stx)
{
    int err = stat_file(f, stx);
    if (err)
        return err;
    struct version v = version_of(stx);
    note_seen(f, &v);
    return 0;
}

/* ---- reading ---- */

int pfs_read_full(int fd, void *buf, size_t len, uint64_t off, size_t *got)
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
    /* The store keeps what was read: a second copy in the PFS client's cache would be waste. */
    posix_fadvise(fd, (off_t)off, (off_t)at, POSIX_FADV_DONTNEED);
    count(pfs_read_bytes, at);
    *got = at;
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

/* The look after the read tells that the bytes are of *v or of nothing between: ctime only grows.
 * The one before makes a PFS client drop the pages that it may have of an older version; so it is
 * needed once for each version. */
int pfs_read_version(int fd, uint64_t index, bool seen, struct version *v, void *buf, size_t *len,
                     bool *racy)
{
    struct version now = *v;
    int err = seen ? 0 : version_now(fd, &now);
    if (err)
        return err;
    *racy = version_racy(v, real_ns() + session_clock_offset_ns());
    size_t chunk = store_chunk_size(), want = 0, got = 0;
    uint64_t off = index * chunk;
    if (version_eq(&now, v)) {
        want = off < v->size ? (size_t)MIN(chunk, v->size - off) : 0;
        err = pfs_read_full(fd, buf, want, off, &got);
        if (!err)
            err = version_now(fd, &now);
    }
    if (err)
        return err;
    if (!version_eq(&now, v)) {
        *v = now;
        return -ESTALE;
    }
    *len = got;
    return got == want ? 0
                       : -EIO; /* shorter than it says it is, and unchanged: the PFS is broken */
}

int pfs_read_chunk(struct file *f, uint64_t index, struct version *v, void *buf, size_t *len,
                   bool *racy)
{
    int fd;
    if (pfs_pin(f, false, &fd) == 0) {
        struct version want = *v;
        int err = pfs_read_version(fd, index, is_seen(f, v), v, buf, len, racy);
        pfs_unpin(f);
        if (!err)
            note_seen(f, v);
        /* EBADF: it can only write.  ESTALE without a new version: the PFS has forgotten the
         * descriptor. */
        if (err != -EBADF && !(err == -ESTALE && version_eq(&want, v)))
            return err;
    }
    char *path = file_path(f);
    if (!path)
        return -ESTALE;
    int err = pfs_read_chunk_at(f->fid, path, index, v, buf, len, racy);
    free(path);
    return err;
}

static int read_by_path(struct file *f, void *buf, size_t len, uint64_t off, size_t *got)
{
    char *path = file_path(f);
    if (!path)
        return -ENOENT;
    struct statx stx;
    int fd;
    int err = pfs_open_path(f->fid, path, O_RDONLY, &fd, &stx);
    free(path);
    if (err)
        return err;
    err = pfs_read_full(fd, buf, len, off, got);
    close_fd(fd);
    return err;
}

int pfs_read(struct file *f, void *buf, size_t len, uint64_t off, size_t *got)
{
    int fd;
    if (pfs_pin(f, false, &fd) == 0) {
        int err = pfs_read_full(fd, buf, len, off, got);
        pfs_unpin(f);
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
    if (pfs_pin(f, false, &fd) == 0) {
        int err = seek_fd(fd, off, hole, out);
        pfs_unpin(f);
        return err;
    }
    char *path = file_path(f);
    if (!path)
        return -ENOENT;
    struct statx stx;
    int err = pfs_open_path(f->fid, path, O_RDONLY, &fd, &stx);
    free(path);
    if (err)
        return err;
    err = seek_fd(fd, off, hole, out);
    close_fd(fd);
    return err;
}
