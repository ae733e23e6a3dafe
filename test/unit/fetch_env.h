/* fetch_env.h - three nodes and files that one reads in chunks: what the tests of fetching ask them.
 */
#ifndef EDDY_TEST_FETCH_ENV_H
#define EDDY_TEST_FETCH_ENV_H

#include "nodes.h"
#include "suite.h"

#include "placement/chunks/former.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"
#include "placement/store/store_read.h"
#include "transport/view.h"

#define N 3

static struct order totals(void)
{
    struct order sum = {0};
    for (unsigned i = 0; i < nnodes; i++) {
        struct order o = {0};
        node_run(i, order_members, &o);
        sum.counters.pfs_read_bytes += o.counters.pfs_read_bytes;
        sum.counters.read_local_bytes += o.counters.read_local_bytes;
        sum.counters.read_peer_bytes += o.counters.read_peer_bytes;
        sum.counters.read_pfs_bytes += o.counters.read_pfs_bytes;
    }
    return sum;
}

static uint64_t asked(const struct order *o)
{
    return o->counters.read_local_bytes + o->counters.read_peer_bytes + o->counters.read_pfs_bytes;
}

static void open_on(unsigned i, const char *name, uint64_t handle)
{
    struct order o = {.a = handle, .b = O_RDONLY};
    snprintf(o.name, sizeof(o.name), "%s", name);
    node_run(i, order_open, &o);
    ck_assert_msg(!o.err, "open of %s on node %u: %s", name, i, strerror(-o.err));
}

static void close_on(unsigned i, uint64_t handle)
{
    struct order o = {.a = handle};
    node_run(i, order_close, &o);
}

static struct order read_on(unsigned i, uint64_t handle, uint64_t off, uint64_t len)
{
    struct order o = {.a = handle, .off = off, .len = len};
    node_run(i, order_read, &o);
    return o;
}

static void assert_bytes(const struct order *o, size_t len, uint64_t seed)
{
    ck_assert_msg(!o->err, "read: %s", strerror(-o->err));
    ck_assert_uint_eq(o->out[0], len);
    ck_assert_msg(o->out[1] == hash_pattern(len, seed, o->off), "wrong bytes");
}

/* The node (number) that has turn `turn` for the chunk at off, and a node that has not turn 0. */
static unsigned owner_of(const char *name, uint64_t off, unsigned turn, unsigned *other)
{
    struct order o = {.off = off};
    unsigned owner = N;
    snprintf(o.name, sizeof(o.name), "%s", name);
    node_run(0, order_owner, &o);
    ck_assert_int_eq(o.err, 0);
    for (unsigned i = 0; i < nnodes; i++) {
        struct order m = {0};
        node_run(i, order_members, &m);
        if (m.out[2] == o.out[turn])
            owner = i;
        else if (m.out[2] != o.out[0] && other)
            *other = i;
    }
    ck_assert_uint_lt(owner, N);
    return owner;
}

/* ---- what is in the stores ---- */

static void order_missing(struct order *o)
{
    uint64_t at, n;
    o->out[0] = !store_missing(node_handles[o->a].h->f, o->off, o->len, &at, &n);
}

/* Until nothing of [off, off + len) is fetched any more: the next test counts only its own. */
static void until_stored(unsigned i, uint64_t handle, uint64_t off, uint64_t len)
{
    struct order o = {.a = handle, .off = off, .len = len};
    node_until(i, order_missing, &o, "what was asked for is in the store");
}

/* The same for the chunks that this node owns. */
static void order_own_missing(struct order *o)
{
    struct file *f = node_handles[o->a].h->f;
    const struct ring *r = ring_of(members_view());
    uint64_t at, n;
    o->out[0] = 1;
    for (uint64_t i = 0; i < o->len / NODE_CHUNK; i++)
        if (ring_owner(r, f->fid, i, 0) == members_self() &&
            store_missing(f, i * NODE_CHUNK, NODE_CHUNK, &at, &n))
            o->out[0] = 0;
}

/* ---- chunks that moved ---- */

/* name: a chunk of the file that is this node's now and had another owner in an earlier view.  out:
 * its index, that owner.  -ENOENT: there is none. */
static void order_moved_here(struct order *o)
{
    struct pfs_node *n = pfs_child(pfs_root(), o->name);
    struct statx stx;
    o->err = pfs_stat(n, &stx);
    pfs_unref(n);
    if (o->err)
        return;
    struct fid fid = fid_of(&stx);
    const struct view *v = members_view();
    const struct ring *r = ring_of(v);
    for (uint32_t i = 0; i < v->nmembers; i++) /* whatever they had not until now: they are asked */
        former_answered(v->members[i].id, true);
    for (uint64_t i = 0; i < stx.stx_size / NODE_CHUNK; i++) {
        o->out[0] = i;
        o->out[1] = former_owner(fid, i);
        if (ring_owner(r, fid, i, 0) == members_self() && o->out[1])
            return;
    }
    o->err = -ENOENT;
}

static unsigned node_with_id(uint64_t id)
{
    for (unsigned i = 0; i < nnodes; i++) {
        struct order o = {0};
        node_run(i, order_members, &o);
        if (o.out[2] == id)
            return i;
    }
    ck_abort_msg("no such node");
}

/* The owner of a chunk that had another one, and that one: whoever joined last has such chunks. */
static unsigned owner_of_moved(const char *name, struct order *moved, unsigned *former)
{
    unsigned owner = N;
    do {
        ck_assert_msg(owner > 0, "no chunk has moved");
        *moved = (struct order){0};
        snprintf(moved->name, sizeof(moved->name), "%s", name);
        node_run(--owner, order_moved_here, moved);
    } while (moved->err);
    *former = node_with_id(moved->out[1]);
    return owner;
}

static void begin(void)
{
    nodes_begin(N, 1u << 30);
}

/* The case of all of a program's tests: they share the nodes. */
static TCase *three_nodes(void)
{
    return nodes_case("three nodes", begin);
}

#endif
