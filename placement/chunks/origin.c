/* origin.c - single flight of PFS reads.
 *
 *   origin_read: is a read of this key under way? --yes--> wait with the others; if the bytes are
 *                     | no                                 there, and only being kept: take them
 *   pool_data:   in the store by now? --no--> is this node the owner since a change of view?
 *                     | yes                        | no                       | yes
 *                     |                            |  <--not there, silent--  ask the former owner
 *   pool_data:        |                       read the PFS, hash              | there: check
 *                     |                            v                          |
 *                     |                      give all the bytes <-------------'
 *                     v                            v
 *   filler:      leave the table, tell all <-- keep them
 *
 * The former owner answers from its store alone, and no thread waits for it here.
 *
 * Who asks after the read left the table begins a new one, which finds the chunk in the store.  So
 * between "not in the store" and "in the store" no second read can slip in.
 */
#include "placement/chunks/origin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "placement/chunks/chunk_answer.h"
#include "placement/chunks/filler.h"
#include "placement/chunks/former.h"
#include "placement/chunks/owner.h"
#include "placement/chunks/proof.h"
#include "placement/claims/home.h"
#include "placement/pfs/pfs_data.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"
#include "transport/hash.h"
#include "transport/loop.h"
#include "transport/members.h"
#include "transport/peer.h"

#define SHARDS     64
#define SILENCE_MS 3000 /* of the former owner */

struct origin {
    struct chunk_key key;
    struct origin *next;
    struct file *f; /* referenced, or NULL */
    char *path;
    struct version before; /* the store's when the read began */
    bool before_known;
    struct chunk *chunk;
    /* shard's lock */
    struct origin_waiter *waiters; /* to be told next: of the bytes, then of their being kept */
    bool read;                     /* chunk has the bytes */
    /* of who runs it */
    struct origin_waiter *stay;  /* given to: they wait for its being kept */
    int asked_err;               /* of the former owner */
    uint64_t asked;              /* ... which this is */
    struct home_moment began;    /* when the read of the PFS did */
    struct origin_waiter *first; /* who began it, if it wants the bytes early; NULL */
    bool given;                  /* ... and has them */
    struct unproven proof;
};

