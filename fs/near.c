/* near.c - a reader that has told its order finds the next files looked up: to open, read and close one of them asks nobody.
 *
 *   open of a hinted file -> placement/foresight says that there are others that will be opened soon, and are all here
 *       -> a job of pool_names looks them up, several at a time, below directories that the kernel knows
 *       -> each is remembered as after a look-up of the kernel's: its inode, its attributes, its name with the time of the look
 *   LOOKUP of one of these -> answered without the PFS, as after a look ahead (names.c); the open, as known (known.c)
 *
 * Nothing is told for longer than after a look-up, as all of it counts from the look.  So a file is looked at when its reader is
 * about to open it (foresight/next.c), not when it is fetched.
 *
 * The kernel may not know these files, and forgets them by itself if it does: so the HELD that were looked up last are kept here.
 */
#include "fs/near.h"

#include <stdlib.h>
#include <string.h>

#include "fs/attr_last.h"
#include "fs/attr_look.h"
#include "fs/looks.h"
#include "fs/names.h"
#include "fs/settings.h"
#include "placement/foresight/next.h"
#include "placement/pfs/pfs.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"
#include "transport/loop.h"

#define BATCH     64u
#define HELD      256u
#define SILENT_MS 200 /* the PFS may hang: no request waits for such a look */

struct batch {
    unsigned n;
    char *path[BATCH];
};

static struct {
    struct lock lock; /* RANK_LEAF: all below */
    pthread_cond_t ended;
    bool running, stopped;
    struct inode *held[HELD]; /* a ring: a look-up is counted of each */
    unsigned next;
} near;

/* ---- what is kept ---- */

static void let_go(struct inode *i)
{
    if (!i)
        return;
    i->near = false;
    inode_forget(i->nodeid, 1);
    inode_put(i);
}

/* Takes over the reference and the count. */
static void hold(struct inode *i)
{
    i->near = true;
    lock_take(&near.lock);
    struct inode **at = &near.held[near.next++ % HELD], *old = *at;
    *at = i;
    lock_drop(&near.lock);
    let_go(old);
}

/* ---- looks ---- */

/* Of path, which is cut there; referenced.  NULL: the kernel does not know all of the way. */
static struct inode *directory_of(char *path, char **name)
{
    struct inode *dir = inode_get(FUSE_ROOT_ID);
    *name = path;
    for (char *slash; dir && (slash = strchr(*name, '/')); *name = slash + 1) {
        *slash = 0;
        struct inode *child = inode_child(dir, *name);
        inode_put(dir);
        dir = child;
    }
    return dir;
}

/* Nothing is looked at that the kernel itself has seen a moment ago: it may not ask. */
static bool is_known(struct inode *dir, const char *name)
{
    uint64_t seen_ms, nodeid = pfs_child_tag(dir->node, name, &seen_ms);
    struct inode *i = nodeid ? inode_get(nodeid) : NULL;
    bool known = false;
    if (i) {
        lock_take(&i->lock);
        known = MIN(attr_left(seen_ms), attr_left(i->known.looked_ms)) > settings.attr_timeout / 2;
        lock_drop(&i->lock);
    }
    inode_put(i);
    return known;
}

static void look_in(struct inode *dir, const char *name)
{
    struct statx stx;
    struct stat st;
    struct belief b;
    unsigned moves = dir->moves;
    uint64_t looked_ms = boot_ms();
    count(looks_ahead, 1);
    if (pfs_lookup(dir->node, name, &stx) || !S_ISREG(stx.stx_mode) || moves != dir->moves)
        return; /* the application's own look tells it why */
    struct inode *i = names_found(dir, name, &stx);
    if (!attr_complete(i, &stx, looked_ms, &st, &b)) {
        attr_remember_look(i, &st, looked_ms);
        pfs_child_seen(dir->node, name, i->nodeid, looked_ms);
        dir->ahead_ms = looked_ms;
    }
    hold(i);
}

static void look(void *arg, unsigned k)
{
    const struct batch *b = arg;
    char *name;
    struct inode *dir = directory_of(b->path[k], &name);
    if (dir && !dir->fixed && pfs_waiting_ms() < SILENT_MS && !is_known(dir, name))
        look_in(dir, name);
    inode_put(dir);
}

static void begin(void *arg);

static void looked(void *arg)
{
    struct batch *b = arg;
    for (unsigned k = 0; k < b->n; k++)
        free(b->path[k]);
    free(b);
    pool_submit(pool_names, begin, NULL);
}

/* The next ones, or there are none.  Those that become due when this has looked are begun by the next open. */
static void begin(void *arg)
{
    (void)arg;
    struct batch *b = xcalloc(1, sizeof(*b));
    lock_take(&near.lock);
    bool stopped = near.stopped;
    lock_drop(&near.lock);
    b->n = stopped ? 0 : next_give(b->path, BATCH);
    if (b->n) {
        looks_run(b->n, look, looked, b);
        return;
    }
    free(b);
    lock_take(&near.lock);
    near.running = false;
    pthread_cond_broadcast(&near.ended);
    lock_drop(&near.lock);
}

static void on_due(void)
{
    lock_take(&near.lock);
    bool begins = !near.running && !near.stopped;
    near.running |= begins;
    lock_drop(&near.lock);
    if (begins)
        pool_submit(pool_names, begin, NULL);
}

/* ---- start and end ---- */

void near_start(void)
{
    lock_init(&near.lock, RANK_LEAF);
    lock_cond_init(&near.ended);
    near.stopped = false;
    next_on_due(on_due, attr_timeout_ms() / 2);
}

void near_stop(void)
{
    next_on_due(NULL, 0);
    lock_take(&near.lock);
    near.stopped = true;
    while (near.running)
        lock_wait(&near.lock, &near.ended, 0);
    lock_drop(&near.lock);
    for (unsigned k = 0; k < HELD; k++)
        let_go(near.held[k]);
    memset(near.held, 0, sizeof(near.held));
    near.next = 0;
    pthread_cond_destroy(&near.ended);
    lock_destroy(&near.lock);
}
