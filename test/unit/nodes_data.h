/* nodes_data.h - reading and writing on one of a test's nodes, by the number of a handle there; what
 * fails ends the test, but for try_.
 */
#ifndef EDDY_TEST_NODES_DATA_H
#define EDDY_TEST_NODES_DATA_H

#include "nodes.h"
#include "placement/claims/claim.h"
#include "suite.h"

static inline int try_open(unsigned i, const char *name, uint64_t handle, uint64_t flags)
{
    struct order o = {.a = handle, .b = flags};
    snprintf(o.name, sizeof(o.name), "%s", name);
    node_run(i, order_open, &o);
    return o.err;
}

static inline void open_on(unsigned i, const char *name, uint64_t handle, uint64_t flags)
{
    int err = try_open(i, name, handle, flags);
    ck_assert_msg(!err, "open of %s on node %u: %s", name, i, strerror(-err));
}

static inline void close_on(unsigned i, uint64_t handle)
{
    struct order o = {.a = handle};
    node_run(i, order_close, &o);
}

static inline int try_write(unsigned i, uint64_t handle, uint64_t off, uint64_t len, uint64_t seed)
{
    struct order o = {.a = handle, .off = off, .len = len, .b = seed};
    node_run(i, order_write, &o);
    return o.err;
}

static inline void write_on(unsigned i, uint64_t handle, uint64_t off, uint64_t len, uint64_t seed)
{
    int err = try_write(i, handle, off, len, seed);
    ck_assert_msg(!err, "write on node %u: %s", i, strerror(-err));
}

/* Returns where it went. */
static inline uint64_t append_on(unsigned i, uint64_t handle, uint64_t len, uint64_t seed,
                                 uint64_t pattern_off)
{
    struct order o = {.a = handle, .off = pattern_off, .len = len, .b = seed, .out = {1}};
    node_run(i, order_write, &o);
    ck_assert_msg(!o.err, "append on node %u: %s", i, strerror(-o.err));
    return o.out[0];
}

static inline struct order read_on(unsigned i, uint64_t handle, uint64_t off, uint64_t len)
{
    struct order o = {.a = handle, .off = off, .len = len};
    node_run(i, order_read, &o);
    return o;
}

static inline void assert_read(unsigned i, uint64_t handle, uint64_t off, uint64_t len,
                               uint64_t expect, uint64_t seed)
{
    struct order o = read_on(i, handle, off, len);
    ck_assert_msg(!o.err, "read on node %u: %s", i, strerror(-o.err));
    ck_assert_uint_eq(o.out[0], expect);
    ck_assert_msg(o.out[1] == hash_pattern(expect, seed, off), "wrong bytes on node %u", i);
}

static inline void flush_on(unsigned i, const char *name)
{
    struct order o = {0};
    snprintf(o.name, sizeof(o.name), "%s", name);
    node_run(i, order_flush, &o);
    ck_assert_msg(!o.err, "flush on node %u: %s", i, strerror(-o.err));
}

/* Whoever has something of it. */
static inline void flush_everywhere(const char *name)
{
    for (unsigned i = 0; i < nnodes; i++) {
        struct order o = {0};
        snprintf(o.name, sizeof(o.name), "%s", name);
        node_run(i, order_flush, &o);
        ck_assert_msg(!o.err || o.err == -ENOENT, "flush on node %u: %s", i, strerror(-o.err));
    }
}

static inline void truncate_on(unsigned i, uint64_t handle, uint64_t size)
{
    struct order o = {.a = handle, .len = size};
    node_run(i, order_truncate, &o);
    ck_assert_msg(!o.err, "truncate on node %u: %s", i, strerror(-o.err));
}

static inline enum where where_on(unsigned i, uint64_t handle, uint64_t *size)
{
    struct order o = {.a = handle};
    node_run(i, order_attr, &o);
    if (size)
        *size = o.out[2];
    return (enum where)o.out[0];
}

static inline uint64_t claims_on(unsigned i)
{
    struct order o = {0};
    node_run(i, order_claims, &o);
    return o.out[0];
}

#endif
