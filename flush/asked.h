/* asked.h - files that somebody wants on the PFS now, wherever in the session their latest bytes are (asked.c).
 *
 *     asked_new --> asked_add, each file --> asked_begin --> asked_wait, again and again --> asked_leave
 *                                               '--> a few files at a time: jobs of pool_writers
 *
 * The files of other nodes are flushed by these nodes (carry.h, CARRY_SYNC).  One thread uses it; the jobs go on without
 * that thread, if it leaves.
 */
#ifndef EDDY_FLUSH_ASKED_H
#define EDDY_FLUSH_ASKED_H

#include "flush/flush.h"
#include "placement/claims/claim.h"

struct asked;
struct asked *asked_new(void);
/* A file whose latest bytes are here or at another node, as claim_where has said; path: relative to the root, is copied.
 * If all of it is on the PFS, it is not added.  Before asked_begin. */
void asked_add(struct asked *a, struct fid fid, const char *path, const struct location *at);
/* How many were added, and how many bytes of them are not on the PFS.  Of another node's file the size counts. */
void asked_count(const struct asked *a, uint64_t *files, uint64_t *bytes);
/* Does not wait. */
void asked_begin(struct asked *a);
/* Waits until all files are flushed or have failed, ms at most: true.  *p: how far it is. */
bool asked_wait(struct asked *a, uint64_t ms, struct flush_progress *p);
/* Calls fn for each file that failed, after asked_wait was true; node: who was to flush it, 0: this one.  err: -errno of the
 * flush; -EAGAIN: that node does not answer; -ECANCELED: this daemon ends.  Stops when fn returns other than 0, and returns
 * that. */
typedef int asked_fn(void *arg, const char *path, uint64_t node, int err);
int asked_each_failed(const struct asked *a, asked_fn *fn, void *arg);
/* The caller has done with it: it is freed when no job uses it any more.  go_on: all are flushed; else those that are not
 * begun are left as they are. */
void asked_leave(struct asked *a, bool go_on);

#endif
