/* What an owner answers to askers of a hot chunk, and the news that go to owners (placement/chunks/places.h). */
#include <check.h>

#include "placement/chunks/places.c"
#include "placement/chunks/rows.c"
#include "suite.h"

/* ---- the world around places.c: node 1 is this one; a chunk's owner is its index ---- */

static struct member members[8] = {{.id = 1}, {.id = 2}, {.id = 3}, {.id = 4}, {.id = 5}, {.id = 6}, {.id = 7}, {.id = 8}};
static struct view view;
static uint64_t suspected;

bool chunk_key_eq(const struct chunk_key *a, const struct chunk_key *b)
{
    return a->index == b->index && fid_eq(a->fid, b->fid) && version_eq(&a->version, &b->version);
}

uint64_t chunk_key_hash(const struct chunk_key *k)
{
    return k->fid.lo ^ k->index;
}

const struct view *members_view(void)
{
    return &view;
}

uint64_t members_self(void)
{
    return 1;
}

bool members_suspected(uint64_t id)
{
    return id == suspected;
}

const struct member *view_member(const struct view *v, uint64_t id)
{
    for (uint32_t i = 0; i < v->nmembers; i++)
        if (v->members[i].id == id)
            return &v->members[i];
    return NULL;
}

const struct ring *ring_of(const struct view *v)
{
    (void)v;
    return NULL;
}

uint64_t ring_owner(const struct ring *r, struct fid fid, uint64_t index, unsigned n)
{
    (void)r;
    (void)fid;
    (void)n;
    return index;
}

bool owner_is_here(struct fid fid, uint64_t index)
{
    (void)fid;
    return index == 1;
}

/* The network thread is this one; the timer rings when the test says so. */
static bool armed;
static void (*on_time)(void *arg);

void loop_post(void (*fn)(void *arg), void *arg)
{
    fn(arg);
}

void loop_call(void (*fn)(void *arg), void *arg)
{
    fn(arg);
}

struct loop_timer *loop_timer_new(void (*fn)(void *arg), void *arg)
{
    (void)arg;
    on_time = fn;
    return (struct loop_timer *)(void *)&on_time;
}

void loop_timer_set(struct loop_timer *t, uint64_t first_ms, uint64_t repeat_ms)
{
    (void)t;
    ck_assert_uint_eq(first_ms, NEWS_MS);
    ck_assert_uint_eq(repeat_ms, 0);
    armed = true;
}

void loop_timer_free(struct loop_timer *t)
{
    (void)t;
}

static void ring(void)
{
    ck_assert(armed);
    armed = false;
    on_time(NULL);
}

static struct {
    uint64_t to[64];
    unsigned items[64], n, refused;
    unsigned type[64];
    struct item_place first; /* of the last message */
    struct item_shelf first_shelf;
} sent;
static peer_handler handler, shelves_handler;

void peer_send(uint64_t id, struct msg *m)
{
    ck_assert_uint_lt(sent.n, 64);
    bool places = m->head.type == MSG_PLACES;
    ck_assert(places || m->head.type == MSG_SHELVES);
    sent.to[sent.n] = id;
    sent.type[sent.n] = m->head.type;
    sent.items[sent.n++] = places ? m->places.chunks.n : m->shelves.shelves.n;
    if (places)
        sent.first = m->places.chunks.v[0];
    else
        sent.first_shelf = m->shelves.shelves.v[0];
    free(m);
}

void peer_handle(enum msg_type type, peer_handler fn)
{
    ck_assert(type == MSG_PLACES || type == MSG_SHELVES);
    *(type == MSG_PLACES ? &handler : &shelves_handler) = fn;
}

void peer_refuse(struct msg *m)
{
    sent.refused++;
    free(m);
}

struct msg *msg_new(enum msg_type type)
{
    struct msg *m = xcalloc(1, sizeof(*m));
    m->head.type = (uint16_t)type;
    return m;
}

void msg_free(struct msg *m)
{
    free(m);
}

static void begin(unsigned nodes)
{
    view = (struct view){.number = 1, .nmembers = nodes, .members = members};
    memset(&sent, 0, sizeof(sent));
    suspected = 0;
    places_start();
    places_adopted(&view);
}

/* Where the owner sends this node. */
static uint64_t ask(uint64_t node, uint64_t index, enum fetch_way way, uint64_t not_at)
{
    struct msg m = {.head.sender = node};
    struct chunk_key key = {.fid = {1, 2}, .index = index, .version = {.size = 1 << 30}};
    m.fetch.way = (uint8_t)way;
    m.fetch.not_at = not_at;
    return places_ask(&m, &key);
}

