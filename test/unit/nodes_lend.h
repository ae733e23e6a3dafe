/* nodes_lend.h - three nodes with a flusher each, which lend each other parts of one file. */
#ifndef EDDY_TEST_NODES_LEND_H
#define EDDY_TEST_NODES_LEND_H

#include "nodes_data.h"

#include "flush/flush.h"
#include "flush/flush_events.h"
#include "placement/claims/claim_lent.h"
#include "placement/lend.h"
#include "placement/loan.h"
#include "placement/store/store_lend.h"
#include "placement/store/store_write.h"
#include "placement/store/unit_map.h"

#define UNIT LOAN_UNIT
#define N    3

/* ---- orders ---- */

/* As fs/daemon/steps.c does. */
static inline void order_flusher(struct order *o)
{
    static const struct local_needs needs = {.make_room = flush_make_room, .sync_pfs = flush_file};
    const struct flush_config c = {.policy = FLUSH_IDLE, .wait_ms = 24 * 3600 * 1000, .writers = 2};
    o->err = flush_start(&c);
    store_on_dirty(flush_dirtied);
    store_on_deleted(flush_deleted);
    store_on_unsynced(flush_list_changed);
    local_on_need(&needs);
}

static inline struct file *file_of_handle(const struct order *o)
{
    return node_handles[o->a].h->f;
}

/* out: units of [off, off + len) that other nodes have; is anything lent, or shared? */
static inline void order_lent(struct order *o)
{
    struct file *f = file_of_handle(o);
    uint64_t until;
    for (uint64_t unit = o->off; unit < o->off + o->len; unit++)
        o->out[0] += store_lent_to(f, unit, unit, &until) != 0;
    o->out[1] = store_is_lent(f);
    o->out[2] = store_is_shared(f);
}

static inline void order_nothing_is_lent(struct order *o)
{
    o->out[0] = !store_is_lent(file_of_handle(o));
}

/* Brings what this node has of the file, its loan too, to the PFS. */
static inline void order_flush_all(struct order *o)
{
    struct file *f = file_of_handle(o);
    struct file *loan = file_find_used(fid_of_loan(f->fid));
    o->err = flush_file(f);
    if (loan && !o->err)
        o->err = flush_file(loan);
    if (loan)
        file_put(loan);
}

/* As stat asks.  out: the size, the mtime. */
static inline void order_size(struct order *o)
{
    struct location at;
    o->err = claim_where(file_of_handle(o)->fid, LOOK_STAT, &at);
    o->out[0] = at.size;
    o->out[1] = (uint64_t)at.mtime_ns;
}

/* As utimens of the claimant. */
static inline void order_times(struct order *o)
{
    struct file *f = file_of_handle(o);
    o->err = lend_times_begin(f);
    if (!o->err)
        store_set_times(f, (int64_t)o->off);
}

/* ---- the test's side ---- */

static inline uint64_t id_of(unsigned i)
{
    struct order o = {0};
    node_run(i, order_members, &o);
    return o.out[2];
}

static inline uint64_t size_on(unsigned i)
{
    struct order o = {0};
    node_run(i, order_size, &o);
    ck_assert_int_eq(o.err, 0);
    return o.out[0];
}

static inline int64_t mtime_on(unsigned i)
{
    struct order o = {0};
    node_run(i, order_size, &o);
    ck_assert_int_eq(o.err, 0);
    return (int64_t)o.out[1];
}

static inline uint64_t lent_on(unsigned i, uint64_t first, uint64_t n)
{
    struct order o = {.off = first, .len = n};
    node_run(i, order_lent, &o);
    return o.out[0];
}

static inline void flush_all_on(unsigned i)
{
    struct order o = {0};
    node_run(i, order_flush_all, &o);
    ck_assert_msg(!o.err, "flush on node %u: %s", i, strerror(-o.err));
}

static inline void until(unsigned i, void (*fn)(struct order *o), const char *text)
{
    struct order o = {0};
    node_until(i, fn, &o, text);
}

/* Node 0 is the claimant of a new file; the others have it open for writing as handle 0. */
static inline void open_everywhere(const char *name)
{
    open_on(0, name, 0, O_RDWR | O_CREAT);
    for (unsigned i = 1; i < N; i++)
        open_on(i, name, 0, O_RDWR);
}

/* The claim goes back, too. */
static inline void close_everywhere(const char *name)
{
    for (unsigned i = N; i-- > 0;)
        flush_all_on(i);
    for (unsigned i = N; i-- > 1;)
        close_on(i, 0);
    until(0, order_nothing_is_lent, "all is back when the writers have closed");
    flush_all_on(0);
    close_on(0, 0);
    flush_everywhere(name);
    ck_assert_uint_eq(claims_on(0), 0);
}

static inline void begin(void)
{
    nodes_begin(N, 1u << 30);
    for (unsigned i = 0; i < N; i++) {
        struct order o = {0};
        node_run(i, order_flusher, &o);
        ck_assert_int_eq(o.err, 0);
    }
}

#endif
