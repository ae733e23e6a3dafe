/* eviction.h - which chunk leaves the cache when there is no room; and which file, when the disk has no inode.
 *
 * Only clean chunks leave that are not in use and that the PFS has.  Replicas leave first, so that the
 * session's last copy stays longest; then the chunks that this node keeps: those that it owns, unless another node has said that
 * it keeps them now, and those that it keeps for their owners (placement/chunks/keep.h).  Of each kind, the chunk leaves that was used longest
 * ago, or that came last: insertion.h.
 *
 * What is known of the future counts before that.  Every chunk that could leave has a score of two numbers: the time until it
 * may go, and its distance, which is the time until it is read.  The lowest first number leaves, of these the greatest second
 * one (Belady's rule, as far as the future was told).  The first number is 0 for all chunks that are listed here: dirty ones
 * are not.  So the score is an order of lists (enum eviction_time), and within a list that of the use:
 *
 *   read, and not again before what is hinted   infinite: replicas first, then kept ones
 *   nothing is known                            by its age: as without hints
 *   hinted                                      its distance: foresight knows it, and says which is farthest
 *
 * Chunk records are linked in lists; lock RANK_SPACE.  Only chunks that may be evicted are on them,
 * as far as is known.  Under their file's lock this is checked again.
 */
#ifndef EDDY_PLACEMENT_STORE_EVICTION_H
#define EDDY_PLACEMENT_STORE_EVICTION_H

#include "placement/store/state.h"

void eviction_start(void);
/* store.c registers what takes a victim away, if it may go: the chunk (evict_chunk); its whole file
 * (evict_file). */
typedef bool (*evict_fn)(struct fid fid, uint64_t index, bool now);
void eviction_on_victim(evict_fn chunk, evict_fn file);

/* With the chunk's file's lock. */
void eviction_add(struct chunk_record *c, bool owned); /* may leave; counts as used now */
void eviction_remove(struct chunk_record *c);          /* may not, or is gone */
void eviction_used(struct chunk_record *c);            /* by a reader, now */

/* Asked of a replica that is about to be evicted: is this node its owner now?  Then it stays, as an owned
 * one.  NULL, as at the start: no.  is_owner is called with f->lock. */
void eviction_on_owner(bool (*is_owner)(struct fid fid, uint64_t index));
bool eviction_is_owner(struct fid fid, uint64_t index);

/* Who keeps the session's copy of a chunk: another node does (then this one is a replica, and the first of these to leave); this
 * one, which owns it; this one, as its owner has let its copy go.  With the chunk's file's lock.  A chunk that is used
 * for something else (dirty, say) is not kept for its owner any more. */
enum keep { KEEP_NOT, KEEP_OWNED, KEEP_FOR_OWNER };
void eviction_keep(struct chunk_record *c, enum keep keep);
/* May one more be kept for its owner?  percent: of all that may leave, at most.  More than KEEP_STOCK replicas could leave instead. */
#define KEEP_STOCK 16
bool eviction_may_keep(unsigned percent);
/* Replicas that may leave, and are not hinted. */
uint32_t eviction_replicas(void);
/* Chunks that are kept, and of which another node may have a copy: those that would leave next, and those that came last, which others
 * may have asked for.  Returns how many; 0 as long as KEEP_STOCK replicas are left. */
#define KEEP_ASKED (2 * KEEP_STOCK)
struct chunk_name {
    struct fid fid;
    uint64_t index;
};
unsigned eviction_next_kept(struct chunk_name out[KEEP_ASKED]);
/* What hears that something leaves, and fewer than KEEP_STOCK replicas are left: kept ones are next.  Called with locks of RANK_CLAIM or outer ones; it takes
 * that of the queue to the network thread at most.  NULL, as at the start: nobody does. */
void eviction_on_short(void (*fn)(void));

/* When a chunk will be read next, as far as it was told. */
enum eviction_time { TIME_UNKNOWN, TIME_NEVER, TIME_HINTED };
/* With the chunk's file's lock.  A chunk that is not listed has it when it is listed again. */
void eviction_set_time(struct chunk_record *c, enum eviction_time t);
/* foresight registers what tells whether a chunk is hinted: asked of each one that may leave from now on, since what the kernel
 * wrote has no record before it is flushed.  hinted is called with the file's lock, and takes leaf locks at most.  NULL, as at
 * the start: none is. */
void eviction_on_hinted(bool (*hinted)(struct fid fid, uint64_t index));
/* What hears of each chunk that has left: foresight, and the owner of a replica, by placement/chunks/places.h.  Called without
 * locks, or with those of eviction_one's caller; it takes leaf locks at most, and that of the queue to the network thread.  NULL, as at the start: nobody does. */
void eviction_on_left(void (*left)(struct fid fid, uint64_t index));
void eviction_tell_left(struct fid fid, uint64_t index); /* by what was registered with eviction_on_victim */
/* foresight registers what gives up the farthest hint of what is in the cache: its chunks are not hinted any more when
 * farthest returns true.  ahead: also one that was admitted (placement/foresight/).  Called with locks of RANK_CLAIM or outer
 * ones.  NULL, as at the start: there are no hints. */
void eviction_on_farthest(bool (*farthest)(bool ahead));

/* Evicts one chunk.  False if no listed chunk may leave.  Takes other files' locks: only locks of RANK_CLAIM
 * or outer ones may be held.  now: it waits for no sync of the cache's
 * disk.  ahead: what is here for an admitted hint may leave, too, if nothing else does: for writers, not for what is fetched. */
bool eviction_one(bool now, bool ahead);
/* The same for a whole file, which is the one of the chunk that would leave next: then its data file is gone. */
bool eviction_one_file(bool now);

#endif
