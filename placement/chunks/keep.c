/* keep.c - see keep.h.
 *
 *   any thread       keep_wanted
 *   libuv's pool     which chunks leave next, and of which version they are
 *   network thread   who may have them, too: one KEEP to each node; the owner's row
 *   libuv's pool     what others keep is a replica now
 *
 * One round at a time.  What it asks about is its own until it has ended.
 */
#include "placement/chunks/keep.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "placement/chunks/chunk.h"
#include "placement/chunks/owner.h"
#include "placement/chunks/places.h"
#include "placement/ring/ring.h"
#include "placement/store/store_keep.h"
#include "transport/loop.h"
#include "transport/members.h"
#include "transport/peer.h"
#include "transport/times.h"

struct asked {
    struct chunk_key key;
    uint64_t node; /* that is asked; 0: nobody */
    bool kept;     /* by that node */
};

static struct {
    _Atomic bool wanted; /* a round is under way, or soon will be */
    _Atomic uint64_t quiet; /* boot_ms until when none begins */
    bool stopping;       /* network thread */
    unsigned serving;    /* KEEPs of others that are not answered yet; network thread */

    /* of the round, network thread; let_go reads it, too */
    struct asked chunk[KEEP_ASKED];
    unsigned n, waiting; /* answers */

    struct asked found[KEEP_ASKED]; /* find_next's */
    unsigned nfound;
} keep;

/* ---- a round ---- */

static void end_round(bool any)
{
    keep.n = 0;
    atomic_store(&keep.quiet, any ? 0 : boot_ms() + KEEP_QUIET_MS);
    atomic_store(&keep.wanted, false);
}

/* libuv's pool. */
static void find_next(void *arg)
{
    (void)arg;
    struct chunk_name next[KEEP_ASKED];
    unsigned n = eviction_next_kept(next);
    keep.nfound = 0;
    for (unsigned i = 0; i < n; i++) {
        struct asked *a = &keep.found[keep.nfound];
        *a = (struct asked){.key = {.fid = next[i].fid, .index = next[i].index}};
        keep.nfound += store_keep_version(next[i].fid, &a->key.version);
    }
}

/* libuv's pool. */
static void let_go(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < keep.n; i++) {
        const struct asked *a = &keep.chunk[i];
        if (a->kept && store_keep(a->key.fid, a->key.index, &a->key.version, KEEP_NOT))
            count(let_go, 1);
    }
}

static void on_let_go(void *arg)
{
    (void)arg;
    end_round(true);
}

/* All have answered. */
static void all_answered(void)
{
    bool any = false;
    for (unsigned i = 0; i < keep.n; i++) {
        const struct asked *a = &keep.chunk[i];
        if (a->kept && owner_is_here(a->key.fid, a->key.index))
            places_set_caretaker(&a->key, a->node);
        any |= a->kept;
    }
    if (any && !keep.stopping)
        loop_work(let_go, on_let_go, NULL);
    else
        end_round(false);
}

struct question {
    uint64_t node;
    unsigned n, at[KEEP_ASKED]; /* of the round's chunks */
};

static void on_kept(void *arg, int err, struct msg *reply, bool *keeps)
{
    (void)keeps;
    struct question *q = arg;
    for (unsigned i = 0; !err && i < q->n; i++)
        keep.chunk[q->at[i]].kept = reply->kept.kept >> i & 1;
    free(q);
    if (!--keep.waiting)
        all_answered();
}

/* The node that is to keep it in this one's place; 0: none is known. */
static uint64_t who_may(const struct chunk_key *key)
{
    const struct view *v = members_view();
    uint64_t owner = v ? ring_owner(ring_of(v), key->fid, key->index, 0) : 0;
    if (!owner || owner_is_here(key->fid, key->index))
        return places_holder(key);
    return owner == members_self() || members_suspected(owner) ? 0 : owner;
}

/* Asks the node of the chunk at `first` for all that it is to keep. */
static void ask(unsigned first)
{
    struct question *q = xcalloc(1, sizeof(*q));
    struct item_place items[KEEP_ASKED];
    q->node = keep.chunk[first].node;
    for (unsigned i = first; i < keep.n; i++)
        if (keep.chunk[i].node == q->node) {
            const struct chunk_key *k = &keep.chunk[i].key;
            items[q->n] = (struct item_place){.fid = k->fid, .index = k->index, .version = k->version};
            q->at[q->n++] = i;
        }
    struct msg *m = msg_new(MSG_KEEP);
    m->keep.chunks.n = q->n;
    m->keep.chunks.v = items;
    keep.waiting++;
    peer_request(q->node, m, T_SUSPECT, NULL, 0, on_kept, q);
}

