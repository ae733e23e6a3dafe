/* state.c - the mapped records: checked, changed in two copies, made, freed, linked.
 *
 *   fid          -> file_index  -> slot of a file record --first_chunk--> chunk <-> chunk <-> ...
 *
 *   (fid, index) -> chunk_index -> slot of a chunk record
 *
 * The slots are state_slots.c, the indexes state_index.c, paths state_path.c, the start state_open.c.
 * In a file's list of chunks the dirty ones are in front.  state.lock (RANK_STATE) holds indexes, free
 * slots and the list of busy records; a record's own parts belong to its file's lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <xxhash.h>

#include "placement/store/state.h"
#include "placement/store/state_int.h"
#include "placement/store/state_table.h"

/* ---- checks ---- */

uint32_t file_check(struct fid fid)
{
    return (uint32_t)XXH3_64bits_withSeed(&fid, sizeof(fid), FILE_MAGIC);
}

uint32_t chunk_check(struct fid fid, uint64_t index)
{
    uint64_t key[3] = {fid.hi, fid.lo, index};
    return (uint32_t)XXH3_64bits_withSeed(key, sizeof(key), CHUNK_MAGIC);
}

uint64_t core_check(const struct file_core *c, struct fid fid)
{
    return XXH3_64bits_withSeed(c, offsetof(struct file_core, check), fid.lo ^ fid.hi);
}

/* ---- cores ---- */

struct file_core *core_change(struct file_record *r)
{
    struct file_core *c = &r->core[(r->core_now & 1) ^ 1];
    *c = *core_of(r);
    return c;
}

void core_commit(struct file_record *r)
{
    uint32_t next = (r->core_now & 1) ^ 1;
    r->core[next].check = core_check(&r->core[next], r->fid);
    crash_order();
    __atomic_store_n(&r->core_now, next, __ATOMIC_RELEASE);
}

/* ---- sizes ---- */

uint32_t state_pages(void)
{
    return state.pages;
}

uint32_t state_words(void)
{
    return state.words;
}

uint64_t state_slab_bytes(void)
{
    lock_take(&state.lock);
    uint64_t n = state.files.bytes + state.chunks.bytes;
    lock_drop(&state.lock);
    return n;
}

int state_sync(const void *record, size_t len)
{
    lock_take(&state.lock);
    struct slab *b = slab_of(&state.files, record);
    if (!b)
        b = slab_of(&state.chunks, record);
    lock_drop(&state.lock);
    if (!b)
        die("store: a record that is in no slab is to be written");
    return slab_sync(b, record, len);
}

/* ---- files ---- */

struct file_record *state_file_find(struct fid fid)
{
    lock_take(&state.lock);
    uint32_t no = index_find_file(fid);
    lock_drop(&state.lock);
    return no == SLOT_NONE ? NULL : file_slot(no);
}

struct file_record *state_file_new(struct fid fid)
{
    lock_take(&state.lock);
    uint32_t no = slot_take_reserved(SLAB_FILES);
    struct file_record *r = file_slot(no);
    r->check = file_check(fid);
    r->fid = fid;
    r->path_where = (uint64_t)SLOT_NONE << 32 | path_check("", 0);
    r->self = no;
    r->first_chunk = r->last_chunk = r->busy_next = r->busy_prev = SLOT_NONE;
    r->core[0] = (struct file_core){.cut = UINT64_MAX, .raised_mode = UINT32_MAX};
    r->core[0].check = core_check(&r->core[0], fid);
    r->freed = state.chunk_freed; /* they may be chunks of this file, of an earlier record */
    crash_order();
    __atomic_store_n(&r->magic, FILE_MAGIC, __ATOMIC_RELEASE);
    index_add_file(no);
    lock_drop(&state.lock);
    return r;
}

void state_file_free(struct file_record *r)
{
    lock_take(&state.lock);
    if (r->first_chunk != SLOT_NONE || r->busy_prev != SLOT_NONE || state.busy_first == r->self)
        die("store: a record that is in use is freed");
    index_remove_file(r->self);
    __atomic_store_n(&r->magic, 0, __ATOMIC_RELEASE);
    crash_order();
    path_free(r->path_where);
    state.file_freed = true;
    state.chunk_freed |= r->freed;
    slab_put(&state.files, r->self);
    lock_drop(&state.lock);
}

uint64_t state_files(void)
{
    lock_take(&state.lock);
    uint64_t n = state.file_index.count;
    lock_drop(&state.lock);
    return n;
}

uint64_t state_chunks(void)
{
    lock_take(&state.lock);
    uint64_t n = state.chunk_index.count;
    lock_drop(&state.lock);
    return n;
}

