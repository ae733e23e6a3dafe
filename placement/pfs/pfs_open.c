/* pfs_open.c - opens a file's PFS descriptor, by name or by path, with the permission checks of
 * the PFS; and gets its fresh attributes.
 *
 * The file at a path is looked at before it is opened, and counts only if it is the one that was
 * meant (fid).  pfs_keep.c decides how long the descriptor stays.
 */
#include "placement/pfs/pfs.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_file.h"
#include "placement/pfs/pfs_int.h"
#include "placement/pfs/pfs_moves.h"
#include "placement/pfs/pfs_names.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- by path ---- */

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

/* ---- by the log of moves ---- */

/* 0: one of the guesses led to it. */
static int try_guesses(struct file *f, const char *path, uint64_t since, int *fd, struct statx *stx)
{
    int err = -ENOENT;
    char *guess;
    for (size_t n = 0; err && (guess = moves_guess(path, fid_real(f->fid), since, n)); n++) {
        err = pfs_find_path(fid_real(f->fid), guess, fd, stx);
        if (!err)
            file_set_path(f, guess);
        free(guess);
    }
    return err;
}

static bool owes_bytes(struct file *f)
{
    struct file_info info;
    store_info(f, &info);
    return info.dirty || info.claimed;
}

int pfs_find_file(struct file *f, int *fd, struct statx *stx)
{
    char *path = file_path(f);
    int err = pfs_find_path(fid_real(f->fid), path, fd, stx);
    if ((err == -ENOENT || err == -ESTALE) && owes_bytes(f)) {
        moves_read();
        if (!try_guesses(f, path, 0, fd, stx))
            err = 0;
    }
    free(path);
    return err;
}

void pfs_pass_moves(struct file **files, size_t n)
{
    static _Atomic uint64_t passed, passed_in;
    uint64_t view;
    if (!moves_are_shared(&view) && view == passed_in)
        return; /* nothing is new */
    uint64_t since = passed, now = moves_read();
    for (size_t i = 0; i < n && now > since; i++) {
        char *path = file_path(files[i]);
        struct statx stx;
        int fd;
        if (!try_guesses(files[i], path, since, &fd, &stx))
            close(fd);
        free(path);
    }
    passed = now;
    passed_in = view;
}

/* ---- opening ---- */

/* It is found first, and then opened: opening whatever is at a path could wait (a FIFO) or do something (a
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

int pfs_open_hint(struct file *f, int flags, int *fd, struct statx *stx)
{
    char *path = file_path(f);
    int at, err = pfs_open_path(fid_real(f->fid), path, flags, fd, stx);
    free(path);
    if (err != -ENOENT && err != -ESTALE)
        return err;
    err = pfs_find_file(f, &at, stx);
    if (err)
        return err;
    close(at);
    path = file_path(f);
    err = pfs_open_path(fid_real(f->fid), path, flags, fd, stx);
    free(path);
    return err;
}

static void note_seen(struct file *f, const struct statx *stx)
{
    struct version v = version_of(stx);
    pfs_note_seen(f, &v);
}

static void count_open(struct file *f)
{
    struct pfs_file *p = pfs_of(f);
    lock_take(&p->lock);
    p->opens++;
    p->turns++;
    p->drop_wanted = false;
    lock_drop(&p->lock);
    if (pfs_unkeep(f))
        file_put(f);
}

bool pfs_open_ends(struct file *f)
{
    struct pfs_file *p = pfs_of(f);
    lock_take(&p->lock);
    bool ends = !p->opens;
    p->ended |= ends;
    lock_drop(&p->lock);
    return ends;
}

/* nlink: of the file that was opened.  A file that has a name may be a new one, with the number of the one
 * before.  -ESTALE: its bytes may be gone. */
static int check_ended(struct file *f, uint32_t nlink)
{
    struct pfs_file *p = pfs_of(f);
    lock_take(&p->lock);
    p->ended &= !nlink;
    bool ended = p->ended;
    lock_drop(&p->lock);
    return ended ? -ESTALE : 0;
}

void pfs_adopt_fd(struct file *f, int fd, bool writable)
{
    count_open(f);
    check_ended(f, 1);
    pfs_install(f, fd, writable);
}

static int check_fid(struct file *f, int fd, struct statx *stx)
{
    int err = pfs_statx_fd(fd, stx);
    return err ? err : fid_eq(fid_of(stx), fid_real(f->fid)) ? 0 : -ESTALE;
}

/* Opens the file of a descriptor, as the caller: the caller's permissions on the file are checked again. */
static int reopen_as(const struct cred *c, int at, bool write, int *fd)
{
    int err = pfs_cred_take(c);
    if (err)
        return err;
    int got = pfs_reopen(at, write ? O_RDWR : O_RDONLY);
    if (got == -EACCES && write)
        got = pfs_reopen(at, O_WRONLY);
    pfs_cred_back(c);
    if (got < 0)
        return got;
    posix_fadvise(got, 0, 0, POSIX_FADV_RANDOM);
    *fd = got;
    return 0;
}

/* Only a regular file: opening a FIFO could wait, and opening a device could do something. */
static int open_node(struct file *f, struct pfs_node *n, bool write, const struct cred *c, int *fd)
{
    struct pfs_reach h;
    int err = pfs_reach_file(n, &h);
    if (err)
        return err;
    err = reopen_as(c, h.fd, write, fd);
    struct statx stx;
    if (err && check_fid(f, h.fd, &stx) == -ESTALE)
        err = -ESTALE; /* another file's error does not count */
    pfs_leave(&h);
    return err;
}

