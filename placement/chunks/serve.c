/* serve.c - the owner's side: answers FETCH.
 *
 *   network thread   checks the bounds.  If served.c has the file, and the chunk is in the page cache, so
 *                    that nothing must be waited for -> CHUNK; else hands over at once.  If this node owns a chunk
 *                    that is hot, another node has it -> ELSEWHERE (places.h)
 *   libuv's pool     the chunk is in the store, in this version -> CHUNK
 *                    it is there in another version of the same size -> serve pool, relabel
 *                    else -> flight_serve (pool_data), which answers all FETCHes that wait
 *   serve pool       relabel: asks the home whether the data is the same (a chmod or rename of the session
 *                    moved ctime), so that a dataset is not read again after `mv`
 *                    buffers: waits for one; pool_data, which serves this node, too, never waits
 *
 * Nothing here waits for a node that waits for this one.  The serve pool asks homes and claimants, which
 * answer in their network threads; a buffer becomes free when an answer has been sent.
 */
#include "placement/chunks/serve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "placement/chunks/chunk_answer.h"
#include "placement/chunks/fetch.h"
#include "placement/chunks/flight.h"
#include "placement/chunks/places.h"
#include "placement/chunks/served.h"
#include "placement/chunks/shelves_here.h"
#include "placement/chunks/working.h"
#include "placement/claims/claim.h"
#include "placement/pfs/pfs_fid.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"
#include "transport/complaint.h"
#include "transport/loop.h"
#include "transport/members.h"
#include "transport/peer.h"

#define SERVE_THREADS 4
/* To wake another thread costs more than to copy this many bytes.  A longer chunk would keep the network
 * thread from its other messages. */
#define NOW_MAX (256u << 10)

struct serving {
    struct msg *m; /* the FETCH */
    struct chunk_key key;
    struct working working;
    struct flight_peer waits;
    struct file *f;        /* referenced, or NULL */
    struct file_info info; /* of f */
    uint64_t looked;       /* flight_ended before info was got */
    bool labelled;         /* the home was asked */
    bool keep;             /* f had the chunk: served.c gets it at the end */
};

static struct pool *serve_pool;

/* ---- activity ---- */

static void (*activity_begin)(void), (*activity_end)(void);

void fetch_on_activity(void (*begin)(void), void (*end)(void))
{
    activity_begin = begin;
    activity_end = end;
}

/* ahead: of a FETCH for which no application waits, which is none. */
static void begin_activity(bool ahead)
{
    if (activity_begin && !ahead)
        activity_begin();
}

static void end_activity(bool ahead)
{
    if (activity_end && !ahead)
        activity_end();
}

/* ---- answers ---- */

static void end(struct serving *s)
{
    if (s->f && s->keep)
        served_keep(s->f);
    else if (s->f)
        file_put(s->f);
    bool ahead = s->m->fetch.ahead;
    msg_free(s->m);
    free(s);
    end_activity(ahead);
}

/* An asker that was sent here hears no WORKING: places.h says why. */
static bool is_sent(const struct serving *s)
{
    return s->m->fetch.way == FETCH_SENT;
}

static void works(struct serving *s)
{
    if (!is_sent(s))
        working_begin(&s->working, s->m);
}

static void works_no_more(struct serving *s)
{
    if (!is_sent(s))
        working_end(&s->working);
}

static void answer_error(struct serving *s, int err)
{
    works_no_more(s);
    peer_reply_error(s->m, err);
    end(s);
}

/* Takes over the reference to c. */
static void answer_chunk(struct serving *s, struct chunk *c, unsigned source)
{
    works_no_more(s);
    struct chunk *sent = chunk_ref(c);
    peer_reply(s->m, chunk_answer(&s->key, c, source));
    shelves_here_served(&s->key, sent);
    chunk_put(sent);
    end(s);
}

/* With -ENOENT the asker tries its own descriptor.  It gets that, too, for a file that only this node may not
 * read. */
static void on_flight(struct flight_peer *w, int err, struct chunk *c)
{
    struct serving *s = container_of(w, struct serving, waits);
    if (!err)
        answer_chunk(s, chunk_ref(c), CHUNK_FROM_PFS);
    else
        answer_error(s, err == -ESTALE || err == -EIO ? err : -ENOENT);
}

/* ---- one FETCH ---- */

/* A peer's path is a hint, and may be wrong or malicious; pfs_data resolves it below the root and checks the
 * fid. */
static bool path_is_sane(const char *p)
{
    if (!*p || *p == '/')
        return false;
    for (;;) {
        size_t n = strcspn(p, "/");
        if (!n || (n == 2 && !memcmp(p, "..", 2)))
            return false;
        p += n;
        if (!*p++)
            return true;
    }
}

static void look(struct serving *s)
{
    s->looked = flight_ended(s->key.fid);
    if (s->f)
        store_info(s->f, &s->info);
}

/* Takes over the buffer. */
static void serve_from_flight(struct serving *s, struct chunk *c)
{
    const char *path = s->m->fetch.path;
    struct flight_served w = {.key = s->key,
                              .file = s->f,
                              .path = path_is_sane(path) ? path : NULL,
                              .before = s->info.base,
                              .before_known = s->info.base_known,
                              .looked = s->looked};
    flight_serve(&w, c, &s->waits);
}

static bool is_stored(struct serving *s, struct chunk *c)
{
    s->keep = s->f && !flight_stored(&s->key, s->f, &s->info, c);
    return s->keep;
}

/* The asker was sent here, and the chunk was not in the store: it may be on its way, or has come meanwhile.  Takes over the
 * buffer. */
