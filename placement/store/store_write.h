/* store_write.h - changing a file here; only with the claim held (the store's rules are in store_open.h). */
#ifndef EDDY_PLACEMENT_STORE_STORE_WRITE_H
#define EDDY_PLACEMENT_STORE_STORE_WRITE_H

#include "placement/store/file.h"
#include "placement/store/store_open.h"

#include <sys/types.h>

/* Writes; len <= 16 MiB.  Dirty bits are set before the bytes.  -ENODATA: the page at *fill_off
 * must be filled first (partly covered, not valid, below base_end): fetch and try again.  -ENOSPC:
 * no room (nothing written): flush, then again. mtime becomes now, mtime_set false. */
int store_write(struct file *f, const void *buf, size_t len, uint64_t off, enum space_limit limit,
                uint64_t *fill_off);
/* The same, but leaves out what would lie beyond the end, which is no error. */
int store_write_within(struct file *f, const void *buf, size_t len, uint64_t off,
                       enum space_limit limit, uint64_t *fill_off);
/* All of it is lent to the node `giver`, which gives its bytes back before its loan.  -EREMOTE: it is not. */
int store_write_given(struct file *f, uint64_t giver, const void *buf, size_t len, uint64_t off,
                      enum space_limit limit, uint64_t *fill_off);
/* What an append has put into the file. */
struct appended {
    uint64_t off; /* where it went */
    size_t len;
};
/* Writes at the end of the file, taken under the lock.  out->len is set also on an error; beside writers that
 * the kernel serves that may be a part of len, and the rest is what is left to append. */
int store_append(struct file *f, const void *buf, size_t len, enum space_limit limit,
                 struct appended *out, uint64_t *fill_off);
/* Shrinks or extends.  (fill_off is never used: the page at the new end ends at base_end.) */
int store_truncate(struct file *f, uint64_t size, uint64_t *fill_off);
/* Zeros [off, off+len) (punch), never extends. -ENODATA as above. */
int store_punch(struct file *f, uint64_t off, uint64_t len, enum space_limit limit,
                uint64_t *fill_off);
/* fallocate: extends size (unless keep_size); mtime becomes now in any case.  Sets no local blocks aside: room
 * is made when the bytes come, and a write that finds none flushes. */
int store_allocate(struct file *f, uint64_t off, uint64_t len, bool keep_size);
/* This session is about to set the PFS file's mtime: an edit by somebody else is told from it, also by the
 * next daemon.  -errno: the cache's disk failed. */
int store_note_time(struct file *f, int64_t mtime_ns);
void store_set_times(struct file *f, int64_t mtime_ns); /* utimens on a claimed file */
/* utimens of the file of which f is a loan: the mtime of what was written to it so far does not count any more, also for
 * a later daemon (mtime_set of store_info, until the next write; so it is of a fresh one). */
void store_loan_timed(struct file *f);
/* SEEK_DATA/SEEK_HOLE over valid pages, holes and what is on the PFS (counted as data). -ENXIO. */
int store_seek(struct file *f, uint64_t off, bool hole, uint64_t *out);
/* Syncs what is dirty: data, then records.  Afterwards what was here when it began is covered.  Writes go on
 * meanwhile.  Waits for another fsync of the file that runs.  O(dirty).  -errno of the cache's disk: an error
 * of the data is told again until the PFS has what was dirty then. */
int store_sync(struct file *f);

#endif