/* Opens a file that is open and has no name, by its descriptor (/proc/self/fd, /dev/stdin).  -ESTALE: it has
 * a name, by which the caller may find it; unless the caller knows none (any). */
static int open_again(struct file *f, bool any, bool write, const struct cred *c, int *fd, struct statx *stx)
{
    int at;
    if (pfs_borrow_fd(f, false, &at))
        return -ESTALE;
    int err = pfs_statx_fd(at, stx);
    if (!err)
        err = stx->stx_nlink && !any ? -ESTALE : reopen_as(c, at, write, fd);
    pfs_return_fd(f);
    return err;
}

/* Uses a descriptor that is good enough, if there is one: the kernel has checked the permissions of this
 * open. */
static bool has_fd(struct file *f, bool write)
{
    struct pfs_file *p = pfs_if(f);
    if (!p)
        return false;
    lock_take(&p->lock);
    bool has = p->fd >= 0 && (!write || p->writable);
    lock_drop(&p->lock);
    return has;
}

/* *stx: what was opened looks like.  -ESTALE: the name leads elsewhere, or nowhere. */
static int open_by_name(struct file *f, struct pfs_node *n, bool write, const struct cred *c, int *fd,
                        struct statx *stx)
{
    int err = open_node(f, n, write, c, fd);
    if (err)
        return err;
    err = check_fid(f, *fd, stx);
    if (err)
        pfs_close_fd(*fd);
    return err;
}

static int open_fresh(struct file *f, struct pfs_node *n, bool write, const struct cred *c,
                      struct statx *stx)
{
    int fd;
    int err = n ? open_by_name(f, n, write, c, &fd, stx) : -ESTALE;
    if (err == -ESTALE && n)
        err = open_by_name(f, n, write, c, &fd, stx);
    if (err == -ESTALE)
        err = open_again(f, !n, write, c, &fd, stx);
    if (err)
        return err;
    note_seen(f, stx);
    pfs_install(f, fd, write);
    return 0;
}

void pfs_open_known(struct file *f)
{
    count_open(f);
}

bool pfs_keep_number(struct file *f)
{
    int fd;
    return !pfs_borrow_fd(f, false, &fd);
}

void pfs_unhold_number(struct file *f)
{
    pfs_return_fd(f);
}

bool pfs_has_descriptor(struct file *f)
{
    return has_fd(f, false);
}

bool pfs_is_open(struct file *f)
{
    struct pfs_file *p = pfs_if(f);
    return p && p->opens > 0;
}

static int open_by_path(struct file *f)
{
    struct statx stx;
    int fd;
    int err = pfs_open_hint(f, O_RDONLY, &fd, &stx);
    if (err)
        return err;
    note_seen(f, &stx);
    pfs_install(f, fd, false);
    return 0;
}

int pfs_open_late(struct file *f, struct pfs_node *n)
{
    struct statx stx;
    if (has_fd(f, false))
        return 0;
    return n ? open_fresh(f, n, false, NULL, &stx) : open_by_path(f);
}

int pfs_open_file(struct file *f, struct pfs_node *n, bool write, const struct cred *c,
                  struct statx *stx)
{
    count_open(f); /* first, so that a descriptor that is there stays */
    int err = c || !has_fd(f, write) ? open_fresh(f, n, write, c, stx) : pfs_file_stat(f, stx);
    if (err == -ESTALE && has_fd(f, write)) /* unlinked, and still open */
        err = pfs_file_stat(f, stx);
    bool unlinked = !err && file_is_unlinked(f);
    if (unlinked && stx->stx_nlink) /* that is noted after the removal: what was seen may be from before it */
        err = pfs_file_stat(f, stx);
    if (!err)
        err = check_ended(f, stx->stx_nlink);
    if (!err && unlinked && stx->stx_nlink)
        err = store_set_reborn(f);
    if (err)
        pfs_release(f);
    return err;
}

void pfs_release(struct file *f)
{
    struct pfs_file *p = pfs_of(f);
    lock_take(&p->lock);
    bool last = !--p->opens;
    lock_drop(&p->lock);
    if (!last)
        return;
    if (pfs_is_needed(f))
        pfs_keep(f);
    else
        pfs_drop(f);
}

/* ---- stat ---- */

static int stat_by_path(struct file *f, struct statx *stx)
{
    int fd;
    int err = pfs_find_file(f, &fd, stx);
    if (!err)
        close(fd);
    return err;
}

static int stat_file(struct file *f, struct statx *stx)
{
    int fd;
    if (pfs_borrow_fd(f, false, &fd) == 0) {
        int err = pfs_statx_fd(fd, stx);
        pfs_return_fd(f);
        if (err != -ESTALE)
            return err;
    }
    return stat_by_path(f, stx);
}

int pfs_file_stat(struct file *f, struct statx *stx)
{
    int err = stat_file(f, stx);
    if (!err) {
        note_seen(f, stx);
        file_saw_links(f, stx->stx_nlink);
    }
    return err;
}

bool pfs_keep_found(struct file *f)
{
    struct statx stx;
    int fd;
    if (!pfs_keeps_more())
        return false;
    bool write = !pfs_open_hint(f, O_RDWR, &fd, &stx);
    if (write || !pfs_open_hint(f, O_RDONLY, &fd, &stx)) {
        pfs_install(f, fd, write);
        pfs_keep(f);
    }
    return true;
}

bool pfs_has_a_name(struct file *f)
{
    struct statx stx;
    return !pfs_file_stat(f, &stx) && stx.stx_nlink > 0;
}
