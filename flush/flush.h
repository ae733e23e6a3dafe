/* flush.h - when and how dirty data goes to the PFS.
 *
 * Each node has a flusher, which needs no other node's permission.  Lull (flush/lull.c): no I/O by an
 * application or a peer for the wait interval; source: Tatebe, Hiraga, Ohtsuji, "I/O-Aware Flushing for HPC
 * Caching Filesystem".  Queue (queue.c): the lists of dirty files.  Copy-out (copyout.c):
 * docs/protocol.md F1, F2.  Retry (retry.c): back-off 1 s .. 60 s.  Recovery (recover.c): what a
 * dead daemon left.  Any thread may call, unless said otherwise.
 *
 * The room owns each file's FILE_FLUSH part, and the flusher's threads.  Its locks: RANK_POLICY for the lists
 * of dirty files, and leaf locks.  fs and fs/daemon call it.
 */
#ifndef EDDY_FLUSH_FLUSH_H
#define EDDY_FLUSH_FLUSH_H

#include "flush/decide.h"
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
/* Sets its policy from now on, as its directory says.  -1: the mount's. */
void flush_set_policy(struct file *f, int policy);
enum flush_policy flush_policy_of(struct file *f);
/* Starts the flusher's threads.  -errno. */
int flush_start(const struct flush_config *c);
/* When nothing tells it of changes any more. */
void flush_stop(void);

/* ---- asking ---- */
/* This file to the PFS now, waiting.  0 or -errno of the failed flush. Pool threads. */
int flush_file(struct file *f);
/* Looks now at the files that applications write through the kernel: changed ones become dirty.
 * Returns how many may still change in this way. */
unsigned flush_sample(void);
/* Everything to the PFS now, whatever the lull says.  progress (may be NULL) is called about 5
 * times a second from the calling thread; returns false to give up.  0: nothing is dirty; -EIO:
 * some files failed (see flush_each_unflushed); -ECANCELED. */
struct flush_progress {
    uint64_t done_bytes, total_bytes, files_left;
};
int flush_all(bool (*progress)(void *arg, const struct flush_progress *p), void *arg);
/* Write-through when there is no room: flushes oldest data until some is clean.  *seen: UINT64_MAX when a
 * change comes for the first time, then as this has left it.  0: try again: something has become clean
 * since *seen; -errno: the PFS cannot take it. */
int flush_make_room(struct file *f, uint64_t *seen);
/* To be called before a write of len bytes by an application or a peer.  The second function waits as the
 * marks say (marks.h), until there is room below the full mark.  0; -errno: f's flush fails, and there is no
 * room. */
bool flush_must_wait(uint64_t len);
int flush_admit(struct file *f, uint64_t len);
/* Which failures of its file a handle has reported. */
struct flush_seen {
    struct flush_failures {
        unsigned run;   /* the last failed one that it knows of */
        unsigned error; /* the one that it was told */
    } file, loan; /* and of what this node has borrowed of the file, which is flushed by itself */
};
/* For a new handle: it does not report earlier failures. */
void flush_error_seen(struct file *f, struct flush_seen *seen);
/* The error that prevented f's flush since the handle was opened, and still does.  Each handle gets it once,
 * however often the flush is tried in vain.  0 or -errno. */
int flush_error_once(struct file *f, struct flush_seen *seen);
/* Tries the failed files again now, and not when their time comes; else as flush_all, for these files only.
 * */
int flush_retry(bool (*progress)(void *arg, const struct flush_progress *p), void *arg);

#endif
