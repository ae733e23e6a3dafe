/* home_break_help.h - a home (node 1) and its next (node 2), of which the test is the network, and all other nodes: for the
 * tests of claims that are granted after BREAK.
 */
#ifndef EDDY_TEST_HOME_BREAK_HELP_H
#define EDDY_TEST_HOME_BREAK_HELP_H

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
        uint8_t where, keep, known;
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

static inline uint64_t fake_request(uint64_t id, struct msg *m, uint32_t silence_ms, void *recv_buf,
                                    size_t recv_len, peer_reply_fn fn, void *arg)
{
    (void)silence_ms, (void)recv_buf, (void)recv_len;
    if (m->head.type == MSG_COPY)
        heard_of_last = m->copy.heard;
    ck_assert_uint_lt(net.n, OUT_MAX);
    net.out[net.n++] = (struct out){id, m, fn, arg};
    return net.n;
}

static inline void fake_reply(const struct msg *to, struct msg *r)
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
        s->known = r->at.at.v[0].known;
    } else if (r->head.type == MSG_COPIED) {
        s->nlookers = r->copied.lookers.n;
        for (uint32_t i = 0; i < s->nlookers; i++)
            s->lookers[i] = r->copied.lookers.v[i];
    }
    msg_free(r);
}

static inline void fake_reply_error(const struct msg *to, int err)
{
    ck_assert_uint_eq(net.said[to->head.request].type, MSG_NONE);
    net.said[to->head.request].type = MSG_ERROR;
    net.said[to->head.request].err = err;
}

static inline void fake_working(const struct msg *to)
{
    (void)to;
    net.working++;
}

static inline void fake_later(void (*fn)(void *arg), void (*drop)(void *arg), void *arg)
{
    net.later[net.nlater].fn = fn;
    net.later[net.nlater].drop = drop;
    net.later[net.nlater++].arg = arg;
}

static inline void fake_arm(uint64_t ms)
{
    (void)ms;
}

static inline void fake_doubt(uint64_t id)
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
#include "placement/claims/home_goes.c"
#include "placement/claims/record.c"

/* ---- the nodes 1 to 12, and files of which node 1 is home and 2 is next ---- */

#define NODES 12

static struct member members[NODES];
static struct view view = {.number = 5, .nmembers = NODES, .members = members};
static bool acked[NODES];
static uint32_t copied_from[NODES];
static struct fid file, other;
static uint64_t requests, numbers;

static inline struct fid file_of_1(uint64_t *i)
{
    for (;;) {
        struct fid fid = {*i * 0x9e3779b97f4a7c15u, *i};
        ++*i;
        if (ring_home(home.ring, fid, 0) == 1 && ring_home(home.ring, fid, 1) == 2)
            return fid;
    }
}

static inline void become(uint64_t id, const struct view *v)
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

static inline void begin(void)
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

static inline void end(void)
{
    lookers_begin();
}

static inline struct msg *from(uint64_t node, enum msg_type type)
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
static inline enum at_where where(uint64_t node, struct fid fid, enum look look, bool *keep)
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

static inline void look_at(uint64_t node, enum look look)
{
    bool keep;
    ck_assert_uint_eq(where(node, file, look, &keep), AT_PFS);
    ck_assert(keep);
}

/* Answers the number of the request. */
static inline uint64_t want(uint64_t node, uint64_t number, bool held)
{
    struct msg *m = from(node, MSG_WANT);
    m->want.fid = file;
    m->want.number = number;
    m->want.held = held;
    m->want.look_number = ++numbers;
    handle_want(m);
    return requests;
}

static inline void answer(unsigned i, struct msg *r, int err)
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
static inline unsigned open_ones(enum msg_type type)
{
    unsigned n = 0;
    for (unsigned i = 0; i < net.n; i++)
        n += net.out[i].fn && net.out[i].m->head.type == type;
    return n;
}

static inline unsigned find_out(enum msg_type type, uint64_t to)
{
    for (unsigned i = 0; i < net.n; i++)
        if (net.out[i].fn && net.out[i].m->head.type == type && net.out[i].to == to)
            return i;
    ck_abort_msg("node %lu was sent no %s", (unsigned long)to, msg_name(type));
}

/* Next has all that was copied. */
static inline void copy_all(void)
{
    while (open_ones(MSG_COPY))
        answer(find_out(MSG_COPY, 2), msg_new(MSG_COPIED), 0);
}

static inline void break_at(uint64_t node, unsigned left)
{
    struct msg *r = msg_new(MSG_BROKEN);
    r->broken.left = (uint8_t)left;
    r->broken.look_number = ++numbers;
    answer(find_out(MSG_BREAK, node), r, 0);
}

/* A FREE of the claim with this number. */
static inline struct msg *free_of(uint64_t node, uint64_t number)
{
    struct msg *m = from(node, MSG_FREE);
    m->free.fid = file;
    m->free.number_inc = node + 99;
    m->free.number = number;
    return m;
}

static inline void give_back(uint64_t node, uint64_t number, enum look look)
{
    struct msg *m = free_of(node, number);
    m->free.look = (uint8_t)look;
    m->free.look_number = ++numbers;
    handle_free(m);
    copy_all();
}

static inline bool is_granted(uint64_t request)
{
    return net.said[request].type == MSG_GRANT && net.said[request].where == AT_GRANTED;
}

static inline unsigned lookers(void)
{
    struct looker_found f[LOOKERS_NAMED + 1];
    return lookers_of(file, f);
}

static inline void is_named(uint64_t request, uint32_t i, uint64_t node, unsigned left)
{
    ck_assert(is_granted(request));
    ck_assert_uint_lt(i, net.said[request].nwatchers);
    ck_assert_uint_eq(net.said[request].watchers[i].node, node);
    ck_assert_uint_eq(net.said[request].watchers[i].left, left);
}

#endif
