/* names.c - this node's dirty list in the session directory: which files are not on the PFS yet,
 * for `eddy check` when no daemon is alive to ask.
 *
 * It is written as a whole, BATCH_MS after the first change.  A list that takes long to write (many files,
 * a slow PFS) is written less often, so that it takes at most a twentieth of the time.  It is removed
 * when nothing is dirty.
 *
 * A start after a power loss reads it, too: it names files of which the cache has nothing left, or only what
 * an older fsync covered.  So it is also written again when a file that was
 * fsynced changes, with the times of all files.
 */

#include "flush/flush_events.h"
#include "flush/flush_int.h"
#include "flush/lull.h"
#include "flush/queue.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "transport/lock.h"
#include "transport/loop.h"
#include "transport/session.h"

#include <stdlib.h>
#include <string.h>

#define BATCH_MS   800
#define PAUSE_MAX  30000
#define COST_SHARE 20
#define RETRY_MS   5000

static struct {
    struct lock lock; /* RANK_LEAF */
    bool changed, writing;
    bool held;   /* not all files of a dead daemon are known yet: its own list stays */
    bool on_pfs; /* a list is (perhaps) there */
    uint64_t changed_ms, not_before_ms;
} names;
static pthread_once_t names_once = PTHREAD_ONCE_INIT;

static void names_init(void)
{
    lock_init(&names.lock, RANK_LEAF);
}

void names_start(void)
{
    pthread_once(&names_once, names_init);
    lock_take(&names.lock);
    names.changed = true; /* also to remove what a dead daemon left */
    names.on_pfs = true;
    names.held = true;
    names.changed_ms = boot_ms();
    names.not_before_ms = 0;
    lock_drop(&names.lock);
}

void names_go(void)
{
    lock_take(&names.lock);
    names.held = false;
    lock_drop(&names.lock);
    bell_ring();
}

void flush_list_changed(void)
{
    lock_take(&names.lock);
    bool first = !names.changed;
    if (first)
        names.changed_ms = boot_ms();
    names.changed = true;
    lock_drop(&names.lock);
    if (first)
        bell_ring(); /* the flusher sees to the time */
}

uint64_t names_due_ms(uint64_t now)
{
    uint64_t due = UINT64_MAX;
    lock_take(&names.lock);
    if (names.changed && !names.writing && !names.held) {
        uint64_t at = MAX(names.changed_ms + BATCH_MS, names.not_before_ms);
        due = at > now ? at - now : 0;
    }
    lock_drop(&names.lock);
    return due;
}

struct list {
    struct dirty_name *names;
    size_t n, room;
};

/* Its path belongs to the list now. */
static void list_add(struct list *l, struct dirty_name name)
{
    if (l->n == l->room)
        l->names = xrealloc(l->names, (l->room = l->room * 2 + 16) * sizeof(*l->names));
    l->names[l->n++] = name;
}

static void add_file(struct list *l, struct file *f)
{
    struct file_info info;
    store_info(f, &info);
    list_add(l, (struct dirty_name){f->fid, file_path(f), info.mtime_ns, info.ctime_ns});
}

/* It is never flushed by itself, so it is named as long as it is there. */
static int add_suspect(void *arg, struct fid fid, const char *path, uint64_t bytes, bool suspect)
{
    (void)bytes;
    (void)suspect;
    list_add(arg, (struct dirty_name){.fid = fid, .path = xstrdup(path)});
    return 0;
}

static int write_list(bool *empty)
{
    size_t n;
    struct list l = {NULL, 0, 0};
    struct file **files = queue_files(&n);
    for (size_t i = 0; i < n; i++) {
        add_file(&l, files[i]);
        file_put(files[i]);
    }
    free(files);
    int err = store_each_suspect(add_suspect, &l);
    *empty = l.n == 0;
    bool needed = l.n || names.on_pfs;
    if (!err && needed)
        err = session_write_dirty(store_node_id(), l.names, l.n);
    for (size_t i = 0; i < l.n; i++)
        free(l.names[i].path);
    free(l.names);
    return err;
}

static void write_and_note(void)
{
    static _Atomic uint64_t said;
    uint64_t began = boot_ms();
    bool empty;
    int err = session_dirfd() >= 0 ? write_list(&empty) : (empty = false, 0);
    uint64_t now = boot_ms();
    if (err && log_every(&said, 60000))
        log_warn("the list of unflushed files could not be written into the session directory: %s: "
                 "`eddy check` may not name all of them",
                 strerror(-err));
    lock_take(&names.lock);
    names.writing = false;
    names.not_before_ms = now + MIN((now - began) * COST_SHARE, (uint64_t)PAUSE_MAX);
    if (err) {
        names.changed = true;
        names.changed_ms = now;
        names.not_before_ms = now + RETRY_MS;
    } else {
        names.on_pfs = !empty;
    }
    lock_drop(&names.lock);
}

static bool begin_writing(void)
{
    lock_take(&names.lock);
    bool go = !names.writing && names.changed;
    if (go) {
        names.writing = true;
        names.changed = false; /* what changes from now on is for the next list */
    }
    lock_drop(&names.lock);
    return go;
}

static void write_job(void *arg)
{
    (void)arg;
    write_and_note();
    bell_ring(); /* the flusher looks when the next one is due */
}

void names_write_soon(void)
{
    if (begin_writing())
        pool_submit(pool_session, write_job, NULL);
}

/* No flusher runs any more.  pool_session may still write a list that is older than this one.  Writing this
 * one in the same pool, which has one thread, waits for that. */
static void last_job(void *arg)
{
    (void)arg;
    write_and_note();
    lock_take(&names.lock);
    names.changed = false;
    lock_drop(&names.lock);
}

struct waited {
    struct lock lock;
    pthread_cond_t done;
    bool is_done;
};

static void waited_job(void *arg)
{
    struct waited *w = arg;
    last_job(NULL);
    lock_take(&w->lock);
    w->is_done = true;
    pthread_cond_signal(&w->done);
    lock_drop(&w->lock);
}

void names_write_now(void)
{
    lock_take(&names.lock);
    bool held = names.held;
    lock_drop(&names.lock);
    if (held)
        return;
    struct waited w = {.is_done = false};
    lock_init(&w.lock, RANK_LEAF);
    lock_cond_init(&w.done);
    pool_submit(pool_session, waited_job, &w);
    lock_take(&w.lock);
    while (!w.is_done)
        lock_wait(&w.lock, &w.done, 0);
    lock_drop(&w.lock);
    lock_destroy(&w.lock);
    pthread_cond_destroy(&w.done);
}
