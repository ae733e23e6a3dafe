/* test_home_break.c - before a claim is granted, the nodes that look at the file are told, and nobody else: the home's
 * side of WHERE, WANT, BREAK, FREE and LEAVE, and next's.  The test is the network, and all other nodes. */
#include "placement/claims/home_int.h"
#include "placement/ring/ring.h"
#include "transport/members_int.h"
#include "transport/peer.h"

#include <errno.h>
#include <stdlib.h>

#include "suite.h"

/* ---- the network ---- */

#define OUT_MAX 256

struct out {
    uint64_t to;
    struct msg *m;
    peer_reply_fn fn; /* NULL: it was answered */
    void *arg;
};

static struct {
    struct out out[OUT_MAX]; /* requests of the home */
    unsigned n;
    /* answers of the home, by the number of the request */
    struct {
        enum msg_type type; /* ERROR: err */
        int err;
        uint8_t where, keep;
        uint64_t node;
        uint32_t nwatchers, nlookers;
        struct item_watcher watchers[16];
        struct item_looker lookers[16];
    } said[OUT_MAX];
    unsigned working;
    struct {
        void (*fn)(void *arg), (*drop)(void *arg);
        void *arg;
    } later[OUT_MAX];
    unsigned nlater;
} net;

static bool heard_of_last; /* COPY.heard */

static uint64_t fake_request(uint64_t id, struct msg *m, uint32_t silence_ms, void *recv_buf,
                             size_t recv_len, peer_reply_fn fn, void *arg)
{
    (void)silence_ms, (void)recv_buf, (void)recv_len;
    if (m->head.type == MSG_COPY)
        heard_of_last = m->copy.heard;
    ck_assert_uint_lt(net.n, OUT_MAX);
    net.out[net.n++] = (struct out){id, m, fn, arg};
    return net.n;
}

static void fake_reply(const struct msg *to, struct msg *r)
{
    __typeof__(net.said[0]) *s = &net.said[to->head.request];
    ck_assert_uint_eq(s->type, MSG_NONE); /* once */
    s->type = r->head.type;
    if (r->head.type == MSG_GRANT) {
        s->where = r->grant.where;
        s->node = r->grant.node;
        s->nwatchers = r->grant.watchers.n;
        for (uint32_t i = 0; i < s->nwatchers; i++)
            s->watchers[i] = r->grant.watchers.v[i];
    } else if (r->head.type == MSG_AT) {
        s->where = r->at.at.v[0].where;
        s->node = r->at.at.v[0].node;
        s->keep = r->at.at.v[0].keep;
    } else if (r->head.type == MSG_COPIED) {
        s->nlookers = r->copied.lookers.n;
        for (uint32_t i = 0; i < s->nlookers; i++)
            s->lookers[i] = r->copied.lookers.v[i];
    }
    msg_free(r);
}

static void fake_reply_error(const struct msg *to, int err)
{
    ck_assert_uint_eq(net.said[to->head.request].type, MSG_NONE);
    net.said[to->head.request].type = MSG_ERROR;
    net.said[to->head.request].err = err;
}

static void fake_working(const struct msg *to)
{
    (void)to;
    net.working++;
}

static void fake_later(void (*fn)(void *arg), void (*drop)(void *arg), void *arg)
{
    net.later[net.nlater].fn = fn;
    net.later[net.nlater].drop = drop;
    net.later[net.nlater++].arg = arg;
}

static void fake_arm(uint64_t ms)
{
    (void)ms;
}

static void fake_doubt(uint64_t id)
{
    (void)id;
}

#define peer_request     fake_request
#define peer_reply       fake_reply
#define peer_reply_error fake_reply_error
#define peer_working     fake_working
#define home_later       fake_later
#define home_arm         fake_arm
#define members_doubt    fake_doubt
#include "placement/claims/home_answer.c"
#include "placement/claims/home_break.c"
#include "placement/claims/home_claim.c"
#include "placement/claims/home_copy.c"
#include "placement/claims/record.c"

/* ---- the nodes 1 to 12, and files of which node 1 is home and 2 is next ---- */

#define NODES 12

static struct member members[NODES];
static struct view view = {.number = 5, .nmembers = NODES, .members = members},
                   alone = {.number = 5, .nmembers = 1, .members = members};
static bool acked[NODES];
static uint32_t copied_from[NODES];
static struct fid file, other;
static uint64_t requests, numbers;

static struct fid file_of_1(uint64_t *i)
{
    for (;;) {
        struct fid fid = {*i * 0x9e3779b97f4a7c15u, *i};
        ++*i;
        if (ring_home(home.ring, fid, 0) == 1 && ring_home(home.ring, fid, 1) == 2)
            return fid;
    }
}

