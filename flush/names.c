/* names.c - when this node's dirty list in the session directory is written: which files are not on the PFS yet,
 * for `eddy check` when no daemon is alive to ask.  names_write.c writes it.
 *
 * It is written as a whole, BATCH_MS after the first change.  A list that takes long to write (many files,
 * a slow PFS) is written less often, so that it takes at most a twentieth of the time.  It is removed
 * when nothing is dirty.
 *
 * A start after a power loss reads it, too: it names files of which the cache has nothing left, or only what
 * an older fsync covered.  So it is also written again when a file that was
 * fsynced changes, with the times of all files.
 */
#include "flush/flush_events.h"
#include "flush/lull.h"
#include "flush/names.h"
#include "transport/base.h"

#define BATCH_MS 800

struct names names;
static pthread_once_t names_once = PTHREAD_ONCE_INIT;

static void names_init(void)
{
    lock_init(&names.lock, RANK_LEAF);
}

void names_start(void)
{
    pthread_once(&names_once, names_init);
    lock_take(&names.lock);
    names.changed = true; /* also to remove what a dead daemon left */
    names.on_pfs = true;
    names.held = true;
    names.changed_ms = boot_ms();
    names.not_before_ms = 0;
    lock_drop(&names.lock);
}

void names_go(void)
{
    lock_take(&names.lock);
    names.held = false;
    lock_drop(&names.lock);
    bell_ring();
}

void flush_list_changed(void)
{
    lock_take(&names.lock);
    bool first = !names.changed;
    if (first)
        names.changed_ms = boot_ms();
    names.changed = true;
    lock_drop(&names.lock);
    if (first)
        bell_ring(); /* the flusher sees to the time */
}

uint64_t names_due_ms(uint64_t now)
{
    uint64_t due = UINT64_MAX;
    lock_take(&names.lock);
    if (names.changed && !names.writing && !names.held) {
        uint64_t at = MAX(names.changed_ms + BATCH_MS, names.not_before_ms);
        due = at > now ? at - now : 0;
    }
    lock_drop(&names.lock);
    return due;
}
