/* stores.c - opens whose mappings store into a shadow (stores.h): a list of them, and a thread that looks while there is one.
 */
#include "fs/stores.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/belief.h"
#include "fs/handle_int.h"
#include "fs/notify.h"
#include "placement/store/shadow.h"
#include "transport/jobs.h"

#define EVERY_MS 200

struct storer {
    struct storer *next;
    struct handle *h; /* referenced */
};

static struct {
    struct lock lock; /* RANK_LEAF: all below */
    pthread_cond_t end;
    struct storer *list;
    bool running, ending; /* the thread; which is to end */
    pthread_t thread;
    _Atomic unsigned n;
} stores = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}};

bool stores_any(void)
{
    return atomic_load_explicit(&stores.n, memory_order_relaxed);
}

bool stores_any_of(struct file *f)
{
    return stores_any() && shadow_is(f);
}

/* ---- what was stored ---- */

/* As the kernel would send it if the mapping were its own: it makes the file no longer. */
static int put(void *arg, const char *buf, size_t len, uint64_t off)
{
    struct handle *h = arg;
    uint64_t went;
    int err = data_write(h->data, CARRY_STORE, buf, len, off, &went);
    if (err)
        return err;
    h->wrote += len;
    belief_changed_by(h->inode, off, len);
    notify_attr_now(h->inode->nodeid);
    return 0;
}

/* One of a file is enough: the shadow is one for all.  Referenced, or NULL. */
static struct handle *storer_of(const struct file *f)
{
    struct handle *h = NULL;
    lock_take(&stores.lock);
    for (struct storer *s = stores.list; s && !h; s = s->next)
        if (s->h->data->f == f) {
            h = s->h;
            h->refs++;
        }
    lock_drop(&stores.lock);
    return h;
}

int stores_take(struct file *f)
{
    struct handle *h = stores_any_of(f) ? storer_of(f) : NULL;
    int err = h ? shadow_stores_take(f, put, h) : 0;
    handle_put(h);
    return err;
}

int stores_take_of(struct fid fid)
{
    struct file *f = stores_any() ? file_find(fid) : NULL;
    int err = f ? stores_take(f) : 0;
    if (f)
        file_put(f);
    return err;
}

/* ---- the list ---- */

/* For the end. */
static struct handle *first(void)
{
    lock_take(&stores.lock);
    struct handle *h = stores.list ? stores.list->h : NULL;
    lock_drop(&stores.lock);
    return h;
}

static void forget(struct handle *h)
{
    struct storer *gone = NULL;
    lock_take(&stores.lock);
    for (struct storer **s = &stores.list; *s && !gone; s = &(*s)->next)
        if ((*s)->h == h) {
            gone = *s;
            *s = gone->next;
            stores.n--;
            break;
        }
    lock_drop(&stores.lock);
    if (gone)
        handle_put(h);
    free(gone);
}

static void say_failed(struct handle *h, int err)
{
    static _Atomic uint64_t said;
    if (!log_every(&said, 10000))
        return;
    char *path = file_path(h->data->f);
    log_warn("%s: what a process has stored into a mapping of it is not in the file yet: %s", path ? path : "?", strerror(-err));
    free(path);
}

static void say_mapped(struct handle *h)
{
    char *path = file_path(h->data->f);
    log_warn("%s: the mount has ended, but processes still have it mapped: what they store from now on is lost", path ? path : "?");
    free(path);
}

/* Those of one handle.  A store that came before the proof is found after it. */
static void look(struct handle *h)
{
    bool over = shadow_stores_are_over(h->data->f);
    int err = shadow_stores_take(h->data->f, put, h);
    if (err)
        say_failed(h, err);
    else if (over)
        forget(h);
}

/* Referenced, malloc'd. */
static struct handle **all_now(unsigned *n)
{
    lock_take(&stores.lock);
    struct handle **all = xcalloc(stores.n + 1, sizeof(struct handle *));
    *n = 0;
    for (struct storer *s = stores.list; s; s = s->next) {
        s->h->refs++;
        all[(*n)++] = s->h;
    }
    lock_drop(&stores.lock);
    return all;
}

/* False: the thread ends. */
static bool wait_for_next(void)
{
    lock_take(&stores.lock);
    if (!stores.ending)
        lock_wait(&stores.lock, &stores.end, EVERY_MS);
    bool more = !stores.ending;
    lock_drop(&stores.lock);
    return more;
}

static void *look_at_all(void *arg)
{
    (void)arg;
    while (wait_for_next()) {
        unsigned n;
        struct handle **all = all_now(&n);
        for (unsigned i = 0; i < n; i++) {
            look(all[i]);
            handle_put(all[i]);
        }
        free(all);
    }
    return NULL;
}

/* With the lock. */
static void start(void)
{
    lock_cond_init(&stores.end);
    int err = thread_start(&stores.thread, look_at_all, NULL, "stores");
    stores.running = !err;
    if (err)
        log_warn("no thread for stores into mappings: %s: they reach a file at its next close, fsync, read or stat", strerror(-err));
}

void stores_add(struct handle *h)
{
    struct storer *s = xmalloc(sizeof(*s));
    h->refs++;
    lock_take(&stores.lock);
    *s = (struct storer){stores.list, h};
    stores.list = s;
    stores.n++;
    if (!stores.running)
        start();
    lock_drop(&stores.lock);
}

void stores_end(void)
{
    lock_take(&stores.lock);
    bool running = stores.running;
    stores.ending = true;
    if (running)
        pthread_cond_broadcast(&stores.end);
    lock_drop(&stores.lock);
    if (running)
        pthread_join(stores.thread, NULL);
    struct handle *h;
    while ((h = first())) {
        look(h);
        if (h == first()) {
            say_mapped(h);
            forget(h);
        }
    }
}
