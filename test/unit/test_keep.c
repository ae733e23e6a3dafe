/* A node that needs room asks others to keep chunks, and is asked (placement/chunks/keep.h). */
#include <check.h>

#include "placement/chunks/keep.c"
#include "suite.h"

/* ---- the world around keep.c: node 1 is this one; a chunk's owner is index / 100 ---- */

struct times times = TIMES_DEFAULT;

static uint64_t suspected, holder[1000]; /* by index: a place; 0: none */
static struct chunk_name next[KEEP_ASKED];
static unsigned nnext, rounds, small;
static bool refuses[1000];         /* store_keep does */
static int kept_as[1000];          /* enum keep + 1 */
static uint64_t caretaker_of[1000];   /* as told to places.c */
static bool told_caretaker[1000];

const struct view *members_view(void)
{
    static struct view v;
    v.nmembers = PLACES_MEMBERS - small;
    return &v;
}

uint64_t members_self(void)
{
    return 1;
}

bool members_suspected(uint64_t id)
{
    return id == suspected;
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
    return index / 100;
}

bool owner_is_here(struct fid fid, uint64_t index)
{
    (void)fid;
    return index / 100 == 1;
}

uint64_t places_holder(const struct chunk_key *key)
{
    return holder[key->index];
}

void places_set_caretaker(const struct chunk_key *key, uint64_t node)
{
    ck_assert(!kept_as[key->index] || !node); /* readers know it before the copy may leave */
    caretaker_of[key->index] = node;
    told_caretaker[key->index] = true;
}

bool store_keep_version(struct fid fid, struct version *v)
{
    *v = (struct version){.size = 7};
    return fid.hi != 66;
}

bool store_keep(struct fid fid, uint64_t index, const struct version *v, enum keep how)
{
    (void)fid;
    ck_assert_uint_eq(v->size, 7);
    if (!refuses[index])
        kept_as[index] = (int)how + 1;
    return !refuses[index];
}

unsigned eviction_next_kept(struct chunk_name out[KEEP_ASKED])
{
    memcpy(out, next, sizeof(next));
    rounds++;
    return nnext;
}

static void (*is_short)(void);

void eviction_on_short(void (*fn)(void))
{
    is_short = fn;
}

void loop_post(void (*fn)(void *arg), void *arg)
{
    fn(arg);
}

void loop_call(void (*fn)(void *arg), void *arg)
{
    fn(arg);
}

static bool busy; /* the pool is: what is to be done waits */
static struct {
    void (*work)(void *arg), (*done)(void *arg);
    void *arg;
} job[KEEP_SERVED + 8];
static unsigned njobs;

