/* flight.c - the table of flights, and what tells their leaders of events. */
#include "placement/chunks/flight.h"

#include <stdlib.h>

#include "transport/lock.h"

#define SHARDS 64

static struct shard {
    struct lock lock; /* RANK_FLIGHT */
    struct flight *list;
} shards[SHARDS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init(void)
{
    for (unsigned i = 0; i < SHARDS; i++)
        lock_init(&shards[i].lock, RANK_FLIGHT);
}

static struct shard *shard_of(const struct chunk_key *k)
{
    pthread_once(&once, init);
    return &shards[chunk_key_hash(k) % SHARDS];
}

/* ---- the table ---- */

/* Shard locked. */
static struct flight *lookup(const struct shard *s, const struct chunk_key *key)
{
    struct flight *fl = s->list;
    while (fl && !chunk_key_eq(&fl->key, key))
        fl = fl->next;
    return fl;
}

struct flight *flight_find(const struct chunk_key *key)
{
    struct shard *s = shard_of(key);
    lock_take(&s->lock);
    struct flight *fl = lookup(s, key);
    if (fl)
        fl->refs++;
    lock_drop(&s->lock);
    return fl;
}

struct flight *flight_join(const struct chunk_key *key, struct call *call, struct chunk *c,
                           bool *leads)
{
    struct shard *s = shard_of(key);
    lock_take(&s->lock);
    struct flight *fl = lookup(s, key);
    *leads = !fl;
    if (!fl) {
        fl = xcalloc(1, sizeof(*fl));
        fl->key = *key;
        fl->call = call;
        fl->chunk = c;
        lock_cond_init(&fl->changed);
        fl->next = s->list;
        s->list = fl;
    }
    fl->refs++;
    lock_drop(&s->lock);
    return fl;
}

void flight_ref(struct flight *fl)
{
    struct shard *s = shard_of(&fl->key);
    lock_take(&s->lock);
    fl->refs++;
    lock_drop(&s->lock);
}

void flight_put(struct flight *fl)
{
    struct shard *s = shard_of(&fl->key);
    lock_take(&s->lock);
    bool last = !--fl->refs;
    lock_drop(&s->lock);
    if (!last)
        return;
    chunk_put(fl->chunk);
    pthread_cond_destroy(&fl->changed);
    free(fl->path);
    file_put(fl->file);
    free(fl);
}

/* Shard locked. */
static void set_filled(struct shard *s, struct flight *fl, int kept)
{
    struct flight **p = &s->list;
    while (*p != fl)
        p = &(*p)->next;
    *p = fl->next;
    fl->kept = kept;
    fl->filled = true;
}

void flight_done(struct flight *fl, int err, enum source source, bool to_come)
{
    struct shard *s = shard_of(&fl->key);
    fl->err = err;
    fl->source = source;
    if (!err && source == FROM_PFS && fl->fallback)
        count(fallback_reads, 1);
    lock_take(&s->lock);
    if (!to_come)
        set_filled(s, fl, 0);
    fl->done = true;
    pthread_cond_broadcast(&fl->changed);
    lock_drop(&s->lock);
}

void flight_filled(struct flight *fl, int kept)
{
    struct shard *s = shard_of(&fl->key);
    lock_take(&s->lock);
    set_filled(s, fl, kept);
    pthread_cond_broadcast(&fl->changed);
    lock_drop(&s->lock);
}

void flight_wait(struct flight *fl, bool filled)
{
    struct shard *s = shard_of(&fl->key);
    lock_take(&s->lock);
    while (!fl->done || (filled && !fl->filled))
        lock_wait(&s->lock, &fl->changed, 0);
    lock_drop(&s->lock);
}

/* ---- events ---- */

/* With the shard's lock: the call is there until that is dropped. */
static void tell_call(struct call *call, struct flight *fl, int err, bool early)
{
    lock_take(&call->lock);
    fl->event_err = err;
    fl->early = early;
    if (!fl->queued) {
        fl->queued = true;
        fl->ready_next = call->ready;
        call->ready = fl;
        pthread_cond_signal(&call->cond);
    }
    lock_drop(&call->lock);
}

bool flight_event(struct flight *fl, int err, bool early)
{
    struct shard *s = shard_of(&fl->key);
    lock_take(&s->lock);
    struct call *call = fl->call;
    if (call)
        tell_call(call, fl, err, early);
    lock_drop(&s->lock);
    return call;
}

struct flight *flight_next_event(struct call *call, bool *early)
{
    lock_take(&call->lock);
    while (!call->ready)
        lock_wait(&call->lock, &call->cond, 0);
    struct flight *fl = call->ready;
    call->ready = fl->ready_next;
    fl->queued = false;
    *early = fl->early;
    lock_drop(&call->lock);
    return fl;
}

bool flight_leave(struct flight *fl)
{
    struct shard *s = shard_of(&fl->key);
    lock_take(&s->lock);
    bool leaves = !fl->queued; /* set with this lock, and only by who is not here */
    if (leaves)
        fl->call = NULL;
    lock_drop(&s->lock);
    return leaves;
}
