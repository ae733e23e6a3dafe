/* foresight.h - what programs have told that they will read: it is fetched ahead, and kept until it was read.
 *
 * This room owns the hints (hints.h: queues, files), the life of what each names (life.h), the prefetcher (prefetch.h), and
 * staging (stage.h).  A queue is the hints of one reader in the order in which it will read; its socket is
 * fs/daemon/queues.c.  The store has the score by which chunks leave (store/eviction.h), and hears from here which are hinted, and which are not read again.
 *
 *     fs/  opened, closed, renamed ---->  hints  <---- queues' socket
 *                                           |
 *                    prefetcher  <----------+---------->  store: hinted, never, unknown
 *
 * Distance: bytes before a hint in its queue, over the rate at which the queue's reader reads; of several queues the one
 * counts that is farthest when room is needed.  A hint that is farther away than one size of the cache counts as none.
 *
 * A hint is consumed when: its queue says so; the last reader that opened the file after the hint has closed it; or
 * LATER_OPENED later hints of the queue were opened.
 *
 * Any thread, no lock of RANK_LEAF held; nothing here blocks but what says so.  Paths are relative to the root of the mount.
 */
#ifndef EDDY_PLACEMENT_FORESIGHT_FORESIGHT_H
#define EDDY_PLACEMENT_FORESIGHT_FORESIGHT_H

#include "placement/foresight/queue_parse.h"
#include "placement/pfs/pfs_node.h"
#include "placement/store/file.h"

/* limit: bytes that hints may take.  Before pools_start. */
void foresight_start(uint64_t limit);
/* After the last queue has ended, and after pools_stop. */
void foresight_stop(void);

/* ---- what the mount tells ---- */

/* Is there any hint?  If not, the calls below need not be made. */
bool foresight_any(void);
/* A file was opened by this name.  writes: or made.  True: foresight_closed is to be called for this open. */
bool foresight_opened(struct pfs_node *n, struct fid fid, bool writes);
void foresight_closed(struct fid fid, bool writes);
/* This file has got this name. */
void foresight_named(const char *path, struct fid fid);
/* This file has this name no more. */
void foresight_removed(const char *path, struct fid fid);
/* Another node changes the file, or has: what is here of it will not be read. */
void foresight_changed(struct fid fid);
/* For eviction_on_left. */
void foresight_left(struct fid fid, uint64_t index);
/* All of the file is on the PFS, and clean here. */
void foresight_flushed(struct fid fid);

/* For eviction_on_hinted: is the chunk to stay? */
bool foresight_keeps(struct fid fid, uint64_t index);
/* For eviction_on_farthest: chunks of the hint that is farthest away may leave now.  ahead: also of one that was admitted. */
bool foresight_give_up(bool ahead);

/* ---- queues: one thread for each call with a queue ---- */

struct queue;
struct queue *foresight_queue_new(void); /* NULL: there are too many */
void foresight_queue_end(struct queue *q);
/* The body of QUEUE_ADD.  *first: the number of the first entry.  -EPROTO; -ENOBUFS. */
int foresight_add(struct queue *q, const void *body, size_t len, int64_t *first);
void foresight_fetch(struct queue *q, bool on);
int foresight_consumed(struct queue *q, int64_t seq); /* -ENOENT */
/* How many entries were added so far. */
int64_t foresight_count(struct queue *q);
/* All of the entry is here, or it is consumed or cancelled.  seq -1 - n: all entries before n are consumed or cancelled.  1 or 0;
 * -ENOENT: there is no such entry. */
int foresight_is_reached(struct queue *q, int64_t seq);
void foresight_cancel(struct queue *q, int64_t from);
struct eddy_queue_stats;
void foresight_stats(struct queue *q, uint64_t out[8]); /* the fields of struct eddy_queue_stats (tools/lib/eddy.h) */
/* fn is called when foresight_is_reached may have changed; it takes leaf locks at most, and is not to wait. */
void foresight_on_news(void (*fn)(void));

/* ---- the whole ---- */

struct foresight_status {
    uint64_t queues, hints, admitted, ahead, absent, ahead_bytes, memory, memory_max;
    uint64_t staged_bytes, pinned_bytes; /* that are here for stages; of these pinned */
    uint64_t ready; /* of all queues: how many of their next entries are here, before the first one that is not */
};
/* count_ready: else that stays 0; it takes a look at each such entry. */
void foresight_status(struct foresight_status *out, bool count_ready);
/* The abstract name of the queues' socket, which QUEUE_XATTR tells; "": there is none.  The text stays. */
void foresight_set_address(const char *name);
const char *foresight_address(void);

#endif