/* One item of news comes from this node. */
static void hear(uint64_t node, uint8_t what, uint32_t n)
{
    static struct item_place items[PLACES_NEWS + 1];
    for (uint32_t i = 0; i < n; i++)
        items[i] = (struct item_place){.fid = {1, 2}, .index = 1, .version = {.size = 1 << 30}, .what = what};
    struct msg *m = msg_new(MSG_PLACES);
    m->head.sender = node;
    m->places.chunks.n = n;
    m->places.chunks.v = items;
    handler(m);
}

/* ---- tests ---- */

START_TEST(the_third_is_sent_elsewhere)
{
    begin(8);
    ck_assert_uint_eq(ask(2, 1, FETCH_ANY, 0), 0);
    ck_assert_uint_eq(ask(3, 1, FETCH_ANY, 0), 0);
    uint64_t to = ask(4, 1, FETCH_ANY, 0);
    ck_assert(to == 2 || to == 3);
    ck_assert_uint_eq(ask(4, 1, FETCH_HERE, to), 0);
    for (uint64_t node = 5; node <= 8; node++)
        ck_assert_uint_ne(ask(node, 1, FETCH_ANY, 0), to); /* it did not have it */
    places_stop();
}
END_TEST

START_TEST(of_others_chunks_and_in_small_views_all_is_answered_here)
{
    begin(8);
    for (uint64_t node = 2; node <= 8; node++) {
        ck_assert_uint_eq(ask(node, 2, FETCH_ANY, 0), 0);
        ck_assert_uint_eq(ask(node, 1, FETCH_SENT, 0), 0);
        ck_assert_uint_eq(ask(node, 1, FETCH_HERE, 0), 0);
    }
    places_stop();
    begin(3);
    for (unsigned i = 0; i < 10; i++)
        ck_assert_uint_eq(ask(2 + i % 2, 1, FETCH_ANY, 0), 0);
    places_stop();
}
END_TEST

START_TEST(nobody_is_sent_to_a_suspected_node)
{
    begin(8);
    ask(2, 1, FETCH_ANY, 0);
    suspected = 2;
    for (uint64_t node = 3; node <= 8; node++)
        ck_assert_uint_ne(ask(node, 1, FETCH_ANY, 0), 2);
    places_stop();
}
END_TEST

START_TEST(a_new_view_has_no_rows)
{
    begin(8);
    ask(2, 1, FETCH_ANY, 0);
    ask(3, 1, FETCH_ANY, 0);
    places_adopted(&view);
    ck_assert_uint_eq(ask(4, 1, FETCH_ANY, 0), 0);
    places_adopted(NULL);
    ck_assert_uint_eq(ask(5, 1, FETCH_ANY, 0), 0);
    hear(5, PLACE_HAS, 1);
    places_stop();
}
END_TEST

START_TEST(news_are_heard_and_nonsense_is_refused)
{
    begin(8);
    ask(2, 1, FETCH_ANY, 0);
    ask(3, 1, FETCH_ANY, 0);
    hear(3, PLACE_HAS, 1);
    ck_assert_uint_eq(ask(4, 1, FETCH_ANY, 0), 3);
    hear(3, PLACE_GONE, 1);
    for (uint64_t node = 5; node <= 8; node++)
        ck_assert_uint_ne(ask(node, 1, FETCH_ANY, 0), 3);
    ck_assert_uint_eq(sent.refused, 0);
    hear(2, PLACE_NEWS, 1);
    hear(2, PLACE_HAS, PLACES_NEWS + 1);
    ck_assert_uint_eq(sent.refused, 2);
    places_stop();
}
END_TEST

START_TEST(news_go_in_batches_to_each_owner)
{
    begin(8);
    for (uint64_t i = 0; i < 1500; i++) {
        struct chunk_key key = {.fid = {i, 2}, .index = 1 + i % 3};
        places_has(&key);
    }
    ck_assert_uint_eq(sent.n, 0);
    ring();
    ck_assert_uint_eq(sent.n, 2); /* of 500 items; nothing to this node */
    ck_assert(sent.to[0] == 2 && sent.to[1] == 3);
    ck_assert_uint_eq(sent.items[0], 500);
    ck_assert(!armed);
    places_left((struct fid){5, 6}, 4);
    ring();
    ck_assert_uint_eq(sent.n, 3);
    ck_assert(sent.to[2] == 4 && sent.first.what == PLACE_GONE && fid_eq(sent.first.fid, (struct fid){5, 6}));
    places_stop();
}
END_TEST

