/* places.c - see places.h.  The rows have a lock, as readers and eviction ask for caretakers; the news wait in a list with a lock of
 * its own.  No thread holds both. */
#include "placement/chunks/places.h"

#include <stdlib.h>
#include <string.h>

#include "placement/chunks/rows.h"
#include "placement/chunks/owner.h"
#include "placement/ring/ring.h"
#include "transport/lock.h"
#include "transport/loop.h"
#include "transport/members.h"
#include "transport/peer.h"

_Static_assert(PLACES_MEMBERS == 2 + ROW_FEEDS, "with fewer there is nobody whom the owner cannot feed at once");
#define ROWS_MAX      4096 /* with all places 9 MiB, with 8 nodes 2 MiB */
#define NEWS_MAX      4096 /* that wait; what is more is left out */

struct news {
    uint64_t to;
    unsigned no; /* in the order in which they were told */
    bool of_shelf;
    union {
        struct item_place place;
        struct item_shelf shelf;
    };
};

static struct {
    struct loop_timer *timer; /* network thread */
    void (*on_shelf)(uint64_t from, const struct item_shelf *i);

    struct lock rows_lock; /* RANK_LEAF */
    struct rows *rows;     /* NULL: the view is too small, or there is none */

    struct lock lock; /* RANK_LEAF */
    struct news *news;
    unsigned n;
} places = {.rows_lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF},
            .lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}};

/* ---- the owner ---- */

static void set_rows(struct rows *rows)
{
    lock_take(&places.rows_lock);
    struct rows *old = places.rows;
    places.rows = rows;
    lock_drop(&places.rows_lock);
    rows_free(old);
}

void places_adopted(const struct view *v)
{
    set_rows(v && v->nmembers >= PLACES_MEMBERS ? rows_new(ROWS_MAX, v->nmembers) : NULL);
}

/* Can an asker be sent there? */
static bool is_reached(uint64_t node)
{
    const struct view *v = members_view();
    return v && view_member(v, node) && !members_suspected(node);
}

static uint64_t row_ask(const struct chunk_key *key, uint64_t asker)
{
    lock_take(&places.rows_lock);
    uint64_t to = places.rows ? rows_ask(places.rows, key, asker, boot_ms()) : 0;
    lock_drop(&places.rows_lock);
    return to;
}

static void row_failed(const struct chunk_key *key, uint64_t asker, uint64_t not_at)
{
    lock_take(&places.rows_lock);
    if (places.rows)
        rows_failed(places.rows, key, asker, not_at, boot_ms());
    lock_drop(&places.rows_lock);
}

static uint64_t send_where(const struct chunk_key *key, uint64_t asker)
{
    uint64_t to = row_ask(key, asker);
    if (!to)
        return 0;
    if (!is_reached(to)) {
        row_failed(key, asker, to);
        return 0;
    }
    count(redirects, 1);
    return to;
}

uint64_t places_ask(const struct msg *m, const struct chunk_key *key)
{
    const struct body_fetch *b = &m->fetch;
    uint64_t asker = m->head.sender;
    if (b->only_cached || b->way == FETCH_SENT || asker == members_self() ||
        !owner_is_here(key->fid, key->index))
        return 0;
    if (b->way == FETCH_ANY)
        return send_where(key, asker);
    if (b->not_at)
        row_failed(key, asker, b->not_at);
    return 0;
}

/* ---- the owner: who keeps what it has let go ---- */

static uint64_t caretaker_of(const struct chunk_key *key)
{
    lock_take(&places.rows_lock);
    uint64_t node = places.rows ? rows_caretaker(places.rows, key) : 0;
    lock_drop(&places.rows_lock);
    return node;
}

uint64_t places_caretaker(const struct chunk_key *key)
{
    uint64_t node = caretaker_of(key);
    return node && is_reached(node) ? node : 0;
}

bool places_owned(struct fid fid, uint64_t index)
{
    return owner_is_here(fid, index) && !places_caretaker(&(struct chunk_key){.fid = fid, .index = index});
}

uint64_t places_holder(const struct chunk_key *key)
{
    lock_take(&places.rows_lock);
    uint64_t node = places.rows ? rows_holder(places.rows, key, boot_ms()) : 0;
    lock_drop(&places.rows_lock);
    return node && is_reached(node) ? node : 0;
}

void places_set_caretaker(const struct chunk_key *key, uint64_t node)
{
    lock_take(&places.rows_lock);
    if (places.rows)
        rows_set_caretaker(places.rows, key, node);
    lock_drop(&places.rows_lock);
}

void places_lost(const struct chunk_key *key, uint64_t node)
{
    lock_take(&places.rows_lock);
    if (places.rows)
        rows_gone(places.rows, key->fid, key->index, node);
    lock_drop(&places.rows_lock);
}

/* ---- news of others ---- */

/* With rows_lock. */
static void take_news(const struct item_place *i, uint64_t from)
{
    struct chunk_key key = {.fid = i->fid, .index = i->index, .version = i->version};
    if (i->what == PLACE_HAS)
        rows_has(places.rows, &key, from);
    else
        rows_gone(places.rows, i->fid, i->index, from);
}

