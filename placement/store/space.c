/* space.c - the limit, what is used, and how room is made. */
#include "placement/store/space.h"

#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>

#include "placement/store/ballast.h"
#include "placement/store/eviction.h"
#include "placement/store/siblings.h"
#include "placement/store/state_table.h"
#include "placement/store/store_open.h"
#include "transport/lock.h"

#define LIMIT_EVERY_MS 5000
#define AVAIL_EVERY_MS 100 /* less than the time between two samples (flush/sample.c) */
#define AVAIL_BYTES    (UINT64_C(16) << 20) /* set aside since the disk was last asked */
#define FLOOR_MAX      (UINT64_C(1) << 30)
#define INODES_FLOOR   256
#define INODES_AT_ONCE 128 /* that are used before the disk is asked again */
#define DATA_FILE      2   /* inodes: its directory may have to be made, too */
#define DEFAULT_SHARE  80                  /* % of what is free */
#define KEEP_FREE_MAX  256                 /* chunks evicted at once */
#define BALLAST_PART   16                  /* of the limit, at most */
#define BALLAST_MIN    (UINT64_C(8) << 20) /* a smaller ballast is not worth a file */

static struct {
    struct lock lock; /* RANK_SPACE: all below but the atomics */
    struct space_config config;
    uint64_t limit, limit_ms;
    /* Free on the disk when it was last asked, less what is owed to the ballast. */
    uint64_t avail, avail_ms, avail_set_aside, floor;
    uint64_t inodes; /* that may be used before the disk is asked again */
    uint64_t reserved;
    _Atomic int64_t used, dirty; /* bytes of pages */
    _Atomic uint64_t room;       /* for pages: the limit less the slabs */
    _Atomic unsigned high;       /* % of it that may be dirty before writers are held back */
} space = {.high = 60};

/* ---- limits ---- */

static uint64_t used_now(void)
{
    int64_t pages = atomic_load(&space.used);
    return (uint64_t)MAX(pages, 0) + state_slab_bytes() + ballast_size();
}

static void ask_disk(void)
{
    struct statvfs fs;
    uint64_t now = boot_ms();
    if (now - space.avail_ms < AVAIL_EVERY_MS && space.avail_set_aside < AVAIL_BYTES)
        return;
    if (fstatvfs(space.config.dirfd, &fs) < 0)
        return;
    uint64_t avail = (uint64_t)fs.f_bavail * fs.f_frsize, owed = ballast_owed();
    space.avail = avail - MIN(avail, owed);
    space.floor = MIN((uint64_t)fs.f_blocks * fs.f_frsize / 20, FLOOR_MAX);
    space.avail_ms = now;
    space.avail_set_aside = 0;
}

static uint64_t disk_size(void)
{
    struct statvfs fs;
    return fstatvfs(space.config.dirfd, &fs) < 0 ? 0 : (uint64_t)fs.f_blocks * fs.f_frsize;
}

/* The default rule: 80 % of what is free or used by this user's caches on this disk, in equal parts. */
static uint64_t default_limit(unsigned *daemons)
{
    uint64_t ours = used_now(), others;
    *daemons = siblings_count(ours, &others);
    return (space.avail + ours + others) / 100 * DEFAULT_SHARE;
}

/* To be divided by the daemons that share it. */
static uint64_t limit_of_all(unsigned *daemons)
{
    *daemons = 1;
    if (space.config.size)
        return space.config.size;
    if (space.config.percent)
        return disk_size() / 100 * space.config.percent;
    return default_limit(daemons);
}

static void set_limit(void)
{
    uint64_t now = boot_ms();
    unsigned daemons;
    if (space.limit && now - space.limit_ms < LIMIT_EVERY_MS)
        return;
    space.limit_ms = now;
    space.limit = limit_of_all(&daemons);
    space.limit /= daemons;
    uint64_t slabs = state_slab_bytes();
    atomic_store(&space.room, space.limit > slabs ? space.limit - slabs : 0);
}

uint64_t space_meant(void)
{
    unsigned daemons;
    lock_take(&space.lock);
    ask_disk();
    uint64_t bytes = limit_of_all(&daemons);
    lock_drop(&space.lock);
    return bytes;
}

static void warn_of_no_room(void)
{
    uint64_t slabs = state_slab_bytes();
    if (!atomic_load(&space.room))
        log_warn("the cache directory's records alone take %llu MiB of the cache's %llu MiB: no data is "
                 "kept there; give more with --cache-size, or another directory with --cache-dir",
                 (unsigned long long)(slabs >> 20), (unsigned long long)(space.limit >> 20));
}