static bool is_asked_before(unsigned i)
{
    for (unsigned k = 0; k < i; k++)
        if (keep.chunk[k].node == keep.chunk[i].node)
            return true;
    return false;
}

static void ask_all(void *arg)
{
    (void)arg;
    memcpy(keep.chunk, keep.found, sizeof(keep.chunk));
    keep.n = keep.nfound;
    for (unsigned i = 0; i < keep.n; i++)
        keep.chunk[i].node = who_may(&keep.chunk[i].key);
    keep.waiting = 1; /* no answer ends the round before all were asked */
    for (unsigned i = 0; i < keep.n && !keep.stopping; i++)
        if (keep.chunk[i].node && !is_asked_before(i))
            ask(i);
    if (!--keep.waiting)
        all_answered();
}

static void begin_round(void *arg)
{
    (void)arg;
    if (keep.stopping)
        end_round(false);
    else
        loop_work(find_next, ask_all, NULL);
}

void keep_wanted(void)
{
    const struct view *v = members_view();
    if (v && v->nmembers >= PLACES_MEMBERS && boot_ms() >= atomic_load(&keep.quiet) && !atomic_exchange(&keep.wanted, true))
        loop_post(begin_round, NULL);
}

/* ---- others ask ---- */

struct keeping {
    struct msg *m;
    uint32_t may, kept; /* bit i: of the i-th chunk */
    uint32_t owned;
};

/* Does this node ask another one about it? */
static bool is_asked_for(const struct item_place *p)
{
    for (unsigned i = 0; i < keep.n; i++) {
        const struct chunk_key *k = &keep.chunk[i].key;
        if (fid_eq(k->fid, p->fid) && k->index == p->index)
            return true;
    }
    return false;
}

/* libuv's pool. */
static void keep_them(void *arg)
{
    struct keeping *k = arg;
    const struct body_keep *b = &k->m->keep;
    for (uint32_t i = 0; i < b->chunks.n; i++) {
        const struct item_place *p = &b->chunks.v[i];
        bool owned = k->owned >> i & 1;
        if (k->may >> i & 1 && store_keep(p->fid, p->index, &p->version, owned ? KEEP_OWNED : KEEP_FOR_OWNER)) {
            k->kept |= 1u << i;
            count(singlets, !owned);
        }
    }
}

static void answer(void *arg)
{
    struct keeping *k = arg;
    const struct body_keep *b = &k->m->keep;
    for (uint32_t i = 0; i < b->chunks.n; i++)
        if (k->kept & k->owned & 1u << i) {
            const struct item_place *p = &b->chunks.v[i];
            places_set_caretaker(&(struct chunk_key){.fid = p->fid, .index = p->index, .version = p->version}, 0);
        }
    struct msg *r = msg_new(MSG_KEPT);
    r->kept.kept = k->kept;
    keep.serving--;
    peer_reply(k->m, r);
    msg_free(k->m);
    free(k);
}

static bool is_sane(const struct msg *m)
{
    const struct body_keep *b = &m->keep;
    bool sane = m->head.flags & MSG_F_WANTS && b->chunks.n && b->chunks.n <= KEEP_ASKED;
    for (uint32_t i = 0; sane && i < b->chunks.n; i++)
        sane = !b->chunks.v[i].what;
    return sane;
}

/* KEEP, network thread. */
static void on_keep(struct msg *m)
{
    const struct body_keep *b = &m->keep;
    if (!is_sane(m)) {
        peer_refuse(m);
        return;
    }
    struct keeping *k = xcalloc(1, sizeof(*k));
    k->m = m;
    keep.serving++;
    if (keep.serving > KEEP_SERVED) { /* nothing of it is kept */
        answer(k);
        return;
    }
    for (uint32_t i = 0; i < b->chunks.n; i++) {
        const struct item_place *p = &b->chunks.v[i];
        k->may |= (uint32_t)!is_asked_for(p) << i;
        k->owned |= (uint32_t)owner_is_here(p->fid, p->index) << i;
    }
    loop_work(keep_them, answer, k);
}

/* ---- start and end ---- */

void keep_start(void)
{
    keep.stopping = false;
    peer_handle(MSG_KEEP, on_keep);
    eviction_on_short(keep_wanted);
}

static void stop(void *arg)
{
    (void)arg;
    keep.stopping = true;
}

void keep_stop(void)
{
    eviction_on_short(NULL);
    loop_call(stop, NULL);
}
