/* flight.c - the table of flights, and how readers and FETCHes join them (flight_int.h describes a flight).
 *
 * Lock: the shard's (RANK_FLIGHT); functions that say "shard locked" do not take it.
 */
#include "placement/chunks/flight_int.h"

#include <errno.h>
#include <stdlib.h>

#include "placement/store/store_read.h"
#include "transport/lock.h"
#include "transport/loop.h"

#define SHARDS 64

static struct shard {
    struct lock lock; /* RANK_FLIGHT */
    struct flight *list;
} shards[SHARDS];
static _Atomic uint64_t ended[SHARDS]; /* how many flights have ended, by file */
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

void flight_lock(struct flight *fl)
{
    lock_take(&fl->shard->lock);
}

void flight_unlock(struct flight *fl)
{
    lock_drop(&fl->shard->lock);
}

uint64_t flight_ended(struct fid fid)
{
    return ended[fid.lo % SHARDS];
}

/* ---- the table: shard locked ---- */

static struct flight *lookup(const struct shard *s, const struct chunk_key *key)
{
    struct flight *fl = s->list;
    while (fl && !chunk_key_eq(&fl->key, key))
        fl = fl->next;
    return fl;
}

static struct flight *add(struct shard *s, const struct chunk_key *key)
{
    struct flight *fl = xcalloc(1, sizeof(*fl));
    fl->key = *key;
    fl->refs = 1;
    fl->shard = s;
    fl->next = s->list;
    s->list = fl;
    return fl;
}

void flight_leave_table(struct flight *fl)
{
    struct flight **p = &fl->shard->list;
    while (*p != fl)
        p = &(*p)->next;
    *p = fl->next;
    fl->state = FLIGHT_ENDED;
    atomic_fetch_add(&ended[fl->key.fid.lo % SHARDS], 1);
}

/* Offers the flight a file: it takes over the reference if it has no file yet. */
static void offer_file(struct flight *fl, struct file **f)
{
    if (fl->file)
        return;
    fl->file = *f;
    *f = NULL;
}

static void put_file(struct file *f)
{
    if (f)
        file_put(f);
}

void flight_drop(struct flight *fl)
{
    if (atomic_fetch_sub(&fl->refs, 1) != 1)
        return;
    chunk_put(fl->spare);
    chunk_put(fl->bytes);
    free(fl->path);
    put_file(fl->file);
    free(fl);
}

struct file *flight_file(struct flight *fl)
{
    flight_lock(fl);
    struct file *f = fl->file;
    flight_unlock(fl);
    return f;
}

struct file *flight_give_file(struct flight *fl, struct file *f)
{
    flight_lock(fl);
    offer_file(fl, &f);
    struct file *has = fl->file;
    flight_unlock(fl);
    put_file(f);
    return has;
}

/* ---- readers ---- */

/* Looks into the store once more after the flight has begun: the chunk may have come since the caller looked.
 * True: it is there, and the flight has ended. */
static bool is_stored(struct flight *fl)
{
    struct file_info info;
    struct file *f = flight_file(fl);
    if (!f)
        return false;
    store_info(f, &info);
    if (flight_stored(&fl->key, f, &info, fl->spare))
        return false;
    flight_here(fl, &fl->spare, FROM_STORE);
    flight_kept(fl, 0);
    return true;
}

bool flight_join(struct flight_call *call, const struct chunk_key *key, struct flight_reader *r,
                 struct chunk *c)
{
    struct shard *s = shard_of(key);
    struct file *f = file_ref(r->file);
    r->call = call;
    call->readers[call->n] = r;
    lock_take(&s->lock);
    struct flight *fl = lookup(s, key);
    bool begins = !fl && c, unsure = flight_ended(key->fid) != r->looked;
    if (begins) {
        fl = add(s, key);
        fl->spare = c;
    }
    if (fl) {
        offer_file(fl, &f);
        flight_add_reader(fl, r);
    }
    lock_drop(&s->lock);
    put_file(f);
    if (!begins)
        chunk_put(c);
    else if (!unsure || !is_stored(fl))
        flight_go(fl);
    call->n += fl != NULL;
    return fl;
}

/* ---- FETCHes ---- */

/* Shard locked, and the chunk has no flight. */
static struct flight *begin_for_peer(struct shard *s, const struct flight_served *w)
{
    struct flight *fl = add(s, &w->key);
    fl->before = w->before;
    fl->before_known = w->before_known;
    return fl;
}

void flight_serve(const struct flight_served *w, struct chunk *c, struct flight_peer *p)
{
    struct shard *s = shard_of(&w->key);
    struct file *f = w->file ? file_ref(w->file) : NULL;
    lock_take(&s->lock);
    struct flight *fl = lookup(s, &w->key);
    bool begins = !fl, unsure = begins && flight_ended(w->key.fid) != w->looked;
    if (begins)
        fl = begin_for_peer(s, w);
    bool here = fl->state == FLIGHT_HERE;
    bool reads = (begins && !unsure) || fl->state == FLIGHT_ASKED;
    struct chunk *bytes = here ? chunk_ref(fl->bytes) : NULL;
    offer_file(fl, &f);
    if (!fl->path && w->path)
        fl->path = xstrdup(w->path);
    if (!here) {
        p->next = fl->peers;
        fl->peers = p;
    }
    if (begins || (reads && !fl->spare)) {
        fl->spare = c;
        c = NULL;
    }
    if (reads)
        flight_begin_read(fl, ASKED_FOR);
    lock_drop(&s->lock);
    put_file(f);
    chunk_put(c);
    if (reads)
        pool_submit(pool_data, flight_read, fl);
    else if (begins && !is_stored(fl))
        flight_reads(fl, ASKED_FOR);
    if (here)
        p->done(p, 0, bytes);
    chunk_put(bytes);
}

bool flight_serve_sent(const struct chunk_key *key, struct flight_peer *p)
{
    struct shard *s = shard_of(key);
    lock_take(&s->lock);
    struct flight *fl = lookup(s, key);
    struct chunk *bytes = fl && fl->state == FLIGHT_HERE ? chunk_ref(fl->bytes) : NULL;
    if (fl && !bytes) {
        p->next = fl->sent_here;
        fl->sent_here = p;
    }
    lock_drop(&s->lock);
    if (bytes)
        p->done(p, 0, bytes);
    chunk_put(bytes);
    return fl;
}

/* ---- the store ---- */

int flight_stored(const struct chunk_key *key, struct file *f, const struct file_info *info,
                  struct chunk *c)
{
    if (!info->base_known || !version_eq(&info->base, &key->version) || info->racy)
        return -ENOENT;
    c->racy = false;
    return store_get_chunk(f, key->index, &key->version, c->data, &c->len, &c->hash);
}