static void become(uint64_t id, const struct view *v)
{
    members_st.cfg.self.id = id;
    members_now.adopted = v;
    members_now.lease_until_ms = UINT64_MAX;
    home = (struct home_state){.view = v,
                               .self = (uint32_t)id - 1,
                               .ring = ring_of(v),
                               .complete = true,
                               .acked = acked,
                               .copied = copied_from};
}

static void begin(void)
{
    uint64_t i = 1;
    for (uint64_t n = 0; n < NODES; n++) {
        members[n] = (struct member){.id = n + 1, .incarnation = n + 100, .weight = 100};
        acked[n] = true;
    }
    become(1, &view);
    lookers_begin();
    file = file_of_1(&i);
    other = file_of_1(&i);
}

static void end(void)
{
    lookers_begin();
}

static struct msg *from(uint64_t node, enum msg_type type)
{
    struct msg *m = msg_new(type);
    m->head.flags = MSG_F_WANTS;
    m->head.sender = node;
    m->head.incarnation = node + 99;
    m->head.view = 5;
    m->head.request = ++requests;
    return m;
}

/* Answers where, and whether it may be kept. */
static enum at_where where(uint64_t node, struct fid fid, enum look look, bool *keep)
{
    struct msg *m = from(node, MSG_WHERE);
    struct item_fid_item *items = xcalloc(1, sizeof(*items));
    items->fid = fid;
    m->where.look = (uint8_t)look;
    m->where.number = ++numbers;
    m->where.fids.n = 1;
    m->where.fids.v = m->arena = items;
    handle_where(m);
    ck_assert_uint_eq(net.said[requests].type, MSG_AT);
    *keep = net.said[requests].keep;
    return net.said[requests].where;
}

static void look_at(uint64_t node, enum look look)
{
    bool keep;
    ck_assert_uint_eq(where(node, file, look, &keep), AT_PFS);
    ck_assert(keep);
}

/* Answers the number of the request. */
static uint64_t want(uint64_t node, uint64_t number, bool held)
{
    struct msg *m = from(node, MSG_WANT);
    m->want.fid = file;
    m->want.number = number;
    m->want.held = held;
    m->want.look_number = ++numbers;
    handle_want(m);
    return requests;
}

static void answer(unsigned i, struct msg *r, int err)
{
    struct out o = net.out[i];
    bool keep = false;
    ck_assert_ptr_nonnull(o.fn);
    net.out[i].fn = NULL;
    msg_free(o.m);
    o.fn(o.arg, err, err ? NULL : r, &keep);
    msg_free(r);
}

/* Requests of this type without an answer. */
static unsigned open_ones(enum msg_type type)
{
    unsigned n = 0;
    for (unsigned i = 0; i < net.n; i++)
        n += net.out[i].fn && net.out[i].m->head.type == type;
    return n;
}

static unsigned find_out(enum msg_type type, uint64_t to)
{
    for (unsigned i = 0; i < net.n; i++)
        if (net.out[i].fn && net.out[i].m->head.type == type && net.out[i].to == to)
            return i;
    ck_abort_msg("node %lu was sent no %s", (unsigned long)to, msg_name(type));
}

/* Next has all that was copied. */
static void copy_all(void)
{
    while (open_ones(MSG_COPY))
        answer(find_out(MSG_COPY, 2), msg_new(MSG_COPIED), 0);
}

static void break_at(uint64_t node, unsigned left)
{
    struct msg *r = msg_new(MSG_BROKEN);
    r->broken.left = (uint8_t)left;
    r->broken.look_number = ++numbers;
    answer(find_out(MSG_BREAK, node), r, 0);
}

static void give_back(uint64_t node, uint64_t number, enum look look)
{
    struct msg *m = from(node, MSG_FREE);
    m->free.fid = file;
    m->free.number_inc = node + 99;
    m->free.number = number;
    m->free.look = (uint8_t)look;
    m->free.look_number = ++numbers;
    handle_free(m);
    copy_all();
}

static bool is_granted(uint64_t request)
{
    return net.said[request].type == MSG_GRANT && net.said[request].where == AT_GRANTED;
}

static unsigned lookers(void)
{
    struct looker_found f[LOOKERS_NAMED + 1];
    return lookers_of(file, f);
}

/* ---- who is told ---- */

