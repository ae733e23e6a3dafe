/* test_home_copy.c - COPY of all records to next, piece by piece: what is sent, what is taken, and
 * what becomes of it when a piece is lost, comes twice, or the view changes in between.  The test is
 * the network, and the other side. */
#include "placement/claims/home_int.h"
#include "placement/ring/ring.h"
#include "transport/members_int.h"
#include "transport/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

/* ---- the network ---- */

static struct {
    struct msg *m; /* as it came out at the other end: the last request */
    size_t len;
    uint32_t requests;
    peer_reply_fn fn;
    void *arg;
    enum msg_type reply; /* the last one, with its piece */
    uint32_t piece;
    void (*later)(void *arg), (*drop)(void *arg);
    void *later_arg;
} net;

static uint64_t fake_request(uint64_t id, struct msg *m, uint32_t silence_ms, void *recv_buf,
                             size_t recv_len, peer_reply_fn fn, void *arg)
{
    void *wire;
    (void)id, (void)silence_ms, (void)recv_buf, (void)recv_len;
    m->head.view = home.view->number;
    m->head.sender = members_self();
    m->head.incarnation = 1;
    if (msg_encode(m, &wire, &net.len))
        die("a message cannot be encoded");
    msg_free(m);
    msg_free(net.m);
    net.m = NULL;
    if (msg_decode(wire, net.len, &net.m, NULL))
        die("a message cannot be decoded");
    free(wire);
    net.fn = fn;
    net.arg = arg;
    return ++net.requests;
}

static void fake_reply(const struct msg *to, struct msg *r)
{
    (void)to;
    net.reply = r->head.type;
    net.piece = net.reply == MSG_NEXT_PIECE ? r->next_piece.piece : 0;
    msg_free(r);
}

static void fake_later(void (*fn)(void *arg), void (*drop)(void *arg), void *arg)
{
    net.later = fn;
    net.drop = drop;
    net.later_arg = arg;
}

static void fake_arm(uint64_t ms)
{
    (void)ms;
}

static void fake_doubt(uint64_t id)
{
    (void)id;
}

#define home_arm      fake_arm
#define peer_request  fake_request
#define peer_reply    fake_reply
#define home_later    fake_later
#define members_doubt fake_doubt
#include "placement/claims/home_copy.c"
#include "placement/claims/record.c"
#include "transport/view.h"
#undef peer_request
#undef peer_reply
#undef home_later
#undef members_doubt
#undef home_arm

#include "suite.h"

/* ---- the nodes: 1 and 2, and the files of which 1 is home ---- */

#define FILES 10000
#define MANY  3000000

static struct member members[2] = {{.id = 1, .incarnation = 1, .weight = 100},
                                   {.id = 2, .incarnation = 1, .weight = 100}};
static struct view view = {.number = 5, .nmembers = 2, .members = members},
                   later_view = {.number = 6, .nmembers = 2, .members = members};
static bool acked[2];
static uint32_t copied_from[2];

static void become(uint64_t id, const struct view *v)
{
    members_st.cfg.self.id = id;
    home = (struct home_state){
        .view = v, .ring = ring_of(v), .complete = true, .acked = acked, .copied = copied_from};
}

static void begin(void)
{
    become(1, &view);
}

static bool every(const struct record *r, void *arg)
{
    (void)r;
    (void)arg;
    return true;
}

static void end(void)
{
    record_sweep(every, NULL);
    msg_free(net.m);
    collect_stop();
}

/* The next file from *i on of which node 1 is home. */
static struct fid file_of_1(uint64_t *i)
{
    for (;;) {
        struct fid fid = {*i * 0x9e3779b97f4a7c15u, *i};
        ++*i;
        if (ring_home(home.ring, fid, 0) == 1)
            return fid;
    }
}

static struct record *add_record(struct fid fid, uint64_t number)
{
    struct record *r = record_make(fid);
    r->claimant = 2;
    r->number_inc = 1;
    r->number = number;
    r->stamp_view = home.view->number;
    return r;
}

static void add_records(uint32_t n)
{
    uint64_t i = 0;
    for (uint32_t k = 0; k < n; k++)
        add_record(file_of_1(&i), k + 1);
}

