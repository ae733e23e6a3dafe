/* pfs_mode.c - a file's mode while its data is written back.
 *
 * Writing back can change the mode of the PFS file in two ways.  u+w is added meanwhile if the owner
 * may not write.  And the PFS removes setuid and setgid when a user other than root writes.
 * Both must be undone at the end, but not the changes that the application itself makes meanwhile:
 *
 *   begin   saved = the mode now; raised: recorded in the store first, then u+w
 *   change  (chmod, chown, ACL, setuid stripped) saved = what the application wants now; no longer raised
 *   end     mode -> saved, in the bits that the write-back changed; the record is cleared
 *
 * These steps take turns per file: an entry has a busy flag while a thread works with
 * it.  Few files are written back at a time (one per writer), so a list is enough.
 */
#include "placement/pfs/pfs.h"

#include "placement/pfs/pfs_file.h"
#include "placement/pfs/pfs_int.h"
#include "placement/pfs/pfs_write.h"
#include "placement/store/store_copyout.h"
#include "transport/lock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SPECIAL (S_ISUID | S_ISGID)

struct mode_entry {
    struct mode_entry *next;
    struct fid fid;
    unsigned users; /* the write-back, and threads that are in or wait for take..drop */
    bool busy;
    struct file *f; /* in write-back; NULL otherwise */
    mode_t saved;   /* 07777, valid while f is set */
    bool raised;
};

static struct {
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t changed;
    struct mode_entry *first;
    _Atomic unsigned raised; /* how many: 0 keeps stat cheap */
} modes;

static pthread_once_t modes_once = PTHREAD_ONCE_INIT;

static void modes_init(void)
{
    lock_init(&modes.lock, RANK_LEAF);
    lock_cond_init(&modes.changed);
}

static struct mode_entry *find(struct fid fid)
{
    for (struct mode_entry *e = modes.first; e; e = e->next)
        if (fid_eq(e->fid, fid))
            return e;
    return NULL;
}

struct mode_entry *pfs_mode_take(struct fid fid)
{
    pthread_once(&modes_once, modes_init);
    lock_take(&modes.lock);
    struct mode_entry *e = find(fid);
    if (!e) {
        e = xcalloc(1, sizeof(*e));
        e->fid = fid;
        e->next = modes.first;
        modes.first = e;
    }
    e->users++;
    while (e->busy)
        lock_wait(&modes.lock, &modes.changed, 0);
    e->busy = true;
    lock_drop(&modes.lock);
    return e;
}

static void drop(struct mode_entry *e, unsigned users)
{
    lock_take(&modes.lock);
    e->busy = false;
    e->users -= users;
    pthread_cond_broadcast(&modes.changed);
    bool last = !e->users;
    if (last) {
        struct mode_entry **p = &modes.first;
        while (*p != e)
            p = &(*p)->next;
        *p = e->next;
    }
    lock_drop(&modes.lock);
    if (last)
        free(e);
}

void pfs_mode_drop(struct mode_entry *e)
{
    drop(e, 1);
}

/* The entry is busy with this thread: saved and raised are written under the lock for
 * pfs_mode_patch only. */
static void set_saved(struct mode_entry *e, mode_t saved, bool raised)
{
    lock_take(&modes.lock);
    e->saved = saved;
    if (raised != e->raised)
        atomic_fetch_add(&modes.raised, raised ? 1 : (unsigned)-1);
    e->raised = raised;
    lock_drop(&modes.lock);
}

static int mode_of(int fd, mode_t *out)
{
    struct stat st; /* not pfs_statx_fd, which returns the mode that the application knows */
    uint64_t ticket = pfs_call_begin();
    int err = fstat(fd, &st) < 0 ? -errno : 0;
    pfs_call_end(ticket);
    *out = err ? 0 : st.st_mode & 07777;
    return err;
}

static int set_mode(int fd, mode_t mode)
{
    char proc[PROC_FD];
    uint64_t ticket = pfs_call_begin();
    count(pfs_name_ops, 1);
    int err = chmod(pfs_proc_fd(fd, proc), mode) < 0 ? -errno : 0; /* fd may be O_PATH */
    pfs_call_end(ticket);
    return err;
}

