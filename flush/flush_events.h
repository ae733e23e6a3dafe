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
/* The claims: f's claim was made void, or it is and the file was closed: it is due at once.  As
 * flush_dirtied. */
void flush_forgotten(struct file *f);
/* The store: the kernel has one more file to write; it wrote to f before its close.  No lock held. */
void flush_kernel_opened(void);
void flush_kernel_wrote(struct file *f);

/* ---- activity: around every I/O request of an application or a peer; not metadata, not our own
 * ---- */
void lull_begin(void);
void lull_end(void);
bool lull_now(void); /* no activity for the wait interval */
uint64_t lull_idle_ms(void);

/* Between flush_start and flush_stop.  Called when a pass has brought f to the PFS as it is, nothing having
 * been written since it began: *stx is what the PFS has, asked not before looked_ms (boot_ms).  The claim
 * is here yet: it goes back when the store is told, which makes f clean.  In a thread that may block,
 * without a lock.  NULL: no more; returns when the last call has. */
typedef void (*flush_copied_fn)(struct file *f, const struct statx *stx, uint64_t looked_ms);
void flush_on_copied(flush_copied_fn fn);

#endif
