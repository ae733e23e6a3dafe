/* shelves_there.c - see shelves_there.h. */
#include "placement/chunks/shelves_there.h"

#include <errno.h>

#include "placement/chunks/places.h"
#include "placement/chunks/shelves.h"
#include "placement/store/store_open.h"
#include "transport/complaint.h"
#include "transport/members.h"
#include "transport/onesided.h"

#define OWNERS     256 /* by a hash of the node: two with one hash share what was found there */
#define VAIN_FREE  8   /* misses in a row that leave nothing out */
#define VAIN_MAX   6   /* then one of 2, 4, ... 64 calls looks */
#define PLACES_TRY 2

static struct {
    _Atomic unsigned vain, leave_out;
} owners[OWNERS];

/* May it be looked for there?  A miss costs a turn to and fro on the network. */
static bool may_look(uint64_t owner)
{
    unsigned left = atomic_load_explicit(&owners[owner % OWNERS].leave_out, memory_order_relaxed);
    if (!left)
        return true;
    atomic_store_explicit(&owners[owner % OWNERS].leave_out, left - 1, memory_order_relaxed);
    return false;
}

static void found(uint64_t owner, bool is)
{
    unsigned vain = is ? 0 : atomic_load_explicit(&owners[owner % OWNERS].vain, memory_order_relaxed) + 1;
    unsigned times = vain > VAIN_FREE ? MIN(vain - VAIN_FREE, VAIN_MAX) : 0;
    atomic_store_explicit(&owners[owner % OWNERS].vain, vain, memory_order_relaxed);
    atomic_store_explicit(&owners[owner % OWNERS].leave_out, (1u << times) - 1, memory_order_relaxed);
}

static int get(void *arg, uint64_t off, void *buf, size_t len)
{
    return onesided_get(*(uint64_t *)arg, off, buf, len);
}

/* 0: the bytes are those of the owner's entry. */
static int read_at(const struct shelf_entry *e, const struct shelf_place *p, struct chunk *c)
{
    struct shelves_shape shape;
    uint64_t node = p->node, len = node == members_self() ? 0 : onesided_len(node);
    if (!len)
        return -ENOTCONN;
    return shelves_shape(len, store_chunk_size(), &shape) ? shelves_read(&shape, e, p, get, &node, c->data) : -EINVAL;
}

/* The owner's entry names a shelf in which something else is. */
static void bounced(uint64_t owner, const struct chunk_key *key, const struct shelf_place *p, int err)
{
    struct item_shelf i = {.fid = key->fid, .index = key->index, .what = SHELF_GONE, .node = p->node};
    count(onesided_bounced, 1);
    places_tell_shelf(owner, &i);
    if (err == -EINVAL)
        complain_of_node(members_name(owner), "a shelf that does not exist");
}

static void used(const struct chunk_key *key, const struct shelf_place *p)
{
    struct item_shelf i = {.fid = key->fid, .index = key->index, .version = key->version, .what = SHELF_USED, .node = p->node};
    count(onesided_reads, 1);
    count(onesided_bytes, chunk_key_len(key));
    places_tell_shelf(p->node, &i);
}

/* Readers begin at different places, so that all of them are read. */
static int read_anywhere(uint64_t owner, const struct chunk_key *key, const struct shelf_entry *e, struct chunk *c)
{
    int err = -ENOTCONN;
    unsigned begin = (unsigned)(members_self() ^ members_self() >> 32) % e->nplaces, tried = 0;
    for (unsigned i = 0; i < e->nplaces && tried < PLACES_TRY; i++) {
        const struct shelf_place *p = &e->place[(begin + i) % e->nplaces];
        err = read_at(e, p, c);
        if (!err) {
            used(key, p);
            return 0;
        }
        tried += err != -ENOTCONN;
        if (err == -ENOENT || err == -EBADMSG || err == -EINVAL)
            bounced(owner, key, p, err);
    }
    return err;
}

int shelves_there_read(uint64_t owner, const struct chunk_key *key, struct chunk *c, unsigned *nplaces)
{
    struct shelves_shape shape;
    struct shelf_entry e;
    size_t own;
    if (!onesided_memory(&own) || !may_look(owner))
        return -ENOTCONN;
    uint64_t len = onesided_len(owner);
    if (!shelves_shape(len, store_chunk_size(), &shape))
        return -ENOTCONN;
    int err = shelves_find(&shape, key, get, &owner, &e);
    if (!err && e.len > c->size)
        err = -EINVAL;
    if (!err)
        err = read_anywhere(owner, key, &e, c);
    found(owner, !err);
    if (err) {
        count(onesided_misses, 1);
        return err;
    }
    c->len = e.len;
    c->hash = e.hash;
    c->racy = false;
    *nplaces = e.nplaces;
    return 0;
}
