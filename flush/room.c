/* room.c - the present number of dirty bytes: tells the flusher of the marks, slows writers and lets them
 * wait.
 *
 * Writers call flush_must_wait before each write, which costs a few atomics while there is
 * room.  The sampler sees writers that the kernel serves (sample.c).
 */
#include "flush/flush.h"
#include "flush/flush_int.h"
#include "flush/lull.h"
#include "flush/queue.h"
#include "flush/retry.h"
#include "placement/foresight/budget.h"
#include "placement/store/store_open.h"
#include "transport/waits.h"

#include <errno.h>

#define ROOM_RETRY_MS 1000 /* failed files are tried again for room this often at most */
#define BATCH         (64u << 20)
#define BATCH_SHARE   64 /* of the cache, so that a small one has room again soon */

/* flush.marks as the writers see them without the lock. */
static _Atomic bool above_high;

uint64_t room_batch(void)
{
    uint64_t dirty, room;
    store_dirty(&dirty, &room);
    return MAX(MIN(room / BATCH_SHARE, (uint64_t)BATCH), (uint64_t)PIECE);
}

/* ---- the level ---- */

enum mark_level room_level(void)
{
    struct marks_sample now = {
        .at_ms = boot_ms(), .flushed = counted(flushed_bytes), .written = counted(pfs_write_bytes)};
    uint64_t room;
    store_dirty(&now.dirty, &room);
    marks_measure(&flush.marks, &now, flush.busy || flush.urgent_jobs || flush.syncing);
    enum mark_level level = marks_level(&flush.marks, now.dirty, room);
    bool was = atomic_exchange(&above_high, level == MARK_HIGH);
    if (was != (level == MARK_HIGH))
        budget_flush_presses(!was);
    if (!was && level == MARK_HIGH)
        bell_ring(); /* wakes the flusher, and runs that wait for a lull */
    return level;
}

/* Above the high mark with len bytes more? */
static bool is_high(uint64_t len)
{
    uint64_t dirty, room;
    store_dirty(&dirty, &room);
    return dirty + len > marks_bytes(room, flush.config.dirty_high);
}

void room_look(void)
{
    if (!is_high(0) || atomic_load_explicit(&above_high, memory_order_relaxed))
        return;
    lock_take(&flush.lock);
    room_level();
    lock_drop(&flush.lock);
}

/* ---- writers ---- */

bool flush_must_wait(uint64_t len)
{
    return is_high(len);
}

/* Lock held: sleeps until something ends, but no longer than that. */
static void sleep_ms(uint64_t ms)
{
    uint64_t began = boot_ms();
    wait_on(WAIT_ROOM, &flush.lock, &flush.ended, ms);
    count(slowed_ms, boot_ms() - began);
}

/* Lock held: this writer's turn on the way from the high mark to the full one. */
static void wait_for_turn(uint64_t len)
{
    uint64_t dirty, room, now = boot_ns();
    store_dirty(&dirty, &room);
    uint64_t turn = marks_slow(&flush.marks, len, dirty, room, now);
    while (!flush.stop && is_high(len) && (now = boot_ns()) + 999999 < turn)
        sleep_ms((turn - now) / 1000000);
}

static bool is_full(uint64_t len)
{
    uint64_t dirty, room;
    store_dirty(&dirty, &room);
    return dirty && marks_full(dirty, len, room);
}

static bool something_to_do(bool *ring);

/* Lock held: waits until len bytes fit below the full mark.  If nothing can become clean, the store's own
 * limit counts instead, but not for a file that the PFS refuses. */
static int wait_below_full(const struct flush_item *it, uint64_t len)
{
    bool ring = true;
    while (is_full(len)) {
        if (flush.stop)
            return -ECANCELED;
        if (!something_to_do(&ring))
            return it ? it->error : 0;
        if (ring) {
            lock_drop(&flush.lock);
            bell_ring();
            lock_take(&flush.lock);
            ring = false;
        } else {
            sleep_ms(ROOM_RETRY_MS);
        }
    }
    return 0;
}

int flush_admit(struct file *f, uint64_t len)
{
    if (!is_high(len))
        return 0;
    room_look();
    lock_take(&flush.lock);
    wait_for_turn(len);
    int err = 0;
    bool full = is_full(len);
    if (full) {
        flush.urgent_all++;
        err = wait_below_full(item_if(f), len);
        flush.urgent_all--;
    }
    lock_drop(&flush.lock);
    if (full)
        bell_ring(); /* back to what the marks say */
    return err;
}

/* ---- no room in the store ---- */

/* Lock held: is there anything that could become clean?  *ring: the flusher must be told. */
static bool something_to_do(bool *ring)
{
    uint64_t now = boot_ms();
    if (!queue_nready() && !flush.running.n && now - flush.room_tried_ms >= ROOM_RETRY_MS) {
        flush.room_tried_ms = now;
        retry_due(true, now);
        *ring = queue_nready();
    }
    return queue_nready() || flush.running.n;
}

/* Lock held: the answer when nothing can become clean.  A change that comes for the first time since
 * something did had no room before that, and has it now; one that comes again has it not. */
static int no_room(uint64_t seen)
{
    if (flush.progress != seen)
        return 0;
    for (const struct flush_item *it = flush.failed.first; it; it = it->next)
        if (it->error && it->error != -EUCLEAN)
            return it->error;
    return -ENOSPC;
}

/* Lock held. */
static int wait_for_room(uint64_t seen)
{
    uint64_t progress = flush.progress;
    bool ring = true;
    while (progress == flush.progress) {
        if (flush.stop)
            return -ECANCELED;
        if (!something_to_do(&ring))
            return no_room(seen);
        if (ring) {
            lock_drop(&flush.lock);
            bell_ring();
            lock_take(&flush.lock);
            ring = false;
        } else {
            lock_wait(&flush.lock, &flush.ended, 0);
        }
    }
    return 0;
}

int flush_make_room(struct file *f, uint64_t *seen)
{
    (void)f; /* oldest first, whichever file asks: that file is on the list as well */
    lock_take(&flush.lock);
    flush.urgent_all++;
    int err = wait_for_room(*seen);
    *seen = flush.progress;
    flush.urgent_all--;
    lock_drop(&flush.lock);
    bell_ring(); /* back to lulls */
    return err;
}
