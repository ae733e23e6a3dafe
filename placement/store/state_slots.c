/* state_slots.c - slots of records: set aside before they are needed, and taken of those; more slabs. */
#include "placement/store/state_int.h"
#include "placement/store/state_table.h"

struct state state = {.slabs_fd = -1, .busy_first = SLOT_NONE};

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

int state_grow(enum slab_kind kind, uint32_t n, uint64_t slab_bytes)
{
    uint32_t *reserved;
    struct slabs *s = slabs_of(kind, &reserved);
    struct slab_made made;
    int err = 0;
    lock_take(&state.growing);
    if (!state_reserve(kind, n)) { /* not if another thread has just done it */
        err = slab_make(s, state.slabs_fd, slab_bytes, state.boot_id, &made);
        lock_take(&state.lock);
        if (!err)
            slab_add(s, &made);
        lock_drop(&state.lock);
    } else {
        state_unreserve(kind, n);
    }
    lock_drop(&state.growing);
    return err;
}

uint32_t slot_take_reserved(enum slab_kind kind)
{
    uint32_t *reserved;
    struct slabs *s = slabs_of(kind, &reserved);
    uint32_t no = *reserved ? slab_take(s) : SLOT_NONE;
    if (no == SLOT_NONE)
        die("store: a slot is taken that was not set aside");
    (*reserved)--;
    return no;
}