static void answer(enum msg_type type, uint32_t piece, int err)
{
    struct msg *r = msg_new(type);
    bool keep = false;
    if (type == MSG_NEXT_PIECE)
        r->next_piece.piece = piece;
    net.fn(net.arg, err, err ? NULL : r, &keep);
    msg_free(r);
}

static void again(void)
{
    void (*fn)(void *arg) = net.later;
    ck_assert_ptr_nonnull(fn);
    net.later = NULL;
    fn(net.later_arg);
}

static const struct body_copy *piece(void)
{
    return &net.m->copy;
}

static bool is_acked(void)
{
    return acked[1];
}

/* ---- the home's side ---- */

START_TEST(all_records_go_in_pieces_and_only_the_end_counts)
{
    uint32_t n = 0, number = 0;
    add_records(FILES);
    home_copy_all(&view);
    for (;; number++) {
        ck_assert_uint_eq(piece()->piece, number);
        ck_assert_uint_eq(piece()->first, 1);
        ck_assert_uint_le(piece()->records.n, MSG_PIECE_ITEMS);
        ck_assert_uint_le(net.len, 256 << 10);
        ck_assert(!is_acked());
        n += piece()->records.n;
        if (!piece()->more)
            break;
        answer(MSG_NEXT_PIECE, number + 1, 0);
    }
    ck_assert_uint_eq(n, FILES);
    ck_assert_uint_eq(number, (FILES - 1) / MSG_PIECE_ITEMS);
    answer(MSG_COPIED, 0, 0);
    ck_assert(is_acked());
    ck_assert_uint_eq(net.requests, number + 1);
}
END_TEST

START_TEST(without_records_one_piece_says_so)
{
    home_copy_all(&view);
    ck_assert(piece()->first && !piece()->more && !piece()->records.n);
    answer(MSG_COPIED, 0, 0);
    ck_assert(is_acked());
}
END_TEST

static bool is_of_first_half(const struct record *r, void *arg)
{
    (void)arg;
    return r->number <= FILES / 2;
}

/* Records that were forgotten when a piece went are there again when it goes once more: it does not become
 * longer than a piece, and no file is left out. */
START_TEST(a_piece_that_goes_again_is_no_longer_than_a_piece)
{
    static bool sent[FILES + 1];
    uint32_t number = 0, missing = 0;
    add_records(FILES);
    home_copy_all(&view);
    struct copy *c = net.arg;
    c->upto = c->at; /* as if the sweep had come before the first piece */
    record_sweep(is_of_first_half, NULL);
    send_piece(c);
    ck_assert_uint_eq(piece()->records.n, MSG_PIECE_ITEMS);
    add_records(FILES);
    answer(MSG_COPIED, 0, -ETIMEDOUT);
    again();
    ck_assert_uint_eq(piece()->piece, 0);
    for (;;) {
        ck_assert_uint_le(piece()->records.n + piece()->locks.n, MSG_PIECE_ITEMS);
        for (uint32_t i = 0; i < piece()->records.n; i++)
            sent[piece()->records.v[i].number] = true;
        if (!piece()->more)
            break;
        answer(MSG_NEXT_PIECE, ++number, 0);
    }
    answer(MSG_COPIED, 0, 0);
    ck_assert(is_acked());
    for (uint32_t i = 1; i <= FILES; i++)
        missing += !sent[i];
    ck_assert_uint_eq(missing, 0);
}
END_TEST

/* The answer was lost; meanwhile a record of the piece has got more locks. */
START_TEST(a_piece_that_goes_again_has_no_other_files)
{
    struct held_lock l = {.node = 2, .incarnation = 1, .end = 9};
    add_records(FILES);
    home_copy_all(&view);
    struct fid first = piece()->records.v[0].fid,
               last = piece()->records.v[piece()->records.n - 1].fid;
    for (l.owner = 1; l.owner < 100; l.owner++)
        lock_add(&record_find(first)->locks, &l);
    answer(MSG_COPIED, 0, -ETIMEDOUT);
    again();
    ck_assert_uint_eq(piece()->piece, 0);
    ck_assert_uint_eq(piece()->records.n, MSG_PIECE_ITEMS - 99);
    ck_assert_uint_eq(piece()->locks.n, 99);
    ck_assert(fid_eq(piece()->records.v[0].fid, first));
    answer(MSG_NEXT_PIECE, 1, 0);
    ck_assert_uint_eq(piece()->piece, 1);
    ck_assert_uint_eq(piece()->records.n, MSG_PIECE_ITEMS);
    ck_assert(fid_eq(piece()->records.v[98].fid, last));
    answer(MSG_NEXT_PIECE, 2, 0);
    ck_assert_uint_eq(piece()->records.n, FILES - 2 * MSG_PIECE_ITEMS + 99);
    answer(MSG_COPIED, 0, 0);
    ck_assert(is_acked());
}
END_TEST

