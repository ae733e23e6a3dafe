/* pfs_keep.c - the PFS descriptor of a file: shared, kept, dropped.
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
#include "placement/pfs/pfs_int.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
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

void pfs_close_fd(int fd)
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
    pfs_close_fd(fd);
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
    pfs_close_fd(fd);
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

bool pfs_unkeep(struct file *f)
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
    pfs_close_fd(fd);
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
    bool was_kept = pfs_unkeep(f);
    close_if_unused(f);
    if (was_kept)
        file_put(f);
}