/* PLACES, network thread. */
static void on_places(struct msg *m)
{
    const struct body_places *b = &m->places;
    bool bad = b->chunks.n > PLACES_NEWS;
    for (uint32_t i = 0; !bad && i < b->chunks.n; i++)
        bad = b->chunks.v[i].what >= PLACE_NEWS;
    if (bad) {
        peer_refuse(m);
        return;
    }
    lock_take(&places.rows_lock);
    for (uint32_t i = 0; places.rows && i < b->chunks.n; i++)
        take_news(&b->chunks.v[i], m->head.sender);
    lock_drop(&places.rows_lock);
    msg_free(m);
}

/* SHELVES, network thread. */
static void on_shelves(struct msg *m)
{
    const struct body_shelves *b = &m->shelves;
    bool bad = b->shelves.n > PLACES_NEWS;
    for (uint32_t i = 0; !bad && i < b->shelves.n; i++)
        bad = b->shelves.v[i].what >= SHELF_NEWS;
    if (bad) {
        peer_refuse(m);
        return;
    }
    for (uint32_t i = 0; places.on_shelf && i < b->shelves.n; i++)
        places.on_shelf(m->head.sender, &b->shelves.v[i]);
    msg_free(m);
}

/* ---- news of this node ---- */

/* By node and kind; items of both the same stay in the order in which they were told. */
static int by_way(const void *a, const void *b)
{
    const struct news *x = a, *y = b;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    if (x->of_shelf != y->of_shelf)
        return x->of_shelf ? 1 : -1;
    return x->no < y->no ? -1 : x->no > y->no;
}

static void send_places(const struct news *news, unsigned n)
{
    struct item_place items[PLACES_NEWS];
    for (unsigned i = 0; i < n; i++)
        items[i] = news[i].place;
    struct msg *m = msg_new(MSG_PLACES);
    m->places.chunks.n = n;
    m->places.chunks.v = items;
    peer_send(news->to, m);
}

static void send_shelves(const struct news *news, unsigned n)
{
    struct item_shelf items[PLACES_NEWS];
    for (unsigned i = 0; i < n; i++)
        items[i] = news[i].shelf;
    struct msg *m = msg_new(MSG_SHELVES);
    m->shelves.shelves.n = n;
    m->shelves.shelves.v = items;
    peer_send(news->to, m);
}

/* Network thread. */
static void send_news(void *arg)
{
    (void)arg;
    lock_take(&places.lock);
    struct news *news = places.news;
    unsigned n = places.n;
    places.news = NULL;
    places.n = 0;
    lock_drop(&places.lock);
    if (n)
        qsort(news, n, sizeof(*news), by_way);
    for (unsigned i = 0, end; i < n; i = end) {
        for (end = i; end < n && end - i < PLACES_NEWS && news[end].to == news[i].to && news[end].of_shelf == news[i].of_shelf;
             end++)
            ;
        (news[i].of_shelf ? send_shelves : send_places)(news + i, end - i);
    }
    free(news);
}

static void arm(void *arg)
{
    (void)arg;
    if (!places.timer)
        places.timer = loop_timer_new(send_news, NULL);
    loop_timer_set(places.timer, NEWS_MS, 0);
}

static void tell(struct news item)
{
    lock_take(&places.lock);
    bool first = !places.n;
    if (!places.news)
        places.news = xmalloc(NEWS_MAX * sizeof(*places.news));
    if (places.n < NEWS_MAX) {
        item.no = places.n;
        places.news[places.n++] = item;
    }
    lock_drop(&places.lock);
    if (first)
        loop_post(arm, NULL);
}

static void tell_owner(const struct item_place *i)
{
    const struct view *v = members_view();
    uint64_t owner = v && v->nmembers >= PLACES_MEMBERS ? ring_owner(ring_of(v), i->fid, i->index, 0) : 0;
    if (owner && owner != members_self())
        tell((struct news){.to = owner, .place = *i});
}

void places_has(const struct chunk_key *key)
{
    tell_owner(&(struct item_place){key->fid, key->index, key->version, PLACE_HAS});
}

void places_left(struct fid fid, uint64_t index)
{
    lock_take(&places.rows_lock);
    if (places.rows)
        rows_owner_gone(places.rows, fid, index, boot_ms());
    lock_drop(&places.rows_lock);
    tell_owner(&(struct item_place){.fid = fid, .index = index, .what = PLACE_GONE});
}

void places_tell_shelf(uint64_t to, const struct item_shelf *i)
{
    if (to != members_self())
        tell((struct news){.to = to, .of_shelf = true, .shelf = *i});
}

void places_on_shelf(void (*fn)(uint64_t from, const struct item_shelf *i))
{
    places.on_shelf = fn;
}

/* ---- start and end ---- */

void places_start(void)
{
    peer_handle(MSG_PLACES, on_places);
    peer_handle(MSG_SHELVES, on_shelves);
}

static void stop(void *arg)
{
    (void)arg;
    if (places.timer)
        loop_timer_free(places.timer);
    places.timer = NULL;
    set_rows(NULL);
    free(places.news);
    places.news = NULL;
    places.n = 0;
}

void places_stop(void)
{
    loop_call(stop, NULL);
}