START_TEST(a_wish_that_makes_no_sense_is_no_end)
{
    static const uint32_t wishes[] = {0, 2, UINT32_MAX};
    add_records(FILES);
    home_copy_all(&view);
    for (unsigned i = 0; i < ARRAY_LEN(wishes); i++) {
        uint32_t before = net.requests;
        answer(MSG_NEXT_PIECE, wishes[i], 0);
        ck_assert_uint_eq(net.requests, before); /* not at once, or it could go on for ever */
        again();
        ck_assert_uint_eq(piece()->piece, 0);
    }
    answer(MSG_NEXT_PIECE, 1, 0);
    answer(MSG_NEXT_PIECE, 2, 0);
    ck_assert(!piece()->more);
    answer(MSG_NEXT_PIECE, 3, 0); /* there is none */
    again();
    ck_assert_uint_eq(piece()->piece, 2);
    ck_assert(!is_acked());
    answer(MSG_COPIED, 0, 0);
    ck_assert(is_acked());
}
END_TEST

START_TEST(a_view_that_ends_ends_the_pieces)
{
    add_records(FILES);
    home_copy_all(&view);
    answer(MSG_NEXT_PIECE, 1, 0);
    become(1, &later_view);
    uint32_t before = net.requests;
    answer(MSG_NEXT_PIECE, 2, 0);
    ck_assert_uint_eq(net.requests, before);
    ck_assert_ptr_null(net.later);
    ck_assert(!is_acked());
}
END_TEST

START_TEST(locks_count_and_stay_with_their_file)
{
    struct held_lock l = {.node = 2, .incarnation = 1, .end = 9};
    uint32_t records = 0, locks = 0;
    bool more = true;
    uint64_t i = 0;
    for (uint32_t k = 0; k < 3000; k++) {
        struct record *r = add_record(file_of_1(&i), k + 1);
        for (l.owner = 0; l.owner < k % 7; l.owner++)
            lock_add(&r->locks, &l);
    }
    home_copy_all(&view);
    for (uint32_t number = 0; more; number++) {
        uint32_t at = 0;
        ck_assert_uint_lt(piece()->records.n + piece()->locks.n, MSG_PIECE_ITEMS + 8);
        for (uint32_t k = 0; k < piece()->records.n; k++) {
            const struct item_record *r = &piece()->records.v[k];
            for (uint32_t n = 0; n < (r->number - 1) % 7; n++, at++)
                ck_assert(fid_eq(piece()->locks.v[at].fid, r->fid));
        }
        ck_assert_uint_eq(at, piece()->locks.n);
        records += piece()->records.n;
        locks += at;
        more = piece()->more;
        answer(more ? MSG_NEXT_PIECE : MSG_COPIED, number + 1, 0);
    }
    ck_assert_uint_eq(records, 3000);
    ck_assert_uint_eq(locks, 3000 / 7 * 21 + 0 + 1 + 2 + 3); /* 3000 = 428 * 7 + 4 */
}
END_TEST

/* ---- next's side ---- */

/* One piece of node 1's records to node 2, with the files from `from` on. */
static void take(uint32_t number, bool more, uint64_t from, uint32_t n)
{
    struct msg *m = msg_new(MSG_COPY);
    struct item_record *records = xcalloc(n + 1, sizeof(*records));
    for (uint32_t k = 0; k < n; k++)
        records[k] = (struct item_record){
            .fid = file_of_1(&from), .claimant = 2, .number = 1, .stamp_view = 5};
    m->head.sender = m->head.incarnation = 1;
    m->head.view = 5;
    m->copy.first = 1;
    m->copy.piece = number;
    m->copy.more = more;
    m->copy.records.n = n;
    m->copy.records.v = m->arena = records;
    handle_copy(m);
}

