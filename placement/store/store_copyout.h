/* store_copyout.h - taking dirty bytes out of the store for the PFS (flush/copyout.c). */
#ifndef EDDY_PLACEMENT_STORE_STORE_COPYOUT_H
#define EDDY_PLACEMENT_STORE_STORE_COPYOUT_H

#include "placement/store/file.h"

struct extent {
    uint64_t off, len; /* clipped to the size */
    bool hole;         /* no bytes in the data file: zeros */
};
struct snapshot_pages;

struct snapshot {
    struct file *f;
    struct snapshot *next;
    uint64_t size, cut;
    int64_t mtime_ns;
    bool mtime_set;
    bool last; /* nothing else is dirty */
    struct extent *extents;
    size_t nextents;
    uint64_t bytes;
    /* store_copyout.c's own: which pages, minus those written since */
    struct snapshot_pages *pages;
};
/* Takes dirty pages from offset `from` on, at most about `max` bytes; left out are pages that are
 * being written now, and those between the first and the last page of another snapshot.  0 or
 * -ENODATA (nothing is dirty; with *s still describing size/cut/times when those are dirty: then 0
 * and nextents 0) or -EBUSY: with a cut there is one snapshot at a time. */
int store_snapshot(struct file *f, uint64_t from, uint64_t max, struct snapshot **out);
/* They are on the PFS (ok, fsynced) or not: clears the dirty bits of pages that did not change
 * since.  cut becomes what was cut off since.  Frees s. */
void store_snapshot_done(struct snapshot *s, bool ok);
/* The flush is complete: PFS has version v with this size and mtime.  If nothing changed since
 * (change == change_then): base = v, base_end = size, not dirty.  Else base = v, base_end follows.
 * Returns whether it is clean.  *err (may be NULL): 0, or the cache's disk failed; then it is not
 * clean, since a power loss might bring an older state back. */
bool store_flushed(struct file *f, const struct version *v, uint64_t change_then, int *err);
/* A flush is about to change the PFS file (persisted: after a crash the PFS version differs by our
 * own doing).  On error, of the cache's disk, it must not. */
int store_flush_begins(struct file *f);

/* The PFS file has u+w for the flush's sake and must get `mode` (07777) back: kept in the record,
 * so that it outlives the daemon. STORE_NO_MODE: nothing to give back any more.
 * (placement/pfs/pfs_mode.c; recovery) */
#define STORE_NO_MODE UINT32_MAX
void store_set_raised_mode(struct file *f, uint32_t mode);
bool store_raised_mode(struct file *f, uint32_t *mode); /* false: none */

#endif
