/* state_index.c - indexes over the mapped records: from a fid, or a fid and a chunk's index, to the
 * slot of the record.
 *
 * They hold slot numbers only (4 bytes for each record, at most 2/3 full); keys are compared in the
 * mapped records.  Deletion shifts back what follows, so there are no tombstones.  state.lock is
 * held when any of these is called, but at start.
 */
#include "placement/store/state.h"
#include "placement/store/state_int.h"

#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

static uint32_t hash_file(struct fid fid)
{
    return (uint32_t)mix(fid.lo ^ mix(fid.hi));
}

static uint32_t hash_chunk(struct fid fid, uint64_t index)
{
    return (uint32_t)mix(fid.lo ^ mix(fid.hi ^ mix(index + 1)));
}

static uint32_t hash_file_slot(uint32_t no)
{
    return hash_file(file_slot(no)->fid);
}

static uint32_t hash_chunk_slot(uint32_t no)
{
    return hash_chunk(chunk_slot(no)->fid, chunk_slot(no)->index);
}

static void index_put(struct slot_index *x, uint32_t hash, uint32_t no)
{
    uint32_t i = hash & x->mask;
    while (x->slot[i] != SLOT_NONE)
        i = (i + 1) & x->mask;
    x->slot[i] = no;
}

static void index_grow(struct slot_index *x, uint32_t (*hash)(uint32_t no))
{
    struct slot_index old = *x;
    uint32_t size = old.slot ? (old.mask + 1) * 2 : 1024;
    x->slot = xmalloc(size * sizeof(*x->slot));
    memset(x->slot, 0xff, size * sizeof(*x->slot));
    x->mask = size - 1;
    for (uint32_t i = 0; old.slot && i <= old.mask; i++)
        if (old.slot[i] != SLOT_NONE)
            index_put(x, hash(old.slot[i]), old.slot[i]);
    free(old.slot);
}

static void index_add(struct slot_index *x, uint32_t (*hash)(uint32_t no), uint32_t no)
{
    if (!x->slot || x->count >= x->mask / 3 * 2)
        index_grow(x, hash);
    index_put(x, hash(no), no);
    x->count++;
}

/* The record must still have its key. */
static void index_remove(struct slot_index *x, uint32_t (*hash)(uint32_t no), uint32_t no)
{
    uint32_t i = hash(no) & x->mask;
    while (x->slot[i] != no) {
        if (x->slot[i] == SLOT_NONE)
            die("store: slot %u is not in its index", no);
        i = (i + 1) & x->mask;
    }
    for (uint32_t j = (i + 1) & x->mask; x->slot[j] != SLOT_NONE; j = (j + 1) & x->mask) {
        uint32_t home = hash(x->slot[j]) & x->mask;
        if (((j - home) & x->mask) >= ((j - i) & x->mask)) { /* the gap lies between its home and its slot */
            x->slot[i] = x->slot[j];
            i = j;
        }
    }
    x->slot[i] = SLOT_NONE;
    x->count--;
}

uint32_t index_find_file(struct fid fid)
{
    const struct slot_index *x = &state.file_index;
    if (!x->slot)
        return SLOT_NONE;
    uint32_t i = hash_file(fid) & x->mask;
    while (x->slot[i] != SLOT_NONE && !fid_eq(file_slot(x->slot[i])->fid, fid))
        i = (i + 1) & x->mask;
    return x->slot[i];
}

static bool chunk_is(uint32_t no, struct fid fid, uint64_t index)
{
    const struct chunk_record *c = chunk_slot(no);
    return c->index == index && fid_eq(c->fid, fid);
}

uint32_t index_find_chunk(struct fid fid, uint64_t index)
{
    const struct slot_index *x = &state.chunk_index;
    if (!x->slot)
        return SLOT_NONE;
    uint32_t i = hash_chunk(fid, index) & x->mask;
    while (x->slot[i] != SLOT_NONE && !chunk_is(x->slot[i], fid, index))
        i = (i + 1) & x->mask;
    return x->slot[i];
}

void index_add_file(uint32_t no)
{
    index_add(&state.file_index, hash_file_slot, no);
}

void index_add_chunk(uint32_t no)
{
    index_add(&state.chunk_index, hash_chunk_slot, no);
}

void index_remove_file(uint32_t no)
{
    index_remove(&state.file_index, hash_file_slot, no);
}

void index_remove_chunk(uint32_t no)
{
    index_remove(&state.chunk_index, hash_chunk_slot, no);
}