static void check_answer(enum msg_type type, uint32_t number, uint32_t records)
{
    ck_assert_uint_eq(net.reply, type);
    ck_assert_uint_eq(net.piece, number);
    ck_assert_uint_eq(record_count(), records);
    ck_assert(collect_is_next(1, 5) == (type == MSG_COPIED));
}

START_TEST(next_has_all_when_the_last_piece_has_come_and_not_before)
{
    become(2, &view);
    take(0, true, 0, 10);
    check_answer(MSG_NEXT_PIECE, 1, 10);
    take(0, true, 0, 10); /* comes again */
    check_answer(MSG_NEXT_PIECE, 1, 10);
    take(2, false, 1000, 10); /* the one before is lost */
    check_answer(MSG_NEXT_PIECE, 1, 10);
    take(1, true, 500, 10);
    check_answer(MSG_NEXT_PIECE, 2, 20);
    take(2, false, 1000, 10);
    check_answer(MSG_COPIED, 0, 30);
    take(1, true, 500, 10); /* late */
    check_answer(MSG_COPIED, 0, 30);
}
END_TEST

/* ---- many ---- */

static uint64_t peak_mib(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (uint64_t)u.ru_maxrss >> 10;
}

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A list of files by next, four bytes a file to sort it, and a piece. */
START_TEST(three_million_records_cost_the_home_a_list_of_files_and_a_piece)
{
    uint32_t n = 0;
    bool more = true;
    add_records(MANY);
    uint64_t before = peak_mib();
    double begun = cpu_s(), first;
    home_copy_all(&view);
    first = cpu_s() - begun;
    for (uint32_t number = 0; more; number++) {
        ck_assert_uint_le(net.len, 256 << 10);
        n += piece()->records.n;
        more = piece()->more;
        answer(more ? MSG_NEXT_PIECE : MSG_COPIED, number + 1, 0);
    }
    uint64_t grown = peak_mib() - before;
    printf("%u records: %.2f s to the first piece, %.2f s in all; peak memory %lu MiB\n", MANY,
           first, cpu_s() - begun, (unsigned long)grown);
    ck_assert_uint_eq(n, MANY);
    ck_assert(is_acked());
    if (!SANITIZED)
        ck_assert_uint_le(grown, (MANY * (sizeof(struct fid) + 4) >> 20) + 16);
}
END_TEST

/* What next needs beyond the records themselves is a piece. */
START_TEST(three_million_records_come_to_next)
{
    become(2, &view);
    uint64_t i = 0;
    for (uint32_t n = 0; n < MANY; n += MSG_PIECE_ITEMS) {
        uint32_t more = MIN(MANY - n, (uint32_t)MSG_PIECE_ITEMS);
        take(n / MSG_PIECE_ITEMS, n + more < MANY, i, more);
        for (uint32_t k = 0; k < more; k++)
            file_of_1(&i);
    }
    check_answer(MSG_COPIED, 0, MANY);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("home_copy");
    TCase *t = add_case(s, "home", begin, end, 60);
    tcase_add_test(t, all_records_go_in_pieces_and_only_the_end_counts);
    tcase_add_test(t, without_records_one_piece_says_so);
    tcase_add_test(t, a_piece_that_goes_again_has_no_other_files);
    tcase_add_test(t, a_piece_that_goes_again_is_no_longer_than_a_piece);
    tcase_add_test(t, a_wish_that_makes_no_sense_is_no_end);
    tcase_add_test(t, a_view_that_ends_ends_the_pieces);
    tcase_add_test(t, locks_count_and_stay_with_their_file);
    tcase_add_test(t, three_million_records_cost_the_home_a_list_of_files_and_a_piece);
    t = add_case(s, "next", begin, end, 60);
    tcase_add_test(t, next_has_all_when_the_last_piece_has_come_and_not_before);
    tcase_add_test(t, three_million_records_come_to_next);
    return run_suite(s);
}