START_TEST(who_looked_is_told_once_before_the_grant)
{
    look_at(3, LOOK_STAT);
    uint64_t w = want(4, 1, false);
    ck_assert_uint_eq(open_ones(MSG_BREAK), 0); /* not before next has the record */
    copy_all();
    ck_assert_uint_eq(open_ones(MSG_BREAK), 1);
    ck_assert_uint_eq(net.said[w].type, MSG_NONE);
    break_at(3, 0);
    ck_assert(is_granted(w));
    ck_assert_uint_eq(net.said[w].nwatchers, 0);
    ck_assert_uint_eq(counted(breaks_sent), 1);
}
END_TEST

START_TEST(nobody_is_told_who_never_looked)
{
    bool keep;
    where(3, other, LOOK_OPEN, &keep);
    where(3, file, LOOK_NONE, &keep);
    ck_assert(!keep);
    look_at(4, LOOK_OPEN); /* the asker itself */
    uint64_t w = want(4, 1, false);
    copy_all();
    ck_assert(is_granted(w));
    ck_assert_uint_eq(counted(breaks_sent), 0);
}
END_TEST

START_TEST(three_lookers_are_told_once_and_not_again_in_shared_use)
{
    bool keep;
    look_at(3, LOOK_OPEN);
    look_at(4, LOOK_OPEN);
    look_at(1, LOOK_STAT); /* the home's own node */
    uint64_t w = want(5, 1, false);
    copy_all();
    ck_assert_uint_eq(open_ones(MSG_BREAK), 3);
    break_at(3, 0);
    break_at(1, 0);
    ck_assert_uint_eq(net.said[w].type, MSG_NONE);
    break_at(4, 0);
    ck_assert(is_granted(w));
    for (uint64_t n = 1; n <= 6; n++) {
        ck_assert_uint_eq(where(n, file, LOOK_OPEN, &keep), AT_NODE);
        ck_assert(!keep);
    }
    give_back(5, 1, LOOK_NONE);
    w = want(6, 1, false); /* nobody has asked since */
    copy_all();
    ck_assert(is_granted(w));
    ck_assert_uint_eq(counted(breaks_sent), 3);
}
END_TEST

/* A log that others follow by descriptors that cache: from then on they keep nothing for some time. */
START_TEST(a_file_that_is_broken_again_and_again_while_it_is_open_is_kept_by_nobody_new)
{
    bool keep;
    for (unsigned n = 1; n <= LOOKER_HUSH_AFTER; n++) {
        look_at(3, LOOK_OPEN);
        uint64_t w = want(5, n, false);
        copy_all();
        break_at(3, LOOKER_CACHED);
        ck_assert(is_granted(w));
        give_back(5, n, LOOK_NONE);
    }
    ck_assert_uint_eq(where(4, file, LOOK_OPEN, &keep), AT_PFS);
    ck_assert(!keep);
}
END_TEST

/* They are told the size; nothing of them is cached. */
START_TEST(nodes_that_append_are_watchers_and_keep_nobody_from_keeping)
{
    for (unsigned n = 1; n <= LOOKER_HUSH_AFTER; n++) {
        look_at(3, LOOK_OPEN);
        uint64_t w = want(5, n, false);
        copy_all();
        break_at(3, LOOKER_APPENDS);
        ck_assert(is_granted(w));
        ck_assert_uint_eq(net.said[w].watchers[0].left, LOOKER_APPENDS);
        give_back(5, n, LOOK_NONE);
    }
    look_at(4, LOOK_OPEN); /* may be kept */
}
END_TEST

static void is_named(uint64_t request, uint32_t i, uint64_t node, unsigned left)
{
    ck_assert(is_granted(request));
    ck_assert_uint_lt(i, net.said[request].nwatchers);
    ck_assert_uint_eq(net.said[request].watchers[i].node, node);
    ck_assert_uint_eq(net.said[request].watchers[i].left, left);
}

/* Nothing is kept of it there, so each grant names it, and none waits for it. */
START_TEST(one_that_only_has_it_open_is_told_once_and_named_by_each_grant)
{
    look_at(3, LOOK_OPEN);
    uint64_t w = want(5, 1, false);
    copy_all();
    break_at(3, LOOKER_OPEN);
    is_named(w, 0, 3, LOOKER_OPEN);
    for (unsigned n = 1; n <= LOOKER_HUSH_AFTER; n++) {
        give_back(5, n, LOOK_NONE);
        w = want(5, n + 1, false);
        copy_all();
        ck_assert_uint_eq(open_ones(MSG_BREAK), 0);
        ck_assert_uint_eq(net.said[w].nwatchers, 1);
        is_named(w, 0, 3, LOOKER_OPEN);
    }
    give_back(5, LOOKER_HUSH_AFTER + 1, LOOK_NONE);
    look_at(3, LOOK_STAT);
    w = want(3, 1, false); /* not to itself */
    copy_all();
    ck_assert(is_granted(w));
    ck_assert_uint_eq(net.said[w].nwatchers, 0);
}
END_TEST

