/* early.c - a file that is published by rename again and again is found whole by each open.
 *
 * The kernel opens in two steps: it looks the name up, and opens the file that it found.  In between, the
 * file may be replaced, on any node, and then there is nothing left to open: ESTALE.  The kernel tries both
 * steps once more.  If the file were replaced between them again, the application would get ESTALE for a name
 * that has never been missing.
 *
 *     open of an old file -> ESTALE       its directory is noted
 *     look-up in that directory           opens what it finds; looks again if that is gone already
 *     open of what was found              finds the file open, like an open by a descriptor
 *
 * The kernel may use such a name only once without looking it up again: so an open that comes later finds
 * what another node has done to it since.  A file that was opened in advance, and not opened after that, is
 * closed a second later.
 */
#include "fs/early.h"

#include <stdlib.h>

#include "placement/pfs/pfs_node.h"
#include "transport/loop.h"

#define AGAIN_MS 1000 /* the kernel asks again at once */
#define FILES    64   /* more are not opened in advance */

struct early {
    struct early *next;
    const struct inode *inode; /* the handle has a reference */
    struct handle *handle;
    void (*close)(struct handle *h);
    uint64_t since_ms;
};

static struct {
    struct lock lock; /* RANK_LEAF: list and n */
    struct early *list;
    unsigned n;
    bool stopped;
    struct loop_timer *timer; /* network thread */
} early;

/* With the lock: takes those out that are of this inode (the first one only), or older than AGAIN_MS, or all.
 */
static struct early *take_out(const struct inode *i, bool all)
{
    struct early *out = NULL;
    uint64_t now = boot_ms();
    for (struct early **at = &early.list; *at && !(i && out);) {
        struct early *e = *at;
        bool take = i ? e->inode == i : all || now - e->since_ms >= AGAIN_MS;
        if (!take) {
            at = &e->next;
            continue;
        }
        *at = e->next;
        e->next = out;
        out = e;
        early.n--;
    }
    return out;
}

static void close_all(void *arg)
{
    for (struct early *e = arg, *next; e; e = next) {
        next = e->next;
        e->close(e->handle);
        free(e);
    }
}

static void on_timer(void *arg)
{
    (void)arg;
    lock_take(&early.lock);
    struct early *old = take_out(NULL, false);
    bool idle = !early.list;
    lock_drop(&early.lock);
    if (old)
        pool_submit(pool_waiters, close_all, old);
    if (idle)
        loop_timer_stop(early.timer);
}

static void arm(void *arg)
{
    (void)arg;
    if (!early.timer)
        early.timer = loop_timer_new(on_timer, NULL);
    loop_timer_set(early.timer, AGAIN_MS, AGAIN_MS);
}

void early_doubt(struct inode *i)
{
    struct pfs_node *parent = pfs_directory(i->node);
    struct inode *dir = parent ? inode_of_node(parent) : NULL;
    if (dir)
        dir->missed_ms = boot_ms();
    inode_put(dir);
    if (parent)
        pfs_unref(parent);
}

bool early_is_wanted(const struct inode *dir)
{
    return dir->missed_ms && boot_ms() - dir->missed_ms < AGAIN_MS;
}

void early_keep(struct inode *i, struct handle *h, void (*close)(struct handle *h))
{
    struct early *e = xmalloc(sizeof(*e));
    *e = (struct early){.inode = i, .handle = h, .close = close, .since_ms = boot_ms()};
    lock_take(&early.lock);
    bool room = early.n < FILES && !early.stopped, first = room && !early.n++;
    if (room) {
        e->next = early.list;
        early.list = e;
    }
    lock_drop(&early.lock);
    if (!room)
        close_all(e);
    if (first)
        loop_post(arm, NULL);
}

bool early_is_open(const struct inode *i)
{
    lock_take(&early.lock);
    const struct early *e = early.list;
    while (e && e->inode != i)
        e = e->next;
    lock_drop(&early.lock);
    return e;
}

void early_end(const struct inode *i)
{
    lock_take(&early.lock);
    struct early *e = early.n ? take_out(i, false) : NULL;
    lock_drop(&early.lock);
    close_all(e);
}

void early_start(void)
{
    lock_init(&early.lock, RANK_LEAF);
    early.stopped = false;
}

static void free_timer(void *arg)
{
    (void)arg;
    if (early.timer)
        loop_timer_free(early.timer);
    early.timer = NULL;
}

void early_stop(void)
{
    loop_call(free_timer, NULL);
    lock_take(&early.lock);
    early.stopped = true;
    struct early *all = take_out(NULL, true);
    lock_drop(&early.lock);
    close_all(all);
}
