/* fetch.c - the reader's side of clean chunks.
 *
 * One flight per chunk (fid, index, version), however many readers want it.  Who begins it leads
 * it: all steps run in the leader's thread, which has nothing else to do; the network thread and
 * pool_data only put an event on its list.
 *
 *   ASK owner --silence, error--> ASK next --silence, error--> OWN READ of the PFS --> done
 *        |  |                       |
 *        |  +-- -ESTALE, -ENOENT ("not that file") -----------^     the own descriptor knows better
 *        +-- the bytes: check --> done --> keep as a replica (filler.c) --> filled
 *
 * Early: the reader that leads has bytes that are read from the PFS here before it is proved of
 * which version they are (origin.h), and goes; the flight ends without it.  Who joined waits for the
 * proof.
 *
 * Done: who wants the bytes has them.  Until it is filled the flight stays in the table and serves
 * who comes, so that nobody fetches what is on its way into the store; its buffer's room is held as
 * long, which bounds what a slow disk can pile up.
 *
 * A node whose turn is this one reads the PFS itself at once; a suspected one is passed over.  The
 * leader finishes all that it leads before it waits for what others lead, so two calls that want
 * each other's chunks do not wait in a circle; and it waits for buffer room only while it holds
 * none.
 */
#include "placement/fetch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "placement/chunk_answer.h"
#include "placement/filler.h"
#include "placement/former.h"
#include "placement/origin.h"
#include "placement/ring.h"
#include "placement/store.h"
#include "placement/working.h"
#include "transport/loop.h"
#include "transport/members.h"
#include "transport/peer.h"

#define SHARDS 64
#define WINDOW 8 /* chunks of one call that are under way at once */
#define TURNS  2 /* owner and next */

enum source { FROM_STORE, FROM_PEER, FROM_PFS };

/* One fetch_range's list of events, on its stack. */
struct call {
    struct file *f;
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t cond;
    struct flight *ready;
    const struct range *range;
    unsigned leads; /* flights that it still leads; its thread only */
};

struct flight {
    struct chunk_key key;
    struct flight *next; /* shard's list */

    /* shard's lock */
    unsigned refs;
    bool done;
    bool filled; /* and out of the table; perhaps before the leader has seen that it is done */
    int kept;    /* filled: 0, or why it is not in the store */
    pthread_cond_t changed;

    /* the leader's until done, then everybody's to read */
    struct chunk *chunk;
    int err;
    enum source source;
    struct file *file; /* referenced */

    /* the leader's, but for NULL in `call`, which is set with the shard's lock: it has gone */
    struct call *call;
    char *path;
    unsigned turn; /* < TURNS: the n-th node of the ring is asked */
    uint64_t node; /* that is being asked; 0 = the PFS */
    bool fallback; /* the PFS is read because no node could serve */
    bool joined;   /* ... by a read that another began */
    bool credited; /* the origin's */
    struct origin_waiter waiter;

    /* the event, set before the flight is put on the call's list, or while it is there (with the
     * call's lock) */
    struct flight *ready_next;
    bool queued;
    bool early; /* the bytes are there unproven; no error */
    int event_err;
};

struct range {
    uint64_t off, end;
    uint8_t *buf; /* for byte `off`, or NULL */
    struct fetched *from;
};

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

/* The flight of this chunk, referenced, or NULL. */
static struct flight *flight_find(const struct chunk_key *key)
{
    struct shard *s = shard_of(key);
    lock_take(&s->lock);
    struct flight *fl = lookup(s, key);
    if (fl)
        fl->refs++;
    lock_drop(&s->lock);
    return fl;
}

