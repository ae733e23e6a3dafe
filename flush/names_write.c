/* names_write.c - the dirty list is written, as a whole, in the session's pool (names.c). */
#include <stdlib.h>
#include <string.h>

#include "flush/lull.h"
#include "flush/names.h"
#include "flush/queue.h"
#include "placement/pfs/pfs_data.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "transport/loop.h"
#include "transport/marks.h"
#include "transport/session.h"

#define PAUSE_MAX  30000
#define COST_SHARE 20
#define RETRY_MS   5000

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
    list_add(l, (struct dirty_name){fid_real(f->fid), file_path(f), info.mtime_ns, info.ctime_ns});
}

/* It is never flushed by itself, so it is named as long as it is there. */
static int add_suspect(void *arg, struct fid fid, const char *path, uint64_t bytes, enum unflushed_why why)
{
    (void)bytes;
    (void)why;
    list_add(arg, (struct dirty_name){.fid = fid, .path = xstrdup(path)});
    return 0;
}

static int write_list(bool *empty)
{
    size_t n;
    struct list l = {NULL, 0, 0};
    struct file **files = queue_files(&n);
    pfs_pass_moves(files, n);
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
