/* state_open.c - start: maps the slabs, checks every record, makes the indexes and lists again.
 *
 * Nothing in a slab is trusted before it was checked: a power loss can tear records, a disk can
 * rot, and the user could have edited it.  What does not hold together is
 * dropped and counted; a dirty file that loses something this way is made suspect by
 * store_recover.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placement/store/state.h"
#include "placement/store/state_int.h"
#include "placement/store/state_table.h"

uint32_t chunk_slot_size(uint32_t chunk_size)
{
    uint32_t pages = chunk_size / 4096, words = (pages + 63) / 64;
    uint32_t size = (uint32_t)sizeof(struct chunk_record) + BITS_KINDS * words * 8;
    return (size + 63) & ~63u;
}

/* ---- files and paths ---- */

static bool core_sane(const struct file_core *c, struct fid fid)
{
    return c->check == core_check(c, fid) && c->size <= INT64_MAX && c->base_end <= c->size &&
           !(c->flags & ~CORE_ALL);
}

bool core_is_sane(const struct file_record *r, const struct file_core *c)
{
    return core_sane(c, r->fid);
}

int file_record_check(struct file_record *r)
{
    if (r->check != file_check(r->fid) || fid_is_zero(r->fid))
        return -EUCLEAN;
    if (core_sane(core_of(r), r->fid))
        return 0;
    if (!core_sane(&r->covered, r->fid))
        return -EUCLEAN;
    r->core[r->core_now & 1] = r->covered; /* torn by a power loss: back to what was fsynced */
    r->whole = 0;
    return 0;
}

static void drop_file(uint32_t no, struct state_report *rep)
{
    struct file_record *r = file_slot(no);
    char path[STATE_PATH_MAX + 1];
    state_path_get(r, path);
    log_error("a record in slabs/files is torn: %s: what the cache knew of it is lost",
              path[0] ? path : "(no name)");
    rep->torn_files++;
    r->magic = 0;
    slab_put(&state.files, no);
}

static void take_file(uint32_t no, struct state_report *rep)
{
    struct file_record *r = file_slot(no);
    if (file_record_check(r) || index_find_file(r->fid) != SLOT_NONE) {
        drop_file(no, rep);
        return;
    }
    r->core_now &= 1;
    r->self = no;
    r->first_chunk = r->last_chunk = r->busy_next = r->busy_prev = SLOT_NONE;
    r->valid = r->zero = r->dirty = 0;
    r->data_synced = r->doubled = r->freed = 0;
    r->loss_told = 0;
    index_add_file(no);
    if (core_busy(core_of(r)))
        busy_add(r);
}

/* Marks the pieces of a path; false if the path is torn. */
static bool mark_path(struct file_record *r)
{
    char path[STATE_PATH_MAX + 1];
    size_t len = path_where_len(r->path_where), left = len;
    if (state_path_get(r, path) != len)
        return false;
    for (uint32_t no = path_where_slot(r->path_where); no != SLOT_NONE && left;
         no = path_slot(no)->next) {
        if (path_slot(no)->marked)
            return false; /* another file's */
        path_slot(no)->marked = 1;
        left -= path_slot(no)->used;
    }
    return true;
}

static void each_slot(struct slabs *s, void (*fn)(uint32_t no, struct state_report *rep),
                      struct state_report *rep)
{
    for (uint32_t n = 0; n < s->n; n++)
        for (uint32_t i = 0; s->slab[n].map && i < s->slab[n].slots; i++)
            fn(n << SLAB_SHIFT | i, rep);
}

static void look_at_file_slot(uint32_t no, struct state_report *rep)
{
    uint32_t magic = file_slot(no)->magic;
    if (magic == FILE_MAGIC) {
        take_file(no, rep);
    } else if (magic == PATH_MAGIC) {
        path_slot(no)->marked = 0;
    } else {
        rep->torn_paths += magic != 0;
        file_slot(no)->magic = 0;
        slab_put(&state.files, no);
    }
}

static void look_at_path(uint32_t no, struct state_report *rep)
{
    struct file_record *r = file_slot(no);
    if (r->magic != FILE_MAGIC || mark_path(r))
        return;
    char hex[2 * sizeof(struct fid) + 1], before[STATE_PATH_MAX + 1];
    snprintf(hex, sizeof(hex), "%016llx%016llx", (unsigned long long)r->fid.hi,
             (unsigned long long)r->fid.lo);
    bool known = path_fall_back(r);
    state_path_get(r, before);
    log_warn("the path of cached file %s is torn: until the file is looked up it is known as %s",
             hex, known ? before : "that number");
    rep->torn_paths++;
}