static void serve_sent(struct serving *s, struct chunk *c)
{
    uint64_t looked = s->looked;
    if (flight_serve_sent(&s->key, &s->waits)) {
        chunk_put(c);
        return;
    }
    look(s);
    if (s->looked != looked && is_stored(s, c)) {
        answer_chunk(s, c, 0);
        return;
    }
    chunk_put(c);
    answer_error(s, -ENOENT);
}

/* Serves from the store as look() saw it, or from a flight; takes over the buffer. */
static void serve_into(struct serving *s, struct chunk *c)
{
    if (is_stored(s, c)) {
        answer_chunk(s, c, 0);
    } else if (s->m->fetch.only_cached) {
        chunk_put(c);
        answer_error(s, -ENOENT);
    } else if (is_sent(s)) {
        serve_sent(s, c);
    } else {
        serve_from_flight(s, c);
    }
}

/* Serve pool. */
static void serve_with_room(void *arg)
{
    struct serving *s = arg;
    struct chunk *c = chunk_new(ROOM_SERVE, store_chunk_size());
    look(s);
    serve_into(s, c);
}

static void relabel(void *arg);

/* True: the store's copy may be the wanted data, under the version that it had before a chmod or rename. */
static bool may_relabel(const struct serving *s)
{
    const struct file_info *info = &s->info;
    return !s->labelled && !is_sent(s) && info->base_known && !version_eq(&info->base, &s->key.version) &&
           info->base.size == s->key.version.size && !info->dirty && !info->claimed;
}

/* True: this node has no way to the bytes. */
static bool is_unknown(const struct serving *s)
{
    return !s->f && (s->m->fetch.only_cached || !path_is_sane(s->m->fetch.path));
}

/* libuv's pool. */
static void serve(void *arg)
{
    struct serving *s = arg;
    if (!s->f)
        s->f = file_find(s->key.fid);
    look(s);
    if (may_relabel(s)) {
        pool_submit(serve_pool, relabel, s);
        return;
    }
    struct chunk *c = is_unknown(s) ? NULL : chunk_try(ROOM_SERVE, store_chunk_size());
    if (c)
        serve_into(s, c);
    else if (is_unknown(s) || s->m->fetch.only_cached)
        answer_error(s, -ENOENT); /* a new owner can read the PFS before a buffer becomes free here */
    else
        pool_submit(serve_pool, serve_with_room, s);
}

/* Network thread. */
static void serve_labelled(void *arg)
{
    struct serving *s = arg;
    working_begin(&s->working, s->m);
    loop_work(serve, NULL, s);
}

/* No WORKING is sent meanwhile: if the home does not answer, the asker must be able to go elsewhere. */
static void relabel(void *arg)
{
    struct serving *s = arg;
    struct location at;
    working_end(&s->working);
    look(s);
    int err = claim_where(s->key.fid, LOOK_NONE, &at);
    if (!err && at.where == WHERE_PFS && at.known == 2 &&
        version_eq(&at.version, &s->key.version) &&
        version_is_same(&s->info.base, &at.version, &at.same_as))
        /* if the store refuses this, the chunk is read again */
        store_follow_version(s->f, &at.version, &s->info.base, &at.same_as);
    s->labelled = true;
    loop_post(serve_labelled, s);
}

/* Answers if that needs no wait; false: it does. */
static bool serve_now(const struct msg *m, const struct chunk_key *key)
{
    struct file *f = chunk_key_len(key) <= NOW_MAX ? served_find(key->fid) : NULL;
    struct chunk *c = f ? chunk_try(ROOM_SERVE, store_chunk_size()) : NULL;
    if (!c)
        return false;
    c->racy = false;
    if (store_get_chunk_now(f, key->index, &key->version, c->data, &c->len, &c->hash)) {
        chunk_put(c);
        return false;
    }
    shelves_here_served(key, c);
    peer_reply(m, chunk_answer(key, c, 0));
    return true;
}

static void serve_in_pool(struct msg *m, const struct chunk_key *key)
{
    struct serving *s = xcalloc(1, sizeof(*s));
    s->m = m;
    s->key = *key;
    s->waits.done = on_flight;
    begin_activity(m->fetch.ahead);
    works(s);
    loop_work(serve, NULL, s);
}

/* True: the asker is sent to another node. */
static bool serve_elsewhere(const struct msg *m, const struct chunk_key *key)
{
    uint64_t node = places_ask(m, key);
    if (!node)
        return false;
    struct msg *r = msg_new(MSG_ELSEWHERE);
    r->elsewhere.fid = key->fid;
    r->elsewhere.index = key->index;
    r->elsewhere.version = key->version;
    r->elsewhere.node = node;
    peer_reply(m, r);
    return true;
}

/* FETCH, network thread. */
static void on_fetch(struct msg *m)
{
    struct chunk_key key = {
        .fid = m->fetch.fid, .index = m->fetch.index, .version = m->fetch.version};
    if (!(m->head.flags & MSG_F_WANTS) || fid_is_zero(key.fid) || key.version.size > INT64_MAX ||
        !chunk_key_len(&key) || m->fetch.way >= FETCH_WAYS) {
        complain_of_node(members_name(m->head.sender), "a FETCH for no chunk");
        if (m->head.flags & MSG_F_WANTS)
            peer_reply_error(m, -EINVAL);
        msg_free(m);
        count(bad_messages, 1);
        return;
    }
    bool ahead = m->fetch.ahead;
    begin_activity(ahead);
    if (serve_elsewhere(m, &key) || serve_now(m, &key))
        msg_free(m);
    else
        serve_in_pool(m, &key);
    end_activity(ahead);
}

void serve_start(void)
{
    served_start();
    serve_pool = pool_new("serve", SERVE_THREADS);
    peer_handle(MSG_FETCH, on_fetch);
}

void serve_stop(void)
{
    served_stop();
    pool_free(serve_pool);
    serve_pool = NULL;
}