/* The same; if there is none, one is begun with buffer c, and the caller must lead it: *leads. */
static struct flight *flight_join(const struct chunk_key *key, struct call *call, struct chunk *c,
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

static void flight_ref(struct flight *fl)
{
    struct shard *s = shard_of(&fl->key);
    lock_take(&s->lock);
    fl->refs++;
    lock_drop(&s->lock);
}

static void flight_put(struct flight *fl)
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

/* to_come: flight_filled will be called, or was.  By who leads it, who keeps his reference, or by
 * flight_goes_on. */
static void flight_done(struct flight *fl, int err, enum source source, bool to_come)
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

/* Pool threads. */
static void flight_filled(struct flight *fl, int kept)
{
    struct shard *s = shard_of(&fl->key);
    lock_take(&s->lock);
    set_filled(s, fl, kept);
    pthread_cond_broadcast(&fl->changed);
    lock_drop(&s->lock);
}

static void flight_wait(struct flight *fl, bool filled)
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

/* Network thread or pool_data.  False: the leader has gone. */
static bool flight_event(struct flight *fl, int err, bool early)
{
    struct shard *s = shard_of(&fl->key);
    lock_take(&s->lock);
    struct call *call = fl->call;
    if (call)
        tell_call(call, fl, err, early);
    lock_drop(&s->lock);
    return call;
}

static struct flight *next_event(struct call *call, bool *early)
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

/* The leader goes, unless it has been told meanwhile that its flight is done: then false. */
static bool leave_flight(struct flight *fl)
{
    struct shard *s = shard_of(&fl->key);
    lock_take(&s->lock);
    bool leaves = !fl->queued; /* set with this lock, and only by who is not here */
    if (leaves)
        fl->call = NULL;
    lock_drop(&s->lock);
    return leaves;
}

/* ---- counting ---- */

/* How much of its chunk the leader itself wants now. */
static uint64_t wanted_now(const struct flight *fl)
{
    const struct range *r = fl->call->range;
    uint64_t begin = fl->key.index * store_chunk_size();
    return r->buf ? MIN(begin + fl->chunk->len, r->end) - MAX(begin, r->off) : 0;
}

/* The chunk is here: what the leader does not take now is ahead of who will read it.  Called before
 * anybody can have it from the flight or the store. */
static void credit(struct flight *fl, enum source source)
{
    struct fetched_ahead *ahead = fl->call->range->from->ahead;
    uint64_t rest = fl->chunk->len - wanted_now(fl);
    if (ahead)
        atomic_fetch_add(source == FROM_PEER ? &ahead->peer : &ahead->pfs, rest);
}

/* What another call fetched counts as local, so that each byte that came counts once: its leader's
 * handle has the credit for it. */
static void note_source(const struct flight *fl, struct fetched *from, bool led, uint64_t n)
{
    if (led && fl->source == FROM_PEER)
        from->peer += n;
    else if (led && fl->source == FROM_PFS)
        from->pfs += n;
    else
        from->local += n;
}

/* ---- reading the PFS here ---- */

/* pool_data, or the leader itself.  A chunk that another's read brought is copied, so that this
 * call only holds room of its own kind. */
static void on_origin(struct origin_waiter *w, int err, struct chunk *c)
{
    struct flight *fl = container_of(w, struct flight, waiter);
    if (!err && c != fl->chunk) {
        memcpy(fl->chunk->data, c->data, c->len);
        fl->chunk->len = c->len;
        fl->chunk->hash = c->hash;
        fl->chunk->racy = c->racy;
        fl->chunk->from_peer = c->from_peer;
    }
    enum source source = c->from_peer ? FROM_PEER : FROM_PFS;
    if (!err && !fl->credited)
        credit(fl, source);
    if (!flight_event(fl, err, false))
        flight_done(fl, err, source, !err);
    if (err)
        flight_put(fl); /* read_here's: nothing will be kept.  The leader has its own */
}

/* pool_data. */
static void on_early(struct origin_waiter *w, struct chunk *c)
{
    struct flight *fl = container_of(w, struct flight, waiter);
    (void)c; /* its own */
    credit(fl, FROM_PFS);
    fl->credited = true;
    flight_event(fl, 0, true);
}

/* The file's filler. */
static void on_origin_filled(struct origin_waiter *w, int kept)
{
    struct flight *fl = container_of(w, struct flight, waiter);
    flight_filled(fl, kept);
    flight_put(fl);
}

static void read_here(struct flight *fl, bool fallback)
{
    flight_ref(fl); /* the waiter's */
    fl->node = 0;
    fl->fallback = fallback;
    fl->joined = origin_read(&fl->key, fl->call->f, NULL, chunk_ref(fl->chunk), &fl->waiter);
}

/* ---- asking another node ---- */

/* Network thread.  The hash is checked by the leader. */
static void on_chunk(void *arg, int err, struct msg *reply, bool *keep)
{
    (void)keep;
    struct flight *fl = arg;
    if (!err)
        err = chunk_answer_take(fl->chunk, &fl->key, reply, fl->node);
    flight_event(fl, err, false);
}

static void ask_node(struct flight *fl, uint64_t node)
{
    fl->node = node;
    if (!fl->path)
        fl->path = file_path(fl->call->f);
    struct msg *m = msg_new(MSG_FETCH);
    m->fetch.fid = fl->key.fid;
    m->fetch.index = fl->key.index;
    m->fetch.version = fl->key.version;
    m->fetch.path = fl->path ? fl->path : "";
    peer_request(node, m, T_SUSPECT, fl->chunk->data, fl->chunk->size, on_chunk, fl);
}

/* Asks the node whose turn it is; when all had theirs, or it is this node's, reads the PFS. */
static void ask(struct flight *fl)
{
    const struct view *v = members_view();
    if (former_is_redirected(fl->key.fid, fl->key.index)) {
        read_here(fl, true);
        return;
    }
    for (; v && fl->turn < TURNS; fl->turn++) {
        uint64_t node = ring_owner(ring_of(v), fl->key.fid, fl->key.index, fl->turn);
        if (!node)
            break;
        if (node == members_self()) {
            read_here(fl, false);
            return;
        }
        if (!members_suspected(node)) {
            ask_node(fl, node);
            return;
        }
    }
    read_here(fl, true);
}

static void fill(void *arg)
{
    struct flight *fl = arg;
    const struct chunk *c = fl->chunk;
    flight_filled(fl, store_fill(fl->file, fl->key.index, &fl->key.version, c->data, c->len,
                                 c->hash, false, c->racy));
    flight_put(fl);
}

static void answered(struct flight *fl)
{
    int err = fl->event_err ? fl->event_err : chunk_answer_check(fl->chunk, &fl->key, fl->node);
    if (!err) {
        credit(fl, FROM_PEER);
        flight_ref(fl);
        flight_done(fl, 0, FROM_PEER, true);
        filler_submit(fl->key.fid, fill, fl);
    } else if (err == -ESTALE || err == -ENOENT) {
        read_here(fl, true); /* it looked and had not what we want; our own look is the last word */
    } else {
        if (err != -EBADMSG && err != -EIO)
            members_doubt(fl->node);
        log_debug("FETCH at %s failed: %s: the next is asked", members_name(fl->node),
                  strerror(-err));
        fl->turn++;
        ask(fl);
    }
}

static void advance(struct flight *fl)
{
    if (fl->node)
        answered(fl);
    else if (fl->event_err == -ENOENT && fl->joined)
        read_here(fl, fl->fallback); /* that one only had a peer's path; we have the file */
    else
        flight_done(fl, fl->event_err, fl->chunk->from_peer ? FROM_PEER : FROM_PFS, !fl->event_err);
}

/* ---- one call ---- */

static void lead(struct flight *fl)
{
    struct call *call = fl->call;
    fl->file = file_ref(call->f);
    fl->waiter.done = on_origin;
    fl->waiter.filled = on_origin_filled;
    fl->waiter.early = call->range->buf ? on_early : NULL;
    if (!origin_cached(&fl->key, call->f, fl->chunk)) {
        flight_done(fl, 0, FROM_STORE, false); /* another flight ended since the caller looked */
        return;
    }
    call->leads++;
    ask(fl);
}

/* Its part of the range to the caller: how many bytes. */
static uint64_t hand_over(const struct flight *fl, const struct range *r)
{
    uint64_t begin = fl->key.index * store_chunk_size();
    uint64_t from = MAX(begin, r->off), to = MIN(begin + fl->chunk->len, r->end);
    memcpy(r->buf + (from - r->off), fl->chunk->data + (from - begin), to - from);
    return to - from;
}

/* One flight is done. */
static int take(const struct flight *fl, const struct range *r, bool led)
{
    if (fl->err)
        return fl->err;
    if (!r->buf)
        return fl->kept == -EBUSY ? -ESTALE : fl->kept;
    note_source(fl, r->from, led, hand_over(fl, r));
    return 0;
}

static bool wanted(struct file *f, const struct chunk_key *key, const struct range *r)
{
    uint64_t miss_off, miss_len;
    return r->buf || store_missing(f, key->index * store_chunk_size(), chunk_key_len(key),
                                   &miss_off, &miss_len);
}

struct part {
    struct flight *fl;
    bool led; /* by this call */
};

/* The flight of this chunk; false: there is no room for a new one now. */
static bool begin_part(struct call *call, const struct chunk_key *key, bool holds_room,
                       struct part *part)
{
    *part = (struct part){.fl = flight_find(key)};
    if (part->fl)
        return true;
    size_t size = store_chunk_size();
    struct chunk *c = holds_room ? chunk_try(ROOM_ASK, size) : chunk_new(ROOM_ASK, size);
    if (!c)
        return false;
    part->fl = flight_join(key, call, c, &part->led);
    if (part->led)
        lead(part->fl);
    else
        chunk_put(c);
    return true;
}

/* Begins or joins flights from chunk key->index on, as many as the window and the room allow.  *n
 * of them; moves index on. */
static void begin_window(struct call *call, struct chunk_key *key, uint64_t last,
                         const struct range *r, struct part *parts, unsigned *n)
{
    for (*n = 0; key->index <= last && *n < WINDOW; key->index++) {
        if (!wanted(call->f, key, r))
            continue;
        if (!begin_part(call, key, *n > 0, &parts[*n]))
            return;
        ++*n;
    }
}

/* Waits for the part and hands it over. */
static int take_part(struct part *p, const struct range *r)
{
    flight_wait(p->fl, !r->buf);
    int err = take(p->fl, r, p->led);
    flight_put(p->fl);
    p->fl = NULL;
    return err;
}

static struct part *part_of(struct part *parts, const struct flight *fl)
{
    while (parts->fl != fl)
        parts++;
    return parts;
}

/* The bytes are here, and not proved: the leader goes with its part. */
static void go_early(struct call *call, struct part *p, const struct range *r)
{
    if (!leave_flight(p->fl))
        return;
    call->leads--;
    uint64_t n = hand_over(p->fl, r);
    r->from->pfs += n;
    r->from->early += n;
    flight_put(p->fl);
    p->fl = NULL;
}

/* What has happened to one that the call leads. */
static int follow(struct call *call, struct part *parts, const struct range *r)
{
    bool early;
    struct flight *fl = next_event(call, &early);
    struct part *p = part_of(parts, fl);
    if (early) {
        go_early(call, p, r);
        return 0;
    }
    advance(fl);
    if (!fl->done)
        return 0;
    call->leads--;
    /* At once: the others are on their way meanwhile, and what was just checked is in the
     * processor's cache. */
    return r->buf ? take_part(p, r) : 0;
}

static int fetch_window(struct call *call, struct chunk_key *key, uint64_t last,
                        const struct range *r)
{
    struct part parts[WINDOW];
    unsigned n;
    int err = 0;
    begin_window(call, key, last, r, parts, &n);
    while (call->leads) {
        int e = follow(call, parts, r);
        err = err ? err : e;
    }
    for (unsigned i = 0; i < n; i++) {
        int e = parts[i].fl ? take_part(&parts[i], r) : 0;
        err = err ? err : e;
    }
    return err;
}

int fetch_range(struct file *f, const struct version *v, uint64_t off, size_t len, void *buf,
                size_t *got, struct fetched *from)
{
    struct fetched unused = {0};
    struct range r = {
        .off = off, .end = MIN(off + len, v->size), .buf = buf, .from = from ? from : &unused};
    if (got)
        *got = 0;
    if (off >= r.end)
        return 0;
    struct call call = {.f = f, .range = &r};
    lock_init(&call.lock, RANK_LEAF);
    lock_cond_init(&call.cond);
    struct chunk_key key = {.fid = f->fid, .index = off / store_chunk_size(), .version = *v};
    uint64_t last = (r.end - 1) / store_chunk_size();
    int err = 0;
    while (!err && key.index <= last)
        err = fetch_window(&call, &key, last, &r);
    pthread_cond_destroy(&call.cond);
    lock_destroy(&call.lock);
    if (!err && got)
        *got = r.end - off;
    return err;
}

void fetch_start(void)
{
    filler_start();
    serve_start();
}

void fetch_stop(void)
{
    serve_stop();
    working_stop();
    filler_stop();
}
