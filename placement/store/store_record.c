/* store_record.c - a change of a file's record: dirty, changed, committed. */
#include <stdlib.h>

#include "placement/store/page_set.h"
#include "placement/store/state.h"
#include "placement/store/state_table.h"
#include "placement/store/store_int.h"

void store_drop_lost(struct file *f)
{
    if (f->cover.lost)
        page_set_free(f->cover.lost);
    free(f->cover.lost);
    f->cover.lost = NULL;
}

void store_sync_made_good(struct file *f)
{
    store_drop_lost(f);
    f->cover.err = 0;
    f->rec->unsynced = 0;
}

void store_changed(struct file *f)
{
    f->change++;
    void (*unsynced)(void) = f->synced ? store.on_unsynced : NULL;
    if (unsynced)
        unsynced();
    f->synced = false;
}

void store_commit(struct file *f)
{
    core_commit(f->rec);
    if (!is_dirty(f)) {
        store_not_covered(f);
        store_sync_made_good(f);
        if (f->cover.now)
            f->cover.now->over = true;
    }
    state_busy_set(f->rec, core_busy(core(f)));
}

void store_tell_dirty(struct file *f, bool became)
{
    void (*dirty)(struct file *f) = became ? store.on_dirty : NULL;
    if (dirty)
        dirty(f);
}

bool store_mark_dirty(struct file *f)
{
    if (core(f)->flags & (CORE_DIRTY | CORE_DELETED))
        return false;
    core_change(f->rec)->flags |= CORE_DIRTY;
    store_commit(f);
    return true;
}
