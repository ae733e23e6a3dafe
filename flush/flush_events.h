/* flush_events.h - what other rooms tell the flusher: activity, and what has become of files; fs/daemon/steps.c
 * connects them.  Any thread. */
#ifndef EDDY_FLUSH_FLUSH_EVENTS_H
#define EDDY_FLUSH_FLUSH_EVENTS_H

#include <sys/stat.h>

#include "placement/store/file.h"

/* The store: f has just become dirty.  Any thread that holds no lock of RANK_POLICY or more. */
void flush_dirtied(struct file *f);
/* The store: nothing of f is flushed any more.  No lock held. */
void flush_deleted(struct file *f);
/* The store: the list of dirty files in the session directory is out of date.  Leaf locks may be held. */
void flush_list_changed(void);
/* The claims: f's claim was made void, or it is void and the file was closed: it is due at once.  As
 * flush_dirtied. */
void flush_forgotten(struct file *f);
/* The store: the kernel has one more file to write; it wrote to f before its close.  No lock held. */
void flush_kernel_opened(void);
void flush_kernel_wrote(struct file *f);

/* ---- activity: to be called before and after every I/O request of an application or a peer; not for
 * metadata, and not for our own I/O ---- */
void lull_begin(void);
void lull_end(void);
bool lull_now(void); /* no activity for the wait interval */
uint64_t lull_idle_ms(void);

/* Between flush_start and flush_stop.  fn is called when a run has brought f to the PFS and nothing was
 * written since the run began.  *stx is what the PFS has; the PFS was asked not before looked_ms (boot_ms).
 * This node still has the claim: it goes back when the store is told, which makes f clean.  fn runs in a
 * thread that may block, without a lock.  NULL: no more calls; returns when the last call has returned. */
typedef void (*flush_copied_fn)(struct file *f, const struct statx *stx, uint64_t looked_ms);
void flush_on_copied(flush_copied_fn fn);
/* fn is called when a run has made a file clean: all of it is on the PFS, and may leave the cache.  It does not block.  Set before
 * flush_start, and good until flush_stop has returned. */
void flush_on_clean(void (*fn)(struct fid fid));

#endif
