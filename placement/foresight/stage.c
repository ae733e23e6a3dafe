/* stage.c - a stage's life, and the list of stages. */
#include "placement/foresight/stage_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/jobs.h"

#define RUNNING_MAX 16   /* stages at once */
#define ROOTS_MAX   1000 /* of a stage */
#define ENDED_MAX   16   /* that are remembered */

static struct {
    pthread_once_t once;
    struct lock lock; /* RANK_POOL: the list; a stage's lock is taken with it */
    struct stage *list;
    bool stopped;
} stages = {.once = PTHREAD_ONCE_INIT};

static void init(void)
{
    lock_init(&stages.lock, RANK_POOL);
}

/* ---- making one ---- */

struct stage *stage_new(const struct stage_how *how)
{
    struct stage *s = xcalloc(1, sizeof(*s));
    s->refs = 1;
    s->how = *how;
    s->number = random_u64();
    s->id = (uint32_t)random_u64() | 1;
    lock_init(&s->lock, RANK_LEAF);
    lock_cond_init(&s->news);
    return s;
}

/* All that only the asking needs. */
static void free_work(struct stage *s)
{
    for (size_t i = 0; i < s->nfiles; i++)
        free(s->files[i].path);
    free(s->files);
    s->files = NULL;
    s->nfiles = 0;
    portions_free(s);
    lock_take(&hints_lock);
    hints_charge(-(int64_t)s->charged);
    lock_drop(&hints_lock);
    s->charged = 0;
}

void stage_put(struct stage *s)
{
    if (--s->refs)
        return;
    free_work(s);
    for (size_t i = 0; i < s->nfailures; i++)
        free(s->failures[i].path);
    free(s->failures);
    for (struct stage_root *r = s->roots, *next; r; r = next) {
        next = r->next;
        free(r);
    }
    pthread_cond_destroy(&s->news);
    lock_destroy(&s->lock);
    free(s);
}

int stage_add(struct stage *s, const char *path, struct fid fid, const struct version *v)
{
    bool grows = s->nfiles == s->cap;
    size_t cap = !grows ? s->cap : s->cap ? s->cap + s->cap / 2 : 64;
    int err = s->nfiles < UINT32_MAX
                  ? stage_charge(s, (cap - s->cap) * sizeof(*s->files) + strlen(path) + 16)
                  : -ENOBUFS;
    if (err)
        return err;
    if (grows)
        s->files = xrealloc(s->files, cap * sizeof(*s->files));
    s->cap = cap;
    s->files[s->nfiles++] = (struct staged_file){.fid = fid, .version = *v, .path = xstrdup(path)};
    s->bytes += v->size;
    s->nall++;
    return 0;
}

int stage_add_root(struct stage *s, const char *path)
{
    size_t len = strlen(path);
    if (s->nroots == ROOTS_MAX)
        return 0;
    int err = stage_charge(s, sizeof(struct stage_root) + len + 16);
    if (err)
        return err;
    struct stage_root *r = xmalloc(sizeof(*r) + len + 1);
    r->next = s->roots;
    memcpy(r->path, path, len + 1);
    s->roots = r;
    s->nroots++;
    return 0;
}

/* ---- does it fit? ---- */

static void sum_up(const struct stage *s, struct stage_fit *fit)
{
    *fit = (struct stage_fit){.files = s->nfiles, .fits = true, .room = UINT64_MAX};
    for (size_t i = 0; i < s->nlanes; i++) {
        struct lane *l = &s->lanes[i];
        l->room += l->kept;
        uint64_t left = l->room - MIN(l->needed, l->room),
                 least = fit->room - MIN(fit->needed, fit->room);
        for (size_t k = 0; k < l->n; k++)
            fit->here += MIN(l->v[k].here, l->v[k].bytes);
        if (l->needed > l->room ? fit->fits || l->needed - l->room > fit->needed - fit->room
                                : fit->fits && left < least) {
            fit->node = l->node;
            fit->needed = l->needed;
            fit->room = l->room;
            fit->fits = l->needed <= l->room;
        }
    }
    for (size_t i = 0; i < s->nfiles; i++)
        fit->bytes += s->files[i].version.size;
}

int stage_look(struct stage *s, bool (*goes_on)(void *arg), void *arg, struct stage_fit *fit)
{
    int err = portions_make(s);
    if (!err)
        err = stage_ask(s, BRING_LOOK, goes_on, arg);
    if (err)
        return err;
    sum_up(s, fit);
    portions_reset(s);
    s->bytes = 0; /* of what nodes are asked for: all of the files, if they have not changed */
    for (size_t i = 0; i < s->nlanes; i++)
        for (size_t k = 0; k < s->lanes[i].n; k++)
            s->bytes += s->lanes[i].v[k].bytes;
    return 0;
}

/* The files' order is that of each lane, so one pass tells all. */
static void tell_what_is_here(const struct stage *s, stage_has_fn *fn, void *arg)
{
    size_t *at = xcalloc(s->nlanes + 1, sizeof(*at));
    for (uint32_t i = 0; i < s->nfiles; i++) {
        const struct staged_file *f = &s->files[i];
        fn(arg, f->path, f->version.size, 0, 0);
        for (size_t k = 0; k < s->nlanes; k++) {
            const struct lane *l = &s->lanes[k];
            for (; at[k] < l->n && l->v[at[k]].file == i; at[k]++)
                if (l->v[at[k]].here)
                    fn(arg, f->path, f->version.size, l->node, l->v[at[k]].here);
        }
    }
    free(at);
}