START_TEST(what_is_open_alone_keeps_nobody_from_keeping_it)
{
    for (unsigned n = 1; n <= LOOKER_HUSH_AFTER; n++) {
        look_at(3, LOOK_OPEN);
        uint64_t w = want(5, n, false);
        copy_all();
        break_at(3, LOOKER_OPEN);
        ck_assert(is_granted(w));
        give_back(5, n, LOOK_NONE);
    }
    look_at(4, LOOK_OPEN);
}
END_TEST

START_TEST(one_that_opens_it_during_a_grant_is_any_member)
{
    bool keep;
    look_at(3, LOOK_STAT);
    uint64_t w = want(4, 1, false);
    copy_all();
    ck_assert_uint_eq(where(6, file, LOOK_OPEN, &keep), AT_PFS);
    ck_assert(!keep);
    break_at(3, 0);
    ck_assert_uint_eq(net.said[w].nwatchers, 1);
    is_named(w, 0, 0, LOOKER_OPEN);
    give_back(4, 1, LOOK_NONE);
    w = want(4, 2, false);
    copy_all();
    ck_assert(is_granted(w));
    ck_assert_uint_eq(net.said[w].nwatchers, 0); /* that claim's FREE would name it */
}
END_TEST

START_TEST(many_that_only_have_it_open_are_any_member_and_not_told)
{
    for (uint64_t n = 1; n < NODES; n++)
        look_at(n, LOOK_OPEN);
    uint64_t w = want(12, 1, false);
    copy_all();
    for (uint64_t n = 1; n < NODES; n++)
        break_at(n, LOOKER_OPEN);
    ck_assert_uint_eq(net.said[w].nwatchers, LOOKERS_NAMED + 1);
    is_named(w, LOOKERS_NAMED, 0, LOOKER_OPEN);
    give_back(12, 1, LOOK_NONE);
    w = want(11, 1, false);
    copy_all();
    ck_assert_uint_eq(open_ones(MSG_BREAK), 1);
    break_at(12, 0); /* it was the asker, and has what it had open */
    is_named(w, net.said[w].nwatchers - 1, 0, LOOKER_OPEN);
    ck_assert_uint_lt(net.said[w].nwatchers, LOOKERS_NAMED + 1); /* but the asker */
}
END_TEST

START_TEST(a_file_that_was_only_looked_up_may_be_kept_again)
{
    look_at(3, LOOK_STAT);
    uint64_t w = want(4, 1, false);
    copy_all();
    break_at(3, 0);
    ck_assert(is_granted(w));
    give_back(4, 1, LOOK_NONE);
    look_at(3, LOOK_OPEN);
}
END_TEST

START_TEST(more_nodes_than_can_be_named_are_all_members)
{
    for (uint64_t n = 1; n <= LOOKERS_NAMED + 1; n++)
        look_at(n, LOOK_OPEN);
    uint64_t w = want(4, 1, false);
    copy_all();
    ck_assert_uint_eq(open_ones(MSG_BREAK), NODES - 1);
    for (uint64_t n = 1; n <= NODES; n++)
        if (n != 4)
            break_at(n, n == 7 ? LOOKER_PASSTHROUGH : 0);
    ck_assert(is_granted(w));
    ck_assert_uint_eq(net.said[w].nwatchers, 1);
    ck_assert_uint_eq(net.said[w].watchers[0].node, 7);
    ck_assert_uint_eq(net.said[w].watchers[0].incarnation, 106);
    ck_assert_uint_eq(net.said[w].watchers[0].left, LOOKER_PASSTHROUGH);
    ck_assert_uint_eq(lookers(), 2); /* 7, and the asker, which has it open, too */
    give_back(4, 1, LOOK_NONE);
    w = want(5, 1, false);
    copy_all();
    ck_assert_uint_eq(open_ones(MSG_BREAK), 2);
    break_at(4, 0);
    break_at(7, 0);
    ck_assert(is_granted(w));
}
END_TEST

START_TEST(more_watchers_than_can_be_named_are_any_member)
{
    for (uint64_t n = 1; n <= NODES; n++)
        look_at(n, LOOK_OPEN);
    uint64_t w = want(12, 1, false);
    copy_all();
    for (uint64_t n = 1; n < NODES; n++)
        break_at(n, LOOKER_CACHED);
    ck_assert(is_granted(w));
    ck_assert_uint_eq(net.said[w].nwatchers, LOOKERS_NAMED + 1);
    ck_assert_uint_eq(net.said[w].watchers[LOOKERS_NAMED].node, 0);
    ck_assert_uint_eq(net.said[w].watchers[LOOKERS_NAMED].left, LOOKER_CACHED);
    ck_assert_uint_eq(lookers(), 1); /* any node */
}
END_TEST