static void sweep_path(uint32_t no, struct state_report *rep)
{
    (void)rep;
    struct path_record *p = path_slot(no);
    if (p->magic != PATH_MAGIC || p->marked)
        return;
    p->magic = 0;
    slab_put(&state.files, no);
}

/* ---- chunks ---- */

static void mask_bits(struct chunk_record *c)
{
    uint32_t words = state.words;
    for (unsigned kind = 0; kind < BITS_KINDS; kind++) {
        uint64_t *b = chunk_bits(c, kind, words);
        if (state.pages % 64)
            b[words - 1] &= (UINT64_C(1) << state.pages % 64) - 1;
        for (uint32_t w = 0; w < words; w++) {
            if (kind == BITS_COVERED || kind == BITS_ZERO)
                b[w] &= chunk_bits(c, BITS_VALID, words)[w];
        }
    }
}

static uint64_t count_bits(struct chunk_record *c, unsigned kind)
{
    uint64_t n = 0;
    for (uint32_t w = 0; w < state.words; w++)
        n += (uint64_t)__builtin_popcountll(chunk_bits(c, kind, state.words)[w]);
    return n;
}

static bool chunk_sane(const struct chunk_record *c)
{
    return c->check == chunk_check(c->fid, c->index) && !(c->flags & ~CHUNK_ALL) &&
           c->index < (uint64_t)INT64_MAX / state.chunk_size;
}

/* Adds the chunk's pages to the counts in the file's record, or takes them off again. */
static void count_chunk(struct file_record *r, struct chunk_record *c, bool there)
{
    uint64_t sign = there ? 1 : UINT64_MAX;
    r->valid += sign * count_bits(c, BITS_VALID);
    r->zero += sign * count_bits(c, BITS_ZERO);
    r->dirty += sign * count_bits(c, BITS_DIRTY);
}

static void drop_chunk(struct chunk_record *c, uint32_t no)
{
    c->magic = 0;
    slab_put(&state.chunks, no);
}

static bool is_covered(struct chunk_record *c)
{
    return count_bits(c, BITS_COVERED) > 0;
}

/* Two records beyond what was fsynced need no note: the chunk was cut off there and made again, and nothing
 * there counts. */
static void note_doubled(struct file_record *r, struct chunk_record *c, struct chunk_record *known)
{
    if (c->index * state.chunk_size >= r->covered.size)
        return;
    bool both = is_covered(c) && is_covered(known);
    r->doubled = both ? DOUBLED_COVERED : MAX(r->doubled, (uint8_t)DOUBLED);
}

/* There are two records of one chunk: the older one was freed, but the disk does not show that.  No fsync
 * covers the older one.  Either it was uncovered before it was freed (pages_evict), or it was cut off, or the
 * fsync that covered the newer one would have written that it is free (state_sync_freed).  So the covered one
 * is right.  If none is covered, nothing of the chunk counts after a power loss. */
static bool is_better(struct chunk_record *c, struct chunk_record *known)
{
    return is_covered(c) && !is_covered(known);
}

/* After a power loss the pages of the slabs are of different ages, each as it was at one time.  So a chunk's
 * record may be older than its file's record, or than another record of the same chunk.  This puts no
 * other files in doubt.  A torn record does, since nothing tells which file it was of. */
static bool take_chunk(struct chunk_record *c, struct state_report *rep)
{
    bool live = c->magic == CHUNK_MAGIC;
    uint32_t file = live && chunk_sane(c) ? index_find_file(c->fid) : SLOT_NONE;
    if (live && chunk_sane(c) && file == SLOT_NONE) {
        rep->stray_chunks++;
        return false;
    }
    if (file == SLOT_NONE) {
        rep->torn_chunks += c->magic != 0;
        return false;
    }
    mask_bits(c);
    uint32_t known = index_find_chunk(c->fid, c->index);
    if (known == SLOT_NONE)
        return true;
    rep->stray_chunks++;
    note_doubled(file_slot(file), c, chunk_slot(known));
    if (!is_better(c, chunk_slot(known)))
        return false;
    count_chunk(file_slot(file), chunk_slot(known), false);
    chunk_list_remove(file_slot(file), chunk_slot(known));
    index_remove_chunk(known);
    drop_chunk(chunk_slot(known), known);
    return true;
}

