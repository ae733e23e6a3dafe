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
    void (*_Atomic on_dirty)(struct file *f); /* read once before each call: they end while others run */
    void (*_Atomic on_deleted)(struct file *f);
    void (*_Atomic on_unsynced)(void);
    bool open;
    bool lost_power; /* since the last daemon */
};
extern struct store store;

struct snapshot_pages {
    uint64_t first,
        last; /* of the pages it was taken from: no other snapshot takes pages in between */
    uint64_t cut_since; /* the lowest truncation after it, NO_CUT: none */
    struct page_set left; /* the pages that did not change since */
};

/* An fsync in progress (store_sync.c). */
struct covering {
    struct page_set here; /* pages that were in the data file when it began */
    uint64_t change;      /* of the file then */
    uint64_t size;        /* then, or what it was cut to since: the end of what is covered */
    bool over;            /* no record of it is needed any more: it is on the PFS, or not wanted */
};

/* file_find, but NULL for a file whose last put is under way: never waits.  (file.c) */
struct file *file_find_now(struct fid fid);

/* Waits until what store_write_out_begin began is done; all: also brings to the disk what came since.  For
 * store_close. */
int store_write_out_end(bool all);

/* Tells flush that the file became dirty, if `became`.  No lock held. */
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
/* Does the kernel serve writers of the file, or may it have since the last flush?  Then all bytes of the file
 * are here. */
static inline bool has_kernel_io(const struct file *f)
{
    return core(f)->flags & CORE_KERNEL_IO;
}
/* Pages from here on need not be valid: those that are not are holes.  As a rule base_end is below them.  Of a
 * "whole" file this is so for all pages.  It becomes whole when it is flushed, if the PFS file had no bytes
 * before, and when kernel I/O begins.  It is not whole any more before a chunk of it is evicted, when it gets
 * another version, and if chunk records may have been lost.
 *
 * With kernel I/O the PFS may have bytes in a page that is not valid only if the file is not whole: so it is
 * after a power loss, until all holes were punched there (store_hole_owed). */
static inline uint64_t store_first_hole(const struct file *f)
{
    return f->rec->whole ? 0 : (core(f)->base_end + PAGE - 1) / PAGE;
}
/* Called before pages of the PFS's bytes are dropped. */
static inline void store_not_whole(struct file *f)
{
    f->rec->whole = 0;
    crash_order();
}
/* From now on the record on the disk may differ from what store_cover wrote. */
static inline void store_not_covered(struct file *f)
{
    f->kernel_io.covered = false;
    f->kernel_io.uncovered++;
}
/* Commits what core_change gave, and updates the list of busy records. */
void store_commit(struct file *f);
/* The file's bytes, size or times have changed. */
void store_changed(struct file *f);
/* Makes the file dirty before its first dirty page.  True if it was not. */
bool store_mark_dirty(struct file *f);
/* Drops all pages with their bytes (*bytes of them); the caller has a RANGE_DROP on the whole file.
 * Processes that have the data file open or mapped keep it as it is.  f->lock is dropped meanwhile.  -EIO,
 * -ENOSPC: the cache's disk failed (logged).  Then no page counts any more, but the data file may still
 * have their bytes, and may be in use: it must not become that of another version. */
int store_drop_all(struct file *f, uint64_t *bytes);

/* Without f->lock, after store_drop_all or a caller of it returned err: a data file that is in use cannot be
 * emptied.  Another one takes its place, and the disk may have had no inode for it.  True: it may have one now.
 * False: there is nothing to be tried again; an error is logged. */
bool store_room_again(struct file *f, int err);

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
/* With f->lock, or in recovery: makes holes of all pages of the data file that are not valid and are not
 * being written. */
int store_punch_invalid(struct file *f);
/* The same, if a failed write has left something there.  Called before bytes of the file are given out. */
int store_clear_pages(struct file *f);

/* ---- store_sync.c ---- */
/* Syncs data and record; f->lock is dropped meanwhile.  The caller has a range on the whole file that lets no
 * write pass. */
int store_cover(struct file *f);
/* Waits until the fsync that runs has ended; f->lock is dropped meanwhile. */
void store_cover_wait(struct file *f);
/* Brings the data file's bytes to the disk; f->lock is dropped meanwhile.  An error is remembered until the
 * PFS has what was dirty then; until then each fsync tells it.  -errno. */
int store_sync_data(struct file *f);
/* The PFS has the whole file, or the file is not wanted any more: what a sync lost is made good. */
void store_sync_made_good(struct file *f);
void store_drop_lost(struct file *f); /* forgets which pages a sync lost */
/* Brings the path's pieces to the disk, for a record that must survive a power loss; f->lock is dropped
 * meanwhile. */
int store_sync_path(struct file *f);

/* ---- store_cover.c ---- */
/* Brings the file's record to the disk; f->lock is dropped meanwhile. */
int store_sync_record(struct file *f);
/* A power loss brings back what is on the disk as covered (fsynced).  The store_*cover* functions below
 * change that.  If anything is covered, they write the record at once; f->lock is dropped meanwhile.  An
 * error is logged.  Then the covered state may still come back: the caller must not do what relies on the
 * change, and the next call tries again.
 *
 * store_uncover: nothing comes back (emptied, deleted, flushed, given back).
 * store_cover_cut: what lies beyond `size` does not come back; the rest does.
 * store_cover_flushing: all comes back, and the PFS file's new version is known as this node's doing.
 * store_cover_flushed: all comes back, on the new base. */
int store_uncover(struct file *f);
/* Called before a chunk's record is written as not covered any more: what the file's record says of covered
 * pages, which is perhaps being written now, must be on the disk first.  f->lock is dropped meanwhile.
 * -errno. */
int store_cover_apply(struct file *f);
static inline bool store_cover_is_applied(const struct file *f)
{
    return f->cover.on_disk == f->cover.said;
}
int store_cover_cut(struct file *f, uint64_t size);
int store_cover_flushing(struct file *f);
int store_cover_flushed(struct file *f);

/* ---- store_read.c ---- */
/* Is the whole chunk here, clean, in version v?  Then *len and *c are its bytes and its record. */
bool store_chunk_is_clean(struct file *f, uint64_t index, const struct version *v, size_t *len,
                          struct chunk_record **c);

/* ---- store_trace.c ---- */
/* What moved the PFS file from `before` to `after` was no change of its bytes: what a failed run has left is
 * `after`, if it was `before` but for the ctime. */
void trace_follow(struct file *f, const struct version *before, const struct version *after);

/* ---- store_recover.c ---- */
/* At start, before any other use: repairs what a crash left half done, and drops or sets aside what a
 * power loss left in doubt. */
int store_recover(const struct state_report *rep);

#endif
