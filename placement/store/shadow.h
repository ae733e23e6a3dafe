/* shadow.h - the data file that passthrough descriptors stay with when the store begins another one.
 *
 * A passthrough descriptor reads its data file, and no other, until it is closed.  When what is here of a file is dropped
 * (the PFS has another version, or another node changes the file), readers by such descriptors must not get zeros, nor old
 * bytes for ever.  So the store begins an empty data file, and the old one becomes the file's shadow:
 *
 *     data file, in use --dropped, or copied--> shadow <-- changes that this node makes or is told of (tell.h)
 *                                      '  <-- all of it, at an open or lock that finds another version on the PFS (data.c)
 *                                      '--the last descriptor of that data file is closed--> gone
 *
 * A shadow has no name, and is no part of the cache: no record is of it, no node gets bytes of it, and it ends with the
 * daemon.  While there is one, opens of its file go through the daemon (fs/io_mode.c).  What is stored into it
 * by a mapping must be found, and written into the file (shadow_stores.c).
 */
#ifndef EDDY_PLACEMENT_STORE_SHADOW_H
#define EDDY_PLACEMENT_STORE_SHADOW_H

#include "placement/store/file.h"

/* Is there one?  Any thread, no lock. */
bool shadow_is(struct file *f);
/* One more open of the data file that had `life` (kernel_io_open), which may be a shadow by now: then it is
 * counted, and kernel_io_close ends that as for all others.  False: it is none. */
bool shadow_join(struct file *f, unsigned life);
/* Descriptors that the kernel serves from the data file are open: what is here is dropped, so that they have a shadow.
 * 0, also if there are none, or there is one already; -EBUSY: this node owes the file's bytes to the PFS; -ENOSPC, -EIO (logged).
 * (store_state.c) */
int shadow_begin(struct file *f);
/* The same where this node has changed the file, or may: the store goes on with a copy of the data file, so that what processes
 * store into the one that they have is found from now on, as after shadow_stores_begin.  No open may write the old one by calls that the
 * kernel serves: what they make longer would not be found.  0, also without such descriptors; -ENOSPC, -EOPNOTSUPP, -EIO.  Blocking, no lock.  (shadow_copy.c) */
int shadow_begin_by_copy(struct file *f);
/* The bytes of a change, and the file's size after it.  Nothing happens without a shadow.  Errors of the disk are
 * logged: its readers then have older bytes. */
void shadow_write(struct file *f, const void *buf, size_t len, uint64_t off);
void shadow_zero(struct file *f, uint64_t off, uint64_t len);
void shadow_resize(struct file *f, uint64_t size);
/* The shadow is filled anew with bytes of the file that are read now: a piece that ends at `size` also gives it this
 * length.  changes: shadow_changes before they were read; -EAGAIN: it was changed since, and what was read may be
 * older. */
uint64_t shadow_changes(struct file *f);
int shadow_fill(struct file *f, const void *buf, size_t len, uint64_t off, uint64_t size, uint64_t changes);
/* Has it the bytes of this version of the PFS?  And: now it has. */
bool shadow_is_at(struct file *f, const struct version *v);
void shadow_now_at(struct file *f, const struct version *v);
/* Has it the bytes of this version of the PFS, with what this node has changed in them since? */
bool shadow_follows(struct file *f, const struct version *base);
/* The same of the claim of another node, which began with that version (begun: its version_mark), as that node tells of its
 * changes.  Then, when the shadow was filled by that node: now it has. */
bool shadow_follows_claim(struct file *f, uint64_t node, uint64_t begun);
void shadow_now_of_claim(struct file *f, uint64_t node, uint64_t begun);

/* ---- shadow_stores.c: what processes store into it by mappings ---- */

/* To be called before one can.  Reads all of the shadow.  -ENOENT: there is none. */
int shadow_stores_begin(struct file *f);
bool shadow_stores_may_be(struct file *f); /* since shadow_stores_begin */
/* Calls put(arg, ...) for each page that was stored into since the last call, with no lock held: it makes the bytes the file's, and
 * an error of it ends the call, which returns it; the page is found again by the next one.  Waits for a call that another thread
 * makes.  0, also without a shadow. */
typedef int (*shadow_store_fn)(void *arg, const char *buf, size_t len, uint64_t off);
int shadow_stores_take(struct file *f, shadow_store_fn put, void *arg);
/* Is it sure that no process can store into it any more, by a descriptor or a mapping?  True without a shadow. */
bool shadow_stores_are_over(struct file *f);

/* For kernel_io.c, with f->lock: of the data file that has f's name now, before it is replaced; NULL: it cannot be opened,
 * which is logged.  shadow_take: it was replaced just now; its descriptors are still counted there (s may be NULL). */
struct shadow *shadow_make(struct file *f);
void shadow_take(struct file *f, struct shadow *s);
void shadow_is_of(struct file *f, struct shadow *s); /* before that: it has the bytes of the file's base, with what was changed here */
void shadow_put(struct shadow *s); /* may be NULL */
/* For kernel_io.c, without it: an open of a data file that was replaced ends, and with the last one its
 * shadow. */
void shadow_leave(struct file *f, unsigned life);
/* For file_end.c: the file's object ends. */
void shadow_end(struct file *f);

#endif