START_TEST(what_homes_of_the_view_before_let_keep_is_broken_in_the_first_second)
{
    home.complete_ms = boot_ms();
    uint64_t w = want(4, 1, false);
    copy_all();
    /* the view before is not known: all may have been there */
    ck_assert_uint_eq(open_ones(MSG_BREAK), NODES - 1);
    for (uint64_t n = 1; n <= NODES; n++)
        if (n != 4)
            break_at(n, 0);
    ck_assert(is_granted(w));
}
END_TEST

START_TEST(what_next_let_keep_is_broken)
{
    look_at(3, LOOK_STAT);
    uint64_t w = want(4, 1, false);
    struct item_looker v[] = {
        {3, LOOK_STAT, 1}, {6, LOOK_OPEN, 2}, {77, LOOK_OPEN, 3}, {4, LOOK_OPEN, 4}};
    struct msg *r = msg_new(MSG_COPIED);
    r->copied.lookers.n = ARRAY_LEN(v);
    r->copied.lookers.v = v;
    answer(find_out(MSG_COPY, 2), r, 0);
    ck_assert_uint_eq(open_ones(MSG_BREAK), 2);
    break_at(3, 0);
    break_at(6, 0);
    ck_assert(is_granted(w));
}
END_TEST

/* ---- while they are told ---- */

START_TEST(until_the_grant_the_pfs_has_it_and_nothing_may_be_kept)
{
    bool keep;
    look_at(3, LOOK_STAT);
    want(4, 1, false);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_uint_eq(where(3, file, LOOK_OPEN, &keep), AT_PFS);
        ck_assert(!keep);
        copy_all();
    }
    break_at(3, 0);
    ck_assert_uint_eq(where(3, file, LOOK_OPEN, &keep), AT_NODE);
    ck_assert_uint_eq(lookers(), 0);
}
END_TEST

START_TEST(who_has_the_bytes_and_asks_for_its_watchers_has_them_meanwhile)
{
    bool keep;
    record_make(file)->claimant = 4;
    record_find(file)->number_inc = 103;
    record_find(file)->number = 9;
    looker_note(file, 2, LOOK_OPEN, 1); /* node 3, by ADOPTED */
    uint64_t w = want(4, 10, true);     /* as if it had not got the claim, but for what it says */
    ck_assert_uint_eq(where(5, file, LOOK_OPEN, &keep), AT_NODE);
    copy_all();
    ck_assert_uint_eq(where(5, file, LOOK_OPEN, &keep), AT_NODE);
    break_at(3, LOOKER_CACHED);
    ck_assert(is_granted(w));
    ck_assert_uint_eq(net.said[w].nwatchers, 1);
    ck_assert_uint_eq(net.said[w].watchers[0].node, 3);
}
END_TEST

START_TEST(a_late_copy_of_a_want_sends_nobody_to_the_pfs)
{
    bool keep;
    uint64_t w = want(4, 1, false);
    copy_all();
    ck_assert(is_granted(w));
    want(4, 1, false);
    ck_assert_uint_eq(where(3, file, LOOK_OPEN, &keep), AT_NODE);
    copy_all();
    want(4, 2, false); /* a new number: it has not got the claim */
    ck_assert_uint_eq(where(3, file, LOOK_OPEN, &keep), AT_PFS);
    ck_assert(!keep);
}
END_TEST

START_TEST(a_grant_that_was_lost_names_its_watchers_again)
{
    look_at(3, LOOK_OPEN);
    for (uint64_t number = 1; number < 3; number++) {
        uint64_t w = want(4, number, false);
        copy_all();
        break_at(3, LOOKER_CACHED);
        ck_assert(is_granted(w));
        ck_assert_uint_eq(net.said[w].nwatchers, 1);
        ck_assert_uint_eq(net.said[w].watchers[0].left, LOOKER_CACHED);
    }
    give_back(4, 2, LOOK_NONE); /* without them: they are still entered */
    ck_assert_uint_eq(lookers(), 1);
}
END_TEST

START_TEST(a_want_that_comes_again_waits_for_the_same_breaks)
{
    look_at(3, LOOK_STAT);
    uint64_t first = want(4, 1, false), second;
    copy_all();
    ck_assert(home_breaks_working());
    ck_assert_uint_eq(net.working, 1);
    second = want(4, 2, false);
    copy_all();
    ck_assert_uint_eq(open_ones(MSG_BREAK), 1);
    ck_assert_int_eq(net.said[first].err, -E_ASK_AGAIN);
    break_at(3, 0);
    ck_assert(is_granted(second));
    ck_assert(!home_breaks_working());
    ck_assert_uint_eq(counted(breaks_sent), 1);
}
END_TEST

