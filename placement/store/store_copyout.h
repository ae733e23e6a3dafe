/* store_copyout.h - taking dirty bytes out of the store for the PFS (flush/copyout.c). */
#ifndef EDDY_PLACEMENT_STORE_STORE_COPYOUT_H
#define EDDY_PLACEMENT_STORE_STORE_COPYOUT_H

#include "placement/store/file.h"

struct file_info;
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
    uint64_t bytes; /* without holes */
    /* for store_copyout.c only: the pages, less those written since */
    struct snapshot_pages *pages;
};
/* Takes dirty pages from offset `from` on, at most about `max` bytes.  Leaves out pages that are being
 * written now, and those between the first and the last page of another snapshot.  0: there may be no
 * extents, if only the size, the cut or the times are dirty.  -ENODATA: nothing is dirty.  -EBUSY: with a cut
 * there is one snapshot at a time. */
int store_snapshot(struct file *f, uint64_t from, uint64_t max, struct snapshot **out);
/* The first bytes in [*off, end) of pages that did not change since: [*off, *until).  False: there are none. */
bool store_snapshot_next(struct snapshot *s, uint64_t *off, uint64_t end, uint64_t *until);
/* Ends a snapshot.  ok: its pages are on the PFS, and synced: clears the dirty bits of pages that did not
 * change since.  cut becomes what was cut off since.  Frees s. */
void store_snapshot_done(struct snapshot *s, bool ok);
/* The run is complete: the PFS has version v, which is of the file as it was at change_then.  If nothing
 * changed since, then base = v, base_end = size, and the file is clean.  Else base = v, and base_end follows.
 * Returns whether the file is clean.  *err (may be NULL): 0, or the cache's disk failed; then the file is not
 * clean, since a power loss might bring an older state back. */
bool store_flushed(struct file *f, const struct version *v, uint64_t change_then, int *err);
/* The same for a loan (store_loan.h), of whose PFS file other nodes write other parts at the same time: its version tells
 * nothing. */
bool store_loan_flushed(struct file *f, uint64_t change_then, int *err);
/* After a power loss the PFS may have bytes where a file with kernel I/O has a hole, and no record tells of
 * them: a run punches these holes before it copies anything.  The next such hole that ends behind `from`;
 * false: there is none. */
bool store_hole_owed(struct file *f, uint64_t from, uint64_t *off, uint64_t *len);

/* ---- the trace of a run (trace.h; store_trace.c) ---- */
/* A run is about to change the PFS file.  The record says so on disk, so that after a crash the other version
 * is known as this node's doing.  On an error (of the cache's disk) the run must not change the PFS file. */
int store_flush_begins(struct file *f);
/* It has not changed the PFS file, and will not: the record says again what it said before store_flush_begins. */
void store_flush_unbegun(struct file *f, const struct file_info *before);
/* To be called before each change of the PFS file's bytes in [off, off + len) (len 0: its size becomes off),
 * and after it. */
void store_flush_changes(struct file *f, uint64_t off, size_t len);
void store_flush_changed(struct file *f);
/* The run has failed, and its descriptor is closed: nothing of it is on its way to the PFS any more. */
void store_flush_failed(struct file *f);
/* All bytes are on the PFS: the run is about to set this mtime. */
void store_flush_ends(struct file *f, int64_t mtime_ns);
/* The run has failed, and has left the PFS file in version v. */
void store_flush_left(struct file *f, const struct version *v);

/* The PFS file has u+w so that the run can write it, and must get `mode` (07777) back.  This is in the
 * record, so that it outlives the daemon.  STORE_NO_MODE: there is no mode to give back any more.
 * (placement/pfs/pfs_mode.c; recovery) */
#define STORE_NO_MODE UINT32_MAX
void store_set_raised_mode(struct file *f, uint32_t mode);
bool store_raised_mode(struct file *f, uint32_t *mode); /* false: none */

#endif
