/* state_int.h - what state_open.c (start), state.c (records, lists), state_path.c, state_index.c and
 * state_slots.c (slots) share.  Each uses those behind it.  state.lock is held for all that changes, but at
 * start.
 */
#ifndef EDDY_PLACEMENT_STORE_STATE_INT_H
#define EDDY_PLACEMENT_STORE_STATE_INT_H

#include "placement/store/state.h"
#include "transport/lock.h"

/* Open addressing: slot numbers, the keys are read from the mapped records. */
struct slot_index {
    uint32_t *slot;
    uint32_t mask, count; /* size - 1 */
};

struct state {
    struct lock growing; /* RANK_SPACE: one slab is made at a time; outside of lock, since it waits
                            for the disk */
    struct lock syncing; /* RANK_SPACE: state_sync_freed, the same */
    struct lock lock;    /* RANK_STATE: all below */
    int slabs_fd;
    char boot_id[40];
    uint32_t chunk_size, pages, words;
    struct slabs files, chunks;
    uint32_t files_reserved, chunks_reserved;
    struct slot_index file_index, chunk_index;
    uint32_t busy_first, nbusy;
    /* since the last state_sync_freed: a file's record was; one was that had freed chunks' records */
    bool file_freed, chunk_freed;
    bool open;
};
extern struct state state;

static inline struct file_record *file_slot(uint32_t no)
{
    return slab_at(&state.files, no);
}
static inline struct path_record *path_slot(uint32_t no)
{
    return slab_at(&state.files, no);
}
static inline struct chunk_record *chunk_slot(uint32_t no)
{
    return slab_at(&state.chunks, no);
}

/* Checks of the parts of a record that never change. */
uint32_t file_check(struct fid fid);
uint32_t chunk_check(struct fid fid, uint64_t index);
uint16_t path_check(const char *path, size_t len);

/* ---- state_index.c: SLOT_NONE if it is not there ---- */
uint32_t index_find_file(struct fid fid);
uint32_t index_find_chunk(struct fid fid, uint64_t index);
void index_add_file(uint32_t no);
void index_add_chunk(uint32_t no);
/* The record must still have its key. */
void index_remove_file(uint32_t no);
void index_remove_chunk(uint32_t no);

/* ---- state_slots.c ---- */
/* One of the slots that were set aside. */
uint32_t slot_take_reserved(enum slab_kind kind);

/* ---- state.c ---- */
void chunk_list_add(struct file_record *r, struct chunk_record *c, bool front);
void chunk_list_remove(struct file_record *r, struct chunk_record *c);
void busy_add(struct file_record *r);

/* ---- state_path.c ---- */
void path_free(uint64_t path_where); /* its slots */
/* The path is torn: from now on it is the one before, if that still stands in the record.  A power
 * loss can take the slot of a new path, on a page of its own.  False: there is none. */
bool path_fall_back(struct file_record *r);
/* state_path_get in slabs that are not the open store's. */
size_t path_get(const struct slabs *files, const struct file_record *r,
                char buf[STATE_PATH_MAX + 1]);

/* ---- state_open.c ---- */
bool core_is_sane(const struct file_record *r, const struct file_core *c);
/* Is it a file's record, whole?  -EUCLEAN if it is torn; a torn core is replaced by the covered
 * one. */
int file_record_check(struct file_record *r);
/* Bytes of a chunk's slot and how its bitmaps lie. */
uint32_t chunk_slot_size(uint32_t chunk_size);

/* path_where's parts. */
static inline uint32_t path_where_slot(uint64_t w)
{
    return (uint32_t)(w >> 32);
}
static inline size_t path_where_len(uint64_t w)
{
    return w >> 16 & 0xffff;
}
static inline uint16_t path_where_check(uint64_t w)
{
    return (uint16_t)w;
}

#endif