static void run_laters(void)
{
    unsigned n = net.nlater;
    net.nlater = 0;
    for (unsigned i = 0; i < n; i++)
        net.later[i].fn(net.later[i].arg);
}

START_TEST(who_does_not_answer_is_asked_again_until_it_does)
{
    look_at(3, LOOK_STAT);
    look_at(5, LOOK_STAT);
    uint64_t w = want(4, 1, false), grant;
    copy_all();
    break_at(5, 0);
    for (unsigned i = 0; i < 3; i++) {
        grant = net.out[find_out(MSG_BREAK, 3)].m->brk.grant;
        answer(find_out(MSG_BREAK, 3), NULL, i ? -ETIMEDOUT : -E_ASK_AGAIN);
        ck_assert_uint_eq(open_ones(MSG_BREAK), 0);
        run_laters();
        ck_assert_uint_eq(net.out[find_out(MSG_BREAK, 3)].m->brk.grant, grant);
        ck_assert_uint_eq(net.said[w].type, MSG_NONE);
    }
    ck_assert_uint_eq(open_ones(MSG_BREAK), 1);
    break_at(3, 0);
    ck_assert(is_granted(w));
}
END_TEST

static void let_go_of(struct record *r, void *arg)
{
    (void)arg;
    home_ask_again_list(&r->pending);
    home_break_drop(r);
}

START_TEST(a_new_view_ends_it_and_late_answers_are_of_no_use)
{
    look_at(3, LOOK_STAT);
    look_at(5, LOOK_STAT);
    uint64_t w = want(4, 1, false);
    copy_all();
    answer(find_out(MSG_BREAK, 5), NULL, -ETIMEDOUT);
    record_each(let_go_of, NULL); /* home_adopted */
    ck_assert_int_eq(net.said[w].err, -E_ASK_AGAIN);
    break_at(3, LOOKER_CACHED);
    run_laters();
    ck_assert_uint_eq(open_ones(MSG_BREAK), 0);
    ck_assert(!home_breaks_working());
}
END_TEST

START_TEST(an_asker_that_gives_up_ends_it)
{
    bool keep;
    look_at(3, LOOK_STAT);
    look_at(5, LOOK_OPEN);
    uint64_t w = want(4, 1, false);
    copy_all();
    break_at(3, 0);
    give_back(4, 1, LOOK_NONE);
    ck_assert_int_eq(net.said[w].err, -E_ASK_AGAIN);
    ck_assert_uint_eq(where(7, file, LOOK_STAT, &keep), AT_PFS);
    ck_assert(keep);
    w = want(6, 1, false);
    copy_all();
    ck_assert_uint_eq(open_ones(MSG_BREAK), 3); /* 5's of the first grant is still under way */
    break_at(5, 0);
    ck_assert_uint_eq(net.said[w].type, MSG_NONE); /* that one does not count */
    break_at(5, 0);
    break_at(7, 0);
    ck_assert(is_granted(w));
}
END_TEST

/* ---- FREE, LEAVE ---- */

START_TEST(who_gives_back_looks_itself)
{
    for (unsigned i = 0; i < 2; i++) {
        uint64_t w = want(4, i + 1, false);
        copy_all();
        ck_assert(is_granted(w));
        give_back(4, i + 1, i ? LOOK_OPEN : LOOK_STAT);
        w = want(5, i + 1, false);
        copy_all();
        ck_assert_uint_eq(open_ones(MSG_BREAK), 1);
        break_at(4, 0);
        ck_assert(is_granted(w));
        give_back(5, i + 1, LOOK_NONE);
    }
}
END_TEST

START_TEST(nodes_that_only_have_it_open_are_named_again_after_free)
{
    struct item_watcher v[] = {{3, 102, LOOKER_OPEN}};
    uint64_t w = want(4, 1, false);
    copy_all();
    struct msg *m = from(4, MSG_FREE);
    m->free.fid = file;
    m->free.number_inc = 103;
    m->free.number = 1;
    m->free.watchers.n = 1;
    m->free.watchers.v = v;
    handle_free(m);
    copy_all();
    w = want(5, 1, false);
    copy_all();
    ck_assert_uint_eq(open_ones(MSG_BREAK), 0);
    is_named(w, 0, 3, LOOKER_OPEN);
}
END_TEST

