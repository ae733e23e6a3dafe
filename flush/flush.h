/* flush.h - when and how dirty data goes to the PFS.
 *
 * A flusher per node that needs nobody's permission.  Lull (flush/lull.c): no I/O by an application
 * or a peer for the wait interval; source: Tatebe, Hiraga, Ohtsuji, "I/O-Aware Flushing for HPC
 * Caching Filesystem".  Queue (queue.c): the lists of dirty files.  Copy-out (copyout.c):
 * docs/protocol.md F1, F2.  Retry (retry.c): back-off 1 s .. 60 s. Recovery (recover.c): what a
 * dead daemon left. Lock: one, RANK_POLICY.  Any thread may call, unless said otherwise.
 */
#ifndef EDDY_FLUSH_FLUSH_H
#define EDDY_FLUSH_FLUSH_H

#include "flush/decide.h"
#include "placement/pfs/pfs_fid.h"
#include "placement/store/file.h"

struct flush_config {
    enum flush_policy policy;       /* of files for which no directory says another one */
    uint64_t wait_ms;               /* --flush-wait */
    bool wait_auto;                 /* ... is learned (gaps.c); wait_ms to begin with */
    unsigned writers;               /* --flush-writers */
    unsigned dirty_high, dirty_low; /* % of the cache; 0: 60, 40 */
    uint64_t dirty_age_ms;          /* 0: no bound */
    uint64_t limit;                 /* bytes/s; 0: no bound */
};
/* From now on; its directory says so.  -1: the mount's. */
void flush_set_policy(struct file *f, int policy);
enum flush_policy flush_policy_of(struct file *f);
/* Starts the flusher's threads.  -errno. */
int flush_start(const struct flush_config *c);
/* When nothing tells it of changes any more. */
void flush_stop(void);

/* ---- what the rooms below tell the flusher (fs/daemon/steps.c connects them) ---- */
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

/* ---- asking ---- */
/* This file to the PFS now, waiting.  0 or -errno of the failed flush. Pool threads. */
int flush_file(struct file *f);
/* Looks now at the files that applications write through the kernel: what changed becomes dirty.
 * Returns how many may still be changed so. */
unsigned flush_sample(void);
/* Everything to the PFS now, whatever the lull says.  progress (may be NULL) is called about 5
 * times a second from the calling thread; returns false to give up.  0: nothing is dirty; -EIO:
 * some files failed (see flush_each_unflushed); -ECANCELED. */
struct flush_progress {
    uint64_t done_bytes, total_bytes, files_left;
};
int flush_all(bool (*progress)(void *arg, const struct flush_progress *p), void *arg);
/* Write-through when there is no room: flushes oldest data until some is clean.  0: try again;
 * -errno: the PFS cannot take it. */
int flush_make_room(struct file *f);
/* Before a write of len bytes by an application or a peer: the second one waits as the marks say
 * (marks.h), until there is room below the full one.  0; -errno: f's flush fails, and there is no
 * room. */
bool flush_must_wait(uint64_t len);
int flush_admit(struct file *f, uint64_t len);
/* What a handle knows of its file's failures. */
struct flush_seen {
    unsigned pass;  /* the last failed one that it knows of */
    unsigned error; /* the one that it was told */
};
/* A new handle: what failed before is not told to it. */
void flush_error_seen(struct file *f, struct flush_seen *seen);
/* An error that kept f off the PFS since the handle was opened, and still does: told to each handle
 * once, however often it is tried in vain.  0 or -errno. */
int flush_error_once(struct file *f, struct flush_seen *seen);
/* What failed is tried again now, not when its time comes; as flush_all, of these files only. */
int flush_retry(bool (*progress)(void *arg, const struct flush_progress *p), void *arg);

/* Between flush_start and flush_stop.  Called when a pass has brought f to the PFS as it is, nothing having
 * been written since it began: *stx is what the PFS has, asked not before looked_ms (boot_ms).  The claim
 * is here yet: it goes back when the store is told, which makes f clean.  In a thread that may block,
 * without a lock.  NULL: no more; returns when the last call has. */
typedef void (*flush_copied_fn)(struct file *f, const struct statx *stx, uint64_t looked_ms);
void flush_on_copied(flush_copied_fn fn);

/* ---- what a dead daemon left (conflict.c, recover.c) ---- */
/* At start, after claim_recover and before anybody is served: a file that the PFS has differently
 * now than it was based on is a conflict: its data is written beside it, as
 * NAME.eddy-conflict-NODE, and said. */
int flush_check_recovered(const char *node);
struct flush_conflict {
    const char *path, *beside; /* live as long as the program */
    uint64_t missing;          /* bytes that were only in the version that is gone: holes */
};
int flush_each_conflict(int (*cb)(void *arg, const struct flush_conflict *c), void *arg);
/* Copies what is not on the PFS below another directory (rootfd), where nothing is replaced; the
 * cache directory stays as it is.  Needs the store alone; origin: the PFS is open, and bytes that
 * only it has are read from there.  cb for each file; missing: bytes that could not be had. */
int flush_copy_to(int rootfd, const char *node, bool origin,
                  void (*cb)(void *arg, const char *path, const char *made, uint64_t missing,
                             int err),
                  void *arg);
/* At start, after claim_recover: queues what a dead daemon left; logs how much. */
int flush_recover(void);

/* ---- for status ---- */
struct flush_status {
    const char *policy, *state;
    uint64_t flushed_bytes, pending_bytes, pending_files, failed_files;
    uint64_t low_bytes, high_bytes, full_bytes; /* the marks */
    bool draining;                              /* the high one was reached, the low one not yet */
    uint64_t oldest_ms, age_ms;                 /* of dirty data; --dirty-age */
    uint64_t wait_ms;                           /* a lull is so long without I/O ... */
    bool wait_auto;                             /* ... which is learned */
};
void flush_status(struct flush_status *out);
/* Every dirty file: cb(path, bytes, since (s), tries, error, suspect). */
int flush_each_unflushed(int (*cb)(void *arg, const char *path, uint64_t bytes, uint64_t since_s,
                                   unsigned tries, int error, bool suspect),
                         void *arg);

#endif
