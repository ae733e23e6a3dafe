/* shelves_here.c - see shelves_here.h. */
#include "placement/chunks/shelves_here.h"

#include "placement/chunks/owner.h"
#include "placement/chunks/places.h"
#include "placement/ring/ring.h"
#include "placement/store/store_open.h"
#include "transport/members.h"
#include "transport/onesided.h"

#define SERVED 4096 /* chunks that were served lately, by a hash: a second one takes the place of the first */

/* Threads of pools may come with a chunk until the very end. */
static struct {
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t none;
    unsigned n;
    bool ended;
} users = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}, .none = PTHREAD_COND_INITIALIZER};

static struct {
    struct shelves *shelves;
    _Atomic uint64_t bytes; /* 0: no memory */
    void (*begin)(void), (*end)(void);
    _Atomic uint64_t served[SERVED];
} here;

/* False: there are no shelves, or not any more; else until unuse. */
static bool use(void)
{
    if (!here.bytes)
        return false;
    lock_take(&users.lock);
    bool may = !users.ended;
    users.n += may;
    lock_drop(&users.lock);
    return may;
}

static void unuse(void)
{
    lock_take(&users.lock);
    if (!--users.n)
        pthread_cond_broadcast(&users.none);
    lock_drop(&users.lock);
}

/* ---- news ---- */

static void tell(uint64_t owner, struct fid fid, uint64_t index, enum shelf_news what)
{
    struct item_shelf i = {.fid = fid, .index = index, .what = what, .node = members_self()};
    places_tell_shelf(owner, &i);
}

static uint64_t owner_of(struct fid fid, uint64_t index)
{
    const struct view *v = members_view();
    return v ? ring_owner(ring_of(v), fid, index, 0) : 0;
}

/* A chunk whose shelf was used again. */
static void left(struct fid fid, uint64_t index)
{
    uint64_t owner = owner_of(fid, index);
    if (owner && owner != members_self())
        tell(owner, fid, index, SHELF_GONE);
}

static void on_news(uint64_t from, const struct item_shelf *i)
{
    struct chunk_key key = {.fid = i->fid, .index = i->index, .version = i->version};
    struct shelf_place place = {.node = from, .token = i->token, .shelf = i->shelf};
    switch ((enum shelf_news)i->what) {
    case SHELF_HAS:
        if (chunk_key_len(&key) && owner_is_here(i->fid, i->index))
            shelves_join(here.shelves, &key, i->hash, chunk_key_len(&key), &place);
        break;
    case SHELF_GONE:
        shelves_leave(here.shelves, i->fid, i->index, i->node);
        break;
    default:
        shelves_used(here.shelves, &key);
        if (here.begin) {
            here.begin();
            here.end();
        }
    }
}

/* ---- chunks ---- */

/* True: *place has it now.  More than one thread may come with a chunk; one does it. */
static bool put(const struct chunk_key *key, const struct chunk *c, struct shelf_place *place)
{
    struct chunk_key gone;
    bool had = false, is = shelves_put(here.shelves, key, c->data, c->len, place, &had, &gone);
    if (had)
        left(gone.fid, gone.index);
    if (is)
        count(shelves_filled, 1);
    return is;
}

/* Was it served before, not long ago? */
static bool again(const struct chunk_key *key)
{
    uint64_t hash = chunk_key_hash(key) ^ key->version.size ^ (uint64_t)key->version.mtime_ns;
    uint64_t is = hash | 1;
    return atomic_exchange_explicit(&here.served[hash / 2 % SERVED], is, memory_order_relaxed) == is;
}

void shelves_here_served(const struct chunk_key *key, const struct chunk *c)
{
    struct shelf_place place;
    if (!here.bytes || c->racy || !again(key) || !owner_is_here(key->fid, key->index) || !use())
        return;
    if (put(key, c, &place) && !shelves_enter(here.shelves, key, c->hash, c->len, &place))
        shelves_drop(here.shelves, key->fid, key->index);
    unuse();
}

/* As many places as there are groups of nodes (rows.h): about the root of their number. */
static unsigned places_wanted(void)
{
    const struct view *v = members_view();
    unsigned n = 2;
    while (v && n < SHELF_PLACES && n * n < v->nmembers)
        n++;
    return n;
}

void shelves_here_got(const struct chunk_key *key, const struct chunk *c, uint64_t owner, unsigned nplaces)
{
    struct shelf_place place;
    if (nplaces >= places_wanted() || !use())
        return;
    bool is = put(key, c, &place);
    unuse();
    if (!is)
        return;
    struct item_shelf i = {.fid = key->fid, .index = key->index, .version = key->version, .what = SHELF_HAS,
                          .node = members_self(), .hash = c->hash, .token = place.token, .shelf = place.shelf};
    places_tell_shelf(owner, &i);
}

void shelves_here_left(struct fid fid, uint64_t index)
{
    if (!use())
        return;
    shelves_strike(here.shelves, fid, index);
    bool dropped = shelves_drop(here.shelves, fid, index);
    unuse();
    if (dropped)
        left(fid, index);
}

void shelves_here_adopted(const struct view *v)
{
    if (!use())
        return;
    shelves_keep_members(here.shelves, v);
    unuse();
}

void shelves_here_figures(struct shelves_figures *out)
{
    *out = (struct shelves_figures){.bytes = here.bytes};
    if (!use())
        return;
    out->shelves = shelves_shape_of(here.shelves)->nshelves;
    out->in_use = shelves_in_use(here.shelves);
    unuse();
}

/* ---- start and end ---- */

void shelves_here_on_activity(void (*begin)(void), void (*end)(void))
{
    here.begin = begin;
    here.end = end;
}

void shelves_here_start(uint64_t self)
{
    size_t len;
    void *memory = onesided_memory(&len);
    here.shelves = memory ? shelves_new(memory, len, store_chunk_size(), self) : NULL;
    users.ended = false;
    here.bytes = here.shelves ? len : 0;
    if (here.shelves)
        places_on_shelf(on_news);
}

void shelves_here_stop(void)
{
    places_on_shelf(NULL);
    lock_take(&users.lock);
    users.ended = true;
    while (users.n)
        lock_wait(&users.lock, &users.none, 0);
    lock_drop(&users.lock);
    shelves_free(here.shelves);
    here.shelves = NULL;
    here.bytes = 0;
    here.begin = here.end = NULL;
}