void pfs_mode_changed(struct mode_entry *e, int fd, bool all)
{
    mode_t now;
    if (!e->f || mode_of(fd, &now))
        return;
    if (all) {
        bool was_raised = e->raised;
        set_saved(e, now, false);
        if (was_raised)
            store_set_raised_mode(e->f, STORE_NO_MODE);
    } else {
        set_saved(e, e->saved & (~(mode_t)SPECIAL | now), e->raised);
        if (e->raised)
            store_set_raised_mode(e->f, e->saved);
    }
}

void pfs_mode_patch(struct statx *stx)
{
    if (!atomic_load_explicit(&modes.raised, memory_order_relaxed) || !S_ISREG(stx->stx_mode))
        return;
    struct fid fid = fid_of(stx);
    lock_take(&modes.lock);
    struct mode_entry *e = find(fid);
    if (e && e->raised)
        stx->stx_mode = (uint16_t)((stx->stx_mode & ~(mode_t)07777) | e->saved);
    lock_drop(&modes.lock);
}

static int raise_mode(struct mode_entry *e, struct file *f, int fd)
{
    store_set_raised_mode(
        f, e->saved); /* before it is done: a crash between the two restores the same mode */
    set_saved(e, e->saved, true);
    int err = set_mode(fd, e->saved | S_IWUSR);
    if (err) {
        set_saved(e, e->saved, false);
        store_set_raised_mode(f, STORE_NO_MODE);
    }
    return err;
}

/* First call: the write-back begins; a second one may only raise. */
int pfs_mode_begin(struct file *f, int fd, bool raise)
{
    struct mode_entry *e = pfs_mode_take(fid_real(f->fid));
    bool first = !e->f;
    int err = 0;
    if (first) {
        mode_t now;
        uint32_t left; /* by a flush or a daemon that could not restore the mode */
        err = mode_of(fd, &now);
        if (!err) {
            bool was_raised = store_raised_mode(f, &left) && now == ((mode_t)left | S_IWUSR);
            e->f = f;
            set_saved(e, was_raised ? (mode_t)left : now, was_raised);
        }
    }
    if (!err && raise && !e->raised)
        err = raise_mode(e, f, fd);
    if (err && first)
        e->f = NULL;
    drop(e, !err && first ? 0 : 1); /* the write-back itself still counts as a user */
    return err;
}

void pfs_mode_end(struct file *f, int fd)
{
    struct mode_entry *e = pfs_mode_take(fid_real(f->fid));
    if (e->f != f) { /* begin has failed */
        drop(e, 1);
        return;
    }
    mode_t now, want = e->saved;
    int err = mode_of(fd, &now);
    bool ours = e->raised ? (now | SPECIAL) == (want | S_IWUSR | SPECIAL)
                          : (now | SPECIAL) == (want | SPECIAL);
    if (!err && now != want && ours) /* else another node has changed it */
        err = set_mode(fd, want);
    if (err == -EPERM && (now | SPECIAL) == (want | SPECIAL)) /* another user's: writes drop them */
        err = 0;
    if (err) {
        char *path = file_path(f);
        log_warn("mode after the flush could not be restored to %04o (%s): %s", (unsigned)want,
                 strerror(-err), path);
        free(path);
    }
    /* A mode that could not be restored stays recorded: the next flush or start tries again. */
    if (e->raised && !err)
        store_set_raised_mode(f, STORE_NO_MODE);
    set_saved(e, want, false);
    e->f = NULL;
    drop(e, 2);
}

/* The recorded mode of a dead daemon. */
static int restore(struct file *f, const char *path, uint32_t mode)
{
    int fd;
    struct statx stx;
    int err = pfs_find_path(fid_real(f->fid), path, &fd, &stx);
    if (err)
        return err;
    mode_t now;
    err = mode_of(fd, &now);
    if (!err && now == ((mode_t)mode | S_IWUSR))
        err = set_mode(fd, (mode_t)mode);
    close(fd);
    return err;
}

int pfs_restore_mode(struct file *f)
{
    uint32_t mode;
    if (!store_raised_mode(f, &mode))
        return 0;
    char *path = file_path(f);
    int err = path ? restore(f, path, mode) : -ENOENT;
    if (!err || err == -ENOENT || err == -ESTALE) /* gone: nothing to restore */
        store_set_raised_mode(f, STORE_NO_MODE);
    free(path);
    return err;
}