static void look_at_chunk_slot(uint32_t no, struct state_report *rep)
{
    struct chunk_record *c = chunk_slot(no);
    if (!take_chunk(c, rep)) {
        drop_chunk(c, no);
        return;
    }
    struct file_record *r = file_slot(index_find_file(c->fid));
    c->self = no;
    c->flags = (uint16_t)(c->flags & ~(CHUNK_SYNCED | CHUNK_COVERED));
    c->flags |= is_covered(c) ? CHUNK_COVERED : 0;
    c->lru_next = c->lru_prev = SLOT_OFF_LIST;
    c->touched = 0; /* hints were the former daemon's */
    count_chunk(r, c, true);
    index_add_chunk(no);
    chunk_list_add(r, c, count_bits(c, BITS_DIRTY) > 0);
}

/* ---- the whole ---- */

static void check_all(struct state_report *rep)
{
    each_slot(&state.files, look_at_file_slot, rep);
    each_slot(&state.files, look_at_path, rep);
    each_slot(&state.files, sweep_path, rep);
    each_slot(&state.chunks, look_at_chunk_slot, rep);
    rep->damaged_slabs = state.files.damaged + state.chunks.damaged;
    rep->unclean = state.files.unclean || state.chunks.unclean;
    rep->power_loss = state.files.other_boot || state.chunks.other_boot;
    if (rep->torn_chunks)
        log_warn("%u records in slabs/chunks are torn and were dropped", rep->torn_chunks);
}

int state_open(int slabs_fd, uint32_t chunk_size, const char *boot_id, struct state_report *rep)
{
    static bool made;
    if (!made) {
        lock_init(&state.growing, RANK_SPACE);
        lock_init(&state.syncing, RANK_SPACE);
        lock_init(&state.lock, RANK_STATE);
    }
    made = true;
    memset(rep, 0, sizeof(*rep));
    state.slabs_fd = slabs_fd;
    snprintf(state.boot_id, sizeof(state.boot_id), "%s", boot_id);
    state.chunk_size = chunk_size;
    state.pages = chunk_size / 4096;
    state.words = (state.pages + 63) / 64;
    state.busy_first = SLOT_NONE;
    slabs_init(&state.files, SLAB_FILES, FILE_SLOT, chunk_size);
    slabs_init(&state.chunks, SLAB_CHUNKS, chunk_slot_size(chunk_size), chunk_size);
    state.open = true;
    int err = slabs_open(&state.files, slabs_fd, boot_id, false);
    if (!err)
        err = slabs_open(&state.chunks, slabs_fd, boot_id, false);
    if (err) {
        state_close(false);
        return err;
    }
    check_all(rep);
    return 0;
}

/* Makes sure that what the last daemon freed, and what this start has dropped, is gone on the disk, too (see
 * state_sync_freed). */
int state_start(void)
{
    int err = slabs_sync(&state.files);
    if (!err)
        err = slabs_sync(&state.chunks);
    if (!err)
        err = slabs_sign(&state.files, state.boot_id, false);
    if (!err)
        err = slabs_sign(&state.chunks, state.boot_id, false);
    return err;
}

static int sync_and_mark(void)
{
    int err = slabs_sync(&state.files);
    if (!err)
        err = slabs_sync(&state.chunks);
    if (!err)
        err = slabs_sign(&state.files, state.boot_id, true);
    if (!err)
        err = slabs_sign(&state.chunks, state.boot_id, true);
    return err;
}

static void index_free(struct slot_index *x)
{
    free(x->slot);
    memset(x, 0, sizeof(*x));
}

int state_close(bool clean)
{
    int err = clean ? sync_and_mark() : 0;
    slabs_close(&state.files);
    slabs_close(&state.chunks);
    index_free(&state.file_index);
    index_free(&state.chunk_index);
    state.files_reserved = state.chunks_reserved = state.nbusy = 0;
    state.open = false;
    return err;
}

void state_each_file(void (*fn)(struct file_record *r, void *arg), void *arg)
{
    struct slabs *s = &state.files;
    for (uint32_t n = 0; n < s->n; n++)
        for (uint32_t i = 0; s->slab[n].map && i < s->slab[n].slots; i++) {
            struct file_record *r = file_slot(n << SLAB_SHIFT | i);
            if (r->magic == FILE_MAGIC)
                fn(r, arg);
        }
}
