/* store_int.h - what the store*.c files share; store.c lists them. */
#ifndef EDDY_PLACEMENT_STORE_STORE_INT_H
#define EDDY_PLACEMENT_STORE_STORE_INT_H

#include "placement/store/cachedir.h"
#include "placement/store/datafile.h"
#include "placement/store/page_set.h"
#include "placement/store/pages.h"
#include "placement/store/space.h"
#include "placement/store/state.h"
#include "placement/store/state_table.h"

struct store {
    struct cachedir dir;
    void (*on_dirty)(struct file *f);
    void (*on_deleted)(struct file *f);
    void (*on_unsynced)(void);
    bool open;
    bool lost_power; /* since the last daemon */
};
extern struct store store;

struct snapshot_pages {
    uint64_t first,
        last; /* of the pages it was taken from: no other snapshot takes pages in between */
    uint64_t cut_since; /* the lowest truncation after it, NO_CUT: none */
    struct page_set left; /* those that did not change since */
};

/* An fsync in progress (store_sync.c). */
struct covering {
    struct page_set here; /* pages that were in the data file when it began */
    uint64_t change;      /* of the file then */
    uint64_t size;        /* then, or what it was cut to since: the end of what is covered */
    bool over;            /* nothing of it is for the disk any more: on the PFS, or not wanted */
};

/* file_find, but NULL for a file whose last put is under way: never waits.  (file.c) */
struct file *file_find_now(struct fid fid);

/* Waits for what store_settle_begin began; all: and for what came since.  For store_close. */
int store_settle_end(bool all);

/* Became dirty: flush hears of it.  No lock held. */
void store_tell_dirty(struct file *f, bool became);

/* f->lock must be held when you call any function below this line. */

static inline const struct file_core *core(const struct file *f)
{
    return core_of(f->rec);
}
static inline bool is_dirty(const struct file *f)
{
    return (core(f)->flags & (CORE_DIRTY | CORE_DELETED)) == CORE_DIRTY;
}
/* Does the kernel serve writers of it, or may it have since the last flush?  Then all of it is
 * here. */
static inline bool has_kernel_io(const struct file *f)
{
    return core(f)->flags & CORE_KERNEL_IO;
}
/* Pages from here on need not be valid: base_end is below them, and they are holes. */
static inline uint64_t store_first_hole(const struct file *f)
{
    return (core(f)->base_end + PAGE - 1) / PAGE;
}
/* The record on the disk may say something else from now on than store_cover has made it say. */
static inline void store_not_covered(struct file *f)
{
    f->kernel_io.covered = false;
    f->kernel_io.uncovered++;
}
/* Commits c (of core_change), keeps the list of busy records. */
void store_commit(struct file *f);
/* Its bytes, size or times are others now. */
void store_changed(struct file *f);
/* Makes the file dirty before its first dirty page.  True if it was not. */
bool store_mark_dirty(struct file *f);
/* Drops all pages with their bytes (*bytes of them); the caller has a RANGE_DROP on the whole file.
 * Processes that have the data file open or mapped keep it as it is.  f->lock is dropped meanwhile.  -EIO,
 * -ENOSPC: the cache's disk failed (logged).  Then no page counts any more, but the data file may still
 * have their bytes, and may be in use: it must not become that of another version. */
int store_drop_all(struct file *f, uint64_t *bytes);

/* ---- store_punch.c ---- */
/* With f->lock; readers look at these bits without it. */
static inline void set_uncut(struct file *f, uint8_t bits)
{
    __atomic_fetch_or(&f->rec->uncut, bits, __ATOMIC_RELAXED);
}
static inline void clear_uncut(struct file *f, uint8_t bits)
{
    __atomic_fetch_and(&f->rec->uncut, (uint8_t)~bits, __ATOMIC_RELAXED);
}
/* With f->lock, or in recovery: what is not valid of the data file, and is not being written, is a hole
 * afterwards. */
int store_punch_invalid(struct file *f);
/* The same if a write that failed has left something there. Before its bytes are given to anybody. */
int store_clear_pages(struct file *f);

/* ---- store_sync.c ---- */
/* fsync of data and record; f->lock is dropped meanwhile.  With a range on all of it that lets no write
 * pass. */
int store_cover(struct file *f);
/* Until the fsync that runs has ended; f->lock is dropped meanwhile. */
void store_cover_wait(struct file *f);
/* The data file's bytes to the disk; f->lock is dropped meanwhile.  That it failed is remembered until
 * the PFS has what was dirty then, and fsync tells it until then.  -errno. */
int store_sync_data(struct file *f);
/* The PFS has all of it, or nothing of it is wanted: what a sync lost is made good. */
void store_sync_made_good(struct file *f);
void store_drop_lost(struct file *f); /* which pages a sync lost is forgotten */
/* The path's pieces, for a record that is to survive a power loss; f->lock is dropped meanwhile. */
int store_sync_path(struct file *f);

/* ---- store_cover.c ---- */
/* The file's record to the disk; f->lock is dropped meanwhile. */
int store_sync_record(struct file *f);
/* What is on the disk as covered (fsynced) would come back after a power loss.  These write the
 * record at once when there is such a thing; f->lock is dropped meanwhile.  An error is logged, and
 * means that it may come back: what relies on that must not be done, and the next call tries again.
 * uncover: it must not come back (emptied, deleted, flushed, given back).  cover_cut: what lies
 * beyond `size` must not, the rest stays.  cover_flushing: it stays, and the PFS file's version will
 * differ by our own doing.  cover_flushed: it stays, on the new base. */
int store_uncover(struct file *f);
/* Before a chunk's record is written as not covered any more: what the file's says of it, which is
 * perhaps on its way, is on the disk.  f->lock is dropped meanwhile.  -errno. */
int store_cover_settle(struct file *f);
static inline bool store_cover_is_settled(const struct file *f)
{
    return f->cover.on_disk == f->cover.said;
}
int store_cover_cut(struct file *f, uint64_t size);
int store_cover_flushing(struct file *f);
int store_cover_flushed(struct file *f);

/* ---- store_recover.c ---- */
/* At start, before anybody else: repairs what a crash left half done, drops or sets aside what a
 * power loss left in doubt. */
int store_recover(const struct state_report *rep);

#endif