int state_sync_freed(bool chunks)
{
    lock_take(&state.syncing); /* a thread that finds nothing to do has waited for the one that does it */
    lock_take(&state.lock);
    bool files = state.file_freed;
    state.file_freed = false;
    state.chunk_freed &= !chunks;
    lock_drop(&state.lock);
    int err = files ? slabs_sync(&state.files) : 0;
    int e = chunks ? slabs_sync(&state.chunks) : 0;
    if (err || e) { /* the next call tries again */
        lock_take(&state.lock);
        state.file_freed |= files;
        state.chunk_freed |= chunks;
        lock_drop(&state.lock);
    }
    lock_drop(&state.syncing);
    return err ? err : e;
}

/* ---- chunks ---- */

struct chunk_record *state_chunk_find(struct fid fid, uint64_t index)
{
    lock_take(&state.lock);
    uint32_t no = index_find_chunk(fid, index);
    lock_drop(&state.lock);
    return no == SLOT_NONE ? NULL : chunk_slot(no);
}

struct chunk_record *state_chunk_at(uint32_t no)
{
    return no == SLOT_NONE ? NULL : chunk_slot(no);
}

void chunk_list_add(struct file_record *r, struct chunk_record *c, bool front)
{
    c->file_prev = front ? SLOT_NONE : r->last_chunk;
    c->file_next = front ? r->first_chunk : SLOT_NONE;
    if (c->file_prev != SLOT_NONE)
        chunk_slot(c->file_prev)->file_next = c->self;
    else
        r->first_chunk = c->self;
    if (c->file_next != SLOT_NONE)
        chunk_slot(c->file_next)->file_prev = c->self;
    else
        r->last_chunk = c->self;
}

void chunk_list_remove(struct file_record *r, struct chunk_record *c)
{
    if (c->file_prev != SLOT_NONE)
        chunk_slot(c->file_prev)->file_next = c->file_next;
    else
        r->first_chunk = c->file_next;
    if (c->file_next != SLOT_NONE)
        chunk_slot(c->file_next)->file_prev = c->file_prev;
    else
        r->last_chunk = c->file_prev;
}

void state_chunk_front(struct file_record *r, struct chunk_record *c)
{
    if (r->first_chunk == c->self)
        return;
    chunk_list_remove(r, c);
    chunk_list_add(r, c, true);
}

struct chunk_record *state_chunk_new(struct file_record *r, uint64_t index)
{
    lock_take(&state.lock);
    uint32_t no = slot_take_reserved(SLAB_CHUNKS);
    struct chunk_record *c = chunk_slot(no);
    c->fid = r->fid;
    c->index = index;
    c->check = chunk_check(r->fid, index);
    c->self = no;
    c->lru_next = c->lru_prev = SLOT_OFF_LIST;
    crash_order();
    __atomic_store_n(&c->magic, CHUNK_MAGIC, __ATOMIC_RELEASE);
    index_add_chunk(no);
    lock_drop(&state.lock);
    chunk_list_add(r, c, false);
    return c;
}

void state_chunk_free(struct file_record *r, struct chunk_record *c)
{
    chunk_list_remove(r, c);
    lock_take(&state.lock);
    index_remove_chunk(c->self);
    __atomic_store_n(&c->magic, 0, __ATOMIC_RELEASE);
    r->freed = 1;
    slab_put(&state.chunks, c->self);
    lock_drop(&state.lock);
}

/* ---- busy records ---- */

static bool is_busy(const struct file_record *r)
{
    return r->busy_prev != SLOT_NONE || state.busy_first == r->self;
}

void busy_add(struct file_record *r)
{
    r->busy_prev = SLOT_NONE;
    r->busy_next = state.busy_first;
    if (r->busy_next != SLOT_NONE)
        file_slot(r->busy_next)->busy_prev = r->self;
    state.busy_first = r->self;
    state.nbusy++;
}

static void busy_remove(struct file_record *r)
{
    if (r->busy_prev != SLOT_NONE)
        file_slot(r->busy_prev)->busy_next = r->busy_next;
    else
        state.busy_first = r->busy_next;
    if (r->busy_next != SLOT_NONE)
        file_slot(r->busy_next)->busy_prev = r->busy_prev;
    r->busy_next = r->busy_prev = SLOT_NONE;
    state.nbusy--;
}

void state_busy_set(struct file_record *r, bool busy)
{
    lock_take(&state.lock);
    if (busy && !is_busy(r))
        busy_add(r);
    else if (!busy && is_busy(r))
        busy_remove(r);
    lock_drop(&state.lock);
}

struct fid *state_busy(size_t *n)
{
    lock_take(&state.lock);
    struct fid *fids = xmalloc((state.nbusy + 1) * sizeof(*fids));
    *n = 0;
    for (uint32_t no = state.busy_first; no != SLOT_NONE; no = file_slot(no)->busy_next)
        fids[(*n)++] = file_slot(no)->fid;
    lock_drop(&state.lock);
    return fids;
}