void space_start(const struct space_config *c)
{
    static bool made;
    if (!made)
        lock_init(&space.lock, RANK_SPACE);
    made = true;
    space.config = *c;
    space.reserved = space.limit = space.avail_ms = space.inodes = 0;
    space.avail_set_aside = AVAIL_BYTES;
    eviction_start();
    atomic_store(&space.used, 0);
    atomic_store(&space.dirty, 0);
    siblings_join(c->node_id, c->dev);
    ballast_start(c->dirfd);
    lock_take(&space.lock);
    ask_disk();
    set_limit();
    warn_of_no_room();
    lock_drop(&space.lock);
}

void space_stop(void)
{
    ballast_stop();
    siblings_leave();
}

static uint64_t space_limit(void)
{
    lock_take(&space.lock);
    uint64_t limit = space.limit;
    lock_drop(&space.lock);
    return limit;
}

uint64_t space_slab_bytes(void)
{
    return MIN(MAX(space_limit() / 64, SLAB_MIN_SIZE), SLAB_MAX_SIZE);
}

void space_count(int64_t used, int64_t dirty)
{
    if (used)
        atomic_fetch_add(&space.used, used);
    if (dirty)
        atomic_fetch_add(&space.dirty, dirty);
}

/* At most half of the cache is anchored.  A writer that can not be slowed down begins only below the high mark,
 * and with a tenth of the cache, and of the disk, free (docs/design.md). */
bool space_may_anchor(uint64_t anchored, uint64_t size, bool write)
{
    uint64_t used = used_now(), dirty = (uint64_t)MAX(atomic_load(&space.dirty), 0);
    lock_take(&space.lock);
    ask_disk();
    set_limit();
    bool fits = anchored + size <= space.limit / 2;
    if (write)
        fits = fits && dirty <= atomic_load(&space.room) / 100 * atomic_load(&space.high) &&
               used <= space.limit / 10 * 9 &&
               space.avail >= space.floor + MIN(space.limit, space.avail) / 10;
    lock_drop(&space.lock);
    return fits;
}

void space_usage(struct store_usage *out)
{
    int64_t dirty = atomic_load(&space.dirty);
    lock_take(&space.lock);
    set_limit();
    out->limit = space.limit;
    out->used = used_now();
    out->dirty = (uint64_t)MAX(dirty, 0);
    lock_drop(&space.lock);
}

void store_dirty(uint64_t *dirty, uint64_t *room)
{
    int64_t bytes = atomic_load_explicit(&space.dirty, memory_order_relaxed);
    *dirty = (uint64_t)MAX(bytes, 0);
    *room = atomic_load_explicit(&space.room, memory_order_relaxed);
}

void store_dirty_high(unsigned percent)
{
    atomic_store(&space.high, percent);
}

/* ---- making room ---- */

/* Freed room shows only when the disk is asked again. */
static void disk_changed(void)
{
    lock_take(&space.lock);
    space.avail_ms = 0;
    lock_drop(&space.lock);
}

static bool is_tight(void)
{
    lock_take(&space.lock);
    ask_disk();
    set_limit();
    bool tight = used_now() > space.limit / 10 * 9 ||
                 space.avail < space.floor + MIN(space.limit, space.avail) / 10;
    lock_drop(&space.lock);
    return tight;
}

void space_keep_free(void)
{
    for (unsigned n = 0; n < KEEP_FREE_MAX && is_tight() && eviction_one(false, true); n++)
        disk_changed();
}

/* ---- writers that do not ask for room ---- */

static bool is_short(void)
{
    lock_take(&space.lock);
    ask_disk();
    bool is = space.avail < space.floor;
    lock_drop(&space.lock);
    return is;
}

static uint64_t ballast_fitting(void)
{
    lock_take(&space.lock);
    set_limit();
    uint64_t bytes = MIN(space.floor, space.limit / BALLAST_PART);
    lock_drop(&space.lock);
    return bytes < BALLAST_MIN ? 0 : bytes;
}

void space_watch(void)
{
    ballast_want(ballast_fitting());
    if (is_short() && ballast_release())
        log_warn("the disk of the cache is nearly full: the room that was set aside there is given "
                 "to files that applications write through the kernel");
    space_keep_free();
    if (ballast_owed() && !is_tight())
        ballast_make();
}

/* ---- setting room aside ---- */

/* Sets bytes aside if they fit now. */
static bool take_bytes(uint64_t bytes, enum space_limit limit)
{
    lock_take(&space.lock);
    ask_disk();
    set_limit();
    bool fits = used_now() + space.reserved + bytes <= space.limit &&
                space.avail >= space.floor + space.avail_set_aside + bytes;
    if (limit == SPACE_DISK)
        fits = space.avail >= space.avail_set_aside + bytes;
    if (fits) {
        space.reserved += bytes;
        space.avail_set_aside += bytes;
    }
    lock_drop(&space.lock);
    return fits;
}