START_TEST(watchers_that_are_given_back_look)
{
    struct item_watcher v[] = {{3, 102, LOOKER_CACHED}, {99, 1, LOOKER_CACHED}};
    uint64_t w = want(4, 1, false);
    copy_all();
    struct msg *m = from(4, MSG_FREE);
    m->free.fid = file;
    m->free.number_inc = 103;
    m->free.number = 1;
    m->free.watchers.n = 2;
    m->free.watchers.v = v;
    handle_free(m);
    copy_all();
    w = want(5, 1, false);
    copy_all();
    ck_assert_uint_eq(open_ones(MSG_BREAK), 1);
    break_at(3, 0);
    ck_assert(is_granted(w));
}
END_TEST

static void leave(uint64_t node, uint64_t number, uint64_t incarnation, uint64_t in_view)
{
    struct item_left v = {file, number};
    struct msg *m = from(node, MSG_LEAVE);
    m->head.incarnation = incarnation;
    m->head.view = in_view;
    m->leave.files.n = 1;
    m->leave.files.v = &v;
    handle_leave(m);
}

static enum look look_of_3(void)
{
    struct looker_found f[LOOKERS_NAMED + 1];
    return lookers_of(file, f) == 1 ? f[0].look : LOOK_NONE;
}

START_TEST(only_a_member_leaves_and_only_for_itself)
{
    look_at(3, LOOK_OPEN);
    leave(5, 100, 104, 5);
    leave(3, 100, 101, 5); /* of an older run of it */
    leave(3, 100, 102, 4);
    leave(77, 100, 1, 5);
    ck_assert_uint_eq(look_of_3(), LOOK_OPEN);
    leave(3, 100, 102, 5);
    ck_assert_uint_eq(look_of_3(), LOOK_STAT);
}
END_TEST

START_TEST(who_is_no_member_is_not_entered_and_is_granted_nothing)
{
    struct msg *m = from(77, MSG_WHERE);
    struct item_fid_item *items = xcalloc(1, sizeof(*items));
    items->fid = file;
    m->where.look = LOOK_OPEN;
    m->where.fids.n = 1;
    m->where.fids.v = m->arena = items;
    handle_where(m);
    ck_assert_uint_eq(net.said[requests].keep, 0);
    ck_assert_uint_eq(lookers(), 0);
    uint64_t w = want(77, 1, false);
    ck_assert_int_eq(net.said[w].err, -E_ASK_AGAIN);
}
END_TEST

START_TEST(alone_nobody_is_entered_and_all_may_be_kept)
{
    uint64_t i = 1;
    bool keep;
    become(1, &alone);
    for (unsigned n = 0; n < 100; n++, i++) {
        where(1, (struct fid){i, i}, LOOK_OPEN, &keep);
        ck_assert(keep);
    }
    ck_assert_uint_eq(lookers_bytes(), 0);
    uint64_t w = want(1, 1, false);
    ck_assert(is_granted(w));
    give_back(1, 1, LOOK_OPEN);
    ck_assert_uint_eq(lookers_bytes(), 0);
    ck_assert_uint_eq(net.n, 0);
}
END_TEST

/* ---- next ---- */

static uint64_t come_copy(uint64_t claimant, uint64_t stamp, bool heard)
{
    struct msg *m = from(1, MSG_COPY);
    m->copy.heard = heard;
    struct item_record *r = xcalloc(1, sizeof(*r));
    *r = (struct item_record){
        .fid = file, .claimant = claimant, .stamp_view = 5, .stamp_count = stamp};
    m->copy.records.n = 1;
    m->copy.records.v = m->arena = r;
    handle_copy(m);
    return requests;
}

START_TEST(next_says_whom_it_has_entered_and_then_enters_nobody)
{
    bool keep;
    become(2, &view);
    collect_note_next(1, 5);
    look_at(3, LOOK_STAT);
    look_at(4, LOOK_OPEN);
    for (unsigned i = 0; i < 2; i++) { /* COPIED may be lost */
        uint64_t c = come_copy(9, 1, false);
        ck_assert_uint_eq(net.said[c].type, MSG_COPIED);
        ck_assert_uint_eq(net.said[c].nlookers, 2);
    }
    ck_assert_uint_eq(where(5, file, LOOK_STAT, &keep), AT_NODE);
    ck_assert(!keep);
    /* given back: the home has them since long */
    ck_assert_uint_eq(net.said[come_copy(0, 2, true)].nlookers, 0);
    look_at(5, LOOK_STAT);
    ck_assert_uint_eq(net.said[come_copy(0, 3, true)].nlookers, 1); /* locks have changed */
    ck_assert_uint_eq(net.said[come_copy(9, 4, false)].nlookers, 1);
    /* COPIED was lost, and the asker gave up */
    ck_assert_uint_eq(net.said[come_copy(0, 5, false)].nlookers, 1);
    ck_assert_uint_eq(net.said[come_copy(9, 6, false)].nlookers, 1);
}
END_TEST

