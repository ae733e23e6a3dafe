/* asked.c - flushing a list of files of which each may be at another node.
 *
 * Up to AT_ONCE jobs take one file after the other off the list.  Each waits for its file only, so a file that hangs holds up
 * no more than its job.
 */
#include "flush/asked.h"
#include "flush/queue.h"
#include "placement/data.h"
#include "placement/store/store_read.h"
#include "transport/loop.h"

#include <errno.h>
#include <stdlib.h>

#define AT_ONCE 8

struct asked_file {
    struct fid fid;
    struct file *f; /* referenced, if it is here; else NULL */
    char *path;
    uint64_t bytes, node;
    int err; /* asked.lock; 0 until it has ended */
};

struct asked {
    struct asked_file *files; /* this and the next two do not change after asked_begin */
    size_t n, size;
    uint64_t bytes;
    struct lock lock; /* RANK_LEAF: the members below */
    pthread_cond_t ended;
    size_t next, left; /* the first that was not begun; how many have not ended */
    struct asked_file *running[AT_ONCE];
    uint64_t done;  /* bytes of those that have ended */
    unsigned users; /* jobs, and the caller */
    bool stop;      /* no other file is begun */
};

struct asked *asked_new(void)
{
    struct asked *a = xcalloc(1, sizeof(*a));
    flush_sample(); /* what applications have written through the kernel counts, too */
    lock_init(&a->lock, RANK_LEAF);
    lock_cond_init(&a->ended);
    a->users = 1;
    return a;
}

static void put(struct asked *a)
{
    lock_take(&a->lock);
    bool last = !--a->users;
    lock_drop(&a->lock);
    if (!last)
        return;
    for (size_t i = 0; i < a->n; i++) {
        if (a->files[i].f)
            file_put(a->files[i].f);
        free(a->files[i].path);
    }
    free(a->files);
    pthread_cond_destroy(&a->ended);
    lock_destroy(&a->lock);
    free(a);
}

/* False: nothing of it is here, and nothing of it was lent. */
static bool take_ours(struct asked_file *file)
{
    struct file_info info;
    file->f = file_find(file->fid);
    if (!file->f)
        return false;
    store_info(file->f, &info);
    file->bytes = info.dirty_bytes;
    if (info.dirty || info.lent)
        return true;
    file_put(file->f);
    return false;
}

void asked_add(struct asked *a, struct fid fid, const char *path, const struct location *at)
{
    struct asked_file file = {.fid = fid, .bytes = at->size};
    if (at->where == WHERE_NODE)
        file.node = at->node;
    else if (!take_ours(&file))
        return;
    file.path = xstrdup(path);
    if (a->n == a->size) {
        a->size = MAX(2 * a->size, (size_t)64);
        a->files = xrealloc(a->files, a->size * sizeof(*a->files));
    }
    a->files[a->n++] = file;
    a->bytes += file.bytes;
}

void asked_count(const struct asked *a, uint64_t *files, uint64_t *bytes)
{
    *files = a->n;
    *bytes = a->bytes;
}

/* ---- the jobs ---- */

struct asked_job {
    struct asked *asked;
    unsigned number;
};

static bool is_ending(void)
{
    lock_take(&flush.lock);
    bool stop = flush.stop;
    lock_drop(&flush.lock);
    return stop;
}

/* The next file for the job of this number, or NULL.  ending: those that were not begun are not flushed any more. */
static struct asked_file *take(struct asked *a, unsigned number, bool ending)
{
    lock_take(&a->lock);
    for (; ending && a->next < a->n; a->left--)
        a->files[a->next++].err = -ECANCELED;
    struct asked_file *next = a->stop || a->next == a->n ? NULL : &a->files[a->next++];
    a->running[number] = next;
    if (ending && !a->left)
        pthread_cond_broadcast(&a->ended);
    lock_drop(&a->lock);
    return next;
}

static int flush_it(const struct asked_file *file)
{
    struct file *f = file->f ? file_ref(file->f) : NULL;
    int err = f ? 0 : file_get(file->fid, file->path, &f);
    if (!err) {
        err = data_flush(f);
        file_put(f);
    }
    return err == -ENOENT ? -EAGAIN : err; /* no node says that it has it, again and again */
}

static void end_of(struct asked *a, unsigned number, int err)
{
    lock_take(&a->lock);
    a->running[number]->err = err;
    a->done += a->running[number]->bytes;
    a->running[number] = NULL;
    if (!--a->left)
        pthread_cond_broadcast(&a->ended);
    lock_drop(&a->lock);
}

static void job(void *arg)
{
    struct asked_job *j = arg;
    struct asked_file *file;
    while ((file = take(j->asked, j->number, is_ending())))
        end_of(j->asked, j->number, flush_it(file));
    put(j->asked);
    free(j);
}

void asked_begin(struct asked *a)
{
    unsigned jobs = (unsigned)MIN(a->n, (size_t)AT_ONCE);
    lock_take(&a->lock);
    a->left = a->n;
    a->users += jobs;
    lock_drop(&a->lock);
    for (unsigned i = 0; i < jobs; i++) {
        struct asked_job *j = xmalloc(sizeof(*j));
        *j = (struct asked_job){a, i};
        pool_submit(pool_writers, job, j);
    }
}

/* ---- the one who asked ---- */

/* Lock held: what the runs that are under way have done is not in `done` yet.  Copies them: store_info takes a lock of a lower
 * rank. */
static unsigned copy_running(const struct asked *a, struct asked_file out[AT_ONCE])
{
    unsigned n = 0;
    for (unsigned i = 0; i < AT_ONCE; i++)
        if (a->running[i] && a->running[i]->f)
            out[n++] = *a->running[i];
    return n;
}

bool asked_wait(struct asked *a, uint64_t ms, struct flush_progress *p)
{
    struct asked_file running[AT_ONCE];
    uint64_t until = boot_ms() + ms, now;
    lock_take(&a->lock);
    while (a->left && (now = boot_ms()) < until)
        lock_wait(&a->lock, &a->ended, until - now);
    unsigned n = copy_running(a, running);
    *p = (struct flush_progress){a->done, a->bytes, a->left};
    lock_drop(&a->lock);
    while (n--) {
        struct file_info info;
        store_info(running[n].f, &info);
        p->done_bytes += running[n].bytes - MIN(info.dirty_bytes, running[n].bytes);
    }
    p->done_bytes = MIN(p->done_bytes, p->total_bytes); /* it is written to meanwhile */
    return !p->files_left;
}

int asked_each_failed(const struct asked *a, asked_fn *fn, void *arg)
{
    int stop = 0;
    for (size_t i = 0; i < a->n && !stop; i++)
        if (a->files[i].err)
            stop = fn(arg, a->files[i].path, a->files[i].node, a->files[i].err);
    return stop;
}

void asked_leave(struct asked *a, bool go_on)
{
    lock_take(&a->lock);
    a->stop = !go_on;
    lock_drop(&a->lock);
    put(a);
}