static int reserve_bytes(uint64_t bytes, enum space_limit limit)
{
    while (bytes && !take_bytes(bytes, SPACE_CACHE)) {
        bool made = eviction_one(limit == SPACE_NOW, limit != SPACE_FILL);
        disk_changed(); /* or others have given room back since it was asked */
        if (!made)
            return take_bytes(bytes, limit == SPACE_DISK ? limit : SPACE_CACHE) ? 0 : -ENOSPC;
    }
    return 0;
}

static int more_slots(enum slab_kind kind, uint32_t n, enum space_limit limit)
{
    uint64_t bytes = space_slab_bytes();
    if (limit == SPACE_NOW) /* a new slab is synced */
        return -EAGAIN;
    if (limit == SPACE_DISK && state_slab_bytes() + bytes > space_limit() / 2)
        return -ENOSPC; /* slabs are never given back */
    if (!take_bytes(bytes, limit))
        return -ENOSPC;
    int err = state_grow(kind, n, bytes);
    space_return(bytes, 0);
    return err == -EDQUOT ? -ENOSPC : err;
}

/* Makes one more slab if it fits.  If not, evicts chunks, which frees their records. */
static int reserve_slots(enum slab_kind kind, uint32_t n, enum space_limit limit)
{
    bool now = limit == SPACE_NOW;
    while (n && !state_reserve(kind, n)) {
        int err = more_slots(kind, n, now ? SPACE_NOW : SPACE_CACHE);
        if (err == -ENOSPC && eviction_one(now, limit != SPACE_FILL))
            continue;
        if (err == -ENOSPC && limit == SPACE_DISK)
            err = more_slots(kind, n, limit);
        if (err)
            return err;
    }
    return 0;
}

int space_reserve(uint64_t bytes, uint32_t chunk_slots, enum space_limit limit)
{
    int err = reserve_slots(SLAB_CHUNKS, chunk_slots, limit);
    if (err)
        return err;
    err = reserve_bytes(bytes, limit);
    if (err)
        state_unreserve(SLAB_CHUNKS, chunk_slots);
    return err;
}

void space_return(uint64_t bytes, uint32_t chunk_slots)
{
    if (bytes) {
        lock_take(&space.lock);
        space.reserved -= bytes;
        lock_drop(&space.lock);
    }
    if (chunk_slots)
        state_unreserve(SLAB_CHUNKS, chunk_slots);
}

int space_reserve_files(uint32_t slots)
{
    return reserve_slots(SLAB_FILES, slots, SPACE_CACHE);
}

/* ---- inodes ---- */

/* With the lock.  A file system that does not count its inodes (btrfs) has enough. */
static void ask_inodes(void)
{
    struct statvfs fs;
    bool known = !fstatvfs(space.config.dirfd, &fs) && fs.f_files;
    uint64_t floor = known ? MIN((uint64_t)fs.f_files / 20, (uint64_t)INODES_FLOOR) : 0;
    uint64_t avail = known ? (uint64_t)fs.f_favail : INODES_AT_ONCE;
    space.inodes = MIN(avail - MIN(avail, floor), (uint64_t)INODES_AT_ONCE);
}

static bool take_inode(void)
{
    lock_take(&space.lock);
    if (space.inodes < DATA_FILE)
        ask_inodes();
    bool fits = space.inodes >= DATA_FILE;
    space.inodes -= fits ? DATA_FILE : 0;
    lock_drop(&space.lock);
    return fits;
}

static void warn_of_no_inodes(void)
{
    static _Atomic uint64_t said;
    if (log_every(&said, 60000))
        log_warn("the cache's disk is short of inodes (df -i), and no file can leave the cache now: each new "
                 "file waits until another one is on the PFS");
}

int space_reserve_inode(enum space_limit limit)
{
    while (!take_inode())
        if (!eviction_one_file(limit == SPACE_NOW)) {
            if (limit != SPACE_NOW)
                warn_of_no_inodes();
            return limit == SPACE_DISK ? 0 : -ENOSPC;
        }
    return 0;
}

bool space_more_inodes(enum space_limit limit)
{
    lock_take(&space.lock);
    space.inodes = 0;
    lock_drop(&space.lock);
    return eviction_one_file(limit == SPACE_NOW);
}

bool store_free_inode(void)
{
    return space_more_inodes(SPACE_CACHE);
}