int stage_check(struct stage *s, bool (*goes_on)(void *arg), void *arg, stage_has_fn *fn,
                void *fn_arg)
{
    s->whole = true;
    int err = portions_make(s);
    if (!err)
        err = stage_ask(s, BRING_LOOK, goes_on, arg);
    if (!err)
        tell_what_is_here(s, fn, fn_arg);
    return err;
}

/* ---- going on ---- */

static void *stage_main(void *arg)
{
    struct stage *s = arg;
    int err = stage_ask(s, BRING_NOW, NULL, NULL);
    if (err || !s->how.pin_ms)
        stage_tell(s, BRING_END);
    free_work(s);
    lock_take(&s->lock);
    s->ended = true;
    if (!err)
        s->done_bytes = s->bytes;
    pthread_cond_broadcast(&s->news);
    lock_drop(&s->lock);
    stage_put(s);
    return NULL;
}

static bool has_ended(struct stage *s)
{
    lock_take(&s->lock);
    bool ended = s->ended;
    lock_drop(&s->lock);
    return ended;
}

/* Ended ones beyond ENDED_MAX, the oldest, are taken out of the list: returned as a list of their
 * own.  Counts those that run. */
static struct stage *forget_some(unsigned *running)
{
    unsigned ended = 0;
    struct stage *out = NULL;
    *running = 0;
    for (struct stage **at = &stages.list; *at;) {
        struct stage *s = *at;
        bool over = has_ended(s);
        *running += !over;
        ended += over;
        if (!over || ended <= ENDED_MAX) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        s->next = out;
        out = s;
    }
    return out;
}

static void put_all(struct stage *list)
{
    for (struct stage *s = list, *next; s; s = next) {
        next = s->next;
        pthread_join(s->thread, NULL);
        stage_put(s);
    }
}

int stage_begin(struct stage *s)
{
    unsigned running;
    lock_take(&stages.lock);
    struct stage *old = forget_some(&running);
    int err = running == RUNNING_MAX || stages.stopped ? -EAGAIN : 0;
    if (!err) {
        s->refs += 2; /* of the list and of the thread */
        err = thread_start(&s->thread, stage_main, s, "stage");
        s->refs -= err ? 2 : 0;
    }
    if (!err) {
        s->next = stages.list;
        stages.list = s;
    }
    lock_drop(&stages.lock);
    put_all(old);
    return err;
}

void stage_cancel(struct stage *s)
{
    lock_take(&s->lock);
    s->stop |= !s->ended;
    pthread_cond_broadcast(&s->news);
    lock_drop(&s->lock);
}

/* ---- what others ask of it ---- */

void stage_status(struct stage *s, struct stage_status *out)
{
    lock_take(&s->lock);
    *out = (struct stage_status){.id = s->id,
                                 .spread = s->how.spread,
                                 .pin_ms = s->how.pin_ms,
                                 .ended = s->ended,
                                 .cancelled = s->stop,
                                 .files = s->nall,
                                 .bytes = s->bytes,
                                 .done_bytes = MIN(s->done_bytes, s->bytes),
                                 .failed = s->nfailed};
    lock_drop(&s->lock);
}

bool stage_wait(struct stage *s, uint64_t ms)
{
    uint64_t until = boot_ms() + ms, now;
    lock_take(&s->lock);
    while (!s->ended && (now = boot_ms()) < until)
        lock_wait(&s->lock, &s->news, until - now);
    bool ended = s->ended;
    lock_drop(&s->lock);
    return ended;
}

void stage_each_failed(struct stage *s, stage_failed_fn *fn, void *arg)
{
    for (size_t i = 0; i < s->nfailures; i++)
        fn(arg, s->failures[i].path, s->failures[i].node, s->failures[i].err);
}

struct stage *stage_find(uint32_t id)
{
    lock_take(&stages.lock);
    struct stage *s = stages.list;
    while (s && s->id != id)
        s = s->next;
    if (s)
        s->refs++;
    lock_drop(&stages.lock);
    return s;
}

/* Is one of them the other one, or above it? */
static bool are_related(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), least = MIN(n, m);
    return !least || (!strncmp(a, b, least) && (n == m || (n < m ? b : a)[least] == '/'));
}

static bool has_root_like(const struct stage *s, const char *path)
{
    const struct stage_root *r = s->roots;
    while (r && !are_related(r->path, path))
        r = r->next;
    return r;
}

void stages_each(const char *path, void (*fn)(void *arg, struct stage *s), void *arg)
{
    lock_take(&stages.lock);
    for (struct stage *s = stages.list; s; s = s->next)
        if (has_root_like(s, path))
            fn(arg, s);
    lock_drop(&stages.lock);
}

int stage_drop(struct stage *s, bool (*goes_on)(void *arg), void *arg)
{
    const struct stage_how how = {.spread = false};
    int err = 0;
    if (s) {
        s->whole = true;
        err = portions_make(s);
        return err ? err : stage_ask(s, BRING_DROP, goes_on, arg);
    }
    s = stage_new(&how);
    stage_tell(s, BRING_DROP);
    stage_put(s);
    return 0;
}

void stages_start(void)
{
    pthread_once(&stages.once, init);
    stages.stopped = false;
}

void stages_stop(void)
{
    lock_take(&stages.lock);
    stages.stopped = true;
    struct stage *all = stages.list;
    stages.list = NULL;
    lock_drop(&stages.lock);
    for (struct stage *s = all; s; s = s->next)
        stage_cancel(s);
    bring_stop();
    put_all(all);
}
