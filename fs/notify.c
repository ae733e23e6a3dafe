/* notify.c - telling the kernel that its cached data is stale.
 *
 * Such a call may wait in the kernel for a page that a read has locked, and that read may wait for a thread
 * of ours.  So a thread that must know that the pages are gone before it goes on is one of a pool, and holds no lock
 * (fs/page_cache.c).  Names are waited for by nobody: one thread makes these calls, and does nothing else.  It is no
 * error if the kernel has forgotten the node id (-ENOENT) or does not have the call (-ENOSYS): then nothing is
 * stale, or only for the attribute time-out.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/mount.h"
#include "fs/notify.h"

struct note {
    struct note *next;
    uint64_t nodeid; /* a directory's */
    char *name;
};

static struct {
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t more;
    struct note *first, **last;
    bool running;
    pthread_t thread;
} notes = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}};

/* ---- the calls ---- */

static void check(int err, const char *what, uint64_t nodeid)
{
    static _Atomic uint64_t logged;
    if (err && err != -ENOENT && err != -ENOSYS && err != -ENOTCONN && err != -ENODEV && mount_is_up() &&
        log_every(&logged, 10000))
        log_warn("the kernel did not accept that %s is stale: node %llx: %s", what,
                 (unsigned long long)nodeid, strerror(-err));
}

static int tell_inode(uint64_t nodeid, int64_t off, int64_t len)
{
    struct fuse_session *se = mount_session();
    int err = se ? fuse_lowlevel_notify_inval_inode(se, nodeid, off, len) : 0;
    check(err, off < 0 ? "an attribute" : "data", nodeid);
    return err;
}

int notify_attr_now(uint64_t nodeid)
{
    return tell_inode(nodeid, -1, 0);
}

int notify_pages_now(uint64_t nodeid, int64_t off, int64_t len)
{
    lock_assert_none();
    return tell_inode(nodeid, off, len);
}

void notify_byte_now(uint64_t nodeid, uint64_t off, char byte)
{
    struct fuse_session *se = mount_session();
    struct fuse_bufvec v = FUSE_BUFVEC_INIT(1);
    v.buf[0].mem = &byte;
    lock_assert_none();
    if (se)
        check(fuse_lowlevel_notify_store(se, nodeid, (off_t)off, &v, 0), "a size", nodeid);
}

/* ---- the thread ---- */

static void tell(const struct note *n)
{
    struct fuse_session *se = mount_session();
    if (se)
        check(fuse_lowlevel_notify_inval_entry(se, n->nodeid, n->name, strlen(n->name)), "a name",
              n->nodeid);
}

static struct note *take_first(void)
{
    struct note *n = notes.first;
    notes.first = n->next;
    if (!notes.first)
        notes.last = &notes.first;
    return n;
}

static void *notify_main(void *arg)
{
    (void)arg;
    lock_take(&notes.lock);
    for (;;) {
        while (notes.running && !notes.first)
            lock_wait(&notes.lock, &notes.more, 0);
        if (!notes.running)
            break;
        struct note *n = take_first();
        lock_drop(&notes.lock);
        tell(n);
        free(n->name);
        free(n);
        lock_take(&notes.lock);
    }
    lock_drop(&notes.lock);
    return NULL;
}

void notify_start(void)
{
    lock_cond_init(&notes.more);
    notes.last = &notes.first;
    notes.running = true;
    int err = pthread_create(&notes.thread, NULL, notify_main, NULL);
    if (err)
        die("the notifier's thread could not be started: %s", strerror(err));
    pthread_setname_np(notes.thread, "eddy-notify");
}

/* To be called after the unmount, or when stale pages of the kernel do not matter any more: waiting notes are
 * dropped. */
void notify_stop(void)
{
    lock_take(&notes.lock);
    bool was = notes.running;
    notes.running = false;
    pthread_cond_broadcast(&notes.more);
    lock_drop(&notes.lock);
    if (!was)
        return;
    pthread_join(notes.thread, NULL);
    while (notes.first) {
        struct note *n = take_first();
        free(n->name);
        free(n);
    }
}

/* ---- the queue ---- */

void notify_entry(uint64_t parent, const char *name)
{
    lock_take(&notes.lock);
    if (notes.running) {
        struct note *n = xcalloc(1, sizeof(*n));
        n->nodeid = parent;
        n->name = xstrdup(name);
        *notes.last = n;
        notes.last = &n->next;
        pthread_cond_signal(&notes.more);
    }
    lock_drop(&notes.lock);
}
