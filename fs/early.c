/* early.c - the kernel's second try at a name finds a file that can be opened, whatever happens to the name
 * meanwhile.
 *
 * The kernel opens in two steps: it looks the name up, and opens the file that it found.  In between, the
 * file may be replaced, on any node, and then there is nothing left to open: ESTALE.  The kernel tries both
 * steps once more.  If the file were replaced between them again, the application would get ESTALE for a
 * name that has never been missing.  So it is with each call by a name: before the open, the kernel may ask
 * for the attributes; and stat, chmod and truncate have two steps, too.
 *
 *     anything with an old file -> ESTALE  its directory is noted, and the task
 *     look-up in that directory, or by     opens what it finds; looks again if that is gone already
 *     that task
 *     open, or a stat, of what was found   finds the file open, like an open by a descriptor
 *
 * Nor may that open end with ESTALE because the file is open in a way that it does not go with
 * (fs/io_mode.c), or because another of its names has changed (fs/links.c).  So what that task looks up is
 * fit for an open of any kind, and stays so until the open has come.
 *
 * Only the thread that has looked the name up may open the file without a name, and once: another one may
 * have the name from the kernel's cache, and must find what another node has done to it since.  A thread's
 * next look-up takes the place of the one before, of which the kernel may have made no use.  And as long as
 * the file is open for that, the kernel does not keep its name.  A file that was opened in advance, and not
 * opened after that, is closed two seconds later.
 */
#include "fs/early.h"

#include <stdlib.h>

#include "placement/pfs/pfs_node.h"
#include "transport/loop.h"

#define AGAIN_MS 1000 /* the kernel asks again at once */
#define KEEP_MS  2000 /* its open comes at once, too; but on a busy machine that may take a while */
#define FILES    64   /* of more, the one that has waited longest is closed */
#define ANY_TASK (-1)

struct early {
    struct early *next;
    const struct inode *inode; /* the handle has a reference */
    pid_t task;                /* that looked it up; 0: one that cannot be told from some others */
    struct handle *handle;
    void (*close)(struct handle *h);
    uint64_t since_ms;
};

static struct {
    struct lock lock; /* RANK_LEAF: list and n */
    struct early *list;
    _Atomic unsigned n; /* read without the lock, too */
    bool stopped;
    struct loop_timer *timer; /* network thread */
    /* whose call has ended with ESTALE: a ring; and boot_ms of the newest, read without the lock, too */
    struct doubter {
        pid_t task;
        uint64_t since_ms;
    } doubters[FILES];
    unsigned next_doubter;
    _Atomic uint64_t doubted_ms;
} early;

/* The functions down to close_all: with the lock. */

/* i NULL: of any file. */
static struct early **find(const struct inode *i, pid_t task)
{
    struct early **at = &early.list;
    while (*at && ((i && (*at)->inode != i) || (task != ANY_TASK && (*at)->task != task)))
        at = &(*at)->next;
    return at;
}

static struct early *take(struct early **at)
{
    struct early *e = *at;
    *at = e->next;
    e->next = NULL;
    early.n--;
    return e;
}

/* The newest is the first of the list: takes out those from since_ms and before, or the oldest ones so that
 * at most `most` are left. */
static struct early *take_old(uint64_t since_ms, unsigned most)
{
    struct early *out = NULL, **at = &early.list;
    for (unsigned n = 0; *at;) {
        bool old = n >= most || (*at)->since_ms <= since_ms;
        if (!old) {
            at = &(*at)->next;
            n++;
            continue;
        }
        struct early *e = take(at);
        e->next = out;
        out = e;
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
    struct early *old = take_old(boot_ms() - KEEP_MS, FILES);
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

static bool is_young(uint64_t since_ms)
{
    return since_ms && boot_ms() - since_ms < AGAIN_MS;
}

static void note_doubter(pid_t task)
{
    uint64_t now_ms = boot_ms();
    lock_take(&early.lock);
    early.doubters[early.next_doubter++ % FILES] =
        (struct doubter){.task = task, .since_ms = now_ms};
    early.doubted_ms = now_ms;
    lock_drop(&early.lock);
}

void early_doubt(struct inode *i, pid_t task)
{
    note_doubter(task);
    struct pfs_node *parent = S_ISREG(i->type) ? pfs_directory(i->node) : NULL;
    struct inode *dir = parent ? inode_of_node(parent) : NULL;
    if (dir)
        dir->missed_ms = boot_ms();
    inode_put(dir);
    if (parent)
        pfs_unref(parent);
}

bool early_is_again(pid_t task)
{
    if (!is_young(early.doubted_ms))
        return false;
    bool again = false;
    lock_take(&early.lock);
    for (unsigned n = 0; n < FILES; n++)
        again |= early.doubters[n].task == task && is_young(early.doubters[n].since_ms);
    lock_drop(&early.lock);
    return again;
}

bool early_is_wanted(const struct inode *dir, pid_t task)
{
    return is_young(dir->missed_ms) || early_is_again(task);
}

void early_keep(struct inode *i, pid_t task, struct handle *h, void (*close)(struct handle *h))
{
    struct early *e = xmalloc(sizeof(*e)), *old = NULL;
    *e = (struct early){.inode = i, .task = task, .handle = h, .close = close, .since_ms = boot_ms()};
    lock_take(&early.lock);
    struct early **before = find(NULL, task);
    bool first = !early.n && !early.stopped;
    if (task && *before)
        old = take(before);
    if (early.stopped) {
        old = e;
    } else {
        e->next = early.list;
        early.list = e;
        if (++early.n > FILES)
            old = take_old(0, FILES);
    }
    lock_drop(&early.lock);
    close_all(old);
    if (first)
        loop_post(arm, NULL);
}

static bool is_open(const struct inode *i, pid_t task)
{
    if (!early.n)
        return false;
    lock_take(&early.lock);
    bool open = *find(i, task);
    lock_drop(&early.lock);
    return open;
}

bool early_is_open(const struct inode *i)
{
    return is_open(i, ANY_TASK);
}

bool early_is_for(const struct inode *i, pid_t task)
{
    return is_open(i, task);
}

void early_end(const struct inode *i, pid_t task)
{
    lock_take(&early.lock);
    struct early **at = find(i, task), *e = *at ? take(at) : NULL;
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
    struct early *all = take_old(UINT64_MAX, 0);
    lock_drop(&early.lock);
    close_all(all);
}
