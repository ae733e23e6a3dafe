/* state.c - indexes over the mapped records, free slots, paths, and the lists that link records.
 *
 *   fid          -> file_index  -> slot of a file record --first_chunk--> chunk <-> chunk <-> ...
 *
 *   (fid, index) -> chunk_index -> slot of a chunk record
 *
 * The indexes hold slot numbers only (4 bytes for each record, at most 2/3 full); keys are compared
 * in the mapped records.  Deletion shifts back what follows, so there are no tombstones.  In a
 * file's list of chunks the dirty ones are in front.
 */
#include "placement/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "placement/state_int.h"

struct state state = {.slabs_fd = -1, .busy_first = SLOT_NONE};

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

uint16_t path_check(const char *path, size_t len)
{
    return (uint16_t)XXH3_64bits_withSeed(path, len, PATH_MAGIC);
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

/* ---- index ---- */

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
        if (((j - home) & x->mask) >= ((j - i) & x->mask)) { /* the gap is on its way from home */
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

/* ---- slots ---- */

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

static struct slabs *slabs_of(enum slab_kind kind, uint32_t **reserved)
{
    *reserved = kind == SLAB_FILES ? &state.files_reserved : &state.chunks_reserved;
    return kind == SLAB_FILES ? &state.files : &state.chunks;
}

bool state_reserve(enum slab_kind kind, uint32_t n)
{
    uint32_t *reserved;
    struct slabs *s = slabs_of(kind, &reserved);
    lock_take(&state.lock);
    bool ok = s->nfree - *reserved >= n;
    if (ok)
        *reserved += n;
    lock_drop(&state.lock);
    return ok;
}

void state_unreserve(enum slab_kind kind, uint32_t n)
{
    uint32_t *reserved;
    slabs_of(kind, &reserved);
    lock_take(&state.lock);
    if (*reserved < n)
        die("store: more slots given back than were set aside");
    *reserved -= n;
    lock_drop(&state.lock);
}

int state_grow(enum slab_kind kind, uint64_t slab_bytes)
{
    uint32_t *reserved;
    struct slabs *s = slabs_of(kind, &reserved);
    struct slab_made made;
    int err = 0;
    lock_take(&state.growing);
    if (!state_reserve(kind, 1)) { /* not if another thread has just done it */
        err = slab_make(s, state.slabs_fd, slab_bytes, state.boot_id, &made);
        lock_take(&state.lock);
        if (!err)
            slab_add(s, &made);
        lock_drop(&state.lock);
    } else {
        state_unreserve(kind, 1);
    }
    lock_drop(&state.growing);
    return err;
}

static uint32_t take_reserved(enum slab_kind kind)
{
    uint32_t *reserved;
    struct slabs *s = slabs_of(kind, &reserved);
    uint32_t no = *reserved ? slab_take(s) : SLOT_NONE;
    if (no == SLOT_NONE)
        die("store: a slot is taken that was not set aside");
    (*reserved)--;
    return no;
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
    uint32_t no = take_reserved(SLAB_FILES);
    struct file_record *r = file_slot(no);
    r->check = file_check(fid);
    r->fid = fid;
    r->path_where = (uint64_t)SLOT_NONE << 32 | path_check("", 0);
    r->self = no;
    r->first_chunk = r->last_chunk = r->busy_next = r->busy_prev = SLOT_NONE;
    r->core[0] = (struct file_core){.cut = UINT64_MAX, .raised_mode = UINT32_MAX};
    r->core[0].check = core_check(&r->core[0], fid);
    crash_order();
    __atomic_store_n(&r->magic, FILE_MAGIC, __ATOMIC_RELEASE);
    index_add_file(no);
    lock_drop(&state.lock);
    return r;
}

static void free_path(uint64_t where)
{
    size_t left = path_where_len(where);
    for (uint32_t no = path_where_slot(where), next; no != SLOT_NONE && left; no = next) {
        struct path_record *p = path_slot(no);
        next = p->next;
        left -= MIN(left, p->used);
        __atomic_store_n(&p->magic, 0, __ATOMIC_RELEASE);
        slab_put(&state.files, no);
    }
}

void state_file_free(struct file_record *r)
{
    lock_take(&state.lock);
    if (r->first_chunk != SLOT_NONE || r->busy_prev != SLOT_NONE || state.busy_first == r->self)
        die("store: a record that is in use is freed");
    index_remove(&state.file_index, hash_file_slot, r->self);
    __atomic_store_n(&r->magic, 0, __ATOMIC_RELEASE);
    crash_order();
    free_path(r->path_where);
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

/* ---- paths ---- */

uint32_t state_path_slots(size_t len)
{
    return (uint32_t)((len + PATH_PIECE - 1) / PATH_PIECE);
}

/* A chain of new slots with this path; the first one's number. */
static uint32_t make_path(const char *path, size_t len)
{
    uint32_t first = SLOT_NONE;
    for (uint32_t n = state_path_slots(len);
         n-- > 0;) { /* from the end, so that each links to one that is there */
        uint32_t no = take_reserved(SLAB_FILES);
        struct path_record *p = path_slot(no);
        size_t from = (size_t)n * PATH_PIECE;
        p->used = (uint32_t)MIN(len - from, PATH_PIECE);
        p->next = first;
        memcpy(p->bytes, path + from, p->used);
        crash_order();
        __atomic_store_n(&p->magic, PATH_MAGIC, __ATOMIC_RELEASE);
        first = no;
    }
    return first;
}

uint32_t state_path_set(struct file_record *r, const char *path)
{
    size_t len = strnlen(path, STATE_PATH_MAX);
    uint64_t old = r->path_where;
    uint32_t slot = SLOT_NONE, used = 0;
    lock_take(&state.lock);
    /* Never over the path that counts: a crash in between must find the old or the new one. */
    bool inline_used = path_where_slot(old) == SLOT_NONE && path_where_len(old);
    if (len > INLINE_PATH || inline_used) {
        slot = make_path(path, len);
        used = state_path_slots(len);
    } else {
        memcpy(r->path, path, len);
    }
    crash_order();
    __atomic_store_n(&r->path_where, (uint64_t)slot << 32 | len << 16 | path_check(path, len),
                     __ATOMIC_RELEASE);
    crash_order();
    free_path(old);
    lock_drop(&state.lock);
    return used;
}

size_t path_get(const struct slabs *files, const struct file_record *r,
                char buf[STATE_PATH_MAX + 1])
{
    uint64_t where = r->path_where;
    size_t len = path_where_len(where), got = 0;
    uint32_t no = path_where_slot(where);
    buf[0] = 0;
    if (len > STATE_PATH_MAX || (no == SLOT_NONE && len > INLINE_PATH))
        return 0;
    if (no == SLOT_NONE) {
        memcpy(buf, r->path, len);
        got = len;
    }
    while (no != SLOT_NONE && got < len && slab_has(files, no)) {
        const struct path_record *p = slab_at(files, no);
        if (p->magic != PATH_MAGIC || !p->used || p->used > PATH_PIECE || p->used > len - got)
            break;
        memcpy(buf + got, p->bytes, p->used);
        got += p->used;
        no = p->next;
    }
    if (got != len || path_check(buf, len) != path_where_check(where) || memchr(buf, 0, len))
        len = 0;
    buf[len] = 0;
    return len;
}

size_t state_path_get(const struct file_record *r, char buf[STATE_PATH_MAX + 1])
{
    return path_get(&state.files, r, buf);
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

static void chunk_list_remove(struct file_record *r, struct chunk_record *c)
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
    uint32_t no = take_reserved(SLAB_CHUNKS);
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
    index_remove(&state.chunk_index, hash_chunk_slot, c->self);
    __atomic_store_n(&c->magic, 0, __ATOMIC_RELEASE);
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