void loop_work(void (*work)(void *arg), void (*done)(void *arg), void *arg)
{
    ck_assert_uint_lt(njobs, ARRAY_LEN(job));
    job[njobs].work = work;
    job[njobs].done = done;
    job[njobs++].arg = arg;
    while (!busy && njobs) {
        njobs--;
        job[njobs].work(job[njobs].arg);
        job[njobs].done(job[njobs].arg);
    }
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

static peer_handler handler;
static struct {
    uint64_t to, index[KEEP_ASKED];
    unsigned n;
    peer_reply_fn fn;
    void *arg;
} asked_of[8];
static unsigned nasked, refused;
static int64_t answered; /* bits of the last KEPT; -1: none */

void peer_handle(enum msg_type type, peer_handler fn)
{
    ck_assert_int_eq(type, MSG_KEEP);
    handler = fn;
}

uint64_t peer_request(uint64_t id, struct msg *m, uint32_t silence_ms, void *buf, size_t len, peer_reply_fn fn, void *arg)
{
    (void)silence_ms;
    (void)buf;
    (void)len;
    asked_of[nasked].to = id;
    asked_of[nasked].n = m->keep.chunks.n;
    for (unsigned i = 0; i < m->keep.chunks.n; i++)
        asked_of[nasked].index[i] = m->keep.chunks.v[i].index;
    asked_of[nasked].fn = fn;
    asked_of[nasked++].arg = arg;
    msg_free(m);
    return 1;
}

void peer_reply(const struct msg *to, struct msg *r)
{
    (void)to;
    answered = r->kept.kept;
    msg_free(r);
}

void peer_refuse(struct msg *m)
{
    refused++;
    msg_free(m);
}

static void do_nothing(void *arg)
{
    (void)arg;
}

static void begin(void)
{
    memset(&keep, 0, sizeof(keep));
    keep_start();
    answered = -1;
}

static void will_leave(const uint64_t *index, unsigned n)
{
    nnext = n;
    for (unsigned i = 0; i < n; i++)
        next[i] = (struct chunk_name){.fid = {1, 2}, .index = index[i]};
}

static void reply(unsigned i, int err, uint32_t bits)
{
    struct msg m = {.kept = {.kept = bits}};
    bool keeps = false;
    asked_of[i].fn(asked_of[i].arg, err, err ? NULL : &m, &keeps);
}

static uint32_t what; /* of each chunk of a KEEP */

static void be_asked(const uint64_t *index, unsigned n, bool wants)
{
    struct msg *m = msg_new(MSG_KEEP);
    m->head.sender = 5;
    m->head.flags = wants ? MSG_F_WANTS : 0;
    static struct item_place v[KEEP_ASKED + 1];
    for (unsigned i = 0; i < n; i++)
        v[i] = (struct item_place){.fid = {1, 2}, .index = index ? index[i] : i, .version = {.size = 7}, .what = what};
    m->keep.chunks.n = n;
    m->keep.chunks.v = v;
    handler(m);
}

/* ---- tests ---- */

START_TEST(an_owner_asks_who_has_it)
{
    begin();
    will_leave((uint64_t[]){101, 102, 103, 104}, 4);
    holder[101] = holder[103] = 7;
    holder[102] = 8;
    is_short();
    ck_assert_uint_eq(nasked, 2); /* nobody has 104 */
    ck_assert_uint_eq(asked_of[0].to, 7);
    ck_assert_uint_eq(asked_of[0].n, 2);
    ck_assert_uint_eq(asked_of[0].index[1], 103);
    ck_assert_uint_eq(asked_of[1].to, 8);
    reply(0, 0, 2); /* only 103 */
    ck_assert_int_eq(kept_as[103], 0); /* the round has not ended */
    reply(1, 0, 1);
    ck_assert_int_eq(kept_as[101], 0);
    ck_assert_int_eq(kept_as[102], KEEP_NOT + 1);
    ck_assert_int_eq(kept_as[103], KEEP_NOT + 1);
    ck_assert_uint_eq(caretaker_of[102], 8);
    ck_assert_uint_eq(caretaker_of[103], 7);
    ck_assert(!told_caretaker[101] && !told_caretaker[104]);
}
END_TEST

START_TEST(who_keeps_it_for_its_owner_asks_the_owner)
{
    begin();
    will_leave((uint64_t[]){301, 401}, 2);
    suspected = 4;
    is_short();
    ck_assert_uint_eq(nasked, 1); /* the other owner is suspected */
    ck_assert_uint_eq(asked_of[0].to, 3);
    reply(0, 0, 1);
    ck_assert_int_eq(kept_as[301], KEEP_NOT + 1);
    ck_assert(!told_caretaker[301]); /* the row is the owner's */
    ck_assert_int_eq(kept_as[401], 0);
}
END_TEST

START_TEST(silence_and_errors_let_nothing_go)
{
    begin();
    will_leave((uint64_t[]){101, 102}, 2);
    holder[101] = 7;
    holder[102] = 8;
    is_short();
    reply(0, -ETIMEDOUT, 0);
    reply(1, -ECONNRESET, 0);
    ck_assert_int_eq(kept_as[101], 0);
    ck_assert_int_eq(kept_as[102], 0);
    is_short(); /* the round has ended, but nobody kept anything */
    ck_assert_uint_eq(rounds, 1);
    keep.quiet = boot_ms();
    is_short();
    ck_assert_uint_eq(rounds, 2);
}
END_TEST

START_TEST(there_is_one_round_at_a_time)
{
    begin();
    will_leave((uint64_t[]){101}, 1);
    holder[101] = 7;
    is_short();
    is_short();
    ck_assert_uint_eq(rounds, 1);
    reply(0, 0, 1);
    kept_as[101] = 0;
    is_short();
    ck_assert_uint_eq(rounds, 2);
    ck_assert_uint_eq(nasked, 2);
    reply(1, 0, 1);
    small = 1; /* nobody has rows */
    is_short();
    ck_assert_uint_eq(rounds, 2);
}
END_TEST

START_TEST(what_this_node_asks_about_it_accepts_from_nobody)
{
    begin();
    will_leave((uint64_t[]){101}, 1);
    holder[101] = 7;
    is_short();
    be_asked((uint64_t[]){101, 102}, 2, true);
    ck_assert_int_eq(answered, 2);
    ck_assert_int_eq(kept_as[101], 0);
    reply(0, 0, 0);
    be_asked((uint64_t[]){101, 102}, 2, true);
    ck_assert_int_eq(answered, 3);
}
END_TEST

START_TEST(what_is_here_is_kept_for_its_owner)
{
    begin();
    refuses[202] = true; /* it is not here, say */
    be_asked((uint64_t[]){201, 202, 203}, 3, true);
    ck_assert_int_eq(answered, 5);
    ck_assert_int_eq(kept_as[201], KEEP_FOR_OWNER + 1);
    ck_assert(!told_caretaker[201]);
}
END_TEST

START_TEST(an_owner_takes_back_what_it_has)
{
    begin();
    refuses[102] = true;
    be_asked((uint64_t[]){101, 102}, 2, true);
    ck_assert_int_eq(answered, 1);
    ck_assert_int_eq(kept_as[101], KEEP_OWNED + 1);
    ck_assert(told_caretaker[101] && !caretaker_of[101]);
    ck_assert(!told_caretaker[102]);
}
END_TEST

START_TEST(nonsense_is_refused)
{
    begin();
    be_asked(NULL, 0, true);
    be_asked(NULL, KEEP_ASKED + 1, true);
    be_asked((uint64_t[]){201}, 1, false);
    ck_assert_uint_eq(refused, 3);
    what = 1;
    be_asked((uint64_t[]){201}, 1, true);
    what = 0;
    ck_assert_uint_eq(refused, 4);
    ck_assert_int_eq(answered, -1);
    be_asked(NULL, KEEP_ASKED, true);
    ck_assert_int_ge(answered, 0);
}
END_TEST

/* What waits for the pool is bounded, whoever asks; and what is refused for that is not kept. */
START_TEST(a_flood_of_questions_is_answered_no)
{
    begin();
    busy = true;
    for (unsigned i = 0; i < KEEP_SERVED; i++)
        be_asked((uint64_t[]){200 + i}, 1, true);
    ck_assert_int_eq(answered, -1);
    ck_assert_uint_eq(njobs, KEEP_SERVED);
    for (unsigned i = 0; i < 10000; i++) {
        answered = -1;
        be_asked((uint64_t[]){300, 301}, 2, true);
        ck_assert_int_eq(answered, 0);
    }
    ck_assert_uint_eq(njobs, KEEP_SERVED);
    ck_assert_int_eq(kept_as[300], 0);
    busy = false;
    be_asked((uint64_t[]){301}, 1, true); /* one too many still; then all are done */
    loop_work(do_nothing, do_nothing, NULL);
    be_asked((uint64_t[]){301}, 1, true);
    ck_assert_int_eq(answered, 1);
    ck_assert_uint_eq(keep.serving, 0);
}
END_TEST

START_TEST(nothing_begins_after_the_end)
{
    begin();
    will_leave((uint64_t[]){101}, 1);
    holder[101] = 7;
    is_short();
    keep_stop();
    ck_assert_ptr_null(is_short);
    reply(0, 0, 1); /* an answer that was on its way: nothing is let go, as the store may end */
    ck_assert_int_eq(kept_as[101], 0);
    keep_wanted();
    ck_assert_uint_eq(rounds, 1);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("all");
    tcase_add_test(t, an_owner_asks_who_has_it);
    tcase_add_test(t, who_keeps_it_for_its_owner_asks_the_owner);
    tcase_add_test(t, silence_and_errors_let_nothing_go);
    tcase_add_test(t, there_is_one_round_at_a_time);
    tcase_add_test(t, what_this_node_asks_about_it_accepts_from_nobody);
    tcase_add_test(t, what_is_here_is_kept_for_its_owner);
    tcase_add_test(t, an_owner_takes_back_what_it_has);
    tcase_add_test(t, nonsense_is_refused);
    tcase_add_test(t, a_flood_of_questions_is_answered_no);
    tcase_add_test(t, nothing_begins_after_the_end);
    return run_case("keep", t);
}
