/* state_path.c - the path of a file's record: short ones stand in the record, longer ones in a chain
 * of slots of their own.
 *
 *     path_where = slot of the first piece, or none: inline | length | check
 *
 * One 8-byte store makes the new path count, so a crash finds the old or the new one.
 */
#include "placement/store/state.h"
#include "placement/store/state_int.h"
#include "placement/store/state_table.h"

#include <string.h>
#include <xxhash.h>

uint16_t path_check(const char *path, size_t len)
{
    return (uint16_t)XXH3_64bits_withSeed(path, len, PATH_MAGIC);
}

uint32_t state_path_slots(size_t len)
{
    return (uint32_t)((len + PATH_PIECE - 1) / PATH_PIECE);
}

/* Makes a chain of new slots with this path; returns the first slot's number. */
static uint32_t make_path(const char *path, size_t len)
{
    uint32_t first = SLOT_NONE;
    for (uint32_t n = state_path_slots(len);
         n-- > 0;) { /* from the end, so that each links to one that is there */
        uint32_t no = slot_take_reserved(SLAB_FILES);
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

void path_free(uint64_t where)
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

uint32_t state_path_set(struct file_record *r, const char *path)
{
    size_t len = strlen(path);
    uint64_t old = r->path_where;
    uint32_t slot = SLOT_NONE, used = 0;
    lock_take(&state.lock);
    /* Never over the path that counts: a crash in between must find the old or the new one. */
    bool inline_used = path_where_slot(old) == SLOT_NONE && path_where_len(old);
    if (len > INLINE_PATH || inline_used) {
        slot = make_path(path, len);
        used = state_path_slots(len);
    } else {
        r->inline_len = 0;
        crash_order();
        memcpy(r->path, path, len);
        crash_order();
        r->inline_len = (uint8_t)len;
    }
    crash_order();
    __atomic_store_n(&r->path_where, (uint64_t)slot << 32 | len << 16 | path_check(path, len),
                     __ATOMIC_RELEASE);
    crash_order();
    path_free(old);
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

bool path_fall_back(struct file_record *r)
{
    bool slots = path_where_slot(r->path_where) != SLOT_NONE;
    size_t len = slots ? MIN(r->inline_len, INLINE_PATH) : 0;
    if (memchr(r->path, 0, len))
        len = 0;
    r->path_where = (uint64_t)SLOT_NONE << 32 | len << 16 | path_check(r->path, len);
    return len;
}

unsigned state_path_pieces(const struct file_record *r, const void *piece[PATH_PIECES_MAX])
{
    size_t left = path_where_len(r->path_where);
    unsigned n = 0;
    for (uint32_t no = path_where_slot(r->path_where);
         no != SLOT_NONE && left && n < PATH_PIECES_MAX;) {
        const struct path_record *p = path_slot(no);
        piece[n++] = p;
        left -= MIN(left, p->used);
        no = p->next;
    }
    return n;
}
