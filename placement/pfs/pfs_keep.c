/* pfs_keep.c - the PFS descriptor of a file: shared, kept, dropped.
 *
 * One descriptor per file, shared by all its open handles and by the flush: pread and pwrite
 * need no position.  Calls borrow it, so that no other thread closes it meanwhile; a writable one
 * replaces one that can only read by dup3, which keeps the number valid for calls that are under
 * way.
 *
 * When the last handle closes, a dirty file keeps its descriptor: a file without owner-write permission could
 * not be opened for writing again, and a renamed one would not be found.  So does a file without a name whose
 * claim stays: other nodes that have it open may be counted here from now on.  Kept descriptors are in a list,
 * oldest first, at most a quarter of RLIMIT_NOFILE.  Beyond that, the oldest are closed, and opened again by
 * path when they are flushed.
 *
 * Locks: the part's own for its fields, kept.lock (RANK_PFS, inside) for the list.  A kept file is
 * referenced.
 */
#include "placement/pfs/pfs.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_file.h"
#include "placement/store/store_read.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static struct {
    struct lock lock;
    struct pfs_file *first, **last;
    unsigned n;
} kept = {.last = &kept.first};
static pthread_once_t kept_once = PTHREAD_ONCE_INIT;

static void kept_init(void)
{
    lock_init(&kept.lock, RANK_PFS);
}

/* ---- borrowing ---- */

int pfs_borrow_fd(struct file *f, bool write, int *fd)
{
    struct pfs_file *p = pfs_if(f);
    int err = -ENOENT;
    if (!p)
        return err;
    lock_take(&p->lock);
    if (p->fd >= 0 && (!write || p->writable)) {
        p->borrowed++;
        *fd = p->fd;
        err = 0;
    }
    lock_drop(&p->lock);
    return err;
}

/* Takes the descriptor out, with the lock; the caller closes it without. */
static int take_fd(struct pfs_file *p)
{
    int fd = p->fd;
    p->fd = -1;
    p->writable = p->drop_wanted = false;
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

void pfs_return_fd(struct file *f)
{
    struct pfs_file *p = pfs_of(f);
    int fd = -1;
    lock_take(&p->lock);
    if (!--p->borrowed && p->drop_wanted)
        fd = take_fd(p);
    lock_drop(&p->lock);
    pfs_close_fd(fd);
}

void pfs_install(struct file *f, int fd, bool writable)
{
    struct pfs_file *p = pfs_of(f);
    bool swap = false;
    lock_take(&p->lock);
    p->drop_wanted = false;
    if (p->fd < 0) {
        p->fd = fd;
        p->writable = writable;
        fd = -1;
    } else if (writable && !p->writable) {
        p->borrowed++;
        swap = true;
    }
    int old = p->fd;
    lock_drop(&p->lock);
    if (swap) {
        /* Calls in progress use the old open file until they return; closing it may wait for the
         * PFS. */
        if (dup3(fd, old, O_CLOEXEC) < 0)
            die("dup3: %s", strerror(errno));
        lock_take(&p->lock);
        p->writable = true;
        lock_drop(&p->lock);
        pfs_return_fd(f);
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

static void list_remove(struct pfs_file *p)
{
    *p->kept_prev = p->kept_next;
    if (p->kept_next)
        p->kept_next->kept_prev = p->kept_prev;
    else
        kept.last = p->kept_prev;
    p->kept_next = NULL;
    p->kept_prev = NULL;
    kept.n--;
}

static void list_add(struct pfs_file *p)
{
    p->kept_next = NULL;
    p->kept_prev = kept.last;
    *kept.last = p;
    kept.last = &p->kept_next;
    kept.n++;
}

bool pfs_unkeep(struct file *f)
{
    struct pfs_file *p = pfs_of(f);
    pthread_once(&kept_once, kept_init);
    lock_take(&kept.lock);
    bool was = p->kept_prev != NULL;
    if (was)
        list_remove(p);
    lock_drop(&kept.lock);
    return was;
}

/* Closes the descriptor unless the file is open again. */
static void close_if_unused(struct pfs_file *p)
{
    int fd = -1;
    lock_take(&p->lock);
    if (!p->opens && p->fd >= 0) {
        if (p->borrowed)
            p->drop_wanted = true;
        else
            fd = take_fd(p);
    }
    lock_drop(&p->lock);
    pfs_close_fd(fd);
}

void pfs_keep(struct file *f)
{
    struct pfs_file *p = pfs_of(f), *over = NULL;
    pthread_once(&kept_once, kept_init);
    file_ref(f);
    lock_take(&p->lock);
    lock_take(&kept.lock);
    bool on = !p->opens && p->fd >= 0 && !p->kept_prev;
    if (on)
        list_add(p);
    if (on && kept.n > budget()) {
        over = kept.first;
        list_remove(over);
    }
    lock_drop(&kept.lock);
    lock_drop(&p->lock);
    if (!on)
        file_put(f);
    if (over) {
        close_if_unused(over);
        file_put(over->f);
    }
}

bool pfs_keeps_more(void)
{
    pthread_once(&kept_once, kept_init);
    lock_take(&kept.lock);
    bool room = kept.n < budget();
    lock_drop(&kept.lock);
    return room;
}

/* Closes it and takes it off the list; not if the file is open, or was since it had been opened *turns times.
 */
static void drop(struct pfs_file *p, const unsigned *turns)
{
    int fd = -1;
    bool was_kept = false;
    lock_take(&p->lock);
    if (!p->opens && (!turns || *turns == p->turns)) {
        was_kept = pfs_unkeep(p->f);
        if (p->borrowed)
            p->drop_wanted = true;
        else
            fd = take_fd(p);
    }
    lock_drop(&p->lock);
    pfs_close_fd(fd);
    if (was_kept)
        file_put(p->f);
}

void pfs_drop(struct file *f)
{
    struct pfs_file *p = pfs_if(f);
    if (p)
        drop(p, NULL);
}

bool pfs_is_needed(struct file *f)
{
    struct file_info info;
    store_info(f, &info);
    return file_is_unlinked(f) ? info.claimed : info.dirty; /* claim_give.c drops it with the claim */
}

/* A write needs an open.  So if there was none since before the file was seen to be clean, it still is. */
void pfs_drop_clean(struct file *f)
{
    struct pfs_file *p = pfs_if(f);
    if (!p)
        return;
    lock_take(&p->lock);
    unsigned turns = p->turns;
    lock_drop(&p->lock);
    if (!pfs_is_needed(f))
        drop(p, &turns);
}

/* ---- the part ---- */

static void part_begin(struct file *f, struct file_part *part)
{
    struct pfs_file *p = (struct pfs_file *)part;
    lock_init(&p->lock, RANK_PFS_FILE);
    p->f = f;
    p->fd = -1;
}

/* A kept file, an open one, and one whose descriptor is borrowed are referenced: no other thread uses the
 * part. */
static void part_unused(struct file *f, struct file_part *part)
{
    struct pfs_file *p = (struct pfs_file *)part;
    (void)f;
    if (p->fd >= 0)
        pfs_close_fd(take_fd(p));
}

static void part_end(struct file_part *part)
{
    lock_destroy(&((struct pfs_file *)part)->lock);
}

const struct file_part_ops pfs_file_ops = {
    .size = sizeof(struct pfs_file), .begin = part_begin, .unused = part_unused, .end = part_end};