/* In an older view this node had the record of a claim: that says nothing of the lookers of this one. */
START_TEST(a_record_of_an_older_view_ends_no_look)
{
    become(2, &view);
    collect_note_next(1, 5);
    struct record *r = record_make(file);
    r->claimant = 9;
    r->stamp_view = 4;
    look_at(3, LOOK_OPEN);
    ck_assert_uint_eq(net.said[come_copy(0, 1, true)].nlookers, 1);
}
END_TEST

START_TEST(the_home_says_what_it_has_heard_of_next)
{
    uint64_t w = want(4, 1, false);
    ck_assert_uint_eq(net.out[find_out(MSG_COPY, 2)].m->copy.heard, 0);
    struct msg *m = from(4, MSG_FREE); /* it gives up before COPIED is here */
    m->free.fid = file;
    m->free.number_inc = 103;
    m->free.number = 1;
    handle_free(m);
    ck_assert_int_eq(net.said[w].err, -E_ASK_AGAIN);
    ck_assert_uint_eq(net.out[1].m->copy.heard, 0);
    copy_all();
    w = want(4, 2, false);
    copy_all();
    ck_assert(is_granted(w));
    unsigned n = net.n;
    give_back(4, 2, LOOK_NONE);
    ck_assert_uint_eq(net.n, n + 1);
    ck_assert(heard_of_last);
    want(4, 3, false);
    ck_assert_uint_eq(net.out[find_out(MSG_COPY, 2)].m->copy.heard, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("home_break");
    TCase *t = add_case(s, "who is told", begin, end, 20);
    tcase_add_test(t, who_looked_is_told_once_before_the_grant);
    tcase_add_test(t, nobody_is_told_who_never_looked);
    tcase_add_test(t, three_lookers_are_told_once_and_not_again_in_shared_use);
    tcase_add_test(t, a_file_that_is_broken_again_and_again_while_it_is_open_is_kept_by_nobody_new);
    tcase_add_test(t, nodes_that_append_are_watchers_and_keep_nobody_from_keeping);
    tcase_add_test(t, one_that_only_has_it_open_is_told_once_and_named_by_each_grant);
    tcase_add_test(t, what_is_open_alone_keeps_nobody_from_keeping_it);
    tcase_add_test(t, one_that_opens_it_during_a_grant_is_any_member);
    tcase_add_test(t, many_that_only_have_it_open_are_any_member_and_not_told);
    tcase_add_test(t, a_file_that_was_only_looked_up_may_be_kept_again);
    tcase_add_test(t, more_nodes_than_can_be_named_are_all_members);
    tcase_add_test(t, more_watchers_than_can_be_named_are_any_member);
    tcase_add_test(t, what_homes_of_the_view_before_let_keep_is_broken_in_the_first_second);
    tcase_add_test(t, what_next_let_keep_is_broken);
    t = add_case(s, "meanwhile", begin, end, 20);
    tcase_add_test(t, until_the_grant_the_pfs_has_it_and_nothing_may_be_kept);
    tcase_add_test(t, who_has_the_bytes_and_asks_for_its_watchers_has_them_meanwhile);
    tcase_add_test(t, a_late_copy_of_a_want_sends_nobody_to_the_pfs);
    tcase_add_test(t, a_grant_that_was_lost_names_its_watchers_again);
    tcase_add_test(t, a_want_that_comes_again_waits_for_the_same_breaks);
    tcase_add_test(t, who_does_not_answer_is_asked_again_until_it_does);
    tcase_add_test(t, a_new_view_ends_it_and_late_answers_are_of_no_use);
    tcase_add_test(t, an_asker_that_gives_up_ends_it);
    t = add_case(s, "FREE and LEAVE", begin, end, 20);
    tcase_add_test(t, who_gives_back_looks_itself);
    tcase_add_test(t, nodes_that_only_have_it_open_are_named_again_after_free);
    tcase_add_test(t, watchers_that_are_given_back_look);
    tcase_add_test(t, only_a_member_leaves_and_only_for_itself);
    tcase_add_test(t, who_is_no_member_is_not_entered_and_is_granted_nothing);
    tcase_add_test(t, alone_nobody_is_entered_and_all_may_be_kept);
    t = add_case(s, "next", begin, end, 20);
    tcase_add_test(t, next_says_whom_it_has_entered_and_then_enters_nobody);
    tcase_add_test(t, a_record_of_an_older_view_ends_no_look);
    tcase_add_test(t, the_home_says_what_it_has_heard_of_next);
    return run_suite(s);
}
