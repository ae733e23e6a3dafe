/* fetch.c - the reader's side of clean chunks.
 *
 * One flight per chunk (flight.h), however many readers want it.  All its steps run in its leader's
 * thread, which has nothing else to do.
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
 * A node whose turn is this one reads the PFS itself at once; a suspected one is passed over.  The
 * leader finishes all that it leads before it waits for what others lead, so two calls that want
 * each other's chunks do not wait in a circle; and it waits for buffer room only while it holds
 * none.
 */
#include "placement/chunks/fetch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "placement/chunks/chunk_answer.h"
#include "placement/chunks/filler.h"
#include "placement/chunks/flight.h"
#include "placement/chunks/former.h"
#include "placement/chunks/origin.h"
#include "placement/chunks/working.h"
#include "placement/ring/ring.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"
#include "transport/loop.h"
#include "transport/members.h"
#include "transport/peer.h"

#define WINDOW 8 /* chunks of one call that are under way at once */
#define TURNS  2 /* owner and next */

struct range {
    uint64_t off, end;
    uint8_t *buf; /* for byte `off`, or NULL */
    struct fetched *from;
};

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
        bool its_pfs = err == -EIO || err == -EACCES || err == -EPERM; /* it answers, and cannot read */
        if (err != -EBADMSG && !its_pfs)
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
    if (!flight_leave(p->fl))
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
    struct flight *fl = flight_next_event(call, &early);
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