START_TEST(news_are_bounded_and_in_order)
{
    begin(8);
    for (uint64_t i = 0; i < 2 * NEWS_MAX; i++) {
        struct chunk_key key = {.fid = {i, 2}, .index = 2};
        places_has(&key);
    }
    ring();
    ck_assert_uint_eq(sent.n, NEWS_MAX / PLACES_NEWS);
    for (unsigned i = 0; i < sent.n; i++)
        ck_assert_uint_eq(sent.items[i], PLACES_NEWS);
    ck_assert_uint_eq(sent.first.fid.hi, NEWS_MAX - PLACES_NEWS);
    places_stop();
}
END_TEST

/* ---- shelves ---- */

static struct {
    unsigned n;
    uint64_t from;
    struct item_shelf last;
} heard;

static void on_shelf(uint64_t from, const struct item_shelf *i)
{
    heard.n++;
    heard.from = from;
    heard.last = *i;
}

static void hear_shelves(uint64_t node, uint8_t what, uint32_t n)
{
    static struct item_shelf items[PLACES_NEWS + 1];
    for (uint32_t i = 0; i < n; i++)
        items[i] = (struct item_shelf){.fid = {1, 2}, .index = i, .what = what, .node = node, .token = 7};
    struct msg *m = msg_new(MSG_SHELVES);
    m->head.sender = node;
    m->shelves.shelves.n = n;
    m->shelves.shelves.v = items;
    shelves_handler(m);
}

START_TEST(news_of_shelves_are_heard_and_nonsense_is_refused)
{
    begin(2); /* also in a view that has no rows */
    hear_shelves(2, SHELF_HAS, 1); /* nobody takes it */
    places_on_shelf(on_shelf);
    hear_shelves(2, SHELF_USED, 3);
    ck_assert(heard.n == 3 && heard.from == 2 && heard.last.index == 2 && heard.last.what == SHELF_USED && heard.last.token == 7);
    hear_shelves(2, SHELF_NEWS, 1);
    hear_shelves(2, SHELF_HAS, PLACES_NEWS + 1);
    ck_assert_uint_eq(heard.n, 3);
    ck_assert_uint_eq(sent.refused, 2);
    places_on_shelf(NULL);
    places_stop();
}
END_TEST

START_TEST(news_of_shelves_go_with_the_other_news)
{
    begin(8);
    for (uint64_t i = 0; i < 600; i++) {
        struct item_shelf s = {.fid = {i, 2}, .index = i, .what = SHELF_GONE};
        struct chunk_key key = {.fid = {i, 2}, .index = 3};
        places_tell_shelf(3, &s);
        places_tell_shelf(members_self(), &s); /* nothing to this node */
        if (i < 10)
            places_has(&key);
    }
    ring();
    ck_assert_uint_eq(sent.n, 3); /* which also owns the chunks of index 3 */
    ck_assert(sent.type[0] == MSG_PLACES && sent.type[1] == MSG_SHELVES && sent.type[2] == MSG_SHELVES);
    ck_assert(sent.to[0] == 3 && sent.to[1] == 3 && sent.to[2] == 3);
    ck_assert(sent.items[0] == 10 && sent.items[1] == PLACES_NEWS && sent.items[2] == 600 - PLACES_NEWS);
    ck_assert(sent.first_shelf.index == PLACES_NEWS && sent.first_shelf.what == SHELF_GONE);
    places_stop();
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("all");
    tcase_add_test(t, the_third_is_sent_elsewhere);
    tcase_add_test(t, of_others_chunks_and_in_small_views_all_is_answered_here);
    tcase_add_test(t, nobody_is_sent_to_a_suspected_node);
    tcase_add_test(t, a_new_view_has_no_rows);
    tcase_add_test(t, news_are_heard_and_nonsense_is_refused);
    tcase_add_test(t, news_go_in_batches_to_each_owner);
    tcase_add_test(t, news_are_bounded_and_in_order);
    tcase_add_test(t, news_of_shelves_are_heard_and_nonsense_is_refused);
    tcase_add_test(t, news_of_shelves_go_with_the_other_news);
    return run_case("places", t);
}