static struct shard {
    struct lock lock; /* RANK_FLIGHT */
    struct origin *list;
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

int origin_cached(const struct chunk_key *key, struct file *f, struct chunk *c)
{
    struct file_info info;
    store_info(f, &info);
    if (!info.base_known || !version_eq(&info.base, &key->version) || info.racy)
        return -ENOENT;
    c->racy = false;
    return store_get_chunk(f, key->index, &key->version, c->data, &c->len, &c->hash);
}

static void note_before(struct origin *o)
{
    struct file_info info = {0};
    if (o->f)
        store_info(o->f, &info);
    o->before = info.base;
    o->before_known = info.base_known;
}

/* Keeps what was just read.  The version is the PFS's, seen before and after the read: the store's
 * pages of the one that it had before, and racy ones, make way.  Not those of one that came
 * meanwhile: after a chmod all other chunks may be here under the newer version by now.  (-ESTALE)
 * Not if the file is dirty or claimed here: its base is the flush's business; nor if it is held.
 * (-EBUSY) */
static int keep(struct origin *o)
{
    struct chunk *c = o->chunk;
    if (former_is_redirected(o->key.fid, o->key.index))
        return -ENOSPC;
    if (!o->f) {
        int err = file_get(o->key.fid, o->path, &o->f);
        if (err)
            return err;
    }
    struct file_info info;
    store_info(o->f, &info);
    if (store_is_held(o->f) && !version_eq(&info.base, &o->key.version))
        return -EBUSY; /* who has it open may have no other way to its bytes (store_hold) */
    if (!info.base_known || !version_eq(&info.base, &o->key.version) || (info.racy && !c->racy)) {
        int err = store_follow_version(o->f, &o->key.version, o->before_known ? &o->before : NULL,
                                       NULL);
        if (err && !(err == -EBUSY && info.base_known && version_eq(&info.base, &o->key.version)))
            return err;
    }
    return store_fill(o->f, o->key.index, &o->key.version, c->data, c->len, c->hash,
                      owner_is_here(o->key.fid, o->key.index), c->racy);
}

static struct origin_waiter *take_waiters(struct origin *o)
{
    struct origin_waiter *all = o->waiters;
    o->waiters = NULL;
    return all;
}

/* Who comes from now on is not told. */
static struct origin_waiter *leave_table(struct origin *o)
{
    struct shard *s = shard_of(&o->key);
    lock_take(&s->lock);
    struct origin **p = &s->list;
    while (*p != o)
        p = &(*p)->next;
    *p = o->next;
    struct origin_waiter *all = take_waiters(o);
    lock_drop(&s->lock);
    return all;
}

/* Who comes from now on takes the bytes himself. */
static struct origin_waiter *say_read(struct origin *o)
{
    struct shard *s = shard_of(&o->key);
    lock_take(&s->lock);
    o->read = true;
    struct origin_waiter *all = take_waiters(o);
    lock_drop(&s->lock);
    return all;
}

/* Gives them the bytes, or the error.  Those that wait for `filled` as well stay; the others may be
 * gone. */
static void give(struct origin *o, int err, struct origin_waiter *w)
{
    for (struct origin_waiter *next; w; w = next) {
        next = w->next;
        bool stays = !err && w->filled;
        w->done(w, err, o->chunk);
        if (stays) {
            w->next = o->stay;
            o->stay = w;
        }
    }
}

static void tell_filled(struct origin_waiter *w, int kept)
{
    for (struct origin_waiter *next; w; w = next) {
        next = w->next;
        w->filled(w, kept);
    }
}

static void end(struct origin *o)
{
    chunk_put(o->chunk);
    if (o->f)
        file_put(o->f);
    free(o->path);
    free(o);
}

/* The file's filler. */
static void run_keep(void *arg)
{
    struct origin *o = arg;
    int kept = keep(o);
    tell_filled(leave_table(o), kept);
    tell_filled(o->stay, kept);
    end(o);
}

/* The bytes are here: they are given before they are kept. */
static void give_and_keep(struct origin *o)
{
    give(o, 0, say_read(o));
    filler_submit(o->key.fid, run_keep, o);
}

/* ---- from the PFS ---- */

/* What another node's flush writes meanwhile could make them bytes of no version. */
static void give_unproven(void *arg)
{
    struct origin *o = arg;
    if (o->chunk->len != chunk_key_len(&o->key) || !home_unclaimed_since(o->key.fid, &o->began))
        return;
    proof_begin(o->f, &o->proof);
    o->given = true;
    o->first->early(o->first, o->chunk);
}

/* pfs_read_chunk says -ESTALE for two things; tells them apart as origin.h does. */
static int explain(int err, const struct version *wanted, const struct version *now)
{
    if (err == -ESTALE)
        return version_eq(wanted, now) ? -ENOENT : -ESTALE;
    return err;
}

static int read_pfs(struct origin *o)
{
    struct chunk *c = o->chunk;
    struct version v = o->key.version;
    struct pfs_unproven u = {.here = give_unproven, .arg = o};
    int err = -ENOENT;
    bool unclaimed = home_unclaimed_here(o->key.fid, &o->began);
    if (o->f)
        err = explain(pfs_read_chunk(o->f, o->key.index, &v, c->data, &c->len, &c->racy,
                                     o->first && unclaimed ? &u : NULL),
                      &o->key.version, &v);
    if (err == -ENOENT && o->path && !o->given) {
        v = o->key.version;
        err = pfs_read_chunk_at(o->key.fid, o->path, o->key.index, &v, c->data, &c->len, &c->racy);
        err = explain(err, &o->key.version, &v);
    }
    if (!err && c->len != chunk_key_len(&o->key))
        err = -ESTALE; /* shorter than its version says: it is being truncated */
    if (o->given)
        proof_end(o->f, &o->proof, &o->key.version, err);
    return err;
}

static void run_pfs(struct origin *o)
{
    int err = read_pfs(o);
    if (err) {
        give(o, err, leave_table(o));
        end(o);
        return;
    }
    o->chunk->hash = data_hash(o->chunk->data, o->chunk->len);
    give_and_keep(o);
}

/* ---- the former owner ---- */

static void run_answered(void *arg)
{
    struct origin *o = arg;
    struct chunk *c = o->chunk;
    int err = o->asked_err ? o->asked_err : chunk_answer_check(c, &o->key, o->asked);
    if (members_no_contact(err))
        members_doubt(o->asked);
    else
        former_answered(o->asked, !err);
    if (err) {
        run_pfs(o);
        return;
    }
    c->from_peer = true;
    /* It is asked for by who has the file open in an older version, too, and may still have that. */
    if (o->before_known && o->before.ctime_ns > o->key.version.ctime_ns)
        o->before_known = false;
    count(former_bytes, c->len);
    give_and_keep(o);
}

/* Network thread. */
static void on_former(void *arg, int err, struct msg *reply, bool *keep)
{
    struct origin *o = arg;
    (void)keep;
    o->asked_err = err ? err : chunk_answer_take(o->chunk, &o->key, reply, o->asked);
    pool_submit(pool_data, run_answered, o);
}

static void ask_former(struct origin *o)
{
    struct msg *m = msg_new(MSG_FETCH);
    m->fetch.fid = o->key.fid;
    m->fetch.index = o->key.index;
    m->fetch.version = o->key.version;
    m->fetch.only_cached = 1;
    m->fetch.path = "";
    peer_request(o->asked, m, SILENCE_MS, o->chunk->data, o->chunk->size, on_former, o);
}

static void run(void *arg)
{
    struct origin *o = arg;
    if (!o->f)
        o->f = file_find(o->key.fid); /* another read may have made it meanwhile */
    if (o->f && !origin_cached(&o->key, o->f, o->chunk)) {
        give(o, 0, leave_table(o));
        tell_filled(o->stay, 0);
        end(o);
        return;
    }
    note_before(o);
    o->asked = owner_is_here(o->key.fid, o->key.index) ? former_owner(o->key.fid, o->key.index) : 0;
    if (o->asked)
        ask_former(o);
    else
        run_pfs(o);
}

bool origin_read(const struct chunk_key *key, struct file *f, const char *path, struct chunk *into,
                 struct origin_waiter *w)
{
    struct shard *s = shard_of(key);
    lock_take(&s->lock);
    struct origin *o = s->list;
    while (o && !chunk_key_eq(&o->key, key))
        o = o->next;
    bool joined = o;
    if (!joined) {
        o = xcalloc(1, sizeof(*o));
        o->key = *key;
        o->chunk = into;
        o->path = path ? xstrdup(path) : NULL;
        o->first = w->early ? w : NULL;
        o->next = s->list;
        s->list = o;
    }
    struct chunk *there = o->read ? chunk_ref(o->chunk) : NULL;
    if (!there || w->filled) {
        w->next = o->waiters;
        o->waiters = w;
    }
    lock_drop(&s->lock);

    if (joined) {
        chunk_put(into);
    } else {
        o->f = f ? file_ref(f) : NULL;
        pool_submit(pool_data, run, o);
    }
    if (there) {
        w->done(w, 0, there);
        chunk_put(there);
    }
    return joined;
}
